"""A stated fact becomes a record: checked, cleaned, split, and keyed so that saying it twice stores it once.

Knows nothing about where a fact is written or who stated it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from grounded_mcp.errors import InputError, NotFound
from grounded_mcp.ingest.chunks import ChunkOptions, split
from grounded_mcp.ingest.redact import Redactor
from grounded_mcp.outcomes import Remembered
from grounded_mcp.stores.base import Store
from grounded_mcp.text import fingerprint
from grounded_mcp.values import Clean, Item, Passage, Record

TITLE_CHARS = 80

Beside = Callable[[Item, Sequence[Item]], tuple[Sequence[Item], Sequence[Item]]]
"""Given a fact and what it replaces: the copies of that, which go with it, and what cannot hold beside the fact."""


@dataclass(frozen=True, slots=True)
class FactOptions:
    """[facts]: lengths in characters, importance on 0..1."""

    importance: float
    max_chars: int
    max_topic_chars: int


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact as a caller states it; ``scope`` is canonical. None means "as before, or as configured"."""

    text: str
    scope: str
    importance: float | None = None
    pinned: bool | None = None
    topic_key: str | None = None


@dataclass(frozen=True, slots=True)
class FactWriter:
    """Everything a statement passes on its way into the store."""

    store: Store
    redactor: Redactor
    options: FactOptions
    chunks: ChunkOptions

    def write(
        self, statement: Statement, now: float, replaces: str | None = None, beside: Beside = lambda *_: ((), ())
    ) -> Remembered:
        """Store one fact, superseding what its topic key held, the claim named by ``replaces``, and copies of both.

        Raises: InputError for what cannot be a fact; NotFound for an unknown ``replaces``; RedactionError when
        the text could not be checked; StoreError when nothing was stored.
        """
        check(statement, self.options)
        self.check_scope(statement.scope)
        text, topic, redactions = self._clean(statement)
        before = self.store.find("fact", statement.scope, topic) if topic else None
        item = compose(statement, text, topic, before, self.options, now)
        replaced = [each for each in (before, self._replaced(replaces)) if each and each.id != item.id]
        copies, conflicts = beside(item, replaced)
        same = self._held(item.id)
        old = dict.fromkeys((each.id for each in (*replaced, *copies)), item.id)
        report = self.store.save(
            [Record(item if same is None else _again(item, same), self._passages(text))],
            supersede=old,
            conflicts=[(item.id, each.id) for each in conflicts],
        )
        outcome: Literal["stored", "updated", "unchanged"] = "unchanged" if report.unchanged else "updated"
        told = "stored" if report.added else outcome
        return Remembered(item, told, tuple(old), redactions, conflicts=tuple(conflicts))

    def check_scope(self, scope: str) -> None:
        """A scope is a name that others will use, so a secret in it is refused, not replaced. Raises: InputError."""
        if self.redactor.clean(scope).text != scope:
            raise InputError("scope", "it holds what looks like a secret.", "Name the scope by something else.")

    def _clean(self, statement: Statement) -> tuple[Clean, Clean | None, Mapping[str, int]]:
        cleaned = self.redactor.clean(statement.text.strip())
        if not cleaned.text.strip():
            raise InputError("text", "nothing is left after private parts were removed.", "State what may be kept.")
        if not statement.topic_key:
            return cleaned.text, None, cleaned.redactions
        topic = self.redactor.clean(statement.topic_key.strip())
        return cleaned.text, topic.text, Counter(cleaned.redactions) + Counter(topic.redactions)

    def _passages(self, text: Clean) -> tuple[Passage, ...]:
        chunks = split(text, "prose", self.chunks)
        return tuple(Passage(seq, Clean(chunk.body)) for seq, chunk in enumerate(chunks))

    def _replaced(self, replaces: str | None) -> Item | None:
        if replaces is None:
            return None
        old = replaces.strip().partition("#")[0]
        item = self._held(old)
        if item is None:
            raise NotFound("replaces", f"there is no item {old}.", "Use an id that a recall returned.")
        if item.kind not in ("fact", "learning"):
            raise InputError("replaces", f"{item.id} is a {item.kind}.", "Name the id of a fact or a learning.")
        if item.state == "superseded":
            raise InputError("replaces", f"{item.id} is already replaced.", "Name the fact that took its place.")
        return item

    def _held(self, item_id: str) -> Item | None:
        try:
            return self.store.item(item_id)[0]
        except NotFound:
            return None


def check(statement: Statement, options: FactOptions) -> None:
    """Raises: InputError for an empty or oversized text, an importance outside 0..1, an unusable topic key."""
    if not statement.text.strip():
        raise InputError("text", "it is empty.", "State the fact in a sentence.")
    if len(statement.text) > options.max_chars:
        raise InputError(
            "text",
            f"it has {len(statement.text):,} characters; a fact has at most {options.max_chars:,}.",
            "Shorten it, or put it into a document of the project and run `grounded-mcp sync`.",
        )
    importance = statement.importance
    if importance is not None and not 0.0 <= importance <= 1.0:
        raise InputError("importance", f"{importance} is outside 0..1.", "Give a number from 0 to 1.")
    topic = statement.topic_key
    if topic is not None and not 0 < len(topic.strip()) <= options.max_topic_chars:
        raise InputError("topic_key", "it is empty or too long.", f"Use 1 to {options.max_topic_chars} characters.")


def compose(
    statement: Statement, text: Clean, topic: Clean | None, before: Item | None, options: FactOptions, now: float
) -> Item:
    """The item of a cleaned statement. What is not stated is taken over from ``before``, what its topic key holds."""
    importance, pinned = statement.importance, statement.pinned
    if importance is None:
        importance = options.importance if before is None or before.importance is None else before.importance
    if pinned is None:
        pinned = before.pinned if before else False
    return Item(
        id=fact_id(statement.scope, text),
        kind="fact",
        scope=statement.scope,
        title=title_of(text),
        key=topic,
        body=text,
        origin="stated",
        importance=importance,
        pinned=pinned,
        created_at=now,
        updated_at=now,
        content_hash=fingerprint(text),
    )


def _again(item: Item, held: Item) -> Item:
    """A fact said again keeps its age, and its topic key unless a new one was stated."""
    alike = replace(item, created_at=held.created_at, key=item.key or held.key, attrs={})
    return replace(alike, updated_at=held.updated_at) if _settled(alike, held) else alike


def _settled(item: Item, held: Item) -> bool:
    return (held.state, held.importance, held.pinned, held.key, held.content_hash) == (
        item.state,
        item.importance,
        item.pinned,
        item.key,
        item.content_hash,
    )


def fact_id(scope: str, text: str) -> str:
    """The same words in the same scope are the same fact, whatever their case and spacing."""
    said = " ".join(text.casefold().split())
    return "fact_" + hashlib.sha256(f"{scope}\0{said}".encode("utf-8", "replace")).hexdigest()[:16]


def title_of(text: Clean) -> Clean:
    """The first line of a fact, cut to ``TITLE_CHARS``."""
    line = text.strip().splitlines()[0].strip()
    return Clean(line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1].rstrip() + "…")
