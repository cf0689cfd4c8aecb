"""Opened pages, stored facts and the memory's status as a model reads them. Pure.

Like a recall, each answer is one JSON-ready envelope and one compact text that says the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grounded_mcp.inert import inert, wrap
from grounded_mcp.reading import Opened
from grounded_mcp.render.cards import TITLE_CHARS, Envelope, compact, field, notes, quoted, rounded
from grounded_mcp.render.recalled import GUIDANCE, MIN_SNIPPET, RenderOptions
from grounded_mcp.render.snippet import cut_around
from grounded_mcp.values import Item, Remembered, Status
from grounded_mcp.when import iso

MAX_ATTRIBUTES = 24


def remembered_envelope(result: Remembered) -> Envelope:
    """What happened to a fact: stored, updated or unchanged, what it replaced, what was redacted."""
    item = result.item
    fields: Envelope = {
        "id": field(item.id),
        "outcome": result.outcome,
        "scope": field(item.scope),
        "importance": rounded(item.importance, 3),
        "pinned": item.pinned,
        "topic_key": field(item.key) if item.key else None,
        "superseded": [field(old) for old in result.superseded],
        "redacted": dict(result.redactions),
        "vector": result.vector,
    }
    return {name: value for name, value in fields.items() if value not in (None, [], {})}


def remembered_text(envelope: Envelope) -> str:
    parts = [f"{envelope['outcome']}: {envelope['id']}", f"scope {quoted(envelope['scope'])}"]
    if "importance" in envelope:
        parts.append(f"importance {envelope['importance']}")
    if envelope["pinned"]:
        parts.append("pinned")
    if "topic_key" in envelope:
        parts.append(f"topic {quoted(envelope['topic_key'])}")
    if "superseded" in envelope:
        parts.append(f"replaces {', '.join(envelope['superseded'])}")
    if "redacted" in envelope:
        parts.append("redacted " + ", ".join(f"{kind} {count}" for kind, count in envelope["redacted"].items()))
    parts.append(f"vector {envelope['vector']}")
    return " | ".join(parts)


def opened_envelope(result: Opened, options: RenderOptions | None = None) -> Envelope:
    """One page of an item, its provenance and history; shortened until both halves fit ``max_chars``.

    History gives way first, from its oldest end, as far as it takes more than a quarter of the room.
    """
    if options is None:
        return _opened(result, result.text, result.history)
    history, text = result.history, result.text
    while history and len(compact([_replaced(old) for old in history])) > options.max_chars // 4:
        history = history[:-1]
    while True:
        envelope = _opened(result, text, history)
        longest = max(len(compact(envelope)), len(opened_text(envelope)))
        if longest <= options.max_chars or len(text) <= MIN_SNIPPET:
            return envelope
        # Escapes can make a page several times longer than its text.
        text = text[: max(MIN_SNIPPET, int(len(text) * options.max_chars / longest * 0.95))]


def _opened(result: Opened, text: str, history: Sequence[Item]) -> Envelope:
    item = result.item
    safe = inert(text)
    end = result.offset + len(text)
    fields: Envelope = {
        "id": field(item.id),
        "source": item.kind,
        "title": field(item.title),
        "text": wrap(safe),
        "path" if item.kind == "doc" else "topic": field(item.key or ""),
        "heading": field(result.heading),
        "line": result.start_line,
        "scope": field(item.scope),
        "state": item.state,
        "origin": item.origin,
        "importance": rounded(item.importance, 3),
        "pinned": item.pinned or None,
        "createdAt": iso(item.created_at),
        "updatedAt": iso(item.updated_at),
        "attributes": {field(name): field(value) for name, value in sorted(item.attrs.items())[:MAX_ATTRIBUTES]},
        "history": [_replaced(old) for old in history],
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
        "guidance": GUIDANCE,
    }
    return {name: value for name, value in fields.items() if value not in (None, [], {}, "")}


def _replaced(old: Item) -> Envelope:
    return {
        "id": field(old.id),
        "state": old.state,
        "updatedAt": iso(old.updated_at),
        "text": wrap(inert(cut_around(old.body or old.title, (), 200))),
    }


def opened_text(envelope: Envelope) -> str:
    """The page for a client that shows only text."""
    inside = {"text", "history", "attributes", "guidance", "neighbours"}
    lines = [" | ".join(f"{name} {quoted(value)}" for name, value in envelope.items() if name not in inside)]
    if "attributes" in envelope:
        lines.append(" | ".join(f"{name} {quoted(value)}" for name, value in envelope["attributes"].items()))
    if "neighbours" in envelope:
        lines.append("neighbours " + " | ".join(quoted(f"{n['open']} {n['heading']}") for n in envelope["neighbours"]))
    lines += [envelope["guidance"], envelope["text"]]
    for old in envelope.get("history", ()):
        lines.append(f"replaced {old['id']} ({old['state']}, {old['updatedAt']}): {old['text']}")
    return "\n".join(lines)


def status_envelope(status: Status) -> Envelope:
    """The memory's account of itself. ``problem`` says what is wrong and what to do about it."""
    store, project = status.store, status.project
    fields: Envelope = {
        "project": field(project.key),
        "projectReason": field(project.reason),
        "root": field(project.root),
        "branch": field(project.branch or ""),
        "store": {
            "location": field(store.location),
            "engine": store.engine,
            "schema": store.schema,
            "bytes": store.bytes,
            "items": dict(store.items),
            "passages": store.passages,
            "vectors": dict(store.vectors),
            "model": field(store.space.model) if store.space else None,
            "dimensions": store.space.dimensions if store.space else None,
        },
        "embedder": status.embedder,
        "model": field(status.model or ""),
        "problem": field(status.problem or ""),
        "warnings": [field(warning) for warning in store.warnings],
        "settings": [field(source) for source in status.sources],
        "versions": dict(store.versions),
    }
    return {name: value for name, value in fields.items() if value not in (None, [], {}, "")}


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
