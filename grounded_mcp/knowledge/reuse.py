"""Does recall help? How it was used, how it was served, and how often what it returned was used again. Pure.

``memory_reuse_rate``: of all client sessions of agents in a window, the part that asked for the project's memory and
reported that something of an answer was used. Its two parts multiply to it: how many asked at all, and how many of
those reported reuse. Opening a memory is a weaker sign and is counted apart. Knows nothing about how it was recorded.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from grounded_mcp.accounts import Usage
from grounded_mcp.events import COMMAND_LINE
from grounded_mcp.stores.base import Noted, NotedItem, NotedRecall, NotedSession

MEMORY_TOOL = "get_project_memory"
"""The tool that the rate is about (P5)."""

NO_MODE = "none"
"""Stands for the mode of a recall that searched for nothing."""


@dataclass(frozen=True, slots=True)
class Reuse:
    """``memory_reuse_rate`` and its parts, from counts of client sessions. A part of nothing is None."""

    sessions: int
    called: int
    """Sessions that called the tool."""
    reused: int
    """Of those, the ones that reported reuse of a recall of theirs."""

    @property
    def rate(self) -> float | None:
        return _part(self.reused, self.sessions)

    @property
    def called_rate(self) -> float | None:
        return _part(self.called, self.sessions)

    @property
    def reused_given_called(self) -> float | None:
        return _part(self.reused, self.called)


class Latency(NamedTuple):
    """Milliseconds, nearest rank."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Reports:
    """What became of recalls: reported as of use or of none, and opened without a report being needed for that."""

    used: int
    unused: int
    opened: int


@dataclass(frozen=True, slots=True)
class Stats:
    """A window of telemetry, summed up. Counters are by name, most frequent first."""

    since: float
    until: float
    recalls: int
    tools: Mapping[str, int]
    modes: Mapping[str, int]
    """By the mode served."""
    lowered: Mapping[str, int]
    """Recalls served in another mode than they asked for, by "asked > served"."""
    degraded: Mapping[str, int]
    """By the code of the reason."""
    intents: Mapping[str, int]
    clients: Mapping[str, int]
    """Sessions by client, the command line's left out."""
    latency: Mapping[str, Latency]
    """By part: embedding, database, rerank, total; of the recalls in which that part ran."""
    results: float
    """The mean number of results."""
    empty: int
    """Recalls that returned nothing."""
    reports: Reports
    reuse: Reuse
    items: tuple[NotedItem, ...]
    dropped: int
    """Events that were never stored, of all time."""


def stats(noted: Noted, since: float, until: float, *, dropped: int = 0) -> Stats:
    """Everything ``stats`` shows. ``dropped``: events lost since the store was last written."""
    recalls = noted.recalls
    agents = [each for each in noted.sessions if each.id != COMMAND_LINE.session]
    return Stats(
        since=since,
        until=until,
        recalls=len(recalls),
        tools=_counted(each.tool for each in recalls),
        modes=_counted(each.mode or NO_MODE for each in recalls),
        lowered=_counted(f"{each.asked} > {each.mode}" for each in recalls if each.asked != each.mode),
        degraded=_counted(each.degraded for each in recalls if each.degraded),
        intents=_counted(each.intent for each in recalls if each.intent),
        clients=_counted(each.client for each in agents),
        latency=_latency(recalls),
        results=math.fsum(each.results for each in recalls) / len(recalls) if recalls else 0.0,
        empty=sum(not each.results for each in recalls),
        reports=Reports(
            used=sum(each.reused is True for each in recalls),
            unused=sum(each.reused is False for each in recalls),
            opened=sum(each.opened > 0 for each in recalls),
        ),
        reuse=memory_reuse(agents, recalls),
        items=noted.items,
        dropped=noted.dropped + dropped,
    )


def usage(noted: Noted, days: float, *, dropped: int = 0) -> Usage:
    """The few figures of ``stats`` that a status shows."""
    found = stats(noted, 0.0, 0.0, dropped=dropped)
    total = found.latency.get("total", Latency(0.0, 0.0))
    return Usage(
        days=days,
        recalls=found.recalls,
        degraded=sum(found.degraded.values()),
        p50_ms=total.p50,
        p95_ms=total.p95,
        opened=found.reports.opened,
        sessions=found.reuse.sessions,
        called=found.reuse.called,
        reused=found.reuse.reused,
        dropped=found.dropped,
    )


def memory_reuse(sessions: Sequence[NotedSession], recalls: Iterable[NotedRecall]) -> Reuse:
    """``memory_reuse_rate`` over these sessions, by the recalls of theirs (P5)."""
    every = {each.id for each in sessions}
    called, reported = set(), set()
    for each in recalls:
        if each.tool == MEMORY_TOOL:
            called.add(each.session)
        if each.reused:
            reported.add(each.session)
    return Reuse(len(every), len(every & called), len(every & called & reported))


def reused_part(recalls: Sequence[NotedRecall]) -> float | None:
    """The part of the recalls that were reported as reused; None where nothing was ever reported."""
    if all(each.reused is None for each in recalls):
        return None
    return _part(sum(each.reused is True for each in recalls), len(recalls))


def _latency(recalls: Sequence[NotedRecall]) -> dict[str, Latency]:
    searched = [each for each in recalls if each.mode]
    columns = {
        "embedding": [each.embed_ms for each in searched if each.embed_ms],
        "database": [each.db_ms for each in searched],
        "rerank": [each.rerank_ms for each in searched if each.rerank_ms],
        "total": [each.total_ms for each in searched],
    }
    return {part: Latency(_percentile(ms, 0.5), _percentile(ms, 0.95)) for part, ms in columns.items() if ms}


def _percentile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items(), key=lambda pair: (-pair[1], pair[0])))


def _part(count: int, of: int) -> float | None:
    return count / of if of else None
