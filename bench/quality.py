"""Ranking quality per fusion mode, by what ``grounded-mcp eval`` runs: nDCG@10, recall@10 and paired differences.

``--data`` names a folder with data sets of the shapes that ``docs/eval.md`` describes; those in ``SETS`` are measured.
The settings are the shipped ones, whatever the machine's own are.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.timing import table
from grounded_mcp.config import load
from grounded_mcp.evaluation.caching import Models
from grounded_mcp.evaluation.configurations import Configuration
from grounded_mcp.evaluation.datasets import read
from grounded_mcp.evaluation.report import Report, Row, report
from grounded_mcp.evaluation.run import evaluate
from grounded_mcp.settings import settings

SETS = ("docs-qa", "code-qa", "code-search", "locomo")
VARIANTS: Mapping[str, Mapping[str, object]] = {
    "as shipped": {},
    "lexical only": {"recall.mode": "lexical"},
    "vector only": {"recall.mode": "vector"},
    "rrf": {"recall.fusion.mode": "rrf"},
    "normalized zscore": {"recall.fusion.mode": "normalized", "recall.fusion.normalization": "zscore"},
    "normalized min_max": {"recall.fusion.mode": "normalized", "recall.fusion.normalization": "min_max"},
}


def measure(args: argparse.Namespace) -> list[str]:
    reports = _reports(args.data)
    rows = {name: [cell for each in reports for cell in _cells(each, name)] for name in VARIANTS}
    head = [f"{each.name} {what}" for each in reports for what in ("nDCG@10 / recall@10", "nDCG to shipped")]
    return [
        "### Ranking quality (nDCG@10 / recall@10, dev questions; difference with its 95 % interval)",
        "",
        *table(("system", *head), [(name, *cells) for name, cells in rows.items()]),
    ]


def _reports(data: Path) -> list[Report]:
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        variants = [
            Configuration(name, settings(load(cwd=home, env={"GROUNDED_HOME": scratch}, flags=flags)), flags)
            for name, flags in VARIANTS.items()
        ]
        models = Models(home / "vectors")
        sets = [data / name for name in SETS if (data / name).is_dir()]
        return [report(evaluate(read(each), variants, models.load, lambda *_: None)) for each in sets]


def _cells(made: Report, variant: str) -> tuple[str, str]:
    row = next(each for each in made.rows if (each.group, each.configuration) == ("all", variant))
    return f"{row.figures['nDCG@10']:.3f} / {row.figures['recall@10']:.3f}", _gain(row)


def _gain(row: Row) -> str:
    gain = row.gains.get("nDCG@10")
    return f"{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]" if gain else ""
