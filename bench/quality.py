"""Ranking quality on documentation and code questions, per fusion mode: nDCG@10 and recall@10 of passages.

``--data`` names a folder with ``docs-qa`` and ``code-qa`` as their ``documents.json`` and ``queries.dev.json`` (from
anthropics/anthropic-cookbook, MIT). Each given passage is one passage here, so that gold labels stay comparable.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from bench.timing import table
from grounded_mcp.assemble import open_memory, open_store
from grounded_mcp.config import load
from grounded_mcp.settings import settings
from grounded_mcp.values import Clean, Item, Passage, Record

SETS = ("docs-qa", "code-qa")
VARIANTS: Mapping[str, Mapping[str, object]] = {
    "lexical only": {"recall.mode": "lexical"},
    "vector only": {"recall.mode": "vector"},
    "rrf": {"recall.fusion.mode": "rrf"},
    "normalized zscore": {},
    "normalized min_max": {"recall.fusion.normalization": "min_max"},
}


def measure(args: argparse.Namespace) -> list[str]:
    lines = ["### Ranking quality (nDCG@10 / recall@10, dev questions)", ""]
    rows: dict[str, list[str]] = {name: [] for name in VARIANTS}
    for name in SETS:
        documents, queries = _read(args.data / name)
        with tempfile.TemporaryDirectory() as scratch:
            home = Path(scratch)
            _index(home, documents)
            for variant, flags in VARIANTS.items():
                ndcg, recall = _score(home, queries, flags)
                rows[variant].append(f"{ndcg:.3f} / {recall:.3f}")
    return lines + table(("system", *SETS), [(variant, *cells) for variant, cells in rows.items()])


def _read(folder: Path) -> tuple[list[tuple[str, str, str]], list[dict[str, Any]]]:
    """(id, title, text) of every passage, and the queries."""
    documents = json.loads((folder / "documents.json").read_text(encoding="utf-8"))
    queries = json.loads((folder / "queries.dev.json").read_text(encoding="utf-8"))
    passages = []
    for document in documents:
        if "chunk_link" in document:
            passages.append((document["chunk_link"], document["chunk_heading"], document["text"]))
        else:
            passages += [(chunk["id"], document["path"], chunk["text"]) for chunk in document["chunks"]]
    return passages, queries


def _index(home: Path, passages: Sequence[tuple[str, str, str]]) -> None:
    options = settings(load(cwd=home, env={"GROUNDED_HOME": str(home / "home")}))
    memory = open_memory(options, cwd=home)
    scope = memory.project.scope
    with closing(open_store(options)) as store:
        for start in range(0, len(passages), 50):
            store.save([_record(scope, *passage) for passage in passages[start : start + 50]])
    memory.wait_ready(60)
    memory.fill_vectors()
    memory.close()


def _record(scope: str, id_: str, title: str, text: str) -> Record:
    item = Item(id_, "doc", scope, Clean(title), key=id_, updated_at=time.time())
    return Record(item, (Passage(0, Clean(text)),))


def _score(home: Path, queries: Sequence[Mapping[str, Any]], flags: Mapping[str, object]) -> tuple[float, float]:
    options = settings(load(cwd=home, env={"GROUNDED_HOME": str(home / "home")}, flags=flags))
    memory = open_memory(options, cwd=home)
    memory.wait_ready(60)
    ndcg, recall = [], []
    for query in queries:
        found = memory.recall(query["query"], limit=10, sources=["doc"])
        ids = [candidate.found.item.id for candidate in found.candidates if candidate.found]
        gold = set(query["gold"])
        gains = [1.0 / math.log2(rank + 2) for rank, id_ in enumerate(ids) if id_ in gold]
        best = math.fsum(1.0 / math.log2(rank + 2) for rank in range(min(10, len(gold))))
        ndcg.append(math.fsum(gains) / best)
        recall.append(len(gold.intersection(ids)) / len(gold))
    memory.close()
    return math.fsum(ndcg) / len(ndcg), math.fsum(recall) / len(recall)
