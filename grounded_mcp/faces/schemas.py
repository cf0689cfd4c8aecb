"""The shapes of the tools' structured answers, as JSON Schema. Data only.

Clients check an answer against its schema and refuse it where it does not fit, so a schema names what is always
there and leaves room for the rest. Knows nothing about how an answer is made.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def _object(properties: Schema, required: tuple[str, ...] | None = None) -> Schema:
    names = tuple(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": list(names)}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _fields(names: str, *, required: str) -> Schema:
    """An object's fields by name: what each holds is told by its name, for all tools are listed within 12 KB."""
    return _object({name: {} for name in names.split()}, tuple(required.split()))


_CARD = _fields(
    "id source rank score matchedBy ranks boosts matchedTerms title text heading path lines topic agent session branch "
    "turns quality scope importance pinned state on_disk updatedAt confidence conflicts chunks duplicates "
    "hidden_chars_removed external_url size open",
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

PROJECT_MEMORY = _fields("items scripts sessions meta", required="scripts sessions meta")

PACK = _fields(
    "current_truth decisions examples past_reasoning discounted nearest read_first current_truth_caveat "
    "disagreements meta",
    required="meta",
)

REMEMBERED = _fields(
    "id outcome scope importance pinned topic_key superseded conflicts redacted vector", required="id outcome scope"
)

LEARNED = _fields(
    "outcome id reason open scope evidence supported contradicted retired scripts conflicts redacted vector",
    required="outcome",
)

FORGOTTEN = _fields("action ids others unchanged alike note", required="action ids")

OPENED = _fields(
    "id source title text path topic heading line scope state on_disk origin importance pinned createdAt updatedAt "
    "attributes provenance conflicts supersededBy history earlier offset nextOffset prevOffset size passages "
    "neighbours hidden_chars_removed external_url guidance",
    required="id source text offset size",
)

STATUS = _fields(
    "project projectReason root branch here store embedder model problem warnings settings versions usage",
    required="project store embedder",
)
