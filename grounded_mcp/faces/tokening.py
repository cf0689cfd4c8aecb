"""``grounded-mcp token``: make, list and revoke the tokens of a team's server. Translation; prints nothing.

A token is shown when it is made, and never again: the store keeps its digest.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from grounded_mcp.errors import InputError, NotFound
from grounded_mcp.faces.doorman import digest, new_token
from grounded_mcp.stores.roster import Token

if TYPE_CHECKING:
    from grounded_mcp.settings import Settings

TEXT: Final = "make, list or revoke the tokens by which a team's agents use one server"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_AHEAD: Final = re.compile(r"(\d+)([hdw])")
_SECONDS: Final = {"h": 3_600.0, "d": 86_400.0, "w": 604_800.0}

Reported = tuple[Mapping[str, object], str]
"""What a verb reports, as data and as text."""


def arguments(verb: argparse.ArgumentParser) -> None:
    actions = verb.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = actions.add_parser("create", help="make a token; it is shown once")
    create.add_argument("name", help="whose it is: letters, digits, dot, dash and underscore")
    create.add_argument(
        "--project", action="append", default=[], metavar="KEY", help="a project that it opens; may be repeated"
    )
    create.add_argument(
        "--scope",
        action="append",
        default=[],
        metavar="SCOPE",
        help="a further scope: agent:NAME, machine:NAME, or global to change what all may read; may be repeated",
    )
    create.add_argument("--read-only", action="store_true", help="it may change nothing")
    create.add_argument("--metrics", action="store_true", help="it may read the server's figures at /metrics")
    create.add_argument("--expires", metavar="WHEN", help="a date, a time, or how long from now: 12h, 30d, 8w")
    revoke = actions.add_parser("revoke", help="refuse a token from now on")
    revoke.add_argument("name")
    for each in (create, actions.add_parser("list", help="show every token, without the tokens themselves"), revoke):
        each.add_argument("--json", action="store_true", help="print JSON instead of text")


def run(args: argparse.Namespace, settings: Settings) -> Reported:
    """Do what was asked. Raises: InputError, NotFound, StoreError."""
    return {"create": _create, "list": _list, "revoke": _revoke}[args.action](args, settings)


def _create(args: argparse.Namespace, settings: Settings) -> Reported:
    from grounded_mcp.assemble import find_project, open_store
    from grounded_mcp.project import canonical_scope, elsewhere, known_project

    if not _NAME.fullmatch(args.name):
        raise InputError("name", f"{args.name[:80]!r} cannot be one.", "Use letters, digits, dot, dash, underscore.")
    if not args.project and not args.metrics:
        raise InputError("project", "none is given: the token would open nothing.", "Add --project KEY, or --metrics.")
    now = time.time()
    with closing(open_store(settings)) as store:
        known = store.projects()
        projects = [(known_project(each, known) or elsewhere(each)).key for each in args.project]
        here = find_project(settings, settings.project_dir)
        scopes = [canonical_scope(each, here, known, hostname=args.name) for each in args.scope]
        made = new_token()
        token = Token(
            name=args.name,
            digest=digest(made),
            projects=tuple(dict.fromkeys(projects)),
            scopes=tuple(dict.fromkeys(scopes)),
            read_only=args.read_only,
            metrics=args.metrics,
            created_at=now,
            expires_at=_when(args.expires, now),
        )
        if not store.add_token(token):
            raise InputError("name", f"there is or was a token {args.name}.", "Choose another: a name is given once.")
    unseen = [key for key in token.projects if all(each.key != key for each in known)]
    told = [made, "", "It is shown only now. " + _about(token, now)]
    told += [f"No project {key} has been seen yet: it is one once somebody stores something." for key in unseen]
    return {"token": made, **_data(token, now)}, "\n".join(told)


def _list(_args: argparse.Namespace, settings: Settings) -> Reported:
    from grounded_mcp.assemble import open_store

    now = time.time()
    with closing(open_store(settings, create=False)) as store:
        tokens: Sequence[Token] = store.tokens()
    text = "\n".join(_about(token, now) for token in tokens) or "no tokens"
    return {"tokens": [_data(token, now) for token in tokens]}, text


def _revoke(args: argparse.Namespace, settings: Settings) -> Reported:
    from grounded_mcp.assemble import open_store

    with closing(open_store(settings, create=False)) as store:
        if not store.revoke_token(args.name, time.time()):
            raise NotFound(
                "name", f"no valid token is called {args.name[:80]}.", "`grounded-mcp token list` shows all."
            )
    return {"revoked": args.name}, f"{args.name} is refused from the next request on"


def _when(text: str | None, now: float) -> float | None:
    """A moment ahead. Raises: InputError."""
    from grounded_mcp.when import parse_time

    if text is None:
        return None
    ahead = _AHEAD.fullmatch(text.strip())
    when = now + int(ahead[1]) * _SECONDS[ahead[2]] if ahead else parse_time(text, field="expires", now=now)
    if when <= now:
        raise InputError("expires", f"{text} is over.", "Give a time ahead, such as 30d.")
    return when


def _state(token: Token, now: float) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "valid" if token.valid(now) else "expired"


def _data(token: Token, now: float) -> dict[str, Any]:
    from grounded_mcp.when import iso

    times = {"created": token.created_at, "expires": token.expires_at, "revoked": token.revoked_at}
    return {
        "name": token.name,
        "state": _state(token, now),
        "projects": list(token.projects),
        "scopes": list(token.scopes),
        "read_only": token.read_only,
        "metrics": token.metrics,
        **{name: None if at is None else iso(at) for name, at in times.items()},
    }


def _about(token: Token, now: float) -> str:
    from grounded_mcp.when import iso

    opens = [*token.projects, *token.scopes, *(["/metrics"] if token.metrics else [])]
    how = "reads" if token.read_only or not token.projects else "reads and writes"
    until = f", until {iso(token.expires_at)}" if token.expires_at else ""
    return f"{token.name} ({_state(token, now)}{until}) {how} {', '.join(opens)}"
