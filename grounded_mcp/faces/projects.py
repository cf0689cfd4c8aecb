"""``grounded-mcp projects``: list what is known, move a project's memory to another key, or take a project out.

Translation; prints nothing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from grounded_mcp.errors import InputError, NotFound
from grounded_mcp.faces.progress import bar
from grounded_mcp.faces.terminal import counted, one_line, table
from grounded_mcp.foreground import ELSEWHERE

if TYPE_CHECKING:
    from grounded_mcp.assemble import OpenStore
    from grounded_mcp.settings import Settings
    from grounded_mcp.values import Project

TEXT: Final = "list the projects of the store, move one's memory to another key, or forget one"
LIST: Final = "every project with its items, passages that wait for a vector, and when it was last seen (default)"
RENAME: Final = "move all that a project holds to another key: its folder was moved, or has a remote now"
FORGET: Final = "delete all that a project holds; a later sync of its folder brings its documents and sessions back"

Reported = tuple[Mapping[str, object], str]
"""What a verb reports, as data and as text."""


def arguments(verb: argparse.ArgumentParser) -> None:
    verb.set_defaults(action="list")
    verb.add_argument("--json", action="store_true", help="print JSON instead of text")
    actions = verb.add_subparsers(dest="action", metavar="ACTION")
    listing = actions.add_parser("list", help=LIST, description=LIST)
    rename = actions.add_parser("rename", help=RENAME, description=RENAME)
    rename.add_argument("old", help="the project as it is known: its key, name or folder")
    rename.add_argument("new", help="the key that it gets")
    rename.add_argument(
        "--merge", action="store_true", help="also where NEW holds something; of two under one key the newer one counts"
    )
    forget = actions.add_parser("forget", help=FORGET, description=FORGET)
    forget.add_argument("key", help="the project as it is known: its key, name or folder")
    forget.add_argument("--yes", action="store_true", help="do it, rather than say what would go")
    for each in (listing, rename, forget):
        each.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON instead of text")


def run(args: argparse.Namespace, settings: Settings) -> Reported:
    """Do what was asked. Raises: InputError, NotFound, StoreError."""
    from grounded_mcp.assemble import open_store

    with closing(open_store(settings, create=False)) as store:
        return {"list": _list, "rename": _rename, "forget": _forget}[args.action or "list"](args, settings, store)


def _list(_args: argparse.Namespace, settings: Settings, store: OpenStore) -> Reported:
    from grounded_mcp.when import iso

    seen = store.last_seen()
    found = [_about(each, store, seen.get(each.key)) for each in _all(store)]
    rows = [
        (
            one_line(each["key"]),
            ", ".join(f"{count} {kind}" for kind, count in each["items"].items()) or "nothing",
            f"{each['waiting']:,}",
            iso(each["seen"])[:10] if each["seen"] else "",
            one_line(each["root"]),
        )
        for each in found
    ]
    data = [{**each, "seen": iso(each["seen"]) if each["seen"] else None} for each in found]
    text = "\n".join(table(("project", "items", "to embed", "seen", "root"), rows)) if rows else "no projects"
    return {"projects": data}, text


def _about(project: Project, store: OpenStore, seen: float | None) -> dict[str, Any]:
    info = store.info(scopes=(project.scope,))
    items = {kind: count for kind, count in info.items.items() if count}
    waiting = info.vectors.get("pending", 0)
    return {
        "key": project.key,
        "name": project.name,
        "root": "" if project.root == ELSEWHERE else project.root,
        "items": items,
        "waiting": waiting,
        "seen": seen,
    }


def _rename(args: argparse.Namespace, settings: Settings, store: OpenStore) -> Reported:
    from grounded_mcp.ingest.renaming import rename

    old = _known(args.old, store)
    new = _target(args.new, old, settings, store)
    with bar("items", quiet=args.json) as step:
        done = rename(store, old, new, time.time(), step, merge=args.merge)
    tokens = [each.name for each in store.tokens() if each.revoked_at is None and old.key in each.projects]
    lines = [f"{counted(done.moved, 'item')} of {one_line(old.key)} belong to {one_line(new.key)} now."]
    if done.dropped:
        lines.append(f"{counted(done.dropped, 'document')} that both had: those of {one_line(new.key)} stayed.")
    if done.retired:
        lines.append(f"{counted(done.retired, 'item')} became the history of a newer one under the same key.")
    if tokens:
        lines.append(f"Tokens that still name {one_line(old.key)}: {', '.join(tokens)}. Make new ones for the new key.")
    lines.append("Restart agents that were at work in it: a server keeps the key that it started with.")
    data = {"old": old.key, "new": new.key, "moved": done.moved, "dropped": done.dropped, "retired": done.retired}
    return {**data, "tokens": tokens}, "\n".join(lines)


def _forget(args: argparse.Namespace, _settings: Settings, store: OpenStore) -> Reported:
    from grounded_mcp.ingest.renaming import holds, remove

    project = _known(args.key, store)
    if not args.yes:
        told = f"{counted(holds(store, project.scope), 'item')} of {one_line(project.key)} would be deleted for good."
        raise InputError("key", told, "Add --yes to do it. No file and no transcript is touched.")
    with bar("items", quiet=args.json) as step:
        gone = remove(store, project, step)
    text = f"{counted(gone, 'item')} of {one_line(project.key)} forgotten; its files and transcripts are untouched."
    return {
        "key": project.key,
        "deleted": gone,
    }, f"{text}\nOnly another sync of it brings its documents and sessions back."


def _all(store: OpenStore) -> Sequence[Project]:
    """The registered projects, and those that only items name."""
    from grounded_mcp.project import elsewhere

    known = store.projects()
    named = {scope.removeprefix("project:") for scope in store.scopes() if scope.startswith("project:")}
    return (*known, *(elsewhere(key) for key in sorted(named - {each.key for each in known})))


def _known(value: str, store: OpenStore) -> Project:
    from grounded_mcp.project import known_project

    found = known_project(value, _all(store))
    if found is None:
        raise NotFound("project", f"none is known as {value[:200]!r}.", "`grounded-mcp projects` lists all.")
    return found


def _target(value: str, old: Project, settings: Settings, store: OpenStore) -> Project:
    """The project that gets the items: this folder's, a known one, or the old one by another key."""
    from dataclasses import replace

    from grounded_mcp.assemble import find_project, redactor_of
    from grounded_mcp.ingest.redact import clean_project
    from grounded_mcp.project import elsewhere, known_project

    redactor = redactor_of(settings, store)
    here = clean_project(find_project(settings, settings.project_dir), redactor)
    named = elsewhere(value)
    found = known_project(value, (here, *store.projects()))
    return found or clean_project(replace(named, root=old.root), redactor)
