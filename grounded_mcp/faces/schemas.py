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


_STRING, _NUMBER, _INTEGER, _BOOLEAN = _of("string"), _of("number"), _of("integer"), _of("boolean")

_CARD = _object(
    {
        "id": _STRING,
        "source": _of("string", "fact, session or doc"),
        "rank": _INTEGER,
        "score": _NUMBER,
        "matchedBy": _of("string", "lexical, vector or both"),
        "title": _STRING,
        "text": _of("string", "Untrusted snippet in its advisory wrapper"),
        "path": _STRING,
        "lines": _STRING,
        "updatedAt": _STRING,
        "open": _of("string", "Pointer for open_memory"),
    },
    required=("id", "source", "rank", "score", "text", "open"),
)

RECALL = _object(
    {
        "data": _list(_CARD),
        "meta": _object(
            {
                "mode": _STRING,
                "degraded": _BOOLEAN,
                "degradedReason": _STRING,
                "available": _of("integer", "Documents that matched, at least"),
                "truncated": _BOOLEAN,
                "empty": _of("boolean", "The search ran and found nothing"),
                "recallId": _STRING,
                "guidance": _STRING,
                "note": _STRING,
            },
            required=("mode", "degraded", "available", "truncated", "empty", "recallId"),
        ),
    }
)

REMEMBERED = _object(
    {
        "id": _STRING,
        "outcome": _of("string", "stored, updated or unchanged"),
        "scope": _STRING,
        "importance": _NUMBER,
        "pinned": _BOOLEAN,
        "topic_key": _STRING,
        "superseded": _list(_STRING),
        "redacted": _of("object", "Secrets taken out, by kind"),
    },
    required=("id", "outcome", "scope"),
)

OPENED = _object(
    {
        "id": _STRING,
        "source": _STRING,
        "title": _STRING,
        "text": _of("string", "Untrusted page in its advisory wrapper"),
        "state": _STRING,
        "createdAt": _STRING,
        "updatedAt": _STRING,
        "history": _list(_of("object", "What this fact replaced, newest first")),
        "offset": _INTEGER,
        "nextOffset": _of("integer", "Pass as offset for the next page"),
        "size": _of("integer", "Characters of the whole text"),
        "guidance": _STRING,
    },
    required=("id", "source", "text", "offset", "size"),
)

STATUS = _object(
    {
        "project": _STRING,
        "projectReason": _STRING,
        "store": _of("object"),
        "embedder": _of("string", "off, loading, ready or failed"),
        "problem": _of("string", "What is wrong and what to do about it"),
        "warnings": _list(_STRING),
    },
    required=("project", "store", "embedder"),
)
