"""The Onadit page's score: similarity, plus what the item itself adds, each term named. Pure.

Runs after fetch, in the place of ``pressure``, on what fusion of mode ``blend`` made: its fused score is the page's
similarity. The terms add up to the score exactly. Source of every number: the page "How retrieval works", "The
score". Knows nothing about lanes' scores, scopes or limits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from grounded_mcp.values import Candidate, Item, StoredPassage, Term, Vote

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class BlendOptions:
    """[recall.blend]: the weight of each term, then what the terms are made of. Times in days."""

    similarity: float
    recency: float
    quality: float
    tier: float
    outcome: float
    both_ways: float
    freshness: float
    recency_per_day: float
    freshness_days: float
    quality_high: float
    quality_medium: float
    quality_low: float
    tier_current: float
    tier_digest: float
    tier_archived: float
    found_both_ways: float
    found_one_way: float


def blend(candidate: Candidate, found: StoredPassage, now: float, options: BlendOptions) -> Candidate:
    """The candidate with what was fetched for it, its terms, and ``score = sum of weight x value``."""
    terms = _terms(candidate, found.item, now, options)
    score = math.fsum([term.weight * term.value for term in terms])
    return Candidate(candidate.id, candidate.kind, candidate.fused, candidate.votes, (), score, found, terms=terms)


def _terms(candidate: Candidate, item: Item, now: float, options: BlendOptions) -> tuple[Term, ...]:
    days = max(0.0, now - _indexed_at(item)) / DAY
    return (
        Term("similarity", options.similarity, candidate.fused),
        Term("recency", options.recency, 1.0 / (1.0 + options.recency_per_day * days)),
        Term("quality", options.quality, _quality(item, options)),
        Term("tier", options.tier, _tier(item, options)),
        Term("outcome", options.outcome, 1.0),
        Term("found both ways", options.both_ways, _both_ways(candidate.votes, options)),
        Term("freshness", options.freshness, math.exp(-days / options.freshness_days)),
    )


def _indexed_at(item: Item) -> float:
    """When the item was indexed, as near as a store knows it; the future is today.

    Exact for facts. A document is indexed when it is first synced (``created_at``) and again when its file changes
    (``updated_at``, the file's own time); a conversation counts from its end, which for an imported one is earlier
    than the page's day of the import.
    """
    return max(item.created_at, item.updated_at)


def _quality(item: Item, options: BlendOptions) -> float:
    """Conversations by how they were rated; everything else, and one that was not rated, counts 1."""
    if item.kind != "session":
        return 1.0
    rated = {"high": options.quality_high, "medium": options.quality_medium, "low": options.quality_low}
    return rated.get(item.attrs.get("quality", ""), 1.0)


def _tier(item: Item, options: BlendOptions) -> float:
    if item.kind == "digest":
        return options.tier_digest
    return options.tier_archived if (item.kind, item.state) == ("session", "archived") else options.tier_current


def _both_ways(votes: Sequence[Vote], options: BlendOptions) -> float:
    """Both lanes of the page: by keyword and by meaning. What other lanes found does not count here."""
    found = [vote.lane for vote in votes if vote.rank is not None]
    return options.found_both_ways if "lexical" in found and "vector" in found else options.found_one_way
