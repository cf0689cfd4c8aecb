"""What a document says that the project does not bear out: files that are not there, settings with other values. Pure.

Built to be silent in doubt. A path counts where it stands between backticks and its first folder exists; a setting
where its name is one that only a program would use (``retry_limit``, ``MAX_SIZE``, ``server.port``) and both sides
give it a plain value. Knows nothing about trust, or about where texts come from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

_PATH = re.compile(r"`((?:[\w.@-]+/)+[\w.@-]+\.[A-Za-z]\w{0,7})`")
_NAME = r"(?:[a-z][a-z0-9]*(?:[_.-][a-z0-9]+)+|[A-Z][A-Z0-9]*_[A-Z0-9_]+)"
_VALUE = r"(?:\d+(?:\.\d+)*|true|false|\"[^\"\n]{1,40}\"|'[^'\n]{1,40}')"
_SET = re.compile(rf"(?<![\w.`-])`?({_NAME})`?(?:\s*:\s*\w+)?\s*[=:]\s*`?({_VALUE})`?(?![\w%(\[])", re.M)
_SAID = re.compile(
    rf"`({_NAME})`\s+(?:is|defaults to|default(?: is)?|\(default:?|=)\s*`?({_VALUE})`?(?![\w%])", re.IGNORECASE
)


class Setting(NamedTuple):
    """A name with a plain value, as a text gives it."""

    name: str
    value: str


def gone(text: str, exists: Callable[[str], bool]) -> Iterator[str]:
    """Paths that a text names in backticks and that are not there, though the folder they begin with is."""
    for path in dict.fromkeys(match.group(1) for match in _PATH.finditer(text)):
        if ".." not in path and exists(path.partition("/")[0]) and not exists(path):
            yield path


def stated(text: str) -> dict[str, str]:
    """The settings of a text, by name; one that it gives two values is none."""
    found: dict[str, set[str]] = {}
    for match in (*_SET.finditer(text), *_SAID.finditer(text)):
        found.setdefault(match.group(1).casefold(), set()).add(match.group(2).strip("\"'").casefold())
    return {name: values.pop() for name, values in found.items() if len(values) == 1}


def differing(said: Mapping[str, str], live: Iterable[Mapping[str, str]]) -> Iterator[tuple[Setting, Setting]]:
    """Settings that a document gives another value than every live file that gives them one."""
    files = list(live)
    for name, value in said.items():
        held = {settings[name] for settings in files if name in settings}
        if len(held) == 1 and value not in held:
            yield Setting(name, value), Setting(name, held.pop())
