"""The command line as a person uses it: as a process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Command

GUIDE = """# Deploying

## Rolling out

Merge to main; the pipeline builds the image and staging takes it at once.

## Rolling back

Run `harbour promote <previous>`; never run down-migrations in production.
"""


@pytest.fixture
def indexed(command: Command, project: Path) -> Command:
    (project / "deploy.md").write_text(GUIDE, encoding="utf-8")
    (project / "server.py").write_text("def getUserById(id):\n    return users[id]\n", encoding="utf-8")
    done = command("sync")
    assert done.returncode == 0, done.stderr
    return command


def test_sync_reports_what_it_saw_and_a_second_run_reads_nothing_again(indexed: Command) -> None:
    report = indexed.json("sync")["documents"]
    assert (report["seen"], report["added"], report["updated"], report["unchanged"]) == (2, 0, 0, 2)


def test_recall_ranks_the_passage_that_answers_first_and_says_where_it_stands(indexed: Command) -> None:
    card = indexed.json("recall", "rolling back production")["data"][0]
    assert card["path"] == "deploy.md"
    assert card["matchedBy"] == "lexical"
    assert card["matchedTerms"] == ["rolling", "back", "production"]
    assert "harbour promote" in card["text"]
    assert indexed("open", card["open"]).stdout.count("never run down-migrations") == 1


def test_recall_explain_shows_lanes_votes_and_boosts(indexed: Command) -> None:
    shown = indexed("recall", "getUserById", "--explain").stdout
    assert "server.py" in shown
    for word in ("lexical", "fused", "active", "x1.2500", "score", "fusion: algorithm"):
        assert word in shown


def test_remember_then_recall_then_replace_by_topic_keeps_the_history(command: Command) -> None:
    first = command.json("remember", "The API listens on port 8090", "--topic", "port")
    second = command.json("remember", "The API listens on port 8091", "--topic", "port")
    assert second["superseded"] == [first["id"]]
    cards = command.json("recall", "which port does the API listen on")["data"]
    assert [card["id"] for card in cards] == [second["id"]]
    history = command.json("open", second["id"])["history"]
    assert [old["id"] for old in history] == [first["id"]]


def test_saying_the_same_again_changes_nothing(command: Command) -> None:
    assert command.json("remember", "Tests run with make check")["outcome"] == "stored"
    assert command.json("remember", "tests  run with make check")["outcome"] in ("unchanged", "updated")
    assert len(command.json("recall", "how do tests run")["data"]) == 1


def test_remember_reads_standard_input(command: Command) -> None:
    assert command("remember", "-", stdin="The pier is closed in winter").returncode == 0
    assert command.json("recall", "pier winter")["data"][0]["source"] == "fact"


def test_nothing_found_is_said_and_is_not_a_failure(command: Command) -> None:
    done = command("recall", "xylophone")
    assert done.returncode == 0
    assert "found nothing" in done.stdout
    assert command.json("recall", "xylophone")["meta"]["empty"] is True


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (("recall", "x", "--limit", "0"), "limit"),
        (("recall", "x", "--source", "novels"), "sources"),
        (("recall", "x", "--since", "soon"), "since"),
        (("remember", "x", "--importance", "7"), "importance"),
        (("remember", "x", "--scope", "galaxy:milky"), "scope"),
        (("open", "doc_nope"), "id"),
    ],
)
def test_a_wrong_value_is_refused_in_one_line_that_names_it(
    command: Command, args: tuple[str, ...], named: str
) -> None:
    done = command(*args)
    assert done.returncode == 1
    assert done.stdout == ""
    assert named in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_misspelt_setting_is_refused_with_the_nearest_one(command: Command) -> None:
    done = command("status", env={"GROUNDED_RECALL__LIMITS": "3"})
    assert done.returncode == 1
    assert "recall.limit" in done.stderr


def test_status_says_which_project_this_is_and_why(command: Command, project: Path) -> None:
    status = command.json("status")
    assert status["project"] == f"path:{project}"
    assert status["projectReason"]
    assert status["embedder"] == "off"


def test_the_fusion_mode_in_the_settings_is_the_one_in_force(indexed: Command) -> None:
    for mode in ("rrf", "normalized"):
        shown = indexed("recall", "rolling", "--explain", env={"GROUNDED_RECALL__FUSION__MODE": mode}).stdout
        assert f"algorithm {mode}" in shown
    rrf = indexed.json("recall", "getUserById", env={"GROUNDED_RECALL__FUSION__MODE": "rrf"})["data"][0]
    assert rrf["score"] == pytest.approx(1.25 / 60, abs=5e-5)


@pytest.mark.parametrize("args", [("--help",), ("status",), ("sync", "--help"), ("--version",)])
def test_light_verbs_import_neither_the_mcp_sdk_nor_a_model_library(command: Command, args: tuple[str, ...]) -> None:
    heavy = ("mcp", "anyio", "pydantic", "numpy", "fastembed", "onnxruntime", "tokenizers")
    program = (
        "import sys; from grounded_mcp.faces.cli import main\n"
        f"try: main({list(args)!r})\n"
        "except SystemExit: pass\n"
        f"print('HEAVY', sorted(set({heavy!r}) & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=command.cwd,
        env=command.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.splitlines()[-1] == "HEAVY []", done.stderr


def test_case_05_no_control_character_of_a_memory_or_a_file_name_reaches_the_terminal(
    command: Command, project: Path
) -> None:
    (project / "bad\x1b[2Jname.md").write_text(
        "# Berths\n\n\x1b]0;owned\x07mooring \x9b31m fees \b\b", encoding="utf-8"
    )
    command("sync")
    command("remember", "mooring \x1b[2J costs \x07 nine")
    for args in (("recall", "mooring"), ("recall", "mooring", "--explain"), ("sync",), ("status",)):
        done = command(*args)
        shown = done.stdout + done.stderr
        assert "mooring" in shown or args[0] in ("sync", "status")
        assert not [c for c in shown if (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0]


def test_t38_what_was_learnt_in_a_worktree_survives_its_removal(command: Command, project: Path, git) -> None:
    (project / "README.md").write_text("# Quay\n", encoding="utf-8")
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-qm", "first")
    tree = project.parent / "wt"
    git(project, "worktree", "add", "-q", str(tree))
    command.json("remember", "The crane needs two people", cwd=tree)
    git(project, "worktree", "remove", "--force", str(tree))
    assert len(command.json("recall", "crane people")["data"]) == 1
