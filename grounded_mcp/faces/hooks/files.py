"""What hooks remember between two runs: small files in ``hooks/`` of the data directory, private to this user.

====================  ==============================================================================================
``sessions/<id>``     what a session has in view already, and when it was last given a brief
``fired/<event>``     that an event was answered: some clients run the hooks of another one, too
``queue/<name>``      a transcript that has grown, to be imported by the next sync or server
``projects``          which project a folder is, as long as its git directory is as it was
``asked``             when a store's server was asked; gone once it has answered
====================  ==============================================================================================

Nothing is made where there is no store: a data directory that was deleted stays deleted. Every file is replaced in one
step, and a file that cannot be read is as good as none. Knows nothing about what is in them beyond that.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

KEPT_S = 7 * 86_400.0
"""How long a session is remembered after its last event."""


def read(home: str, *name: str) -> Any:
    """What a file holds; None where it is missing or no JSON."""
    try:
        with open(_path(home, *name), encoding="utf-8") as file:  # noqa: PTH123 - pathlib costs a third of a start
            return json.load(file)
    except (OSError, ValueError, RecursionError):
        return None


def write(home: str, *name: str, value: object) -> bool:
    """Replace a file; False where it cannot be."""
    path = _path(home, *name)
    draft = f"{path}.{os.getpid()}"
    try:
        _make_folders(home, *name[:-1])
        data = json.dumps(value, separators=(",", ":")).encode()
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123
            file.write(data)
        os.replace(draft, path)  # noqa: PTH105
    except OSError:
        return False
    return True


def claim(home: str, name: str, now: float, seconds: float) -> bool:
    """Whether this is the first to claim a name within so many seconds; also where that cannot be told."""
    path = _path(home, "fired", name)
    with suppress(OSError):
        if now - os.stat(path).st_mtime < seconds:  # noqa: PTH116
            return False
        os.unlink(path)  # noqa: PTH108
    try:
        _make_folders(home, "fired")
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    except OSError:
        return True
    return True


def names(home: str, folder: str) -> Iterator[str]:
    """The files of a folder, in order."""
    with suppress(OSError):
        yield from sorted(each for each in os.listdir(_path(home, folder)) if not each.startswith("."))  # noqa: PTH208


def remove(home: str, *name: str) -> None:
    with suppress(OSError):
        os.unlink(_path(home, *name))  # noqa: PTH108


def prune(home: str, now: float) -> None:
    """Forget sessions and events of long ago."""
    for folder in ("sessions", "fired"):
        for name in names(home, folder):
            with suppress(OSError):
                if now - os.stat(_path(home, folder, name)).st_mtime > KEPT_S:  # noqa: PTH116
                    remove(home, folder, name)


def safe_name(text: str) -> str:
    """A text as a file's name: itself if it can be one, or else its digest."""
    if 0 < len(text) <= 80 and text.replace("-", "").isalnum() and text.isascii():
        return text
    from hashlib import sha256

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _path(home: str, *name: str) -> str:
    return os.path.join(home, "hooks", *name)  # noqa: PTH118


def _make_folders(home: str, *inner: str) -> None:
    """The folders inside the data directory, which itself is never made."""
    for depth in range(len(inner) + 1):
        with suppress(FileExistsError):
            os.mkdir(_path(home, *inner[:depth]), 0o700)  # noqa: PTH102
