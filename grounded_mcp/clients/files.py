"""Settings files as bytes: read whole, written in one step, and only over what was read.

A file that is a link stays one: what it leads to is written. Knows nothing about what is inside.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import suppress
from pathlib import Path

from grounded_mcp.errors import ClientError

PRIVATE = 0o600
"""A file that we make may come to hold tokens of other servers, as those of its client do."""


def read(path: Path) -> bytes | None:
    """What the file holds; None when there is none. Raises: ClientError when it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _failed(path, "read", error) from error


def missing_folders(path: Path) -> tuple[Path, ...]:
    """The folders that have to be made for a file, outermost first. Raises: ClientError."""
    return tuple(each for each in reversed(_target(path).parents) if not each.exists())


def write(path: Path, content: bytes, *, over: bytes | None) -> None:
    """Put ``content`` in the place of ``over``, which None says is no file, and make its folders.

    Raises: ClientError when the file holds something else by now, or cannot be written. It is then as it was.
    """
    target = _target(path)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _check(path, over)
        with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if over is not None:
            draft.chmod(target.stat().st_mode & 0o7777)
        _check(path, over)
        draft.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise _failed(path, "written", error) from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def remove(path: Path, *, over: bytes, folders: tuple[Path, ...] = ()) -> None:
    """Delete a file that holds ``over``, and those of ``folders`` that are empty then. Raises: ClientError."""
    _check(path, over)
    try:
        _target(path).unlink()
    except OSError as error:
        raise _failed(path, "deleted", error) from error
    for folder in reversed(folders):
        with suppress(OSError):
            folder.rmdir()


def fingerprint(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _check(path: Path, expected: bytes | None) -> None:
    if read(path) != expected:
        raise ClientError(f"{path} was changed by another program in the meantime.", "Run the command again.")


def _target(path: Path) -> Path:
    """Where a link leads, even when nothing is there yet."""
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise _failed(path, "found", error) from error


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a loss of power, where folders can be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _failed(path: Path, what: str, error: Exception) -> ClientError:
    reason = (getattr(error, "strerror", None) or str(error)).lower()
    return ClientError(f"{path} cannot be {what}: {reason}.", "It is as it was; see to its permissions and repeat.")
