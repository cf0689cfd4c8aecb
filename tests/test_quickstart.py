"""Quickstart as a newcomer runs it: as a process that starts a server and asks it over MCP."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import Command

HASHING = {"GROUNDED_EMBEDDING__PROVIDER": "hashing"}


def test_in_an_empty_folder_a_bundled_example_is_asked_and_nothing_is_left_behind(
    command: Command, project: Path, tmp_path: Path
) -> None:
    home = tmp_path / "user"
    home.mkdir()
    done = command("quickstart", env=HASHING | {"HOME": str(home), "GROUNDED_HOME": str(home / "memory")})
    assert done.returncode == 0, done.stderr
    assert "using a small bundled example" in done.stdout
    assert "mode hybrid" in done.stdout
    assert "lexical rank 1" in done.stdout
    assert "vector rank 1" in done.stdout
    assert "docs/deploy.md:" in done.stdout
    assert done.stdout.count(" connect\n") == 1
    assert list(home.rglob("*")) == []
    assert list(project.iterdir()) == []


def test_a_named_folder_is_asked_with_its_own_settings_whatever_project_the_caller_is_in(
    command: Command, project: Path
) -> None:
    (project / "README.md").write_text("# Quay\n\nThe berth opens at nine.\n", encoding="utf-8")
    pier = project.parent / "pier"
    pier.mkdir()
    (pier / "q&a.md").write_text("# Q & A\n\n## When <early>\n\nThe berth opens at seven.\n", encoding="utf-8")
    (pier / ".grounded.toml").write_text('[recall]\nmode = "lexical"\n', encoding="utf-8")
    caller = {"CLAUDE_PROJECT_DIR": str(project), "GROUNDED_HOME": "../memory"}
    done = command("quickstart", "../pier", "--ask", "When does the berth open?", env=HASHING | caller)
    assert done.returncode == 0, done.stderr
    assert "mode lexical" in done.stdout
    assert "q&a.md:" in done.stdout
    assert "Q & A" in done.stdout
    assert "&amp;" not in done.stdout
    assert "opens at seven" in done.stdout
    assert "opens at nine" not in done.stdout
    assert (project.parent / "memory" / "memory.db").is_file()


def test_a_folder_whose_texts_are_one_level_down_is_a_project_and_a_home_folder_is_not(
    command: Command, project: Path
) -> None:
    (project / "docs").mkdir()
    (project / "docs" / "quay.md").write_text("# Quay\n\nThe berth opens at nine.\n", encoding="utf-8")
    asked = ("quickstart", "--ask", "When does the berth open?")
    done = command(*asked, env=HASHING)
    assert "opens at nine" in done.stdout
    (project / "diary.md").write_text("# Diary\n\nThe berth opens at nine.\n", encoding="utf-8")
    done = command(*asked, env=HASHING | {"HOME": str(project), "USERPROFILE": str(project)})
    assert "using a small bundled example" in done.stdout
    assert "opens at nine" not in done.stdout
