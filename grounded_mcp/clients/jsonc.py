"""JSON with comments, read so that every value keeps its place in the text. Pure.

Comments, trailing commas and an empty document are accepted, as VS Code, Zed and opencode write them; single
quotes and bare keys (JSON5) are not. Knows nothing about clients, and changes nothing: ``jsonc_edit`` does.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

MAX_DEPTH = 200
"""Deeper than any settings file, and well within the interpreter's own recursion limit of 1,000."""

_TRIVIA = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*.*?\*/)*+", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\r\n]|\\.)*+"')
_WORD = re.compile(r"[-+.\w]+")


class Unreadable(ValueError):
    """The text is not in the format: what is wrong, and in which line."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value from ``start`` up to ``end``, in characters. ``children`` are in the order of the text."""

    kind: Literal["object", "array", "scalar"]
    start: int
    end: int
    value: Any = None
    children: tuple[Child, ...] = ()

    def get(self, key: str) -> Node | None:
        """The member that readers see: of two of one name, the last."""
        if self.kind != "object":
            return None
        return next((child.node for child in reversed(self.children) if child.key == key), None)


@dataclass(frozen=True, slots=True)
class Child:
    """A member of an object, from its key on, or an item of an array (``key`` None)."""

    key: str | None
    start: int
    node: Node

    @property
    def end(self) -> int:
        return self.node.end


def parse(text: str) -> Node | None:
    """The document's value; None when it holds nothing but blanks and comments. Raises: Unreadable."""
    at = skip(text, 0)
    if at == len(text):
        return None
    node = _value(text, at, 0)
    if (rest := skip(text, node.end)) != len(text):
        raise _wrong(text, rest, "there is more after the end")
    return node


def load(text: str) -> Any:
    """The document as plain data; an empty one is an empty object. Raises: Unreadable."""
    try:
        return json.loads(text)  # forty times as fast, and most files of several MB are plain
    except (ValueError, RecursionError):
        node = parse(text)
    return {} if node is None else plain(node)


def plain(node: Node) -> Any:
    if node.kind == "object":
        return {child.key: plain(child.node) for child in node.children}
    if node.kind == "array":
        return [plain(child.node) for child in node.children]
    return node.value


def is_strict(text: str) -> bool:
    """Whether a reader that knows plain JSON only can read it, too."""
    try:
        json.loads(text)
    except ValueError:
        return not text.strip()
    return True


def skip(text: str, at: int) -> int:
    """The place of the next token, behind blanks and comments."""
    found = _TRIVIA.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int, depth: int) -> Node:
    if depth > MAX_DEPTH:
        raise _wrong(text, at, f"values lie more than {MAX_DEPTH} deep")
    opening = text[at : at + 1]
    if opening == "{":
        return _box(text, at, depth, "object", "}")
    if opening == "[":
        return _box(text, at, depth, "array", "]")
    found = _STRING.match(text, at) or _WORD.match(text, at)
    if found is None:
        raise _wrong(text, at, "a value is missing")
    return Node("scalar", at, found.end(), _scalar(text, at, found[0]))


def _box(text: str, start: int, depth: int, kind: Literal["object", "array"], closing: str) -> Node:
    children: list[Child] = []
    at = skip(text, start + 1)
    while text[at : at + 1] != closing:
        key, value_at = _key(text, at) if kind == "object" else (None, at)
        node = _value(text, value_at, depth + 1)
        children.append(Child(key, at, node))
        at = skip(text, node.end)
        if text[at : at + 1] == ",":
            at = skip(text, at + 1)
        elif text[at : at + 1] != closing:
            raise _wrong(text, at, f'"," or "{closing}" is missing')
    return Node(kind, start, at + 1, children=tuple(children))


def _key(text: str, at: int) -> tuple[str, int]:
    found = _STRING.match(text, at)
    if found is None:
        raise _wrong(text, at, "a key in double quotes is missing")
    colon = skip(text, found.end())
    if text[colon : colon + 1] != ":":
        raise _wrong(text, colon, '":" is missing')
    return str(_scalar(text, at, found[0])), skip(text, colon + 1)


def _scalar(text: str, at: int, word: str) -> Any:
    try:
        return json.loads(word, strict=False)
    except (ValueError, RecursionError) as error:
        raise _wrong(text, at, "this is no JSON value") from error


def _wrong(text: str, at: int, what: str) -> Unreadable:
    return Unreadable(f"line {text.count(chr(10), 0, at) + 1}: {what}")
