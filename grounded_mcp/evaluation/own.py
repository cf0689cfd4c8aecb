"""The user's own store asked about itself: known-item questions made from what it holds, without a model.

A question is made of one passage of one item, and that item is its answer. Its title and headings are masked, so that
the passage itself has to be found. Nothing is written, and nothing of the store's text leaves but in the questions.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256

from grounded_mcp.assemble import open_memory, open_store
from grounded_mcp.errors import InputError, NotFound
from grounded_mcp.evaluation.caching import Models
from grounded_mcp.evaluation.configurations import Configuration, stored_alike
from grounded_mcp.evaluation.datasets import ALL, Question
from grounded_mcp.evaluation.run import Asking, Outcome, Step, ask
from grounded_mcp.knowledge.reuse import reused_part
from grounded_mcp.recall.ask import SOURCES
from grounded_mcp.stores.base import Store
from grounded_mcp.stores.rules import MAX_K
from grounded_mcp.text import Analyzer
from grounded_mcp.tokens import STOP_WORDS
from grounded_mcp.values import GLOBAL_SCOPE, Filter, Item, Passage

QUESTIONS = 200
TELLING = 4
"""Words of a question that are no stop words and in no heading: with fewer nobody would know what is asked for."""
WORDS = 4
"""A question of single words has this many: what people type."""
SENTENCE_WORDS = 25

_SENTENCE = re.compile(r"[^.!?。！？\n]+")
_PLACEHOLDER = re.compile(r"\[REDACTED:[^\]]*\]")
_SPACED = re.compile(r"\S+")
_MARKS = ".,;:!?()\"'"


@dataclass(frozen=True, slots=True)
class Drawn:
    """A passage that questions are made of, and the item it is from."""

    item: Item
    passage: Passage


def evaluate_own(
    configurations: Sequence[Configuration], step: Step, *, count: int | None = None, seed: int = 0
) -> Outcome:
    """Ask the store of the first configuration about itself, under each. The same seed gives the same questions.

    Raises: InputError for a configuration that would need another store, or a project with nothing stored;
    StoreError; ModelError.
    """
    first = configurations[0].settings
    if other := next((c for c in configurations if stored_alike(c.settings) != stored_alike(first)), None):
        raise InputError("set", f"{other.name} would store otherwise.", "On your own store compare [recall] settings.")
    models, started = Models(None), time.perf_counter()
    with (
        closing(open_memory(first, create=False, load=models.load)) as memory,
        closing(open_store(first, create=False)) as store,
    ):
        scopes = frozenset({memory.project.scope, GLOBAL_SCOPE})
        drawn = draw(store, scopes, count or QUESTIONS, seed)
        passages = store.info().passages
        reuse = reused_part(store.noted(0.0, project=memory.project.key).recalls)
    questions = known_items(drawn, Analyzer(first.analyzer), count or QUESTIONS, seed)
    if not questions:
        raise InputError("own", "nothing is stored for this project to ask about.", "Run `grounded-mcp sync` first.")
    groups = tuple(sorted({group for question in questions for group in question.groups}, key=_order))
    outcome = Outcome("own store", "known items", groups, list(questions), documents=len(drawn), passages=passages)
    outcome.reuse = reuse
    making, started = time.perf_counter() - started, time.perf_counter()
    asking = Asking(None, anywhere=False, name=lambda item: item.id, limit=None, live=True)
    for each in configurations:
        with closing(open_memory(each.settings, create=False, load=models.load)) as memory:
            outcome.answers[each.name] = ask(memory, questions, asking, step)
    outcome.seconds = {"make": making, "ask": time.perf_counter() - started}
    return outcome


def draw(store: Store, scopes: frozenset[str], count: int, seed: int) -> list[Drawn]:
    """One passage of each of ``count`` items, as even over the kinds as there are items. At most ``MAX_K`` passages of
    a kind are drawn from. Raises: StoreError."""
    pools = []
    for kind in SOURCES:
        hits = store.timed(-math.inf, math.inf, Filter(frozenset({kind}), scopes), MAX_K)
        items = {found.item.id for found in store.fetch([hit.passage for hit in hits]).values()}
        pools.append(sorted(items, key=lambda id_: _hash(seed, id_)))
    turns = [id_ for at in range(max(map(len, pools))) for pool in pools for id_ in pool[at : at + 1]]
    drawn: list[Drawn] = []
    for id_ in turns:
        if len(drawn) >= count:
            break
        try:
            item, passages = store.item(id_)
        except NotFound:  # forgotten meanwhile
            continue
        if item.state == "active" and passages:
            drawn.append(Drawn(item, min(passages, key=lambda each: _hash(seed, f"{id_}#{each.seq}"))))
    return drawn


def known_items(drawn: Sequence[Drawn], analyzer: Analyzer, count: int, seed: int) -> tuple[Question, ...]:
    """At most ``count`` questions: by turns a sentence of the passage, and its words that fewest others have."""
    tokens = [Counter(analyzer.index(each.passage.body)) for each in drawn]
    spread = Counter(token for each in tokens for token in each)
    makers: Sequence[tuple[str, Callable[[Drawn], str | None]]] = (
        ("a sentence", lambda each: _sentence(each, analyzer, seed)),
        ("rare words", lambda each: _rare_words(each, analyzer, spread)),
    )
    questions = []
    for at, each in enumerate(drawn):
        form, make = makers[at // len(SOURCES) % len(makers)]
        text = make(each)
        if text is not None:
            questions.append(Question(text, {each.item.id: 1.0}, (each.item.kind, form, ALL), each.item.id))
    return tuple(questions[:count])


def _sentence(drawn: Drawn, analyzer: Analyzer, seed: int) -> str | None:
    """One sentence without what the headings say already; None where none says enough."""
    masked = _masked(drawn, analyzer)
    sentences = _SENTENCE.findall(_PLACEHOLDER.sub(" ", drawn.passage.body))
    for sentence in sorted(sentences, key=lambda text: _hash(seed, text)):
        kept = [word for word in _SPACED.findall(sentence)[:SENTENCE_WORDS] if not _terms(word, analyzer) & masked]
        if len(_telling(kept, analyzer)) >= TELLING:
            return " ".join(kept)
    return None


def _rare_words(drawn: Drawn, analyzer: Analyzer, spread: Mapping[str, int]) -> str | None:
    """The words that fewest drawn passages have, in the passage's order; None where there are too few."""
    masked = _masked(drawn, analyzer)
    words = dict.fromkeys(_SPACED.findall(_PLACEHOLDER.sub(" ", drawn.passage.body)))
    plain = [word for word in words if word.strip(_MARKS).isalnum() and not _terms(word, analyzer) & masked]
    telling = _telling(plain, analyzer)
    if len(telling) < TELLING:
        return None
    rarest = sorted(telling, key=lambda word: min(spread[term] for term in _terms(word, analyzer)))[:WORDS]
    return " ".join(word.strip(_MARKS) for word in telling if word in rarest)


def _masked(drawn: Drawn, analyzer: Analyzer) -> frozenset[str]:
    """The terms of title and headings. A title that is the text's own beginning, as a fact's is, is no heading."""
    title = drawn.item.title.removesuffix("…")
    own = drawn.passage.body.lstrip().startswith(title)
    return _terms(f"{'' if own else title} {drawn.passage.heading}", analyzer)


def _telling(words: Iterable[str], analyzer: Analyzer) -> list[str]:
    return [word for word in words if word.strip(_MARKS).casefold() not in STOP_WORDS and _terms(word, analyzer)]


def _terms(text: str, analyzer: Analyzer) -> frozenset[str]:
    return frozenset(analyzer.index(text))


def _order(group: str) -> tuple[bool, bool, str]:
    """Kinds, then forms, then all."""
    return (group == ALL, group not in SOURCES, group)


def _hash(seed: int, text: str) -> bytes:
    return sha256(f"{seed}\0{text}".encode("utf-8", "replace")).digest()
