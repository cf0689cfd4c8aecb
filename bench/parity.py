"""The same answers on SQLite and on Postgres, on real data sets: every question in every fusion mode, asked of both.

``--data`` names a folder of data sets in the shapes that ``docs/eval.md`` describes. Each is taken in as ``eval`` takes
it in, then stored into both engines; asked; changed by deletions, replacements and new passages, and embedded again;
and asked again. ``--queries`` is the most that are asked of one data set. Postgres is the server that
GROUNDED_TEST_POSTGRES names, or one from the wheel that the tests use.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.team import postgres
from bench.timing import table
from grounded_mcp.assemble import Base, build_memory, find_project, open_base, open_store
from grounded_mcp.config import load
from grounded_mcp.errors import InputError
from grounded_mcp.evaluation.caching import Models
from grounded_mcp.evaluation.datasets import Collection, Dataset, Question, read
from grounded_mcp.evaluation.filling import MODEL_WAIT_S, Filled, fill, sealed
from grounded_mcp.memory import Memory
from grounded_mcp.recall.scope import ANY_PROJECT
from grounded_mcp.settings import Settings, settings
from grounded_mcp.stores.base import Store
from grounded_mcp.values import Clean, Passage, Record

MODES: tuple[Mapping[str, object], ...] = (
    *({"recall.fusion.mode": mode} for mode in ("rrf", "hybrid", "blend")),
    *({"recall.fusion.mode": "normalized", "recall.fusion.normalization": way} for way in ("min_max", "zscore")),
)
BATCH = 50
CLOSE = 1e-6


@dataclass(slots=True)
class Found:
    """What was compared. ``worst``: the largest difference between two scores of one result."""

    name: str
    passages: int = 0
    recalls: int = 0
    results: int = 0
    different: list[str] = field(default_factory=list)
    worst: float = 0.0


def measure(args: argparse.Namespace) -> list[str]:
    with ExitStack() as held:
        scratch = Path(held.enter_context(TemporaryDirectory()))
        server = held.enter_context(postgres(scratch))
        assert server, "Postgres is not installed"
        models = Models(Path(args.cache))
        found = [_compared(each, scratch, server, models, args.queries) for each in _sets(args.data)]
        models.save()
    rows = [(each.name, each.passages, each.recalls, each.results, len(each.different), each.worst) for each in found]
    return [
        "### SQLite and Postgres on the dev data sets",
        "",
        f"Recalls in {len(MODES)} fusion modes, each question before and after three of seven items were changed",
        "(deleted, superseded, made longer) and all were embedded again.",
        "",
        *table(
            ("data set", "passages", "recalls", "results", "recalls that differ", "largest difference of scores"), rows
        ),
        *(f"- {each.name}: {told}" for each in found for told in each.different[:5]),
    ]


def _sets(data: Path) -> Iterator[Dataset]:
    for folder in sorted(path for path in data.iterdir() if path.is_dir()):
        try:
            yield read(folder)
        except InputError:  # a folder of something else
            continue


def _compared(dataset: Dataset, scratch: Path, server: str, models: Models, most: int) -> Found:
    found = Found(dataset.name)
    asked = [collection for collection in dataset.collections if collection.questions]
    for number, collection in enumerate(asked):
        questions = _spread(collection.questions, -(-most // len(asked)))
        _compare(collection, questions, scratch / f"{dataset.name}-{number}", server, models, found)
    return found


def _compare(
    collection: Collection, questions: Sequence[Question], home: Path, server: str, models: Models, found: Found
) -> None:
    filled, source = _taken_in(collection, home, models)
    schema = f"parity_{time.time_ns()}"
    places = (str(home / "one.db"), server)
    options = [[_options(source, place, schema, mode) for place in places] for mode in MODES]
    with ExitStack() as held:
        pairs = [[_open(each, models, filled, held) for each in pair] for pair in options]
        stores = [base.store for base, _ in pairs[0]]
        assert [store.info().engine for store in stores] == ["sqlite", "postgres"]
        _copy(source, stores)
        _embed([memory for _, memory in pairs[0]])
        found.passages += stores[0].info().passages
        _ask(pairs, questions, filled, found)
        _change(stores)
        _embed([memory for _, memory in pairs[0]])
        _ask(pairs, questions, filled, found)


def _taken_in(collection: Collection, home: Path, models: Models) -> tuple[Filled, Settings]:
    plain = settings(load(cwd=home.parent, env={"GROUNDED_HOME": str(home)}))
    source = sealed(plain, home, collection.transcripts)
    return fill(collection, source, models.load, lambda *_: None), source


def _options(source: Settings, place: str, schema: str, mode: Mapping[str, object]) -> Settings:
    env = {"GROUNDED_HOME": str(source.places.home), "GROUNDED_STORE__POSTGRES__SCHEMA": schema}
    changed = settings(load(cwd=source.places.home, env=env, flags=mode))
    return replace(source, places=replace(source.places, store=place), recall=changed.recall, store=changed.store)


def _open(options: Settings, models: Models, filled: Filled, held: ExitStack) -> tuple[Base, Memory]:
    base = open_base(options, load=models.load, clock=lambda: filled.now)
    memory = held.enter_context(closing(build_memory(base, find_project(options, options.project_dir))))
    assert memory.wait_ready(MODEL_WAIT_S)
    return base, memory


def _copy(source: Settings, stores: Sequence[Store]) -> None:
    with closing(open_store(source)) as old:
        ids = old.ids(limit=1_000_000)
        for start in range(0, len(ids), BATCH):
            batch = [Record(*old.item(each), old.evidence(each)) for each in ids[start : start + BATCH]]
            reports = [store.save(batch) for store in stores]
            assert reports[0] == reports[1]


def _embed(memories: Sequence[Memory]) -> None:
    for memory in memories:
        memory.fill_vectors()
        assert not memory.status().store.vectors.get("pending")


def _change(stores: Sequence[Store]) -> None:
    """Of seven items one goes, one is superseded, one gets a passage more; and no vector is left."""
    ids = stores[0].ids(limit=1_000_000)
    for store in stores:
        for start in range(0, len(ids), BATCH):
            part = ids[start : start + BATCH]
            store.delete(part[::7])
            store.mark(part[1::7], "superseded", 1.0)
            store.save([_longer(store, each) for each in part[2::7]])
        store.reset_vectors()


def _longer(store: Store, item_id: str) -> Record:
    item, passages = store.item(item_id)
    more = Passage(len(passages), Clean(f"{item.title} was looked at again, and {item.title} it stays."))
    return Record(item if item.body is None else replace(item, body=Clean(item.body + more.body)), (*passages, more))


def _ask(
    pairs: Sequence[Sequence[tuple[Base, Memory]]], questions: Sequence[Question], filled: Filled, found: Found
) -> None:
    given: dict[str, Any] = {"sources": filled.kinds, **({"project": ANY_PROJECT} if filled.anywhere else {})}
    for mode, pair in zip(MODES, pairs, strict=True):
        for question in questions:
            answers = [memory.recall(question.text, **given) for _, memory in pair]
            assert not any(answer.degradation for answer in answers), answers[0].degradation
            one, two = (answer.candidates for answer in answers)
            found.recalls += 1
            found.results += len(one)
            apart = [abs(left.score - right.score) for left, right in zip(one, two, strict=False)]
            found.worst = max(found.worst, *apart, 0.0)
            if [each.id for each in one] != [each.id for each in two] or max(apart, default=0.0) > CLOSE:
                found.different.append(f"{mode}: {question.text!r}")


def _spread(questions: Sequence[Question], most: int) -> Sequence[Question]:
    """So many of them, from the first to the last."""
    step = max(1, -(-len(questions) // most))
    return questions[::step]
