"""How passages rank by a time window, whichever the engine: from the places of items to hits.

Pure. Knows nothing about how the places were found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from grounded_mcp.stores.rules import closeness, timed_score
from grounded_mcp.values import Hit, PassageId


def timed_hits(
    near: Mapping[int, tuple[int, float]],
    passages: Iterable[Sequence[Any]],
    bounds: tuple[float, float],
    scale: float,
    k: int,
) -> tuple[Hit, ...]:
    """``near``: by item, how many exchanges are inside and how far it is from the window. ``passages``: item, time and
    passage, by item, then by time."""
    hits: list[Hit] = []
    for num, group in groupby(passages, itemgetter(0)):
        inside, gap = near[num]
        worth = closeness(gap, scale)
        chosen = _chosen([(at, passage) for _, at, passage in group], inside, *bounds)
        hits += [Hit(passage, timed_score(worth, inside, turn)) for turn, passage in enumerate(chosen, 1)]
    return tuple(sorted(hits, key=lambda hit: (-hit.score, hit.passage))[:k])


def _chosen(
    found: Sequence[tuple[float | None, PassageId]], inside: int, since: float, until: float
) -> Sequence[PassageId]:
    timed = [(at, passage) for at, passage in found if at is not None]
    if not timed:
        return [passage for _, passage in found]
    if inside:
        return [passage for at, passage in timed if since <= at <= until]
    return [min(timed, key=lambda each: max(since - each[0], each[0] - until))[1]]
