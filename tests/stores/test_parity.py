"""Two engines, one answer: a corpus ranks alike on SQLite and on Postgres, whatever happened to it before (R17)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import postgres_server
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from storing import ANALYZER, EVERYTHING, SPACE, doc, fact, random_unit, where

from grounded_mcp.assemble import build_memory, find_project, open_base
from grounded_mcp.config import load
from grounded_mcp.entities import EntityId, entities, entity_id
from grounded_mcp.foreground import Most, Weights
from grounded_mcp.memory import Memory
from grounded_mcp.settings import settings as options_of
from grounded_mcp.stores.base import Store
from grounded_mcp.stores.sqlite import SqliteStore
from grounded_mcp.values import Candidate, Clean, Evidence, Filter, Hit, Item, Passage, Record, Space

pytestmark = postgres_server.NEEDED

CLOSE = 1e-6
DAY = 86_400.0
WORDS = (
    "lever",
    "knob",
    "dial",
    "gear",
    "green",
    "deploy",
    "KB-4156",
    "getUserById",
    "Maria",
    "v2.3",
    "设备清单",
    "the",
)


@dataclass(frozen=True)
class Pair:
    """The same store twice."""

    one: Store
    two: Store

    def both(self, verb: str, *given: Any, **more: Any) -> Any:
        """What both answer; it has to be the same."""
        return self.agreed(lambda store: getattr(store, verb)(*given, **more))

    def agreed(self, ask: Callable[[Store], Any]) -> Any:
        first, second = ask(self.one), ask(self.two)
        assert first == second
        return first

    def hits(self, verb: str, *given: Any) -> Sequence[Hit]:
        """What both find: the same passages in the same order, with scores that differ by nothing that counts."""
        first, second = (getattr(store, verb)(*given) for store in (self.one, self.two))
        assert [hit.passage for hit in first] == [hit.passage for hit in second]
        assert [hit.score for hit in first] == pytest.approx([hit.score for hit in second], abs=CLOSE)
        return first


@pytest.fixture
def pair(tmp_path: Path, schema: str) -> Iterator[Pair]:
    clock = lambda: 1000.0  # noqa: E731
    with (
        closing(SqliteStore(tmp_path / "memory.db", ANALYZER, clock=clock)) as one,
        closing(postgres_server.open_store(schema, clock=clock)) as two,
    ):
        yield Pair(one, two)


def sentence(source: random.Random, most: int = 14) -> str:
    return " ".join(source.choices(WORDS, weights=[9, 7, 5, 4, 4, 3, 2, 2, 2, 1, 1, 9], k=source.randint(1, most)))


def session(item_id: str, source: random.Random, scope: str) -> Record:
    start = source.uniform(0, 100) * DAY
    times = [start + turn * DAY / 4 for turn in range(source.randint(1, 5))]
    item = Item(item_id, "session", scope, Clean(sentence(source, 4)), created_at=times[0], updated_at=times[-1])
    said = (Passage(n, Clean(sentence(source)), "", n, n, at) for n, at in enumerate(times))
    return Record(item, tuple(said))


def script(item_id: str, source: random.Random, scope: str) -> Record:
    item = Item(
        item_id, "script", scope, Clean(f"make {item_id}"), key=item_id, updated_at=source.uniform(0, 100) * DAY
    )
    seen = (
        Evidence("ses_x", place, source.random() < 0.7, "verified outcome", float(place), Clean("exit"))
        for place in range(source.randint(1, 4))
    )
    return Record(item, (Passage(0, Clean(f"make {item_id} " + sentence(source, 4))),), tuple(seen))


def mixed(source: random.Random, count: int) -> list[Record]:
    """Facts, documents, sessions and scripts of three projects."""
    records: list[Record] = []
    for n in range(count):
        scope = source.choice(["global", "project:a", "project:b"])
        at = source.uniform(0, 100) * DAY
        match source.choice("ffddsc"):
            case "f":
                made = fact(
                    f"f{n}", sentence(source), scope, importance=source.random(), pinned=n % 7 == 0, updated_at=at
                )
            case "d":
                made = doc(
                    f"d{n}.md", *(sentence(source) for _ in range(source.randint(1, 4))), scope=scope, updated_at=at
                )
            case "s":
                made = session(f"s{n}", source, scope)
            case _:
                made = script(f"c{n}", source, scope)
        records.append(made)
    return records


def fill(pair: Pair, source: random.Random, count: int, space: Space = SPACE) -> list[Record]:
    records = mixed(source, count)
    for start in range(0, len(records), 100):
        batch = records[start : start + 100]
        pair.both("save", batch)
    embed_all(pair, source, space)
    return records


def embed_all(pair: Pair, source: random.Random, space: Space) -> None:
    """Vectors for all that waits, some of them equal, some passages without."""
    waiting = pair.both("pending", 10_000)
    common = random_unit(source, space.dimensions)
    made = {each.id: source.choice([common, None, *[random_unit(source, space.dimensions)] * 8]) for each in waiting}
    pair.both("set_vectors", space, made)


FILTERS: tuple[Filter, ...] = (
    EVERYTHING,
    where("project:a"),
    where("project:a", "global", kinds=["fact", "doc"]),
    where(kinds=["session"]),
    where(since=20 * DAY, until=70 * DAY),
    where("project:b", since=40 * DAY),
    where("project:none"),
)


def agree(pair: Pair, source: random.Random, space: Space = SPACE) -> None:
    """Everything that can be asked is answered alike."""
    queries = [ANALYZER.query(sentence(source, 5)) for _ in range(6)] + [("absent", "lever"), ("lever", "lever")]
    named = [entity_id(each.key) for each in entities("Maria saw KB-4156 in getUserById, v2.3")]
    found: set[int] = set()
    for filter in FILTERS:
        for k in (1, 7, 400):
            for terms in queries:
                found |= {hit.passage for hit in pair.hits("lexical", terms, filter, k)}
            vector = random_unit(source, space.dimensions)
            found |= {hit.passage for hit in pair.hits("nearest", vector, filter, k)}
            for since, until in ((30 * DAY, 33 * DAY), (-float("inf"), 50 * DAY), (99 * DAY, 100 * DAY)):
                pair.hits("timed", since, until, filter, k)
        for most in (0, 500):
            pair.agreed(lambda store: _mentions(store, named, filter, most, len))  # noqa: B023 - asked at once
        pair.agreed(lambda store: _mentions(store, named, filter, 4000, set))  # noqa: B023 - asked at once
        pair.both("recent", filter, 9)
        pair.both("proven", filter, WEIGHTS, 5)
    passages = sorted(found)
    pair.both("fetch", passages)
    pair.both("entities_of", passages)
    aside(pair)


WEIGHTS = {"verified outcome": 1.0, "stated": 1.0, "diagnostic episode": 0.25}


def _mentions(store: Store, named: Sequence[EntityId], filter: Filter, most: int, how: Callable[[Any], Any]) -> Any:
    """They come in no order, and of more than are asked for it is open which."""
    return {entity: how(passages) for entity, passages in store.mentions(named, filter, most).items()}


def aside(pair: Pair) -> None:
    """What is asked besides searching."""
    ids = pair.both("ids", limit=1000)
    for verb in ("scopes", "space", "waiting", "buried"):
        pair.both(verb)
    for item_id in ids:
        pair.both("item", item_id)
        pair.both("history", item_id, 9)
        pair.both("evidence", item_id)
    for verb in ("tallies", "conflicts"):
        pair.both(verb, ids)
    for scopes in (None, ["project:a"]):
        pair.agreed(lambda store: (store.info(scopes=scopes).items, store.info(scopes=scopes).vectors))  # noqa: B023
    pair.both("foreground", ["global"], ["project:a"], Most(20, 8, 8, 8), Weights(1.0, 1.0, 0.25))
    named = [entity_id(each.key) for each in entities("Maria KB-4156")]
    pair.both("naming", named, ["global"], ["project:a"], 50, 9)


def test_r17_every_search_finds_the_same_on_both_engines_from_the_first_to_the_last_change(pair: Pair) -> None:
    source = random.Random(17)
    records = fill(pair, source, 160)
    agree(pair, source)
    changed = mixed(source, 160)[:60]
    conflicts = [(records[0].item.id, records[1].item.id)]
    pair.both("save", changed, conflicts=conflicts)
    pair.both("save", [fact("new", "lever KB-4156")], supersede={records[2].item.id: "new"})
    pair.both("mark", [records[5].item.id], "archived", 3.0)
    embed_all(pair, source, SPACE)
    agree(pair, source)
    gone = [record.item.id for record in records[70:110]]
    pair.both("delete", gone, bury=["d1"])
    pair.both("save", [], retract={"ses_x": 2})
    agree(pair, source)
    other = Space("model-b", 7)
    pair.both("reset_vectors", other)
    embed_all(pair, source, other)
    agree(pair, source, other)
    assert pair.one.check() == pair.two.check() == ()


# --- any corpus -------------------------------------------------------------------------------------------

TEXTS = st.lists(
    st.sampled_from(WORDS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=8), min_size=1, max_size=12
).map(" ".join)
SCOPES = st.sampled_from(["global", "project:a", "project:ä\0b"])
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("fact"), st.integers(0, 9), st.lists(TEXTS, min_size=1, max_size=1), SCOPES),
        st.tuples(st.just("doc"), st.integers(0, 5), st.lists(TEXTS, max_size=4), SCOPES),
        st.tuples(st.just("delete"), st.integers(0, 9), st.just([""]), SCOPES),
        st.tuples(st.just("retire"), st.integers(0, 9), st.just([""]), SCOPES),
    ),
    min_size=1,
    max_size=14,
)


def change(pair: Pair, what: str, number: int, texts: Sequence[str], scope: str) -> None:
    if what == "delete":
        pair.both("delete", [f"f{number}", f"doc_d{number}"])
    elif what == "retire":
        pair.both("mark", [f"f{number}", f"doc_d{number}"], "superseded", 5.0)
    else:
        key = f"k{number % 3}"
        record = (
            fact(f"f{number}", texts[0], scope, key=key) if what == "fact" else doc(f"d{number}", *texts, scope=scope)
        )
        pair.both("save", [record])


@given(changes=CHANGES, queries=st.lists(TEXTS, min_size=1, max_size=3), seed=st.integers(0, 999))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_r17_case_14_any_texts_in_any_order_rank_alike_on_both_engines(
    pair: Pair, changes: Any, queries: list[str], seed: int
) -> None:
    pair.both("delete", pair.both("ids", limit=1000))
    for each in changes:
        change(pair, *each)
    embed_all(pair, random.Random(seed), SPACE)
    for query in queries:
        for filter in (EVERYTHING, where("project:ä\0b"), where(kinds=["doc"])):
            pair.hits("lexical", ANALYZER.query(query), filter, 9)
    pair.hits("nearest", random_unit(random.Random(seed), 4), EVERYTHING, 9)
    for item_id in pair.both("ids", limit=1000):
        pair.both("item", item_id)


# --- through the whole river ------------------------------------------------------------------------------

QUESTIONS = (
    "how do we deploy the green lever",
    "KB-4156",
    "what did Maria say about getUserById last week",
    "v2.3 gear",
    "设备清单",
    "the",
    "nothing of the sort",
)
MODES = [
    *({"mode": "rrf"}, {"mode": "blend"}, {"mode": "hybrid"}),
    *({"mode": "normalized", "normalization": way} for way in ("min_max", "zscore")),
]


Opened = tuple[Store, Memory]


@pytest.fixture
def memories(tmp_path: Path, schema: str) -> Iterator[Callable[..., tuple[Opened, Opened]]]:
    """The same memory on both engines, opened with the same settings."""
    opened: list[Opened] = []

    def open_(**fusion: str) -> tuple[Opened, Opened]:
        for engine, store in (("one", str(tmp_path / "memory.db")), ("two", postgres_server.url())):
            env = {
                "GROUNDED_HOME": str(tmp_path / engine),
                "HOME": str(tmp_path),
                "GROUNDED_STORE": store,
                "GROUNDED_STORE__POSTGRES__SCHEMA": schema,
                "GROUNDED_EMBEDDING__PROVIDER": "hashing",
                **{f"GROUNDED_RECALL__FUSION__{name.upper()}": value for name, value in fusion.items()},
            }
            options = options_of(load(folder=tmp_path, env=env))
            base = open_base(options, clock=lambda: 100 * DAY)
            opened.append((base.store, build_memory(base, find_project(options, tmp_path))))
        return opened[-2], opened[-1]

    yield open_
    for _, memory in opened:
        memory.close()


def answered(memory: Memory, question: str, **asked: Any) -> list[Any]:
    """All that an answer is made of, but for its id and its times."""
    found = memory.recall(question, **asked)
    ranked = [replaced(each) for each in found.candidates]
    lanes = [(each.lane, each.kind, [hit.passage for hit in each.hits], each.below) for each in found.rankings]
    rest = (found.mode, found.degradation, found.by_source, found.available, found.truncated, found.pruned)
    return [ranked, lanes, *rest, found.confidence, found.conflicts]


def replaced(candidate: Candidate) -> Candidate:
    """Numbers as far as they count."""
    votes = tuple(vote._replace(native=close(vote.native), value=close(vote.value)) for vote in candidate.votes)
    terms = tuple(term._replace(value=close(term.value)) for term in candidate.terms)
    return candidate._replace(fused=close(candidate.fused), score=close(candidate.score), votes=votes, terms=terms)


def close(number: float | None) -> Any:
    return None if number is None else pytest.approx(number, abs=CLOSE)


ASKED: tuple[dict[str, Any], ...] = (
    *({}, {"limit": 5, "project": "a"}, {"mode": "lexical"}),
    {"sources": ["fact"], "since": 20 * DAY},
)


def _changed(pair: Pair, records: Sequence[Record]) -> None:
    """Some said otherwise, some gone, some retired, one replaced."""
    ids = [record.item.id for record in records]
    pair.both("save", mixed(random.Random(6), 120)[::3])
    pair.both("delete", ids[1::9])
    pair.both("mark", ids[2::9], "archived", 99 * DAY)
    pair.both("save", [fact("new", "deploy the green lever KB-4156")], supersede={ids[3]: "new"})


@pytest.mark.parametrize("fusion", MODES, ids=lambda fusion: "-".join(fusion.values()))
def test_r17_a_recall_is_the_same_on_both_engines_in_every_fusion_mode(
    memories: Callable[..., tuple[Opened, Opened]], fusion: dict[str, str]
) -> None:
    (first, one), (second, two) = memories(**fusion)
    pair, records = Pair(first, second), mixed(random.Random(5), 120)
    for batch in (records[:100], records[100:]):
        pair.both("save", batch)
    for change in (lambda: None, lambda: _changed(pair, records), lambda: pair.both("reset_vectors")):
        change()
        for memory in (one, two):
            memory.fill_vectors()
        assert pair.both("waiting") == 0
        for question in QUESTIONS:
            for asked in ASKED:
                assert answered(one, question, **asked) == answered(two, question, **asked)
