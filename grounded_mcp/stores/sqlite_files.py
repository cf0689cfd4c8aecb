"""The store's file as a file: where it may be created, who may read it, and which file system it lies on.

Never opens the file itself: closing a second descriptor would drop the locks of this process's connections.
Knows nothing about SQL.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

logger = logging.getLogger(__name__)

SIDE_FILES = ("-wal", "-shm", "-journal")

NETWORK_TYPES = re.compile(r"nfs\d?|cifs|smb\d?|smbfs|9p|afs|ceph|glusterfs|lustre|virtiofs|vboxsf|prl_fs|fuse(\..*)?")
"""File systems whose locks or shared memory the write-ahead log cannot rely on. ``fuseblk`` is a local disk."""

MOUNTS = Path("/proc/self/mountinfo")


def filesystem_of(path: Path) -> str:
    """The type of the file system that a path is on (``ext4``, ``nfs4``), empty where the system does not say.

    Linux only, from proc(5) mountinfo: the mount point is field 5, the type the first field after `` - ``.
    On Windows a UNC path counts as ``smb``.
    """
    if str(path).startswith("\\\\"):
        return "smb"
    best, found = -1, ""
    with suppress(OSError):
        for line in MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
            before, _, after = line.partition(" - ")
            point = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), before.split(" ")[4])
            if len(point) >= best and path.is_relative_to(point):
                best, found = len(point), after.split(" ")[0]
    return found


def is_network(filesystem: str) -> bool:
    return NETWORK_TYPES.fullmatch(filesystem) is not None


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents for this user alone. What exists keeps its mode."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)


@contextmanager
def private_draft(path: Path) -> Iterator[Path]:
    """A new empty file beside ``path``, readable by this user alone; gone afterwards unless it was published.

    SQLite gives -wal and -shm the mode of the database, so that they are private from their first byte (case 62).
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.new")
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        yield draft
    finally:
        for each in (draft, *(Path(f"{draft}{side}") for side in SIDE_FILES)):
            each.unlink(missing_ok=True)


def publish(draft: Path, path: Path) -> bool:
    """Give a finished file its name in one step; False when another process was first. Never replaces a file."""
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links; on Windows rename() does not replace either
        if path.exists():
            return False
        draft.rename(path)
    return True


def tighten(path: Path) -> tuple[str, ...]:
    """Take everybody else's access to the store's files away; what could not be, and risky folders, as warnings."""
    if os.name != "posix":
        return ()
    return (*_tighten_files(path), *_risky_folders(path.parent))


def _tighten_files(path: Path) -> Iterator[str]:
    for each in (path, *(Path(f"{path}{side}") for side in SIDE_FILES)):
        with suppress(FileNotFoundError):
            found = each.stat()
            if found.st_uid != os.geteuid():
                yield f"{each} belongs to another user (uid {found.st_uid})."
            elif found.st_mode & 0o077:
                mode = found.st_mode & 0o600  # takes away, and gives nothing: who may not write may not afterwards
                try:
                    each.chmod(mode)
                except OSError as error:
                    yield f"{each} can be read by other users, and its mode cannot be changed ({error})."
                else:
                    logger.warning("%s could be read by other users; its mode is %04o now", each, mode)


def _risky_folders(folder: Path) -> Iterator[str]:
    for each in (folder, *folder.parents):
        mode = each.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            yield f"Every user may rename or replace files in {each}."


def identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from its replacement under the same name; None when there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def size_on_disk(path: Path) -> int:
    """Bytes of the database and its write-ahead log."""
    total = 0
    for each in (path, Path(f"{path}-wal")):
        with suppress(FileNotFoundError):
            total += each.stat().st_size
    return total


def has_pending_log(path: Path) -> bool:
    """Whether a write-ahead log beside the file holds anything."""
    try:
        return Path(f"{path}-wal").stat().st_size > 0
    except OSError:
        return False
