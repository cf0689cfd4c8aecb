"""Connecting and disconnecting a client: what would change in its files, and then changing them.

A plan is data: it can be shown, compared with another, or carried out. Carrying it out records first what the file
held, so that whatever happens in between can be undone. Knows nothing about arguments, and asks nobody.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from grounded_mcp.clients import files, ledger
from grounded_mcp.clients.ledger import Ledger, Record
from grounded_mcp.clients.merging import FormatName, entered, is_bare, left
from grounded_mcp.clients.program import Program
from grounded_mcp.clients.showing import difference
from grounded_mcp.clients.splicing import OURS, Entry, Refused
from grounded_mcp.clients.table import Client, Machine
from grounded_mcp.errors import ClientError

Action = Literal["create", "change", "delete", "unchanged", "refused"]


@dataclass(frozen=True, slots=True)
class Change:
    """What is to become of one file.

    ``record``: what there is to know of it from then on. ``forgets``: what is then done with. ``base``: the file
    without our entries, as it is to be restored one day. Each is None where there is none.
    """

    client: str
    path: Path
    action: Action
    before: bytes | None = None
    after: bytes | None = None
    base: bytes | None = None
    record: Record | None = None
    forgets: Record | None = None
    problem: str = ""

    def diff(self) -> str:
        """The change as a unified difference, empty when there is none."""
        return difference(str(self.path), self.before, self.after)

    def agreed(self) -> tuple[object, ...]:
        """What somebody who was shown this has agreed to, whatever else becomes of the file in the meantime."""
        lines = self.diff().splitlines()[2:]
        return self.client, self.path, self.action, tuple(line for line in lines if line.startswith(("+", "-")))


def found(client: Client, machine: Machine) -> str | None:
    """What shows that a client is on this machine: a program on the PATH, or files that only it makes."""
    programs = (shutil.which(each, path=machine.search or "") for each in client.programs)
    signs = (where(machine) for where in client.signs)
    return next((str(each) for each in (*programs, *signs) if each and Path(each).exists()), None)


# --- plans ------------------------------------------------------------------------------------------------


def connecting(
    client: Client, machine: Machine, program: Program, home: Path, records: Ledger, *, hooks: bool = True
) -> list[Change]:
    """What connecting a client changes, one entry a file. ``home`` is the data directory.

    Where one of its files cannot be changed none is: hooks without a server, or a server alone, would be half a thing.
    """
    changes = []
    for path, format, entries in _files(client, machine, program, hooks=hooks):
        record = records.get(ledger.key(client.name, path))
        if entries:
            blank = Record(client.name, path, format, None, "", entries, ())
            changes.append(_planned(blank, partial(_into, blank, record, home)))
        elif record:
            changes.append(_planned(record, partial(_out_of, record, home)))
    refused = [change for change in changes if change.action == "refused"]
    return refused or changes


def disconnecting(client: Client, machine: Machine, program: Program, home: Path, records: Ledger) -> list[Change]:
    """What disconnecting a client changes: what was recorded, or else whatever of ours its files hold."""
    recorded = [each for each in records.values() if each.client == client.name]
    unknown = [
        Record(client.name, path, format, None, "", entries, ())
        for path, format, entries in _files(client, machine, program, hooks=True)
    ]
    return [_planned(each, partial(_out_of, each, home)) for each in recorded or unknown]


def carry_out(change: Change, home: Path) -> None:
    """Do what a plan says. Raises: ClientError; the file is then as it was."""
    if change.problem or (change.action == "unchanged" and not change.forgets):
        return
    records = ledger.load(home)
    key = ledger.key(change.client, change.path)
    if change.record and change.after is not None:
        copy = None if change.base is None else ledger.keep(home, change.client, change.path, change.base)
        ledger.save(home, {**records, key: replace(change.record, before=copy)})
        try:
            files.write(change.path, change.after, over=change.before)
        except ClientError:
            ledger.save(home, records)
            raise
        return
    if change.after is not None and change.after != change.before:
        files.write(change.path, change.after, over=change.before)
    elif change.after is None and change.before is not None:
        files.remove(change.path, over=change.before, folders=change.forgets.folders if change.forgets else ())
    if key in records:
        ledger.drop_copy(home, records[key])
        ledger.save(home, {each: record for each, record in records.items() if each != key})


def _files(
    client: Client, machine: Machine, program: Program, *, hooks: bool
) -> Iterator[tuple[Path, FormatName, tuple[Entry, ...]]]:
    """Each file once, with all that it is to hold; nothing for a file of hooks that are not wanted."""
    wanted: dict[Path, tuple[FormatName, tuple[Entry, ...]]] = {}
    for each in client.files:
        path = each.where(machine)
        entries = each.entries(program) if hooks or not each.hooks else ()
        wanted[path] = (each.format, (*wanted.get(path, (each.format, ()))[1], *entries))
    yield from ((path, format, entries) for path, (format, entries) in wanted.items())


def _into(blank: Record, record: Record | None, home: Path) -> Change:
    """The file with our entries: those of an earlier time are taken out first, so that twice is once."""
    path, current = blank.path, files.read(blank.path)
    same = record is None or record.entries == blank.entries
    if same and current is not None and not entered(_text(current), blank.entries, blank.format)[1]:
        return Change(blank.client, path, "unchanged", current, current)
    base = current if record is None or current is None else _out_of(record, home).after
    text, splices = entered(_text(base or b""), blank.entries, blank.format)
    folders = files.missing_folders(path) or (record.folders if record else ())
    fresh = replace(blank, after=files.fingerprint(text.encode()), splices=splices, folders=folders)
    action: Action = "create" if current is None else "change"
    return Change(blank.client, path, action, current, text.encode(), base, fresh)


def _out_of(record: Record, home: Path) -> Change:
    """The file without our entries: just what it was if nobody touched it since, else what they left of it."""
    current = files.read(record.path)
    forgets = record if record.after else None
    if current is None:
        return Change(record.client, record.path, "unchanged", forgets=forgets)
    kept = ledger.kept(home, record)
    if files.fingerprint(current) == record.after and (kept is None) == (record.before is None):
        after = kept
    elif any(name.encode() in current for name in OURS):
        text = left(_text(current), record.entries, record.splices, record.format)
        made = record.after and record.before is None
        after = None if made and is_bare(text, record.entries, record.format) else text.encode()
    else:
        after = current
    action: Action = "delete" if after is None else "unchanged" if after == current else "change"
    return Change(record.client, record.path, action, current, after, after, forgets=forgets)


def _planned(record: Record, plan: Callable[[], Change]) -> Change:
    """A plan, or why there is none."""
    client, path = record.client, record.path
    try:
        return plan()
    except Refused as error:
        by_hand = f"Do it by hand: `grounded-mcp connect --print {client}` shows what belongs there."
        return Change(client, path, "refused", problem=f"{path}: {error}. {by_hand}")
    except ClientError as error:
        return Change(client, path, "refused", problem=str(error))
    except ValueError as error:
        what = f"{path} is not valid {record.format.upper()}: {error}."
        return Change(client, path, "refused", problem=f"{what} It was left as it is; correct it and repeat.")


def _text(content: bytes) -> str:
    return content.decode("utf-8")
