"""Vectors held in memory are a copy: whoever changes the file, the next search sees it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from storing import EVERYTHING, SPACE, doc, embed, fact, near, random_unit, unit, where

from grounded_mcp.stores.base import Space
from grounded_mcp.stores.options import StoreOptions

Open = Callable[..., Any]
NORTH, EAST = unit(0, 1, 0, 0), unit(1, 0, 0, 0)


def test_a_search_sees_what_another_process_added_changed_and_deleted(sqlite: Open) -> None:
    mine, other = sqlite(), sqlite()
    mine.save([fact("a", "first")])
    embed(mine, "a", NORTH)
    assert near(mine, NORTH) == ["a"]
    other.save([fact("b", "second")])
    embed(other, "b", unit(0.1, 1, 0, 0))
    assert near(mine, NORTH) == ["a", "b"]
    other.save([fact("a", "first, reworded")])
    assert near(mine, NORTH) == ["b"]
    embed(other, "a", EAST)
    assert near(mine, NORTH) == ["b", "a"]
    other.delete(["b"])
    assert near(mine, NORTH) == ["a"]
    other.reset_vectors()
    assert near(mine, NORTH) == []


def test_r17_both_ways_of_searching_return_the_same_hits_and_scores(sqlite: Open) -> None:
    source = random.Random(5)
    space = Space("m", 32)
    cached, swept = sqlite(), sqlite(options=StoreOptions(vector_cache_mb=0))
    for number in range(300):
        kept = [doc(f"{number}.md", "text", scope=f"project:{number % 3}")]
        cached.save(kept)
    waiting = [each.id for each in cached.pending(1_000)]
    for start in range(0, 300, 100):
        cached.set_vectors(space, {each: random_unit(source, 32) for each in waiting[start : start + 100]})
    for _ in range(20):
        query = random_unit(source, 32)
        for filter in (EVERYTHING, where("project:1"), where("project:0", "project:2")):
            assert cached.nearest(query, filter, 20) == swept.nearest(query, filter, 20)


def test_buckets_beyond_the_limit_are_swept_and_small_ones_stay_in_memory(sqlite: Open) -> None:
    store = sqlite(options=StoreOptions(vector_cache_mb=1))
    space = Space("wide", 2_048)  # 8 KiB a vector: 128 fill one MiB
    source = random.Random(1)
    store.save([doc(f"{number}.md", "text", scope="project:big") for number in range(100)])
    store.save([doc(f"{number}.txt", "text", scope="project:big") for number in range(60)])
    store.save([doc("only.md", "text", scope="project:small")])
    waiting = [each.id for each in store.pending(1_000)]
    store.set_vectors(space, {each: random_unit(source, 2_048) for each in waiting[:100]})
    store.set_vectors(space, {each: random_unit(source, 2_048) for each in waiting[100:]})
    query = random_unit(source, 2_048)
    assert len(near(store, query, where("project:big"), 160)) == 160
    assert near(store, query, where("project:small")) == ["doc_only.md"]
    assert len(near(store, query, EVERYTHING, 161)) == 161


def test_a_time_window_applies_whichever_way_is_used(sqlite: Open) -> None:
    store = sqlite()
    store.save([fact("old", "x", updated_at=100.0), fact("new", "y", updated_at=200.0)])
    embed(store, "old", NORTH)
    embed(store, "new", EAST, space=SPACE)
    assert near(store, NORTH) == ["old", "new"]
    assert near(store, NORTH, where(since=150.0)) == ["new"]
