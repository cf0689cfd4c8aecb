"""Every configuration asked every question, through ``Memory.recall`` on a real store, and what came of it.

A data set's collections go into temporary stores, which configurations share as long as they store alike.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from grounded_mcp.assemble import open_memory
from grounded_mcp.errors import ModelError
from grounded_mcp.evaluation.configurations import Configuration, stored_alike
from grounded_mcp.evaluation.datasets import Collection, Dataset, Question
from grounded_mcp.evaluation.filling import MODEL_WAIT_S, Filled, fill, sealed
from grounded_mcp.evaluation.metrics import DEPTH, Score, score
from grounded_mcp.memory import Memory
from grounded_mcp.models.guard import Loader
from grounded_mcp.recall.scope import ANY_PROJECT
from grounded_mcp.settings import Settings
from grounded_mcp.values import Item, Kind

Step = Callable[[str, int, int], None]
"""What is being done, and how far it is."""


class Answer(NamedTuple):
    """What one question came to. ``ms``: the whole recall; ``degraded``: only words were searched."""

    score: Score
    ms: float
    degraded: bool


@dataclass(slots=True)
class Outcome:
    """Everything a report is made from. ``answers``: by configuration, each as long as ``questions``."""

    name: str
    shape: str
    groups: tuple[str, ...]
    questions: list[Question] = field(default_factory=list)
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    documents: int = 0
    passages: int = 0
    left_out: list[str] = field(default_factory=list)
    """Documents that were not taken in."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    reuse: float | None = None
    """Of the user's own store: the part of its recalls that were reported as reused. None: nothing was reported."""


@dataclass(frozen=True, slots=True)
class Asking:
    """How questions are put: to which kinds of memory, in which projects, and what names an item in the answer."""

    kinds: tuple[Kind, ...] | None
    anywhere: bool
    name: Callable[[Item], str]
    limit: int | None = DEPTH
    live: bool = False
    """Whether the clock runs while a question is embedded. Otherwise its vector is kept, and looked up before."""


def evaluate(
    dataset: Dataset,
    configurations: Sequence[Configuration],
    load: Loader,
    step: Step,
    *,
    sample: int | None = None,
    seed: int = 0,
    live: bool = False,
) -> Outcome:
    """Fill and ask. ``sample``: so many of the questions, the same for the same ``seed``; ``live`` as in ``Asking``.

    Raises: GroundedError when a store cannot be filled.
    """
    outcome = Outcome(dataset.name, dataset.shape, dataset.groups, answers={each.name: [] for each in configurations})
    filling = asking = 0.0
    for number, (collection, questions) in enumerate(_sampled(dataset, sample, seed)):
        if not questions:
            continue
        outcome.questions += [_clustered(each, number, at) for at, each in enumerate(questions)]
        for _, group in groupby(sorted(configurations, key=_alike), key=_alike):
            with tempfile.TemporaryDirectory(prefix="grounded-eval-", ignore_cleanup_errors=True) as scratch:
                alike = list(group)
                started = time.perf_counter()
                here = [_sealed(each, Path(scratch), collection) for each in alike]
                filled = fill(collection, here[0].settings, load, lambda at, all_: step("passages", at, all_))
                filling += time.perf_counter() - started
                started = time.perf_counter()
                for each in here:
                    outcome.answers[each.name] += _ask_all(each.settings, filled, questions, load, step, live=live)
                asking += time.perf_counter() - started
        _count(outcome, filled)
    outcome.seconds = {"fill": filling, "ask": asking}
    return outcome


def _alike(configuration: Configuration) -> str:
    return stored_alike(configuration.settings)


def _sealed(configuration: Configuration, home: Path, collection: Collection) -> Configuration:
    settings = sealed(configuration.settings, home, collection.transcripts)
    return Configuration(configuration.name, settings, configuration.changes)


def _count(outcome: Outcome, filled: Filled) -> None:
    outcome.documents += filled.documents
    outcome.passages += filled.passages
    outcome.left_out += filled.left_out


def _sampled(dataset: Dataset, count: int | None, seed: int) -> list[tuple[Collection, list[Question]]]:
    """Each collection with its part of ``count`` questions, or all of them: those that hash lowest with the seed."""
    places = [(at, number) for at, each in enumerate(dataset.collections) for number in range(len(each.questions))]
    ordered = sorted(places, key=lambda place: sha256(f"{seed} {place}".encode()).digest())
    kept = frozenset(ordered[:count])
    return [
        (each, [question for number, question in enumerate(each.questions) if (at, number) in kept])
        for at, each in enumerate(dataset.collections)
    ]


def _clustered(question: Question, collection: int, at: int) -> Question:
    """A question without a cluster is one by itself."""
    cluster = question.cluster or f"{collection}.{at}"
    return Question(question.text, question.gold, question.groups, f"{collection}/{cluster}")


def _ask_all(
    settings: Settings, filled: Filled, questions: Sequence[Question], load: Loader, step: Step, *, live: bool
) -> list[Answer]:
    asking = Asking(filled.kinds, filled.anywhere, lambda item: filled.ids.get(item.key or "", item.id), live=live)
    memory = open_memory(settings, cwd=settings.project_dir, load=load, clock=lambda: filled.now)
    with closing(memory):
        return ask(memory, questions, asking, step)


def ask(memory: Memory, questions: Sequence[Question], asking: Asking, step: Step) -> list[Answer]:
    """An answer to each question. The first one is asked twice: what is loaded once is nobody's latency.

    Raises: ModelError when the model does not load: words alone would be measured under its name.
    """
    if not memory.wait_ready(MODEL_WAIT_S) and memory.embedder is not None:
        problem = memory.embedder.state.problem or "The model did not load in time."
        raise ModelError("missing", problem, 'Set embedding.provider = "none" to measure keyword search.')
    for question in questions[:1]:
        _answer(memory, question, asking)
    answers = []
    for done, question in enumerate(questions, 1):
        answers.append(_answer(memory, question, asking))
        step("questions", done, len(questions))
    return answers


def _answer(memory: Memory, question: Question, asking: Asking) -> Answer:
    if memory.embedder is not None and not asking.live:
        memory.embedder.query(question.text)
    started = time.perf_counter()
    found = memory.recall(
        question.text,
        limit=asking.limit,
        sources=asking.kinds,
        project=ANY_PROJECT if asking.anywhere else None,
    )
    ms = (time.perf_counter() - started) * 1e3
    ids = [asking.name(each.found.item) for each in found.candidates if each.found]
    return Answer(score(ids, question.gold), ms, found.degradation is not None)
