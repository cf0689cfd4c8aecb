"""What stands behind what was recalled: its evidence, counted, and its files, looked at (P3).

=========  ====================================================================================================
kind       evidence beside its records
=========  ====================================================================================================
fact       a person's word, once, where a person stated it
episode    itself: one verified outcome where a check, a run or a commit ended it well, else one diagnosis
=========  ====================================================================================================

Knows nothing about lanes or ranking.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from grounded_mcp.dossier import VerifiedScript
from grounded_mcp.ingest.conversation import linked
from grounded_mcp.knowledge.confidence import ConfidenceOptions, ScriptState, Weighed, add_up, judge
from grounded_mcp.knowledge.freshness import Freshness
from grounded_mcp.stores.base import Store
from grounded_mcp.values import Item, Recall, Tally

PROVEN = "reached"
"""How an episode ended that a check, a run or a commit proved."""


def files_now(item: Item, freshness: Freshness) -> Mapping[str, ScriptState]:
    """Every file of an item as it is now. One that nobody saw as it was then counts as changed: nothing verifies it."""
    states = {path: freshness.state({path: sha256}) for path, sha256 in linked(item.attrs).items()}
    return {path: "stale" if state == "unknown" else state for path, state in states.items()}


def changed(files: Mapping[str, ScriptState]) -> tuple[str, ...]:
    """Those that are not known to be as they were."""
    return tuple(path for path, state in files.items() if state != "verified")


def script_now(item: Item, freshness: Freshness, weighed: Weighed, now: float, by: ConfidenceOptions) -> VerifiedScript:
    """A script with its files as they are now; the worst of them decides."""
    files = files_now(item, freshness)
    found = set(files.values())
    return VerifiedScript(
        item=item,
        state="missing" if "missing" in found else "stale" if "stale" in found else "verified",
        files=tuple(files),
        changed=changed(files),
        confidence=judge(weighed, files.values(), item.updated_at, now, by),
    )


def weigh_items(items: Iterable[Item], store: Store, options: ConfidenceOptions) -> Mapping[str, Weighed]:
    """The evidence of each item, by id. Raises: StoreError."""
    named = {item.id: item for item in items}
    if not named:
        return {}
    tallies = store.tallies(list(named))
    return {id_: add_up(_with_own(item, tallies.get(id_, ())), options) for id_, item in named.items()}


def _with_own(item: Item, found: Sequence[Tally]) -> Sequence[Tally]:
    if item.kind == "episode":
        proven = item.attrs.get("outcome") == PROVEN
        return (*found, Tally("verified outcome" if proven else "diagnostic episode", True, 1, item.updated_at))
    recorded = any(each.kind == "stated" and each.supports for each in found)
    stated = item.kind == "fact" and item.origin == "stated" and not recorded
    return (*found, Tally("stated", True, 1, item.updated_at)) if stated else found


def with_standing(found: Recall, store: Store, freshness: Freshness, by: ConfidenceOptions) -> Recall:
    """The same list, each candidate with the confidence in it and what conflicts with it. Raises: StoreError."""
    items = {each.id: each.found.item for each in found.candidates if each.found}
    weighed, now = weigh_items(items.values(), store, by), found.query.now
    held = {
        id_: judge(weighed[item.id], _states(item, freshness), item.updated_at, now, by) for id_, item in items.items()
    }
    return replace(found, confidence=held, conflicts=conflicts(found, store))


def conflicts(found: Recall, store: Store) -> Mapping[str, tuple[Item, ...]]:
    """What cannot hold beside each item that was found, by id. Raises: StoreError."""
    return store.conflicts([each.found.item.id for each in found.candidates if each.found])


def _states(item: Item, freshness: Freshness) -> Iterable[ScriptState]:
    return ("missing",) if item.state == "missing" else files_now(item, freshness).values()
