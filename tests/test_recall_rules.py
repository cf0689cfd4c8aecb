"""The rules of recall at the highest face that can see them, with the reference page's own numbers as literals.

What a rule asks of one room alone is tested in that room; docs/promises.md lists both.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from grounded_mcp.memory import Memory
from grounded_mcp.text import Analyzer, estimate_tokens
from grounded_mcp.values import Clean, Item, Kind, Passage, Recall, Record
from tests import cross_encoder
from tests.conftest import Command
from tests.test_cases import Answer, Tools, memory_at, names, write

NOW = 1_790_000_000.0
DAY = 86_400.0
LATER = 4_000_000_000.0
"""Beyond every clock, so that the age of a session is 0 on each of them."""
PAGE = {"recall__fusion__mode": "rrf", "recall__lexical__scorer": "bm25", "embedding__provider": "none"}
"""The reference page's fusion over words alone: whatever is found is worth 1 / (60 + rank)."""

Open = Callable[..., Memory]


@pytest.fixture
def open_(tmp_path: Path, project: Path) -> Iterator[Open]:
    """Opens memories of one project with settings of their own, at ``NOW``; each has a store of its own by name."""
    opened: list[Memory] = []

    def make(home: str = "home", *, folder: Path = project, **sections: object) -> Memory:
        memory = memory_at(tmp_path / home, folder, **sections)
        memory._clock = lambda: NOW
        opened.append(memory)
        return memory

    yield make
    for each in opened:
        each.close()


def record(kind: Kind, id: str, *bodies: str, scope: str = "global", at: float = NOW, **of: Any) -> Record:
    """An item of one passage per body; a fact is kept whole."""
    item = Item(id, kind, scope, Clean(""), key=id, body=Clean(bodies[0]) if kind == "fact" else None, **of)
    times = {"created_at": at, "updated_at": at}
    passages = tuple(Passage(seq, Clean(body), at=at if kind == "session" else None) for seq, body in enumerate(bodies))
    return Record(Item(**{name: getattr(item, name) for name in Item.__slots__} | times), passages)


def store(memory: Memory, records: Sequence[Record]) -> Memory:
    """Put records into a memory, with their vectors where it has any."""
    for start in range(0, len(records), 100):
        memory._store.save(records[start : start + 100])
    memory.wait_ready(20)
    memory.fill_vectors()
    return memory


def traced(memory: Memory, query: str, **arguments: object) -> dict[str, Any]:
    """Each shown card's reasons by item id."""
    found = Tools(memory).recall(query, trace=True, **arguments)
    return {card["id"]: card for card in found["meta"]["trace"]["cards"]}


# --- lanes (R1, R3-R6, R16) -------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "candidates"), [(1, 30), (10, 30), (11, 33), (20, 60)])
def test_r1_a_lane_brings_three_times_the_limit_and_at_least_30(open_: Open, limit: int, candidates: int) -> None:
    memory = store(open_(), [record("fact", f"f{n:02}", f"berth {n} takes boats") for n in range(70)])
    found = Tools(memory).recall("which berth takes boats", sources=["fact"], limit=limit, trace=True)
    arms = {arm["lane"]: arm["found"] for arm in found["meta"]["trace"]["arms"]}
    assert arms == {"lexical": candidates, "vector": candidates}


def test_r3_a_lexical_score_is_bm25_with_k1_1_2_and_b_0_75_summed_over_the_terms(open_: Open) -> None:
    texts = ["oak oak pear", "oak plum plum plum plum plum", "pear", "fig", "fig fig", "fig fig fig", "date"]
    facts = [record("fact", f"f{n}", text) for n, text in enumerate(texts)]
    found = store(open_(**PAGE), facts).recall("oak or pear", sources=["fact"]).candidates

    def bm25(text: str) -> float:
        tokens, place = [Analyzer().index(each) for each in texts], 2  # the place of a passage is two words more
        own = Analyzer().index(text)
        average = sum(len(each) + place for each in tokens) / len(tokens)
        score = 0.0
        for term in ("oak", "pear"):
            holding, often = sum(term in each for each in tokens), own.count(term)
            idf = math.log((len(tokens) - holding + 0.5) / (holding + 0.5))
            score += idf * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * (len(own) + place) / average))
        return score

    told = {c.found.passage.body: c.votes[0].native for c in found if c.found}
    assert told == {text: pytest.approx(bm25(text), abs=1e-8) for text in texts[:3]}


def test_r4_what_is_less_alike_than_the_floor_does_not_enter_and_the_trace_says_where_it_lies(open_: Open) -> None:
    facts = [record("fact", "same", "the heron flies"), record("fact", "other", "the heron sleeps by the river")]
    memory = store(open_(recall__vector__floor=0.9), facts)
    found = Tools(memory).recall("the heron flies", mode="vector", sources=["fact"], trace=True)
    trace = found["meta"]["trace"]
    assert [card["id"] for card in found["data"]] == ["same"]
    assert (trace["semanticSimilarityFloor"], trace["pruned"]["floor"]) == (0.9, 1)
    assert trace["arms"][0]["hits"][0][1] == pytest.approx(1.0)
    open_to_all = Tools(open_(recall__vector__floor=0.0)).recall("the heron flies", mode="vector", sources=["fact"])
    assert [card["id"] for card in open_to_all["data"]] == ["same", "other"]


def test_r5_r16_without_a_model_a_shared_name_still_leads_to_what_holds_no_word_of_the_question(open_: Open) -> None:
    facts = [
        record("fact", "maria", "last year Maria joined the Porto team"),
        record("fact", "lisbon", "the Porto team meets in Lisbon every week"),
        record("fact", "other", "the weather is fine, nothing else"),
    ]
    found = Tools(store(open_(embedding__provider="none"), facts)).recall("which city does Maria travel to")
    assert {card["id"]: card["matchedBy"] for card in found["data"]} == {"maria": "lexical", "lisbon": "graph"}
    assert found["meta"]["degraded"] is False


def test_r6_r13_r16_a_question_about_a_week_is_answered_by_time_alone_and_the_trace_names_the_week(
    open_: Open,
) -> None:
    monday = 1_789_344_000.0  # 2026-09-14; NOW is Monday, 2026-09-21
    here = open_(embedding__provider="none")
    sessions = [
        record("session", name, f"{name} was painted", scope=here.project.scope, at=monday + days * DAY)
        for name, days in (("before", -9), ("within", 2), ("after", 40))
    ]
    found = Tools(store(here, sessions)).recall("what did we work on last week", trace=True)
    trace = found["meta"]["trace"]
    assert (found["data"][0]["id"], found["data"][0]["matchedBy"]) == ("within", "temporal")
    assert {arm["lane"] for arm in trace["arms"]} == {"temporal"}
    assert trace["time"]["words"] == "on last week"
    assert (trace["time"]["since"], trace["time"]["until"]) == ("2026-09-14T00:00:00Z", "2026-09-21T00:00:00Z")
    assert trace["cards"][0]["boosts"] == {"time": 2.0}


# --- pressure and scope (R8, R9) --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "score"),
    [
        ({"kind": "fact", "importance": 1.0}, 1.5 / 60),
        ({"kind": "fact", "importance": 0.6}, 1.3 / 60),
        ({"kind": "fact", "importance": 0.0}, 1 / 60),
        ({"kind": "fact", "importance": 1.0, "pinned": True}, 1.5 / 60),
        ({"kind": "session", "at": NOW}, 1 / 60),
        ({"kind": "session", "at": NOW - 30 * DAY}, 0.5 / 60),
        ({"kind": "session", "at": NOW - 60 * DAY}, 0.25 / 60),
        ({"kind": "doc"}, 1.25 / 60),
        ({"kind": "doc", "state": "archived"}, 1 / 60),
        ({"kind": "doc", "state": "missing"}, 1 / 60),
    ],
)
def test_r8_a_first_hit_of_one_lane_is_1_60_times_the_pages_boosts(open_: Open, of: Any, score: float) -> None:
    memory = open_(**PAGE)
    store(memory, [record(of.pop("kind"), "x", "the heron flies", scope="global", **of)])
    assert traced(memory, "heron")["x"]["score"] == pytest.approx(score, abs=1e-15)


@pytest.mark.parametrize(
    ("scope", "arguments", "factor"),
    [
        ("project:alpha", {"query": "heron of alpha", "project": "*"}, 1.5),
        ("project:alpha", {"query": "heron", "project": "alpha"}, 1.5),
        ("project:beta", {"query": "heron", "project": "alpha", "factScopes": ["project:beta"]}, 0.8),
        ("machine:laptop", {"query": "heron", "project": "alpha", "factScopes": ["machine:laptop"]}, 1.0),
        ("global", {"query": "heron", "project": "alpha"}, 1.0),
    ],
)
def test_r8_a_facts_scope_counts_1_5_named_0_8_foreign_and_1_otherwise(
    open_: Open, scope: str, arguments: Any, factor: float
) -> None:
    memory = store(open_(**PAGE), [record("fact", "x", "the heron flies", scope=scope, importance=0.0)])
    assert traced(memory, **arguments)["x"]["score"] == pytest.approx(factor / 60, abs=1e-15)


@pytest.mark.parametrize(
    ("arguments", "found", "source"),
    [
        ({"project": "alpha"}, {"alpha", "global"}, "project"),
        ({"project": "alpha", "factScopes": ["project:beta"]}, {"beta", "global"}, "factScopes"),
        ({}, {"alpha", "beta", "global", "laptop"}, "folder"),
        ({"project": "*"}, {"alpha", "beta", "global", "laptop"}, "none"),
    ],
)
def test_r9_a_declared_project_removes_other_projects_facts_global_passes_and_meta_says_what_was_applied(
    open_: Open, arguments: Any, found: set[str], source: str
) -> None:
    scopes = {"alpha": "project:alpha", "beta": "project:beta", "laptop": "machine:laptop", "global": "global"}
    memory = store(open_(), [record("fact", id_, f"heron {id_}", scope=scope) for id_, scope in scopes.items()])
    answer = Tools(memory).recall("heron", **arguments)
    assert {card["id"] for card in answer["data"]} == found
    applied = answer["meta"]["scopeFilter"]
    assert (applied["from"], applied["applied"]) == (source, source != "none")
    if source in ("project", "factScopes"):
        named = arguments.get("factScopes", ["project:alpha"])
        assert applied["facts"] == ["global", *named]


# --- shape (R10, R11) -------------------------------------------------------------------------------------


def crowd(scope: str) -> list[Record]:
    """25 facts, 25 sessions and 25 documents that all answer, no two of them alike."""
    return [
        record(kind, f"{kind}{n:02}", f"heron {word}{n} stands at pole {n}", scope=scope, at=LATER)
        for kind, word in (("fact", "oak"), ("session", "fig"), ("doc", "elm"))
        for n in range(25)
    ]


def test_r10_of_20_at_most_5_are_facts_and_10_sessions_and_one_source_alone_fills_the_limit(open_: Open) -> None:
    boosts = {"recall__boosts__fact_importance": 100.0, "recall__boosts__doc_active": 0.01}
    memory = open_(**PAGE, **boosts)
    store(memory, crowd(memory.project.scope))
    tools = Tools(memory)
    found = tools.recall("heron", limit=20)
    assert Counter(card["source"] for card in found["data"]) == {"fact": 5, "session": 10, "doc": 5}
    assert found["meta"]["bySource"]["fact"] == {"returned": 5, "available": 25, "truncated": True}
    assert found["meta"]["truncated"] is True
    assert len(tools.recall("heron", limit=20, sources=["fact"])["data"]) == 20
    assert Counter(card["source"] for card in tools.recall("heron", limit=2)["data"])["fact"] == 1


def test_r10_ties_are_settled_doc_fact_session_then_by_id(open_: Open) -> None:
    level = {"recall__boosts__doc_active": 1.0, "recall__boosts__fact_importance": 1.0}
    memory = open_(**PAGE, **level)
    same = [
        record(kind, f"{kind}1", f"the heron {kind}", scope="global", at=LATER) for kind in ("session", "fact", "doc")
    ]
    cards = traced(store(memory, same), "heron")
    assert list(cards) == ["doc1", "fact1", "session1"]
    assert {card["score"] for card in cards.values()} == {1 / 60}
    # Four documents whose one lane cannot tell them apart: by score they follow each other in the order of their ids.
    alike = [record("doc", id_, "the egret stands") for id_ in ("d3", "d1", "d4", "d2")]
    assert list(traced(store(memory, alike), "egret")) == ["d1", "d2", "d3", "d4"]


def test_r10_archived_documents_come_last_and_generated_reports_after_first_hand_material(
    open_: Open, project: Path
) -> None:
    (project / "archive").mkdir()
    write(
        project, report="# Report\n\nDO NOT EDIT: generated. heron heron heron heron", note="# Note\n\nA heron, once."
    )
    write(project / "archive", old="# Old\n\nheron heron heron heron heron")
    memory = open_(**PAGE)
    memory.sync_documents()
    assert Tools(memory).found("heron") == ["note.md", "report.md", "archive/old.md"]


SAME = ("tests run with `make check`", "Run the tests with `make check`.", "use `make check` to run the test suite")
NOT_THE_SAME = (
    "the port of staging is 8090",
    "the port of staging is 8091",
    "the port of production is 8090",
    "the port of staging is not 8090",
    "the port of staging is PORT_A 8090",
)


def test_r10_t28_paraphrases_take_one_place_of_the_limit_and_a_number_negation_environment_or_name_is_another_fact(
    open_: Open,
) -> None:
    tools = Tools(open_())
    tools.remember(*SAME, *NOT_THE_SAME)
    found = tools.recall("how do tests run and which port of staging", sources=["fact"], limit=6)
    said = [card["title"] for card in found["data"]]
    assert sorted(set(said) - set(SAME)) == sorted(NOT_THE_SAME)
    (one,) = (card for card in found["data"] if card["title"] in SAME)
    assert one["duplicates"] == 2
    assert found["meta"]["bySource"]["fact"] == {"returned": 6, "available": 6, "truncated": False}


def test_r10_chunks_of_a_file_are_one_result_with_its_best_chunk_and_their_count(open_: Open, project: Path) -> None:
    parts = [f"## Part {n}\n\n" + f"The heron of part {n} stands still. " * 30 for n in range(8)]
    write(project, birds="# Birds\n\n" + "\n\n".join([*parts, "## Nest\n\nThe egret and the heron share a nest."]))
    write(project, other="# Other\n\nNo heron here.")
    memory = open_()
    memory.sync_documents()
    found = Tools(memory).recall("egret heron nest", mode="lexical")
    best, other = found["data"]
    assert (best["path"], best["heading"].rpartition(" > ")[2]) == ("birds.md", "Nest")
    assert best["chunks"] > 5
    assert "chunks" not in other
    assert found["meta"]["bySource"]["doc"] == {"returned": 2, "available": 2, "truncated": False}


def test_r11_an_answer_is_data_and_meta_with_every_field_of_its_kind(open_: Open) -> None:
    memory = open_()
    scope = memory.project.scope
    store(
        memory,
        [
            record("fact", "f", "the heron flies", importance=0.6, pinned=True),
            record("session", "s", "the heron sleeps", scope=scope, attrs={"agent": "codex", "session": "abc"}),
            record("doc", "d.md", "the heron nests", "the heron rests", scope=scope),
        ],
    )
    found = Tools(memory).recall("heron")
    every = {"id", "source", "rank", "score", "matchedBy", "matchedTerms", "text", "scope", "state", "size", "open"}
    own = {"fact": {"importance", "pinned"}, "session": {"agent", "session", "updatedAt"}, "doc": {"path", "chunks"}}
    for card in found["data"]:
        assert every | own[card["source"]] <= card.keys()
        assert (card["matchedBy"], card["matchedTerms"]) == ("both", ["heron"])
        assert card["text"].startswith('<project-memory advisory="untrusted">')
    meta = found["meta"]
    assert {"mode", "degraded", "bySource", "available", "truncated", "scopeFilter", "empty", "stats"} <= meta.keys()
    assert {"recallId", "guidance"} <= meta.keys()
    assert meta["stats"].keys() == {
        *("candidates", "rerankWindow", "rerankCandidates", "results"),
        *("embedMs", "dbMs", "retrievalMs", "rerankMs", "totalMs"),
    }


# --- trace (R13) ------------------------------------------------------------------------------------------


def recomputed(card: Answer, trace: Answer) -> tuple[float, float]:
    """Fused score and score of a card, by the formulas of the page, from nothing but the trace."""
    fusion, values = trace["fusion"], [value for *_, value in card["votes"]]
    mode = fusion["algorithm"]
    fused = max(values) if mode == "blend" else math.fsum(values)
    if fusion.get("normalization") == "zscore":
        fused = 1.0 / (1.0 + math.exp(-fused))
    if mode == "rrf":
        assert values == [1 / (fusion["k"] + rank) for _, rank, *_ in card["votes"]]
    if mode == "hybrid":
        whole = math.fsum(fusion.get(lane, 1.0) for lane, *_ in card["votes"])
        found = [(lane, rank) for lane, rank, *_ in card["votes"] if rank is not None]
        ranks = [fusion.get(lane, 1.0) / whole * fusion["k"] / (fusion["k"] + rank) for lane, rank in found]
        fused = (fused + math.fsum(ranks)) / 2.0
    factors = math.prod(card.get("boosts", {}).values())
    if "reranked" in card:
        return fused, card["reranked"] * factors
    if "terms" in card:
        return fused, math.fsum(weight * value for _, weight, value in card["terms"])
    return fused, fused * factors


FUSIONS = [
    ("rrf", ""),
    ("normalized", "min_max"),
    ("normalized", "zscore"),
    ("hybrid", "min_max"),
    ("hybrid", "zscore"),
]
FUSIONS += [("blend", "")]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cross_encoder.write(tmp_path_factory.mktemp("models") / "shared-meanings")


@pytest.mark.parametrize("reranked", [False, True], ids=["as fused", "reranked"])
@pytest.mark.parametrize(("mode", "normalization"), FUSIONS)
def test_r13_every_score_recomputes_exactly_from_the_trace(
    open_: Open, model: Path, mode: str, normalization: str, reranked: bool
) -> None:
    sections: dict[str, object] = {"recall__fusion__mode": mode}
    if normalization:
        sections["recall__fusion__normalization"] = normalization
    if reranked:
        sections |= {"recall__rerank__model": model, "recall__rerank__window": 4}
    memory = open_(**sections)
    scope = memory.project.scope
    store(
        memory,
        [
            record("fact", "f1", "restart the server of Porto after a release", importance=1.0),
            record("fact", "f2", "the cat sleeps by the window in Porto", importance=0.3, scope=scope),
            record("session", "s1", "we chose to reboot the machine of Porto", scope=scope, at=NOW - 7 * DAY),
            record("session", "s2", "the port of the server is open", scope=scope, at=NOW - 40 * DAY),
            record("doc", "d1", "how to restart a server", "how to restart Porto", scope=scope),
            record("doc", "d2", "deploy the server", scope=scope, state="archived"),
        ],
    )
    found = Tools(memory).recall("how do I restart the Porto server that we chose last week", trace=True)
    trace = found["meta"]["trace"]
    assert len(trace["cards"]) == len(found["data"]) >= 5
    for shown, card in zip(found["data"], trace["cards"], strict=True):
        assert recomputed(card, trace) == (card["fused"], card["score"])
        assert (shown["id"], shown["score"]) == (card["id"], round(card["score"], 4))
    assert {"lexical", "vector", "temporal"} <= {arm["lane"] for arm in trace["arms"]}
    assert trace["time"]["words"] == "last week"
    assert ("terms" in trace["cards"][0]) == (mode == "blend")
    if not reranked:
        assert "rerank" not in trace
        return
    judged = trace["rerank"]
    assert (judged["window"], judged["candidates"]) == (4, 4)
    assert judged["ms"] >= 0
    assert judged["model"]
    head = ["reranked" in card for card in trace["cards"]]
    assert head == sorted(head, reverse=True)
    assert True in head
    assert False in head
    assert [term[0] for term in trace["cards"][-1]["terms"]] == ["not reranked"]


def test_r13_the_weights_in_force_are_told_beside_the_configured_ones(open_: Open) -> None:
    memory = store(open_(), [record("fact", f"f{n}", f"heron {'egret ' * n} {n}") for n in range(9)])
    fusion = Tools(memory).recall("heron egret 7", trace=True)["meta"]["trace"]["fusion"]
    assert (fusion["algorithm"], fusion["normalization"], fusion["lexical"]) == ("normalized", "min_max", 1.0)
    assert fusion["vectorConfigured"] == 1.0
    assert 0.6 <= fusion["vector"] <= 2.0
    assert fusion["vector"] != 1.0
    plain = Tools(open_(recall__fusion__adapt__contrast=0.0)).recall("heron egret 7", trace=True)["meta"]["trace"]
    assert (plain["fusion"]["vector"], "vectorConfigured" in plain["fusion"]) == (1.0, False)


def test_r13_r15_a_reranker_that_gives_no_answer_is_named_with_its_reason(open_: Open, tmp_path: Path) -> None:
    memory = store(open_(recall__rerank__model=tmp_path / "nothing"), [record("fact", "f", "the heron flies")])
    found = Tools(memory).recall("heron", trace=True)
    judged = found["meta"]["trace"]["rerank"]
    assert (judged["window"], judged["candidates"], "model" in judged) == (120, 0, False)
    assert judged["reason"].startswith("rerank: ")
    assert judged["reason"] in found["meta"]["degradedReason"]


def test_r13_explain_names_the_time_and_the_reranker_for_a_person(command: Command, model: Path) -> None:
    command("remember", "restart the server after every release")
    env = {"GROUNDED_RECALL__RERANK__MODEL": str(model)}
    shown = command("recall", "which server did we restart today", "--explain", env=env).stdout
    assert "\ntime: today: since " in shown
    assert "\nrerank: 1 of at most 120 in " in shown


@pytest.mark.parametrize("mode", ["normalized", "blend"])
def test_r13_r14_the_longest_trace_leaves_room_for_cards_within_ten_thousand_characters(
    open_: Open, model: Path, mode: str
) -> None:
    memory = open_(recall__fusion__mode=mode, recall__rerank__model=model)
    store(memory, harbour(memory.project.scope))
    question = {"query": "which berth did Maria of Porto paint last week", "trace": True}
    (result,) = Tools(memory).results(("ground_recall", question))
    found = result.structured_content
    assert max(len(json.dumps(found, ensure_ascii=False, separators=(",", ":"))), len(result.content[0].text)) <= 10_000
    assert len(found["data"]) >= 5
    assert {arm["lane"] for arm in found["meta"]["trace"]["arms"]} >= {"lexical", "vector", "temporal"}
    assert len(found["meta"]["trace"]["cards"]) == min(len(found["data"]), 10)


# --- budgets (R14) ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [400, 1_000, 2_500])
def test_r14_max_tokens_bounds_the_whole_answer_and_the_best_stays(open_: Open, tokens: int) -> None:
    memory = store(open_(), [record("fact", f"f{n:02}", f"heron {n} " + f"marsh{n} reed{n} " * 40) for n in range(30)])
    tools = Tools(memory)
    best = tools.recall("heron", sources=["fact"])["data"][0]["id"]
    (result,) = tools.results(("ground_recall", {"query": "heron", "sources": ["fact"], "maxTokens": tokens}))
    found = result.structured_content
    assert found["data"][0]["id"] == best
    assert 1 <= len(found["data"]) < 20
    for half in (json.dumps(found, ensure_ascii=False, separators=(",", ":")), result.content[0].text):
        assert estimate_tokens(half) <= tokens
    assert "left out" in found["meta"]["note"]
    assert found["meta"]["truncated"] is True
    assert found["meta"].get("bySource", {}).get("fact", {"returned": len(found["data"])})["returned"] == len(
        found["data"]
    )


# --- one list (R17) ---------------------------------------------------------------------------------------

QUESTIONS = (
    "which berth is painted",
    "who met Porto at berth 7",
    "what did we do last week",
    "which berth did Maria paint last week",
)


def harbour(scope: str) -> list[Record]:
    """A corpus in which most things tie: texts of one mould, sessions of one hour, names that all of them share."""
    facts = [record("fact", f"f{n:03}", f"berth {n} is painted by Maria of Porto") for n in range(45)]
    hour = NOW - 7 * DAY
    sessions = [
        record("session", f"s{n:03}", f"Maria met Porto {n}", "the berth is painted", scope=scope, at=hour)
        for n in range(60)
    ]
    docs = [record("doc", f"d{n:03}", f"Porto plan {n}", "the berth is painted", scope=scope) for n in range(45)]
    return [*facts, *sessions, *docs]


def listed(recall: Recall) -> list[tuple[str, int, float]]:
    """Item, passage and score of every result, in order."""
    return [(c.found.item.id, c.found.passage.seq, c.score) for c in recall.candidates if c.found]


def lists(memory: Memory) -> list[list[tuple[str, int, float]]]:
    return [listed(memory.recall(text, limit=limit)) for text in QUESTIONS for limit in (5, 20)]


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"recall__fusion__mode": "rrf"},
        {"recall__fusion__mode": "hybrid"},
        {"recall__fusion__mode": "blend", "recall__rerank__window": 7},
    ],
    ids=lambda sections: "-".join(map(str, sections.values())) or "as shipped",
)
def test_r17_the_order_in_which_things_were_stored_changes_no_list(open_: Open, model: Path, sections: Any) -> None:
    if "recall__rerank__window" in sections:
        sections = {**sections, "recall__rerank__model": model}
    corpus = harbour("global")
    straight = lists(store(open_("straight", **sections), corpus))
    assert all(straight)
    for seed in range(3):
        shuffled = random.Random(seed).sample(corpus, len(corpus))
        assert lists(store(open_(f"shuffle{seed}", **sections), shuffled)) == straight


def test_r17_eight_threads_at_once_get_the_list_that_one_gets(open_: Open) -> None:
    memory = store(open_(), harbour("global"))
    alone = lists(memory)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lists, [memory] * 8)) == [alone] * 8


def test_r17_repairing_compacting_the_file_and_reopening_change_no_list(open_: Open, tmp_path: Path) -> None:
    memory = store(open_(), harbour("global"))
    before = lists(memory)
    memory._store.repair()  # type: ignore[attr-defined]
    assert lists(memory) == before
    memory._store.maintain()  # type: ignore[attr-defined]
    assert lists(memory) == before
    memory.close()
    again = open_()
    assert again.wait_ready(20)
    assert lists(again) == before


def test_r17_another_process_gets_the_same_list(command: Command, project: Path) -> None:
    write(project, **{f"berth{n}": f"# Berth {n}\n\nBerth {n} is painted, says Maria." for n in range(30)})
    env = {"GROUNDED_EMBEDDING__PROVIDER": "hashing"}
    assert command.json("sync", env=env)["documents"]["added"] == 30
    command("remember", "Berth 7 is painted every May", env=env)
    (there, again) = (command.json("recall", "which berth is painted", env=env)["data"] for _ in range(2))
    with closing(memory_at(command.home, project)) as memory:
        memory.wait_ready(20)
        here = Tools(memory).recall("which berth is painted")["data"]
    assert names({"data": here}) == names({"data": there})
    assert here == there == again
