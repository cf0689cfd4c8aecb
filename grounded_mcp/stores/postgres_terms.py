"""The inverted index: which passages hold which of the analyzer's tokens, and the statistics that BM25 weighs them by.

A transaction gathers what it changes and writes that at its end, in the order of the terms: the counts of common terms
are rows that every writer changes, and two that take them in one order never wait for each other. Functions over a
connection inside a transaction that someone else opened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from grounded_mcp.stores import postgres_sql as sql
from grounded_mcp.stores.postgres_connection import Connection, rows, run
from grounded_mcp.stores.rules import BM25_B, BM25_K1, PLACE_TOKENS, average_length, idf, term_key
from grounded_mcp.values import Hit, PassageId

Held = tuple[int, int, str]
"""A passage: its id, its bucket and its tokens, joined by spaces."""


Posting = tuple[int, int, int]
"""A term, a bucket and a passage."""


@dataclass(slots=True)
class Changes:
    """What one transaction changes of the index; ``settle`` writes it, once, after everything else."""

    added: dict[Posting, tuple[int, int]] = field(default_factory=dict)
    gone: list[Posting] = field(default_factory=list)
    terms: Counter[int] = field(default_factory=Counter)
    passages: int = 0
    tokens: int = 0

    def add(self, held: Iterable[Held]) -> None:
        for passage, bucket, text in held:
            times = Counter(map(term_key, text.split()))
            length = times.total()
            counted = length + PLACE_TOKENS
            self.added.update({(term, bucket, passage): (count, counted) for term, count in times.items()})
            self.terms.update(times.keys())
            self.passages += 1
            self.tokens += length

    def remove(self, held: Iterable[Held]) -> None:
        for passage, bucket, text in held:
            times = Counter(map(term_key, text.split()))
            # What came in the same transaction, an item that moved, was never written.
            self.gone += [key for term in times if not self.added.pop(key := (term, bucket, passage), None)]
            self.terms.subtract(times.keys())
            self.passages -= 1
            self.tokens -= times.total()

    def settle(self, db: Connection) -> None:
        if self.gone:
            run(db, sql.DROP_POSTINGS, _columns(self.gone, 3))
        if self.added:
            run(db, sql.ADD_POSTINGS, _columns([(*key, *counts) for key, counts in self.added.items()], 5))
        changed = sorted((term, change) for term, change in self.terms.items() if change)
        if changed:
            run(db, sql.COUNT_TERMS, _columns(changed, 2))
        fewer = [term for term, change in changed if change < 0]
        if fewer:
            run(db, sql.DROP_TERMS, (fewer,))
        if self.passages or self.tokens:
            run(db, sql.COUNT_CORPUS, (self.passages, self.tokens))


def lexical(
    db: Connection, terms: Sequence[str], buckets: Sequence[int], bounds: dict[str, object] | None, k: int
) -> tuple[Hit, ...]:
    """BM25 with the statistics of the whole store, rounded as the other engine does it."""
    keys = [term_key(term) for term in terms]
    passages, tokens, held = rows(db, sql.STATISTICS, (keys,))[0]
    known = [(key, idf(passages, count)) for key, count in zip(keys, held, strict=True) if count]
    if not known:
        return ()
    asked = {
        "terms": [key for key, _ in known],
        "idf": [weight for _, weight in known],
        "buckets": buckets,
        "k": k,
        "k1": BM25_K1,
        "b": BM25_B,
        "average": average_length(passages, tokens),
        **(bounds or {}),
    }
    found = rows(db, sql.LEXICAL[bounds is not None], asked)
    return tuple(Hit(PassageId(passage), score) for passage, score in found)


def _columns(values: Sequence[tuple[int, ...]], width: int) -> tuple[list[int], ...]:
    return tuple([row[at] for row in values] for at in range(width))
