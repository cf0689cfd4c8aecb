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


def _named(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


_CARD = _object(
    {
        "id": _STRING,
        "source": _of("string", "fact, session or doc"),
        "rank": _INTEGER,
        "score": _NUMBER,
        "matchedBy": _of("string", "lexical, vector, both, graph or temporal"),
        "ranks": _of("object", "Place in each lane, from 0"),
        "boosts": _of("object", "Factors on the score, by reason"),
        "matchedTerms": _list(_STRING),
        "title": _STRING,
        "text": _of("string", "Untrusted snippet in its advisory wrapper"),
        "heading": _STRING,
        "path": _STRING,
        "lines": _STRING,
        "topic": _STRING,
        "agent": _of("string", "Whose session"),
        "session": _of("string", "The agent's own id of it"),
        "branch": _STRING,
        "turns": _of("string", "Turns of the session"),
        "quality": _of("string", "Of the session: high, medium or low"),
        "scope": _STRING,
        "importance": _NUMBER,
        "pinned": _BOOLEAN,
        "state": _STRING,
        "updatedAt": _STRING,
        "chunks": _of("integer", "Passages of it that matched"),
        "duplicates": _of("integer", "Near-identical items folded into it"),
        "hidden_chars_removed": _INTEGER,
        "external_url": _BOOLEAN,
        "size": _of("integer", "Characters of the whole text"),
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
                "bySource": _of("object", "By source: returned, available, truncated"),
                "available": _of("integer", "Documents that matched, at least"),
                "truncated": _BOOLEAN,
                "scopeFilter": _named(
                    **{"applied": _BOOLEAN, "from": _STRING, "facts": _list(_STRING), "others": _list(_STRING)},
                    unnamed=_INTEGER,
                ),
                "empty": _of("boolean", "Nothing was found"),
                "stats": _of("object", "Counts, and milliseconds by their names"),
                "recallId": _STRING,
                "guidance": _STRING,
                "note": _STRING,
                "trace": _of("object", "How every stage ranked and pruned"),
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
        "vector": _of("string", "pending: words find it at once, meaning soon; or off"),
    },
    required=("id", "outcome", "scope"),
)

OPENED = _object(
    {
        "id": _STRING,
        "source": _STRING,
        "title": _STRING,
        "text": _of("string", "Untrusted page in its advisory wrapper"),
        "path": _STRING,
        "topic": _STRING,
        "heading": _STRING,
        "line": _INTEGER,
        "scope": _STRING,
        "state": _STRING,
        "origin": _of("string", "stated or derived"),
        "importance": _NUMBER,
        "pinned": _BOOLEAN,
        "createdAt": _STRING,
        "updatedAt": _STRING,
        "attributes": _of("object"),
        "history": _list(_of("object", "What this fact replaced, newest first")),
        "earlier": _of("integer", "Older ones left out"),
        "offset": _INTEGER,
        "nextOffset": _of("integer", "Pass as offset for the next page"),
        "prevOffset": _INTEGER,
        "size": _of("integer", "Characters of the whole text"),
        "passages": _INTEGER,
        "neighbours": _list(_named(open=_STRING, heading=_STRING)),
        "hidden_chars_removed": _INTEGER,
        "external_url": _BOOLEAN,
        "guidance": _STRING,
    },
    required=("id", "source", "text", "offset", "size"),
)

STATUS = _object(
    {
        "project": _STRING,
        "projectReason": _STRING,
        "root": _STRING,
        "branch": _STRING,
        "store": _of("object", "Location, engine, bytes; items by kind; passages by vector state"),
        "embedder": _of("string", "off, idle, loading, ready or failed"),
        "model": _STRING,
        "problem": _of("string", "What is wrong and what to do about it"),
        "warnings": _list(_STRING),
        "settings": _list(_STRING),
        "versions": _of("object"),
    },
    required=("project", "store", "embedder"),
)
