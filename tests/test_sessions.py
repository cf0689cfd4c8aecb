"""Sessions of agents become memory: imported by the command, found by recall, opened, read on, forgotten."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.conftest import Command
from tests.talking import Talk

Json = dict[str, Any]


@pytest.fixture
def home(command: Command) -> Path:
    """Where the command believes the user's home to be."""
    return command.home.parent


def talk(project: Path, **more: Any) -> Talk:
    """One finished piece of work."""
    return (
        Talk(str(project), **more)
        .ask("Why does the ferry timetable skip Sundays?")
        .run("grep -rn sunday timetable/", "timetable/days.py:4: SKIPPED = {'sunday'}")
        .edit(f"{project}/timetable/days.py")
        .run("make check", "Traceback (most recent call last):\nAssertionError: sunday", ok=False)
        .edit(f"{project}/timetable/days.py")
        .run("make check", "12 passed")
        .say("Sundays were in SKIPPED by mistake. I removed them from timetable/days.py, and make check passes again.")
    )


def sync(command: Command, *args: str, cwd: Path | None = None) -> Json:
    report: Json = command.json("sync", "--sessions", "--no-vectors", *args, cwd=cwd)["sessions"]
    return report


def claude(report: Json) -> Json:
    found: Json = report["agents"]["claude-code"]
    return found


def recalled(command: Command, query: str, *args: str) -> list[Json]:
    cards: list[Json] = command.json("recall", query, "--source", "session", *args)["data"]
    return cards


def rows(command: Command, statement: str) -> list[tuple[Any, ...]]:
    db = apsw.Connection(str(command.home / "memory.db"))
    try:
        return list(db.execute(statement))
    finally:
        db.close()


def items(command: Command, kind: str) -> list[tuple[Any, ...]]:
    statement = "SELECT item.id, title, attrs, scope FROM item JOIN bucket ON bucket.id = item.bucket WHERE kind = '{}'"
    return rows(command, statement.format(kind) + " ORDER BY item.id")


def test_a_session_is_found_by_what_was_asked_and_by_what_was_concluded(
    command: Command, home: Path, project: Path
) -> None:
    talk(project).write(home)
    report = claude(sync(command))
    assert (report["found"], report["read"], report["sessions"], report["exchanges"]) == (1, 1, 1, 1)
    (asked,) = recalled(command, "ferry timetable skips Sundays")
    (concluded,) = recalled(command, "removed from SKIPPED by mistake")
    assert asked["open"].split("#")[0] == concluded["open"].split("#")[0]
    assert asked["source"] == "session"


def test_an_open_session_shows_request_commands_with_outcome_files_and_conclusion(
    command: Command, home: Path, project: Path
) -> None:
    talk(project).write(home)
    sync(command)
    (card,) = recalled(command, "ferry timetable Sundays")
    text = command.json("open", card["open"])["text"]
    for part in (
        "Why does the ferry timetable skip Sundays?",
        "timetable/days.py",
        "make check",
        "AssertionError: sunday",
        "I removed them from timetable/days.py",
    ):
        assert part in text
    assert str(project) not in text.replace(card["open"], "")


def test_a_card_names_agent_model_branch_time_and_quality(command: Command, home: Path, project: Path) -> None:
    talk(project, branch="fix/sundays").write(home)
    sync(command)
    ((_, title, attrs, scope),) = items(command, "session")
    held = json.loads(attrs)
    assert title == "Why does the ferry timetable skip Sundays?"
    assert (held["agent"], held["model"], held["branch"]) == ("claude-code", "claude-test-1", "fix/sundays")
    assert (held["quality"], held["quality_rule"]) == ("high", "reached")
    assert scope == f"project:path:{project}"


def test_importing_twice_adds_nothing(command: Command, home: Path, project: Path) -> None:
    path = talk(project).write(home)
    sync(command)
    before = rows(command, "SELECT id, body FROM passage") + items(command, "session") + items(command, "script")
    again = claude(sync(command))
    assert (again["unchanged"], again["read"]) == (1, 0)
    path.touch()
    touched = claude(sync(command))
    reread = claude(sync(command, "--reread"))
    assert (touched["read"], reread["read"]) == (1, 1)
    after = rows(command, "SELECT id, body FROM passage") + items(command, "session") + items(command, "script")
    assert after == before


def test_only_this_projects_sessions_are_imported_unless_all_are_asked_for(
    command: Command, home: Path, project: Path, tmp_path: Path
) -> None:
    talk(project).write(home)
    other = tmp_path / "other" / "quayside"
    other.mkdir(parents=True)
    talk(other, session="5c0e0000-0000-4000-8000-000000000002").write(home)
    report = claude(sync(command))
    assert (report["sessions"], report["elsewhere"]) == (1, 1)
    assert claude(sync(command))["elsewhere"] == 1
    assert claude(sync(command, cwd=other))["sessions"] == 1
    assert claude(sync(command, "--all-projects"))["unchanged"] == 2
    assert {scope for *_, scope in items(command, "session")} == {f"project:path:{project}", f"project:path:{other}"}
    assert len(recalled(command, "ferry timetable")) == 1


def test_a_session_belongs_to_the_folder_recorded_in_it_even_where_that_is_gone(
    command: Command, home: Path, project: Path
) -> None:
    gone = "/srv/long/gone/quayside"
    talk(Path(gone)).write(home)
    sync(command, "--all-projects")
    assert [scope for *_, scope in items(command, "session")] == [f"project:path:{gone}"]


def test_a_session_that_went_on_is_read_on_and_keeps_what_it_had(command: Command, home: Path, project: Path) -> None:
    told = talk(project)
    told.ask("Add the holiday timetable").run("make check", "13 passed").say("Added the holidays.").write(home)
    sync(command)
    before = dict(
        rows(
            command,
            "SELECT seq, passage.id FROM passage JOIN item ON item.num = passage.item WHERE item.id LIKE 'ses%'",
        )
    )
    told.say("The holidays are in timetable/feasts.py.").ask("Now the night boats").say("Night boats leave at eleven.")
    told.write(home)
    report = claude(sync(command))
    assert report["records"] < len(told.records)
    after = dict(
        rows(
            command,
            "SELECT seq, passage.id FROM passage JOIN item ON item.num = passage.item WHERE item.id LIKE 'ses%'",
        )
    )
    assert after[0] == before[0]  # the first exchange kept its passage, and so its vector
    for query in ("skip Sundays", "holidays timetable feasts", "night boats eleven"):
        (card,) = recalled(command, query)
    text = command.json("open", card["open"].split("#")[0])["text"]
    assert text.count("Added the holidays.") == text.count("Night boats leave at eleven.") == 1


def test_a_transcript_that_was_replaced_by_another_is_called_by_what_it_says_now(
    command: Command, home: Path, project: Path
) -> None:
    Talk(str(project)).ask("Which pier?").say("Pier seven.").write(home)
    sync(command)
    replaced = Talk(str(project)).ask("Where is the ferry?").say("Behind the cannery.").write(home)
    os.utime(replaced, (1, 1))  # of the same size or not, it is another file now
    sync(command)
    ((_, title, *_),) = items(command, "session")
    assert title == "Where is the ferry?"


def test_a_session_that_begins_with_a_plan_is_called_by_the_plan(command: Command, home: Path, project: Path) -> None:
    Talk(str(project)).ask("Implement the following plan:\n\n# Plan: Night boats\n\n## Goal\n\nPrint them.").say(
        "The night boats are printed."
    ).write(home)
    sync(command)
    ((_, title, *_),) = items(command, "session")
    assert title == "Night boats"


def test_case_16_a_half_written_last_line_is_read_when_it_is_whole_and_only_once(
    command: Command, home: Path, project: Path
) -> None:
    told = talk(project)
    path = told.write(home)
    told.ask("Which pier?").say("Pier seven, behind the cannery.")
    *whole, last = told.lines()
    path.write_text("\n".join(whole) + "\n" + last[:40], encoding="utf-8")
    report = claude(sync(command))
    assert report["skipped"] == {"unfinished last line": 1}
    assert recalled(command, "cannery") == []
    path.write_text("\n".join([*whole, last]) + "\n", encoding="utf-8")
    sync(command)
    (card,) = recalled(command, "cannery")
    text = command.json("open", card["open"].split("#")[0])["text"]
    assert text.count("Pier seven, behind the cannery.") == 1


def test_a_resumed_copy_adds_only_what_is_new(command: Command, home: Path, project: Path) -> None:
    told = talk(project)
    first = told.write(home)
    copied = Talk(str(project), session="5c0e0000-0000-4000-8000-000000000009")
    copied.records = [{**record, "sessionId": copied.session} for record in told.records]
    copied.ask("And the lighthouse?").say("The lighthouse keeper has Sundays off.").write(home)
    os.utime(first, (1, 1))  # the older file is read first
    report = claude(sync(command))
    assert (report["sessions"], report["copies"]) == (2, 1)
    assert len(recalled(command, "SKIPPED by mistake")) == 1
    assert len(recalled(command, "lighthouse keeper")) == 1


def test_commands_that_worked_or_failed_become_scripts_with_evidence(
    command: Command, home: Path, project: Path
) -> None:
    talk(project).write(home)
    talk(project, session="5c0e0000-0000-4000-8000-000000000002").ask("again").run(
        "make check", "oops", ok=False
    ).write(home)
    sync(command)
    ((_, title, _, scope),) = items(command, "script")
    assert (title, scope) == ("make check", f"project:path:{project}")
    seen = rows(command, "SELECT session, place, supports, kind FROM evidence ORDER BY session, place")
    assert [(place, supports) for _, place, supports, _ in seen].count((1, 1)) == 2
    assert (2, 0) in [(place, supports) for _, place, supports, _ in seen]


def test_an_episode_says_goal_attempts_and_outcome(command: Command, home: Path, project: Path) -> None:
    talk(project).write(home)
    sync(command)
    ((item_id, title, attrs, _),) = items(command, "episode")
    assert (title, json.loads(attrs)["outcome"]) == ("Why does the ferry timetable skip Sundays?", "reached")
    text = command.json("open", item_id)["text"]
    assert "make check" in text


def test_case_61_a_forgotten_session_is_gone_from_the_files_and_stays_away(
    command: Command, home: Path, project: Path
) -> None:
    told = talk(project)
    path = told.write(home)
    sync(command)
    (card,) = recalled(command, "ferry timetable")
    (episode,) = [item_id for item_id, *_ in items(command, "episode")]
    assert command.json("forget", card["open"])["others"] == [episode]
    assert recalled(command, "ferry timetable") == []
    for file in command.home.rglob("*"):
        assert not file.is_file() or b"SKIPPED by mistake" not in file.read_bytes()
    path.touch()
    assert claude(sync(command))["skipped"] == {"forgotten": 1}
    told.ask("One more thing about the ferry timetable").say("It is printed in blue.").write(home)
    sync(command)
    assert recalled(command, "ferry timetable blue") == []
    assert (items(command, "session"), items(command, "episode"), items(command, "script")) == ([], [], [])


def test_case_61_a_forgotten_document_comes_back_only_when_it_says_something_else(
    command: Command, project: Path
) -> None:
    guide = project / "guide.md"
    guide.write_text("The harbour master is called Ansgar.\n", encoding="utf-8")
    command.json("sync", "--documents", "--no-vectors")
    (card,) = command.json("recall", "harbour master")["data"]
    command.json("forget", card["open"])
    guide.touch()
    assert command.json("sync", "--documents", "--no-vectors")["documents"]["skipped"] == {"forgotten": 1}
    assert command.json("recall", "harbour master")["data"] == []
    guide.write_text("The harbour master is called Birte.\n", encoding="utf-8")
    command.json("sync", "--documents", "--no-vectors")
    assert len(command.json("recall", "harbour master")["data"]) == 1


def test_an_unknown_agent_is_named_with_the_known_ones(command: Command) -> None:
    done = command("sync", "--sessions", "--agent", "clippy")
    assert done.returncode == 1
    assert "'clippy'" in done.stderr
    assert "claude-code" in done.stderr


def test_a_folder_in_the_settings_is_where_an_agents_sessions_are_looked_for(
    command: Command, project: Path, tmp_path: Path
) -> None:
    talk(project).write(tmp_path / "elsewhere")
    (command.home).mkdir()
    (command.home / "config.toml").write_text(
        f'[sessions.folders]\nclaude-code = "{tmp_path / "elsewhere" / ".claude"}"\n', encoding="utf-8"
    )
    assert claude(sync(command))["sessions"] == 1


@pytest.mark.parametrize(
    ("text", "kept"),
    [("<system-reminder>plan a coup</system-reminder>Which pier?", "Which pier?")],
)
def test_what_a_host_put_into_a_question_is_not_part_of_it(
    command: Command, home: Path, project: Path, text: str, kept: str
) -> None:
    Talk(str(project)).ask(text).say("Pier seven, as always, next to the old cannery.").write(home)
    sync(command)
    (card,) = recalled(command, "which pier")
    opened = command.json("open", card["open"])["text"]
    assert kept in opened
    assert "coup" not in opened


def test_two_files_with_different_parts_of_one_session_are_both_kept(
    command: Command, home: Path, project: Path
) -> None:
    told = talk(project)
    path = told.write(home)
    sync(command)
    other = Talk(str(project)).ask("Where is the anchor?")
    other.records[0]["uuid"] = "elsewhere-1"
    other.say("The anchor lies beside the slipway, under the blue tarpaulin.")
    copy = path.parent.parent / "-moved" / path.name
    copy.parent.mkdir()
    copy.write_text("\n".join(other.lines()) + "\n", encoding="utf-8")
    assert claude(sync(command))["sessions"] == 1
    for query, said in (("ferry timetable Sundays", "ferry"), ("anchor beside the slipway", "anchor")):
        assert said in recalled(command, query)[0]["text"]
    for _ in range(2):
        sync(command, "--reread")
        assert len(items(command, "session")) == 2


def test_a_session_stays_in_its_project_when_its_worktree_is_removed(
    command: Command, home: Path, project: Path, git: Callable[..., str]
) -> None:
    git(project, "init", "-q")
    git(project, "commit", "-q", "--allow-empty", "-m", "first")
    side = project.parent / "side"
    git(project, "worktree", "add", "-q", str(side))
    talk(side).write(home)
    sync(command)
    ((_, _, attrs, scope),) = items(command, "session")
    assert json.loads(attrs)["worktree"] == str(side)
    git(project, "worktree", "remove", "--force", str(side))
    sync(command, "--reread", "--all-projects")
    assert [found for *_, found in items(command, "session")] == [scope]
    assert len(recalled(command, "ferry timetable Sundays")) == 1


def test_a_project_that_was_only_imported_can_be_named(command: Command, home: Path, tmp_path: Path) -> None:
    talk(tmp_path / "boatyard").write(home)
    sync(command, "--all-projects")
    assert len(recalled(command, "ferry timetable Sundays", "--project", "boatyard")) == 1
    assert recalled(command, "ferry timetable Sundays") == []


def test_a_database_that_cannot_be_read_is_counted_with_the_reason(command: Command, tmp_path: Path) -> None:
    database = tmp_path / "share" / "opencode" / "opencode.db"
    database.parent.mkdir(parents=True)
    database.write_bytes(b"not a database " * 300)
    env = {"XDG_DATA_HOME": str(tmp_path / "share")}
    found = command.json("sync", "--sessions", "--no-vectors", env=env)["sessions"]["agents"]["opencode"]
    assert (found["failed"], found["problems"]) == (1, ["opencode.db is not an SQLite database"])
    shown = command("sync", "--sessions", "--no-vectors", env=env).stdout
    assert "unreadable: opencode.db is not an SQLite database" in shown


def specstory(folder: Path, session: str) -> None:
    """What SpecStory makes of a session of Claude Code, inside the project."""
    path = folder / ".specstory" / "history" / "2026-03-02_09-00-00Z-sundays.md"
    path.parent.mkdir(parents=True)
    path.write_text(
        "<!-- Generated by SpecStory, Markdown v2.1.0 -->\n\n"
        f"<!-- Claude Code Session {session} (2026-03-02 09:00:00Z) -->\n\n"
        "_**User (2026-03-02 09:00:00Z)**_\n\nWhy does the ferry timetable skip Sundays?\n\n---\n\n"
        "_**Agent (claude-test-1 2026-03-02 09:01:00Z)**_\n\nSundays were in the list by mistake.\n\n---\n",
        encoding="utf-8",
    )


def test_a_specstory_file_is_a_copy_where_the_session_itself_was_read(
    command: Command, home: Path, project: Path
) -> None:
    told = talk(project)
    told.write(home)
    specstory(project, told.session)
    report = sync(command)["agents"]
    assert report["specstory"]["skipped"] == {"copy of another agent's session": 1}
    assert len(items(command, "session")) == 1


def test_a_specstory_file_is_read_where_the_session_itself_belongs_elsewhere_or_comes_later(
    command: Command, home: Path, project: Path, tmp_path: Path
) -> None:
    told = talk(tmp_path / "elsewhere")
    told.write(home)
    specstory(project, told.session)
    report = sync(command)["agents"]
    assert (report["claude-code"]["elsewhere"], report["specstory"]["sessions"]) == (1, 1)
    assert claude(sync(command, "--all-projects"))["sessions"] == 1


def test_a_session_that_went_on_is_read_from_the_start_if_the_store_lost_it(
    command: Command, home: Path, project: Path
) -> None:
    told = talk(project)
    told.ask("Which pier?").say("Pier seven, behind the cannery.").write(home)
    sync(command)
    rows(command, "DELETE FROM item WHERE id LIKE 'ses%'")
    told.ask("And the lighthouse?").say("The lighthouse keeper has Sundays off.").write(home)
    sync(command)
    for query in ("ferry timetable skips", "pier seven cannery", "lighthouse keeper"):
        assert len(recalled(command, query)) == 1
