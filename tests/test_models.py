"""Embedders and the guard around them: right vectors, in time, or a reason and a remedy."""

from __future__ import annotations

import logging
import math
import os
import shutil
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grounded_mcp.errors import ModelError
from grounded_mcp.models import catalog, guard, onnx
from grounded_mcp.models.base import Embedder, Purpose
from grounded_mcp.models.catalog import BUNDLED, EmbeddingOptions
from grounded_mcp.models.door import REST_SECONDS, GuardState
from grounded_mcp.models.guard import GuardedEmbedder, flaw
from grounded_mcp.models.hashing import HashingEmbedder
from grounded_mcp.models.onnx import BUNDLED_FOLDER, FOLDER_FILES, OnnxEmbedder
from grounded_mcp.models.recipes import recipe
from grounded_mcp.models.windows import windows
from grounded_mcp.values import Space, Vector

SOON = 20.0
"""Seconds a test waits for something that must happen."""

HASHING = EmbeddingOptions(provider="hashing")
NAN = float("nan")


def unpacked(vector: Vector) -> tuple[float, ...]:
    return struct.unpack(f"<{len(vector) // 4}f", vector)


def cosine(one: Vector, other: Vector) -> float:
    return math.fsum(a * b for a, b in zip(unpacked(one), unpacked(other), strict=True))


class Clock:
    """Seconds that pass only when told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Scripted(HashingEmbedder):
    """A hashing embedder whose answer to a text can be replaced: by an action to call, or by plain numbers."""

    def __init__(self, answers: dict[str, Callable[[], object] | Sequence[float]]) -> None:
        super().__init__(8)
        self.answers = answers

    def embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        return [self._scripted(text) for text in texts]

    def _scripted(self, text: str) -> Vector:
        answer = self.answers.get(text)
        if callable(answer):
            answer()
        elif answer is not None:
            return Vector(struct.pack(f"<{len(answer)}f", *answer))
        return self._one(text)


def raising(error: Exception) -> Callable[[], object]:
    def act() -> object:
        raise error

    return act


Make = Callable[..., GuardedEmbedder]


@pytest.fixture
def guarded() -> Iterator[Make]:
    """Makes guards that are ready, and ends their threads."""
    made: list[GuardedEmbedder] = []

    def make(embedder: Embedder, clock: Callable[[], float] = time.monotonic, timeout: float = 1.5) -> GuardedEmbedder:
        options = EmbeddingOptions(provider="hashing", query_timeout_s=timeout)
        made.append(GuardedEmbedder(options, lambda _: embedder, clock))
        assert made[-1].wait_ready(SOON)
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(scope="module")
def bundled() -> OnnxEmbedder:
    return onnx.load(EmbeddingOptions())


def refused(call: Callable[[], object]) -> ModelError:
    with pytest.raises(ModelError) as caught:
        call()
    assert caught.value.remedy
    return caught.value


# --- the bundled model ------------------------------------------------------------------------------------


def test_the_bundled_model_gives_unit_vectors_of_384_dimensions(bundled: OnnxEmbedder) -> None:
    (vector,) = bundled.embed(["How do I restart the build server?"], "query")
    assert flaw(vector, 384) is None
    assert bundled.dimensions == 384
    assert bundled.floor == 0.14
    assert bundled.fingerprint == f"{BUNDLED}@63faa612a7e6/384/prep1"


def test_r4_a_question_is_nearer_to_its_answer_than_to_anything_else_and_the_floor_lies_between(
    bundled: OnnxEmbedder,
) -> None:
    (question,) = bundled.embed(["how do we deploy a new version?"], "query")
    answer, other = bundled.embed(
        ["Deployment: push a tag and the pipeline rolls the version out.", "The cat sleeps on the sofa."], "passage"
    )
    assert cosine(question, answer) > 0.3 > bundled.floor > cosine(question, other)


def test_r17_a_text_has_the_same_vector_alone_and_among_any_neighbours(bundled: OnnxEmbedder) -> None:
    texts = ["short", "a much longer text about vectors " * 12, "def f(x):\n    return x", "漢字"]
    together = bundled.embed(texts, "passage")
    assert together == [bundled.embed([text], "passage")[0] for text in texts]
    assert together == bundled.embed(texts[::-1], "passage")[::-1]


def test_t14_the_last_line_of_a_text_longer_than_the_model_reads_is_in_its_vector(bundled: OnnxEmbedder) -> None:
    start = "The build runs every night and mails a report to the team. " * 60
    plain, marked = bundled.embed([start, start + "Our cat hates the vet."], "passage")
    (about_cats,) = bundled.embed(["pet animals"], "query")
    assert cosine(about_cats, marked) > cosine(about_cats, plain) + 0.02


def test_every_window_of_a_long_text_fits_the_model(bundled: OnnxEmbedder) -> None:
    tokenizer = bundled._engine.model.tokenizer
    for text in ("a-b_c.d(e) " * 400, "漢字" * 900, "word " * 2_000, "x" * 9_000, "fee-fi.fo/fum\n" * 300):
        pieces = bundled._pieces(text)
        assert "".join(pieces) == text
        assert [len(tokenizer.encode(piece).overflowing) for piece in pieces] == [0] * len(pieces)


@pytest.mark.parametrize(
    "text", ["", " ", "\0", "a\ud800b", "🎉" * 500, "漢字かな", "\n" * 5_000, "<|endoftext|> [SEP]"]
)
def test_any_text_has_a_vector(bundled: OnnxEmbedder, text: str) -> None:
    assert [flaw(vector, 384) for vector in bundled.embed([text, text], "passage")] == [None, None]


def test_case_41_of_a_query_of_a_megabyte_only_the_beginning_is_embedded(bundled: OnnxEmbedder) -> None:
    long = "how do we deploy to staging? " * 36_000
    assert bundled.embed([long], "query") == bundled.embed([long[: onnx.QUERY_CHARS]], "query")


# --- models that are not there, or broken -----------------------------------------------------------------


def broken_copy(target: Path, change: Callable[[bytes], bytes], name: str = "model.onnx") -> Path:
    shutil.copytree(BUNDLED_FOLDER, target)
    (target / name).write_bytes(change((target / name).read_bytes()))
    return target


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def one_bit_off(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize(
    ("name", "change"), [("model.onnx", half), ("model.onnx", one_bit_off), ("tokenizer.json", half)]
)
def test_t4_a_damaged_file_of_the_bundled_model_is_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(onnx, "BUNDLED_FOLDER", broken_copy(tmp_path / "copy", change, name))
    error = refused(lambda: onnx.load(EmbeddingOptions()))
    assert error.code == "failed"
    assert "damaged" in error.message
    assert error.remedy.startswith("Reinstall grounded-memory-mcp")


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "tokenizer_config.json"])
def test_t4_half_a_file_in_a_folder_of_ones_own_is_detected_and_nothing_is_printed_twice(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = broken_copy(tmp_path / "copy", half, name)
    guarded = GuardedEmbedder(EmbeddingOptions(model=str(folder)))
    assert not guarded.wait_ready(SOON)
    codes = {refused(lambda: guarded.query("anything")).code for _ in range(5)}
    guarded.close()
    assert codes == {"failed"}
    assert [(record.levelname, record.exc_info) for record in caplog.records] == [("WARNING", None)]
    assert capfd.readouterr().out == ""


def test_a_missing_file_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"")
    error = refused(lambda: onnx.load(EmbeddingOptions(model=str(tmp_path))))
    assert error.code == "missing"
    assert error.message == f"{tmp_path} does not hold tokenizer.json, tokenizer_config.json."


def test_a_folder_of_ones_own_is_loaded_and_its_pooling_note_is_heeded(bundled: OnnxEmbedder, tmp_path: Path) -> None:
    folder = broken_copy(tmp_path / "my-model", lambda content: content)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}', encoding="utf-8")
    own = onnx.load(EmbeddingOptions(model=str(folder)))
    assert own.fingerprint.startswith("my-model@")
    assert own.floor == 0.3
    assert cosine(own.embed(["a question"], "query")[0], bundled.embed(["a question"], "query")[0]) < 0.95


def test_t1_a_model_that_is_not_on_this_machine_is_missing_at_once_and_leaves_no_folder(tmp_path: Path) -> None:
    options = EmbeddingOptions(model="BAAI/bge-small-en-v1.5", cache_dir=str(tmp_path / "cache"))
    error = refused(lambda: onnx.load(options))
    assert error.code == "missing"
    assert "downloads are off" in error.message
    assert "embedding.allow_download = true" in error.remedy
    assert not (tmp_path / "cache").exists()


def test_a_misspelt_model_name_is_answered_with_a_known_one() -> None:
    error = refused(lambda: onnx.load(EmbeddingOptions(model="BAAI/bge-smal-en-v1.5")))
    assert (error.code, error.remedy) == ("missing", "Did you mean BAAI/bge-small-en-v1.5?")


OFFLINE = """
import sys
attempts = []
def hook(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto", "socket.gethostbyname"):
        attempts.append((event, args))
sys.addaudithook(hook)
from grounded_mcp.models.catalog import EmbeddingOptions
from grounded_mcp.models.guard import GuardedEmbedder
assert not {"numpy", "fastembed", "onnxruntime", "huggingface_hub"} & set(sys.modules)
cached, empty = sys.argv[1:]
for options in (
    EmbeddingOptions(),
    EmbeddingOptions(model="BAAI/bge-small-en-v1.5", cache_dir=cached),
    EmbeddingOptions(model="BAAI/bge-small-en-v1.5", cache_dir=empty),
    EmbeddingOptions(model="minishlab/potion-base-8M", cache_dir=empty),
):
    guard = GuardedEmbedder(options)
    guard.wait_ready(20)
    sys.stderr.write(guard.state.name + "\\n")
    if guard.state.name == "ready":
        guard.query("anything")
sys.stderr.write(f"attempts: {attempts}\\n")
"""


def test_t2_case_55_no_model_present_or_absent_attempts_a_connection_or_writes_to_stdout(tmp_path: Path) -> None:
    snapshot = tmp_path / "cached" / "models--Qdrant--bge-small-en-v1.5-onnx-Q" / "snapshots" / "abc"
    shutil.copytree(BUNDLED_FOLDER, snapshot)
    (snapshot / "model.onnx").rename(snapshot / "model_optimized.onnx")
    (snapshot.parent.parent / "refs").mkdir()
    (snapshot.parent.parent / "refs" / "main").write_text("abc", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    command = [sys.executable, "-W", "error", "-c", OFFLINE, str(tmp_path / "cached"), str(tmp_path / "empty")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("No vectors: ")]
    assert lines == ["ready", "ready", "failed", "failed", "attempts: []"]
    assert (done.returncode, done.stdout) == (0, "")


ENDING = """
import threading
from grounded_mcp.models import onnx
from grounded_mcp.models.catalog import EmbeddingOptions
embedder = onnx.load(EmbeddingOptions())
begun = threading.Event()
def work():
    while True:
        embedder.embed(["a text that takes a while to embed " * 40], "passage")
        begun.set()
threading.Thread(target=work, daemon=True).start()
begun.wait()
"""


def test_t11_a_process_that_ends_while_it_embeds_exits_cleanly() -> None:
    """Without the wait at exit this aborts (SIGABRT) every time."""
    done = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, timeout=60, check=False)
    assert "Abort" not in done.stderr
    assert "terminate called" not in done.stderr
    assert done.returncode == 0


# --- loading ----------------------------------------------------------------------------------------------


def test_a_guard_is_idle_until_it_is_asked_then_loading_then_ready() -> None:
    release = threading.Event()

    def load(_: EmbeddingOptions) -> Embedder:
        release.wait(SOON)
        return HashingEmbedder(8)

    guarded = GuardedEmbedder(HASHING, load)
    assert guarded.state == GuardState("idle")
    assert refused(lambda: guarded.query("first")).code == "loading"
    assert guarded.state == GuardState("loading")
    assert refused(lambda: guarded.space).code == "loading"
    assert not guarded.wait_ready(0.01)
    release.set()
    assert guarded.wait_ready(SOON)
    assert guarded.state == GuardState("ready", "hashing/8/1")
    assert guarded.space == Space("hashing/8/1", 8)
    assert guarded.query("first") == HashingEmbedder(8).embed(["first"], "query")[0]
    guarded.close()


def test_t1_case_39_a_failed_load_is_tried_again_once_per_interval_and_a_model_that_appears_is_used(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, attempts = Clock(), 0
    outcomes: list[Embedder | ModelError] = [ModelError("missing", "Not here.", "Fetch it."), HashingEmbedder(8)]

    def load(_: EmbeddingOptions) -> Embedder:
        nonlocal attempts
        attempts += 1
        outcome = outcomes[attempts - 1]
        if isinstance(outcome, ModelError):
            raise outcome
        return outcome

    guarded = GuardedEmbedder(HASHING, load, clock)
    assert not guarded.wait_ready(SOON)
    clock.now += 299.0
    errors = {str(refused(lambda: guarded.query("anything"))) for _ in range(50)}
    assert (errors, attempts) == ({"Not here. Fetch it."}, 1)
    assert guarded.state == GuardState("failed", None, "Not here. Fetch it.")
    clock.now += 1.0
    assert guarded.wait_ready(SOON)
    assert guarded.state.name == "ready"
    assert attempts == 2
    assert [record.getMessage() for record in caplog.records] == ["No vectors: Not here. Fetch it."]
    guarded.close()


def test_a_loader_that_raises_anything_at_all_is_a_failed_model(caplog: pytest.LogCaptureFixture) -> None:
    guarded = GuardedEmbedder(HASHING, lambda _: {}["model"])
    assert not guarded.wait_ready(SOON)
    errors = [refused(lambda: guarded.query("anything")) for _ in range(3)]
    assert [error.code for error in errors] == ["failed"] * 3
    assert guarded.state.problem is not None
    assert "KeyError" in guarded.state.problem
    assert [record.getMessage().split(" at ")[0] for record in caplog.records] == ["The embedder raised KeyError"]
    guarded.close()


# --- queries ----------------------------------------------------------------------------------------------


def test_case_40_a_query_to_an_embedder_that_hangs_ends_in_time_and_the_next_ones_at_once(guarded: Make) -> None:
    release = threading.Event()
    asked = guarded(Scripted({"hang": lambda: release.wait(SOON)}), timeout=0.1)
    started = time.monotonic()
    assert refused(lambda: asked.query("hang")).code == "slow"
    first = time.monotonic() - started
    threads = threading.active_count()
    started = time.monotonic()
    assert {refused(lambda: asked.query("next")).code for _ in range(100)} == {"slow"}
    assert first < 1.0
    assert time.monotonic() - started < 1.0
    assert threading.active_count() == threads
    assert asked.state.problem is not None
    release.set()
    deadline = time.monotonic() + SOON
    while asked.state.problem is not None and time.monotonic() < deadline:
        threading.Event().wait(0.005)
    assert asked.query("next") == HashingEmbedder(8).embed(["next"], "query")[0]


def test_the_time_of_a_query_runs_from_its_beginning_not_from_the_wait(guarded: Make) -> None:
    clock, release = Clock(), threading.Event()
    asked = guarded(Scripted({"hang": lambda: release.wait(SOON)}), clock)
    waiting = asked.begin("hang")
    clock.now += 1.5
    started = time.monotonic()
    assert refused(waiting).code == "slow"
    assert time.monotonic() - started < 1.0
    release.set()


def test_r16_three_unanswered_queries_in_a_row_give_the_embedder_a_rest(guarded: Make) -> None:
    clock, calls = Clock(), 0

    def fail() -> object:
        nonlocal calls
        calls += 1
        raise RuntimeError("no luck")

    asked = guarded(Scripted({"bad": fail}), clock)
    assert [refused(lambda: asked.query("bad")).code for _ in range(5)] == ["failed"] * 3 + ["slow"] * 2
    assert calls == 3
    assert asked.state.problem == "The embedder does not answer. It is tried again within 30 s, or restart."
    clock.now += REST_SECONDS
    assert asked.query("good")
    assert asked.state.problem is None


def test_t4_case_59_an_embedder_that_always_raises_is_logged_once_by_place_and_never_in_its_own_words(
    guarded: Make, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    asked = guarded(Scripted({"bad": raising(RuntimeError("no luck"))}), clock)
    for _ in range(20):
        clock.now += REST_SECONDS
        assert refused(lambda: asked.query("bad")).message == "The embedder failed (RuntimeError)."
    (record,) = caplog.records
    assert record.getMessage().startswith("The embedder raised RuntimeError at ")
    assert "test_models.py" in record.getMessage()
    assert "no luck" not in caplog.text


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ([NAN] + [0.0] * 7, "is not finite"),
        ([math.inf] + [0.0] * 7, "is not finite"),
        ([0.0] * 8, "has length 0 instead of 1"),
        ([1e38] + [0.0] * 7, "has length 1e+38 instead of 1"),
        ([1.0, 0.0, 0.0], "has 3 dimensions instead of 8"),
        ([], "has 0 dimensions instead of 8"),
    ],
)
def test_case_12_a_query_never_gets_an_unusable_vector(guarded: Make, numbers: list[float], says: str) -> None:
    asked = guarded(Scripted({"bad": numbers}))
    error = refused(lambda: asked.query("bad"))
    assert (error.code, error.message) == ("invalid", f"The embedder answered a vector that {says}.")


# --- passages ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("numbers", [[NAN] * 8, [math.inf] * 8, [0.0] * 8, [1e38] * 8, [1.0], []])
def test_case_12_a_row_without_a_usable_vector_leaves_the_others_as_they_are(
    guarded: Make, numbers: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    asked = guarded(Scripted({"bad": numbers}))
    one, two = HashingEmbedder(8).embed(["one", "two"], "passage")
    assert asked.passages(["one", "bad", "two"]) == [one, None, two]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


@pytest.mark.parametrize("error", [ModelError("invalid", "Zero.", "None."), ValueError("cannot read this")])
def test_a_text_the_embedder_cannot_take_does_not_hold_up_the_others(guarded: Make, error: Exception) -> None:
    asked = guarded(Scripted({"bad": raising(error)}))
    one, two = HashingEmbedder(8).embed(["one", "two"], "passage")
    assert asked.passages(["one", "bad", "two"]) == [one, None, two]
    assert asked.passages(["bad"]) == [None]


def test_passages_that_fail_because_the_embedder_does_are_not_written_off(guarded: Make) -> None:
    class Broken(HashingEmbedder):
        def embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
            raise RuntimeError("out of memory")

    error = refused(lambda: guarded(Broken(8)).passages(["one", "two"]))
    assert (error.code, error.message) == ("failed", "The embedder failed (RuntimeError).")


def test_too_few_vectors_are_a_failure_not_a_shift_of_rows(guarded: Make) -> None:
    class Forgetful(HashingEmbedder):
        def embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
            return super().embed(texts[1:], purpose)

    assert refused(lambda: guarded(Forgetful(8)).passages(["one", "two"])).code == "failed"


def test_case_40_passages_that_hang_end_in_time_and_queries_go_on(
    guarded: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "PASSAGE_SECONDS", 0.05)
    release = threading.Event()
    asked = guarded(Scripted({"hang": lambda: release.wait(SOON)}))
    assert refused(lambda: asked.passages(["one", "hang"])).code == "slow"
    assert refused(lambda: asked.passages(["one"])).code == "slow"
    assert asked.query("two") == HashingEmbedder(8).embed(["two"], "query")[0]
    release.set()


# --- windows, hashing, options ----------------------------------------------------------------------------


@given(st.text(alphabet="ab \n", max_size=600), st.integers(1, 80))
@settings(max_examples=60)
def test_windows_lose_nothing_and_fit(text: str, room: int) -> None:
    spans = [(at, at + 1) for at, letter in enumerate(text) if letter in "ab"]
    pieces = windows(text, spans, room)
    assert "".join(pieces) == text
    assert all(pieces) or text == ""
    if room > 64:
        assert max(sum(letter in "ab" for letter in piece) for piece in pieces) <= room


def test_windows_are_cut_behind_spaces_and_about_equal() -> None:
    words = "alpha beta gamma delta " * 50
    spans = [(at, at + 1) for at in range(len(words)) if words[at] != " "]
    pieces = windows(words, spans, 254)
    assert [len(piece) for piece in pieces] == [230, 230, 230, 230, 230]
    assert {piece[-1] for piece in pieces} == {" "}


def test_the_hashing_embedder_gives_the_same_vectors_everywhere() -> None:
    (vector,) = HashingEmbedder(4).embed(["Build the docs, build the site"], "passage")
    assert [round(value, 4) for value in unpacked(vector)] == [0.0, 0.2999, 0.8076, 0.5077]


def test_the_hashing_embedder_finds_shared_words_and_ignores_case_and_order() -> None:
    embedder = HashingEmbedder()
    query, same, shares, other = embedder.embed(
        ["restart the server", "Server: THE restart!", "how to restart a server", "cats sleep all day"], "query"
    )
    assert query == same
    assert cosine(query, shares) > 0.5 > embedder.floor > cosine(query, other)


def test_the_hashing_embedder_has_a_vector_for_anything_but_white_space() -> None:
    embedder = HashingEmbedder(2)
    texts = ["?!", "🎉", "\ud800", *(f"{a} {b}" for a in "abcdef" for b in "uvwxyz")]
    assert {flaw(vector, 2) for vector in embedder.embed(texts, "passage")} == {None}
    assert refused(lambda: embedder.embed([" \n"], "passage")).code == "invalid"


def test_prefixes_follow_the_model_by_name_in_any_case() -> None:
    assert recipe("Intfloat/Multilingual-E5-Large").query == "query: "
    assert recipe("someone/unknown").floor == 0.3


def test_the_hashing_provider_loads_by_name() -> None:
    assert catalog.load(HASHING).fingerprint == "hashing/256/1"


def test_without_fastembed_the_fault_names_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)
    monkeypatch.delitem(sys.modules, "grounded_mcp.models.onnx")
    monkeypatch.delattr("grounded_mcp.models.onnx")
    error = refused(lambda: catalog.load(EmbeddingOptions()))
    assert (error.code, error.remedy) == ("missing", 'Install it: pip install "fastembed>=0.9,<1".')


def test_the_bundled_folder_holds_its_licence_and_where_it_came_from() -> None:
    assert "Apache License" in (BUNDLED_FOLDER / "LICENSE").read_text(encoding="utf-8")
    assert "sentence-transformers/all-MiniLM-L6-v2" in (BUNDLED_FOLDER / "PROVENANCE.md").read_text(encoding="utf-8")
    assert all((BUNDLED_FOLDER / name).is_file() for name in FOLDER_FILES)


def test_case_55_loading_a_model_leaves_no_trace_of_the_runtimes_telemetry(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("ORT_")}
    program = (
        "from grounded_mcp.models.catalog import EmbeddingOptions, load\n"
        "load(EmbeddingOptions()).embed(['harbour'], 'query')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **kept,
            "HOME": str(tmp_path),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "PYTHONPATH": str(Path(__file__).parent.parent),
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert [str(path) for path in tmp_path.rglob("*") if "onnxruntime" in path.name.lower()] == []
