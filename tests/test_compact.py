"""Old conversations go into the archive, with a digest of each of their weeks, and only when that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from grounded_mcp.errors import InputError
from grounded_mcp.ingest.compact import CompactOptions, CompactReport, compact
from grounded_mcp.ingest.forgetting import forget
from grounded_mcp.ingest.sessions import LEASE
from grounded_mcp.stores.options import StoreOptions
from grounded_mcp.stores.sqlite import SqliteStore
from grounded_mcp.text import Analyzer
from grounded_mcp.values import Clean, Evidence, Item, Passage, Record
from tests.conftest import Command
from tests.talking import Talk

Json = dict[str, Any]

NOW = datetime(2026, 6, 1, tzinfo=UTC).timestamp()
DAY = 86_400.0
OPTIONS = CompactOptions(archive_after_days=30.0, digest_lines=30)
SCOPE = "project:quayside"


# --- over a store -----------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "memory.db", Analyzer(), StoreOptions())
    yield opened
    opened.close()


def session(name: str, days: float, scope: str = SCOPE, body: str = "", **attrs: str) -> Record:
    """A conversation that ended so many days ago."""
    at = NOW - days * DAY
    item = Item(
        id=f"ses_{name}",
        kind="session",
        scope=scope,
        title=Clean(f"Paint the {name}"),
        key=f"claude-code:{name}",
        created_at=at,
        updated_at=at,
        content_hash=name + body,
        attrs={"agent": "claude-code", "quality": "high", **attrs},
    )
    told = body or f"Asked: Paint the {name}\nI decided to paint the {name} blue this summer.\n"
    return Record(item, (Passage(0, Clean(told), "", 1, 2),))


def run(store: SqliteStore, **given: Any) -> CompactReport:
    return compact(store, given.pop("options", OPTIONS), given.pop("now", NOW), **given)


def states(store: SqliteStore, scope: str = SCOPE) -> dict[str, str]:
    return {known.id: known.state for known in store.known("session", scope).values()}


def digests(store: SqliteStore, scope: str = SCOPE) -> dict[str, str]:
    """The texts of digests by week."""
    return {
        known.key: "".join(passage.body for passage in store.item(known.id)[1])
        for known in store.known("digest", scope).values()
    }


def test_conversations_older_than_30_days_are_archived_and_others_stay(store: SqliteStore) -> None:
    store.save([session("anchor", 30.1), session("bollard", 30), session("cleat", 1)])
    report = run(store)
    assert states(store) == {"ses_anchor": "archived", "ses_bollard": "active", "ses_cleat": "active"}
    assert (report.archived, report.written, report.weeks) == (1, 1, ("2026-W18",))


def test_hundreds_are_archived_in_one_run(store: SqliteStore) -> None:
    for start in (0, 70, 140):
        store.save([session(f"pier{n}", 40) for n in range(start, start + 70)])
    assert run(store).archived == 210
    assert set(states(store).values()) == {"archived"}


def test_every_week_and_every_project_has_a_digest_of_its_own(store: SqliteStore) -> None:
    store.save([session("anchor", 40), session("bollard", 41), session("cleat", 50), session("davit", 40, "project:b")])
    report = run(store)
    assert (report.written, report.weeks) == (3, ("2026-W15", "2026-W17"))
    here = digests(store)
    assert {week: text.count("I decided to paint") for week, text in here.items()} == {"2026-W15": 1, "2026-W17": 2}
    assert list(digests(store, "project:b")) == ["2026-W17"]


def test_only_the_scopes_that_are_asked_for_are_touched(store: SqliteStore) -> None:
    store.save([session("anchor", 40), session("davit", 40, "project:b")])
    assert run(store, scopes=[SCOPE]).archived == 1
    assert states(store, "project:b") == {"ses_davit": "active"}
    assert digests(store, "project:b") == {}


def test_compacting_twice_changes_nothing(store: SqliteStore, tmp_path: Path) -> None:
    store.save([session("anchor", 40), session("bollard", 50)])
    run(store)
    before = everything(tmp_path)
    again = run(store, now=NOW + 60)
    assert (again.archived, again.written, again.unchanged, again.weeks) == (0, 0, 2, ())
    assert everything(tmp_path) == before


def everything(folder: Path) -> list[Any]:
    db = apsw.Connection(str(folder / "memory.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return [list(db.execute(f"SELECT * FROM {table} ORDER BY 1")) for table in ("item", "passage")]  # noqa: S608
    finally:
        db.close()


def test_a_week_that_gets_more_conversations_is_written_again_under_the_same_id(store: SqliteStore) -> None:
    store.save([session("anchor", 41)])
    run(store)
    (first,) = store.known("digest", SCOPE).values()
    store.save([session("bollard", 40)])
    report = run(store)
    (second,) = store.known("digest", SCOPE).values()
    assert (report.written, report.weeks, second.id) == (1, ("2026-W17",), first.id)
    assert second.attrs["session"] == "ses_anchor\nses_bollard"


def test_a_digest_of_other_rules_is_written_again(store: SqliteStore) -> None:
    store.save([session("anchor", 40), session("bollard", 40), session("cleat", 40), session("davit", 40)])
    run(store)
    report = run(store, options=CompactOptions(30.0, digest_lines=3))
    assert report.written == 1
    assert "- and 1 more conversations" in digests(store)["2026-W17"]


def test_a_week_without_archived_conversations_loses_its_digest(store: SqliteStore) -> None:
    store.save([session("anchor", 40)])
    run(store)
    store.save([session("anchor", 2)])  # it went on
    report = run(store)
    assert (report.deleted, digests(store), states(store)) == (1, {}, {"ses_anchor": "active"})


def test_a_forgotten_conversation_takes_its_digest_along_and_the_next_run_writes_it_without(store: SqliteStore) -> None:
    store.save([session("anchor", 40), session("bollard", 40)])
    run(store)
    assert len(forget(store, "ses_anchor").others) == 1
    assert digests(store) == {}
    run(store)
    (text,) = digests(store).values()
    assert "anchor" not in text
    assert "I decided to paint the bollard blue this summer." in text


def test_a_digest_takes_outcomes_and_commands_from_what_its_conversations_left(store: SqliteStore) -> None:
    at = NOW - 40 * DAY
    tried = Item("epi_1", "episode", SCOPE, Clean("Paint the anchor and its chain"), key="ses_anchor#1", attrs={})
    first = {"session": "ses_anchor", "exchange": "1", "outcome": "failed", "files": "a.py"}
    last = {"session": "ses_anchor", "exchange": "10", "outcome": "abandoned", "files": "a.py"}
    script = Item("scr_1", "script", SCOPE, Clean("make paint"), key="make paint")
    seen = [Evidence(f"ses_{who}", 1, True, "verified outcome", at, Clean("")) for who in ("anchor", "cleat")]
    store.save(
        [
            session("anchor", 40),
            session("cleat", 1),
            Record(Item("epi_1", "episode", SCOPE, tried.title, key="ses_anchor#1", attrs=first)),
            Record(Item("epi_2", "episode", SCOPE, tried.title, key="ses_anchor#10", attrs=last)),
            Record(script, (Passage(0, Clean("make paint")),), tuple(seen)),
        ]
    )
    run(store)
    (text,) = digests(store).values()
    assert "- `make paint`: worked 1 (scr_1)\n" in text
    assert "Paint the anchor [abandoned] (ses_anchor)" in text
    assert "abandoned: Paint the anchor and its chain (epi_2)" in text
    assert "epi_1" not in text


def test_while_sessions_are_imported_nothing_is_archived(store: SqliteStore) -> None:
    store.save([session("anchor", 40)])
    with store.lease(LEASE, 60.0), ThreadPoolExecutor(1) as other:
        assert other.submit(run, store).result(timeout=20).busy
    assert states(store) == {"ses_anchor": "active"}


@pytest.mark.parametrize("days", [-1.0, float("nan"), float("inf")])
def test_an_age_that_is_none_is_refused_by_name(store: SqliteStore, days: float) -> None:
    store.save([session("anchor", 40)])
    with pytest.raises(InputError, match="older-than"):
        run(store, options=CompactOptions(days, 30))
    assert states(store) == {"ses_anchor": "active"}


# --- by the command ---------------------------------------------------------------------------------------


OLD = datetime(2025, 1, 29, 9, 0, tzinfo=UTC)


@pytest.fixture
def home(command: Command) -> Path:
    """Where the command believes the user's home to be."""
    return command.home.parent


def talk(project: Path, number: int = 1, began: datetime = OLD, colour: str = "blue") -> Talk:
    return (
        Talk(str(project), session=f"5c0e0000-0000-4000-8000-{number:012}", began=began)
        .ask(f"Which colour does the ferry timetable have? (number {number})")
        .edit(f"{project}/timetable/print.py")
        .run("make check", "12 passed")
        .say(f"I decided to print the ferry timetable in {colour} rather than in black, for the captain's eyes.")
    )


def recently() -> datetime:
    return datetime.now(UTC) - timedelta(days=2)


def sync(command: Command, *args: str) -> None:
    command.json("sync", "--sessions", "--no-vectors", *args)


def recalled(command: Command, query: str, *args: str) -> list[Json]:
    cards: list[Json] = command.json("recall", query, "--source", "session", *args)["data"]
    return cards


def test_compact_reports_what_it_archived_and_wrote(command: Command, home: Path, project: Path) -> None:
    talk(project).write(home)
    talk(project, 2, recently(), "green").write(home)
    sync(command)
    report = command.json("compact")
    assert (report["archived"], report["written"], report["weeks"], report["busy"]) == (1, 1, ["2025-W05"], False)
    assert command("compact").stdout == "0 sessions archived; weekly digests: 1 unchanged.\n"


def test_only_this_projects_sessions_are_archived_unless_all_are_asked_for(
    command: Command, home: Path, project: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    talk(project).write(home)
    talk(other, 2).write(home)
    sync(command, "--all-projects")
    assert command.json("compact")["archived"] == 1
    assert command.json("compact", "--all-projects")["archived"] == 1


def test_older_than_says_what_is_old(command: Command, home: Path, project: Path) -> None:
    talk(project, 1, recently()).write(home)
    sync(command)
    assert command.json("compact", "--older-than", "3")["archived"] == 0
    assert command.json("compact", "--older-than", "1")["archived"] == 1
    refused = command("compact", "--older-than", "nan")
    assert (refused.returncode, "older-than" in refused.stderr) == (1, True)


def test_a_recall_of_sessions_finds_digests_and_counts_them_as_sessions(
    command: Command, home: Path, project: Path
) -> None:
    talk(project).write(home)
    sync(command)
    command.json("compact")
    found = command.json("recall", "ferry timetable in blue rather than black", "--source", "session")
    first, second = found["data"]
    assert (first["title"], first["source"], first["state"]) == ("Week 2025-W05: 1 session", "session", "active")
    assert (second["id"][:4], second["state"]) == ("ses_", "archived")
    assert found["meta"]["bySource"] == {"session": {"returned": 2, "available": 2, "truncated": False}}
    text = command.json("open", first["open"])["text"]
    assert f"rather than in black, for the captain's eyes. ({second['id']})" in text.replace("#0)", ")")


def test_a_digest_is_found_although_many_conversations_match(command: Command, home: Path, project: Path) -> None:
    for number in range(1, 34):
        talk(project, number, colour=f"blue {number}").write(home)
    sync(command)
    command.json("compact")
    (first,) = recalled(command, "ferry timetable colour", "--limit", "1")
    assert first["title"] == "Week 2025-W05: 33 sessions"


def test_an_archived_session_counts_less(command: Command, home: Path, project: Path) -> None:
    talk(project).write(home)
    talk(project, 2, recently()).ask("And the lighthouse?").say("The lighthouse is printed in captain's red.").write(
        home
    )
    sync(command)
    command.json("compact")
    cards = [card for card in recalled(command, "I decided to print in blue") if card["id"].startswith("ses_")]
    found = {card["state"]: card.get("boosts", {}) for card in cards}
    assert found == {"archived": {"archived": 0.7}, "active": {}}


def test_an_archived_session_that_is_read_again_unchanged_stays_archived(
    command: Command, home: Path, project: Path
) -> None:
    path = talk(project).write(home)
    sync(command)
    command.json("compact")
    path.touch()
    sync(command)
    sync(command, "--reread")
    assert {card["state"] for card in recalled(command, "captain") if card["id"].startswith("ses_")} == {"archived"}
    report = command.json("compact")
    assert (report["archived"], report["written"], report["unchanged"]) == (0, 0, 1)


def test_an_archived_session_that_goes_on_is_current_again(command: Command, home: Path, project: Path) -> None:
    told = talk(project)
    told.write(home)
    sync(command)
    command.json("compact")
    told.began = datetime.now(UTC) - timedelta(hours=2)
    told.ask("And the night boats?").say("The night boats are printed in violet ink.").write(home)
    sync(command)
    (card,) = [each for each in recalled(command, "violet ink") if each["id"].startswith("ses_")]
    assert card["state"] == "active"
    report = command.json("compact")
    assert (report["archived"], report["deleted"]) == (0, 1)


def test_two_sessions_that_say_the_same_fold_into_one_card(command: Command, home: Path, project: Path) -> None:
    for number in (1, 2):
        Talk(str(project), session=f"5c0e0000-0000-4000-8000-{number:012}", began=OLD + timedelta(hours=number)).ask(
            "Which pier does the night boat leave from?"
        ).say("The night boat leaves from pier seven, behind the old cannery.").write(home)
    sync(command)
    (card,) = recalled(command, "night boat pier cannery")
    assert card["duplicates"] == 1
