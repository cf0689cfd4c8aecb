"""From scored candidates to one flat list: order, collapse, fold, lane share, limit (R10). Pure.

Order of the steps: sort, one card per document, near-identical items folded to their best instance, then the
share of each source and the limit. Knows nothing about how a score came to be.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from grounded_mcp.recall.gist import Gist, gist
from grounded_mcp.values import Candidate, Kind, SourceCount, StoredPassage

SCORE_DIGITS = 9
"""Scores are compared after rounding to 1e-9, so that engines that differ in the last bits agree (R10)."""

_FOLDED: Mapping[Kind, bool] = {"fact": True, "session": False}
"""Kinds of items whose near-identical ones become one, and whether an item has to be seen whole for that."""


@dataclass(frozen=True, slots=True)
class ShapeOptions:
    """[recall] and [recall.lane_share]. Shares are parts of ``limit``; ``fold_extra_words`` is ``Gist.same_as``'s."""

    fact_share: float
    session_share: float
    doc_share: float
    tie_break_order: tuple[str, ...]
    fold_extra_words: int

    def share(self, kind: Kind) -> float:
        shares: Mapping[str, float] = {
            "fact": self.fact_share,
            "session": self.session_share,
            "doc": self.doc_share,
        }
        return shares.get(kind, 1.0)


@dataclass(frozen=True, slots=True)
class Shaped:
    """The list, and what did not make it. ``available`` counts documents, as ``by_source`` does."""

    candidates: tuple[Candidate, ...]
    by_source: Mapping[Kind, SourceCount]
    available: int
    pruned: Mapping[str, int]


def shape(candidates: Iterable[Candidate], limit: int, kinds: Sequence[Kind], options: ShapeOptions) -> Shaped:
    """At most ``limit`` documents, best first, in a total order that no engine can change."""
    ordered = sorted(candidates, key=_order(options))
    documents = _collapse(ordered)
    distinct = _fold(documents, options.fold_extra_words)
    shared = _take_shares(distinct, limit, kinds, options)
    kept = shared[:limit]
    pruned = {
        "collapsed": len(ordered) - len(documents),
        "folded": len(documents) - len(distinct),
        "laneShare": len(distinct) - len(shared),
        "limit": len(shared) - len(kept),
    }
    return Shaped(tuple(kept), _counts(kinds, kept, distinct), len(distinct), pruned)


def _order(options: ShapeOptions) -> Callable[[Candidate], tuple[object, ...]]:
    """Archived documents last, generated reports behind first-hand material, then score, source, id."""
    place = {kind: index for index, kind in enumerate(options.tie_break_order)}

    def key(candidate: Candidate) -> tuple[object, ...]:
        found = _found(candidate)
        return (
            found.item.kind == "doc" and found.item.state == "archived",
            "generated" in found.item.attrs,
            -round(candidate.score, SCORE_DIGITS),
            place.get(candidate.kind, len(place)),
            found.item.id,
            found.passage.seq,
        )

    return key


def _collapse(ordered: Sequence[Candidate]) -> list[Candidate]:
    """One result per item: its best passage, with the number of its passages that were found."""
    chunks = Counter(_found(c).item.id for c in ordered)
    best: dict[str, Candidate] = {}
    for candidate in ordered:
        best.setdefault(_found(candidate).item.id, candidate)
    return [candidate._replace(chunks=chunks[item_id]) for item_id, candidate in best.items()]


def _fold(documents: Sequence[Candidate], extra_words: int) -> list[Candidate]:
    """Facts and conversations of one scope that say the same become their best instance; documents never do.

    A text is compared with every text already folded, so that two paraphrases may meet through a third.
    """
    kept: list[Candidate] = []
    seen: dict[tuple[Kind, str, frozenset[str]], list[tuple[Gist, int]]] = defaultdict(list)
    for candidate in documents:
        at = len(kept)
        if _foldable(candidate):
            found = _found(candidate)
            said = gist(found.item.body or found.passage.body)
            alike = seen[candidate.kind, found.item.scope, said.marks]
            at = next((place for other, place in alike if said.same_as(other, extra_words)), at)
            alike.append((said, at))
        if at == len(kept):
            kept.append(candidate)
        else:
            kept[at] = kept[at]._replace(duplicates=kept[at].duplicates + 1)
    return kept


def _foldable(candidate: Candidate) -> bool:
    """A fact of several passages is not judged by one of them; a conversation is, by the exchange that was found."""
    whole = _FOLDED.get(_found(candidate).item.kind)
    return whole is not None and (not whole or _found(candidate).passages == 1)


def _take_shares(
    documents: Sequence[Candidate], limit: int, kinds: Sequence[Kind], options: ShapeOptions
) -> list[Candidate]:
    """Each source's ceiling of ``limit``: ceil, at least one slot, only where several sources were asked for."""
    if len(set(kinds)) < 2:
        return list(documents)
    room = {kind: _slots(options.share(kind), limit) for kind in kinds}
    taken: Counter[Kind] = Counter()
    kept = []
    for candidate in documents:
        if taken[candidate.kind] < room[candidate.kind]:
            taken[candidate.kind] += 1
            kept.append(candidate)
    return kept


def _slots(share: float, limit: int) -> float:
    # Rounded first: 0.07 of 100 is 7.000000000000001 in floats, and not eight slots.
    return math.inf if share >= 1 else max(1, math.ceil(round(share * limit, SCORE_DIGITS)))


def _counts(kinds: Sequence[Kind], kept: Sequence[Candidate], distinct: Sequence[Candidate]) -> dict[Kind, SourceCount]:
    returned = Counter(c.kind for c in kept)
    available = Counter(c.kind for c in distinct)
    return {k: SourceCount(returned[k], available[k], returned[k] < available[k]) for k in kinds}


def _found(candidate: Candidate) -> StoredPassage:
    if candidate.found is None:
        raise ValueError("shape runs after fetch")
    return candidate.found
