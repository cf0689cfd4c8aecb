"""What a change of a settings file is made of: entries to hold, and pieces of text put in the place of others. Pure.

Knows nothing about formats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["member", "item", "default"]

OURS = ("grounded-mcp", "grounded_mcp", "grounded-memory-mcp")
"""The command, the module and the distribution: an entry of ours runs one of them."""


class Refused(ValueError):
    """The file cannot take the entry as it is: why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a settings file is to hold.

    ``member``: ``value`` at ``path``. ``item``: an item of the list at ``path``. ``default``: a value that the
    format asks for, such as its version; one that is there stays, and it is never taken out for itself.
    """

    path: tuple[str, ...]
    value: Any
    kind: Kind = "member"


@dataclass(frozen=True, slots=True)
class Splice:
    """At ``start``, ``new`` stands for ``old``. ``made``: how many of the containers around the entry it made.

    ``entry`` is the position of the entry among those of its file.
    """

    start: int
    old: str
    new: str
    made: int = 0
    entry: int = 0

    def apply(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.start + len(self.old) :]


def newline_of(text: str) -> str:
    """The line end that the text's first line has."""
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


def strings(value: Any) -> Iterator[str]:
    """Every text in a value, keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, Sequence):
        for each in value:
            yield from strings(each)


def is_ours(value: Any) -> bool:
    """Whether an entry runs this program, wherever it is installed."""
    return any(name in text for text in strings(value) for name in OURS)


def look(data: Any, path: Sequence[str]) -> Any:
    """The value at a path of keys; None when there is none."""
    for key in path:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data


def holds(data: Any, entry: Entry) -> bool:
    """Whether the data has the entry just as it is to be."""
    found = look(data, entry.path)
    if entry.kind == "item":
        return isinstance(found, list) and [each for each in found if is_ours(each)] == [entry.value]
    return found is not None if entry.kind == "default" else bool(found == entry.value)


def rest(data: Any, entries: Sequence[Entry]) -> Any:
    """The data without what is ours, and without the containers that then hold nothing."""
    for entry in entries:
        data = _without(data, entry, entry.path)
    return data


def _without(data: Any, entry: Entry, path: Sequence[str]) -> Any:
    if not path:
        if entry.kind == "item" and isinstance(data, list):
            return [kept for kept in map(strip_ours, data) if kept is not None]
        return None
    if not isinstance(data, Mapping) or path[0] not in data:
        return data
    inner = _without(data[path[0]], entry, path[1:])
    kept = {key: value for key, value in data.items() if key != path[0]}
    return kept if inner is None or inner in ({}, []) else {**kept, path[0]: inner}


def strip_ours(item: Any) -> Any:
    """An item without what is ours in it: None when nothing else is, and a hook group without our hooks."""
    if not is_ours(item):
        return item
    inner = item.get("hooks") if isinstance(item, Mapping) else None
    if not isinstance(inner, list):
        return None
    others = [each for each in inner if not is_ours(each)]
    return {**item, "hooks": others} if others else None
