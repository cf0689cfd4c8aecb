"""Items as rows and back: the columns that both engines have, in one order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from grounded_mcp.stores.rules import text_size
from grounded_mcp.values import Item, Passage, PassageId, StoredPassage


def item_of(row: Sequence[Any]) -> Item:
    """From id, kind, scope, title, key, body, state, origin, importance, pinned, created_at, updated_at, content_hash,
    attrs."""
    (id, kind, scope, title, key, body, state, origin, importance, pinned, created, updated, content, attrs) = row
    return Item(
        id=id,
        kind=kind,
        scope=scope,
        title=title,
        key=key,
        body=body,
        state=state,
        origin=origin,
        importance=importance,
        pinned=bool(pinned),
        created_at=created,
        updated_at=updated,
        content_hash=content,
        attrs=json.loads(attrs),
    )


@lru_cache(2048)
def read_before(row: tuple[Any, ...]) -> Item:
    """``item_of``, of rows that were read before: making the hundred items of a recall again takes as long as reading
    them."""
    return item_of(row)


def stored_passages(found: Iterable[Sequence[Any]]) -> Iterator[tuple[PassageId, StoredPassage]]:
    """From id, seq, body, heading, start_line, end_line, at, tokens, passages and size, and then an item's columns.

    Passages of one item share one ``Item``.
    """
    items: dict[str, Item] = {}
    for passage_id, seq, body, heading, start, end, at, tokens, count, size, *row in found:
        owner = items.get(row[0])
        if owner is None:
            owner = items[row[0]] = read_before(tuple(row))
        passage = Passage(seq, body, heading, start, end, at)
        yield passage_id, StoredPassage(passage_id, passage, owner, count, size, tokens)


def row_of(item: Item, bucket: int, passages: Sequence[Passage]) -> tuple[Any, ...]:
    """For id, bucket, key, title, body, state, origin, importance, pinned, created_at, updated_at, content_hash, attrs,
    passages, size. Whether it is pinned is a number where an engine has no other truth: 1 equals True."""
    return (
        item.id,
        bucket,
        item.key,
        item.title,
        item.body,
        item.state,
        item.origin,
        item.importance,
        item.pinned,
        item.created_at,
        item.updated_at,
        item.content_hash,
        json.dumps(dict(item.attrs), sort_keys=True, ensure_ascii=False),
        len(passages),
        text_size(item, passages),
    )
