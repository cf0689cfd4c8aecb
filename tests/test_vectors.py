"""Filling in vectors: resumable, by one process at a time, and never a mix of two models."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from grounded_mcp.errors import ModelError
from grounded_mcp.ingest.vectors import LEASE, BackfillReport, backfill
from grounded_mcp.models.base import Embedder, Purpose
from grounded_mcp.models.catalog import EmbeddingOptions
from grounded_mcp.models.guard import GuardedEmbedder
from grounded_mcp.models.hashing import HashingEmbedder
from grounded_mcp.stores.options import StoreOptions
from grounded_mcp.stores.sqlite import SqliteStore
from grounded_mcp.text import Analyzer
from grounded_mcp.values import Clean, Filter, Item, Passage, Record, Space, Vector

SOON = 20.0


def facts(count: int, first: int = 0) -> list[Record]:
    return [
        Record(
            Item(id=f"f{n}", kind="fact", scope="global", title=Clean(f"fact {n}")),
            (Passage(0, Clean(f"the color of item {n} is shade-{n * n}")),),
        )
        for n in range(first, first + count)
    ]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "memory.db", Analyzer(), StoreOptions())
    yield opened
    opened.close()


Make = Callable[[Embedder], GuardedEmbedder]


@pytest.fixture
def guarded() -> Iterator[Make]:
    made: list[GuardedEmbedder] = []

    def make(embedder: Embedder) -> GuardedEmbedder:
        made.append(GuardedEmbedder(EmbeddingOptions(provider="hashing"), lambda _: embedder))
        return made[-1]

    yield make
    for each in made:
        each.close()


class Watched(HashingEmbedder):
    """A hashing embedder that runs ``before`` each batch of passages."""

    def __init__(self, before: Callable[[Sequence[str]], None], dimensions: int = 16) -> None:
        super().__init__(dimensions)
        self._before = before

    def embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        self._before(texts)
        return super().embed(texts, purpose)


def outcome(report: BackfillReport) -> tuple[int, int, int, str | None]:
    return report.embedded, report.none, report.left, report.reason


def states(store: SqliteStore) -> dict[str, int]:
    return {name: count for name, count in store.info().vectors.items() if count}


def nearest(store: SqliteStore, text: str, dimensions: int = 16) -> str:
    (vector,) = HashingEmbedder(dimensions).embed([text], "query")
    (hit,) = store.nearest(vector, Filter(frozenset({"fact"})), 1)
    return store.fetch([hit.passage])[hit.passage].item.id


def test_every_pending_passage_gets_a_vector_and_a_second_run_has_nothing_to_do(
    store: SqliteStore, guarded: Make
) -> None:
    store.save(facts(70))
    seen: list[tuple[int, int]] = []
    embedder = guarded(HashingEmbedder(16))
    report = backfill(store, embedder, progress=lambda done, total: seen.append((done, total)))
    assert outcome(report) == (70, 0, 0, None)
    assert seen == [(32, 70), (64, 70), (70, 70)]
    assert store.space() == Space("hashing/16/1", 16)
    assert nearest(store, "fact 7 the color of item 7 is shade-49") == "f7"
    assert outcome(backfill(store, embedder)) == (0, 0, 0, None)


def test_a_run_that_is_stopped_goes_on_where_it_was(store: SqliteStore, guarded: Make) -> None:
    store.save(facts(50))
    texts: list[str] = []
    embedder = guarded(Watched(texts.extend))
    stopped = backfill(store, embedder, batch_size=20, stop=lambda: len(texts) >= 20)
    assert outcome(stopped) == (20, 0, 30, None)
    assert outcome(backfill(store, embedder, batch_size=20)) == (30, 0, 0, None)
    assert len(texts) == len(set(texts)) == 50


def test_case_12_a_passage_without_a_usable_vector_is_marked_and_not_tried_again(
    store: SqliteStore, guarded: Make
) -> None:
    class Spoiled(HashingEmbedder):
        def embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
            spoiled = Vector(b"\x00\x00\xc0\x7f" * 16)  # NaN
            return [spoiled if "item 3 " in t else v for t, v in zip(texts, super().embed(texts, purpose), strict=True)]

    store.save(facts(5))
    embedder = guarded(Spoiled(16))
    assert outcome(backfill(store, embedder)) == (4, 1, 0, None)
    assert states(store) == {"ok": 4, "none": 1}
    assert outcome(backfill(store, embedder)) == (0, 0, 0, None)


def test_case_40_a_model_that_fails_on_the_way_leaves_what_was_written_and_the_rest_for_later(
    store: SqliteStore, guarded: Make
) -> None:
    well = [True]

    def before(texts: Sequence[str]) -> None:
        if not well[0] or any("item 20 " in text for text in texts):
            well[0] = False
            raise RuntimeError("out of memory")

    store.save(facts(30))
    report = backfill(store, guarded(Watched(before)), batch_size=10)
    assert outcome(report)[:3] == (20, 0, 10)
    assert report.reason == "The embedder failed (RuntimeError). Where it failed is in the log, on stderr."
    assert outcome(backfill(store, guarded(HashingEmbedder(16)), batch_size=10)) == (10, 0, 0, None)


def test_t1_passages_wait_for_a_model_that_appears_later(store: SqliteStore, guarded: Make) -> None:
    def missing(_: EmbeddingOptions) -> Embedder:
        raise ModelError("missing", "No model here.", "Fetch it.")

    store.save(facts(20))
    absent = GuardedEmbedder(EmbeddingOptions(provider="hashing"), missing)
    assert outcome(backfill(store, absent)) == (0, 0, 20, "No model here. Fetch it.")
    absent.close()
    assert store.space() is None
    assert outcome(backfill(store, guarded(HashingEmbedder(16)))) == (20, 0, 0, None)


def test_t5_case_44_an_index_of_another_model_is_left_alone_and_switching_back_needs_no_work(
    store: SqliteStore, guarded: Make
) -> None:
    one, other = guarded(HashingEmbedder(16)), guarded(HashingEmbedder(8))
    store.save(facts(10))
    backfill(store, one)
    store.save(facts(3, first=10))
    report = backfill(store, other)
    assert outcome(report) == (
        0,
        0,
        3,
        "The index holds vectors of hashing/16/1 (16 dimensions), not of hashing/8/1 (8). "
        "Configure that model again, or rebuild the vectors with `grounded-mcp sync --reembed`.",
    )
    assert states(store) == {"ok": 10, "pending": 3}
    assert nearest(store, "the color of item 7 is shade-49") == "f7"
    assert outcome(backfill(store, one)) == (3, 0, 0, None)
    store.reset_vectors()
    assert outcome(backfill(store, other)) == (13, 0, 0, None)
    assert store.space() == Space("hashing/8/1", 8)


def test_passages_that_vanish_while_they_are_embedded_are_skipped(store: SqliteStore, guarded: Make) -> None:
    store.save(facts(5))
    embedder = guarded(Watched(lambda _: store.delete(["f2"]) and None))
    assert outcome(backfill(store, embedder)) == (4, 0, 0, None)
    assert states(store) == {"ok": 4}


def test_i2_rows_can_be_saved_while_vectors_are_made(store: SqliteStore, guarded: Make) -> None:
    """Embedding holds no transaction: a writer in another thread gets through, and its row is embedded too."""
    store.save(facts(2))
    saved: list[int] = []

    def save_elsewhere(_: Sequence[str]) -> None:
        if not saved:
            thread = threading.Thread(target=lambda: saved.append(store.save(facts(1, first=9)).added))
            thread.start()
            thread.join(SOON)

    assert outcome(backfill(store, guarded(Watched(save_elsewhere)))) == (3, 0, 0, None)
    assert saved == [1]


def test_it_waits_for_a_model_that_is_loading_and_hears_stop_meanwhile(store: SqliteStore) -> None:
    release = threading.Event()

    def load(_: EmbeddingOptions) -> Embedder:
        release.wait(SOON)
        return HashingEmbedder(16)

    store.save(facts(1))
    slow = GuardedEmbedder(EmbeddingOptions(provider="hashing"), load)
    report = backfill(store, slow, wait_s=0.0)
    assert outcome(report) == (0, 0, 1, "The embedding model is still loading. Ask again in a few seconds.")
    asked: list[bool] = []
    stopped = backfill(store, slow, stop=lambda: bool(asked.append(True)) or len(asked) > 1)
    assert outcome(stopped) == (0, 0, 1, None)
    threading.Timer(0.05, release.set).start()
    assert outcome(backfill(store, slow)) == (1, 0, 0, None)
    slow.close()


def test_a_store_without_pending_passages_does_not_even_load_the_model(store: SqliteStore) -> None:
    untouched = GuardedEmbedder(EmbeddingOptions(provider="hashing"))
    assert outcome(backfill(store, untouched)) == (0, 0, 0, None)
    assert untouched.state.name == "idle"


def test_only_one_process_at_a_time_makes_vectors(store: SqliteStore, tmp_path: Path, guarded: Make) -> None:
    store.save(facts(3))
    other = SqliteStore(tmp_path / "memory.db", Analyzer(), StoreOptions())
    with other.lease(LEASE, 60) as held:
        assert held
        report = backfill(store, guarded(HashingEmbedder(16)))
    assert outcome(report) == (0, 0, 3, "Another process is adding vectors to this store.")
    other.close()
