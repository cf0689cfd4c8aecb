"""A context pack: one search, then every result by what it is, how far it goes and what it is for (C1-C6).

=================  ==============================================================================================
section            what is in it
=================  ==============================================================================================
current_truth      live state, trackers, committed documents, facts and learnings
decisions          where something was decided (``decisions``), of a similarity of at least 0.3
examples           how it is done: tests and examples, attempts that reached their goal; as similar
past_reasoning     conversations and what agents reasoned
discounted         what may be stale
=================  ==============================================================================================

A conversation never stands in ``current_truth``. Knows nothing about budgets, rendering or faces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from grounded_mcp.knowledge.confidence import ConfidenceOptions
from grounded_mcp.knowledge.freshness import Freshness
from grounded_mcp.knowledge.standing import PROVEN, with_standing
from grounded_mcp.pack.decisions import decision
from grounded_mcp.pack.disagree import differing, gone, stated
from grounded_mcp.pack.disk import Disk
from grounded_mcp.pack.levels import TrustOptions, level, matches
from grounded_mcp.pack.pointing import line_of
from grounded_mcp.pack.settled import SettledOptions, settled
from grounded_mcp.packing import SECTIONS, TRUST, Disagreement, Nearest, Pack, PackItem, Read, ReadFirst, Section
from grounded_mcp.recall.fusion import FusionOptions
from grounded_mcp.recall.pipeline import Ports, RecallOptions, recall
from grounded_mcp.values import Candidate, Kind, Query, Recall, StoredPassage

KINDS: tuple[Kind, ...] = ("fact", "learning", "session", "doc")
NEAREST = 3
"""Pointers in an empty pack."""
EXAMPLES = ("tests/**", "test/**", "**/tests/**", "**/test/**", "examples/**", "example/**", "**/examples/**", "test_*")


@dataclass(frozen=True, slots=True)
class PackOptions:
    """[pack] of config.toml. ``fusion``: [pack.fusion]; ``trust``: [pack.trust]; ``settled``: [pack.settled]."""

    max_per_bucket: int
    bucket_cap: int
    pool: int
    read_first: int
    relevance: float
    archive_below: float
    near: float
    fusion: FusionOptions
    trust: TrustOptions
    settled: SettledOptions


@dataclass(frozen=True, slots=True)
class Means:
    """What packs are made with: the lanes, the project's files, and every option in force."""

    ports: Ports
    disk: Disk
    freshness: Freshness
    options: PackOptions
    recall: RecallOptions
    confidence: ConfidenceOptions


def make(query: Query, read: Read, means: Means, id: str, *, per_bucket: int, full: bool) -> Pack:
    """The pack for a task. ``per_bucket``: most items of a section; ``full`` asks for archived sessions, too.

    Raises: StoreError. A failing model degrades the search and nothing else.
    """
    found = _search(query, means, id)
    archive = _archive(found, full, means.options)
    kept = [each for each in found.candidates if archive or not _archived(each)]
    items = [_item(each, found, means) for each in kept]
    if not settled(items, found, means.options.settled, means.ports.analyzer.index):
        left_out, near = _counted(not_near_enough=len(items)), tuple(_nearest(items, found, means))
        return Pack(query.text, read, found, {}, archive=archive, left_out=left_out, nearest=near)
    sections = _sections(items, read, means.options)
    shown = {name: tuple(items[:per_bucket]) for name, items in sections.items() if items}
    chosen = [item for section in shown.values() for item in section]
    beyond = sum(map(len, sections.values())) - len(chosen)
    return Pack(
        query.text,
        read,
        found,
        shown,
        read_first=_read_first(sections, read, found, means),
        disagreements=tuple(_disagreements(chosen, means.disk)),
        archive=archive,
        left_out=_counted(archived=len(found.candidates) - len(kept), beyond_max_per_bucket=beyond),
    )


def _counted(**by: int) -> Mapping[str, int]:
    return {why: count for why, count in by.items() if count}


def _search(query: Query, means: Means, id: str) -> Recall:
    """Every kind, by the page's formula, with words scored by BM25 in each: or scores would not compare. The lanes
    of the page are two; what is near in time adds to them."""
    lanes = replace(means.recall.lanes, fusion=means.options.fusion, scorer="bm25")
    shape = replace(means.recall.shape, fact_share=1.0, session_share=1.0, doc_share=1.0)
    wide = replace(query, kinds=KINDS, limit=means.options.pool)
    found = recall(wide, replace(means.ports, reranker=None), replace(means.recall, lanes=lanes, shape=shape), id)
    return with_standing(found, means.ports.store, means.freshness, means.confidence)


def _archive(found: Recall, full: bool, options: PackOptions) -> str | None:
    """Why the archive is searched (C5), the first reason that holds; None where it is not."""
    first = next((each for each in found.candidates if not _archived(each)), None)
    best = min(first.score, first.fused) if first else 0.0
    reasons = (
        (full, "asked for in full"),
        (found.mode == "lexical", "only words were searched"),
        (best < options.archive_below, f"the best result is under {options.archive_below:g}"),
    )
    return next((reason for holds, reason in reasons if holds), None)


def _archived(candidate: Candidate) -> bool:
    item = _found(candidate).item
    return (item.kind, item.state) == ("session", "archived")


def _found(candidate: Candidate) -> StoredPassage:
    if candidate.found is None:
        raise ValueError("a pack is made of fetched passages")
    return candidate.found


def _item(candidate: Candidate, found: Recall, means: Means) -> PackItem:
    passage = _found(candidate)
    trust, because = level(passage.item, found.confidence.get(candidate.id), means.options.trust)
    disk = means.disk.state(passage.item)
    if disk == "missing":
        trust, because = "discounted", "its file is gone"
    tokens = set(passage.tokens.split())
    matched = sum(not tokens.isdisjoint(terms) for _, terms in found.words)
    return PackItem(candidate, trust, because, matched, len(found.words), candidate.fused, disk)


# --- sections ---------------------------------------------------------------------------------------------


def _sections(items: Sequence[PackItem], read: Read, options: PackOptions) -> Mapping[Section, list[PackItem]]:
    """Items by section, each best first. What is in a section for its trust is not also in one for its use."""
    sections: dict[Section, list[PackItem]] = {name: [] for name in SECTIONS}
    for item in items:
        name, placed = _placed(item, options)
        sections[name].append(placed)
    sections["past_reasoning"] = _without_echoes(sections["past_reasoning"])
    if read.intent == "current_truth":
        sections["current_truth"] = _by_trust(sections["current_truth"], options.near)
    return sections


def _without_echoes(items: Sequence[PackItem]) -> list[PackItem]:
    """Without the attempts of conversations that are there themselves."""
    there = {_found(item.candidate).item.id for item in items}
    return [item for item in items if _found(item.candidate).item.attrs.get("session") not in there]


def _placed(item: PackItem, options: PackOptions) -> tuple[Section, PackItem]:
    """Where an item belongs; a decision or an example that is not relevant enough belongs where its trust puts it."""
    found = _found(item.candidate)
    if item.trust == "discounted":
        return "discounted", item
    if item.similarity >= options.relevance:
        if (made := decision(found)) is not None:
            return "decisions", replace(item, decided=made.at)
        if _is_example(found):
            return "examples", item
    return ("past_reasoning" if item.trust == "discussion" else "current_truth"), item


def _is_example(found: StoredPassage) -> bool:
    item = found.item
    if item.kind == "episode":
        return item.attrs.get("outcome") == PROVEN
    return item.kind == "doc" and item.attrs.get("form") == "live" and matches(item.key or "", EXAMPLES)


def _by_trust(items: Sequence[PackItem], near: float) -> list[PackItem]:
    """Of what scores nearly as well as the best, the most trusted first; then the others as they are."""
    best = max((item.candidate.score for item in items), default=0.0)
    ahead = [item for item in items if item.candidate.score >= near * best]
    others = [item for item in items if item.candidate.score < near * best]
    return sorted(ahead, key=lambda item: TRUST.index(item.trust)) + others


# --- what to read and what to doubt -----------------------------------------------------------------------


def _read_first(
    sections: Mapping[Section, Sequence[PackItem]], read: Read, found: Recall, means: Means
) -> tuple[ReadFirst, ...]:
    """The files that would settle the task: live state, what runs before its tests and examples, then trackers, each by
    score; with none of them, documents. Why something was decided is settled by where it was: those come before."""
    files = [item for name in ("current_truth", "examples", "decisions") for item in sections[name] if item.disk]
    files.sort(key=lambda item: (_is_example(_found(item.candidate)), -item.candidate.score))
    live, trackers, documents = ([item for item in files if item.trust == trust] for trust in TRUST[:3])
    chosen = [*live, *trackers] or documents
    if read.intent == "reasoning_archive":
        decided = [item for item in sections["decisions"] if item.disk][: means.options.max_per_bucket]
        chosen = [*decided, *(item for item in chosen if item not in decided)]
    return tuple(_pointer(item, found, means) for item in chosen[: means.options.read_first])


def _pointer(item: PackItem, found: Recall, means: Means) -> ReadFirst:
    """The line is one that is there: of a file that changed meanwhile, where it is now."""
    passage = _found(item.candidate)
    why = f"{item.trust}, {item.matched}/{item.asked} words"
    line = line_of(passage.passage, found.words, means.ports.analyzer.index)
    number = means.disk.line(passage.item, line, item.disk) if line else None
    return ReadFirst(passage.item.id, passage.item.key or "", number, why, item.disk or "unknown")


def _nearest(items: Sequence[PackItem], found: Recall, means: Means) -> Iterable[Nearest]:
    """Where a person would look next: an item once, without files that are gone."""
    there = {_found(item.candidate).item.id: item for item in reversed(items) if item.disk != "missing"}
    for item in sorted(there.values(), key=lambda item: -item.candidate.score)[:NEAREST]:
        owner, seq = _found(item.candidate).item, _found(item.candidate).passage.seq
        place = _pointer(item, found, means) if owner.kind == "doc" else None
        pointer = f"{owner.id}#{seq}" if seq else owner.id
        yield Nearest(pointer, owner.kind, place.path if place else "", place.line if place else None)


def _disagreements(items: Sequence[PackItem], disk: Disk) -> Iterable[Disagreement]:
    """What documents in the pack say that live files in it, or the project's folder, do not bear out."""
    passages = [(item.trust, _found(item.candidate)) for item in items]
    live = [(each.item.key, stated(each.passage.body)) for trust, each in passages if trust == "live_state"]
    for trust, found in passages:
        if found.item.kind != "doc" or trust not in ("tracker", "committed_doc"):
            continue
        for path in gone(found.passage.body, disk.has):
            yield Disagreement(found.item.id, f"names {path}", "there is no such file")
        for said, held in differing(stated(found.passage.body), [settings for _, settings in live]):
            where = next(path for path, settings in live if settings.get(held.name) == held.value)
            yield Disagreement(found.item.id, f"{said.name} is {said.value}", f"{where} has {held.value}")
