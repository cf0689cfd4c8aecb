"""Put entries into JSON with comments and take them out again, in the text's own style. Pure.

Only characters at the entry's own place change. Knows nothing about files and clients.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from grounded_mcp.clients.jsonc import Child, Node, parse, plain, skip
from grounded_mcp.clients.splicing import Entry, Refused, Splice, is_ours, newline_of

_SAME_LINE_COMMENT = re.compile(r"[ \t]*(?://[^\r\n]*|/\*(?:(?!\*/)[^\r\n])*\*/[ \t]*(?=[\r\n]|\Z))")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_LINE_END = re.compile(r"[ \t]*\r?\n")
_INDENT = re.compile(r"[ \t]*")
_BLANKS = " \t\r\n"


def put(text: str, entry: Entry) -> Splice:
    """The splice that makes the text hold the entry. Raises: Unreadable, Refused."""
    root = parse(text)
    if root is None:
        lead = newline_of(text) if text and not text.endswith(("\n", "\r")) else ""
        body = _rendered(_wrapped(entry, entry.path), "", "  ", newline_of(text))
        return Splice(len(text), "", f"{lead}{body}{newline_of(text)}", len(entry.path) - (entry.kind != "item"))
    node, depth = _deepest(root, entry.path)
    if depth == len(entry.path) and entry.kind == "item":
        return _put_item(text, root, node, entry)
    if depth == len(entry.path):
        new = _rendered(entry.value, _indent_at(text, node.start), _unit(text, root), newline_of(text))
        return Splice(node.start, text[node.start : node.end], new)
    if node.kind != "object":
        raise Refused(f"{'.'.join(entry.path[:depth]) or 'the document'} is no object")
    missing = entry.path[depth:]
    return _inserted(
        text, root, node, missing[0], _wrapped(entry, missing[1:]), made=len(missing) - (entry.kind != "item")
    )


def cut(text: str, entry: Entry, made: int) -> str:
    """The text without the entry; containers that are then empty go with it, up to ``made`` of them."""
    if entry.kind == "default":
        return text
    before = text
    while (spot := _ours(parse(text), entry)) is not None:
        text = _without(text, *spot)
    if text == before:
        return text
    boxes = entry.path if entry.kind == "item" else entry.path[:-1]
    for depth in range(len(boxes), len(boxes) - made, -1):
        emptied = _without_empty(text, boxes[:depth])
        if emptied is None:
            break
        text = emptied
    return text


def _without_empty(text: str, path: Sequence[str]) -> str | None:
    """The text without an empty container; None when there is none at the path."""
    root = parse(text)
    if root is None or not path:
        return None
    parent, depth = _deepest(root, path[:-1])
    inner = parent.get(path[-1])
    if depth < len(path) - 1 or inner is None or inner.kind == "scalar" or inner.children:
        return None
    return _without(text, parent, next(at for at, each in enumerate(parent.children) if each.node == inner))


def _put_item(text: str, root: Node, node: Node, entry: Entry) -> Splice:
    if node.kind != "array":
        raise Refused(f"{'.'.join(entry.path)} is no list")
    mine = next((child.node for child in node.children if is_ours(plain(child.node))), None)
    if mine is None:
        return _inserted(text, root, node, None, entry.value, made=0)
    new = _rendered(entry.value, _indent_at(text, mine.start), _unit(text, root), newline_of(text))
    return Splice(mine.start, text[mine.start : mine.end], new)


def _deepest(root: Node, path: Sequence[str]) -> tuple[Node, int]:
    """The innermost node on the path that exists, and how many keys lead to it."""
    node = root
    for depth, key in enumerate(path):
        inner = node.get(key)
        if inner is None:
            return node, depth
        node = inner
    return node, len(path)


def _ours(root: Node | None, entry: Entry) -> tuple[Node, int] | None:
    """The container and the position of something of ours at the entry's place."""
    if root is None:
        return None
    path = entry.path if entry.kind == "item" else entry.path[:-1]
    box, depth = _deepest(root, path)
    if depth != len(path) or box.kind == "scalar":
        return None
    for at, child in enumerate(box.children):
        if entry.kind == "member" and child.key != entry.path[-1]:
            continue
        if is_ours(value := plain(child.node)):
            inner = child.node.get("hooks") if entry.kind == "item" else None
            if inner is None or inner.kind != "array" or all(map(is_ours, value["hooks"])):
                return box, at
            return inner, next(i for i, each in enumerate(value["hooks"]) if is_ours(each))
    return None


def _without(text: str, box: Node, at: int) -> str:
    """The text without one child, its comma and the blanks in front of it."""
    child = box.children[at]
    before = box.children[at - 1].end if at else box.start + 1
    lead = len(text[: child.start].rstrip(_BLANKS))
    comma = skip(text, child.end)
    if text[comma] == ",":
        follows = box.children[at + 1].start if at + 1 < len(box.children) else comma + 1
        if "\n" not in text[lead : child.start] and not text[comma + 1 : follows].strip(_BLANKS):
            return text[: child.start] + text[follows:]
        return _joined(text, before, lead, comma + 1)
    if at:
        own = skip(text, before)  # the comma that stood between the two
        return text[:own] + _joined(text, own + 1, lead, child.end)[own + 1 :]
    alone = not text[child.end : box.end - 1].strip(_BLANKS) and lead == before
    return _joined(text, before, lead, box.end - 1 if alone else child.end)


def _joined(text: str, after: int, lead: int, until: int) -> str:
    """The text without what lies from ``lead`` to ``until``; a line comment in front of it keeps its line end.

    ``after``: from where on there is nothing but blanks and comments in front of ``lead``.
    """
    ends = "".join(each[0] for each in _COMMENT.finditer(text, after, lead) if each.end() == lead)
    if ends.startswith("//") and not _LINE_END.match(text, until):
        line_end = _LINE_END.match(text, lead)
        lead = line_end.end() if line_end else lead
    return text[:lead] + text[until:]


def _inserted(text: str, root: Node, box: Node, key: str | None, value: Any, *, made: int) -> Splice:
    newline, unit = newline_of(text), _unit(text, root)
    one_line = bool(root.children) and "\n" not in text[root.start : root.end]
    if not box.children:
        return _first(text, box, key, value, made, None if one_line else (unit, newline))
    last = box.children[-1]
    comma = skip(text, last.end)
    trailing = text[comma] == ","
    at = comma + 1 if trailing else last.end
    found = _SAME_LINE_COMMENT.match(text, at)
    comment = found[0] if found else ""
    if _own_line(text, last) or "//" in comment:
        indent = _indent_at(text, last.start)
        body = f"{newline}{indent}{_keyed(key)}{_rendered(value, indent, unit, newline)}"
    else:
        body = f" {_keyed(key)}{json.dumps(value, ensure_ascii=False)}"
    new = f"{comment}{body}," if trailing else f",{comment}{body}"
    return Splice(at, comment, new, made)


def _first(text: str, box: Node, key: str | None, value: Any, made: int, style: tuple[str, str] | None) -> Splice:
    """The first child of an empty container, behind the comments in it; ``style``: unit and line end, or one line."""
    inside = text[box.start + 1 : box.end - 1]
    kept = inside.rstrip(_BLANKS)
    start, old = box.start + 1 + len(kept), inside[len(kept) :]
    if style is None:
        return Splice(start, old, f"{_keyed(key)}{json.dumps(value, ensure_ascii=False)}", made)
    unit, newline = style
    outer = _indent_at(text, box.start)
    body = _rendered(value, outer + unit, unit, newline)
    return Splice(start, old, f"{newline}{outer}{unit}{_keyed(key)}{body}{newline}{outer}", made)


def _wrapped(entry: Entry, keys: Sequence[str]) -> Any:
    value = [entry.value] if entry.kind == "item" else entry.value
    for key in reversed(keys):
        value = {key: value}
    return value


def _keyed(key: str | None) -> str:
    return "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "


def _rendered(value: Any, indent: str, unit: str, newline: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", newline + indent)


def _unit(text: str, root: Node) -> str:
    """One step of indentation: what the document's first member has, or two blanks."""
    first = root.children[0] if root.children else None
    return (_indent_at(text, first.start) if first and _own_line(text, first) else "") or "  "


def _own_line(text: str, child: Child) -> bool:
    lead = text[: child.start].rstrip(" \t")
    return lead.endswith(("\n", "\r"))


def _indent_at(text: str, at: int) -> str:
    found = _INDENT.match(text, text.rfind("\n", 0, at) + 1)
    return found[0] if found else ""
