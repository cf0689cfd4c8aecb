"""How recall was used, as tables for a person and as data. Pure; holds no stored text.

Knows nothing about arguments or processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from grounded_mcp.faces.terminal import counted, one_line, table
from grounded_mcp.knowledge.graph import Graph
from grounded_mcp.knowledge.reuse import Reuse, Stats
from grounded_mcp.when import iso


def as_data(found: Stats, graph: Graph | None = None) -> dict[str, Any]:
    """The statistics, and the memory graph if there is one, as JSON has them: snake_case, times in ISO 8601."""
    return {
        **asdict(found),
        "since": iso(found.since),
        "until": iso(found.until),
        "latency": {part: ms._asdict() for part, ms in found.latency.items()},
        "memory_reuse_rate": _rates(found.reuse),
        "reuse": asdict(found.reuse),
        "items": [each._asdict() for each in found.items],
        **({"graph": _graph(graph)} if graph else {}),
    }


def _rates(reuse: Reuse) -> dict[str, float | None]:
    return {"rate": reuse.rate, "called": reuse.called_rate, "reused_given_called": reuse.reused_given_called}


def _graph(found: Graph) -> dict[str, Any]:
    """Nodes that name one another by id."""
    return {
        "sessions": [each._asdict() for each in found.sessions],
        "recalls": [each._asdict() for each in found.recalls],
        "items": [each._asdict() for each in found.items],
        "evidence": [
            {"item": item, "session": each.session, "place": each.place, "supports": each.supports, "kind": each.kind}
            for item, evidence in found.evidence.items()
            for each in evidence
        ],
    }


def text(found: Stats) -> str:
    """The statistics as tables."""
    lines = [f"{counted(found.recalls, 'recall')} from {iso(found.since)} to {iso(found.until)}"]
    if found.recalls:
        lines.append(f"{found.results:.1f} results on average, {found.empty:,} without any")
    lines += ["", *_reuse(found)]
    for name, counts in _counts(found):
        lines += ["", *table((name, "count"), [(one_line(each), f"{count:,}") for each, count in counts.items()])]
    if found.latency:
        times = [(part, f"{ms.p50:.1f}", f"{ms.p95:.1f}") for part, ms in found.latency.items()]
        lines += ["", *table(("milliseconds", "p50", "p95"), times)]
    if found.items:
        rows = [(one_line(e.id), e.kind, *(f"{n:,}" for n in (e.recalled, e.opened, e.reused))) for e in found.items]
        lines += ["", *table(("item", "kind", "recalled", "opened", "reused"), rows)]
    if found.dropped:
        lines += ["", f"{counted(found.dropped, 'event')} could not be stored and are not counted."]
    return "\n".join(lines)


def _reuse(found: Stats) -> list[str]:
    reuse, reports = found.reuse, found.reports
    return [
        f"memory reuse rate {_percent(reuse.rate)}: of {counted(reuse.sessions, 'client session')}"
        f" {reuse.called:,} called for the project's memory ({_percent(reuse.called_rate)}),"
        f" {reuse.reused:,} of them reported reuse ({_percent(reuse.reused_given_called)})",
        f"recalls: {reports.used:,} reported as used, {reports.unused:,} as not used; something opened of"
        f" {reports.opened:,}",
    ]


def _counts(found: Stats) -> Iterator[tuple[str, Mapping[str, int]]]:
    named = {
        "tool": found.tools,
        "mode served": found.modes,
        "asked > served": found.lowered,
        "degraded by": found.degraded,
        "intent": found.intents,
        "client sessions": found.clients,
    }
    return ((name, counts) for name, counts in named.items() if counts)


def _percent(part: float | None) -> str:
    return "-" if part is None else f"{part:.1%}"
