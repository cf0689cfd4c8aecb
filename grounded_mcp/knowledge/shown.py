"""What a claim was shown by: a command that was seen to work is a verified script, with the claim as its source (P1).

It is read as a command of a conversation is, so that both are evidence for one script. A claim that failed, or was
not proven, says nothing about the command that showed that. Knows nothing about what claims say.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from grounded_mcp.ingest.conversation import scripts
from grounded_mcp.ingest.forgetting import tombstones
from grounded_mcp.ingest.transcripts.exchanges import Action, Exchange
from grounded_mcp.ingest.transcripts.mining import Pointer, Sighting, commands
from grounded_mcp.ingest.transcripts.shell import WORTHWHILE, purpose
from grounded_mcp.knowledge.freshness import Freshness
from grounded_mcp.stores.base import Store
from grounded_mcp.values import Evidence, Item, Record


def verified_by(
    claim: Item, seen: Evidence, command: str, files: Mapping[str, str], root: Path, store: Store, freshness: Freshness
) -> tuple[Record, ...]:
    """A record for each script that a verified claim was shown by, but for those that somebody forgot.

    ``seen``: what this is as evidence of ``claim``. ``files``: what the claim relies on, by path within ``root``, with
    their sha256: those that no part of the command runs are what every part relies on, and without a command that is
    worth remembering, those that can be run stand for it.
    """
    found = (*_sightings(claim, seen, command, root.resolve().as_posix()),) or (*_alone(claim, seen, files),)
    if not found:
        return ()
    ran = {path for each in found for path in each.scripts}
    beside = tuple(path for path in files if path not in ran)
    found = tuple(replace(each, scripts=(*each.scripts, *beside)) for each in found)
    before = {each.id: each for each in store.known("script", claim.scope).values()}
    made = scripts(found, claim, seen.at, before, lambda path, _: files.get(path) or freshness.sha256(path) or "")
    stones = tombstones(store)
    return tuple(each for each in made if not stones.has(each.item.id))


def _sightings(claim: Item, seen: Evidence, command: str, root: str) -> tuple[Sighting, ...]:
    run = Action("command", "", command=command, ok=True)
    told = Exchange(seen.place, 1, "", 0, seen.at, seen.at, "", (run,), None, interrupted=False, turns=(0, 0))
    return commands(told, session=claim.id, cwd=root, root=root)


def _alone(claim: Item, seen: Evidence, files: Mapping[str, str]) -> Iterator[Sighting]:
    for path in files:
        what = purpose(shlex.quote(f"./{path}"))
        if what in WORTHWHILE:
            where = Pointer(claim.id, seen.place, "", seen.at)
            yield Sighting(path, what, True, "verified outcome", (path,), "", where)
