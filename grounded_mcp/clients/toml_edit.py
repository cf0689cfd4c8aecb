"""Put a table into a TOML document and take it out again, as a block of lines of its own. Pure.

A block at the end is right in every TOML document and leaves every other character alone; the libraries that edit
TOML place a table where they see fit, and leave blank lines behind when it goes. Knows nothing about files.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grounded_mcp.clients.splicing import Entry, Refused, Splice, is_ours, look, newline_of

# What a bracket or a line end has no meaning inside of; then the brackets and line ends themselves.
_TOKEN = re.compile(
    r'#[^\r\n]*|"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\r\n]|\\.)*"|\'[^\'\r\n]*\'|[\[\]{}\n]', re.DOTALL
)
_BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class _Block:
    """A table from its header to the end of its last line; what stands between it and the next is nobody's."""

    path: tuple[str, ...]
    start: int
    end: int


def load(text: str) -> Any:
    """The document as plain data. Raises: ValueError naming the line."""
    return tomllib.loads(text.replace("\r\n", "\n"))


def put(text: str, entry: Entry) -> Splice:
    """The splice that gives the document the table. Raises: ValueError, Refused."""
    newline = newline_of(text)
    body = _rendered(entry.path, entry.value, newline)
    if look(load(text), entry.path) is None:
        lead = "" if not text or text.endswith("\n") else newline
        return Splice(len(text), "", f"{lead}{newline if text.strip() else ''}{body}{newline}")
    start, end = _span(text, entry.path)
    return Splice(start, text[start:end], body)


def cut(text: str, entry: Entry, made: int) -> str:
    """The text without the table, if it is ours: its lines, and the blank one in front of it."""
    del made  # the tables around it are written as part of its name
    if not is_ours(look(load(text), entry.path)):
        return text
    start, end = _span(text, entry.path)
    before, after = text[:start], text[end:]
    after = after.removeprefix("\r").removeprefix("\n")
    for blank in ("\r\n\r\n", "\n\n"):
        if before.endswith(blank):
            before = before.removesuffix(blank[len(blank) // 2 :])
            break
    return before + after


def _span(text: str, path: Sequence[str]) -> tuple[int, int]:
    """From the table's header to the end of the last line of it and of the tables inside it."""
    mine = [block for block in _blocks(text) if block.path[: len(path)] == tuple(path)]
    if not mine or mine[0].path != tuple(path):
        raise Refused(f"[{'.'.join(path)}] is not written as a table of its own")
    others = [b for b in _blocks(text) if mine[0].start < b.start < mine[-1].start and b not in mine]
    if others:
        raise Refused(f"[{'.'.join(path)}] and the tables inside it do not stand together")
    return mine[0].start, mine[-1].end


def _blocks(text: str) -> Iterator[_Block]:
    headers = list(_headers(text))
    for at, (start, path) in enumerate(headers):
        limit = headers[at + 1][0] if at + 1 < len(headers) else len(text)
        end = start
        for line in re.finditer(r"[^\n]*\n?", text[start:limit]):
            if line[0].strip() and not line[0].lstrip().startswith("#"):
                end = start + line.start() + len(line[0].rstrip("\r\n"))
        yield _Block(path, start, end)


def _headers(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Where each header stands, and the path it names."""
    depth, line, until = 0, 0, 0
    for token in _TOKEN.finditer(text):
        if token.start() < until:
            continue
        if token[0] == "\n":
            line = token.end()
        elif token[0] == "[" and depth == 0 and not text[line : token.start()].strip():
            end = text.find("\n", token.start())
            until = len(text) if end < 0 else end
            yield line, _named(text[line:until].rstrip("\r"))
        elif token[0] in ("[", "{"):
            depth += 1
        elif token[0] in ("]", "}"):
            depth -= 1


def _named(header: str) -> tuple[str, ...]:
    data, path = load(header), []
    while data:
        key, data = next(iter(data.items()))
        path.append(key)
        data = data[0] if isinstance(data, list) else data
    return tuple(path)


def _rendered(path: Sequence[str], table: Mapping[str, Any], newline: str) -> str:
    lines = [f"[{'.'.join(map(_key, path))}]"]
    lines += [f"{_key(key)} = {_value(value)}" for key, value in table.items()]
    return newline.join(lines)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items()) + " }"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)


def _text(text: str) -> str:
    """A basic string: JSON's escapes are TOML's, but for DEL, which TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
