"""The two ends of the stdio wire: descriptors, lines and bytes. Standard library only, so that it can come first.

``claim`` takes file descriptors 0 and 1 for the protocol before anything else is imported, so that whatever
prints later (an import, a C library, a child process) prints to stderr. Knows nothing about JSON-RPC methods.
"""

from __future__ import annotations

import os
import re
import select
import sys
from collections.abc import Iterator
from dataclasses import dataclass

_CHUNK = 65_536
_HEAD = 1_024
"""How much of either end of an unreadable line is kept to find its id in."""


@dataclass(frozen=True, slots=True)
class Wire:
    """Private duplicates of the original stdin and stdout; children do not inherit them."""

    reading: int
    writing: int

    def read(self) -> bytes:
        """The next bytes, empty at the end of input. An input that fails has ended."""
        try:
            return os.read(self.reading, _CHUNK)
        except OSError:
            return b""

    def write(self, data: bytes) -> None:
        """All of ``data``. Raises: OSError where nobody reads any more."""
        view = memoryview(data)
        while view:
            view = view[os.write(self.writing, view) :]

    def reader_gone(self) -> bool:
        """Whether the other end of stdout is closed, asked without writing. Always False on Windows."""
        if not hasattr(select, "poll"):
            return False
        poll = select.poll()
        poll.register(self.writing, 0)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


_claimed: Wire | None = None


def claim() -> Wire:
    """Take stdin and stdout for the protocol; the second call returns the first call's wire.

    Descriptor 0 then reads nothing, descriptor 1 and ``sys.stdout`` lead to stderr.
    """
    global _claimed
    if _claimed is None:
        _claimed = Wire(reading=_set_aside(0), writing=_set_aside(1))
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        if not _is_open(2):
            # Otherwise the next file to be opened, the store perhaps, would be given to whoever prints to stderr.
            os.dup2(null, 2)
        os.dup2(2, 1)
        if sys.stdout is not None:
            sys.stdout.flush()
        sys.stdout = sys.stderr
    return _claimed


def _set_aside(descriptor: int) -> int:
    """A duplicate above the standard range; a closed descriptor is stood in for by the null device."""
    source = descriptor if _is_open(descriptor) else os.open(os.devnull, os.O_RDWR)
    spare = []
    while (duplicate := os.dup(source)) <= 2:
        spare.append(duplicate)
    for low in spare:
        os.close(low)
    return duplicate


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Oversized:
    """A line longer than the limit: its length and both its ends, the middle was never kept."""

    length: int
    head: bytes
    tail: bytes


def lines(wire: Wire, limit: int) -> Iterator[bytes | Oversized]:
    """Each line without its end, in at most ``limit`` bytes of memory plus one chunk; blank lines are left out.

    The last line needs no newline.
    """
    kept = bytearray()
    length = 0
    while chunk := wire.read():
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            length = _keep(kept, length, part, limit)
            if line := _line(kept, length, limit):
                yield line
            kept, length = bytearray(), 0
        length = _keep(kept, length, rest, limit)
    if line := _line(kept, length, limit):
        yield line


def _keep(kept: bytearray, length: int, part: bytes, limit: int) -> int:
    """Append ``part``; past the limit only the two ends stay."""
    kept += part
    length += len(part)
    if length > limit:
        del kept[_HEAD : max(_HEAD, len(kept) - _HEAD)]
    return length


def _line(kept: bytearray, length: int, limit: int) -> bytes | Oversized | None:
    if length > limit:
        return Oversized(length, bytes(kept[:_HEAD]), bytes(kept[_HEAD:]))
    return bytes(kept).strip() or None


_ID = rb'(-?\d{1,18}|"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]){0,256}")'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
_ID_FIRST = re.compile(
    rb'\s*\{(?:\s*"(?:jsonrpc|method)"\s*:\s*"[^"\\]{0,256}"\s*,)*\s*"id"\s*:\s*' + _ID + rb"\s*[,}]"
)
_ID_LAST = re.compile(
    _VERSION + rb'\s*,\s*"id"\s*:\s*' + _ID + rb'\s*\}\s*$|"id"\s*:\s*' + _ID + rb"\s*,\s*" + _VERSION + rb"\s*\}\s*$"
)


def find_id(head: bytes, tail: bytes) -> bytes | None:
    """The JSON text of a request's id, from the two ends of a line that cannot be parsed.

    Only places that belong to the outermost object count: before its ``params``, or beside ``jsonrpc`` at its end.
    """
    found = _ID_FIRST.match(head) or _ID_LAST.search(tail)
    return found[found.lastindex or 0] if found else None
