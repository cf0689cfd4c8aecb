"""Files that a person names for a memory to be written to or read from (cases 53 and 62).

A name is a path of this machine, taken as it stands: no URL, no decoding, no share of another machine. Nothing is
written through a link, nothing outside the folder that was named, and nobody else can read it. Knows no formats.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from grounded_mcp.errors import InputError
from grounded_mcp.stores.sqlite_files import make_private_folder, private_draft, publish


def named(path: str, field: str = "file") -> Path:
    """The path that a person means, in its real folder. Raises: InputError."""
    if "://" in path or path.lower().startswith("file:"):
        raise InputError(field, f"{path[:200]!r} is a URL.", "Give the path of a file.")
    if path.startswith(("\\\\", "//")):
        raise InputError(field, f"{path[:200]!r} is on another machine.", "Give a path of this one.")
    if not path.strip() or "\0" in path:
        raise InputError(field, "it names no file.", "Give the path of a file.")
    given = Path(path).expanduser()
    folder = Path(os.path.realpath(given.parent))
    if given.name in ("", ".", "..") or not folder.is_dir():
        raise InputError(field, f"there is no folder {folder}.", "Make it first, or name another.")
    return folder / given.name


def private_folder(folder: Path) -> Path:
    """A folder of this user alone, made if need be, by its real name."""
    make_private_folder(folder)
    return folder.resolve()


@contextmanager
def written(target: Path, *, force: bool) -> Iterator[BinaryIO]:
    """A new file that appears under its name, mode 0600, once all of it is written.

    Raises: InputError where something is there already and ``force`` does not say to replace it: only ever a file.
    """
    check_free(target, force=force)
    with private_draft(target) as draft:
        with draft.open("wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        settle(draft, target, force=force)


@contextmanager
def beside(target: Path) -> Iterator[Path]:
    """A name in the folder of a file that nothing has yet; what is under it afterwards is removed."""
    path = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def settle(draft: Path, target: Path, *, force: bool) -> None:
    """Give a finished file its name. A link under that name is replaced, never followed. Raises: InputError."""
    if force:
        check_free(target, force=True)
        draft.replace(target)
    elif not publish(draft, target):
        raise _taken(target)


def check_free(target: Path, *, force: bool) -> None:
    try:
        found = target.lstat()
    except OSError:
        return
    if not force:
        raise _taken(target)
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
        raise InputError("file", f"{target} is no file.", "Name another.")


@contextmanager
def opened(source: Path) -> Iterator[BinaryIO]:
    """A file to read: a real one, not a link, a folder or a device. Raises: InputError."""
    try:
        handle = os.open(source, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        told = f"{source} cannot be read: {error.strerror or error}."
        raise InputError("file", told, "Name a file of yours itself, not a link to it.") from error
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise InputError("file", f"{source} is no file.", "Name a file that `grounded-mcp export` wrote.")
        yield file


def _taken(target: Path) -> InputError:
    return InputError("file", f"{target} exists already.", "Name another, or add --force to replace it.")
