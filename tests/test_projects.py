"""``grounded-mcp projects`` as a process: what is known, memory that follows its folder, a mistake taken back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Command


@pytest.fixture
def moored(command: Command, project: Path, git: Callable[..., str]) -> Command:
    """A repository without a remote, indexed, with a fact; its key is ``git:<folder>/.git``."""
    git(project, "init", "-q")
    (project / "deploy.md").write_text("# Deploying\n\nThe harbour pilot promotes releases.\n", encoding="utf-8")
    (project / "secret.md").write_text("# Manifest\n\nThe manifest lists walnuts.\n", encoding="utf-8")
    assert command("sync", "--documents").returncode == 0
    assert command("remember", "The crane needs two people", "--topic", "crane").returncode == 0
    return command


def keys(command: Command) -> dict[str, dict[str, int]]:
    return {each["key"]: each["items"] for each in command.json("projects")["projects"]}


def titles(command: Command, query: str) -> list[str]:
    return [card["text"] for card in command.json("recall", query)["data"]]


def test_projects_lists_what_each_holds_and_where_it_is(moored: Command, project: Path) -> None:
    (listed,) = moored.json("projects")["projects"]
    assert listed["key"] == f"git:{project}/.git"
    assert (listed["name"], listed["root"], listed["items"]) == ("quayside", str(project), {"doc": 2, "fact": 1})
    assert listed["seen"].startswith("20")
    assert "2 doc, 1 fact" in moored("projects").stdout


def test_a_projects_memory_follows_it_to_the_key_of_its_remote(
    moored: Command, project: Path, git: Callable[..., str]
) -> None:
    old, new = f"git:{project}/.git", "github.com/acme/quayside"
    pointer = moored.json("recall", "harbour pilot")["data"][0]["open"]
    git(project, "remote", "add", "origin", "https://github.com/acme/quayside.git")
    assert titles(moored, "harbour pilot") == []
    done = moored.json("projects", "rename", old, new)
    assert (done["moved"], done["dropped"], done["retired"]) == (3, 0, 0)
    assert keys(moored) == {new: {"doc": 2, "fact": 1}}
    assert moored.json("recall", "harbour pilot")["data"][0]["open"] == pointer
    report = moored.json("sync", "--documents")["documents"]
    assert (report["unchanged"], report["added"]) == (2, 0)
    (project / "deploy.md").write_text("# Deploying\n\nThe harbour pilot is retired.\n", encoding="utf-8")
    assert moored.json("sync", "--documents")["documents"]["updated"] == 1
    assert moored.json("recall", "harbour pilot")["data"][0]["open"].split("#")[0] == pointer.split("#")[0]
    assert keys(moored) == {new: {"doc": 2, "fact": 1}}


def test_what_was_forgotten_under_the_old_key_stays_forgotten_under_the_new(
    moored: Command, project: Path, git: Callable[..., str]
) -> None:
    pointer = moored.json("recall", "walnuts")["data"][0]["open"]
    assert moored("forget", pointer).returncode == 0
    git(project, "remote", "add", "origin", "https://github.com/acme/quayside.git")
    moored.json("projects", "rename", "quayside", "github.com/acme/quayside")
    assert moored.json("sync", "--documents")["documents"]["skipped"] == {"forgotten": 1}
    assert titles(moored, "walnuts") == []
    pointer = moored.json("recall", "harbour pilot")["data"][0]["open"]
    assert moored("forget", pointer).returncode == 0
    assert moored.json("sync", "--documents")["documents"]["skipped"] == {"forgotten": 2}


def test_a_key_that_holds_something_is_refused_or_merged_and_the_newer_of_two_facts_counts(
    moored: Command, project: Path, git: Callable[..., str]
) -> None:
    old, new = f"git:{project}/.git", "github.com/acme/quayside"
    git(project, "remote", "add", "origin", "https://github.com/acme/quayside.git")
    assert moored("sync", "--documents").returncode == 0
    assert moored("remember", "The crane needs three people", "--topic", "crane").returncode == 0
    before = keys(moored)
    refused = moored("projects", "rename", old, new)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "holds 3 items already" in refused.stderr
    assert "--merge" in refused.stderr
    assert keys(moored) == before
    done = moored.json("projects", "rename", old, new, "--merge")
    assert (done["moved"], done["dropped"], done["retired"]) == (1, 2, 1)
    assert keys(moored) == {new: {"doc": 2, "fact": 2}}
    (card,) = moored.json("recall", "crane people", "--source", "fact")["data"]
    assert "three people" in card["text"]
    assert "two people" in moored("open", card["open"]).stdout


def test_sessions_follow_their_project_and_are_read_on_there(
    command: Command, project: Path, git: Callable[..., str]
) -> None:
    git(project, "init", "-q")
    transcript = command.home.parent / ".claude" / "projects" / "-quayside" / "5e55.jsonl"
    transcript.parent.mkdir(parents=True)

    def say(number: int, text: str) -> None:
        at = f"2026-03-02T10:0{number}:00.000Z"
        turn = {"sessionId": "5e55", "cwd": str(project), "timestamp": at, "isSidechain": False}
        asked = {"type": "user", "uuid": f"u{number}", "message": {"role": "user", "content": text}, **turn}
        said = {"role": "assistant", "content": [{"type": "text", "text": f"Done: {text}"}]}
        answer = {"type": "assistant", "uuid": f"a{number}", "message": said, **turn}
        with transcript.open("a", encoding="utf-8") as out:
            out.write(json.dumps(asked) + "\n" + json.dumps(answer) + "\n")

    say(1, "paint the lighthouse white")
    assert command.json("sync", "--sessions")["sessions"]["agents"]["claude-code"]["sessions"] == 1
    git(project, "remote", "add", "origin", "https://github.com/acme/quayside.git")
    command.json("projects", "rename", "quayside", "github.com/acme/quayside")
    say(2, "oil the drawbridge hinges")
    read = command.json("sync", "--sessions")["sessions"]["agents"]["claude-code"]
    assert (read["read"], read["elsewhere"]) == (1, 0)
    assert len(titles(command, "lighthouse drawbridge")) == 1
    assert titles(command, "drawbridge hinges")
    command.json("projects", "forget", "quayside", "--yes")
    assert titles(command, "lighthouse") == []
    again = command.json("sync", "--sessions")["sessions"]["agents"]["claude-code"]
    assert again["read"] == 1
    assert titles(command, "lighthouse")


def test_a_mistaken_sync_is_taken_back_and_comes_back_only_with_another(moored: Command, project: Path) -> None:
    asked = moored("projects", "forget", "quayside")
    assert asked.returncode == 1
    assert "3 items" in asked.stderr
    assert "--yes" in asked.stderr
    assert keys(moored) == {f"git:{project}/.git": {"doc": 2, "fact": 1}}
    done = moored("projects", "forget", "quayside", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert keys(moored) == {}
    assert titles(moored, "walnuts") == []
    assert b"walnuts" not in (moored.home / "memory.db").read_bytes()
    assert moored.json("sync", "--documents")["documents"]["added"] == 2
    assert titles(moored, "walnuts")


def test_a_project_that_nobody_knows_is_refused_by_name(moored: Command) -> None:
    for verb in (("rename", "nowhere", "elsewhere"), ("forget", "nowhere", "--yes")):
        done = moored("projects", *verb)
        assert (done.returncode, done.stdout) == (1, "")
        assert "grounded-mcp projects" in done.stderr


def test_where_nothing_is_stored_the_key_that_the_folder_had_is_named_with_the_command(
    moored: Command, project: Path, git: Callable[..., str]
) -> None:
    old, new = f"git:{project}/.git", "github.com/acme/quayside"
    git(project, "remote", "add", "origin", "https://github.com/acme/quayside.git")
    command = f"grounded-mcp projects rename {old} {new}"
    for told in (moored("recall", "harbour").stdout, moored("status").stdout):
        assert "3 items are stored under another key of this folder" in told
        assert f"`{command}`" in told
    assert command in " ".join(moored.json("status")["warnings"])
    assert f"`{command} --merge`" in moored("sync", "--documents").stdout
    assert moored(*command.split()[1:], "--merge").returncode == 0
    for told in (moored("recall", "harbour").stdout, moored("status").stdout, moored("sync", "--documents").stdout):
        assert "projects rename" not in told


def test_a_folder_that_was_moved_finds_its_memory_by_the_name_it_kept(
    command: Command, project: Path, tmp_path: Path
) -> None:
    (project / "deploy.md").write_text("# Deploying\n\nThe harbour pilot promotes releases.\n", encoding="utf-8")
    assert command("sync", "--documents").returncode == 0
    stranger = tmp_path / "other" / "quayside"
    stranger.mkdir(parents=True)
    assert "projects rename" not in command("recall", "harbour", cwd=stranger).stdout  # the first is still there
    moved = tmp_path / "a new place" / "quayside"
    moved.parent.mkdir()
    project.rename(moved)
    told = command("recall", "harbour", cwd=moved).stdout
    assert f"`grounded-mcp projects rename path:{project} 'path:{moved}'`" in told
    done = command("projects", "rename", f"path:{project}", f"path:{moved}", cwd=moved)
    assert "1 item of" in done.stdout
    assert "harbour pilot promotes" in command("recall", "harbour", cwd=moved).stdout
    assert command.json("projects", cwd=moved)["projects"][0]["root"] == str(moved)


def test_a_project_that_only_its_facts_name_is_listed_and_can_be_renamed(moored: Command, project: Path) -> None:
    assert moored("remember", "Tugs answer on channel 12", "--scope", "project:tugs").returncode == 0
    listed = {each["key"]: each for each in moored.json("projects")["projects"]}
    assert (listed["tugs"]["items"], listed["tugs"]["root"], listed["tugs"]["seen"]) == ({"fact": 1}, "", None)
    assert moored.json("projects", "rename", "tugs", "quayside", "--merge")["moved"] == 1
    assert keys(moored) == {f"git:{project}/.git": {"doc": 2, "fact": 2}}
