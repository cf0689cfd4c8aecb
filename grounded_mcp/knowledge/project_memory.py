"""What is known of a project: the scripts that worked there, its recent sessions, and what a question finds (P1-P3).

The search is that of every other recall, with the page's fusion, and confidence in the place of its boosts. Knows
nothing about how an answer is shown, or who asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from grounded_mcp.dossier import INTENTS, Intent, ProjectMemory, VerifiedScript
from grounded_mcp.errors import InputError, NotFound
from grounded_mcp.knowledge.confidence import ConfidenceOptions, Weighed, judge
from grounded_mcp.knowledge.freshness import Freshness
from grounded_mcp.knowledge.standing import changed, conflicts, files_now, script_now, weigh_items
from grounded_mcp.recall.ask import Ask, AskOptions, read
from grounded_mcp.recall.fusion import FusionOptions
from grounded_mcp.recall.gather import Watch
from grounded_mcp.recall.pipeline import Ports, RecallOptions, recall
from grounded_mcp.recall.scope import everything
from grounded_mcp.stores.base import Store
from grounded_mcp.trust import Confidence
from grounded_mcp.values import (
    Candidate,
    Filter,
    Item,
    Nudge,
    PassageId,
    Project,
    Query,
    Recall,
    ScopeFilter,
    StoredPassage,
)


@dataclass(frozen=True, slots=True)
class ProjectMemoryOptions:
    """[project_memory]: how much an answer holds of each. ``fusion``: [project_memory.fusion]."""

    limit: int
    max_limit: int
    scripts: int
    sessions: int
    fusion: FusionOptions


@dataclass(frozen=True, slots=True)
class Grounds:
    """What answers are made from: the store and its lanes, the project's files, and the weights in force."""

    ports: Ports
    freshness: Freshness
    options: ProjectMemoryOptions
    recall: RecallOptions
    confidence: ConfidenceOptions


def question(
    ask: Ask, intent: object, now: float, bounds: AskOptions, options: ProjectMemoryOptions
) -> tuple[Query, Intent] | None:
    """What is searched for and why, or None where nothing is asked: a blank query is none (P2). Raises: InputError."""
    if ask.query is None or (isinstance(ask.query, str) and not ask.query.strip()):
        if intent not in (None, ""):
            raise InputError(
                "intent", "it is only valid with a query.", f"Give a query for it ({_INTENTS}), or neither."
            )
        return None
    mine = replace(bounds, limit=options.limit, max_limit=options.max_limit, mode="hybrid")
    query = replace(read(ask, everything(), now, mine), kinds=("learning",))
    for known in INTENTS:
        if intent == known:
            return query, known
    fault = "it is missing: every query has one." if intent in (None, "") else "it is unknown."
    raise InputError("intent", fault, f"Give one of {_INTENTS}.")


_INTENTS = ", ".join(INTENTS)


def collect(
    project: Project, scope: ScopeFilter, asked: tuple[Query, Intent] | None, grounds: Grounds, now: float, id: str
) -> ProjectMemory:
    """The project's scripts and sessions, and what the question finds. Raises: StoreError.

    A failing model degrades the search and nothing else.
    """
    watch = Watch()
    scripts, available = verified_scripts(scope, grounds, now)
    sessions = grounds.ports.store.recent(Filter(frozenset({"session"}), scope.others), grounds.options.sessions)
    watch.lap("lists")
    memory = ProjectMemory(id, project, now, scripts, available, sessions, watch.ms["lists"])
    if asked is None:
        return memory
    query, intent = asked
    found = search(replace(query, scope=scope), grounds, id)
    stats = found.stats
    spent = replace(stats, db_ms=stats.db_ms + memory.lists_ms, total_ms=stats.total_ms + memory.lists_ms)
    return replace(memory, intent=intent, recall=replace(found, stats=spent))


def verified_scripts(scope: ScopeFilter, grounds: Grounds, now: float) -> tuple[tuple[VerifiedScript, ...], int]:
    """The scripts with the best evidence, of equal ones those seen last; and how many were ever verified.

    Their files are looked at now. What was only ever seen to fail is none of them.
    """
    store, by = grounds.ports.store, grounds.confidence
    where = Filter(frozenset({"script"}), scope.others)
    ids, available = store.proven(where, by.weights, grounds.options.scripts)
    items = tuple(_still_there(ids, store))
    weighed = weigh_items(items, store, by)
    return tuple(script_now(item, grounds.freshness, weighed[item.id], now, by) for item in items), available


def _still_there(ids: Iterable[str], store: Store) -> Iterator[Item]:
    """The items of ids that another process has not deleted meanwhile."""
    for id_ in ids:
        with suppress(NotFound):
            yield store.item(id_)[0]


def search(query: Query, grounds: Grounds, id: str) -> Recall:
    """Learnings and episodes, by both lanes' ranks and then by what stands behind each."""
    held: dict[PassageId, Confidence] = {}

    def weigh(found: Sequence[tuple[Candidate, StoredPassage]]) -> list[Candidate]:
        evidence = weigh_items([passage.item for _, passage in found], grounds.ports.store, grounds.confidence)
        for candidate, passage in found:
            held[candidate.id] = _judged(candidate, passage.item, evidence[passage.item.id], grounds, query.now)
        return [_scored(candidate, passage, held[candidate.id]) for candidate, passage in found]

    lanes = replace(grounds.recall.lanes, fusion=grounds.options.fusion)
    ports = replace(grounds.ports, reranker=None)
    found = recall(query, ports, replace(grounds.recall, lanes=lanes), id, weigh)
    confidence = {each.id: held[each.id] for each in found.candidates}
    return replace(found, confidence=confidence, conflicts=conflicts(found, grounds.ports.store))


def _judged(candidate: Candidate, item: Item, weighed: Weighed, grounds: Grounds, now: float) -> Confidence:
    votes = {vote.lane: vote for vote in candidate.votes if vote.rank is not None}
    near, files = votes.get("vector"), files_now(item, grounds.freshness)
    judged = judge(
        weighed,
        files.values(),
        item.updated_at,
        now,
        grounds.confidence,
        fusion_score=candidate.fused,
        ranks={lane: vote.rank for lane, vote in votes.items() if vote.rank is not None},
        similarity=near.native if near else None,
    )
    return replace(judged, changed=changed(files)) if files else judged


def _scored(candidate: Candidate, passage: StoredPassage, confidence: Confidence) -> Candidate:
    why = confidence.rationale
    factors = {
        "recency": why.recency_score,
        "evidence": why.evidence_boost,
        "script staleness": why.script_staleness_penalty,
        "contradiction": why.contradiction_penalty,
    }
    nudges = tuple([Nudge(name, factor) for name, factor in factors.items() if factor != 1.0])
    return candidate._replace(found=passage, nudges=nudges, score=why.final_score or 0.0)
