"""``connect`` and ``disconnect``: show what would change in the settings of clients, ask, and do it.

Nothing is changed before the answer. Knows nothing about files and formats; imports nothing heavy.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from grounded_mcp.errors import ClientError, InputError

if TYPE_CHECKING:
    from grounded_mcp.clients.changing import Change
    from grounded_mcp.clients.merging import FormatName
    from grounded_mcp.clients.program import Program
    from grounded_mcp.clients.purging import Purge
    from grounded_mcp.clients.splicing import Entry
    from grounded_mcp.clients.table import Client, Machine
    from grounded_mcp.config import Places

CONNECT = "enter this server and its hooks into the settings of the coding agents on this machine, once you agree"
DISCONNECT = "take out again what connect put in, and nothing else"

TOOL_HOOKS = (
    "at a message, have Claude Code and Codex ask the running server instead of starting a program; versions that do "
    "not know such hooks drop the whole file they are in (known: Claude Code 2.1.332, Codex 0.171)"
)

Say = Callable[[str], None]
Plan = Callable[[], "list[Change]"]

_CACHES = frozenset({"archive-v0", "environments-v2"})
"""Folders of uv's cache in which ``uvx`` installs what it runs once."""


def connect_arguments(verb: argparse.ArgumentParser) -> None:
    _shared_arguments(verb)
    verb.add_argument("--no-hooks", action="store_true", help="only the server, no hooks")
    verb.add_argument("--tool-hooks", action="store_true", help=TOOL_HOOKS)
    verb.add_argument("--print", action="store_true", help="print what belongs into the settings, to paste it by hand")


def disconnect_arguments(verb: argparse.ArgumentParser) -> None:
    _shared_arguments(verb)
    verb.add_argument("--purge", action="store_true", help="then delete the data directory, with all that is stored")


def _shared_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("client", nargs="*", help="clients by name (default: all that are found)")
    verb.add_argument("--yes", action="store_true", help="do not ask")
    verb.add_argument("--dry-run", action="store_true", help="show the changes and make none")


def connect(args: argparse.Namespace, places: Places, say: Say) -> int:
    """0: all is connected; 1: something was refused, or declined. Raises: InputError, ClientError."""
    from grounded_mcp.clients import changing, ledger
    from grounded_mcp.clients.table import CLIENTS

    machine, program = _machine(places), _program(places, tool_hooks=args.tool_hooks)
    if args.print:
        return _print(args, machine, program, say)
    chosen = _named(args.client) or [each for each in CLIENTS if changing.found(each, machine)]
    if not chosen:
        names = ", ".join(each.name for each in CLIENTS)
        raise InputError("client", "no client was found on this machine.", f"Name one of {names}, or use --print.")

    def plan() -> list[Change]:
        records = ledger.load(places.home)
        made = (
            changing.connecting(each, machine, program, places.home, records, hooks=not args.no_hooks)
            for each in chosen
        )
        return [change for each in made for change in each]

    notes = [_TEMPORARY] if _CACHES & set(Path(sys.executable).parts) else []
    notes += [f"{each.title}: {each.note}" for each in chosen if each.note]
    done = (
        f"Restart the clients. `grounded-mcp disconnect` undoes this; the files as they were are in {_copies(places)}."
    )
    done += _EMPTY if "://" not in places.store and not Path(places.store).expanduser().exists() else ""
    return _run(args, places, plan, say, _Account(plan(), notes), done)


_EMPTY = "\nNothing is remembered yet: run `grounded-mcp sync` in a project. The server itself reads no files."
_TEMPORARY = (
    "This runs from uv's cache, which may be emptied: `uv tool install grounded-memory-mcp`, then connect with it."
)


def _copies(places: Places) -> Path:
    from grounded_mcp.clients import ledger

    return ledger.copies(places.home)


def disconnect(args: argparse.Namespace, places: Places, say: Say) -> int:
    """0: nothing of ours is left there; 1: something was refused, or declined. Raises: InputError, ClientError."""
    from grounded_mcp.clients import changing, ledger, purging
    from grounded_mcp.clients.table import CLIENTS

    machine, program = _machine(places), _program(places)
    named = _named(args.client)
    if args.purge and named:
        raise InputError("client", "--purge disconnects every client.", "Leave the names out.")

    def plan() -> list[Change]:
        records = ledger.load(places.home)
        known = {each.client for each in records.values()}
        chosen = named or [each for each in CLIENTS if each.name in known]
        made = (changing.disconnecting(each, machine, program, places.home, records) for each in chosen)
        return [change for each in made for change in each]

    doomed = purging.plan(places.home, places.store) if args.purge else None
    return _run(args, places, plan, say, _Account(plan(), doomed=doomed), "Disconnected.")


@dataclass(frozen=True, slots=True)
class _Account:
    """What would change, and what came of it."""

    shown: Sequence[Change]
    notes: Sequence[str] = ()
    doomed: Purge | None = None
    applied: bool = False
    failed: Sequence[str] = ()
    purged: bool = False

    @property
    def changes(self) -> int:
        return sum(each.action not in _STILL for each in self.shown)

    @property
    def sound(self) -> bool:
        """Nothing was refused, and nothing failed."""
        return not self.failed and not any(each.problem for each in self.shown)


_STILL = ("unchanged", "refused")


def _run(args: argparse.Namespace, places: Places, plan: Plan, say: Say, account: _Account, done: str) -> int:
    """Show, ask, and do. What is done is planned anew after the answer, and has to be what was shown."""
    if args.json and not (args.yes or args.dry_run):
        raise InputError("json", "nobody can be asked.", "Add --yes, or --dry-run.")
    if not args.json:
        say(_told(account))
    asked = bool(account.changes or account.doomed)
    agreed = asked and not args.dry_run and (args.yes or _ask(say, account))
    stale = not asked and any(each.forgets for each in account.shown)  # records of files that are gone
    if agreed or (stale and not args.dry_run):
        account = replace(account, applied=agreed, failed=_carry_out(plan, account.shown, places.home))
    if agreed and account.doomed and account.sound:
        account = replace(account, purged=_purge(places))
    say(_as_json(account) if args.json else _outcome(account, done, asking=not args.dry_run))
    declined = asked and not (agreed or args.dry_run)
    return 1 if declined or not account.sound else 0


def _carry_out(plan: Plan, shown: Sequence[Change], home: Path) -> list[str]:
    """Do it; what could not be done, as sentences. A change that is not the one that was shown is not made."""
    from grounded_mcp.clients.changing import carry_out

    failed, agreed = [], {each.agreed() for each in shown}
    for change in plan():
        if change.agreed() not in agreed:
            failed.append(f"{change.path} was changed by another program in the meantime. Run the command again.")
            continue
        try:
            carry_out(change, home)
        except ClientError as error:
            failed.append(str(error))
    return failed


def _purge(places: Places) -> bool:
    from grounded_mcp.clients import purging

    purging.purge(purging.plan(places.home, places.store))  # the records of what was connected are gone by now
    return True


def _ask(say: Say, account: _Account) -> bool:
    count = account.changes
    what = ("Make this change" if count == 1 else f"Make these {count} changes") if count else ""
    if account.doomed:
        what = (f"{what} and delete" if what else "Delete") + " all that is stored, for good"
    say(f"{what}? [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


# --- between places and clients ---------------------------------------------------------------------------


def _named(names: Sequence[str]) -> list[Client]:
    from grounded_mcp.clients.table import BY_NAME, PRINTED

    for name in names:
        if name in {each.name for each in PRINTED}:
            raise InputError("client", f"the settings of {name} are no file of yours.", f"Use `--print {name}`.")
        if name not in BY_NAME:
            raise InputError("client", f"{name!r} is unknown.", f"Choose from {', '.join(BY_NAME)}.")
    return [BY_NAME[name] for name in dict.fromkeys(names)]


def _machine(places: Places) -> Machine:
    from grounded_mcp.clients.table import Machine

    return Machine(places.user, places.agents, sys.platform, (places.environment or {}).get("PATH"))


def _program(places: Places, *, tool_hooks: bool = False) -> Program:
    """This installation: the command beside the running interpreter, or the interpreter itself."""
    from grounded_mcp.clients.program import Program

    python = Path(sys.executable).absolute()
    script = python.with_name("grounded-mcp.exe" if sys.platform == "win32" else "grounded-mcp")
    command = (str(script),) if script.is_file() else (str(python), "-m", "grounded_mcp")
    given = places.environment or {}
    files = {name: given.get(name, "") for name in ("GROUNDED_CONFIG", "GROUNDED_STORE")}
    kept = {name: str(Path(value).expanduser().absolute()) for name, value in files.items() if _is_path(value)}
    return Program(command, {"GROUNDED_HOME": str(places.home.absolute()), **kept}, sys.platform == "win32", tool_hooks)


def _is_path(value: str) -> bool:
    """A server's address is not written into other programs' files: it may hold a password."""
    return bool(value) and "://" not in value


# --- text -------------------------------------------------------------------------------------------------


def _told(account: _Account) -> str:
    from grounded_mcp.inert import printable

    lines = []
    for change in account.shown:
        lines.append(f"{change.client:<15} {change.action:<10} {change.path}")
        lines += ["", change.diff(), ""] if change.action not in _STILL else []
        lines += [f"  {change.problem}"] if change.problem else []
    lines += account.notes
    if account.doomed:
        lines += [f"{'delete':<26} {each}" for each in account.doomed.ours]
        lines += [f"{'left, not ours':<26} {each}" for each in account.doomed.others]
    return printable("\n".join(lines))[0] or "Nothing is connected."


def _outcome(account: _Account, done: str, *, asking: bool) -> str:
    data = "The data is deleted." if account.purged else "The data directory was left." if account.doomed else ""
    if account.failed:
        return "\n".join((*account.failed, data)).strip()
    if account.applied:
        left = "" if account.sound else "What was refused above is as it was. "
        return f"{left}{done} {data}".strip()
    if not (account.changes or account.doomed):
        return "Nothing to change."
    return "Nothing was changed." + (" Answer y, or add --yes." if asking else "")


def _as_json(account: _Account) -> str:
    files = [
        {
            "client": change.client,
            "path": str(change.path),
            "action": change.action,
            "diff": "" if change.action in _STILL else change.diff(),
            "problem": change.problem or None,
        }
        for change in account.shown
    ]
    data: dict[str, object] = {"files": files, "notes": list(account.notes)}
    data |= {"applied": account.applied, "failed": list(account.failed)}
    if account.doomed:
        lists = {"delete": account.doomed.ours, "left": account.doomed.others}
        data["purge"] = {**{name: list(map(str, each)) for name, each in lists.items()}, "done": account.purged}
    return json.dumps(data, indent=2)


def _print(args: argparse.Namespace, machine: Machine, program: Program, say: Say) -> int:
    """What belongs where, for the named clients, or for any client that takes the usual list of servers."""
    from grounded_mcp.clients.table import BY_NAME, PRINTED

    others = {each.name: each for each in PRINTED}
    parts, data = [], []
    for name in args.client or ["other"]:
        if name in others:
            wanted = [(others[name].where, _pasted(others[name].entries(program), "json"))]
        else:
            (client,) = _named([name])
            files = [each for each in client.files if not (each.hooks and args.no_hooks)]
            wanted = [(str(each.where(machine)), _pasted(each.entries(program), each.format)) for each in files]
        for where, text in wanted:
            title = (others.get(name) or BY_NAME[name]).title
            parts.append(f"# {title}: {where}\n{text}")
            data.append({"client": name, "where": where, "text": text})
    say(json.dumps({"files": data}, indent=2) if args.json else "\n".join(parts).rstrip())
    return 0


def _pasted(entries: tuple[Entry, ...], format: FormatName) -> str:
    from grounded_mcp.clients.merging import entered

    return entered("", entries, format)[0]
