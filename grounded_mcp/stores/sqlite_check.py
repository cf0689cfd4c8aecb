"""Is the store sound, and making its derived parts anew: full-text index, sketches, triggers.

What was written by the user (items, passages, vectors) is only looked at; what is derived from it can always be
rebuilt. Functions over a connection inside a transaction that someone else opened.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress

import apsw

from grounded_mcp.errors import StoreError
from grounded_mcp.stores import sqlite_entities as mentioned
from grounded_mcp.stores import sqlite_sql as sql
from grounded_mcp.stores.indexing import Tokenize
from grounded_mcp.stores.rules import passage_digest, text_to_index, unpack_vector
from grounded_mcp.stores.sqlite_connection import rows
from grounded_mcp.stores.sqlite_vectors import get_space, sketch_of
from grounded_mcp.values import Passage, Vector

logger = logging.getLogger(__name__)

ANALYZER = "analyzer"
DERIVED = (
    *("passage_text", "passage_fts", "sketch", "passage_added", "passage_gone", "passage_changed"),
    *("sketch_added", "sketch_gone", "sketch_moved"),
    *("mention", "mention_passage", "mention_gone", "mention_moved"),
)
"""In the order of creation."""

_DROP = {"view": "DROP VIEW", "index": "DROP INDEX", "table": "DROP TABLE", "trigger": "DROP TRIGGER"}


def mark_derived(db: apsw.Connection, analyzer: str) -> None:
    """Note, with the first text, what the tokens and names of a store are made by."""
    db.execute(sql.INIT_META, (ANALYZER, analyzer))
    db.execute(sql.INIT_META, (mentioned.ENTITIES, mentioned.VERSION))


def check(db: apsw.Connection, schema: Mapping[str, str]) -> tuple[str, ...]:
    """What is wrong, as sentences; empty when all is well (the INT oracle, and the text against its digests)."""
    problems: list[str] = []
    for part in (_pages, _orphans, lambda db: _schema(db, schema), _texts, _full_text, _vectors, _entities):
        try:
            problems.extend(part(db))
        except (apsw.CorruptError, apsw.SQLError) as error:
            problems.append(f"{getattr(part, '__name__', 'schema').strip('_<>')}: {error}")
    return tuple(dict.fromkeys(problems))


def _pages(db: apsw.Connection) -> Iterator[str]:
    for (line,) in db.execute("PRAGMA integrity_check"):
        if line != "ok":
            yield f"integrity check: {line}"


def _orphans(db: apsw.Connection) -> Iterator[str]:
    for table, row, parent, _ in db.execute("PRAGMA foreign_key_check"):
        yield f"row {row} of {table} belongs to no row of {parent}"


def _schema(db: apsw.Connection, schema: Mapping[str, str]) -> Iterator[str]:
    found = dict(db.execute(sql.SCHEMA))
    for name, statement in schema.items():
        if found.get(name) != statement:
            yield f"{name} is {'missing' if name not in found else 'not as this version makes it'}"


def _texts(db: apsw.Connection) -> Iterator[str]:
    for passage, title, heading, body, digest in db.execute(sql.ALL_TEXTS):
        if passage_digest(title, heading, body) != digest:
            yield f"the text of passage {passage} is not what was stored"


def _full_text(db: apsw.Connection) -> Iterator[str]:
    if db.readonly("main"):  # this check is an INSERT to SQLite; the one of the pages looks into the index, too
        return
    try:
        db.execute(sql.FTS_CHECK)
    except (apsw.CorruptError, apsw.SQLError) as error:
        yield f"the full-text index does not match the passages ({error})"


def _vectors(db: apsw.Connection) -> Iterator[str]:
    space = get_space(db)
    for passage, embedding, bucket, state, code in db.execute(sql.ALL_VECTORS):
        if bucket is None:
            yield f"vector {passage} belongs to no passage"
            continue
        if state != "ok":
            yield f"passage {passage} has a vector but is marked {state}"
        try:
            components = unpack_vector(Vector(embedding), space.dimensions if space else 0)
        except StoreError as error:
            yield f"vector {passage}: {error.message}"
            continue
        if code != sketch_of(components):
            yield f"the sketch of vector {passage} is {'missing' if code is None else 'wrong'}"
    for statement, problem in (
        (sql.COUNT_MISSING_VECTORS, "passages are marked as having a vector and have none"),
        (sql.COUNT_STRAY_SKETCHES, "sketches belong to no vector"),
    ):
        count = rows(db, statement)[0][0]
        if count:
            yield f"{count} {problem}"


def _entities(db: apsw.Connection) -> Iterator[str]:
    return mentioned.check(db)


def rebuild(db: apsw.Connection, schema: Mapping[str, str], tokenize: Tokenize | None, fingerprint: str) -> None:
    """Drop every derived part, make it anew from the rows, and mark what has no usable vector as pending.

    ``tokenize`` makes the passages' tokens again; None keeps them. Texts that do not match their digest stay.
    """
    _drop_derived(db)
    if tokenize is not None:
        _tokenize_again(db, tokenize, fingerprint)
    for name in DERIVED:
        db.execute(schema[name])
    db.execute(sql.FTS_SECURE)
    db.execute(sql.FTS_REBUILD)
    _sketch_again(db)
    mentioned.rebuild(db)


def _drop_derived(db: apsw.Connection) -> None:
    kinds = dict(rows(db, "SELECT name, type FROM sqlite_schema"))
    for name in reversed(DERIVED):
        if name in kinds:
            db.execute(f"{_DROP[kinds[name]]} {name}")
    # What a damaged full-text table left behind when it was dropped.
    for name in kinds:
        if name.startswith("passage_fts_"):
            with suppress(apsw.SQLError):
                db.execute(f'DROP TABLE IF EXISTS "{name}"')


def _tokenize_again(db: apsw.Connection, tokenize: Tokenize, fingerprint: str) -> None:
    for passage, title, heading, body, _ in rows(db, sql.ALL_TEXTS):
        text = text_to_index(title, Passage(0, body, heading))
        db.execute(sql.SET_TOKENS, (" ".join(tokenize(text)), passage))
    db.execute(sql.SET_META, (ANALYZER, fingerprint))


def _sketch_again(db: apsw.Connection) -> None:
    db.execute(sql.RAISE_STAMPS)  # dropping the table ran no trigger
    space = get_space(db)
    for passage, embedding, bucket, _, _ in rows(db, sql.ALL_VECTORS):
        try:
            if bucket is None or space is None:
                raise StoreError("It belongs to nothing.", "-")
            components = unpack_vector(Vector(embedding), space.dimensions)
        except StoreError:
            db.execute(sql.DROP_VECTOR, (passage,))
            continue
        db.execute(sql.SET_VECTOR_STATE, ("ok", passage))
        db.execute(sql.SET_SKETCH, (bucket, passage, sketch_of(components)))
    db.execute(sql.FORGET_MISSING_VECTORS)
