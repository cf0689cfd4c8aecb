"""Many processes on one schema: nothing is lost, nobody waits for ever, and a server that comes back is used again."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import postgres_server
import psycopg
import pytest
from storing import EVERYTHING, SPACE, Worker, doc, embed, fact, found, held, near, random_unit, unit, where
from wiring import Wire, wired

from grounded_mcp.assemble import build_memory, find_project, open_base
from grounded_mcp.config import load
from grounded_mcp.errors import NotFound, StoreBusy, StoreError, StoreUnreachable
from grounded_mcp.models.hashing import HashingEmbedder
from grounded_mcp.models.reranking import GuardedReranker, RerankerOptions
from grounded_mcp.settings import settings
from grounded_mcp.stores.options import PostgresOptions, StoreOptions
from grounded_mcp.stores.postgres import PostgresStore
from grounded_mcp.text import Analyzer
from grounded_mcp.values import Space

pytestmark = postgres_server.NEEDED
Open = Callable[..., Any]
Start = Callable[[], Worker]
HASTY = StoreOptions(busy_timeout_ms=100, max_batch_wait_ms=300, postgres=PostgresOptions(pool_timeout_s=0.3))


def place(schema: str) -> str:
    return f"{postgres_server.url()} {schema}"


def test_t10_case_22_writers_and_readers_of_many_processes_lose_nothing(
    worker: Start, postgres: Open, schema: str
) -> None:
    store = postgres()
    workers = [worker() for _ in range(5)]
    for each in workers:
        each.tell("open", path=place(schema))
    assert [each.hear() for each in workers] == ["open"] * 5
    for number, each in enumerate(workers[:4]):
        each.tell("save", name=f"w{number}", count=25)
    workers[4].tell("read", count=50)
    answers = [each.hear() for each in workers]
    assert answers[4] == 50
    assert [answer["saved"] for answer in answers[:4]] == [25] * 4
    assert max(answer["slowest"] for answer in answers[:4]) < 5.0
    assert sorted(found(store, "note", k=500)) == sorted(f"w{w}-{n}" for w in range(4) for n in range(25))
    assert store.check() == ()


def test_case_29_a_killed_writer_loses_nothing_that_it_acknowledged(worker: Start, postgres: Open, schema: str) -> None:
    store = postgres()
    writers = [worker(), worker()]
    for number, each in enumerate(writers):
        each.tell("churn", path=place(schema), name=f"w{number}")
    acknowledged = [each.hear() for _ in range(25) for each in writers]
    for each in writers:
        each.process.kill()
    for each in writers:
        acknowledged += iter(each.hear, None)
    last = {item_id: (what, text) for what, item_id, text in acknowledged}
    for number in range(2):  # the very last write of each may have happened without its acknowledgement
        mine = [item_id for item_id in last if item_id.startswith(f"w{number}-")]
        last.pop(max(mine, key=lambda item_id: int(item_id.rpartition("-")[2])))
    for item_id, (what, text) in last.items():
        if what == "saved":
            assert store.item(item_id)[0].body == text
        else:
            with pytest.raises(NotFound):
                store.item(item_id)
    assert store.check() == ()


def test_case_26_a_lease_of_another_process_is_respected_and_a_dead_one_is_taken_over(
    worker: Start, postgres: Open, schema: str
) -> None:
    store, other = postgres(), worker()
    assert other.ask("hold_lease", path=place(schema), name="sync", seconds=3600) is True
    with store.lease("sync", 60) as mine:
        assert not mine
    other.kill()
    with store.lease("sync", 60) as mine:
        assert mine


def test_writers_of_the_same_words_and_items_in_any_order_never_wait_for_each_other_in_a_circle(
    postgres: Open, schema: str
) -> None:
    store = postgres()
    texts = [f"the lever and the knob number {n}" for n in range(12)]
    store.save([fact(f"f{n}", text, f"project:{n % 3}", key=f"k{n}") for n, text in enumerate(texts)])
    failed: list[BaseException] = []

    def write(seed: int) -> None:
        source = random.Random(seed)
        try:
            for _ in range(8):
                some = source.sample(range(12), 5)
                store.save(
                    [fact(f"f{n}", f"{source.choice(texts)} {seed}", f"project:{n % 3}", key=f"k{n}") for n in some]
                )
                store.set_vectors(SPACE, {each.id: random_unit(source, 4) for each in store.pending(20)})
                store.delete([f"f{n}" for n in source.sample(range(12), 2)])
        except BaseException as error:  # noqa: BLE001 - told by the test
            failed.append(error)

    before = deadlocks()
    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    assert deadlocks() == before
    assert store.check() == ()


def deadlocks() -> int:
    with psycopg.connect(postgres_server.url(), autocommit=True) as db:
        db.execute("SELECT pg_stat_clear_snapshot()")
        row = db.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").fetchone()
        assert row is not None
        return int(row[0])


# --- others in the way ------------------------------------------------------------------------------------


def test_case_23_a_write_that_others_keep_waiting_says_it_was_not_stored_and_reading_goes_on(
    postgres: Open, schema: str
) -> None:
    store = postgres(options=HASTY)
    store.save([fact("f1", "lever")])
    with psycopg.connect(postgres_server.url()) as db:
        db.execute(f'LOCK TABLE "{schema}".corpus IN EXCLUSIVE MODE')
        with pytest.raises(StoreBusy, match="nothing was stored"):
            store.save([fact("f2", "knob")])
        assert found(store, "lever") == ["f1"]
        db.rollback()
    store.save([fact("f2", "knob")])
    assert found(store, "knob") == ["f2"]


def test_case_27_a_read_that_is_held_open_sees_one_moment_and_hinders_no_writer(postgres: Open) -> None:
    store = postgres()
    store.save([fact("first", "note")])

    def write() -> None:
        for number in range(300):
            store.save([fact(f"f{number}", f"note {number} of the build")])

    with store.reading():
        assert store.ids(limit=9) == ("first",)
        thread = threading.Thread(target=write)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
        assert store.ids(limit=9) == ("first",)
        held = store.info().bytes
    assert len(store.ids(limit=999)) == 301
    store.maintain()
    store.scrub()
    assert store.info().bytes <= held  # what the reader kept is given back


def test_more_calls_than_connections_wait_and_then_say_so(postgres: Open) -> None:
    store = postgres(options=HASTY, postgres=replace(HASTY.postgres, pool_size=1))
    refused: list[StoreError] = []

    def call() -> None:
        try:
            store.scopes()
        except StoreError as error:
            refused.append(error)

    with store.reading():
        thread = threading.Thread(target=call)
        thread.start()
        thread.join(30)
    assert [type(error) for error in refused] == [StoreBusy]
    assert "All 1 connections" in str(refused[0])
    assert store.scopes() == frozenset()


def test_r15_no_connection_is_held_while_a_model_works(schema: str, tmp_path: Path) -> None:
    """With one connection in all, what a model asks meanwhile would wait for ever if its caller kept it."""
    seen: list[str] = []
    env = {
        "GROUNDED_HOME": str(tmp_path),
        "GROUNDED_STORE": postgres_server.url(),
        "GROUNDED_STORE__POSTGRES__SCHEMA": schema,
        "GROUNDED_STORE__POSTGRES__POOL_SIZE": "1",
    }
    options = settings(load(folder=tmp_path, env=env))

    class Watched(HashingEmbedder):
        def embed(self, texts: Any, purpose: Any) -> Any:
            base.store.scopes()
            seen.append(purpose)
            return super().embed(texts, purpose)

    class Judge:
        fingerprint = "judge"

        def scores(self, query: str, texts: Any) -> list[float]:
            base.store.scopes()
            seen.append("rerank")
            return [float(len(text)) for text in texts]

    base = open_base(options, load=lambda _: Watched())
    judge = GuardedReranker(RerankerOptions(model="judge"), lambda _: Judge())
    base = replace(base, reranker=judge)
    memory = build_memory(base, find_project(options, tmp_path))
    assert memory.embedder is not None
    assert memory.embedder.wait_ready(30)
    assert judge.wait_ready(30)
    base.store.save([fact(f"f{n}", f"lever number {n}") for n in range(5)])
    memory.fill_vectors()
    assert memory.recall("which lever").candidates
    memory.close()
    judge.close()
    assert set(seen) == {"passage", "query", "rerank"}


# --- the server goes away ---------------------------------------------------------------------------------


@pytest.fixture
def wire() -> Iterator[Wire]:
    with wired() as made:
        yield made


@contextmanager
def through(wire: Wire, schema: str) -> Iterator[PostgresStore]:
    options = replace(HASTY, postgres=replace(HASTY.postgres, schema=schema))
    with closing(PostgresStore(wire.url, Analyzer(), options)) as store:
        yield store


def test_a_lost_server_is_told_and_used_again_when_it_is_back(wire: Wire, schema: str) -> None:
    with through(wire, schema) as store:
        store.save([fact("f1", "lever")])
        wire.cut()
        for call in (store.scopes, lambda: store.save([fact("f2", "knob")]), lambda: found(store, "lever")):
            with pytest.raises(StoreUnreachable, match="goes on by itself when it is back"):
                call()
        wire.whole = True
        assert patiently(lambda: found(store, "lever")) == ["f1"]
        store.save([fact("f2", "knob")])
        assert found(store, "knob") == ["f2"]


def patiently(call: Callable[[], Any]) -> Any:
    """What a call gives once the pool has found the way again: on a busy machine not within its 0.3 s."""
    for _ in range(30):
        with suppress(StoreUnreachable):
            return call()
    return call()


def test_connections_that_the_server_ended_cost_no_call(postgres: Open, schema: str) -> None:
    store = postgres()
    store.save([fact("f1", "lever")])
    end_all(schema, store)
    assert found(store, "lever") == ["f1"]
    end_all(schema, store)
    store.save([fact("f2", "knob")])
    end_all(schema, store)
    with store.reading():
        assert found(store, "knob") == ["f2"]


def end_all(schema: str, store: Any) -> None:
    """End every connection of a store, as a restart of the server does."""
    mine = [row[0] for row in store._database.read(lambda db: db.execute("SELECT pg_backend_pid()").fetchall())]
    with psycopg.connect(postgres_server.url(), autocommit=True) as db:
        for pid in mine:
            db.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))


def test_a_write_whose_server_is_lost_in_the_middle_stores_nothing(wire: Wire, schema: str) -> None:
    with through(wire, schema) as store:
        store.save([fact("f1", "lever")])
        store._clock = lambda: wire.cut() or 1.0  # asked inside the write's transaction
        with pytest.raises(StoreUnreachable):
            store.save([fact("f1", "knob"), fact("f2", "knob")])
        wire.whole = True
        assert patiently(lambda: (found(store, "lever"), found(store, "knob"))) == (["f1"], [])


# --- faults and filters -----------------------------------------------------------------------------------

OPERATIONS: dict[str, Callable[[Any], object]] = {
    "remember": lambda store: store.save([fact("new", "a knob", "project:new")]),
    "update": lambda store: store.save([doc("a.md", "alpha", "changed", updated_at=5.0)]),
    "supersede": lambda store: store.save([fact("new", "port 8091", key="port")], supersede={"doc_a.md": "new"}),
    "move": lambda store: store.save([fact("f1", "port 8090", "project:b", key="port")]),
    "forget": lambda store: store.delete(["f1", "doc_a.md"]),
    "vectors": lambda store: store.set_vectors(SPACE, {each.id: unit(0, 1, 0, 0) for each in store.pending(9)}),
    "reset": lambda store: store.reset_vectors(),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_case_30_a_fault_at_any_statement_leaves_the_store_as_it_was(
    postgres: Open, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    store = postgres(clock=lambda: 1.0)
    store.save([fact("f1", "port 8090", key="port"), doc("a.md", "alpha", "bravo")])
    embed(store, "f1", unit(1, 0, 0, 0))
    before, left, failed = held(store), [0], 0
    execute = psycopg.Connection.execute

    def faulty(db: Any, statement: Any, *given: Any, **more: Any) -> Any:
        if left[0]:
            left[0] -= 1
            if not left[0] and statement != "ROLLBACK":
                raise psycopg.errors.IoError("injected")
        return execute(db, statement, *given, **more)

    monkeypatch.setattr(psycopg.Connection, "execute", faulty)
    while True:
        left[0] = failed + 1
        try:
            OPERATIONS[operation](store)
            break
        except StoreError:
            failed += 1
        left[0] = 0
        if held(store) != before:  # the fault came after the commit: only the acknowledgement is missing
            break
        assert store.check() == ()
    left[0] = 0
    assert failed > 3
    assert held(store) != before
    assert store.check() == ()


def test_t23_beyond_a_size_an_index_answers_and_a_filter_still_acts_inside_the_search(postgres: Open) -> None:
    store = postgres(postgres=PostgresOptions(exact_vectors=60, ef_search=40))
    exact = postgres(postgres=PostgresOptions(exact_vectors=10_000))
    source, space = random.Random(3), Space("model-b", 16)
    for start in range(0, 300, 100):
        store.save([fact(f"a{n}", str(n), "project:a") for n in range(start, start + 100)])
    store.save([fact(f"b{n}", str(n), "project:b") for n in range(3)])
    store.save([fact(f"c{n}", str(n), "project:c", updated_at=float(n)) for n in range(70)])
    store.set_vectors(space, {each.id: random_unit(source, 16) for each in store.pending(1000)})
    assert store._database.read(lambda db: db.execute("SELECT to_regclass('embedded_hnsw')").fetchone()) != (None,)
    for _ in range(5):
        query = random_unit(source, 16)
        best, indexed = (each.nearest(query, where("project:a"), 10) for each in (exact, store))
        assert len({hit.passage for hit in best} & {hit.passage for hit in indexed}) >= 9
        assert len(store.nearest(query, where("project:a"), 200)) == 200
        for filter in (where("project:b"), where("project:c"), where("project:c", since=60.0)):
            assert len(store.nearest(query, filter, 40)) == len(exact.nearest(query, filter, 40))
    assert len(near(store, random_unit(source, 16), where("project:b"), 5)) == 3
    other = Space("model-c", 5)
    assert store.reset_vectors(other) == 373
    embed(store, "b0", unit(1, 0, 0, 0, 0), space=other)
    assert near(store, unit(1, 0, 0, 0, 0), EVERYTHING, 3) == ["b0"]


def test_maintaining_makes_the_index_of_vectors_that_came_another_way_and_leaves_no_setting_behind(
    postgres: Open,
) -> None:
    exact = postgres(postgres=PostgresOptions(exact_vectors=10_000))
    exact.save([fact(f"a{n}", str(n), "project:a") for n in range(80)])
    source, space = random.Random(3), Space("model-b", 16)
    exact.set_vectors(space, {each.id: random_unit(source, 16) for each in exact.pending(100)})
    exact.close()
    store = postgres(postgres=PostgresOptions(exact_vectors=60, pool_size=1))
    asked = (
        "SELECT current_setting('lock_timeout'), current_setting('maintenance_work_mem'), to_regclass('embedded_hnsw')"
    )

    def state() -> tuple[Any, ...]:
        found: tuple[Any, ...] = store._database.read(lambda db: db.execute(asked).fetchone())
        return found

    before = state()
    assert before[2] is None
    store.maintain()
    assert state()[:2] == before[:2]
    assert state()[2] is not None
    assert len(store.nearest(random_unit(source, 16), where("project:a"), 70)) == 70


def test_t42_case_61_what_was_forgotten_is_in_no_row_of_any_table(postgres: Open) -> None:
    store = postgres()
    store.save([fact("f1", "the zebra-lever is green"), fact("f2", "lever")])
    embed(store, "f1", unit(1, 0, 0, 0))
    embed(store, "f2", unit(1, 1, 0, 0))
    assert b"zebra" in held(store)
    store.delete(["f1"])
    assert b"zebra" not in held(store)
    assert (found(store, "zebra lever", k=1), near(store, unit(1, 0, 0, 0), k=1)) == (["f2"], ["f2"])
    assert store.check() == ()
