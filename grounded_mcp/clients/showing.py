"""A change of a settings file as a person reads it before agreeing to it. Pure.

Some clients keep everything in one line, so that a long line is shown around what changes in it: all of that, and a
little on both sides. Knows nothing about formats.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

CONTEXT, MAX_LINE, BESIDE = 2, 200, 60
"""Lines around a difference; characters of a line that is shown as it is; characters on both sides of a change."""


def difference(path: str, before: bytes | None, after: bytes | None) -> str:
    """A unified difference; None stands for a file that is not there. Empty when there is none."""
    old, new = ((each or b"").decode("utf-8", "replace").splitlines() for each in (before, after))
    was, becomes = (path if each is not None else "(none)" for each in (before, after))
    found = list(difflib.unified_diff(old, new, was, becomes, n=CONTEXT, lineterm=""))
    return "\n".join([*found[:2], *_short(found[2:])])


def _short(lines: Sequence[str]) -> Iterator[str]:
    """The lines, long ones cut: those that take the place of another around what differs from it."""
    at = 0
    while at < len(lines):
        gone = _run(lines, at, "-")
        come = _run(lines, at + len(gone), "+")
        pairs = [_around(old[1:], new[1:]) for old, new in zip(gone, come, strict=False)]
        yield from (f"-{old}" for old, _ in pairs)
        yield from map(_cut, gone[len(pairs) :])
        yield from (f"+{new}" for _, new in pairs)
        yield from come[len(pairs) :]
        at += len(gone) + len(come)
        if not gone and not come:
            yield _cut(lines[at])
            at += 1


def _run(lines: Sequence[str], at: int, sign: str) -> list[str]:
    end = at
    while end < len(lines) and lines[end].startswith(sign):
        end += 1
    return list(lines[at:end])


def _around(old: str, new: str) -> tuple[str, str]:
    if max(len(old), len(new)) <= MAX_LINE:
        return old, new
    start = _shared(old, new)
    end = _shared(reversed(old[start:]), reversed(new[start:]))
    left, right = max(0, start - BESIDE), max(0, end - BESIDE)
    shown = (each[left : len(each) - right] for each in (old, new))
    old, new = (f"{'… ' if left else ''}{each}{' …' if right else ''}" for each in shown)
    return old, new


def _shared(one: Iterable[str], other: Iterable[str]) -> int:
    """How many characters both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _cut(line: str) -> str:
    return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]} …"
