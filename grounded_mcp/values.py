"""The nouns of the product, frozen: what is stored, what is asked, what comes back.

Pure data. Knows nothing about SQL, models, the clock or any face. Times are seconds since the epoch (UTC) as
floats; vectors are little-endian float32 bytes of unit length; scores are "higher is better". What a recall makes by
the hundred is a NamedTuple: a frozen dataclass takes four times as long to make.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, NewType

from grounded_mcp.errors import ModelFault
from grounded_mcp.foreground import GLOBAL_SCOPE as GLOBAL_SCOPE
from grounded_mcp.trust import Confidence

Kind = Literal["fact", "session", "doc", "learning", "episode", "digest", "script"]
State = Literal["active", "archived", "missing", "superseded"]
Origin = Literal["stated", "derived"]
EvidenceKind = Literal["verified outcome", "diagnostic episode", "stated"]
VectorState = Literal["pending", "ok", "none"]
LaneName = Literal["lexical", "vector", "graph", "temporal"]
Mode = Literal["hybrid", "lexical", "vector"]

Clean = NewType("Clean", str)
"""Text that went through ``ingest.redact.Redactor.clean``: the only kind of text a store accepts."""

Vector = NewType("Vector", bytes)
"""A unit vector: ``4 * dimensions`` bytes of little-endian float32."""

PassageId = NewType("PassageId", int)


# --- what is stored ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Project:
    """One project, and why it was recognised as this one (product rule "project")."""

    key: str
    name: str
    reason: str
    root: str
    branch: str | None = None
    worktree: str | None = None

    @property
    def scope(self) -> str:
        return f"project:{self.key}"


@dataclass(frozen=True, slots=True)
class Item:
    """Anything that can be recalled. ``key`` is unique within (kind, scope): a document's path, a fact's topic key.

    ``body`` is the full text of items that are kept whole (facts); documents are the concatenation of their
    passages and have ``body=None``. ``attrs`` holds small, kind-specific strings (git state, agent, branch ...).
    """

    id: str
    kind: Kind
    scope: str
    title: Clean
    key: str | None = None
    body: Clean | None = None
    state: State = "active"
    origin: Origin = "derived"
    importance: float | None = None
    pinned: bool = False
    created_at: float = 0.0
    updated_at: float = 0.0
    content_hash: str = ""
    attrs: Mapping[str, str] = field(default_factory=dict)


class Passage(NamedTuple):
    """One searchable piece of an item. The bodies of an item's passages, joined, are its text exactly.

    ``heading`` is the trail above it ("Install > Linux"); lines are 1-based and inclusive. ``at``: when it was said,
    where it has a time of its own, as the exchanges of a session have.
    """

    seq: int
    body: Clean
    heading: str = ""
    start_line: int | None = None
    end_line: int | None = None
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """One time that a claim held or did not, with the place it was seen: an exchange of a conversation, 1-based."""

    session: str
    """The conversation's item id; ``stated:`` and a name of its own where a caller stated it, with place 0."""
    place: int
    supports: bool
    kind: EvidenceKind
    at: float
    note: Clean


class Tally(NamedTuple):
    """Evidence of an item that says the same in the same way: how often, and when last."""

    kind: EvidenceKind
    supports: bool
    times: int
    newest: float


@dataclass(frozen=True, slots=True)
class Record:
    """An item with its passages: the unit of writing. An item in state ``superseded`` has none.

    ``evidence`` is added to what the item has already; the same place of the same conversation counts once.
    """

    item: Item
    passages: tuple[Passage, ...] = ()
    evidence: tuple[Evidence, ...] = ()


class StoredPassage(NamedTuple):
    """A passage as the store hands it back, with the item it belongs to."""

    id: PassageId
    passage: Passage
    item: Item
    passages: int
    """How many passages the item has."""
    size: int
    """Characters of the item's whole text."""
    tokens: str = ""
    """The passage's index tokens, space-joined: what a query's terms are compared with."""


@dataclass(frozen=True, slots=True)
class SaveReport:
    """What one ``save`` did: items by outcome, and passages whose vector is still to come."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    superseded: int = 0
    pending: int = 0


# --- what is asked ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Filter:
    """Which rows a search may return. It acts inside the search, never after a top-k (R4, T23).

    ``scopes=None`` admits every scope. ``since``/``until`` bound ``Item.updated_at``, both inclusive.
    """

    kinds: frozenset[Kind]
    scopes: frozenset[str] | None = None
    since: float | None = None
    until: float | None = None


class Hit(NamedTuple):
    """One passage found by one lane. ``score``: BM25 or cosine similarity, higher is better."""

    passage: PassageId
    score: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """What one lane returned for one source kind, best first. ``below``: hits that did not reach the floor."""

    lane: LaneName
    kind: Kind
    hits: tuple[Hit, ...] = ()
    below: int = 0


@dataclass(frozen=True, slots=True)
class ScopeFilter:
    """Which scopes a recall admits, and what that was read from (R9). ``None`` admits every scope.

    Facts are filtered by their own scope; everything else belongs to a project.
    """

    facts: frozenset[str] | None
    others: frozenset[str] | None
    source: Literal["none", "project", "factScopes", "folder"]
    declared: str | None = None
    """The scope of the project that the caller named, if any: what ``match`` and ``mismatch`` are judged by (R8)."""


@dataclass(frozen=True, slots=True)
class Query:
    """One recall, checked and bounded. ``now`` makes it a pure function of the corpus (R17)."""

    text: str
    kinds: tuple[Kind, ...]
    mode: Mode
    limit: int
    now: float
    scope: ScopeFilter
    min_score: float | None = None
    since: float | None = None
    until: float | None = None
    trace: bool = False


# --- why it ranked there ----------------------------------------------------------------------------------


class Vote(NamedTuple):
    """One lane's part in a fused score. ``rank`` is 0-based within its source kind; ``native`` is the lane's own score.

    Both are None where the lane did not find the passage and its absence was given a value.
    """

    lane: LaneName
    rank: int | None
    native: float | None
    value: float


class Nudge(NamedTuple):
    """One multiplier on the fused score, with the reason for it (R8)."""

    name: str
    factor: float


class Term(NamedTuple):
    """One addend of a blended score: ``weight`` x ``value`` (R7)."""

    name: str
    weight: float
    value: float


class Candidate(NamedTuple):
    """A passage on its way through the river; each stage appends its reason."""

    id: PassageId
    kind: Kind
    fused: float
    votes: tuple[Vote, ...]
    nudges: tuple[Nudge, ...] = ()
    score: float = 0.0
    found: StoredPassage | None = None
    chunks: int = 1
    """Passages of this document that were found."""
    duplicates: int = 0
    """Near-identical items that were folded into this one."""
    reranked: float | None = None
    """The reranker's calibrated value on 0..1, which stands for ``fused`` in the score; None where it gave none."""
    terms: tuple[Term, ...] = ()
    """What the score is the sum of, where the reranker gave none; empty where it is fused score times nudges."""


# --- what comes back --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SourceCount:
    """Documents of one kind: how many are in the answer, how many at least matched (a floor)."""

    returned: int
    available: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class Degradation:
    """The vector lane was tried and did not answer (R16). ``code`` is stable; ``remedy`` is for a person."""

    code: ModelFault
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts and milliseconds of one recall (R11)."""

    candidates: int = 0
    rerank_window: int = 0
    rerank_candidates: int = 0
    results: int = 0
    embed_ms: float = 0.0
    db_ms: float = 0.0
    retrieval_ms: float = 0.0
    rerank_ms: float = 0.0
    total_ms: float = 0.0
    timings: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds by stage, in their order; they add up to ``total_ms``."""


@dataclass(frozen=True, slots=True)
class Recall:
    """A finished recall: the ranked candidates, and everything a card or a trace is made from."""

    id: str
    query: Query
    candidates: tuple[Candidate, ...]
    rankings: tuple[Ranking, ...]
    mode: Mode
    degradation: Degradation | None
    by_source: Mapping[Kind, SourceCount]
    available: int
    truncated: bool
    stats: Stats
    words: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The query's words as the caller wrote them, each with its index terms: what ``matchedTerms`` is read from."""
    fusion: Mapping[str, str | float] = field(default_factory=dict)
    """The fusion in force, derived from the configuration (R13)."""
    floor: float | None = None
    """The cosine similarity under which vector hits did not enter; None where the lane did not run."""
    aside: Mapping[str, Mapping[str, str | float]] = field(default_factory=dict)
    """``time``, if the query names one: words, since, until. ``rerank``, if one is configured: its model, or reason."""
    fused: tuple[Candidate, ...] = ()
    """The order right after fusion; kept only when a trace was asked for."""
    hint: str | None = None
    """What a caller should do first, where an answer is empty for a reason that is not the question's."""
    pruned: Mapping[str, int] = field(default_factory=dict)
    """How many candidates each stage dropped."""
    confidence: Mapping[PassageId, Confidence] = field(default_factory=dict)
    """How far each candidate is to be trusted (P3)."""
    conflicts: Mapping[str, tuple[Item, ...]] = field(default_factory=dict)
    """By item id, what cannot hold beside it."""
    disk: Mapping[str, str] = field(default_factory=dict)
    """By item id, documents whose file is ``changed`` or ``missing`` since it was indexed."""


# --- where vectors live ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Space:
    """The vector space of an index: vectors of two models are never mixed in one search (R16, T5)."""

    model: str
    """Fingerprint of the model and of how text is prepared for it."""
    dimensions: int
