"""opencode's sessions, from its database and from the JSON files of older versions."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grounded_mcp.ingest.transcripts import databases
from grounded_mcp.ingest.transcripts.databases import opened
from grounded_mcp.ingest.transcripts.opencode import READER, TABLES
from grounded_mcp.ingest.transcripts.turns import FROM_THE_START, About, Machine, Tally, Transcript, Turn
from tests.turning import DATA, outline, read

HERE = DATA / "opencode"
SCHEMA = "".join(
    line for line in (HERE / "gen-1.18.33.sql").read_text(encoding="utf-8").splitlines(True) if line[:6] == "CREATE"
)
CWD = "/home/dev/shop"


def said(text: Any, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


def used(tool: str, given: Any, **state: Any) -> dict[str, Any]:
    return {"type": "tool", "tool": tool, "callID": "call_1", "state": {"status": "completed", "input": given, **state}}


def asked(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": parts, "summary": {"title": "not a compaction", "diffs": []}}


def answered(*parts: Any, **more: Any) -> dict[str, Any]:
    done = {"finish": "stop", "modelID": "big-model", "path": {"cwd": CWD, "root": CWD}}
    return {"role": "assistant", "parts": parts, **done, **more}


STORY = [
    asked(
        said("Why does the checkout test fail?"),
        said("Called the Read tool with the following input: cart.py", synthetic=True),
        said("A plugin says hello", ignored=True),
        {"type": "file", "mime": "text/plain", "filename": "cart.py", "url": "file:///home/dev/shop/cart.py"},
    ),
    answered(
        {"type": "step-start", "snapshot": "abc"},
        {"type": "reasoning", "text": "Let me run it."},
        said("I will run it."),
        used("bash", {"command": "pytest -q tests/test_cart.py"}, output="1 failed", metadata={"exit": 1}),
        used("read", {"filePath": "/home/dev/shop/cart.py"}, output="def total(): ..."),
        said("The rounding is wrong."),
        used("edit", {"filePath": "/home/dev/shop/cart.py"}, status="error", error="oldString not found"),
        {"type": "patch", "hash": "def", "files": ["cart.py"]},
        {"type": "step-finish", "reason": "stop"},
    ),
    asked({"type": "compaction", "auto": True}),
    answered(said("Summary: the user asked about checkout."), summary=True),
    asked(said("Continue if you have next steps", synthetic=True)),
    answered(
        said("Still at it."),
        used("bash", {"command": "sleep 600"}, status="running"),
        error={"name": "MessageAbortedError"},
    ),
    asked(said("Use banker's rounding."), said("And add a test.")),
    answered(
        used("task", {"description": "Look for callers", "prompt": "..."}, output="found two"),
        finish=None,
        time={"completed": 1},
    ),
]
OUTLINE = [
    "about | cwd: /home/dev/shop | title: Rounding",
    "user 2026-11-29T20:00:00Z Why does the checkout test fail?",
    "agent 2026-11-29T20:00:10Z I will run it. | bash: pytest -q tests/test_cart.py | read: /home/dev/shop/cart.py",
    "tool 2026-11-29T20:00:10Z | failed 1: 1 failed | ok: def total(): ...",
    "agent 2026-11-29T20:00:10Z The rounding is wrong. | edit: /home/dev/shop/cart.py",
    "tool 2026-11-29T20:00:10Z | failed: oldString not found",
    "agent 2026-11-29T20:00:50Z Still at it. | bash: sleep 600",
    "agent 2026-11-29T20:00:50Z | interrupted",
    "user 2026-11-29T20:01:00Z Use banker's rounding. And add a test.",
    "agent 2026-11-29T20:01:10Z | task: Look for callers",
    "tool 2026-11-29T20:01:10Z | ok: found two",
]
BEGAN = 1_795_982_400_000


def messages(story: list[Any], session: str = "ses_1") -> Iterator[tuple[str, Any, list[tuple[str, Any]]]]:
    """Identifier, data and parts of every message, as they are stored."""
    for at, message in enumerate(story):
        id = f"msg_{session}_{at:02}"
        if not isinstance(message, dict):
            yield id, message, []
            continue
        time = message.get("time") if isinstance(message.get("time"), dict) else {}
        data = {**{k: v for k, v in message.items() if k != "parts"}, "time": {"created": BEGAN + at * 10_000, **time}}
        yield id, data, [(f"prt_{session}_{at:02}_{n:02}", part) for n, part in enumerate(message.get("parts", ()))]


def as_json(value: Any) -> Any:
    return value if isinstance(value, str | bytes | int | None) else json.dumps(value)


def database(folder: Path, *, wal: bool = False) -> sqlite3.Connection:
    folder.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(folder / "opencode.db")
    connection.execute("PRAGMA synchronous=OFF")
    connection.executescript(SCHEMA)
    if wal:
        connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("INSERT INTO account VALUES ('a', 'e@x', 'u', 'tok-secret', 'ref-secret', 0, 0, 0)")
    connection.commit()
    return connection


def tell(connection: sqlite3.Connection, story: list[Any], session: str = "ses_1", **columns: Any) -> None:
    values = {"id": session, "directory": CWD, "title": "Rounding", "parent_id": None, "revert": None, **columns}
    connection.execute(
        "INSERT INTO session (id, directory, title, parent_id, revert, time_updated, time_created, project_id, slug, "
        "version) VALUES (:id, :directory, :title, :parent_id, :revert, :time_updated, 0, 'global', 'calm-otter', '1')",
        {"time_updated": BEGAN, **values},
    )
    for at, (id, data, parts) in enumerate(messages(story, session)):
        when = BEGAN + at
        connection.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", (id, session, when, when, as_json(data)))
        for part, content in parts:
            values = (part, id, session, when, when, as_json(content))
            connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", values)
    connection.commit()


def told(folder: Path, story: list[Any], **columns: Any) -> tuple[list[Any], Tally]:
    with closing(database(folder)) as connection:
        tell(connection, story, **columns)
    return read(READER, READER.find(folder)[0])


def bytes_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_session_that_opencode_wrote_is_read_as_listed(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "opencode.db")) as connection:
        connection.executescript((HERE / "gen-1.18.33.sql").read_text(encoding="utf-8"))
    (transcript,) = READER.find(tmp_path)
    events, tally = read(READER, transcript)
    assert outline(events) == (HERE / "gen-1.18.33.golden.txt").read_text(encoding="utf-8").splitlines()
    assert transcript.part == "ses_dd7176d8cffedVxdvSakn02Kcf"
    assert (tally.seen, tally.kept, dict(tally.skipped)) == (3, 3, {})


def test_what_the_format_marks_as_not_conversation_is_left_out(tmp_path: Path) -> None:
    events, tally = told(tmp_path, STORY)
    assert outline(events) == OUTLINE
    assert dict(tally.skipped) == {"host record": 3}
    assert (tally.seen, tally.kept) == (8, 5)
    assert tally.examples == {"host record": ["message 3", "message 4", "message 5"]}


def test_turns_carry_their_message_number_and_model_and_identifiers_of_their_own(tmp_path: Path) -> None:
    turns = [event for event in told(tmp_path, STORY)[0] if isinstance(event, Turn)]
    assert [turn.place for turn in turns] == [0, 1, 1, 1, 1, 5, 5, 6, 7, 7]
    assert {turn.model for turn in turns if turn.calls} == {"big-model"}
    assert len({turn.uid for turn in turns}) == len(turns)
    calls = [call.id for turn in turns for call in turn.calls]
    assert len(set(calls)) == len(calls)
    assert {outcome.call for turn in turns for outcome in turn.outcomes} <= set(calls)


def write_files(storage: Path, story: list[Any], session: str = "ses_1", **about: Any) -> Path:
    path = storage / "session" / "project_1" / f"{session}.json"
    written = {path: {"id": session, "directory": CWD, "title": "Rounding", **about}}
    for id, data, parts in messages(story, session):
        written[storage / "message" / session / f"{id}.json"] = data
        written.update({storage / "part" / id / f"{part}.json": content for part, content in parts})
    for file, content in written.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        encoded = as_json(content)
        file.write_bytes(encoded if isinstance(encoded, bytes) else str(encoded).encode())
    return path


def test_json_files_of_older_versions_give_the_same_turns_under_the_same_identifiers(tmp_path: Path) -> None:
    from_database = told(tmp_path / "new", STORY)[0]
    write_files(tmp_path / "old" / "storage", STORY)
    (transcript,) = READER.find(tmp_path / "old")
    events, tally = read(READER, transcript)
    assert events == from_database
    assert dict(tally.skipped) == {"host record": 3}
    assert READER.find(tmp_path / "old" / "storage") == READER.find(transcript.path) == [transcript]


def test_the_stamp_of_json_files_changes_with_a_message(tmp_path: Path) -> None:
    path = write_files(tmp_path / "storage", STORY[:1])
    before = READER.find(tmp_path)
    write_files(tmp_path / "storage", STORY[:2])
    after = READER.find(tmp_path)
    assert [found.path for found in before] == [found.path for found in after] == [path]
    assert before[0].stamp != after[0].stamp


def test_sessions_come_by_their_last_change_and_a_stamp_changes_with_every_part(tmp_path: Path) -> None:
    with closing(database(tmp_path)) as connection:
        tell(connection, STORY, "ses_b", time_updated=BEGAN + 5)
        tell(connection, STORY, "ses_a", time_updated=BEGAN + 9)
        before = READER.find(tmp_path)
        connection.execute("INSERT INTO part VALUES ('prt_z', 'msg_ses_a_07', 'ses_a', 0, 0, '{}')")
        connection.commit()
        after = READER.find(tmp_path)
    assert [found.part for found in before] == ["ses_b", "ses_a"]
    assert before[0] == after[0]
    assert before[1].stamp != after[1].stamp


def test_a_subagents_session_names_the_one_that_started_it(tmp_path: Path) -> None:
    events, _ = told(tmp_path, STORY[:1], parent_id="ses_0", title="Child session - 2026-11-29T20:00:00.000Z")
    assert outline(events)[0] == "about | cwd: /home/dev/shop | parent: ses_0"


def test_a_session_without_a_folder_has_the_one_its_agent_worked_in(tmp_path: Path) -> None:
    events, _ = told(tmp_path, STORY[:2], directory="")
    assert [event.cwd for event in events if isinstance(event, About)] == [None, CWD]


@pytest.mark.parametrize(
    ("revert", "kept", "skipped"),
    [
        ({"messageID": "msg_ses_1_06"}, OUTLINE[:8], {"host record": 3, "rewound": 2}),
        ({"messageID": "msg_ses_1_01", "partID": "prt_ses_1_01_05"}, OUTLINE[:4], {"rewound": 6}),
        ({"messageID": "msg_gone"}, OUTLINE, {"host record": 3}),
        ("not a revert", OUTLINE, {"host record": 3}),
    ],
)
def test_what_the_person_took_back_is_not_read(tmp_path: Path, revert: Any, kept: list[str], skipped: Any) -> None:
    events, tally = told(tmp_path, STORY, revert=json.dumps(revert))
    assert outline(events) == kept
    assert dict(tally.skipped) == skipped


def test_an_answer_that_is_being_written_waits_and_an_older_one_without_an_end_does_not(tmp_path: Path) -> None:
    running = answered(said("Half a sen"), finish=None)
    events, tally = told(tmp_path, [STORY[0], running, STORY[6], running])
    assert [turn.text for turn in events if isinstance(turn, Turn)][1:] == [
        "Half a sen",
        "Use banker's rounding.\n\nAnd add a test.",
    ]
    assert dict(tally.skipped) == {"unfinished last line": 1}


def test_t40_bad_records_are_counted_and_the_good_ones_around_them_kept(tmp_path: Path) -> None:
    broken = ["{", "[1]", {"role": "system"}, asked("{", {"type": "hologram"}, said("Kept."), said("")), asked(said(7))]
    events, tally = told(tmp_path, [STORY[0], *broken, STORY[6]])
    assert [turn.text for turn in events if isinstance(turn, Turn)] == [
        "Why does the checkout test fail?",
        "Kept.",
        "Use banker's rounding.\n\nAnd add a test.",
    ]
    assert dict(tally.skipped) == {"not a JSON object": 3, "unknown record": 2, "no text": 1}
    assert tally.seen == tally.kept + tally.skipped.total()


def test_t39_values_over_the_limit_are_skipped_without_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grounded_mcp.ingest.transcripts.opencode.MAX_VALUE", 200)
    events, tally = told(tmp_path, [asked(said("short"), said("l" * 300)), {**asked(), "long": "l" * 300}])
    assert [turn.text for turn in events if isinstance(turn, Turn)] == ["short"]
    assert dict(tally.skipped) == {"longer than the limit": 2}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["user", "tool"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ("role", "type", "text", "state", "tool", "time", "error", "path", "metadata", "input", "status", "output")
RECORDS = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=RECORDS, part=RECORDS | st.binary(max_size=20), state=RECORDS, revert=VALUES)
def test_whatever_the_fields_hold_nothing_is_raised(
    tmp_path: Path, data: Any, part: Any, state: Any, revert: Any
) -> None:
    (tmp_path / "opencode.db").unlink(missing_ok=True)
    call = {"type": "tool", "tool": "bash", "state": {"status": "completed", "metadata": {"exit": 1}, **state}}
    story = [
        {**data, "role": "assistant", "finish": "stop", "parts": [part, call, said("x")]},
        {**data, "parts": [part, call]},
    ]
    events, tally = told(tmp_path, story, revert=json.dumps(revert))
    assert any(isinstance(event, Turn) and event.text.endswith("x") for event in events)
    assert tally.seen == tally.kept + tally.skipped.total()


def test_only_the_named_tables_can_be_read(tmp_path: Path) -> None:
    database(tmp_path).close()
    with opened(tmp_path / "opencode.db", TABLES) as rows:
        assert list(rows("SELECT count(*) FROM session")) == [(0,)]
        for query in (
            "SELECT access_token FROM account",
            "SELECT count(*) FROM credential",
            "SELECT name FROM sqlite_master",
            "SELECT id FROM session UNION SELECT access_token FROM account",
            "PRAGMA table_info(account)",
            "ATTACH ':memory:' AS other",
        ):
            with pytest.raises(OSError, match=r"opencode\.db: (access to|not auth)"):
                list(rows(query))


def test_the_reader_asks_for_no_other_table_and_no_account_reaches_a_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touched: set[str | None] = set()
    fence = databases._fence

    def recorded(tables: Any) -> Any:
        allow = fence(tables)

        def note(action: int, table: str | None, *rest: str | None) -> int:
            touched.update({table} if action == sqlite3.SQLITE_READ else ())
            return allow(action, table, *rest)

        return note

    monkeypatch.setattr(databases, "_fence", recorded)
    events, _ = told(tmp_path, STORY)
    assert touched == {"session", "message", "part"}
    assert "secret" not in repr(events)


@contextmanager
def application(path: Path, script: str) -> Iterator[None]:
    """Another process that has the database open, until the block ends."""
    begin, end = (
        f"import sqlite3, sys\nc = sqlite3.connect({str(path)!r})",
        "print('ready', flush=True)\nsys.stdin.read()",
    )
    code = f"{begin}\n{script}\n{end}"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline().strip() == b"ready"
        try:
            yield
        finally:
            process.stdin.close()
            process.wait(timeout=20)


GROW = """c.execute("UPDATE session SET title = 'Only in the log'"); c.commit()"""


def test_a_database_that_is_being_written_is_read_with_its_log_and_nothing_beside_it_changes(tmp_path: Path) -> None:
    with closing(database(tmp_path, wal=True)) as connection:
        tell(connection, STORY)
    with application(tmp_path / "opencode.db", GROW):
        before = bytes_in(tmp_path)
        events, _ = read(READER, READER.find(tmp_path)[0])
        assert bytes_in(tmp_path) == before
        assert set(before) == {"opencode.db", "opencode.db-shm", "opencode.db-wal"}
        assert outline(events) == ["about | cwd: /home/dev/shop | title: Only in the log", *OUTLINE[1:]]


@pytest.mark.parametrize("left", [("-wal", "-shm"), ("-wal",)])
def test_a_log_that_a_killed_application_left_is_read_and_stays(tmp_path: Path, left: tuple[str, ...]) -> None:
    with closing(database(tmp_path / "app", wal=True)) as connection:
        tell(connection, STORY)
    kept = tmp_path / "kept"
    kept.mkdir()
    with application(tmp_path / "app" / "opencode.db", GROW):
        for suffix in ("", *left):
            (kept / f"opencode.db{suffix}").write_bytes((tmp_path / "app" / f"opencode.db{suffix}").read_bytes())
    before = bytes_in(kept)
    events, _ = read(READER, READER.find(kept)[0])
    assert outline(events)[0] == "about | cwd: /home/dev/shop | title: Only in the log"
    after = bytes_in(kept)
    made = after.keys() - before.keys()
    assert {name: after[name] for name in before} == before
    assert made == ({"opencode.db-shm"} if left == ("-wal",) else set())


def test_a_log_is_left_out_where_nothing_can_be_made_beside_it(tmp_path: Path) -> None:
    with closing(database(tmp_path / "app", wal=True)) as connection:
        tell(connection, STORY)
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "opencode.db-shm").symlink_to(tmp_path / "gone" / "x")  # as a folder that allows no new file, also to root
    with application(tmp_path / "app" / "opencode.db", GROW):
        for name in ("opencode.db", "opencode.db-wal"):
            (kept / name).write_bytes((tmp_path / "app" / name).read_bytes())
    events, _ = read(READER, READER.find(kept)[0])
    assert outline(events) == OUTLINE
    assert sorted(path.name for path in kept.iterdir()) == ["opencode.db", "opencode.db-shm", "opencode.db-wal"]


@pytest.mark.parametrize("wal", [True, False])
def test_a_database_that_lies_still_is_read_without_a_file_beside_it(tmp_path: Path, wal: bool) -> None:
    with closing(database(tmp_path, wal=wal)) as connection:
        tell(connection, STORY)
    before = bytes_in(tmp_path)
    assert set(before) == {"opencode.db"}
    events, _ = read(READER, READER.find(tmp_path)[0])
    assert outline(events) == OUTLINE
    assert bytes_in(tmp_path) == before


def test_a_writer_is_not_held_up_between_turns_and_what_it_adds_belongs_to_the_next_reading(tmp_path: Path) -> None:
    with closing(database(tmp_path)) as connection:
        tell(connection, STORY)
        connection.execute("PRAGMA busy_timeout=0")
        turns = READER.read(READER.find(tmp_path)[0], FROM_THE_START, Tally())
        first = [next(turns), next(turns)]
        connection.execute("INSERT INTO message VALUES ('msg_z', 'ses_1', 9, 9, '{}')")
        connection.commit()
        assert outline([*first, *turns]) == OUTLINE


def test_a_database_with_a_log_is_read_in_one_state(tmp_path: Path) -> None:
    with closing(database(tmp_path, wal=True)) as connection:
        tell(connection, STORY)
        turns = READER.read(READER.find(tmp_path)[0], FROM_THE_START, Tally())
        first = [next(turns), next(turns)]
        connection.execute('UPDATE part SET data = \'{"type": "text", "text": "changed"}\'')
        connection.commit()
        assert outline([*first, *turns]) == OUTLINE


def test_a_still_database_that_is_written_while_it_is_read_says_so(tmp_path: Path) -> None:
    with closing(database(tmp_path, wal=True)) as connection:
        tell(connection, STORY)
    turns = READER.read(READER.find(tmp_path)[0], FROM_THE_START, Tally())
    next(turns)
    with (
        application(tmp_path / "opencode.db", GROW),
        pytest.raises(OSError, match=r"^opencode\.db was changed while it was read$"),
    ):
        list(turns)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "opencode.db is not an SQLite database"),
        (b"random bytes" * 99, "opencode.db is not an SQLite database"),
        (b"SQLite format 3\0" + b"\x10\0\1\1" + b"\xff" * 5000, "opencode.db: "),
    ],
)
def test_a_file_that_is_no_database_is_one_transcript_that_says_why(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "opencode.db").write_bytes(content)
    (transcript,) = READER.find(tmp_path)
    assert (transcript.part, transcript.size) == ("", len(content))
    with pytest.raises(OSError, match=says):
        read(READER, transcript)


def test_a_database_with_other_tables_says_which_is_missing(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "opencode.db")) as connection:
        connection.execute("CREATE TABLE session (id TEXT, time_updated INTEGER)")
    (transcript,) = READER.find(tmp_path)
    with pytest.raises(OSError, match=r"^opencode\.db: no such table: message$"):
        read(READER, transcript)


def test_a_locked_database_says_so_soon_and_is_read_whole_once_it_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "BUSY_SECONDS", 0.01)
    with closing(database(tmp_path)) as connection:
        tell(connection, STORY)
    with application(tmp_path / "opencode.db", "c.execute('BEGIN EXCLUSIVE')"):
        (transcript,) = READER.find(tmp_path)
        with pytest.raises(OSError, match=r"^opencode\.db: database is locked$"):
            read(READER, transcript)
    assert transcript.part == ""
    assert outline(read(READER, transcript)[0]) == OUTLINE


def test_a_damaged_page_is_an_error_of_the_file(tmp_path: Path) -> None:
    with closing(database(tmp_path)) as connection:
        tell(connection, STORY)
    path = tmp_path / "opencode.db"
    raw = path.read_bytes()
    (transcript,) = READER.find(tmp_path)
    for size in (len(raw) // 2, 5000, 100):
        path.write_bytes(raw[:size])
        with pytest.raises(OSError, match=r"^opencode\.db: "):
            read(READER, transcript)


def test_links_are_not_followed_and_other_files_not_taken(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    with closing(database(elsewhere)) as connection:
        tell(connection, STORY)
    write_files(elsewhere / "storage", STORY)
    root = tmp_path / "opencode"
    root.mkdir()
    (root / "opencode.db").symlink_to(elsewhere / "opencode.db")
    (root / "storage").symlink_to(elsewhere / "storage")
    (root / "auth.json").write_text("{}", encoding="utf-8")
    assert READER.find(root) == []
    (root / "opencode-dev.db").write_bytes((elsewhere / "opencode.db").read_bytes())
    assert [found.path.name for found in READER.find(root)] == ["opencode-dev.db"]
    assert READER.find(tmp_path / "gone") == []


def test_a_file_that_is_gone_raises_for_itself(tmp_path: Path) -> None:
    for name in ("opencode.db", "storage/session/p/ses_1.json"):
        with pytest.raises(FileNotFoundError):
            read(READER, Transcript("opencode", tmp_path / name, ""))


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_data_folder_is_the_same_everywhere_and_the_environment_moves_it(platform: str) -> None:
    home = Path("/home/dev")
    data = home / ".local" / "share" / "opencode"
    assert READER.roots(Machine(home, platform)) == [data]
    moved = {"XDG_DATA_HOME": "/data"}
    assert READER.roots(Machine(home, platform, moved)) == [Path("/data/opencode")]
    named = [READER.roots(Machine(home, platform, {"OPENCODE_DB": name})) for name in ("/x/my.db", "my.db", ":memory:")]
    assert named == [[data, Path("/x/my.db")], [data, data / "my.db"], [data]]
    assert READER.roots(Machine(home, platform, {"OPENCODE_DB": "opencode-dev.db"})) == [data]
