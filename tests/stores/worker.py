"""A process for the concurrency and crash tests: reads ``[command, arguments]`` lines, answers each with one line."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import apsw

from grounded_mcp.errors import StoreError
from grounded_mcp.stores.base import Store
from grounded_mcp.stores.options import PostgresOptions, StoreOptions
from grounded_mcp.stores.sqlite import SqliteStore
from grounded_mcp.text import Analyzer
from grounded_mcp.values import Clean, Filter, Item, Passage, Record, Space, Vector

ANALYZER = Analyzer()
SPACE = Space("model-a", 4)
UNIT = Vector(b"\x00\x00\x80\x3f" + bytes(12))
FACTS = Filter(frozenset({"fact"}))
open_stores: list[Store] = []
held = ExitStack()


def say(answer: object) -> None:
    print(json.dumps(answer), flush=True)


def note(item_id: str, text: str) -> Record:
    return Record(Item(item_id, "fact", "global", Clean(""), body=Clean(text)), (Passage(0, Clean(text)),))


def store_at(place: str) -> Store:
    """The SQLite store at a path, or the Postgres store at a URL and, behind a space, a schema."""
    if "://" not in place:
        return SqliteStore(Path(place), ANALYZER)
    from grounded_mcp.stores.postgres import PostgresStore

    url, schema = place.split(" ")
    return PostgresStore(url, ANALYZER, StoreOptions(postgres=PostgresOptions(schema=schema, pool_size=2)))


def open_(path: str) -> str:
    open_stores[:] = [store_at(path)]
    return "open"


def save(name: str, count: int) -> dict[str, object]:
    """Save one note per transaction, with its vector, reading in between."""
    store, slowest = open_stores[0], 0.0
    for number in range(count):
        started = time.monotonic()
        store.save([note(f"{name}-{number}", f"note {number} by {name}")])
        slowest = max(slowest, time.monotonic() - started)
        store.set_vectors(SPACE, {passage.id: UNIT for passage in store.pending(5)})
        assert store.lexical(("note",), FACTS, 5)
    return {"saved": count, "slowest": slowest}


def read(count: int) -> int:
    store = open_stores[0]
    for _ in range(count):
        store.lexical(("note",), FACTS, 5)
        store.nearest(UNIT, FACTS, 5)
    return count


def churn(path: str, name: str) -> str:
    """Save, change and delete without end; every line is an acknowledged write."""
    store, number = store_at(path), 0
    while True:
        number += 1
        item_id = f"{name}-{number}"
        store.save([note(item_id, f"first text of {item_id}")])
        say(["saved", item_id, f"first text of {item_id}"])
        store.set_vectors(SPACE, {passage.id: UNIT for passage in store.pending(3)})
        if number % 2:
            store.save([note(item_id, f"second text of {item_id}")])
            say(["saved", item_id, f"second text of {item_id}"])
        if not number % 3:
            store.delete([item_id])
            say(["deleted", item_id, ""])


def hold_write_lock(path: str) -> int:
    db = held.enter_context(closing(apsw.Connection(path)))
    db.execute("BEGIN IMMEDIATE")
    return os.getpid()


def hold_lease(path: str, name: str, seconds: float) -> bool:
    return held.enter_context(store_at(path).lease(name, seconds))


COMMANDS: dict[str, Callable[..., object]] = {
    each.__name__.rstrip("_"): each for each in (open_, save, read, churn, hold_write_lock, hold_lease)
}


def main() -> None:
    for line in sys.stdin:
        command, arguments = json.loads(line)
        try:
            say(COMMANDS[command](**arguments))
        except StoreError as error:
            say(f"{type(error).__name__}: {error}")


main()
