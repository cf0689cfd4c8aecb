"""One store into another, whichever engines they are: everything, as it is, and what was interrupted goes on.

How far it got is kept in the new store, in the same transaction as what was moved, so that an end at any moment costs
one batch. Knows nothing about files, urls or faces.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Any, Final, Protocol

from grounded_mcp.errors import InputError
from grounded_mcp.events import Event
from grounded_mcp.stores.base import MAX_BATCH
from grounded_mcp.stores.roster import Roster
from grounded_mcp.transfer import past
from grounded_mcp.transfer.exporting import DIGESTS, MOVED, Whole, all_items
from grounded_mcp.transfer.verifying import Verdict, Words, verify

ROUNDS: Final = 3
"""How often what changed in the old store meanwhile is moved again before the difference is reported."""


class Movable(Whole, Roster, Protocol):
    """A store with all that moves along."""


@dataclass(frozen=True, slots=True)
class MoveReport:
    """``moved``: items of this run; ``before``: those that an interrupted run had moved already."""

    moved: int
    before: int
    verdict: Verdict


def move(
    source: Movable, target: Movable, words: Words, now: float, progress: Callable[[int, int], None] | None = None
) -> MoveReport:
    """Everything of ``source`` into ``target``, which is new, or has part of it from an interrupted run.

    ``words``: the analyzer of both. Raises: InputError where ``target`` holds anything else; StoreError: moving again
    goes on.
    """
    state = _begin(source, target)
    if state.get("over"):
        return MoveReport(0, int(state["items"]), _still_same(source, target, words))
    total, space = sum(source.info().items.values()), source.space()
    before = moved = int(state.get("items", 0))
    rest = all_items(source, vectors=True, after=str(state.get("after", "")))
    while batch := list(islice(rest, MAX_BATCH)):
        moved += len(batch)
        mark = {**state, "after": batch[-1].record.item.id, "items": moved}
        target.adopt(batch, space=space, checkpoints={MOVED: json.dumps(mark)})
        if progress:
            progress(moved, max(moved, total))
    if space is not None and target.space() is None:
        target.reset_vectors(space)
    _move_past(source, target)
    _move_rest(source, target, now)
    verdict = _settle(source, target, words)
    if verdict.same:
        target.adopt((), checkpoints={MOVED: json.dumps({"from": state["from"], "items": moved, "over": True})})
    return MoveReport(moved - before, before, verdict)


def _begin(source: Movable, target: Movable) -> dict[str, Any]:
    """Where to go on; the new store has the old one's keys from then on. Raises: InputError."""
    origin = _identity(source)
    state: dict[str, Any] = json.loads(target.checkpoints(MOVED).get(MOVED, "{}"))
    if state.get("over") and state.get("from") == origin:
        return {"items": 0, **state}
    if not state and (target.ids(limit=1) or target.buried()):
        raise InputError("to", "that store holds something already.", "Name a new one; export and import merge.")
    if state and state.get("from") != origin:
        raise InputError("to", "it holds part of another store.", "Name a new one, or finish that migration first.")
    for name, value in source.secrets().items():
        target.adopt_secret(name, value)
    state = state or {"from": origin}
    target.adopt((), checkpoints={MOVED: json.dumps(state)})
    return state


def _still_same(source: Movable, target: Movable, words: Words) -> Verdict:
    """A migration that was finished is not done again: the new store may have been in use since. Raises: InputError."""
    verdict = verify(source, target, words)
    if not verdict.same:
        told = "everything was moved there before, and the two have changed since; nothing was done."
        raise InputError("to", told, "Name a new one, or export from one and import with --merge into the other.")
    return verdict


def _identity(store: Movable) -> str:
    """What tells a store from every other: a digest of its keys, which are random."""
    return blake2b(b"".join([store.secret("redaction"), store.secret("tombstones")]), digest_size=12).hexdigest()


def _move_past(source: Movable, target: Movable) -> None:
    """Telemetry: sessions are met again, and recalls that are there already are passed over."""
    told: list[Event] = []
    for row in past.rows(source, None):
        if row["type"] == "recall" and target.find_recall(id=str(row["id"])):
            continue
        told += past.events(row)
        if len(told) >= MAX_BATCH:
            target.note(told, keep_from=float("-inf"))
            told = []
    target.note(told, keep_from=float("-inf"))


def _move_rest(source: Movable, target: Movable, now: float) -> None:
    for project in source.projects():
        target.register(project, now)
    held = {token.name for token in target.tokens()}
    for token in source.tokens():
        if token.name not in held:
            target.add_token(token)
        elif token.revoked_at is not None:
            target.revoke_token(token.name, token.revoked_at)
    digests = iter(sorted(source.buried()))
    while some := list(islice(digests, DIGESTS)):
        target.adopt((), bury=some)
    checkpoints = {name: at for name, at in source.checkpoints("").items() if name != MOVED}
    target.adopt((), checkpoints=checkpoints)


def _settle(source: Movable, target: Movable, words: Words) -> Verdict:
    """Compare; what another process changed meanwhile is moved again."""
    for _ in range(ROUNDS):
        verdict = verify(source, target, words)
        if not verdict.differing and not verdict.extra:
            break
        again, space = set(verdict.differing), source.space()
        changed = (each for each in all_items(source, vectors=True) if each.record.item.id in again)
        while batch := list(islice(changed, MAX_BATCH)):
            target.adopt(batch, space=space)
        target.delete(list(verdict.extra))
    return verdict
