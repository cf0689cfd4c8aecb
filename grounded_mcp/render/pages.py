"""Opened pages and the memory's status as a model reads them. Pure.

Like a recall, each answer is one JSON-ready envelope and one compact text that says the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from grounded_mcp.accounts import Status, Usage
from grounded_mcp.foreground import ELSEWHERE
from grounded_mcp.inert import HINT_CHARS, inert, telling, wrap
from grounded_mcp.reading import Opened, Provenance, Seen
from grounded_mcp.render.cards import (
    TITLE_CHARS,
    Envelope,
    compact,
    conflicting,
    conflicts_line,
    field,
    notes,
    quoted,
    rounded,
)
from grounded_mcp.render.recalled import GUIDANCE, MIN_SNIPPET, RenderOptions
from grounded_mcp.render.snippet import cut_around
from grounded_mcp.values import Item
from grounded_mcp.when import iso

MAX_ATTRIBUTES = 24
NOTE_CHARS = 300
"""Characters of a note beside a piece of evidence."""


def opened_envelope(result: Opened, options: RenderOptions | None = None) -> Envelope:
    """One page of an item, its provenance and history; shortened until both halves fit ``max_chars``.

    History and evidence give way first, from their oldest end, as far as they take more than a quarter of the room.
    """
    if options is None:
        return _opened(result, result.text, result.history, result.provenance.evidence)
    history, evidence, text = result.history, result.provenance.evidence, result.text
    while history and len(compact([_replaced(old) for old in history])) > options.max_chars // 4:
        history = history[:-1]
    while evidence and len(compact([_seen(each) for each in evidence])) > options.max_chars // 4:
        evidence = evidence[:-1]
    while True:
        envelope = _opened(result, text, history, evidence)
        longest = max(len(compact(envelope)), len(opened_text(envelope)))
        if longest <= options.max_chars or len(text) <= MIN_SNIPPET:
            return envelope
        # Escapes can make a page several times longer than its text.
        text = text[: max(MIN_SNIPPET, int(len(text) * options.max_chars / longest * 0.95))]


def _opened(result: Opened, text: str, history: Sequence[Item], evidence: Sequence[Seen]) -> Envelope:
    item, known = result.item, result.provenance
    safe = inert(text)
    end = result.offset + len(text)
    replaced = [_replaced(old) for old in history]
    fields: Envelope = {
        "id": field(item.id),
        "source": item.kind,
        "title": field(item.title),
        "text": wrap(safe),
        "path" if item.kind == "doc" else "topic": field(item.key or "") if item.kind != "learning" else "",
        "heading": field(result.heading),
        "line": result.start_line,
        "scope": field(item.scope),
        "state": item.state,
        "on_disk": result.disk,
        "origin": item.origin,
        "importance": rounded(item.importance, 3),
        "pinned": item.pinned or None,
        "createdAt": iso(item.created_at),
        "updatedAt": iso(item.updated_at),
        "attributes": {field(name): field(value) for name, value in sorted(item.attrs.items())[:MAX_ATTRIBUTES]},
        "provenance": _provenance(item, known, evidence),
        **conflicting(known.conflicts),
        "supersededBy": _replaced(known.successor) if known.successor else None,
        "history": replaced,
        "earlier": len(result.history) - len(history) or None,
        "offset": result.offset,
        "nextOffset": end if end < result.size else None,
        "prevOffset": result.prev_offset,
        "size": result.size,
        "passages": result.passages,
        "neighbours": [
            {"open": field(f"{item.id}#{near.seq}"), "heading": field(near.heading, TITLE_CHARS)}
            for near in result.neighbours
        ],
        **notes(safe),
        "guidance": telling(GUIDANCE, (safe.text, *(old["text"] for old in replaced))),
    }
    return {name: value for name, value in fields.items() if value not in (None, [], {}, "")}


_WHY = {
    "stated": "stated {created}",
    "doc": "read from {path}",
    "session": "imported from a conversation of {agent}",
    "script": "seen to run, first {created}",
    "episode": "one attempt in a conversation of {agent}",
    "digest": "made from the conversations of a week",
}
"""How an item came to be known: by what it is, where nobody stated it."""


def _provenance(item: Item, known: Provenance, evidence: Sequence[Seen]) -> Envelope:
    """Why this is known, in a sentence, with pointers to what it was made from and the newest evidence."""
    why = _WHY.get("stated" if item.origin == "stated" else item.kind, "derived {created}").format(
        created=iso(item.created_at), path=field(item.key or ""), agent=field(item.attrs.get("agent", "an agent"))
    )
    branch = [f"on branch {field(item.attrs['branch'])}"] if item.attrs.get("branch") else []
    counted = [f"evidence: {known.supports} for it, {known.against} against"]
    fields: Envelope = {
        "why": ", ".join([why, *branch, *(counted if known.supports or known.against else ())]),
        "sources": [field(each) for each in known.sources],
        "evidence": [_seen(each) for each in evidence],
        "moreEvidence": known.supports + known.against - len(evidence) or None,
    }
    return {name: value for name, value in fields.items() if value not in (None, [])}


def _seen(seen: Seen) -> Envelope:
    piece, note = seen.evidence, seen.evidence.note
    fields: Envelope = {
        "says": f"{'supports' if piece.supports else 'contradicts'} ({piece.kind})",
        "at": iso(piece.at),
        "agent": field(seen.agent),
        "open": field(seen.pointer),
        "note": wrap(inert(cut_around(note, (), NOTE_CHARS))) if note else None,
    }
    return {name: value for name, value in fields.items() if value}


def _replaced(old: Item) -> Envelope:
    return {
        "id": field(old.id),
        "state": old.state,
        "updatedAt": iso(old.updated_at),
        "text": wrap(inert(cut_around(old.body or old.title, (), 200))),
    }


def opened_text(envelope: Envelope) -> str:
    """The page for a client that shows only text."""
    inside = {"text", "supersededBy", "history", "attributes", "guidance", "neighbours", "provenance", "conflicts"}
    lines = [" | ".join(f"{name} {quoted(value)}" for name, value in envelope.items() if name not in inside)]
    if "attributes" in envelope:
        lines.append(" | ".join(f"{name} {quoted(value)}" for name, value in envelope["attributes"].items()))
    if "neighbours" in envelope:
        lines.append("neighbours " + " | ".join(quoted(f"{n['open']} {n['heading']}") for n in envelope["neighbours"]))
    lines += [envelope["guidance"], envelope["text"], *_known(envelope["provenance"])]
    if "conflicts" in envelope:
        lines.append(f"conflicts with {conflicts_line(envelope)}")
    if "supersededBy" in envelope:
        lines.append(f"superseded by {_named(envelope['supersededBy'])}")
    lines += [f"replaced {_named(old)}" for old in envelope.get("history", ())]
    return "\n".join(lines)


def _named(other: Envelope) -> str:
    return f"{other['id']} ({other['state']}, {other['updatedAt']}): {other['text']}"


def _known(provenance: Envelope) -> Iterator[str]:
    yield f"why: {provenance['why']}"
    if "sources" in provenance:
        yield f"sources: {', '.join(provenance['sources'])}"
    for each in provenance.get("evidence", ()):
        parts = [each["says"], each["at"], each.get("agent", ""), f"open {each['open']}" if "open" in each else ""]
        yield "evidence: " + " | ".join(filter(None, [*parts, each.get("note", "")]))
    if "moreEvidence" in provenance:
        yield f"and {provenance['moreEvidence']} more"


def status_envelope(status: Status) -> Envelope:
    """The memory's account of itself. ``problem`` says what is wrong and what to do about it. ``here``: how many items,
    and of which kinds, a recall in this project admits of what is stored. What a token is not told is left out."""
    store, project = status.store, status.project
    fields: Envelope = {
        "project": field(project.key),
        "projectReason": field(project.reason),
        "root": field(project.root) if project.root != ELSEWHERE else "",
        "branch": field(project.branch or ""),
        "here": {"items": sum(status.here.values()), **status.here},
        "store": {
            **({"location": field(store.location), "bytes": store.bytes} if store.location else {}),
            "engine": store.engine,
            "schema": store.schema,
            "items": dict(store.items),
            "passages": store.passages,
            "vectors": dict(store.vectors),
            "model": field(store.space.model) if store.space else None,
            "dimensions": store.space.dimensions if store.space else None,
        },
        "embedder": status.embedder,
        "model": field(status.model or ""),
        "problem": field(status.problem or ""),
        "warnings": [field(warning, HINT_CHARS) for warning in store.warnings],
        "settings": [field(source) for source in status.sources],
        "versions": dict(store.versions),
        "usage": _usage(status.usage) if status.usage else None,
    }
    return {name: value for name, value in fields.items() if value not in (None, [], {}, "")}


def _usage(usage: Usage) -> Envelope:
    """Counts of the last days. ``reuse``: client sessions that called for the project's memory and reported reuse."""
    return {
        "days": usage.days,
        "recalls": usage.recalls,
        "degraded": usage.degraded,
        "p50Ms": rounded(usage.p50_ms, 1),
        "p95Ms": rounded(usage.p95_ms, 1),
        "opened": usage.opened,
        "sessions": usage.sessions,
        "called": usage.called,
        "reused": usage.reused,
        "reuseRate": rounded(usage.reused / usage.sessions, 3) if usage.sessions else None,
        "dropped": usage.dropped or None,
    }


def status_text(envelope: Envelope) -> str:
    lines = []
    for name, value in envelope.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key} {_flat(part)}" for key, part in value.items() if part is not None)
        lines.append(f"{name}: {_flat(value)}")
    return "\n".join(lines)


def _flat(value: object) -> str:
    if isinstance(value, Mapping):
        return "(" + ", ".join(f"{key} {part}" for key, part in value.items()) + ")"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
