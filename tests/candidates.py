"""Queries, found passages and candidates to rank and to render, with the reference page's numbers as options."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from grounded_mcp.recall.pressure import BoostOptions, press
from grounded_mcp.recall.scope import everything
from grounded_mcp.recall.shape import ShapeOptions
from grounded_mcp.render import RenderOptions
from grounded_mcp.values import (
    Candidate,
    Clean,
    Item,
    Kind,
    Passage,
    PassageId,
    Query,
    Recall,
    ScopeFilter,
    SourceCount,
    Stats,
    StoredPassage,
    Vote,
)

BOOSTS = BoostOptions(
    fact_importance=1.5,
    pinned=1.0,
    session_decay=0.5,
    session_decay_alone=1.0,
    session_least=0.1,
    session_archived=0.7,
    session_half_life_days=30.0,
    doc_active=1.25,
    scope_match=1.5,
    scope_mismatch=0.8,
    scope_specific=1.0,
    scope_neutral=1.0,
)
SHAPE = ShapeOptions(
    fact_share=0.25,
    session_share=0.5,
    doc_share=1.0,
    tie_break_order=("doc", "fact", "session"),
    fold_extra_words=2,
)
RENDER = RenderOptions(snippet_chars=400, max_chars=10_000, page_chars=6_000)
NOW = 1_790_000_000.0
DAY = 86_400.0
KINDS: tuple[Kind, ...] = ("fact", "session", "doc")


def query(text: str = "how do tests run", **given: Any) -> Query:
    given = {"kinds": KINDS, "mode": "hybrid", "limit": 20, "now": NOW, "scope": everything(), **given}
    return Query(text=text, **given)


def declaring(project: str, *, source: Any = "project") -> ScopeFilter:
    """The filter of a caller who names a project, by its scope."""
    return ScopeFilter(frozenset({"global", project}), frozenset({"global", project}), source, project)


def item(kind: Kind, id: str, **given: Any) -> Item:
    return Item(**{"id": id, "kind": kind, "scope": "global", "title": Clean(id), "updated_at": NOW, **given})


def candidate(
    kind: Kind = "fact",
    id: str = "fact_1",
    *,
    body: str = "a body",
    score: float = 0.5,
    seq: int = 0,
    passages: int = 1,
    passage_id: int = 1,
    votes: tuple[Vote, ...] = (Vote("lexical", 0, 7.0, 0.5),),
    tokens: str = "",
    heading: str = "",
    lines: tuple[int, int] | None = None,
    **fields: Any,
) -> Candidate:
    """A fetched candidate. ``fields`` go to its item."""
    start, end = lines or (None, None)
    passage = Passage(seq, Clean(body), heading, start, end)
    stored = StoredPassage(PassageId(passage_id), passage, item(kind, id, **fields), passages, len(body), tokens)
    return Candidate(PassageId(passage_id), kind, score, votes, score=score, found=stored)


def press_again(one: Candidate, asked: Query, boosts: BoostOptions) -> Candidate:
    """A fetched candidate under pressure."""
    assert one.found is not None
    return press(one, one.found, asked, boosts)


def pressed(kind: Kind, text: str = "how do tests run", within: ScopeFilter | None = None, **fields: Any) -> Candidate:
    """A candidate of fused score 1 after pressure with those boosts."""
    asked = query(text, scope=within or everything())
    return press_again(candidate(kind, score=1.0, **fields), asked, BOOSTS)


def recall(*candidates: Candidate, available: int | None = None, **given: Any) -> Recall:
    """A finished recall over ``candidates``, best first; ``given`` replaces fields, ``query_`` the query's."""
    asked = {name.removeprefix("query_"): given.pop(name) for name in tuple(given) if name.startswith("query_")}
    counts: dict[Kind, SourceCount] = {}
    for kind in KINDS:
        count = sum(each.kind == kind for each in candidates)
        counts[kind] = SourceCount(count, count, truncated=False)
    made = Recall(
        id="r0123456789abcde",
        query=query(**asked),
        candidates=candidates,
        rankings=(),
        mode="hybrid",
        degradation=None,
        by_source=counts,
        available=len(candidates) if available is None else available,
        truncated=available is not None and available > len(candidates),
        stats=Stats(candidates=len(candidates), results=len(candidates), total_ms=4.25),
    )
    return replace(made, **given)
