"""What a write did, as a model reads it: stored facts, recorded learnings, what was forgotten. Pure.

Like a recall, each answer is one JSON-ready envelope and one compact text that says the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from grounded_mcp.outcomes import Forgotten, Learned, Remembered
from grounded_mcp.render.cards import Envelope, conflicting, conflicts_line, field, quoted, rounded

DELETED: Final = "Deleted for good, from every index and the files; importing the source again does not bring it back."
RETIRED: Final = "No recall finds it any more; open_memory still shows it, with the reason."
MAX_IDS: Final = 40
"""Ids of one list that are named."""


def remembered_envelope(result: Remembered) -> Envelope:
    """What happened to a fact: stored, updated or unchanged, what it replaced, what it conflicts with."""
    item = result.item
    fields: Envelope = {
        "id": field(item.id),
        "outcome": result.outcome,
        "scope": field(item.scope),
        "importance": rounded(item.importance, 3),
        "pinned": item.pinned,
        "topic_key": field(item.key) if item.key else None,
        "superseded": [field(old) for old in result.superseded],
        **conflicting(result.conflicts),
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
    return " | ".join([*parts, *_common(envelope)])


def learned_envelope(result: Learned) -> Envelope:
    """What became of a claim: stored, merged into the learning that says the same, or rejected and why."""
    item = result.item
    fields: Envelope = {
        "id": field(item.id) if item else None,
        "outcome": result.outcome,
        "reason": result.reason,
        "open": field(result.pointer),
        "scope": field(item.scope) if item else None,
        "evidence": {"supports": result.support_count, "contradicts": result.contradiction_count} if item else None,
        "supported": _ids(result.supported),
        "contradicted": _ids(result.contradicted),
        "retired": _ids(result.retired),
        "scripts": _ids(result.scripts),
        **conflicting(result.conflicts),
        "redacted": dict(result.redactions),
        "vector": result.vector if item else None,
    }
    return {name: value for name, value in fields.items() if value not in (None, [], {}, "")}


def learned_text(envelope: Envelope) -> str:
    if envelope["outcome"] == "rejected":
        found = [f"open {envelope['open']}"] if "open" in envelope else []
        return " | ".join([f"rejected: {envelope['reason']}", *found, *_common(envelope)])
    evidence = envelope["evidence"]
    parts = [f"{envelope['outcome']}: {envelope['id']}", f"scope {quoted(envelope['scope'])}"]
    parts.append(f"evidence: supports {evidence['supports']}, contradicts {evidence['contradicts']}")
    named = ("supported", "contradicted", "retired", "scripts")
    parts += [f"{name} {', '.join(envelope[name])}" for name in named if name in envelope]
    return " | ".join([*parts, *_common(envelope)])


def forgotten_envelope(result: Forgotten) -> Envelope:
    """What was deleted or retired, and what went with it or is left."""
    fields: Envelope = {
        "action": result.action,
        "ids": _ids(tuple(item.id for item in result.items)),
        "others": _ids(result.others),
        "unchanged": _ids(result.unchanged),
        "alike": _ids(result.alike),
        "note": DELETED if result.action == "delete" else RETIRED,
    }
    return {name: value for name, value in fields.items() if value or name == "ids"}


def forgotten_text(envelope: Envelope) -> str:
    told = {"others": "with them", "unchanged": "retired before", "alike": "still there, saying the same"}
    parts = [f"{envelope['action']}: {', '.join(envelope['ids']) or 'nothing'}"]
    parts += [f"{words}: {', '.join(envelope[name])}" for name, words in told.items() if name in envelope]
    return " | ".join([*parts, envelope["note"]])


def _ids(ids: tuple[str, ...]) -> list[str]:
    named = [field(each) for each in ids[:MAX_IDS]]
    return [*named, f"and {len(ids) - MAX_IDS} more"] if len(ids) > MAX_IDS else named


def _common(envelope: Envelope) -> Iterator[str]:
    if "conflicts" in envelope:
        yield f"conflicts with {conflicts_line(envelope)}"
    if "redacted" in envelope:
        yield "redacted " + ", ".join(f"{kind} {count}" for kind, count in envelope["redacted"].items())
    if "vector" in envelope:
        yield f"vector {envelope['vector']}"
