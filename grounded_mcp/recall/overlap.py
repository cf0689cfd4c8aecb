"""Words scored by overlap instead of BM25: what query and passage share, over the smaller of the two. Pure.

Normalising by the smaller side lets a short stored fact match a long question well (cognitive-memory page, "Recall").
Runs between the lexical lane and fusion, on candidates whose index tokens were fetched. Knows nothing about stores
and other lanes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Literal

from grounded_mcp.values import Hit, PassageId, Ranking

Scorer = Literal["overlap", "overlap_idf"]
Weigh = Callable[[Iterable[str]], float]


def rescore(ranking: Ranking, tokens: Mapping[PassageId, str], terms: Sequence[str], scorer: Scorer) -> Ranking:
    """A lexical ranking by overlap with the query's index ``terms``, on 0..1; ties keep the order they had.

    ``tokens``: each passage's index tokens, space-joined. A hit without any vanished from the store, and drops out.
    """
    asked = frozenset(terms)
    held = {hit.passage: frozenset(tokens[hit.passage].split()) for hit in ranking.hits if hit.passage in tokens}
    weigh = _WEIGHTS[scorer](held.values())
    hits = [Hit(id_, overlap(asked, side, weigh)) for id_, side in held.items()]
    return Ranking(ranking.lane, ranking.kind, tuple(sorted(hits, key=lambda hit: -hit.score)), ranking.below)


def overlap(asked: frozenset[str], held: frozenset[str], weigh: Weigh) -> float:
    """|asked and held| / min(|asked|, |held|) over distinct terms, weighed; 0 where one of them is empty."""
    smaller = min(weigh(asked), weigh(held))
    return weigh(asked & held) / smaller if smaller > 0.0 else 0.0


def _alike(_held: Iterable[frozenset[str]]) -> Weigh:
    return lambda terms: float(sum(1 for _ in terms))


def _by_rarity(held: Iterable[frozenset[str]]) -> Weigh:
    """BM25's idf, ln(1 + (n - df + 0.5) / (df + 0.5)), counted over the candidates: no statistics have to be kept."""
    sides = list(held)
    found = Counter(chain.from_iterable(sides))
    count = len(sides)
    idf = [math.log(1.0 + (count - df + 0.5) / (df + 0.5)) for df in range(count + 1)]
    return lambda terms: math.fsum([idf[found[term]] for term in terms])


_WEIGHTS: Mapping[Scorer, Callable[[Iterable[frozenset[str]]], Weigh]] = {"overlap": _alike, "overlap_idf": _by_rarity}
