"""Percentiles and tables."""

from __future__ import annotations

from collections.abc import Sequence


def percentile(values: Sequence[float], part: float) -> float:
    """Nearest-rank percentile, ``part`` on 0..1."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def p50(values: Sequence[float]) -> float:
    return percentile(values, 0.5)


def p95(values: Sequence[float]) -> float:
    return percentile(values, 0.95)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """A Markdown table; floats to three significant places."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
