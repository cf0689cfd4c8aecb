"""Answers for a person at a terminal: cleaned of control characters, not escaped. Pure.

Knows nothing about arguments or processes; every function turns a value into text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from grounded_mcp.accounts import Status, Usage
from grounded_mcp.inert import printable
from grounded_mcp.ingest.compact import CompactReport
from grounded_mcp.ingest.documents import SyncReport
from grounded_mcp.ingest.sessions import SessionReport
from grounded_mcp.ingest.vectors import BackfillReport
from grounded_mcp.outcomes import Forgotten, Learned, Remembered
from grounded_mcp.reading import Opened
from grounded_mcp.render import EMPTY, NO_WORDS, cut_around, matched_terms
from grounded_mcp.values import Candidate, PassageId, Recall
from grounded_mcp.when import iso

EXPLAINED = 10
"""Entries of each arm and of the fused order that an explanation shows."""


def plain(text: str) -> str:
    """A stored text as a terminal may show it."""
    return printable(text)[0]


def one_line(text: str) -> str:
    return " ".join(plain(text).split())


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def recalled(recall: Recall, *, snippet: int = 300) -> str:
    """The ranked list. ``snippet``: characters of each text."""
    lines = [_summary(recall)]
    if not recall.candidates:
        lines.append(one_line(recall.hint) if recall.hint else EMPTY if recall.words else NO_WORDS)
    for rank, candidate in enumerate(recall.candidates, 1):
        lines += ["", *_card(rank, candidate, recall, snippet)]
    return "\n".join(lines)


def explained(recall: Recall) -> str:
    """Why the list is as it is, as tables: votes and nudges, arms with their best hits, fused order, what was pruned.

    Holds no stored text, so that it may follow either layout of a recall.
    """
    lines = [
        "fusion: " + ", ".join(f"{name} {value}" for name, value in recall.fusion.items()),
        "terms: " + one_line(", ".join(term for _, terms in recall.words for term in terms)),
        f"vector floor: {'none, the lane did not run' if recall.floor is None else recall.floor}",
        *_named_time(recall),
        *_rerank(recall),
    ]
    for rank, candidate in enumerate(recall.candidates, 1):
        lines += ["", f"{rank:>2}. {_pointer(candidate)}", *_indented(_why(candidate))]
    for title, head, rows in _stages(recall):
        lines += ["", title, *_indented(table(head, rows))]
    return "\n".join(lines)


def _named_time(recall: Recall) -> list[str]:
    named = recall.aside.get("time")
    if named is None:
        return []
    bounds = [(name, float(named[name])) for name in ("since", "until")]
    shown = ", ".join(f"{name} {iso(at)}" for name, at in bounds if math.isfinite(at))
    return [f"time: {one_line(str(named['words']))}: {shown}"]


def _rerank(recall: Recall) -> list[str]:
    """What the reranker did, where one is configured."""
    stats, said = recall.stats, recall.aside.get("rerank")
    if said is None:
        return []
    told = "".join(f", {name} {one_line(str(value))}" for name, value in said.items())
    return [f"rerank: {stats.rerank_candidates} of at most {stats.rerank_window} in {stats.rerank_ms:.1f} ms{told}"]


def _summary(recall: Recall) -> str:
    counts = ", ".join(f"{n.returned} of {n.available} {kind}" for kind, n in recall.by_source.items() if n.available)
    head = f"{recall.mode} · {counts or 'nothing found'} · {recall.stats.total_ms:.0f} ms"
    if recall.degradation is None:
        return head
    return f"{head}\nDegraded: {one_line(f'{recall.degradation.reason} {recall.degradation.remedy}')}"


def _card(rank: int, candidate: Candidate, recall: Recall, snippet: int) -> list[str]:
    found = candidate.found
    if found is None:
        return []
    item, passage = found.item, found.passage
    words = matched_terms(recall, found)
    where = item.key if item.kind == "doc" and item.key else item.title
    lines = f":{passage.start_line}-{passage.end_line}" if passage.start_line and item.kind == "doc" else ""
    marks = [one_line(item.attrs.get("agent", "")), iso(item.updated_at)] if item.kind == "session" else []
    marks += ["pinned"] if item.pinned else []
    marks += [item.state] if item.state != "active" else []
    marks += [f"{disk} on disk"] if (disk := recall.disk.get(item.id)) else []
    marks += [f"{candidate.chunks} passages"] if candidate.chunks > 1 else []
    head = [
        f"{rank:>2}. {candidate.score:.3f}  {item.kind}  {one_line(where)}{lines}",
        one_line(passage.heading),
        *marks,
    ]
    body = plain(cut_around(passage.body, words, snippet)).splitlines()
    lanes = " + ".join(f"{v.lane} #{v.rank}" for v in candidate.votes if v.rank is not None)
    why = f"{lanes}" + (f" · matched {', '.join(one_line(w) for w in words)}" if words else "")
    return ["  ".join(filter(None, head)), *(f"    {line}" for line in body), f"    {why} · open {_pointer(candidate)}"]


def _why(candidate: Candidate) -> list[str]:
    rows: list[Sequence[str]] = [
        (vote.lane, "-" if vote.rank is None else f"#{vote.rank}", _number(vote.native), f"{vote.value:+.6f}")
        for vote in candidate.votes
    ]
    rows += [("fused", "", "", f"{candidate.fused:.6f}")]
    rows += [("reranked", "", "", f"{candidate.reranked:.6f}")] if candidate.reranked is not None else []
    rows += [(term.name, "", _number(term.value), f"{term.weight * term.value:+.6f}") for term in candidate.terms]
    rows += [(nudge.name, "", "", f"x{nudge.factor:.4f}") for nudge in candidate.nudges]
    rows += [("score", "", "", f"{candidate.score:.6f}")]
    return table(("reason", "rank", "native", "value"), rows)


_Table = tuple[str, Sequence[str], Iterable[Sequence[str]]]


def _stages(recall: Recall) -> Iterator[_Table]:
    """What every stage did, in order; of each arm and of the fused order the best ``EXPLAINED`` entries."""
    names = {candidate.id: _pointer(candidate) for candidate in recall.candidates}

    def named(passage: PassageId) -> str:
        return names.get(passage, f"passage {passage}")

    arms = [(r.lane, r.kind, str(len(r.hits)), str(r.below)) for r in recall.rankings]
    yield "arms", ("lane", "source", "hits", "below the floor"), arms
    hits = [
        (ranking.lane, ranking.kind, f"#{rank}", _number(hit.score), named(hit.passage))
        for ranking in recall.rankings
        for rank, hit in enumerate(ranking.hits[:EXPLAINED])
    ]
    yield "their best hits", ("lane", "source", "rank", "native", "what"), hits
    fused = [(f"#{rank}", f"{c.fused:.6f}", named(c.id)) for rank, c in enumerate(recall.fused[:EXPLAINED])]
    yield "after fusion", ("rank", "fused", "what"), fused
    yield "pruned", ("stage", "dropped"), [(stage, str(count)) for stage, count in recall.pruned.items()]
    yield "time", ("stage", "ms"), [(stage, f"{ms:.2f}") for stage, ms in recall.stats.timings.items()]


def _pointer(candidate: Candidate) -> str:
    if candidate.found is None:
        return f"passage {candidate.id}"
    item, seq = candidate.found.item, candidate.found.passage.seq
    return one_line(f"{item.id}#{seq}" if seq else item.id)


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"      {line}" for line in lines]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def synced(documents: SyncReport | None, sessions: SessionReport | None, vectors: BackfillReport | None) -> str:
    """What a sync saw, kept and skipped, and why."""
    lines = [*(_documents(documents) if documents else ()), *(_sessions(sessions) if sessions else ())]
    if vectors is not None:
        lines.append(
            f"{counted(vectors.embedded, 'passage')} embedded in {vectors.seconds:.1f} s, {vectors.left} left."
        )
        if vectors.reason:
            lines.append(f"  {one_line(vectors.reason)}")
    return "\n".join(lines)


def _sessions(report: SessionReport) -> list[str]:
    """Of each agent that has any transcripts: what was found, what came of it, and what was left out."""
    if report.busy:
        return ["Another process is importing sessions; nothing was imported."]
    if not report.agents:
        return ["no sessions of coding agents found."]
    lines = []
    for agent, each in report.agents.items():
        parts = {
            "read": each.read,
            "unchanged": each.unchanged,
            "of other projects": each.elsewhere,
            "unreadable": each.failed,
        }
        shown = ", ".join(f"{count} {name}" for name, count in parts.items() if count)
        made = f"; {counted(each.sessions, 'session')}, {counted(each.exchanges, 'exchange')}" if each.sessions else ""
        lines.append(f"{agent}: {counted(each.found, 'transcript')}: {shown}{made}.")
        for reason, count in sorted(each.skipped.items(), key=lambda pair: -pair[1]):
            where = ", ".join(one_line(place) for place in each.examples.get(reason, ()))
            lines.append(
                f"  skipped {count:,} of {each.records:,} records: {reason}" + (f" ({where})" if where else "")
            )
        lines += [f"  unreadable: {one_line(problem)}" for problem in each.problems]
        others = {"already in another session": each.copies, "not checked for secrets": each.unchecked}
        lines += [f"  left out: {count:,} {reason}" for reason, count in others.items() if count]
        if each.redactions:
            lines.append("  redacted: " + ", ".join(f"{kind} {n}" for kind, n in sorted(each.redactions.items())))
    return lines


def _documents(report: SyncReport) -> list[str]:
    if report.busy:
        return ["Another process is syncing this project; nothing was done."]
    changes = {
        "added": report.added,
        "updated": report.updated,
        "unchanged": report.unchanged,
        "missing": report.missing,
        "dropped": report.dropped,
    }
    changed = ", ".join(f"{count} {name}" for name, count in changes.items() if count) or "nothing kept"
    seen, passages = counted(report.seen, "path"), counted(report.passages, "passage")
    lines = [f"{seen} seen in {report.seconds:.1f} s: {changed}; {passages}."]
    for reason, count in sorted(report.skipped.items(), key=lambda pair: -pair[1]):
        examples = ", ".join(one_line(path) for path in report.examples.get(reason, ()))
        lines.append(f"  skipped {count}: {reason}" + (f" ({examples})" if examples else ""))
    if report.redactions:
        lines.append("  redacted: " + ", ".join(f"{kind} {n}" for kind, n in sorted(report.redactions.items())))
    return lines


def remembered(result: Remembered) -> str:
    lines = [f"{result.outcome}: {result.item.id} ({one_line(result.item.scope)})"]
    if result.superseded:
        lines.append(f"  replaces {one_line(', '.join(result.superseded))}")
    return "\n".join([*lines, *_after_writing(result)])


def learned(result: Learned) -> str:
    """What became of a claim, and of what it speaks to."""
    item = result.item
    if item is None:
        found = f" Open {one_line(result.pointer)}." if result.pointer else ""
        return f"rejected: {result.reason}{found}"
    pieces = f"{result.support_count} for it, {result.contradiction_count} against"
    lines = [f"{result.outcome}: {item.id} ({one_line(item.scope)}); evidence: {pieces}"]
    named = {"supports": result.supported, "contradicts": result.contradicted, "retires": result.retired}
    named["verifies"] = result.scripts
    lines += [f"  {name} {one_line(', '.join(ids))}" for name, ids in named.items() if ids]
    return "\n".join([*lines, *_after_writing(result)])


def _after_writing(result: Remembered | Learned) -> Iterator[str]:
    for other in result.conflicts:
        yield f"  conflicts with {one_line(other.id)}: {one_line(other.title)}"
    if result.redactions:
        yield "  redacted: " + ", ".join(f"{kind} {n}" for kind, n in sorted(result.redactions.items()))
    if result.vector == "pending":
        yield "  words find it now, meaning once its vector is there"


def forgotten(result: Forgotten) -> str:
    done = {"delete": "forgotten", "retire": "retired"}[result.action]
    lines = [f"{done}: {item.id} ({item.kind}, {one_line(item.scope)})" for item in result.items]
    lines += [f"retired before: {one_line(each)}" for each in result.unchanged]
    if result.others:
        lines.append(f"with {counted(len(result.others), 'other item')}: {one_line(', '.join(result.others))}")
    if result.alike:
        lines.append(f"still there, saying the same: {one_line(', '.join(result.alike))}")
    if result.action == "delete" and any(item.kind == "doc" for item in result.items):
        lines.append(
            "Its file is left alone, and is indexed again once its text changes; until then no sync brings it back."
        )
    return "\n".join(lines)


def compacted(report: CompactReport) -> str:
    """How many sessions went into the archive, and what became of the digests."""
    if report.busy:
        return "Another process is importing or archiving sessions; nothing was done."
    digests = {"written": report.written, "unchanged": report.unchanged, "deleted": report.deleted}
    shown = ", ".join(f"{count:,} {name}" for name, count in digests.items() if count) or "none"
    weeks = f" ({', '.join(report.weeks)})" if report.weeks else ""
    return f"{counted(report.archived, 'session')} archived; weekly digests: {shown}{weeks}."


def opened(result: Opened) -> str:
    """The text, with where it came from above and how to go on below."""
    item = result.item
    where = [item.kind, one_line(item.key or item.title), one_line(result.heading), one_line(item.scope), item.state]
    where += [f"{result.disk} on disk"] if result.disk else []
    lines = ["  ".join(filter(None, [*where, iso(item.updated_at)])), "", plain(result.text)]
    if result.next_offset is not None:
        lines += ["", f"{result.next_offset:,} of {result.size:,} characters; go on with --offset {result.next_offset}"]
    for piece, place, agent in result.provenance.evidence:
        says = "for it" if piece.supports else "against it"
        marks = filter(None, (one_line(agent), one_line(place), one_line(piece.note)))
        lines.append(f"evidence {says} {iso(piece.at)}: {'  '.join([piece.kind, *marks])}")
    lines += [f"from {one_line(each)}" for each in result.provenance.sources]
    lines += [f"conflicts with {one_line(each.id)}: {one_line(each.title)}" for each in result.provenance.conflicts]
    later = result.provenance.successor
    lines += [f"superseded by {one_line(later.id)}: {one_line(later.body or later.title)}"] if later else []
    lines += [f"replaced {iso(old.updated_at)}: {one_line(old.body or old.title)}" for old in result.history]
    return "\n".join(lines)


def status(result: Status) -> str:
    """Project and reason first: that is what a wrong answer usually comes from."""
    info, project = result.store, result.project
    items, here = (
        ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) for counts in (info.items, result.here)
    )
    vectors = ", ".join(f"{count} {state}" for state, count in info.vectors.items() if count) or "none"
    space = f"{info.space.model} ({info.space.dimensions} dimensions)" if info.space else "none yet"
    rows = {
        "project": f"{one_line(project.key)}  (from {one_line(project.reason)})",
        "root": one_line(project.root),
        "store": f"{one_line(info.location)}  ({info.engine}, schema {info.schema}, {info.bytes:,} bytes)",
        "items": items or "empty",
        "here": f"{here or 'none'}  (of these, what a recall in this project searches)",
        "passages": f"{info.passages}; vectors: {vectors}",
        "index": space,
        "embedder": f"{result.embedder}" + (f", {one_line(result.model)}" if result.model else ""),
        "settings": one_line(" < ".join(result.sources)),
        "versions": ", ".join(f"{name} {version}" for name, version in info.versions.items()),
    }
    if result.usage:
        rows["usage"] = _usage(result.usage)
    if project.branch:
        rows["branch"] = one_line(project.branch)
    lines = [f"{name:<9} {value}" for name, value in rows.items()]
    lines += [f"warning   {one_line(warning)}" for warning in info.warnings]
    return "\n".join([*lines, *([f"problem   {one_line(result.problem)}"] if result.problem else [])])


def _usage(usage: Usage) -> str:
    recalls, sessions = counted(usage.recalls, "recall"), counted(usage.sessions, "agent session")
    reuse = f"{usage.reused:,} of {sessions} reported reuse"
    return f"{usage.days:g} days: {recalls}, {usage.degraded:,} degraded; {reuse}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Left-aligned columns as wide as their widest cell."""
    cells = [tuple(head), *(tuple(row) for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
