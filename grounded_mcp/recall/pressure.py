"""Boosts and penalties: reasons that multiply a fused score, each named. Pure; 1 switches a pressure off (R8).

They tilt close calls and are not meant to override retrieval. Knows nothing about lanes or limits.
Source of the rules and defaults: the "Ranking pressure" and "Fact scope" parts of the recall reference page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from grounded_mcp.values import GLOBAL_SCOPE, Candidate, Item, Kind, Nudge, Query, StoredPassage

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class BoostOptions:
    """[recall.boosts]: multipliers, where 1 means no pressure."""

    fact_importance: float
    pinned: float
    session_decay: float
    session_decay_alone: float
    session_least: float
    session_archived: float
    session_half_life_days: float
    doc_active: float
    scope_match: float
    scope_mismatch: float
    scope_specific: float
    scope_neutral: float


def press(
    candidate: Candidate, found: StoredPassage, query: Query, options: BoostOptions, more: tuple[Nudge, ...] = ()
) -> Candidate:
    """The candidate with what was fetched for it, its nudges, and ``score = fused * product of factors``.

    ``more``: nudges of other stages, beside those of the item's kind.
    """
    item = found.item
    nudges = tuple([n for n in (*_RULES.get(item.kind, _none)(item, query, options), *more) if n.factor != 1.0])
    score = candidate.fused * math.prod(nudge.factor for nudge in nudges)
    return Candidate(
        id=candidate.id,
        kind=candidate.kind,
        fused=candidate.fused,
        votes=candidate.votes,
        nudges=nudges,
        score=score,
        found=found,
    )


def _fact(item: Item, query: Query, options: BoostOptions) -> tuple[Nudge, ...]:
    """1 + (ceiling - 1) x importance, then pinning, then the scope's tier."""
    importance = item.importance or 0.0
    pinned = Nudge("pinned", options.pinned if item.pinned else 1.0)
    return (
        Nudge("importance", 1.0 + (options.fact_importance - 1.0) * importance),
        pinned,
        _scope(item, query, options),
    )


def _session(item: Item, query: Query, options: BoostOptions) -> tuple[Nudge, ...]:
    """decay ^ (age / half-life): with 0.5 and 30 days a month-old session weighs half. The future has age 0.

    That is how much a session counts beside facts and documents. Who asks sessions alone asks for the past. Beyond
    ``session_least`` age says no more: of two old sessions the better match counts. Archived ones (the tier of the
    "How retrieval works" page) count less.
    """
    decay = options.session_decay if len(query.kinds) > 1 else options.session_decay_alone
    age_days = max(0.0, query.now - item.updated_at) / DAY
    recency = max(options.session_least, decay ** (age_days / options.session_half_life_days))
    archived = options.session_archived if item.state == "archived" else 1.0
    return (Nudge("recency", recency), Nudge("archived", archived))


def _doc(item: Item, query: Query, options: BoostOptions) -> tuple[Nudge, ...]:
    return (Nudge("active", options.doc_active if item.state == "active" else 1.0),)


def _none(item: Item, query: Query, options: BoostOptions) -> tuple[Nudge, ...]:
    return ()


def _scope(item: Item, query: Query, options: BoostOptions) -> Nudge:
    """One of the page's four tiers: match, mismatch, specific, neutral.

    A filter read from the declared project admits no foreign project, so whatever ``project:`` scope passed it is
    the declared one, also under its plain name.
    """
    if item.scope == GLOBAL_SCOPE:
        return Nudge("scope neutral", options.scope_neutral)
    declared = query.scope.declared
    of_project = declared is not None and item.scope.startswith("project:")
    own = of_project and (item.scope == declared or query.scope.source == "project")
    if own or names_scope(query.text, item.scope):
        return Nudge("scope match", options.scope_match)
    if of_project:
        return Nudge("scope mismatch", options.scope_mismatch)
    return Nudge("scope specific", options.scope_specific)


def names_scope(query: str, scope: str) -> bool:
    """Whether the query holds the scope's name as whole words, case aside.

    A key such as ``github.com/acme/alpha`` may be shortened from the left. The words of a name may be held
    together by hyphens, underscores or spaces; what stands inside a longer name, path or host is not a whole word.

    >>> names_scope("how is alpha-web deployed?", "project:alpha-web")
    True
    >>> names_scope("how is alpha-web deployed?", "project:alpha")
    False
    """
    parts = scope.partition(":")[2].casefold().split("/")
    text = query.casefold()
    return any(_named("/".join(parts[at:])).search(text) for at in range(len(parts)) if parts[at])


@lru_cache(512)
def _named(name: str) -> re.Pattern[str]:
    words = r"[-_\s]+".join(map(re.escape, re.split(r"[-_\s]+", name)))
    return re.compile(rf"(?<![\w./@-])(?:{words})(?![\w-]|[./@:]+\w)")


_RULES: Mapping[Kind, Callable[[Item, Query, BoostOptions], tuple[Nudge, ...]]] = {
    "fact": _fact,
    "session": _session,
    "digest": _session,
    "doc": _doc,
}
