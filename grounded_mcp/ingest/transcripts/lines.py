"""JSON lines from a file that may be huge, cut off, or still being written: one record in memory at a time.

Knows what a line is, and nothing about what a record means.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from grounded_mcp.ingest.transcripts.turns import Tally

MAX_LINE_BYTES = 8 * 1024 * 1024
"""A longer record holds an image or a file, not conversation; reading it would cost several times its size."""

_CHUNK = 1 << 20
_BLANK = b" \t\r\n\0\xef\xbb\xbf"


class Line(NamedTuple):
    """One record: where it starts in the file, in bytes, and what it holds."""

    offset: int
    record: dict[str, Any]


def records(path: Path, tally: Tally, offset: int = 0, limit: int = MAX_LINE_BYTES) -> Iterator[Line]:
    """The JSON objects of a file, one a line, from ``offset`` on (the start of a line).

    A last line without a line end counts only if it is whole: otherwise it is still being written, and waits.
    Lines that are no object, or longer than ``limit`` bytes, are counted in ``tally`` and left out.
    Raises: OSError.
    """
    with open_plain(path) as file:
        file.seek(offset)
        tally.end = offset
        while True:
            start, raw, whole = tally.end, *_line(file, limit)
            if not raw and whole:
                return
            if not whole and raw.strip(_BLANK) and _object(raw) is None:
                tally.skip("unfinished last line", f"byte {start}")
                return
            tally.end = file.tell()
            yield from _taken(raw, start, limit, tally)


def _taken(raw: bytes, start: int, limit: int, tally: Tally) -> Iterator[Line]:
    if not raw.strip(_BLANK):
        return
    tally.seen += 1
    if len(raw) > limit:
        tally.skip("longer than the limit", f"byte {start}")
        return
    found = _object(raw)
    if found is None:
        tally.skip("not a JSON object", f"byte {start}")
    else:
        yield Line(start, found)


def _line(file: IO[bytes], limit: int) -> tuple[bytes, bool]:
    """The next line, cut after ``limit`` + 1 bytes; the file then stands behind it. False where no line end came."""
    raw = file.readline(limit + 1)
    if not raw:
        return b"", True
    if raw.endswith(b"\n"):
        return raw, True
    if len(raw) <= limit:
        return raw, False
    while True:
        rest = file.readline(_CHUNK)
        if not rest:
            return raw, False
        if rest.endswith(b"\n"):
            return raw, True


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(raw.strip(_BLANK).decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def open_plain(path: Path) -> IO[bytes]:
    """A regular file, opened for reading without waiting. Raises: OSError, also for a pipe, a device or a folder."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{path.name} is not a regular file")
    return os.fdopen(handle, "rb")


def stamp_of(path: Path) -> str:
    """Size and time of a file, which change when it does. Raises: OSError."""
    found = path.stat()
    return f"{found.st_size}:{found.st_mtime_ns}"
