"""``grounded-mcp eval``: its arguments, and a report as text or data. Translation only.

Imports nothing heavy, because the command line's ``--help`` knows its arguments. Stored text is shown only when asked
for (``--show``).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grounded_mcp.errors import InputError

if TYPE_CHECKING:
    from grounded_mcp.evaluation.configurations import Configuration
    from grounded_mcp.evaluation.intervals import Interval
    from grounded_mcp.evaluation.report import Report
    from grounded_mcp.evaluation.run import Outcome, Step

TEXT = "measure how well recall finds what it should, on a data set or on your own store"
CACHE = "eval-vectors"
"""The folder in the data directory that keeps the vectors of data sets between runs."""

_SHOWN_GAINS = ("recall@5", "recall@10", "MRR@10", "nDCG@10")


def arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("dataset", nargs="*", help="a folder, or its file of questions (docs/eval.md lists the shapes)")
    verb.add_argument("--own", action="store_true", help="ask your own store about what it holds for this project")
    verb.add_argument("--config", action="append", default=[], metavar="NAME=PATH", help="also with a file's settings")
    verb.add_argument("--set", action="append", default=[], metavar="[NAME:]KEY=VALUE,...", help="also with these")
    verb.add_argument("--queries", type=int, metavar="N", help="only so many of the questions")
    verb.add_argument("--seed", type=int, default=0, help="for the sample and the intervals (default: 0)")
    verb.add_argument(
        "--cache", metavar="DIR", help=f"keeps vectors between runs (default: {CACHE} in the data folder)"
    )
    verb.add_argument("--live", action="store_true", help="embed each question anew, so that latency is a user's")
    verb.add_argument("--show", action="store_true", help="with --own: print the questions whose answer was not found")


def measured(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Run what was asked for; the reports as data and as text. Raises: GroundedError."""
    from grounded_mcp.evaluation.configurations import configurations
    from grounded_mcp.evaluation.report import as_data, report
    from grounded_mcp.faces.progress import bar

    if bool(args.dataset) == args.own:
        raise InputError("dataset", "name a data set, or --own.", "See `grounded-mcp eval --help`.")
    if args.queries is not None and args.queries < 1:
        raise InputError("queries", f"{args.queries} is no count.", "Give a whole number of at least 1.")
    compared = configurations(args.config, args.set)
    with bar("steps", quiet=args.json) as step:
        found = list(_outcomes(args, compared, lambda _, done, total: step(done, total)))
    reports = [report(outcome, seed=args.seed) for outcome in found]
    data: dict[str, Any] = {
        "configurations": {each.name: dict(each.changes) for each in compared},
        "reports": [as_data(each) for each in reports],
    }
    parts = [_text(each, live=args.live or args.own) for each in reports]
    if args.show and args.own:
        data["missed"] = _missed(found[0])
        parts += ["\n".join(["not in the answer:", *data["missed"]])]
    return data, "\n\n".join(parts)


def _outcomes(args: argparse.Namespace, compared: Sequence[Configuration], step: Step) -> Iterator[Outcome]:
    from grounded_mcp.evaluation.caching import Models
    from grounded_mcp.evaluation.datasets import read
    from grounded_mcp.evaluation.own import evaluate_own
    from grounded_mcp.evaluation.run import evaluate

    if args.own:
        yield evaluate_own(compared, step, count=args.queries, seed=args.seed)
        return
    datasets = [read(Path(each).expanduser()) for each in args.dataset]
    home = compared[0].settings.places.home
    models = Models(Path(args.cache).expanduser() if args.cache else home / CACHE, live=args.live)
    try:
        for dataset in datasets:
            yield evaluate(dataset, compared, models.load, step, sample=args.queries, seed=args.seed, live=args.live)
    finally:
        models.save()


def _missed(outcome: Outcome) -> list[str]:
    """Questions whose item was not in the first configuration's answer, as a terminal may show them."""
    from grounded_mcp.faces.terminal import one_line

    answers = next(iter(outcome.answers.values()))
    pairs = zip(outcome.questions, answers, strict=True)
    return [
        f"{next(iter(asked.gold))}  {one_line(asked.text)}" for asked, found in pairs if not found.score.recalls[-1]
    ]


# --- text -------------------------------------------------------------------------------------------------


def _text(made: Report, *, live: bool) -> str:
    from grounded_mcp.faces.terminal import counted, one_line, table

    took = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in made.seconds.items())
    head = f"{counted(made.documents, 'document')}, {counted(made.passages, 'passage')}; {took}"
    lines = [f"{one_line(made.name)} ({made.shape}): {head}"]
    if made.left_out:
        lines.append(f"{counted(made.left_out, 'document')} left out by the importer: nothing can find them")
    measures = [name for name in made.rows[0].figures if name != "nDCG@10"]
    rows = [
        (
            *(one_line(each.group), one_line(each.configuration), str(each.questions)),
            *(f"{each.figures[name]:.3f}" for name in measures),
            _interval(each.ndcg),
        )
        for each in made.rows
    ]
    lines += ["", *table(("questions", "configuration", "n", *measures, "nDCG@10 [95 %]"), rows)]
    gains = [
        (one_line(each.group), one_line(each.configuration), *(_interval(each.gains[m], "+") for m in _SHOWN_GAINS))
        for each in made.rows
        if each.gains
    ]
    if gains:
        lines += ["", f"against {one_line(made.rows[0].configuration)}, question by question [95 %]"]
        lines += table(("questions", "configuration", *_SHOWN_GAINS), gains)
    return "\n".join([*lines, "", *_latency(made, live=live)])


def _interval(each: Interval, sign: str = "") -> str:
    return f"{each.mean:{sign}.3f} [{each.low:{sign}.3f}, {each.high:{sign}.3f}]"


def _latency(made: Report, *, live: bool) -> list[str]:
    """Times; and, for one's own store, whether what was recalled was used."""
    from grounded_mcp.faces.terminal import one_line, table

    rows = [
        (one_line(name), f"{each.p50:.1f}", f"{each.p95:.1f}", str(each.degraded))
        for name, each in made.latencies.items()
    ]
    told = "" if live else "; without embedding the question, which was kept (--live embeds it)"
    lines = [f"milliseconds of a recall{told}", *table(("configuration", "p50", "p95", "degraded"), rows)]
    if made.shape == "known items":
        reuse = "nothing was reported yet" if made.reuse is None else f"{made.reuse:.1%} of the recalls"
        lines += ["", f"reported reuse: {reuse}"]
    return lines
