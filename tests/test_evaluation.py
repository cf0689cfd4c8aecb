"""Evaluation: measures by hand, intervals, data sets of every shape, and the command on real stores."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grounded_mcp.config import load
from grounded_mcp.errors import ConfigError, InputError, ModelError
from grounded_mcp.evaluation.caching import CachedEmbedder, VectorFiles
from grounded_mcp.evaluation.configurations import CONFIGURED, Configuration, configurations, stored_alike
from grounded_mcp.evaluation.datasets import Dataset, Document, Question, read
from grounded_mcp.evaluation.intervals import difference, interval
from grounded_mcp.evaluation.metrics import percentile, score
from grounded_mcp.evaluation.own import Drawn, known_items
from grounded_mcp.evaluation.report import Report, report
from grounded_mcp.evaluation.run import Outcome, evaluate
from grounded_mcp.models import catalog
from grounded_mcp.models.base import Purpose
from grounded_mcp.models.hashing import HashingEmbedder
from grounded_mcp.settings import settings as settings_of
from grounded_mcp.text import Analyzer
from grounded_mcp.values import Clean, Item, Passage, Vector
from tests.conftest import Command
from tests.talking import Talk

HARBOUR = [
    {"id": "crane", "title": "Cranes", "text": "The gantry crane lifts forty tonnes. Its brake is checked on Mondays."},
    {
        "id": "pilot",
        "title": "Pilots",
        "text": "A pilot boards two miles out, by ladder, in any swell below three metres.",
    },
    {
        "id": "tide",
        "title": "Tides",
        "text": "Spring tide leaves nine metres over the sill; the lock opens an hour before.",
    },
]
ASKED: list[dict[str, Any]] = [
    {"query": "when is the brake of the gantry checked", "gold": ["crane"], "group": "plain"},
    {"query": "where does a pilot board", "gold": {"pilot": 2, "tide": 1}, "group": "graded"},
    {"query": "who paints the lighthouse", "gold": ["lighthouse"]},
]


def lines(path: Path, rows: Sequence[object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def document(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture
def harbour(tmp_path: Path) -> Path:
    """A data set in the plain shape."""
    folder = tmp_path / "harbour"
    lines(folder / "documents.jsonl", HARBOUR)
    lines(folder / "queries.jsonl", ASKED)
    return folder


def configured(home: Path, name: str = CONFIGURED, **flags: object) -> Configuration:
    dotted = {key.replace("__", "."): value for key, value in flags.items()}
    dotted.setdefault("embedding.provider", "none")
    return Configuration(name, settings_of(load(cwd=home, env={"GROUNDED_HOME": str(home)}, flags=dotted)), dotted)


def run(dataset: Dataset, *compared: Configuration, **more: Any) -> Outcome:
    return evaluate(dataset, compared, catalog.load, lambda *_: None, **more)


# --- measures ---------------------------------------------------------------------------------------------


def test_a_graded_answer_is_scored_as_by_hand() -> None:
    found = score(["wrong", "fair", "good"], {"fair": 1, "good": 2})
    # gains 1 at rank 2 and 3 at rank 3, over 3 at rank 1 and 1 at rank 2
    assert found.ndcg == pytest.approx((1 / math.log2(3) + 3 / 2) / (3 + 1 / math.log2(3)))
    assert found.mrr == 0.5
    assert found.recalls == (0.0, 1.0, 1.0)


def test_recall_counts_against_all_gold_and_the_ideal_against_what_ten_places_hold() -> None:
    found = score([f"g{at}" for at in range(10)], {f"g{at}": 1 for at in range(20)})
    assert found.recalls == (0.05, 0.25, 0.5)
    assert found.ndcg == pytest.approx(1.0)


def test_gold_below_the_tenth_place_counts_for_nothing() -> None:
    assert score([*"abcdefghij", "gold"], {"gold": 1}) == ((0.0, 0.0, 0.0), 0.0, 0.0)


def test_an_id_that_comes_twice_counts_once() -> None:
    assert score(["gold", "gold", "other"], {"gold": 1, "other": 1}).ndcg == pytest.approx(1.0)


@pytest.mark.parametrize("gold", [{}, {"a": 0}, {"a": -1}])
def test_a_question_without_an_answer_is_not_judged(gold: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="without a gold answer"):
        score(["a"], gold)


@settings(max_examples=50)
@given(
    st.lists(st.sampled_from("abcdefghijklm"), max_size=15),
    st.dictionaries(st.sampled_from("abcdefz"), st.integers(1, 3), min_size=1),
)
def test_every_measure_lies_between_0_and_1_and_the_best_order_reaches_it(
    ranked: list[str], gold: dict[str, float]
) -> None:
    found = score(ranked, gold)
    assert all(0.0 <= value <= 1.0 + 1e-12 for value in (*found.recalls, found.mrr, found.ndcg))
    assert list(found.recalls) == sorted(found.recalls)
    assert score(sorted(gold, key=lambda id_: -gold[id_]), gold).ndcg == pytest.approx(1.0)


def test_percentiles_are_values_that_occurred() -> None:
    values = [float(each) for each in range(1, 101)]
    assert (percentile(values, 0.5), percentile(values, 0.95), percentile([], 0.5)) == (50.0, 95.0, 0.0)


# --- intervals --------------------------------------------------------------------------------------------


def test_an_interval_is_as_wide_as_the_normal_approximation_says() -> None:
    found = interval([0.0, 1.0] * 200, [str(each) for each in range(400)])
    assert found.mean == 0.5
    assert found.high - found.mean == pytest.approx(1.96 * 0.5 / 20, abs=0.006)
    assert found.mean - found.low == pytest.approx(1.96 * 0.5 / 20, abs=0.006)


def test_questions_of_one_cluster_are_drawn_together() -> None:
    values = [0.0] * 10 + [1.0] * 10
    alone = interval(values, [str(each) for each in range(20)])
    together = interval(values, ["a"] * 10 + ["b"] * 10)
    assert (together.low, together.high) == (0.0, 1.0)
    assert alone.low > 0.2
    assert alone.high < 0.8


def test_the_same_seed_gives_the_same_interval_and_another_one_another() -> None:
    values, clusters = [0.1, 0.9, 0.4, 0.3, 0.8], list("abcde")
    assert interval(values, clusters, seed=1) == interval(values, clusters, seed=1)
    assert interval(values, clusters, seed=1) != interval(values, clusters, seed=2)


def test_a_steady_gain_is_certain_however_much_questions_differ() -> None:
    before = [0.0, 0.9, 0.2, 0.7, 0.4]
    gain = difference([value + 0.05 for value in before], before, list("abcde"))
    assert gain == pytest.approx((0.05, 0.05, 0.05))


# --- kept vectors -----------------------------------------------------------------------------------------


class Counting(HashingEmbedder):
    """Remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, Purpose]] = []

    def embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        self.asked += [(text, purpose) for text in texts]
        return super().embed(texts, purpose)


def test_a_second_run_embeds_nothing_and_gets_the_same_vectors(tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    kept = VectorFiles(tmp_path, 256)
    made = CachedEmbedder(first, kept).embed(["a tide", "a crane", "a tide"], "passage")
    kept.save()
    again = CachedEmbedder(second, VectorFiles(tmp_path, 256)).embed(["a crane", "a tide"], "passage")
    assert first.asked == [("a tide", "passage"), ("a crane", "passage")]
    assert second.asked == []
    assert again == [made[1], made[0]]
    assert made == HashingEmbedder().embed(["a tide", "a crane", "a tide"], "passage")


def test_a_query_is_not_answered_with_a_passages_vector_and_live_ones_are_embedded_anew(tmp_path: Path) -> None:
    inner = Counting()
    kept = VectorFiles(tmp_path, 256)
    CachedEmbedder(inner, kept).embed(["tide"], "passage")
    live = CachedEmbedder(inner, kept, live=True)
    for _ in range(2):
        live.embed(["tide"], "query")
        live.embed(["tide"], "passage")
    assert inner.asked == [("tide", "passage"), ("tide", "query"), ("tide", "query")]


def test_a_torn_file_is_passed_over_and_a_folder_that_cannot_be_written_only_costs_time(tmp_path: Path) -> None:
    (tmp_path / "torn.vectors").write_bytes(b"x" * 100)
    kept = VectorFiles(tmp_path, 256)
    assert kept.get(b"x" * 16) is None
    (tmp_path / "file").write_bytes(b"")
    nowhere = VectorFiles(tmp_path / "file", 256)
    nowhere.put(b"y" * 16, Vector(b"0" * 1024))
    nowhere.save()
    assert nowhere.get(b"y" * 16) == b"0" * 1024


# --- data sets --------------------------------------------------------------------------------------------


def test_the_plain_shape_reads_grades_groups_kinds_and_times(harbour: Path) -> None:
    lines(
        harbour / "documents.jsonl",
        [*HARBOUR, {"id": "talk/1", "text": "We agreed on noon.", "kind": "session", "at": "2026-03-01T12:00:00Z"}],
    )
    dataset = read(harbour)
    (collection,) = dataset.collections
    assert collection.documents[0].path == "crane.md"
    assert collection.documents[0].text.startswith("# Cranes\n\nThe gantry")
    assert collection.documents[3] == Document("talk/1", "We agreed on noon.", "session", "talk_1.md", 1772366400.0)
    assert [question.gold for question in collection.questions] == [{"crane": 1.0}, {"pilot": 2.0, "tide": 1.0}]
    assert dataset.groups == ("plain", "graded", "all")


def test_sections_and_chunks_are_documents_of_their_own(tmp_path: Path) -> None:
    document(
        tmp_path / "set" / "documents.json",
        [
            {
                "chunk_link": "https://x.example/docs/berth#fees",
                "chunk_heading": "Fees",
                "text": "Fees\n\n\nPer metre.",
            },
            {
                "id": "f",
                "path": "/src/lock.rs",
                "chunks": [{"id": "f#0", "text": "fn a"}, {"id": "f#1", "text": "fn b"}],
            },
        ],
    )
    document(tmp_path / "set" / "queries.dev.json", [{"query": "what is b", "gold": ["f#1", "gone"]}])
    (collection,) = read(tmp_path / "set").collections
    assert collection.documents == (
        Document("https://x.example/docs/berth#fees", "# Fees\n\nPer metre.", path="docs/berth/fees.md"),
        Document("f#0", "fn a", path="0/src/lock.rs"),
        Document("f#1", "fn b", path="1/src/lock.rs"),
    )
    assert collection.questions == (Question("what is b", {"f#1": 1.0}),)


def test_functions_are_files_named_by_their_number(tmp_path: Path) -> None:
    document(tmp_path / "set" / "code_idx_map.json", {"def a(): pass": 0, "def b(): pass": 1})
    asked = [{"doc": "b in python", "retrieval_idx": 1, "label": 1}, {"doc": "c", "retrieval_idx": 0, "label": 0}]
    document(tmp_path / "set" / "queries.dev.json", asked)
    (collection,) = read(tmp_path / "set").collections
    assert [each.path for each in collection.documents] == ["0.py", "1.py"]
    assert collection.questions == (Question("b in python", {"1": 1.0}),)


TALK = {
    "conversation": {
        "speaker_a": "Ann",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "The ferry is late."},
            {"speaker": "Bo", "dia_id": "D1:2", "text": "Look!", "blip_caption": "a photo of a quay"},
        ],
    },
    "qa": [
        {"question": "What was late?", "evidence": ["D1:1; D9:9"], "category": 4},
        {"question": "What did Bo share?", "evidence": ["D1:2", "D:1:1"], "category": 1},
        {"question": "Who sank?", "evidence": ["D1:1"], "category": 5},
        {"question": "Who knows?", "evidence": [], "category": 3},
    ],
}


def test_talk_is_turns_with_speaker_and_time_and_adversarial_questions_are_left_out(tmp_path: Path) -> None:
    document(tmp_path / "talk" / "conversations.dev.json", [TALK])
    dataset = read(tmp_path / "talk")
    (collection,) = dataset.collections
    assert collection.documents == (
        Document("D1:1", "Ann: The ferry is late.", "session", at=1683554160.0),
        Document("D1:2", "Bo: Look! [shares a photo of a quay]", "session", at=1683554190.0),
    )
    assert collection.questions == (
        Question("What was late?", {"D1:1": 1.0}, ("single-hop", "all")),
        Question("What did Bo share?", {"D1:2": 1.0}, ("multi-hop", "all")),
    )
    assert dataset.groups == ("multi-hop", "temporal", "open-domain", "single-hop", "all")


def test_sessions_keep_kinds_apart_and_are_drawn_by_their_gold(tmp_path: Path) -> None:
    (tmp_path / "set" / "sessions").mkdir(parents=True)
    asked = [
        {"query": "skip Sundays", "kind": "commit", "form": "subject", "gold_sessions": ["b", "a"]},
        {"query": "what in May", "kind": "time", "gold_sessions": ["a"], "grades": {"a": 3}},
    ]
    lines(tmp_path / "set" / "queries.dev.jsonl", asked)
    dataset = read(tmp_path / "set")
    assert dataset.groups == ("commit", "commit, subject only", "time")
    assert dataset.collections[0].questions == (
        Question("skip Sundays", {"b": 1.0, "a": 1.0}, ("commit", "commit, subject only"), "a"),
        Question("what in May", {"a": 3.0}, ("time",), "a"),
    )


def test_a_folder_with_two_files_of_questions_asks_for_one_of_them(harbour: Path) -> None:
    lines(harbour / "queries.holdout.jsonl", ASKED[:1])
    with pytest.raises(InputError, match="2 files of questions"):
        read(harbour)
    assert len(read(harbour / "queries.holdout.jsonl").collections[0].questions) == 1


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"query": "x"}, "KeyError"),
        ({"query": "x", "gold": "crane"}, "gold is a text"),
        ({"query": "x", "gold": 7}, "TypeError"),
        ({"query": "x", "gold": ["nowhere"]}, "no question with an answer"),
        ([], "TypeError"),
    ],
)
def test_questions_that_cannot_be_read_are_refused_by_file(harbour: Path, row: object, told: str) -> None:
    lines(harbour / "queries.jsonl", [row])
    with pytest.raises(InputError, match=r"queries\.jsonl") as caught:
        read(harbour)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "rows",
    [[{"id": "a"}], [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}], [{"id": "a", "text": "x", "kind": "script"}]],
)
def test_documents_that_cannot_be_read_are_refused(harbour: Path, rows: list[object]) -> None:
    lines(harbour / "documents.jsonl", rows)
    with pytest.raises(InputError, match="cannot be read as plain"):
        read(harbour)


def test_a_folder_of_no_known_shape_is_refused_with_the_shapes(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"documents\.jsonl"):
        read(tmp_path)


def test_a_documents_path_cannot_leave_the_folder_it_is_written_to(harbour: Path) -> None:
    lines(harbour / "documents.jsonl", [{**HARBOUR[0], "path": "../../etc//./passwd"}, *HARBOUR[1:]])
    assert read(harbour).collections[0].documents[0].path == "etc/passwd"


# --- configurations ---------------------------------------------------------------------------------------


def test_settings_on_the_command_line_make_configurations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDED_HOME", str(tmp_path))
    (tmp_path / "mine.toml").write_text("[recall.boosts]\nsessionDecay = 0.9\n", encoding="utf-8")
    found = configurations(
        [f"mine={tmp_path / 'mine.toml'}"],
        ["recall.fusion.mode=rrf", 'b:recall.tie_break_order=["fact", "doc"],recall.limit=7'],
        tmp_path,
    )
    assert [(each.name, dict(each.changes)) for each in found] == [
        (CONFIGURED, {}),
        ("mine", {"recall.boosts.session_decay": 0.9}),
        ("recall.fusion.mode=rrf", {"recall.fusion.mode": "rrf"}),
        ("b", {"recall.tie_break_order": ["fact", "doc"], "recall.limit": 7}),
    ]
    assert found[1].settings.recall.boosts.session_decay == 0.9
    assert found[3].settings.ask.limit == 7


@pytest.mark.parametrize(
    ("files", "sets", "told"),
    [
        ([], ["recall.fusion.mode"], "is not KEY=VALUE"),
        ([], ["x:recall.limit=1", "x:recall.limit=2"], "two configurations are called 'x'"),
        (["tuned.toml"], [], "is not NAME=PATH"),
        (["mine=nowhere.toml"], [], "cannot be read"),
    ],
)
def test_what_is_no_configuration_is_refused(tmp_path: Path, files: list[str], sets: list[str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        configurations(files, sets, tmp_path)


def test_an_unknown_setting_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no setting recall\.fusion\.mod"):
        configurations([], ["recall.fusion.mod=rrf"], tmp_path)


def test_configurations_share_a_store_exactly_when_they_store_alike(tmp_path: Path) -> None:
    first = stored_alike(configured(tmp_path).settings)
    for asking in ({"recall__fusion__mode": "rrf"}, {"recall__limit": 5}, {"recall__lexical__max_terms": 9}):
        assert stored_alike(configured(tmp_path, **asking).settings) == first
    for storing in (
        {"recall__lexical__stemming": False},
        {"chunks__max_tokens": 90},
        {"embedding__provider": "hashing"},
    ):
        assert stored_alike(configured(tmp_path, **storing).settings) != first


# --- running ----------------------------------------------------------------------------------------------


def rows_of(made: Report) -> dict[tuple[str, str], float]:
    return {(row.group, row.configuration): row.figures["nDCG@10"] for row in made.rows}


def test_a_data_set_is_filled_asked_and_compared(harbour: Path, tmp_path: Path) -> None:
    words = configured(tmp_path)
    other = configured(tmp_path, "exact", recall__lexical__stemming=False)
    outcome = run(read(harbour), words, other)
    made = report(outcome)
    assert (made.documents, made.left_out, made.passages) == (3, 0, 3)
    assert [(row.group, row.configuration, row.questions) for row in made.rows] == [
        ("plain", CONFIGURED, 1),
        ("plain", "exact", 1),
        ("graded", CONFIGURED, 1),
        ("graded", "exact", 1),
        ("all", CONFIGURED, 2),
        ("all", "exact", 2),
    ]
    found = rows_of(made)
    assert found["plain", CONFIGURED] == found["plain", "exact"] == 1.0
    # "board" finds "boards" by its stem; "pilot" finds it without. The tide shares no word with the question.
    assert found["graded", CONFIGURED] == pytest.approx(3 / (3 + 1 / math.log2(3)))
    assert made.rows[0].gains == {}
    assert made.rows[5].gains["nDCG@10"] == (0.0, 0.0, 0.0)
    assert all(latency.p50 > 0 and latency.degraded == 0 for latency in made.latencies.values())


def test_facts_and_turns_are_kept_apart_and_asked_as_such(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    lines(
        folder / "documents.jsonl",
        [
            {"id": "f", "text": "The harbour master is Ines.", "kind": "fact"},
            {"id": "t1", "text": "Ann: the dredger broke down", "kind": "session", "at": "2020-01-01"},
            {"id": "t2", "text": "Bo: I called the dredger's owner", "kind": "session", "at": "2020-01-02"},
        ],
    )
    lines(
        folder / "queries.jsonl",
        [{"query": "who is harbour master", "gold": ["f"]}, {"query": "which dredger broke", "gold": ["t1"]}],
    )
    outcome = run(read(folder), configured(tmp_path))
    assert [answer.score.mrr for answer in outcome.answers[CONFIGURED]] == [1.0, 1.0]


def test_a_document_that_the_importer_refuses_is_counted_and_cannot_be_found(harbour: Path, tmp_path: Path) -> None:
    refused = {"id": "packed", "text": "x=1;" * 3000, "path": "packed.js"}
    lines(harbour / "documents.jsonl", [*HARBOUR, refused])
    lines(harbour / "queries.jsonl", [*ASKED, {"query": "packed", "gold": ["packed"]}])
    outcome = run(read(harbour), configured(tmp_path))
    assert outcome.left_out == ["packed"]
    assert outcome.answers[CONFIGURED][-1].score.recalls == (0.0, 0.0, 0.0)


def test_two_documents_of_one_path_are_two_documents(harbour: Path, tmp_path: Path) -> None:
    lines(harbour / "documents.jsonl", [{**each, "path": "Notes.md"} for each in HARBOUR])
    outcome = run(read(harbour), configured(tmp_path))
    assert (outcome.documents, outcome.left_out) == (3, [])
    assert outcome.answers[CONFIGURED][0].score.mrr == 1.0


def test_transcripts_are_imported_whatever_folder_they_are_of(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    for number, asked in enumerate(("Why does the ferry skip Sundays?", "Paint the lighthouse red, please, all of it")):
        talk = Talk(f"/somewhere/{number}", session=f"5c0e0000-0000-4000-8000-00000000000{number}")
        talk.ask(asked).run("make check", "1 passed").say("Done, and the check passes now.")
        path = folder / "sessions" / f"{talk.session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(talk.lines()) + "\n", encoding="utf-8")
    gold = "5c0e0000-0000-4000-8000-000000000001"
    asked_ = [{"query": "red lighthouse", "kind": "why", "gold_sessions": [gold]}]
    lines(folder / "queries.jsonl", asked_)
    outcome = run(read(folder), configured(tmp_path))
    assert outcome.documents == 2
    assert outcome.answers[CONFIGURED][0].score == ((1.0, 1.0, 1.0), 1.0, 1.0)


def test_a_sample_is_the_same_for_the_same_seed(tmp_path: Path, harbour: Path) -> None:
    lines(harbour / "queries.jsonl", [{"query": f"crane {at}", "gold": ["crane"]} for at in range(12)])

    def texts(seed: int) -> list[str]:
        outcome = run(read(harbour), configured(tmp_path), sample=4, seed=seed)
        return [question.text for question in outcome.questions]

    assert len(texts(1)) == 4
    assert texts(1) == texts(1)
    assert texts(1) != texts(2)


def test_vectors_are_asked_and_a_model_that_does_not_load_is_an_error_not_a_figure(
    harbour: Path, tmp_path: Path
) -> None:
    hashing = configured(tmp_path, embedding__provider="hashing", recall__mode="vector")
    assert report(run(read(harbour), hashing)).rows[-1].figures["recall@10"] > 0.5

    def broken(_: object) -> HashingEmbedder:
        raise ModelError("missing", "There is no such model.", "Install it.")

    with pytest.raises(Exception, match="There is no such model"):
        evaluate(read(harbour), [hashing], broken, lambda *_: None)


# --- the user's own store ---------------------------------------------------------------------------------


def drawn(body: str, *, title: str = "Lock rules (locks.md)", heading: str = "Opening") -> Drawn:
    return Drawn(Item("doc_1", "doc", "project:x", Clean(title)), Passage(0, Clean(body), heading))


def test_a_question_leaves_out_what_title_and_heading_say() -> None:
    text = "The lock keeper opens the western lock after every spring tide has turned."
    (asked,) = known_items([drawn(text)], Analyzer(), 10, seed=0)
    assert asked.text == "The keeper the western after every spring tide has turned"
    assert asked.gold == {"doc_1": 1.0}
    assert asked.groups == ("doc", "a sentence", "all")


def test_a_passage_that_says_too_little_without_its_heading_is_not_asked_about() -> None:
    assert known_items([drawn("Opening the lock is by rules.")], Analyzer(), 10, seed=0) == ()


def test_rare_words_are_those_that_fewest_passages_have_and_never_a_redacted_secret() -> None:
    common = "The barge waits near the northern quay all morning."
    told = f"{common} Then the stevedore lashed turpentine barrels [REDACTED:token:ab12] quickly."
    questions = known_items([*(drawn(common) for _ in range(3)), drawn(told)], Analyzer(), 10, seed=0)
    assert questions[-1].groups == ("doc", "rare words", "all")
    assert questions[-1].text == "stevedore lashed turpentine barrels"


@pytest.fixture
def own(command: Command, project: Path) -> Command:
    """A store with documents and a fact of one's own."""
    for each in HARBOUR:
        (project / f"{each['id']}.md").write_text(f"# {each['title']}\n\n{each['text']}\n", encoding="utf-8")
    command.json("sync", "--documents")
    command.json("remember", "Dredging of the northern basin needs permission from the fishery board in Marl.")
    return command


def test_the_own_store_is_asked_about_itself_and_its_text_is_not_printed(own: Command) -> None:
    done = own("eval", "--own", "--set", "recall.fusion.mode=rrf")
    assert done.returncode == 0, done.stderr
    assert "own store (known items)" in done.stdout
    assert "reported reuse: nothing was reported yet" in done.stdout
    assert not {"dredging", "gantry", "ladder", "sill"} & set(done.stdout.casefold().split())
    made = own.json("eval", "--own")["reports"][0]
    assert made["documents"] == 4
    assert made["reuse"] is None
    kinds = {row["group"]: (row["questions"], row["recall@10"]) for row in made["groups"]}
    assert kinds["fact"] == (1, 1.0)
    assert kinds["doc"] == (3, 1.0)
    assert kinds["all"] == (4, 1.0)


def test_asking_the_own_store_writes_nothing_and_asks_the_same_twice(own: Command) -> None:
    before = own.json("status")
    first, second = (own.json("eval", "--own", "--seed", "7")["reports"][0]["groups"] for _ in range(2))
    assert first == second
    assert own.json("status") == before


def test_show_prints_the_questions_that_were_missed(own: Command) -> None:
    done = own("eval", "--own", "--show", env={"GROUNDED_RECALL__MAX_QUERY_CHARS": "1"})
    told, _, missed = done.stdout.partition("not in the answer:")
    assert "Dredging of the northern basin" in missed
    assert "Dredging" not in told


def test_an_own_store_is_not_compared_under_settings_that_would_store_otherwise(own: Command) -> None:
    done = own("eval", "--own", "--set", "chunks.max_tokens=90")
    assert done.returncode == 1
    assert "would store otherwise" in done.stderr


def test_an_empty_own_store_says_what_to_do(command: Command) -> None:
    command.json("remember", "Too short.", "--scope", "global")
    done = command("eval", "--own")
    assert done.returncode == 1
    assert "grounded-mcp sync" in done.stderr


# --- the command ------------------------------------------------------------------------------------------


def test_the_command_reports_a_data_set_as_text_and_as_json(command: Command, harbour: Path) -> None:
    done = command("eval", str(harbour), "--set", "rrf:recall.fusion.mode=rrf")
    assert done.returncode == 0, done.stderr
    assert "harbour (plain): 3 documents, 3 passages" in done.stdout
    assert "against as configured" in done.stdout
    data = command.json("eval", str(harbour), "--set", "rrf:recall.fusion.mode=rrf")
    assert data["configurations"] == {"as configured": {}, "rrf": {"recall.fusion.mode": "rrf"}}
    (made,) = data["reports"]
    last = made["groups"][-1]
    assert (last["group"], last["configuration"], last["questions"]) == ("all", "rrf", 2)
    assert last["gains"]["nDCG@10"] == {"mean": 0.0, "low": 0.0, "high": 0.0}
    assert set(made["latencyMs"]) == {"as configured", "rrf"}
    assert not (command.home / "memory.db").exists()


def test_the_command_keeps_vectors_between_runs(command: Command, harbour: Path, tmp_path: Path) -> None:
    hashing = {"GROUNDED_EMBEDDING__PROVIDER": "hashing"}
    kept = tmp_path / "kept"
    first = command.json("eval", str(harbour), "--cache", str(kept), env=hashing)
    files = sorted(kept.rglob("*.vectors"))
    assert len(files) == 1
    second = command.json("eval", str(harbour), "--cache", str(kept), env=hashing)
    assert sorted(kept.rglob("*.vectors")) == files
    assert first["reports"][0]["groups"] == second["reports"][0]["groups"]


@pytest.mark.parametrize("args", [(), ("somewhere", "--own"), ("--own", "--queries", "0")])
def test_the_command_wants_a_data_set_or_the_own_store(command: Command, args: tuple[str, ...]) -> None:
    assert command("eval", *args).returncode == 1
