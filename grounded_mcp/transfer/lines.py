"""The lines of an export: JSON objects, told apart by ``type``, as docs/export.md describes them. Pure.

What comes in is checked field by field: a file may have been written by anything. Knows nothing about files or stores.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, cast, get_args

from grounded_mcp.errors import InputError
from grounded_mcp.stores.portable import Carried
from grounded_mcp.values import (
    Clean,
    Evidence,
    EvidenceKind,
    Item,
    Kind,
    Origin,
    Passage,
    Project,
    Record,
    Space,
    State,
    Vector,
)

VERSION: Final = 1
"""Of the format. A reader takes its own and every earlier one."""
HEADER: Final = "grounded-mcp-export"
KINDS: Final = get_args(Kind)
STATES: Final = get_args(State)
ORIGINS: Final = get_args(Origin)
PROOFS: Final = get_args(EvidenceKind)
MAX_NAME: Final = 4_096
"""Characters of an id, a key, a scope: far more than any has."""

Row = Mapping[str, Any]
_T = TypeVar("_T")


def encode(row: Row) -> bytes:
    """One line, in ASCII: nothing in it does anything to a terminal."""
    return json.dumps(row, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"


# --- out --------------------------------------------------------------------------------------------------


def item_row(carried: Carried) -> dict[str, Any]:
    item, record = carried.record.item, carried.record
    return {
        "type": "item",
        "id": item.id,
        "kind": item.kind,
        "scope": item.scope,
        "title": item.title,
        "key": item.key,
        "body": item.body,
        "state": item.state,
        "state_at": carried.state_at,
        "superseded_by": carried.superseded_by,
        "origin": item.origin,
        "importance": item.importance,
        "pinned": item.pinned,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
        "content_hash": item.content_hash,
        "attrs": dict(sorted(item.attrs.items())),
        "conflicts": list(carried.conflicts),
        "evidence": [
            {"session": e.session, "place": e.place, "supports": e.supports, "kind": e.kind, "at": e.at, "note": e.note}
            for e in record.evidence
        ],
        "passages": [_passage_row(passage, carried.vectors) for passage in record.passages],
    }


def _passage_row(passage: Passage, vectors: Mapping[int, Vector | None]) -> dict[str, Any]:
    row = passage._asdict()
    if passage.seq in vectors:
        vector = vectors[passage.seq]
        row["vector"] = None if vector is None else base64.b64encode(vector).decode("ascii")
    return row


def project_row(project: Project) -> dict[str, Any]:
    fields = ("key", "name", "reason", "root", "branch", "worktree")
    return {"type": "project", **{name: getattr(project, name) for name in fields}}


def space_row(space: Space | None) -> dict[str, Any] | None:
    return None if space is None else {"model": space.model, "dimensions": space.dimensions}


# --- in ---------------------------------------------------------------------------------------------------


def read_space(row: Row) -> Space | None:
    if row.get("space") is None:
        return None
    found = _mapping(row, "space")
    return Space(text(found, "model"), whole(found, "dimensions", 1))


def read_item(row: Row, space: Space | None) -> Carried:
    """An item of a file. Its texts are not clean yet, whatever their type says. Raises: InputError naming the field."""
    passages = [_passage(each, seq) for seq, each in enumerate(_rows(row, "passages"))]
    item = Item(
        id=text(row, "id", MAX_NAME),
        kind=_one_of(row, "kind", KINDS),
        scope=text(row, "scope", MAX_NAME),
        title=Clean(text(row, "title", empty=True)),
        key=_maybe(row, "key", text),
        body=cast("Clean | None", _maybe(row, "body", lambda row, name: text(row, name, empty=True))),
        state=_one_of(row, "state", STATES),
        origin=_one_of(row, "origin", ORIGINS),
        importance=_maybe(row, "importance", lambda row, name: number(row, name, 0.0, 1.0)),
        pinned=_flag(row, "pinned"),
        created_at=number(row, "created_at"),
        updated_at=number(row, "updated_at"),
        content_hash=text(row, "content_hash", MAX_NAME, empty=True),
        attrs={name: text(_mapping(row, "attrs"), name, empty=True) for name in _mapping(row, "attrs")},
    )
    if item.state == "superseded" and passages:
        raise InputError("passages", "a superseded item has none.", "Give its text as body.")
    return Carried(
        Record(item, tuple(passages), tuple(map(_evidence, _rows(row, "evidence")))),
        _maybe(row, "state_at", number),
        _maybe(row, "superseded_by", text),
        tuple(sorted(_texts(row, "conflicts"))),
        {} if space is None else dict(_vectors(_rows(row, "passages"), space)),
    )


def read_project(row: Row) -> Project:
    return Project(
        text(row, "key", MAX_NAME),
        text(row, "name", MAX_NAME),
        text(row, "reason", MAX_NAME, empty=True),
        text(row, "root", MAX_NAME, empty=True),
        _maybe(row, "branch", text),
        _maybe(row, "worktree", text),
    )


def _passage(row: Row, seq: int) -> Passage:
    if whole(row, "seq") != seq:
        raise InputError("seq", f"{row.get('seq')!r} stands where {seq} should.", "Number passages from 0.")
    return Passage(
        seq,
        Clean(text(row, "body", empty=True)),
        text(row, "heading", empty=True),
        _maybe(row, "start_line", whole),
        _maybe(row, "end_line", whole),
        _maybe(row, "at", number),
    )


def _vectors(rows: list[Row], space: Space) -> list[tuple[int, Vector | None]]:
    found: list[tuple[int, Vector | None]] = []
    for seq, row in enumerate(rows):
        if "vector" in row:
            found.append((seq, _maybe(row, "vector", lambda row, name: _vector(row, name, space))))
    return found


def _vector(row: Row, name: str, space: Space) -> Vector:
    try:
        raw = base64.b64decode(text(row, name), validate=True)
    except binascii.Error:
        raw = b""
    if len(raw) != 4 * space.dimensions:
        raise InputError(name, f"it is no vector of {space.dimensions} dimensions.", "Leave it out: it is made again.")
    return Vector(raw)


def _evidence(row: Row) -> Evidence:
    return Evidence(
        text(row, "session", MAX_NAME),
        whole(row, "place"),
        _flag(row, "supports"),
        _one_of(row, "kind", PROOFS),
        number(row, "at"),
        Clean(text(row, "note", empty=True)),
    )


# --- fields -----------------------------------------------------------------------------------------------


def text(row: Row, name: str, longest: int | None = None, *, empty: bool = False) -> str:
    value = row.get(name)
    if not isinstance(value, str) or (not value and not empty) or len(value) > (longest or math.inf) or "\0" in value:
        raise _wrong(name, value, "a text")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise _wrong(name, "a lone surrogate", "valid text") from None
    return value


def number(row: Row, name: str, low: float = -math.inf, high: float = math.inf) -> float:
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise _wrong(name, value, "a number")
    if not math.isfinite(value) or abs(value) > 1e15:
        raise _wrong(name, value, "a number that a time or a share can be")
    return float(value)


def whole(row: Row, name: str, low: int = 0) -> int:
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value < 2**53:
        raise _wrong(name, value, "a whole number")
    return value


def _flag(row: Row, name: str) -> bool:
    if not isinstance(row.get(name), bool):
        raise _wrong(name, row.get(name), "true or false")
    return bool(row[name])


def _one_of(row: Row, name: str, choices: tuple[Any, ...]) -> Any:
    if row.get(name) not in choices:
        raise _wrong(name, row.get(name), f"one of {', '.join(choices)}")
    return row[name]


def _maybe(row: Row, name: str, read: Callable[[Row, str], _T]) -> _T | None:
    return None if row.get(name) is None else read(row, name)


def _mapping(row: Row, name: str) -> Row:
    if not isinstance(row.get(name), dict):
        raise _wrong(name, row.get(name), "an object")
    return cast(Row, row[name])


def _rows(row: Row, name: str) -> list[Row]:
    value = row.get(name)
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise _wrong(name, value, "a list of objects")
    return value


def _texts(row: Row, name: str) -> list[str]:
    value = row.get(name)
    if not isinstance(value, list):
        raise _wrong(name, value, "a list of texts")
    return [text({name: each}, name, MAX_NAME) for each in value]


def texts(row: Row, name: str) -> list[str]:
    """A list of names. Raises: InputError."""
    return _texts(row, name)


def _wrong(name: str, value: object, wanted: str) -> InputError:
    told = "missing" if value is None else f"a {type(value).__name__}"
    return InputError(name, f"it has to be {wanted}, and is {told}.", "docs/export.md describes every field.")
