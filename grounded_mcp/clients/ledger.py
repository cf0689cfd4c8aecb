"""What was connected: for each settings file its text before, and what exactly was put into it.

Kept in the data directory, for this user alone: settings of clients hold tokens. Knows nothing about formats.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from grounded_mcp.clients import files
from grounded_mcp.clients.merging import FormatName
from grounded_mcp.clients.splicing import Entry, Splice
from grounded_mcp.errors import ClientError

FOLDER, FILE, VERSION = "clients", "connected.json", 1


@dataclass(frozen=True, slots=True)
class Record:
    """One file: ``before`` names the copy of it without our entries (None: we made it), ``after`` what we wrote."""

    client: str
    path: Path
    format: FormatName
    before: str | None
    after: str
    entries: tuple[Entry, ...]
    splices: tuple[Splice, ...]
    folders: tuple[Path, ...] = ()


Ledger = Mapping[str, Record]
"""Records by ``key``."""


def key(client: str, path: Path) -> str:
    return f"{client} {path}"


def load(home: Path) -> dict[str, Record]:
    """Every record. Raises: ClientError when the file is not what we wrote."""
    path = home / FOLDER / FILE
    content = files.read(path)
    if content is None:
        return {}
    try:
        data = json.loads(content)
        if data["version"] != VERSION:
            raise ValueError(f"version {data['version']}")
        records = [_record(each) for each in data["files"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ClientError(
            f"{path}, which tells what was connected, cannot be read ({error}).",
            "Move it away: `grounded-mcp disconnect` then takes out what it recognises.",
        ) from error
    return {key(each.client, each.path): each for each in records}


def save(home: Path, records: Ledger) -> None:
    """Write the records; with the last of them the file goes, and each folder that is empty. Raises: ClientError."""
    path = home / FOLDER / FILE
    held = files.read(path)
    if not records:
        if held is not None:
            files.remove(path, over=held)
        for folder in (copies(home), home / FOLDER, home):
            with suppress(OSError):
                folder.rmdir()
        return
    _folder(path.parent)
    data = {"version": VERSION, "files": [_data(each) for each in records.values()]}
    files.write(path, (json.dumps(data, indent=1) + "\n").encode(), over=held)


def copies(home: Path) -> Path:
    """The folder with what each file held before."""
    return home / FOLDER / "before"


def keep(home: Path, client: str, path: Path, content: bytes) -> str:
    """Copy what a file held before; the name of the copy. Raises: ClientError."""
    folder = copies(home)
    _folder(folder)
    name = f"{client}-{files.fingerprint(str(path).encode())[:8]}-{path.name.lstrip('.')}"
    files.write(folder / name, content, over=files.read(folder / name))
    return name


def kept(home: Path, record: Record) -> bytes | None:
    """What the file held before; None when it was not there, or the copy is gone."""
    return files.read(copies(home) / record.before) if record.before else None


def drop_copy(home: Path, record: Record) -> None:
    if record.before:
        with suppress(OSError):
            (copies(home) / record.before).unlink()


def _folder(folder: Path) -> None:
    try:
        for each in (*reversed(folder.parents), folder):
            if not each.exists():
                each.mkdir(mode=0o700)
    except OSError as error:
        raise ClientError(f"{folder} cannot be made: {error}.", "Set GROUNDED_HOME to a folder of yours.") from error


def _data(record: Record) -> dict[str, Any]:
    return {**asdict(record), "path": str(record.path), "folders": [str(each) for each in record.folders]}


def _record(data: Mapping[str, Any]) -> Record:
    entries = (Entry(tuple(each["path"]), each["value"], each["kind"]) for each in data["entries"])
    return Record(
        client=data["client"],
        path=Path(data["path"]),
        format=data["format"],
        before=data["before"],
        after=data["after"],
        entries=tuple(entries),
        splices=tuple(Splice(**each) for each in data["splices"]),
        folders=tuple(map(Path, data["folders"])),
    )
