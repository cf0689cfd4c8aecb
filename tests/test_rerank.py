"""The second opinion: a model's scores replace fusion's for the head of the list, in time or not at all (R15)."""

from __future__ import annotations

import logging
import math
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grounded_mcp.config import load as load_config
from grounded_mcp.errors import ConfigError, ModelError
from grounded_mcp.models import onnx_reranking, reranking
from grounded_mcp.models.door import MISSES, REST_SECONDS, GuardState
from grounded_mcp.models.onnx_reranking import OnnxReranker
from grounded_mcp.models.reranking import SLICE, GuardedReranker, RerankerOptions
from grounded_mcp.recall.rerank import RerankOptions, both, calibrated, reordered, rerank
from grounded_mcp.settings import settings as read_settings
from grounded_mcp.values import Candidate, Degradation, Nudge
from tests import cross_encoder
from tests.candidates import candidate

REPOSITORY = Path(__file__).parent.parent
SOON = 20.0
"""Seconds a test waits for something that must happen."""

QUERY = "how do I restart the server"
REBOOT = "The machine needs a reboot."
CAT = "Our cat sleeps by the window."


class Scripted:
    """A reranker with a logit per text; a text without one gets 0, and an action in its place is called."""

    fingerprint = "scripted"

    def __init__(self, logits: dict[str, float | Callable[[], object]] | None = None) -> None:
        self.logits = logits or {}
        self.asked: list[tuple[str, list[str]]] = []

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        self.asked.append((query, list(texts)))
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> float:
        logit = self.logits.get(text, 0.0)
        if callable(logit):
            logit()
            return 0.0
        return logit


class Clock:
    """Seconds that pass only when told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def one(name: str, score: float, at: int = 0, **given: object) -> Candidate:
    """A candidate whose text is ``name``, a blank line of context aside."""
    made = candidate("doc", name, body=name, score=score, passage_id=at or sum(map(ord, name)), title="")
    return made._replace(**given) if given else made


def names(candidates: Sequence[Candidate]) -> list[str]:
    return [each.found.item.id for each in candidates if each.found is not None]


def refused(call: Callable[[], object]) -> ModelError:
    with pytest.raises(ModelError) as caught:
        call()
    assert caught.value.remedy
    return caught.value


# --- scores and order -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("logit", "score"),
    [(0.0, 0.5), (2.0, 0.880797077978), (-2.0, 0.119202922022), (-11.0, 1.6701e-5), (1e9, 1.0), (-1e9, 0.0)],
)
def test_r15_a_score_is_the_logistic_function_of_the_raw_logit(logit: float, score: float) -> None:
    assert calibrated(logit) == pytest.approx(score, rel=1e-4)


def test_r15_the_reranker_decides_the_order_and_the_calibrated_score() -> None:
    found = rerank(
        [one("a", 0.9), one("b", 0.8), one("c", 0.1)],
        "q",
        Scripted({"a": -2.0, "b": 0.0, "c": 2.0}),
        RerankOptions(window=0),
        depth=30,
    )
    assert names(found.candidates) == ["c", "b", "a"]
    assert [round(each.score, 4) for each in found.candidates] == [0.8808, 0.5, 0.1192]
    assert [each.fused for each in found.candidates] == [0.1, 0.8, 0.9]
    assert (found.window, found.count, found.degradation) == (60, 3, None)


def test_r15_boosts_multiply_the_calibrated_score() -> None:
    nudges = (Nudge("importance", 1.5), Nudge("scope mismatch", 0.8))
    ranked = reordered([one("even", 0.5), one("nudged", 0.5, nudges=nudges)], [], [0.0, 0.0])
    assert [(each.reranked, round(each.score, 12)) for each in ranked] == [(0.5, 0.6), (0.5, 0.5)]
    assert names(ranked) == ["nudged", "even"]


def test_r15_only_the_window_is_read_and_the_rest_follows_in_its_old_order_below_it() -> None:
    asked = Scripted({"a": -12.0, "b": -9.0})
    found = rerank(
        [one("d", 0.2), one("c", 0.3), one("b", 0.8), one("a", 0.9), one("e", 0.1)], "q", asked, RerankOptions(2), 30
    )
    assert asked.asked == [("q", ["a", "b"])]
    assert names(found.candidates) == ["b", "a", "c", "d", "e"]
    assert [each.reranked is None for each in found.candidates] == [False, False, True, True, True]
    scores = [each.score for each in found.candidates]
    assert scores == sorted(scores, reverse=True)
    assert scores[1] > scores[2] > scores[3] > scores[4] > 0
    assert (found.window, found.count) == (2, 2)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(-30, 30), st.floats(0, 2)), max_size=12),
    st.integers(1, 14),
)
@settings(max_examples=60, deadline=None)
def test_r15_nothing_is_lost_and_scores_never_rise_down_the_list(
    rows: list[tuple[float, float, float]], window: int
) -> None:
    given_ = [one(f"c{at}", score, at + 1, nudges=(Nudge("n", f),)) for at, (score, _, f) in enumerate(rows)]
    logits = {f"c{at}": logit for at, (_, logit, _) in enumerate(rows)}
    found = rerank(given_, "q", Scripted({**logits}), RerankOptions(window), depth=1)
    assert sorted(names(found.candidates)) == sorted(names(given_))
    scores = [round(each.score, 9) for each in found.candidates]
    assert scores == sorted(scores, reverse=True)
    before = names(sorted(given_, key=lambda each: -round(each.score, 9)))
    assert names(found.candidates)[found.count :] == before[window:]
    assert found.count == min(window, len(rows))


def test_r15_candidates_that_the_reranker_finds_equal_keep_their_order() -> None:
    tied = [one("z", 0.9), one("m", 0.5), one("a", 0.4)]
    assert names(rerank(tied, "q", Scripted(), RerankOptions(0), 30).candidates) == ["z", "m", "a"]


def test_r15_the_window_is_twice_the_candidates_of_a_lane_unless_it_is_set() -> None:
    assert RerankOptions(window=0).size(60) == 120
    assert RerankOptions(window=40).size(60) == 40


def test_r15_without_a_reranker_everything_stays_as_it_was() -> None:
    given_ = (one("b", 0.1), one("a", 0.9))
    found = rerank(given_, "q", None, RerankOptions(0), 30)
    assert found.candidates == given_
    assert (found.window, found.count, found.degradation) == (0, 0, None)


def test_r15_nothing_found_asks_nobody() -> None:
    asked = Scripted()
    found = rerank([], "q", asked, RerankOptions(0), 30)
    assert (found.candidates, found.window, found.count, asked.asked) == ((), 60, 0, [])


def test_r15_a_candidate_is_read_with_its_title_and_heading() -> None:
    asked = Scripted()
    read = candidate("doc", "doc_1", title="docs/ops.md", heading="Servers > Reboot", body="Hold the button.")
    rerank([read], "q", asked, RerankOptions(0), 30)
    assert asked.asked == [("q", ["docs/ops.md > Servers > Reboot\nHold the button."])]


@pytest.mark.parametrize("code", ["loading", "missing", "failed", "slow", "invalid"])
def test_r15_without_an_answer_the_fused_order_stands_and_the_reason_is_said(code: str) -> None:
    class Silent(Scripted):
        def scores(self, query: str, texts: Sequence[str]) -> list[float]:
            raise ModelError(code, "What is wrong.", "What to do.")  # type: ignore[arg-type]

    given_ = (one("b", 0.1), one("a", 0.9))
    found = rerank(given_, "q", Silent(), RerankOptions(0), 30)
    assert found.candidates == given_
    assert (found.window, found.count) == (60, 0)
    assert found.degradation == Degradation(code, f"rerank: {code}. What is wrong.", "What to do.")  # type: ignore[arg-type]


def test_r15_two_reasons_become_one_and_lose_nothing() -> None:
    vectors, order = Degradation("missing", "No vectors.", "Fetch."), Degradation("slow", "rerank: slow.", "Wait.")
    assert both(None, None) is None
    assert both(vectors, None) == vectors
    assert both(None, order) == order
    assert both(vectors, order) == Degradation("missing", "No vectors. Fetch. rerank: slow.", "Wait.")


# --- a real model, loaded by fastembed --------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cross_encoder.write(tmp_path_factory.mktemp("models") / "shared-meanings")


@pytest.fixture(scope="module")
def tiny(folder: Path) -> OnnxReranker:
    return onnx_reranking.load(RerankerOptions(model=str(folder)))


def test_r15_a_cross_encoder_from_a_folder_gives_raw_logits(tiny: OnnxReranker) -> None:
    assert tiny.fingerprint == "shared-meanings"
    assert tiny.scores(QUERY, [REBOOT, CAT, "Restart the server."]) == [1.0, -3.0, 1.0]


def test_r17_a_pair_has_the_same_logit_alone_and_among_any_neighbours(tiny: OnnxReranker) -> None:
    texts = [REBOOT, CAT, "", "server " * 15, "port", "Reboot it, then restart the server."]
    together = tiny.scores(QUERY, texts)
    assert together == [tiny.scores(QUERY, [text])[0] for text in texts]
    assert together == tiny.scores(QUERY, texts[::-1])[::-1]
    assert together == replace(tiny, _threads=1).scores(QUERY, texts)


def test_r15_a_text_is_cut_where_the_model_stops_reading(tiny: OnnxReranker) -> None:
    far = "so it is " * 10 + "restart the server"
    assert tiny.scores(QUERY, [far, "restart the server " + far]) == [-3.0, 1.0]


@pytest.mark.parametrize("text", ["", " ", "\0", "a\ud800b", "🎉" * 500, "漢字かな", "[SEP] [CLS]", "x" * 50_000])
def test_r15_any_text_has_a_score(tiny: OnnxReranker, text: str) -> None:
    assert [math.isfinite(logit) for logit in tiny.scores(text, [text, REBOOT])] == [True, True]


def test_r15_a_folder_may_keep_its_graph_as_model_repositories_do(tmp_path: Path) -> None:
    folder = cross_encoder.write(tmp_path / "repository", graph="onnx/model.onnx")
    for _ in range(2):  # the second time its name is registered already
        assert onnx_reranking.load(RerankerOptions(model=str(folder))).scores(QUERY, [REBOOT]) == [1.0]


def test_r15_a_paraphrase_that_fusion_put_last_is_lifted_to_the_top(folder: Path) -> None:
    guarded = GuardedReranker(RerankerOptions(model=str(folder)))
    assert guarded.wait_ready(SOON)
    found = rerank([one(CAT, 0.9), one("Port 80.", 0.8), one(REBOOT, 0.1)], QUERY, guarded, RerankOptions(0), 30)
    guarded.close()
    assert names(found.candidates) == [REBOOT, CAT, "Port 80."]
    assert [round(each.score, 4) for each in found.candidates] == [0.7311, 0.0474, 0.0474]


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ({"numbers": 2}, "it answers 2 numbers to a pair of texts"),
        ({"weight": math.nan}, "it answers a number that is not finite"),
    ],
)
def test_r15_a_model_that_is_no_reranker_is_refused(tmp_path: Path, model: dict[str, float], why: str) -> None:
    folder = cross_encoder.write(tmp_path / "model", **model)  # type: ignore[arg-type]
    error = refused(lambda: onnx_reranking.load(RerankerOptions(model=str(folder))))
    assert (error.code, error.message) == ("failed", f"The configured model is no reranker: {why}.")


def test_r15_an_embedding_model_is_no_reranker() -> None:
    bundled = REPOSITORY / "grounded_mcp" / "models" / "all-MiniLM-L6-v2-int8"
    assert refused(lambda: onnx_reranking.load(RerankerOptions(model=str(bundled)))).code == "failed"


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "tokenizer_config.json"])
def test_t4_half_a_file_of_a_reranker_fails_in_words(folder: Path, tmp_path: Path, name: str) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    content = (copy / name).read_bytes()
    (copy / name).write_bytes(content[: len(content) // 2])
    error = refused(lambda: onnx_reranking.load(RerankerOptions(model=str(copy))))
    assert error.code == "failed"
    assert "does not load" in error.message


def test_a_missing_file_of_a_rerankers_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"")
    error = refused(lambda: onnx_reranking.load(RerankerOptions(model=str(tmp_path))))
    assert (error.code, error.message) == (
        "missing",
        f"{tmp_path} does not hold tokenizer.json, tokenizer_config.json.",
    )


def test_t1_a_reranker_that_is_not_on_this_machine_is_missing_at_once_and_leaves_no_folder(tmp_path: Path) -> None:
    options = RerankerOptions(model="BAAI/bge-reranker-base", cache_dir=str(tmp_path / "cache"))
    error = refused(lambda: onnx_reranking.load(options))
    assert (error.code, error.remedy) == (
        "missing",
        'Set embedding.allow_download = true, or recall.rerank.model = "none".',
    )
    assert not (tmp_path / "cache").exists()


def test_a_misspelt_rerankers_name_is_answered_with_a_known_one() -> None:
    error = refused(lambda: onnx_reranking.load(RerankerOptions(model="Xenova/ms-marco-minilm-L6-v2")))
    assert (error.code, error.remedy) == ("missing", "Did you mean Xenova/ms-marco-MiniLM-L-6-v2?")


def test_the_model_none_is_never_loaded() -> None:
    assert refused(lambda: reranking.load(RerankerOptions())).code == "missing"


def test_without_fastembed_the_reranker_is_missing_and_names_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "fastembed.rerank.cross_encoder", None)
    monkeypatch.delitem(sys.modules, "grounded_mcp.models.onnx_reranking")
    monkeypatch.delattr("grounded_mcp.models.onnx_reranking")
    error = refused(lambda: reranking.load(RerankerOptions(model="BAAI/bge-reranker-base")))
    assert (error.code, error.remedy) == ("missing", 'Install it: pip install "fastembed>=0.9,<1".')


OFFLINE = """
import sys
attempts = []
def hook(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto", "socket.gethostbyname"):
        attempts.append((event, args))
sys.addaudithook(hook)
from grounded_mcp.models.reranking import GuardedReranker, RerankerOptions
import grounded_mcp.recall.rerank
assert not {"numpy", "fastembed", "onnxruntime", "huggingface_hub", "tokenizers"} & set(sys.modules)
own, cached, empty = sys.argv[1:]
for options in (
    RerankerOptions(model=own),
    RerankerOptions(model="xenova/MS-marco-MiniLM-L-6-v2", cache_dir=cached),
    RerankerOptions(model="Xenova/ms-marco-MiniLM-L-6-v2", cache_dir=empty),
):
    guard = GuardedReranker(options)
    guard.wait_ready(20)
    sys.stderr.write(guard.state.name + "\\n")
    if guard.state.name == "ready":
        assert guard.scores("restart the server", ["the machine needs a reboot"]) == [1.0]
sys.stderr.write(f"attempts: {attempts}\\n")
"""


def test_t2_case_55_no_reranker_present_or_absent_attempts_a_connection_or_is_imported_before_it_is_asked(
    folder: Path, tmp_path: Path
) -> None:
    repository = tmp_path / "cached" / "models--Xenova--ms-marco-MiniLM-L-6-v2"
    snapshot = cross_encoder.write(repository / "snapshots" / "abc", graph="onnx/model.onnx")
    assert snapshot.is_dir()
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    places = [str(folder), str(tmp_path / "cached"), str(tmp_path / "empty")]
    command = [sys.executable, "-W", "error", "-c", OFFLINE, *places]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=REPOSITORY)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("No reranking: ")]
    assert lines == ["ready", "ready", "failed", "attempts: []"]
    assert (done.returncode, done.stdout) == (0, "")


# --- in time, or not at all -------------------------------------------------------------------------------

Make = Callable[..., GuardedReranker]


@pytest.fixture
def guarded() -> Iterator[Make]:
    """Makes guards that are ready, and ends their threads."""
    made: list[GuardedReranker] = []

    def make(model: Scripted, clock: Callable[[], float] = time.monotonic, timeout: float = SOON) -> GuardedReranker:
        made.append(GuardedReranker(RerankerOptions(model="scripted", timeout_s=timeout), lambda _: model, clock))
        assert made[-1].wait_ready(SOON)
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_r15_a_reranker_is_idle_until_it_is_asked_then_loading_then_ready() -> None:
    release = threading.Event()

    def load(_: RerankerOptions) -> Scripted:
        release.wait(SOON)
        return Scripted({"a": 2.0})

    guarded = GuardedReranker(RerankerOptions(model="scripted"), load)
    assert guarded.state == GuardState("idle")
    error = refused(lambda: guarded.scores("q", ["a"]))
    assert (error.code, error.message) == ("loading", "The reranking model is still loading.")
    assert guarded.state == GuardState("loading")
    release.set()
    assert guarded.wait_ready(SOON)
    assert guarded.state == GuardState("ready", "scripted")
    assert guarded.fingerprint == "scripted"
    assert guarded.scores("q", ["a", "b"]) == [2.0, 0.0]
    guarded.close()


def test_t1_case_39_a_reranker_that_failed_to_load_is_tried_again_once_per_interval(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, attempts = Clock(), 0

    def load(_: RerankerOptions) -> Scripted:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise ModelError("missing", "Not here.", "Fetch it.")
        return Scripted()

    guarded = GuardedReranker(RerankerOptions(model="scripted"), load, clock)
    assert not guarded.wait_ready(SOON)
    clock.now += 299.0
    assert {str(refused(lambda: guarded.scores("q", ["a"]))) for _ in range(5)} == {"Not here. Fetch it."}
    clock.now += 1.0
    assert guarded.wait_ready(SOON)
    assert attempts == 2
    assert [record.getMessage() for record in caplog.records] == ["No reranking: Not here. Fetch it."]
    guarded.close()


def test_case_40_a_reranker_that_hangs_is_given_up_in_time(guarded: Make) -> None:
    release = threading.Event()
    asked = guarded(Scripted({"hang": lambda: release.wait(SOON)}), timeout=0.1)
    started = time.monotonic()
    error = refused(lambda: asked.scores("q", ["hang"]))
    assert time.monotonic() - started < SOON / 2
    assert (error.code, error.message) == ("slow", "The reranker took longer than 0.1 s.")
    assert error.remedy.startswith("Lower recall.rerank.window")
    assert refused(lambda: asked.scores("q", ["next"])).code == "slow"
    release.set()


def test_r15_a_reranker_that_nobody_waits_for_any_more_stops_at_its_next_slice(guarded: Make) -> None:
    clock = Clock()
    model = Scripted()
    asked = guarded(model, clock, timeout=5.0)
    model.logits = {"t0": lambda: setattr(clock, "now", clock.now + 5.5)}
    assert refused(lambda: asked.scores("q", [f"t{at}" for at in range(3 * SLICE)])).code == "slow"
    assert [len(texts) for _, texts in model.asked] == [SLICE]
    assert asked.scores("q", ["next"]) == [0.0]


def test_a_reranker_that_never_answers_gets_a_rest(guarded: Make) -> None:
    clock = Clock()

    def fail() -> object:
        raise RuntimeError("no luck with the secret plan")

    model = Scripted({"bad": fail})
    asked = guarded(model, clock)
    codes = [refused(lambda: asked.scores("q", ["bad"])).code for _ in range(MISSES + 1)]
    assert codes == ["failed"] * MISSES + ["slow"]
    assert len(model.asked) == MISSES
    assert asked.state.problem == "The reranker does not answer. It is tried again within 30 s, or restart."
    clock.now += REST_SECONDS
    assert asked.scores("q", ["good"]) == [0.0]


def test_t4_case_59_a_reranker_that_raises_is_logged_once_and_never_in_its_own_words(
    guarded: Make, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> object:
        raise RuntimeError("no luck with the secret plan")

    asked = guarded(Scripted({"bad": fail}))
    for _ in range(2):
        assert refused(lambda: asked.scores("q", ["bad"])).message == "The reranker failed (RuntimeError)."
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert caplog.records[0].getMessage().startswith("The reranker raised RuntimeError at ")
    assert "secret plan" not in caplog.text


@pytest.mark.parametrize("logit", [math.nan, math.inf, -math.inf])
def test_case_12_a_score_that_is_not_finite_is_no_answer(guarded: Make, logit: float) -> None:
    assert refused(lambda: guarded(Scripted({"a": logit})).scores("q", ["a", "b"])).code == "invalid"


def test_too_few_scores_are_a_failure_not_a_shift_of_rows(guarded: Make) -> None:
    class Forgetful(Scripted):
        def scores(self, query: str, texts: Sequence[str]) -> list[float]:
            return super().scores(query, texts)[1:]

    error = refused(lambda: guarded(Forgetful()).scores("q", ["a", "b"]))
    assert (error.code, error.message) == ("failed", "The reranker gave 1 scores for 2 texts.")


# --- settings ---------------------------------------------------------------------------------------------


def configured(tmp_path: Path, user: str = "", project: str = "") -> tuple[RerankerOptions, RerankOptions]:
    for name, text in (("config.toml", user), (".grounded.toml", project)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    values = load_config(cwd=tmp_path, env={"GROUNDED_HOME": str(tmp_path)})
    return read_settings(values).reranker, values.pick(RerankOptions, "recall.rerank")


def test_r15_there_is_no_reranker_unless_one_is_named(tmp_path: Path) -> None:
    reranker, stage = configured(tmp_path)
    assert reranker == RerankerOptions(cache_dir=str(tmp_path / "models"))
    assert reranker.model == "none"
    assert stage == RerankOptions(window=0)
    assert {field.name for field in fields(RerankOptions)} == {"window"}


def test_r15_a_reranker_follows_the_offline_rules_of_the_embedder(tmp_path: Path) -> None:
    reranker, stage = configured(
        tmp_path,
        "[embedding]\nallow_download = true\ncache_dir = '/models'\n"
        "[recall.rerank]\nmodel = 'BAAI/bge-reranker-base'\nwindow = 40\ntimeout_s = 2",
    )
    assert (reranker.model, reranker.timeout_s) == ("BAAI/bge-reranker-base", 2)
    assert (reranker.allow_download, reranker.cache_dir) == (True, "/models")
    assert stage.window == 40


@pytest.mark.parametrize("line", ["model = '/tmp/evil'", "timeout_s = 1e9"])
def test_g1_a_projects_file_names_no_model_and_no_time(tmp_path: Path, line: str) -> None:
    reranker, _ = configured(tmp_path, project="[recall.rerank]\n" + line)
    assert (reranker.model, reranker.timeout_s) == ("none", 5.0)


def test_g1_a_projects_file_may_set_the_window(tmp_path: Path) -> None:
    assert configured(tmp_path, project="[recall.rerank]\nwindow = 20")[1].window == 20


@pytest.mark.parametrize("line", ["timeout_s = 0", "window = -1", "window = 2.5", "model = 1"])
def test_a_rerankers_setting_that_cannot_be_used_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigError, match=r"recall\.rerank\."):
        configured(tmp_path, "[recall.rerank]\n" + line)
