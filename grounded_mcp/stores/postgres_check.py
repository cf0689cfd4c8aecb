"""Is the store sound, and making its derived parts anew: the inverted index, its statistics, the entities.

What was written by the user (items, passages, vectors) is only looked at; what is derived from it can always be
rebuilt. The server's own files are the server's business. Functions over a connection inside a transaction that
someone else opened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from grounded_mcp.stores import postgres_entities as mentioned
from grounded_mcp.stores import postgres_sql as sql
from grounded_mcp.stores.indexing import Tokenize
from grounded_mcp.stores.postgres_connection import Connection, rows, run
from grounded_mcp.stores.postgres_terms import Changes
from grounded_mcp.stores.postgres_vectors import get_space
from grounded_mcp.stores.rules import NORM_TOLERANCE, PLACE_TOKENS, passage_digest, term_key, text_to_index
from grounded_mcp.values import Passage

ANALYZER = "analyzer"
PAGE = 500
"""Passages that are looked at in one step."""


def mark_derived(db: Connection, analyzer: str) -> None:
    """Note, with the first text, what the tokens and names of a store are made by."""
    for name, value in ((ANALYZER, analyzer), (mentioned.ENTITIES, mentioned.VERSION)):
        if not rows(db, sql.GET_META, (name,)):
            run(db, sql.INIT_META, (name, value))


def check(db: Connection) -> tuple[str, ...]:
    """What is wrong, as sentences; empty when all is well (the text against its digests, every index against it)."""
    parts = (_indexes, _texts, _statistics, _vectors, mentioned.check)
    return tuple(dict.fromkeys(problem for part in parts for problem in part(db)))


def _indexes(db: Connection) -> Iterator[str]:
    for (name,) in rows(db, sql.BROKEN_INDEXES):
        yield f"the index {name} was not finished: drop it, it is made again when it is needed"


def _texts(db: Connection) -> Iterator[str]:
    """The texts against their digests, and the inverted index against their tokens."""
    last = wrong = 0
    while page := rows(db, sql.TEXTS, (last, PAGE)):
        posted = {passage: tuple(row) for passage, *row in rows(db, sql.POSTED, (last, page[-1][0]))}
        for passage, bucket, title, heading, body, digest, tokens in page:
            if passage_digest(title, heading, body) != digest:
                yield f"the text of passage {passage} is not what was stored"
            wrong += posted.get(passage) != _posting(bucket, tokens)
        last = page[-1][0]
    if wrong:
        yield f"the full-text index does not match {wrong} passages"
    stray = rows(db, sql.COUNT_STRAY_POSTINGS)[0][0]
    if stray:
        yield f"{stray} entries of the full-text index belong to no passage"


def _posting(bucket: int, tokens: str) -> tuple[Any, ...] | None:
    """What the index should hold of a passage, as ``sql.POSTED`` sums it up."""
    times = Counter(map(term_key, tokens.split()))
    length = times.total() + PLACE_TOKENS
    return (1, bucket, sum(term * count for term, count in times.items()), length, length) if times else None


def _statistics(db: Connection) -> Iterator[str]:
    wrong = rows(db, sql.COUNT_WRONG_TERMS)[0][0]
    if wrong:
        yield f"the counts of {wrong} terms are not those of the full-text index"
    passages = tokens = last = 0
    while page := rows(db, sql.TEXTS, (last, PAGE)):
        passages += len(page)
        tokens += sum(len(text.split()) for *_, text in page)
        last = page[-1][0]
    held = tuple(rows(db, sql.CORPUS)[0])
    if held != (passages, tokens):
        yield f"{held[0]} passages of {held[1]} tokens are counted, and there are {passages} of {tokens}"


def _vectors(db: Connection) -> Iterator[str]:
    space = get_space(db)
    for statement, given, problem in (
        (sql.COUNT_LOST_VECTORS, None, "passages and their vectors do not agree"),
        (sql.COUNT_UNFIT_VECTORS, (space.dimensions if space else 0, NORM_TOLERANCE), "vectors are no unit vectors"),
    ):
        count = rows(db, statement, given)[0][0]
        if count:
            yield f"{count} {problem}"


def rebuild(db: Connection, tokenize: Tokenize, fingerprint: str) -> None:
    """Empty every derived table, fill it anew from the rows, and mark what has no usable vector as pending."""
    for table in ("posting", "term"):
        run(db, f"DELETE FROM {table}")  # noqa: S608 - a name of ours
    run(db, sql.SET_CORPUS)
    last = 0
    while page := rows(db, sql.TEXTS, (last, PAGE)):
        changes = Changes()
        for passage, bucket, title, heading, body, _, tokens in page:
            made = " ".join(tokenize(text_to_index(title, Passage(0, body, heading))))
            if made != tokens:
                run(db, sql.SET_TOKENS, (made, passage))
            changes.add([(passage, bucket, made)])
        changes.settle(db)
        last = page[-1][0]
    run(db, sql.SET_META, (ANALYZER, fingerprint))
    space = get_space(db)
    run(db, sql.DROP_UNFIT_VECTORS, (space.dimensions if space else 0, NORM_TOLERANCE))
    for statement in (sql.PLACE_VECTORS, sql.FIND_VECTORS, sql.FORGET_MISSING_VECTORS):
        run(db, statement)
    mentioned.rebuild(db)
