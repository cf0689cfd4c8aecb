"""The shapes of the tools' structured answers, as JSON Schema. Data only.

Clients check an answer against its schema and refuse it where it does not fit, so a schema names what is always
there and leaves room for the rest. Knows nothing about how an answer is made.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def _of(kind: str, about: str = "") -> Schema:
    return {"type": kind, "description": about} if about else {"type": kind}


def _object(properties: Schema, required: tuple[str, ...] | None = None, about: str = "") -> Schema:
    names = tuple(properties) if required is None else required
    return {**_of("object", about), "properties": properties, "required": list(names)}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _fields(names: str, *, required: str) -> Schema:
    """An object's fields by name: what each holds is told by its name, for all tools are listed within 12 KB."""
    return _object({name: {} for name in names.split()}, tuple(required.split()))


_ANY = _of("object")

_CARD = _fields(
    "id source rank score matchedBy ranks boosts matchedTerms title text heading path lines topic agent session branch "
    "turns quality scope importance pinned state updatedAt confidence conflicts chunks duplicates hidden_chars_removed "
    "external_url size open",
    required="id source rank score text open",
)

RECALL = _object(
    {
        "data": _list(_CARD),
        "meta": _fields(
            "mode degraded degradedReason bySource available truncated scopeFilter empty stats recallId guidance note "
            "trace",
            required="mode degraded available truncated empty recallId",
        ),
    }
)

PROJECT_MEMORY = _object(
    {
        "items": {**_list(_ANY), "description": "Learnings and episodes: text, confidence, open"},
        "scripts": {**_list(_ANY), "description": "Commands that worked: state, changed files, confidence"},
        "sessions": _list(_ANY),
        "meta": _of("object", "mode, degraded, empty, recall_id, guidance"),
    },
    required=("scripts", "sessions", "meta"),
)

REMEMBERED = _fields(
    "id outcome scope importance pinned topic_key superseded conflicts redacted vector", required="id outcome scope"
)

LEARNED = _fields(
    "outcome id reason open scope evidence supported contradicted retired conflicts redacted vector", required="outcome"
)

FORGOTTEN = _fields("action ids others unchanged alike note", required="action ids")

OPENED = _fields(
    "id source title text path topic heading line scope state origin importance pinned createdAt updatedAt attributes "
    "provenance conflicts history earlier offset nextOffset prevOffset size passages neighbours hidden_chars_removed "
    "external_url guidance",
    required="id source text offset size",
)

STATUS = _fields(
    "project projectReason root branch store embedder model problem warnings settings versions usage",
    required="project store embedder",
)
