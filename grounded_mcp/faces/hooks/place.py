"""Which project a folder is, asked once and remembered; and the options in force. The light way to both.

The first time in a folder this runs git and reads the configuration, by the rules of every other face. From then on
it is known as long as the folder's git directory looks as it did (and for a day: a remote may also be set elsewhere).
"""

from __future__ import annotations

import os
from binascii import crc32
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from grounded_mcp.faces.hooks import files
from grounded_mcp.home import Home

if TYPE_CHECKING:
    from grounded_mcp.brief.choosing import BriefOptions
    from grounded_mcp.config import Values
    from grounded_mcp.foreground import LightShelf, Weights

KNOWN_S = 86_400.0
MAX_KNOWN = 200


class Place(NamedTuple):
    """A project as a hook needs it. ``folder``: the checkout that its files are in."""

    key: str
    name: str
    branch: str | None
    worktree: str | None
    folder: str

    @property
    def scope(self) -> str:
        return f"project:{self.key}"


class Settings(NamedTuple):
    """What is in force. ``values`` is None where nobody set anything: then it is the options' own defaults."""

    store: str
    deadline_s: float = 0.9
    values: Values | None = None

    @property
    def on_server(self) -> bool:
        return self.store.startswith(("postgres://", "postgresql://"))


def settings(home: Home, folder: str) -> Settings:
    """The settings in force for a folder; they are read only where there are any. Raises: ConfigError."""
    if home.plain:
        return Settings(home.store)
    values = _values(home, folder)
    store = os.path.expanduser(values.places.store)  # noqa: PTH111
    return Settings(store, values["hooks.deadline_s"], values)


def brief_options(values: Values | None) -> BriefOptions:
    """[brief]."""
    from grounded_mcp.brief.choosing import BriefOptions

    return BriefOptions(**{name: values[f"brief.{name}"] for name in BriefOptions._fields if values is not None})


def weights(values: Values | None) -> Weights:
    """What evidence weighs, of [confidence]."""
    from grounded_mcp.foreground import Weights

    names = ("verified_outcome", "stated", "diagnostic_episode")
    return Weights(*(values[f"confidence.{name}"] for name in names if values is not None))


def place(home: Home, folder: str, store: LightShelf, now: float) -> Place:
    """The project of a folder, as it is stored. Raises: GroundedError."""
    real = os.path.realpath(folder)
    marks = [_digest(home.store, *home.marks), *_marks(real)]
    known = files.read(home.folder, "projects")
    known = known if isinstance(known, dict) else {}
    match known.get(real):
        case [float() | int() as at, found, [*fields]] if found == marks and 0 <= now - at < KNOWN_S:
            with suppress(TypeError):
                return Place(*fields)
    made = _identify(home, folder, store)
    rest = list(known.items())[-MAX_KNOWN:]
    files.write(home.folder, "projects", value={**dict(rest), real: [now, marks, list(made)]})
    return made


def _digest(*texts: str) -> str:
    """A store's URL and the environment may hold a password, which belongs in no file."""
    return f"{crc32(chr(0).join(texts).encode('utf-8', 'surrogatepass')):08x}"


def _marks(folder: str) -> Iterator[str]:
    """What changes when a folder comes to belong to another project or branch: times of git's own files."""
    while not os.path.lexists(dot := os.path.join(folder, ".git")):  # noqa: PTH118
        parent = os.path.dirname(folder)  # noqa: PTH120
        if parent == folder:
            return
        folder = parent
    git = _followed(dot, "gitdir:")
    for path in (git, os.path.join(git, "HEAD"), os.path.join(_common(git), "config")):  # noqa: PTH118
        try:
            yield path if path == git else f"{path} {os.stat(path).st_mtime_ns}"  # noqa: PTH116
        except OSError:
            yield f"{path} -"


def _common(git: str) -> str:
    """The directory that all worktrees share."""
    pointer = os.path.join(git, "commondir")  # noqa: PTH118
    return _followed(pointer, "", base=git) if os.path.isfile(pointer) else git  # noqa: PTH113


def _followed(path: str, label: str, base: str | None = None) -> str:
    """Where a file of one line points; the path itself where it is no such file."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
            line = file.readline(4_096).strip()
    except OSError:
        return path
    target = line.removeprefix(label).strip()
    return os.path.normpath(os.path.join(base or os.path.dirname(path), target))  # noqa: PTH118, PTH120


def _values(home: Home, folder: str) -> Values:
    from pathlib import Path

    from grounded_mcp.config import load

    return load(folder=Path(folder), env=home.env)


def _identify(home: Home, folder: str, store: LightShelf) -> Place:
    """By git and by the configuration, as every other face does; redacted as it was stored."""
    from pathlib import Path

    from grounded_mcp.ingest.redact import RedactOptions, Redactor, clean_project
    from grounded_mcp.project import identify_configured

    values = _values(home, folder)
    found = identify_configured(
        values.project_dir, values.table("project.folders"), values["project.key"], values.places.environment
    )
    key = store.secret("redaction")
    stored = clean_project(found, Redactor(key, values.pick(RedactOptions, "redaction"))) if key else found
    checkout = Path(found.worktree or found.root)
    return Place(stored.key, stored.name, stored.branch, stored.worktree, str(checkout))
