"""An outcome as rows: each group of questions under each configuration, with intervals and differences.

Knows nothing about how a report is shown, and holds no stored text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grounded_mcp.evaluation.intervals import Interval, difference, interval
from grounded_mcp.evaluation.metrics import CUTS, Score, mean, percentile
from grounded_mcp.evaluation.run import Answer, Outcome


@dataclass(frozen=True, slots=True)
class Row:
    """One group of questions under one configuration. ``gains``: its differences to the first configuration, by
    measure, paired question by question; empty for the first itself."""

    group: str
    configuration: str
    questions: int
    figures: Mapping[str, float]
    ndcg: Interval
    gains: Mapping[str, Interval]


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds of a recall, and how many of them were degraded."""

    p50: float
    p95: float
    degraded: int


@dataclass(frozen=True, slots=True)
class Report:
    """``seconds``: what filling the stores and asking took."""

    name: str
    shape: str
    documents: int
    passages: int
    left_out: int
    rows: tuple[Row, ...]
    latencies: Mapping[str, Latency]
    seconds: Mapping[str, float]
    reuse: float | None


def report(outcome: Outcome, *, seed: int = 0) -> Report:
    """Rows in the data set's order of groups; a group without a question has none."""
    rows = tuple(
        row
        for group in outcome.groups
        if any(group in question.groups for question in outcome.questions)
        for row in _rows(outcome, group, seed)
    )
    return Report(
        name=outcome.name,
        shape=outcome.shape,
        documents=outcome.documents,
        passages=outcome.passages,
        left_out=len(outcome.left_out),
        rows=rows,
        latencies={name: _latency(answers) for name, answers in outcome.answers.items()},
        seconds=outcome.seconds,
        reuse=outcome.reuse,
    )


def _rows(outcome: Outcome, group: str, seed: int) -> list[Row]:
    places = [at for at, question in enumerate(outcome.questions) if group in question.groups]
    clusters = [outcome.questions[at].cluster for at in places]
    columns = {name: _columns([answers[at].score for at in places]) for name, answers in outcome.answers.items()}
    first = next(iter(columns.values()))
    return [
        Row(
            group=group,
            configuration=name,
            questions=len(places),
            figures={measure: mean(values) for measure, values in ours.items()},
            ndcg=interval(ours["nDCG@10"], clusters, seed=seed),
            gains={
                measure: difference(values, first[measure], clusters, seed=seed)
                for measure, values in ours.items()
                if ours is not first
            },
        )
        for name, ours in columns.items()
    ]


def _columns(scores: Sequence[Score]) -> dict[str, list[float]]:
    """Every measure's values, in the order of the questions."""
    recalls = {f"recall@{cut}": [each.recalls[at] for each in scores] for at, cut in enumerate(CUTS)}
    return {**recalls, "MRR@10": [each.mrr for each in scores], "nDCG@10": [each.ndcg for each in scores]}


def _latency(answers: Sequence[Answer]) -> Latency:
    ms = [answer.ms for answer in answers]
    return Latency(percentile(ms, 0.5), percentile(ms, 0.95), sum(answer.degraded for answer in answers))


def as_data(made: Report) -> dict[str, Any]:
    """The report as JSON has it; an interval is its mean and bounds."""
    return {
        "dataset": made.name,
        "shape": made.shape,
        "documents": made.documents,
        "passages": made.passages,
        "leftOut": made.left_out,
        "groups": [
            {
                "group": row.group,
                "configuration": row.configuration,
                "questions": row.questions,
                **row.figures,
                "interval": row.ndcg._asdict(),
                "gains": {measure: gain._asdict() for measure, gain in row.gains.items()},
            }
            for row in made.rows
        ],
        "latencyMs": {
            name: {"p50": each.p50, "p95": each.p95, "degraded": each.degraded} for name, each in made.latencies.items()
        },
        "seconds": dict(made.seconds),
        "reuse": made.reuse,
    }
