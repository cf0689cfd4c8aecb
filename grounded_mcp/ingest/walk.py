"""Walking a project's folder and reading its files without trusting either.

Links are never followed, devices and pipes never opened, nothing outside the folder is read, even when something
is swapped for a link meanwhile. What is left out is reported with its reason. Knows nothing about stores.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from grounded_mcp.git import Listing
from grounded_mcp.ingest.selection import Reason, Selection, spec

OWN_IGNORE_FILE = ".groundedignore"
_MAX_IGNORE_BYTES = 1_048_576
_VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".jj", ".bzr"})
_SHOWN_HIDDEN = frozenset({".github", ".gitlab", ".circleci", ".claude", ".cursor", ".vscode", ".devcontainer"})
_OPEN_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)

Ignored = Callable[[str], bool]
"""Whether a path (ending in a slash if it is a folder) is left out by git's rules."""


@dataclass(frozen=True, slots=True)
class Found:
    """A regular file, not opened yet. ``path`` is relative, with ``/`` between segments, as the disk spells it."""

    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """What is not a document, and why; a folder's path ends in a slash and stands for all below it."""

    path: str
    reason: Reason


def walk(root: Path, selection: Selection, listing: Listing | None) -> Iterator[Found | Skipped]:
    """Every file of a project, folder by folder in the order of names.

    With ``listing`` git decides what is ignored; without, ``.gitignore`` files on the way do, and hidden folders
    are left out.
    """
    tracked = _with_folders(listing.blobs) if listing else frozenset()
    folders: list[tuple[str, Ignored]] = [("", listing.ignored.__contains__ if listing else _never)]
    files = 0
    while folders:
        folder, ignored = folders.pop()
        try:
            with os.scandir(root / folder) as entries:
                names = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            yield Skipped(folder or "./", "unreadable")
            continue
        if folder and any(entry.name == ".git" for entry in names):
            yield Skipped(folder, "nested repository")
            continue
        if listing is None:
            ignored = _with_gitignore(root, folder, ignored)
        below = []
        for entry in names:
            outcome = _judge(entry, folder + entry.name, selection, ignored, tracked, git=listing is not None)
            if isinstance(outcome, str):
                below.append((outcome, ignored))
                continue
            files += isinstance(outcome, Found)
            if files > selection.options.max_files:
                yield Skipped(folder + entry.name, "over the file limit")
                return
            if outcome:
                yield outcome
        folders.extend(reversed(below))


def _judge(
    entry: os.DirEntry[str], path: str, selection: Selection, ignored: Ignored, tracked: frozenset[str], *, git: bool
) -> Found | Skipped | str | None:
    """What an entry is: a file, a skip, a folder to descend into (its path), or nothing worth a word."""
    if entry.name in _VERSION_CONTROL:
        return None
    try:
        found = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError:
        return Skipped(path, "unreadable")
    is_folder = stat.S_ISDIR(found.st_mode)
    path += "/" if is_folder else ""
    refusal = selection.refusal(readable(path), tracked=path in tracked)
    if refusal is None and ignored(path):
        refusal = "ignored"
    if refusal is None and is_folder and not git and entry.name[0] == "." and entry.name not in _SHOWN_HIDDEN:
        refusal = "hidden folder"
    if refusal is None and stat.S_ISLNK(found.st_mode):
        refusal = "link"
    if refusal is None and not is_folder and not stat.S_ISREG(found.st_mode):
        refusal = "not a regular file"
    if refusal is None and not is_folder and found.st_size > selection.size_limit(path):
        refusal = "too large"
    if refusal:
        return Skipped(path, refusal)
    return path if is_folder else Found(path, found.st_size, found.st_mtime_ns)


# --- what is ignored --------------------------------------------------------------------------------------


def own_ignore_lines(root: Path) -> tuple[str, ...]:
    """The lines of the project's ``.groundedignore``; none when it is not a plain file."""
    return tuple(_ignore_lines(root, OWN_IGNORE_FILE))


def _with_gitignore(root: Path, folder: str, outer: Ignored) -> Ignored:
    """``outer``, and the folder's own ``.gitignore``, whose word comes first where it has one."""
    lines = _ignore_lines(root, folder + ".gitignore")
    if not lines:
        return outer
    patterns = spec(lines)

    def ignored(path: str) -> bool:
        own = patterns.check_file(readable(path.removeprefix(folder))).include
        return outer(path) if own is None else own

    return ignored


def _ignore_lines(root: Path, path: str) -> Sequence[str]:
    data = read_bytes(root, path, _MAX_IGNORE_BYTES)
    return data.decode("utf-8-sig", "replace").splitlines() if isinstance(data, bytes) else ()


def _never(path: str) -> bool:
    return False


def _with_folders(paths: Iterable[str]) -> frozenset[str]:
    """The paths, and every folder on the way to one."""
    parents = (f"{parent}/" for path in paths for parent in PurePosixPath(path).parents)
    return frozenset(parents) | frozenset(paths)


def readable(path: str) -> str:
    """A path without undecodable bytes, for matching and showing."""
    return path.encode("utf-8", "replace").decode("utf-8") if not path.isascii() else path


# --- reading ----------------------------------------------------------------------------------------------


def read_bytes(root: Path, path: str, limit: int) -> bytes | Reason:
    """A file's content, or why it cannot be had. Never blocks, follows a link or leaves ``root``."""
    target = root / path
    try:
        handle = os.open(target, _OPEN_FLAGS)
    except OSError:
        return "link" if target.is_symlink() else "unreadable"
    with os.fdopen(handle, "rb") as file:
        try:
            opened = os.fstat(handle)
            if not stat.S_ISREG(opened.st_mode):
                return "not a regular file"
            if not _is_inside(root, target, opened):
                return "outside the project"
            # Some files of /proc would block, and were opened not to: then there is nothing, not even an end.
            data: bytes | None = file.read(limit + 1)
        except OSError:
            return "unreadable"
    if data is None:
        return "unreadable"
    return data if len(data) <= limit else "too large"


def _is_inside(root: Path, target: Path, opened: os.stat_result) -> bool:
    """Whether the opened file is the one that lies at this path within the root, however the path leads there.

    A folder on the way may have been swapped for a link after it was listed.
    """
    real = Path(os.path.realpath(target))
    return real.is_relative_to(os.path.realpath(root)) and os.path.samestat(real.stat(), opened)


_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f\x1b") | {127})
_PRINTABLE = bytes(set(range(32, 127)) | set(b"\t\n\r"))
_MAX_CONTROL_SHARE = 0.05
_MIN_ASCII_SHARE = 0.7
"""Text in a legacy 8-bit encoding of a Latin language is mostly ASCII; other scripts would come out as noise."""
_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_LONG_LINE = re.compile(r"[^\n]{5000}")
_MEAN_LINE = 500


def decode(path: str, data: bytes) -> str | Skipped:
    """The text of a file, or why it is none: UTF-8, UTF-16 with a mark, or Windows-1252 as a last resort."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            try:
                return data.decode(encoding)
            except UnicodeDecodeError:
                return Skipped(path, "undecodable")
    if len(data) - len(data.translate(None, _CONTROL)) > _MAX_CONTROL_SHARE * len(data):
        return Skipped(path, "binary")
    try:
        return data.decode("utf-8")  # a stray NUL makes no text binary (case 14); the redactor drops it
    except UnicodeDecodeError:
        if b"\0" in data:
            return Skipped(path, "binary")
        ascii_share = 1 - len(data.translate(None, _PRINTABLE)) / len(data)
        return data.decode("cp1252", "replace") if ascii_share >= _MIN_ASCII_SHARE else Skipped(path, "undecodable")


def is_minified(text: str) -> bool:
    """Whether a program was squeezed into a few endless lines."""
    return len(text) > _MEAN_LINE * (text.count("\n") + 1) and _LONG_LINE.search(text) is not None
