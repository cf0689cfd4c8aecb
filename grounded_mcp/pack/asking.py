"""What a caller asks of a pack, checked and bounded. Pure.

Knows nothing about how a pack is made.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from grounded_mcp.errors import InputError
from grounded_mcp.pack.intent import given, read_intent
from grounded_mcp.pack.making import PackOptions
from grounded_mcp.packing import DETAILS, PACK_INTENTS, Read
from grounded_mcp.recall.ask import Ask, AskOptions, read
from grounded_mcp.recall.scope import everything
from grounded_mcp.values import Query


class Job(NamedTuple):
    """A task to make a pack for. ``per_bucket``: most items of a section; ``full``: archived sessions too."""

    query: Query
    read: Read
    per_bucket: int
    full: bool


def asked(
    task: object,
    intent: object,
    max_per_bucket: object,
    since: object,
    detail: object,
    now: float,
    bounds: AskOptions,
    options: PackOptions,
) -> Job:
    """The job for what a caller said. Raises: InputError naming the field."""
    if not isinstance(task, str) or not task.strip():
        raise InputError("task", "it is missing.", "Say what you are about to do or want to know.")
    query = replace(read(Ask(task, since=since), everything(), now, bounds), mode="hybrid")
    if detail not in (None, *DETAILS):
        raise InputError("detail", "it is unknown.", f"Give one of {', '.join(DETAILS)}.")
    return Job(query, _intent(intent, query.text), _per_bucket(max_per_bucket, bounds, options), detail == "full")


def _intent(name: object, task: str) -> Read:
    if name in (None, ""):
        return read_intent(task)
    for known in PACK_INTENTS:
        if name == known:
            return given(known)
    raise InputError("intent", "it is unknown.", f"Give one of {', '.join(PACK_INTENTS)}, or leave it out.")


def _per_bucket(count: object, bounds: AskOptions, options: PackOptions) -> int:
    if count is None:
        return options.max_per_bucket
    try:
        return read(Ask("", limit=count), everything(), 0.0, replace(bounds, max_limit=options.bucket_cap)).limit
    except InputError as error:
        raise InputError("max_per_bucket", "it is not a count.", error.remedy) from None
