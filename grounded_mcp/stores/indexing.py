"""What a passage is found by, whichever the engine: its tokens, and the entities it names.

Knows nothing about tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from grounded_mcp.entities import EntityId, entities, entity_id
from grounded_mcp.stores.rules import passage_digest, text_to_index
from grounded_mcp.values import Item, Passage, Record

Tokenize = Callable[[str], Sequence[str]]


class Indexed(NamedTuple):
    """What a passage is found by: its tokens, space-joined, and the entities it names."""

    tokens: str
    entities: tuple[EntityId, ...]


@dataclass(slots=True)
class Tokens:
    """What passages are found by, made before a write begins as far as that can be known."""

    tokenize: Tokenize
    by_digest: dict[bytes, Indexed] = field(default_factory=dict)

    def prepare(self, records: Iterable[Record], known: frozenset[bytes]) -> None:
        for record in records:
            for passage in record.passages:
                digest = digest_of(record.item, passage)
                if digest not in known:
                    self.by_digest[digest] = self._make(record.item, passage)

    def of(self, digest: bytes, item: Item, passage: Passage) -> Indexed:
        made = self.by_digest.get(digest)
        return self._make(item, passage) if made is None else made

    def _make(self, item: Item, passage: Passage) -> Indexed:
        return Indexed(" ".join(self.tokenize(text_to_index(item.title, passage))), named_in(passage.body))


def named_in(body: str) -> tuple[EntityId, ...]:
    """What a passage is stored under: the entities of its body. A title would connect an item with itself alone."""
    return tuple(entity_id(entity.key) for entity in entities(body))


def digest_of(item: Item, passage: Passage) -> bytes:
    return passage_digest(item.title, passage.heading, passage.body)
