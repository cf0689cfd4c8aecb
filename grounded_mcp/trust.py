"""How far a memory is to be trusted, as data: what ``knowledge.confidence`` works out and answers show (P3). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["active", "stale", "contradicted"]
ScriptState = Literal["verified", "stale", "missing", "unknown"]
"""``unknown``: the file was never seen as it was when the script worked."""


@dataclass(frozen=True, slots=True)
class Rationale:
    """The whole way to a final score; None where a part does not apply. Ranks are 0-based.

    ``final_score = fusion_score x recency_score x evidence_boost x script_staleness_penalty x contradiction_penalty``.
    """

    lexical_rank: int | None
    vector_rank: int | None
    vector_distance: float | None
    fusion_score: float | None
    recency_score: float
    evidence_boost: float
    script_staleness_penalty: float
    contradiction_penalty: float
    final_score: float | None


@dataclass(frozen=True, slots=True)
class Confidence:
    """P3's object. ``updated_at``: seconds since the epoch."""

    evidence_score: float
    support_count: int
    contradiction_count: int
    updated_at: float
    state: State
    rationale: Rationale
    changed: tuple[str, ...] = ()
    """Files that the item relies on which are missing, or not known to be as they were."""
