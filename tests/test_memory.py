"""The facade, opened as a face opens it: what is stored, what is said about it, and what goes on in the background."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grounded_mcp import background
from grounded_mcp.assemble import check_redaction, open_memory, open_store
from grounded_mcp.background import Drain
from grounded_mcp.config import load
from grounded_mcp.errors import ConfigError, InputError, ModelError, NotFound, StoreBusy
from grounded_mcp.ingest.redact import RULES_VERSION, Redactor
from grounded_mcp.ingest.vectors import LEASE
from grounded_mcp.memory import Memory
from grounded_mcp.models import catalog
from grounded_mcp.models.base import Embedder
from grounded_mcp.models.catalog import EmbeddingOptions
from grounded_mcp.models.hashing import HashingEmbedder
from grounded_mcp.settings import Settings, settings
from grounded_mcp.values import Clean, Item, Passage, Record, Space

SOON = 20.0
TOKEN = "ghp_R7x2Lq9Zt4Vw8Kc3Bn6Mj1Hd5Gf0SaPyEuTo"
FACT = Record(Item("f", "fact", "global", Clean("")), (Passage(0, Clean("the lever is green")),))


def configured(home: Path, **env: str) -> Settings:
    return settings(load(cwd=home, env={"GROUNDED_HOME": str(home), "GROUNDED_EMBEDDING__PROVIDER": "hashing", **env}))


Open = Callable[..., Memory]


@pytest.fixture
def open_(tmp_path: Path) -> Iterator[Open]:
    """Opens the memory of a folder; every call is like another process on the same store."""
    opened: list[Memory] = []

    def make(cwd: Path | None = None, **env: str) -> Memory:
        opened.append(open_memory(configured(tmp_path, **env), cwd=cwd or tmp_path))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def folders(above: Path, *names: str) -> list[Path]:
    made = [above / name for name in names]
    for each in made:
        each.mkdir()
    return made


def eventually(happened: Callable[[], bool]) -> bool:
    until = time.monotonic() + SOON
    while not happened() and time.monotonic() < until:
        threading.Event().wait(0.01)
    return happened()


def written(folder: Path) -> bytes:
    """Every byte of the store: its file, and the log beside it."""
    return b"".join(path.read_bytes() for path in folder.glob("memory.db*")).lower()


# --- what is stored ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "secret"),
    [
        ("project:{}", TOKEN),
        ("project:example.org/team/{}", TOKEN),
        ("agent:{}", TOKEN),
        ("agent:{}", "AKIAQ7R5LZT4VW3KC6BN"),  # no secret in lower case, as which it would be stored
    ],
)
def test_i4_a_secret_in_a_scope_is_refused_and_no_byte_of_it_is_stored(
    open_: Open, tmp_path: Path, scope: str, secret: str
) -> None:
    memory = open_()
    with pytest.raises(InputError) as error:
        memory.remember("The lever is green.", scope=scope.format(secret))
    assert error.value.field == "scope"
    assert secret not in str(error.value)
    memory.remember("The lever is red.")
    assert secret.lower().encode() not in written(tmp_path)


def test_i4_a_secret_in_the_name_of_a_folder_or_a_branch_is_not_stored_and_both_are_still_read(
    open_: Open, tmp_path: Path, git: Callable[..., str]
) -> None:
    checkout = tmp_path / f"work-{TOKEN}"
    checkout.mkdir()
    (checkout / "guide.md").write_text("# Levers\n\nPull the green one.\n", encoding="utf-8")
    git(checkout, "init", "--quiet")
    git(checkout, "add", "guide.md")
    git(checkout, "commit", "--quiet", "-m", "x")
    git(checkout, "checkout", "--quiet", "-b", f"fix-{TOKEN}")
    git(checkout, "worktree", "add", "--quiet", str(tmp_path / f"tree-{TOKEN}"))
    for folder in (checkout, tmp_path / f"tree-{TOKEN}"):
        memory = open_(folder)
        assert memory.sync_documents().seen == 1
        memory.remember("The lever is green.")
        (found, *_) = memory.recall("green lever", sources=["fact"]).candidates
        assert found.found is not None
        assert found.found.item.scope == memory.project.scope
    assert "[REDACTED:" in memory.project.key
    assert TOKEN.lower().encode() not in written(tmp_path)


def test_i4_secrets_in_a_topic_key_are_counted_with_those_in_the_text(open_: Open) -> None:
    said = open_().remember(f"The token is {TOKEN}.", topic_key=f"token {TOKEN}")
    assert list(said.redactions.values()) == [2]


@pytest.mark.parametrize(("provider", "vector"), [("hashing", "pending"), ("none", "off")])
def test_case_40_a_fact_says_whether_its_vector_follows(open_: Open, provider: str, vector: str) -> None:
    memory = open_(GROUNDED_EMBEDDING__PROVIDER=provider)
    assert memory.remember("The lever is green.").vector == vector
    assert memory.remember("The lever is green.").outcome == "unchanged"


def test_a_fact_that_is_to_be_replaced_and_is_not_there_is_named_by_its_argument(open_: Open) -> None:
    with pytest.raises(NotFound) as error:
        open_().remember("The lever is green.", replaces="fact_gone")
    assert (error.value.field, error.value.message) == ("replaces", "replaces: there is no item fact_gone.")


# --- vectors in the background ----------------------------------------------------------------------------


def test_i2_a_running_memory_embeds_what_another_process_stores(
    open_: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "POLL_S", 0.02)
    open_().start()
    other = open_store(configured(tmp_path))
    for number in range(2):
        other.save([Record(Item(f"f{number}", "fact", "global", Clean("")), FACT.passages)])
        assert eventually(lambda: other.waiting() == 0)
    assert other.info().vectors["ok"] == 2
    other.close()


def test_case_40_filling_goes_on_when_the_process_that_was_at_it_is_gone(
    open_: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background, "POLL_S", 0.02)
    other = open_store(configured(tmp_path))
    other.save([FACT])
    with other.lease(LEASE, 60):
        open_().start()
        assert eventually(lambda: "Another process is adding vectors" in caplog.text)
    assert eventually(lambda: other.waiting() == 0)
    other.close()


def test_t1_filling_goes_on_when_the_model_loads_at_a_later_try(
    open_: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "POLL_S", 0.02)
    tries: list[EmbeddingOptions] = []

    def load_at_last(options: EmbeddingOptions) -> Embedder:
        tries.append(options)
        if len(tries) < 3:
            raise ModelError("missing", "Not here.", "Fetch it.")
        return HashingEmbedder()

    monkeypatch.setitem(catalog.PROVIDERS, "hashing", load_at_last)  # type: ignore[arg-type]
    other = open_store(configured(tmp_path))
    other.save([FACT])
    open_(GROUNDED_EMBEDDING__RETRY_AFTER_S="0").start()
    assert eventually(lambda: other.waiting() == 0)
    assert len(tries) == 3
    other.close()


def test_what_keeps_vectors_away_is_logged_once_for_each_reason(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background, "POLL_S", 0.0)
    runs: Iterator[str | None] = iter(["one", "one", StoreBusy("two.", "Wait."), StoreBusy("two.", "Wait."), None])
    done = threading.Event()

    def work(_: Callable[[], bool]) -> str | None:
        wrong = next(runs, "over")
        if isinstance(wrong, StoreBusy):
            raise wrong
        if wrong == "over":
            done.set()
            return None
        return wrong

    drain = Drain(work)
    drain.nudge()
    assert done.wait(SOON)
    drain.stop()
    told = [record.getMessage().rpartition("vectors: ")[2] for record in caplog.records]
    assert told == ["one", "two. Wait."]


def test_case_44_status_names_an_index_of_another_model_once_the_model_is_loaded(open_: Open, tmp_path: Path) -> None:
    memory = open_()
    store = open_store(configured(tmp_path))
    store.reset_vectors(Space("other", 4))
    store.close()
    assert (memory.status().embedder, memory.status().problem) == ("idle", None)
    assert memory.wait_ready(SOON)
    assert memory.status().problem == (
        "The index holds vectors of other (4 dimensions), not of hashing/256/1 (256). "
        "Configure that model again, or rebuild the vectors with `grounded-mcp sync --reembed`."
    )
    memory.reset_vectors()
    assert memory.status().problem is None


def test_case_25_dropping_all_vectors_waits_for_nobody_and_refuses_the_model_before(
    open_: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, store = open_(), open_store(configured(tmp_path))
    store.save([FACT])
    assert before.fill_vectors() is not None
    with store.lease(LEASE, 60), pytest.raises(StoreBusy):
        before.reset_vectors()
    assert store.waiting() == 0
    monkeypatch.setitem(catalog.PROVIDERS, "hashing", lambda _: HashingEmbedder(16))  # type: ignore[arg-type]
    assert open_().reset_vectors() == 1
    report = before.fill_vectors()
    assert report is not None
    assert (report.embedded, report.left) == (0, 1)
    assert str(report.reason).startswith("The index holds vectors of hashing/16/1 ")
    store.close()


def test_vectors_are_kept_when_the_model_that_is_to_make_them_again_does_not_load(open_: Open, tmp_path: Path) -> None:
    memory, store = open_(), open_store(configured(tmp_path))
    store.save([FACT])
    memory.fill_vectors()
    with pytest.raises(ModelError, match="does not hold"):
        open_(GROUNDED_EMBEDDING__PROVIDER="fastembed", GROUNDED_EMBEDDING__MODEL=str(tmp_path)).reset_vectors()
    assert store.waiting() == 0
    store.close()


# --- opening and examining --------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at this process's open files")
def test_a_memory_that_does_not_open_leaves_no_file_open(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:  # what it holds keeps everything on the way alive
        open_memory(configured(tmp_path, GROUNDED_REDACTION__EXTRA_PATTERNS='["("]'), cwd=tmp_path)
    links = [str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    assert [link for link in links if link.startswith(str(tmp_path))] == []
    assert "(" in error.value.message


def test_case_58_the_check_of_the_redaction_names_engine_and_rules_when_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = configured(tmp_path, GROUNDED_REDACTION__ENGINE="re")
    assert check_redaction(ours) == ()

    def fail(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr(Redactor, "_clean", fail)
    (problem,) = check_redaction(ours)
    assert problem.startswith(f"Redaction rules {RULES_VERSION} on re: ")
    assert "RecursionError" in problem


def test_while_most_passages_have_no_vector_only_words_are_searched_and_the_answer_says_so(
    open_: Open, tmp_path: Path
) -> None:
    memory = open_(embedding__provider="hashing")
    (tmp_path / "notes").mkdir()
    for number in range(60):
        memory.remember(f"Berth {number} is painted in shade {number}", scope="global")
    assert memory.wait_ready(10)
    filled = 0

    def three_batches() -> bool:
        nonlocal filled
        filled += 1
        return filled > 2

    memory.fill_vectors(stop=three_batches)
    partly = memory.recall("which shade is berth 7 painted in")
    assert partly.mode == "lexical"
    assert partly.degradation is not None
    assert "of 60 stored passages have no vector yet" in partly.degradation.reason
    memory.fill_vectors()
    assert memory.recall("which shade is berth 7 painted in").mode == "hybrid"


def test_the_status_tells_what_is_here_from_all_that_is_stored(open_: Open, tmp_path: Path) -> None:
    full, empty = (open_(folder) for folder in folders(tmp_path, "full", "empty"))
    (tmp_path / "full" / "quay.md").write_text("# Quay\n\nIt is closed.\n", encoding="utf-8")
    full.sync_documents()
    full.remember("The quay is closed")
    assert (empty.status().store.items, empty.status().here) == ({"doc": 1, "fact": 1}, {})
    assert full.status().here == {"doc": 1, "fact": 1}
    full.remember("Every crane is yellow", scope="global")
    assert empty.status().here == {"fact": 1}


def test_facts_that_differ_in_one_letter_or_digit_are_stored_and_shown_apart(open_: Open) -> None:
    memory = open_()
    said = [f"writer {who} fact number {number}" for number in range(6) for who in "AB"]
    said += ["Plan A costs five euros", "Plan B costs five euros", "Plan C costs five euros"]
    told = [memory.remember(each) for each in said]
    assert {(each.outcome, each.superseded, each.conflicts) for each in told} == {("stored", (), ())}
    shown = memory.recall("writer fact number", sources=["fact"], limit=50).candidates
    assert sum("writer" in (each.found.item.body or "") for each in shown if each.found) == 12
    shown = memory.recall("what does the plan cost", sources=["fact"], limit=50).candidates
    assert sum("Plan" in (each.found.item.body or "") for each in shown if each.found) == 3
    corrected = memory.remember("Plan A costs six euros", replaces=told[-3].item.id)
    assert corrected.superseded == (told[-3].item.id,)


def test_a_project_that_waits_for_its_vectors_leaves_meaning_search_to_the_others(open_: Open, tmp_path: Path) -> None:
    ready, waiting = (open_(folder) for folder in folders(tmp_path, "ready", "waiting"))
    for number in range(3):
        ready.remember(f"Berth {number} is painted in shade {number}")
    ready.record_learning("Berth 7 needs two coats", "diagnostic")
    assert ready.wait_ready(SOON)
    ready.fill_vectors()
    for number in range(60):
        waiting.remember(f"Crane {number} lifts {number} tons")
    question = "which shade is berth 2 painted in"
    assert ready.recall(question).mode == "hybrid"
    assert ready.pack(question).recall.mode == "hybrid"
    told = ready.project_memory(query=question, intent="inspect").recall
    assert told is not None
    assert told.degradation is None
    for asked in (waiting.recall("crane"), ready.recall("crane", project="*")):
        assert asked.mode == "lexical"
        assert asked.degradation is not None
    assert "60 of 60 stored passages" in waiting.recall("crane").degradation.reason  # type: ignore[union-attr]
    assert "60 of 64 stored passages" in ready.recall("crane", project="*").degradation.reason  # type: ignore[union-attr]


def test_an_empty_answer_from_a_project_that_was_never_indexed_says_what_to_do(open_: Open) -> None:
    memory = open_()
    hint = memory.recall("anything", project="nope").hint
    assert hint is not None
    assert hint.startswith("Nothing is stored for project:nope yet. Run `grounded-mcp sync`")
    memory.remember("The quay is closed")
    assert memory.recall("xylophone").hint is None


def test_an_unknown_project_is_told_with_the_known_ones_of_the_nearest_names(open_: Open, tmp_path: Path) -> None:
    for folder in folders(tmp_path, "alpha", "harbour", "harbor-web", "omega", "sigma", "tau"):
        open_(folder).remember("The quay is closed")
    memory = open_(tmp_path / "alpha")
    for hint in (memory.recall("quay", project="harbr").hint, memory.pack("quay", "harbr").recall.hint):
        assert hint is not None
        assert hint.startswith("No project harbr is known here. Known: harbour, harbor-web, ")
        assert hint.endswith(" and 1 more.")
    assert memory.recall("quay", project="omega").hint is None


def test_a_known_project_is_synced_where_its_folder_is_and_nowhere_else(open_: Open, tmp_path: Path) -> None:
    here, gone = folders(tmp_path, "here", "gone")
    for folder in (here, gone):
        memory = open_(folder)
        memory.forget(memory.remember("The quay is closed").item.id)
    gone.rmdir()
    assert memory.recall("quay", project="here").hint == (
        f"Nothing is stored for project:path:{here} yet. Run `grounded-mcp sync` in its folder."
    )
    assert open_(here).recall("quay", project="gone").hint == f"Nothing is stored for project:path:{gone} yet."


def test_a_fact_that_was_replaced_is_not_replaced_again(open_: Open) -> None:
    memory = open_()
    first = memory.remember("The port is 8090").item.id
    memory.remember("The port is 8091", replaces=first)
    with pytest.raises(InputError, match=r"replaces: .* is already replaced"):
        memory.remember("The port is 8092", replaces=first)
