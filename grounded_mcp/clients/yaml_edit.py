"""Put an item into a YAML document's top-level list and take it out again, by lines. Pure.

Round-trip YAML writers lay out a document anew, so this writes lines, and only where a list is written one item a
line; PyYAML reads what came out. Knows nothing about files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from grounded_mcp.clients.splicing import Entry, Refused, Splice, is_ours, newline_of

_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_EMPTY = re.compile(r"[ \t]*(\[[ \t]*\]|~|null)?[ \t]*(#[^\r\n]*)?[\r\n]*")


def load(text: str) -> Any:
    """The document as plain data. Raises: ValueError naming the line."""
    import yaml

    try:
        return yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ValueError(f"line {mark.line + 1 if mark else '?'}: {getattr(error, 'problem', error)}") from error


def put(text: str, entry: Entry) -> Splice:
    """The splice that gives the list the item, at its end. Raises: ValueError, Refused."""
    newline, (key,) = newline_of(text), entry.path
    data = load(text)
    if not isinstance(data, Mapping):
        raise Refused("the document is no table of keys")
    for start, end in _items(text, key):
        if is_ours(load(text[start:end])):
            indent = len(text[start:end]) - len(text[start:end].lstrip(" "))
            tail = "" if not text[start:end].endswith("\n") else newline
            return Splice(start, text[start:end], newline.join(_lines(entry.value, " " * indent)) + tail)
    head = _head(text, key)
    if head is None:
        lead = "" if not text or text.endswith("\n") else newline
        body = newline.join((f"{key}:", *_lines(entry.value, "  ")))
        return Splice(len(text), "", f"{lead}{body}{newline}", 1)
    items = list(_items(text, key))
    if items:
        indent = len(text[items[0][0] :]) - len(text[items[0][0] :].lstrip(" "))
        return _after(text, items[-1][1], _lines(entry.value, " " * indent), newline)
    line = text[head[0] : head[1]]
    value = line.partition(":")[2]
    found = _EMPTY.fullmatch(value)
    if found is None:
        raise Refused(f"{key} is not written as one item a line")
    if found[1] is None:
        return _after(text, head[1], _lines(entry.value, "  "), newline)
    kept = line.rstrip("\r\n").replace(found[1], "", 1).rstrip(" ")
    body = newline.join((kept, *_lines(entry.value, "  ")))
    return Splice(head[0], line, body + (newline if line.endswith("\n") else ""))


def cut(text: str, entry: Entry, made: int) -> str:
    """The text without our items, and without the key too if it was made for them and holds nothing now."""
    (key,), before = entry.path, text
    for start, end in reversed(list(_items(text, key))):
        if is_ours(load(text[start:end])):
            text = text[:start] + text[end:]
    head = _head(text, key)
    if head and made and text != before and not load(text).get(key):
        text = text[: head[0]] + text[head[1] :]
    return text


def _after(text: str, at: int, lines: Sequence[str], newline: str) -> Splice:
    """Whole lines behind a line that ends at ``at``, which may be the last and lack its line end."""
    body = newline.join(lines)
    ended = text[:at].endswith("\n")
    return Splice(at, "", f"{body}{newline}" if ended else f"{newline}{body}")


def _head(text: str, key: str) -> tuple[int, int] | None:
    """The line that names a top-level key."""
    name = re.compile(rf"""["']?{re.escape(key)}["']?[ \t]*:(?=[ \t\r\n]|\Z)""")
    return next(((line.start(), line.end()) for line in _LINE.finditer(text) if name.match(line[0])), None)


def _items(text: str, key: str) -> Iterator[tuple[int, int]]:
    """The lines of each item of a top-level list, without the blank lines and comments behind it."""
    head = _head(text, key)
    start = end = None
    depth = -1
    for line in _LINE.finditer(text, head[1]) if head else ():
        body = line[0].strip()
        if not body or body.startswith("#"):
            continue
        indent = len(line[0]) - len(line[0].lstrip(" "))
        dash = re.match(r"-(?=\s|\Z)", body) is not None
        if depth < 0 and not dash:
            return
        depth = indent if depth < 0 else depth
        if indent < depth or (indent == depth and not dash):
            break
        if indent == depth:
            if start is not None and end is not None:
                yield start, end
            start = line.start()
        end = line.end()
    if start is not None and end is not None:
        yield start, end


def _lines(item: Mapping[str, Any], indent: str) -> tuple[str, ...]:
    lead = [f"{indent}- "] + [f"{indent}  "] * (len(item) - 1)
    return tuple(
        f"{at}{key}: {json.dumps(value, ensure_ascii=False)}"
        for at, (key, value) in zip(lead, item.items(), strict=True)
    )
