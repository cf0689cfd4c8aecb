"""Do two stores hold the same, and answer alike? Counts, a hash of every item, and a sample of searches.

Knows nothing about how they came to hold it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, get_args

from grounded_mcp.stores.portable import Carried
from grounded_mcp.transfer import lines
from grounded_mcp.transfer.exporting import Whole, all_items
from grounded_mcp.values import Filter, Hit, Kind

SAMPLE: Final = 25
"""Items by whose words and vectors both stores are asked."""
ASKED: Final = 200
"""Characters of a question."""
DEEP: Final = 20
MOST_NAMED: Final = 1_000
"""Ids of differing items that are kept: beyond that only the difference is told."""
CLOSE: Final = 1e-6
"""How far two engines' scores of one passage may be apart (R17)."""
MISSED: Final = 2
"""Of the ``DEEP`` nearest, how many one store may miss: beyond a size, both search vectors through an index."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """``counts``: what was counted, in the old and the new store. ``seal``: a hash over all items, equal where they
    are. ``differing`` are missing or not the same in the new store, ``extra`` are only there. ``searches``: how many
    gave the same, and how many were asked."""

    counts: Mapping[str, tuple[int, int]]
    seal: str
    differing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    searches: tuple[int, int] = (0, 0)
    odd: tuple[str, ...] = field(default=())
    """Searches that gave something else, by the id of the item whose words they are."""

    @property
    def same(self) -> bool:
        counts = all(old == new for old, new in self.counts.values())
        return counts and not self.differing and not self.extra and not self.odd


Words = Callable[[str], Sequence[str]]
"""The index terms of a question: ``text.Analyzer.query``."""


def verify(source: Whole, target: Whole, words: Words) -> Verdict:
    """Compare everything but telemetry, which goes on being written. Raises: StoreError."""
    seal = sha256()
    differing, extra, sample = [], [], []
    every = max(1, sum(source.info().items.values()) // SAMPLE)
    for at, (item_id, old, new) in enumerate(_side_by_side(source, target)):
        seal.update(hash_of(old) if old else b"-")
        if old is None:
            extra.append(item_id)
        elif new is None or hash_of(old) != hash_of(new):
            differing.append(item_id)
        if old is not None and at % every == 0 and old.record.passages:
            sample.append(old)
    asked = sample[:SAMPLE]
    odd = [each.record.item.id for each in asked if not _answers_alike(source, target, each, words)]
    return Verdict(
        counts=dict(_counts(source, target)),
        seal=seal.hexdigest(),
        differing=tuple(differing[:MOST_NAMED]),
        extra=tuple(extra[:MOST_NAMED]),
        searches=(len(asked) - len(odd), len(asked)),
        odd=tuple(odd),
    )


def hash_of(carried: Carried) -> bytes:
    """Of all that is carried: equal items have equal hashes on every engine."""
    row = json.dumps(lines.item_row(carried), sort_keys=True, ensure_ascii=True)
    return sha256(row.encode("ascii")).digest()


def _side_by_side(source: Whole, target: Whole) -> Iterator[tuple[str, Carried | None, Carried | None]]:
    """Every item of either store with its like in the other."""
    left, right = all_items(source, vectors=True), all_items(target, vectors=True)
    old, new = next(left, None), next(right, None)
    while old is not None or new is not None:
        ids = [each.record.item.id for each in (old, new) if each is not None]
        first = min(ids)
        here = old if old is not None and old.record.item.id == first else None
        there = new if new is not None and new.record.item.id == first else None
        yield first, here, there
        old = next(left, None) if here is not None else old
        new = next(right, None) if there is not None else new


def _counts(source: Whole, target: Whole) -> Iterator[tuple[str, tuple[int, int]]]:
    old, new = source.info(), target.info()
    for kind in sorted({*old.items, *new.items}):
        yield kind, (old.items.get(kind, 0), new.items.get(kind, 0))
    yield "passages", (old.passages, new.passages)
    for state in ("ok", "pending", "none"):
        yield f"vectors {state}", (old.vectors.get(state, 0), new.vectors.get(state, 0))
    yield "projects", (len(source.projects()), len(target.projects()))
    yield "forgotten", (len(source.buried()), len(target.buried()))


def _answers_alike(source: Whole, target: Whole, asked: Carried, words: Words) -> bool:
    """Whether both stores find the same by an item's own words, and by its first vector."""
    everything = Filter(frozenset[Kind](get_args(Kind)))
    terms = words(asked.record.passages[0].body[:ASKED])
    old, new = (_named(store, store.lexical(terms, everything, DEEP)) for store in (source, target))
    if not _alike(old, new):
        return False
    vector = next((each for each in asked.vectors.values() if each is not None), None)
    if vector is None:
        return True
    old, new = (_named(store, store.nearest(vector, everything, DEEP)) for store in (source, target))
    return _alike(old, new) or _near(old, new)


Named = list[tuple[float, str, int]]


def _named(store: Whole, hits: Iterable[Hit]) -> Named:
    hits = list(hits)
    found = store.fetch([hit.passage for hit in hits])
    return [(hit.score, found[hit.passage].item.id, found[hit.passage].passage.seq) for hit in hits]


def _near(old: Named, new: Named) -> bool:
    """Nearly the same passages, each with the same score."""
    scores = [{(name, seq): score for score, name, seq in side} for side in (old, new)]
    both = scores[0].keys() & scores[1].keys()
    close = all(abs(scores[0][each] - scores[1][each]) <= CLOSE for each in both)
    return close and len(both) >= DEEP - MISSED


def _alike(old: Named, new: Named) -> bool:
    """The same passages by score, those of one score in any order: ids of passages are a store's own.

    What shares the last score may have been cut off differently.
    """
    if len(old) != len(new) or any(abs(one[0] - two[0]) > CLOSE for one, two in zip(old, new, strict=True)):
        return False
    floor = old[-1][0] + CLOSE if len(old) == DEEP else float("-inf")
    kept = [{(name, seq) for score, name, seq in side if score > floor} for side in (old, new)]
    return kept[0] == kept[1]
