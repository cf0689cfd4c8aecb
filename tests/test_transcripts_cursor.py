"""Cursor's conversations, from the editor's database and from its agents' JSON lines.

There is no published sample of the database: it is built here, in the shapes that public parsers agree on.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grounded_mcp.ingest.transcripts import databases
from grounded_mcp.ingest.transcripts.cursor import READER
from grounded_mcp.ingest.transcripts.turns import About, Machine, Start, Tally, Transcript, Turn
from tests.turning import DATA, outline, read

HERE = DATA / "cursor"
TABLE = "CREATE TABLE {} (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)"
HEADS = (
    "CREATE TABLE composerHeaders (composerId TEXT PRIMARY KEY, workspaceId TEXT, createdAt INTEGER, "
    "lastUpdatedAt INTEGER, isArchived INTEGER, isSubagent INTEGER, recency INTEGER, value TEXT)"
)
ID = "0b9c7a52-7d3e-4c55-9c1e-2f6a1d5b8e01"
BEGAN = 1_795_982_400_000
MODEL = {"modelConfig": {"modelName": "composer-2", "maxMode": False}}


def typed(text: Any, **more: Any) -> dict[str, Any]:
    return {"_v": 3, "type": 1, "text": text, "richText": '{"root":{}}', **more}


def said(text: Any = "", **more: Any) -> dict[str, Any]:
    return {"_v": 3, "type": 2, "text": text, **more}


def used(name: Any, raw: Any, status: str = "completed", **more: Any) -> dict[str, Any]:
    tool = {"toolCallId": f"call_{name}", "name": name, "rawArgs": raw, "status": status, **more}
    return said(capabilityType=15, toolFormerData=tool)


STORY = [
    typed("Fix the flaky login test"),
    said(thinking={"text": "Let me look."}, capabilityType=30),
    said("I will look at it.", modelInfo={"modelName": "claude-5-sonnet"}),
    used("read_file_v2", '{"path":"tests/test_login.py"}', result='{"contents":"def test_login(): ..."}'),
    used(
        *("run_terminal_command_v2", ""),
        params='{"command":"pytest -q tests/test_login.py","cwd":""}',
        result='{"output":"1 failed","exitCode":1,"rejected":false}',
        additionalData={"status": "error"},
    ),
    used(
        *("edit_file_v2", '{"instructions":"Retry"}'),
        params={"relativeWorkspacePath": "tests/test_login.py"},
        result='{"diff":{"chunks":[{"diffString":"+ retry()"}]}}',
    ),
    used("run_terminal_command_v2", '{"command":"rm -rf /"}', result={"output": "", "rejected": True}),
    used("read_file_v2", '{"path":"gone.py"}', "error", error='{"clientVisibleErrorMessage":"File not found"}'),
    used(
        "mcp_docs_search",
        '{"query":"retry"}',
        result='{"result":"{\\"content\\":[{\\"type\\":\\"text\\",\\"text\\":\\"Use tenacity\\"}]}"}',
    ),
    used("todo_write", "{}", "loading"),
    said(capabilityType=22),
    said("Done: the test waits for the page."),
]
OUTLINE = [
    "about | cwd: /home/dev/shop | branch: fix-login | title: Flaky login",
    "user 2026-11-29T20:00:00Z Fix the flaky login test",
    "agent 2026-11-29T20:00:20Z I will look at it.",
    "agent 2026-11-29T20:00:30Z | read_file_v2: tests/test_login.py",
    "tool 2026-11-29T20:00:30Z | ok: def test_login(): ...",
    "agent 2026-11-29T20:00:40Z | run_terminal_command_v2: pytest -q tests/test_login.py",
    "tool 2026-11-29T20:00:40Z | failed 1: 1 failed",
    "agent 2026-11-29T20:00:50Z | edit_file_v2: tests/test_login.py",
    'tool 2026-11-29T20:00:50Z | ok: {"diff":{"chunks":[{"diffString":"+ retry()"}]}}',
    "agent 2026-11-29T20:01:00Z | run_terminal_command_v2: rm -rf /",
    "tool 2026-11-29T20:01:00Z | failed: ",
    "agent 2026-11-29T20:01:10Z | read_file_v2: gone.py",
    "tool 2026-11-29T20:01:10Z | failed: File not found",
    "agent 2026-11-29T20:01:20Z | mcp_docs_search: retry",
    "tool 2026-11-29T20:01:20Z | ok: Use tenacity",
    "agent 2026-11-29T20:01:30Z | todo_write: ",
    "agent 2026-11-29T20:01:50Z Done: the test waits for the page.",
]
PLACE = {
    "workspaceIdentifier": {"id": "ab12", "uri": {"fsPath": "/home/dev/shop", "scheme": "file"}},
    "createdOnBranch": "fix-login",
}


def made(value: Any) -> Any:
    return value if isinstance(value, str | bytes | int | None) else json.dumps(value)


def database(path: Path, *tables: str) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous=OFF")
    for table in tables or ("ItemTable", "cursorDiskKV"):
        connection.execute(TABLE.format(table))
    connection.commit()
    return connection


def put(connection: sqlite3.Connection, key: str, value: Any) -> None:
    connection.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (key, made(value)))
    connection.commit()


def tell(connection: sqlite3.Connection, story: list[Any], id: str = ID, **fields: Any) -> None:
    """A conversation in the shape of 3.x: headers in order, bubbles in rows of their own."""
    headers = []
    for at, bubble in enumerate(story):
        name = f"{99 - at:02}-{id[:4]}"  # the order of the keys is not the order of the conversation
        kind = bubble.get("type") if isinstance(bubble, dict) else 2
        time = f"2026-11-29T20:{at // 6:02}:{at % 6 * 10:02}.000Z"
        headers.append({"bubbleId": name, "type": kind, "createdAt": time})
        put(connection, f"bubbleId:{id}:{name}", bubble)
    known = {"_v": 18, "composerId": id, "name": "Flaky login", "createdAt": BEGAN, "status": "completed", **MODEL}
    put(connection, f"composerData:{id}", {**known, "fullConversationHeadersOnly": headers, **fields})


@pytest.fixture
def user(tmp_path: Path) -> Path:
    return tmp_path / ".config" / "Cursor" / "User"


@pytest.fixture
def store(user: Path) -> Path:
    return user / "globalStorage" / "state.vscdb"


def told(path: Path, story: list[Any], **fields: Any) -> tuple[list[Any], Tally]:
    path.unlink(missing_ok=True)
    with closing(database(path)) as connection:
        tell(connection, story, **fields)
    return read(READER, READER.find(path)[0])


def test_a_conversation_is_read_in_the_order_of_its_headers(store: Path) -> None:
    events, tally = told(store, STORY, **PLACE)
    assert outline(events) == OUTLINE
    assert dict(tally.skipped) == {"no text": 1, "host record": 1}
    assert (tally.seen, tally.kept) == (12, 10)


def test_turns_carry_the_model_and_the_bubble_they_come_from(store: Path) -> None:
    turns = [event for event in told(store, STORY, **PLACE)[0] if isinstance(event, Turn)]
    assert [turn.model for turn in turns if turn.role == "agent"] == ["claude-5-sonnet", *["composer-2"] * 8]
    assert [(turn.uid, turn.place) for turn in turns[:4]] == [
        ("99-0b9c", 0),
        ("97-0b9c", 2),
        ("96-0b9c", 3),
        ("96-0b9c:result", 3),
    ]
    assert len({turn.uid for turn in turns}) == len(turns)
    assert [outcome.call for turn in turns for outcome in turn.outcomes][:2] == [
        "call_read_file_v2",
        "call_run_terminal_command_v2",
    ]


@pytest.mark.parametrize(
    ("ok", "tool"),
    [
        (True, {"status": "completed", "result": '{"exitCode":0}'}),
        (True, {"status": "success", "result": "done"}),
        (True, {"status": "completed", "additionalData": {"blockReason": "Not in allowlist: ls"}}),
        (False, {"status": "completed", "result": '{"exitCode":1}'}),
        (False, {"status": "completed", "result": {"rejected": True}}),
        (False, {"status": "completed", "additionalData": {"status": "rejected"}}),
        (False, {"status": "completed", "additionalData": {"status": "error"}}),
        (False, {"status": "cancelled", "error": "Edit rejected"}),
        (False, {"status": "error"}),
        (None, {"status": "a status of later versions"}),
        (None, {"result": "came back"}),
    ],
)
def test_no_single_field_says_whether_a_call_succeeded(store: Path, ok: bool | None, tool: Any) -> None:
    events, _ = told(store, [said(toolFormerData={"name": "run_terminal_cmd", "toolCallId": "c", **tool})])
    (outcome,) = (outcome for event in events if isinstance(event, Turn) for outcome in event.outcomes)
    assert (outcome.call, outcome.ok) == ("c", ok)


def test_values_may_be_bytes_and_bubbles_may_be_gone(store: Path) -> None:
    events, tally = told(store, [json.dumps(typed("As bytes")).encode(), None, b"\xff{", typed("Last")])
    assert [turn.text for turn in events if isinstance(turn, Turn)] == ["As bytes", "Last"]
    assert dict(tally.skipped) == {"no text": 1, "not a JSON object": 1}


def test_versions_that_keep_bubbles_in_the_conversation_itself_are_read(store: Path) -> None:
    inline = [{**each, "bubbleId": f"b{at}"} for at, each in enumerate([typed("How?"), said("So.")])]
    number = {
        **said(),
        "bubbleId": "b2",
        "toolFormerData": {"tool": 15, "rawArgs": '{"command":"ls"}', "status": "completed"},
    }
    events, _ = told(store, [], conversation=[*inline, number])
    assert outline(events)[1:] == [
        "user 2026-11-29T20:00:00Z How?",
        "agent - So.",
        "agent - | run_terminal_command_v2: ls",
        "tool - | ok: ",
    ]


def test_bubbles_without_a_row_may_be_in_the_conversations_map(store: Path) -> None:
    order = [{"bubbleId": "b0", "type": 1}]
    events, _ = told(store, [], fullConversationHeadersOnly=order, conversationMap={"b0": typed("Mapped")})
    assert outline(events)[1:] == ["user 2026-11-29T20:00:00Z Mapped"]


def test_a_bubble_that_is_being_written_waits(store: Path) -> None:
    for fields in ({"generatingBubbleIds": ["98-0b9c"]}, {"status": "generating"}):
        events, tally = told(store, [typed("Go on"), said("Half a sen")], **fields)
        assert [turn.text for turn in events if isinstance(turn, Turn)] == ["Go on"]
        assert dict(tally.skipped) == {"unfinished last line": 1}
    events, _ = told(store, [said("Hello"), typed("Go on")], status="generating")
    assert [turn.text for turn in events if isinstance(turn, Turn)] == ["Hello", "Go on"]


def test_a_conversation_that_was_stopped_ends_interrupted(store: Path) -> None:
    events, _ = told(store, [typed("Go on"), said("Well,")], status="aborted")
    assert outline(events)[-2:] == ["agent 2026-11-29T20:00:10Z Well,", "agent - | interrupted"]


def test_the_index_of_later_versions_gives_folder_title_and_parent(store: Path) -> None:
    head = {"name": "Explore", "subagentInfo": {"parentComposerId": "p-1"}, **PLACE}
    with closing(database(store)) as connection:
        tell(connection, STORY[:1], name="")
        connection.execute(HEADS)
        connection.execute("INSERT INTO composerHeaders VALUES (?, 'ab12', 1, 2, 0, 1, 2, ?)", (ID, json.dumps(head)))
        connection.commit()
    (about, *_), _ = read(READER, READER.find(store)[0])
    assert about == About(ID, cwd="/home/dev/shop", title="Explore", parent="p-1")


def workspace(user: Path, name: str, folder: str, listed: Any = None) -> Path:
    path = user / "workspaceStorage" / name / "state.vscdb"
    with closing(database(path)) as connection:
        kept = (("composer.composerData", made(listed)), ("cursorAuth/accessToken", "tok-secret"))
        connection.executemany("INSERT INTO ItemTable VALUES (?, ?)", kept)
        connection.commit()
    path.with_name("workspace.json").write_text(json.dumps({"folder": folder}), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("folder", "cwd"),
    [
        ("file:///home/dev/my%20shop", "/home/dev/my shop"),
        ("file:///c%3A/src/shop", "c:/src/shop"),
        ("vscode-remote://wsl%2Bubuntu/home/dev/shop", "/home/dev/shop"),
        ("vscode-remote://ssh-remote%2Bhost/srv/shop", None),
        ("file://[/x", None),
        ("", None),
    ],
)
def test_an_older_conversation_has_the_folder_of_the_workspace_that_lists_it(
    user: Path, store: Path, folder: str, cwd: str | None
) -> None:
    workspace(user, "other", "file:///elsewhere", {"allComposers": [{"composerId": "another"}]})
    workspace(user, "ours", folder, {"allComposers": [{"composerId": ID}, 7], "selectedComposerIds": [ID]})
    (about, *_), _ = told(store, STORY[:1])
    assert about.cwd == cwd


def test_a_conversation_in_a_workspaces_own_database_has_its_folder(user: Path) -> None:
    path = workspace(user, "ours", "file:///home/dev/shop")
    with closing(sqlite3.connect(path)) as connection:
        tell(connection, STORY[:1])
    workspace(user, "empty", "file:///elsewhere")
    (transcript,) = READER.find(user)
    assert (transcript.path, transcript.part) == (path, ID)
    assert outline(read(READER, transcript)[0])[0] == "about | cwd: /home/dev/shop | title: Flaky login"


def test_conversations_come_by_their_last_change_and_drafts_are_not_listed(user: Path, store: Path) -> None:
    with closing(database(store)) as connection:
        tell(connection, STORY[:2], "aaaa")
        tell(connection, STORY[:2], "bbbb")
        tell(connection, [], "cccc")
        put(connection, "composerData:dddd", None)
        connection.execute("INSERT INTO cursorDiskKV VALUES ('composerData:eeee', 2.5)")
        before = READER.find(user)
        tell(connection, STORY[:3], "aaaa")
        after = READER.find(user)
    assert [found.part for found in before] == ["aaaa", "bbbb"]
    assert [found.part for found in after] == ["bbbb", "aaaa"]
    assert (before[1], before[0].stamp != after[1].stamp) == (after[0], True)


def test_of_the_editors_database_nothing_but_conversations_is_touched(
    user: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touched: set[tuple[frozenset[str], str | None]] = set()
    fence = databases._fence

    def recorded(tables: Any) -> Any:
        allow = fence(tables)

        def note(action: int, table: str | None, *rest: str | None) -> int:
            touched.update({(frozenset(tables), table)} if action == sqlite3.SQLITE_READ else ())
            return allow(action, table, *rest)

        return note

    monkeypatch.setattr(databases, "_fence", recorded)
    workspace(user, "ours", "file:///home/dev/shop", {"allComposers": [{"composerId": ID}]})
    with closing(database(store)) as connection:
        connection.execute("INSERT INTO ItemTable VALUES ('cursorAuth/accessToken', 'tok-secret')")
        connection.execute(HEADS)
        tell(connection, STORY)
    before = {path: path.read_bytes() for path in user.rglob("*.*") if path.is_file()}
    events, _ = read(READER, READER.find(user)[0])
    editor = frozenset(("cursorDiskKV", "composerHeaders", "sqlite_master"))
    assert touched == {(frozenset(("ItemTable",)), "ItemTable"), *((editor, table) for table in editor)}
    assert "secret" not in repr(events)
    assert {path: path.read_bytes() for path in user.rglob("*.*") if path.is_file()} == before


def test_t39_values_over_the_limit_are_skipped(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grounded_mcp.ingest.transcripts.cursor.MAX_VALUE", 1000)
    events, tally = told(store, [typed("short"), said("l" * 2000)])
    assert [turn.text for turn in events if isinstance(turn, Turn)] == ["short"]
    assert dict(tally.skipped) == {"longer than the limit": 1}
    events, tally = told(store, [typed("short")], codeBlockData={"x": "l" * 2000})
    assert (events, dict(tally.skipped)) == ([], {"longer than the limit": 1})


@pytest.mark.parametrize("name", ["bubble of another kind", "no kind"])
def test_t40_unknown_bubbles_are_counted(store: Path, name: str) -> None:
    kind = {"type": 9} if name == "bubble of another kind" else {"type": None}
    events, tally = told(store, [{"text": "?", **kind}, typed("Known"), "[]", "{"])
    assert [turn.text for turn in events if isinstance(turn, Turn)] == ["Known"]
    assert dict(tally.skipped) == {"unknown record": 1, "not a JSON object": 2}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from([1, 2, "error"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
BUBBLE = st.dictionaries(
    st.sampled_from(["type", "text", "toolFormerData", "createdAt", "modelInfo", "timingInfo", "capabilityType"]),
    VALUES,
)
TOOL = st.dictionaries(
    st.sampled_from(["name", "tool", "rawArgs", "params", "result", "error", "status", "additionalData", "toolCallId"]),
    VALUES,
)
COMPOSER_FIELDS = [
    *("status", "generatingBubbleIds", "conversationMap", "workspaceIdentifier", "createdAt", "name", "modelConfig"),
    *("conversation", "subagentInfo", "createdOnBranch"),
]
COMPOSER = st.dictionaries(st.sampled_from(COMPOSER_FIELDS), VALUES)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bubble=BUBBLE | st.binary(max_size=20), tool=TOOL, composer=COMPOSER)
def test_whatever_the_fields_hold_nothing_is_raised(store: Path, bubble: Any, tool: Any, composer: Any) -> None:
    story = [bubble, said("x", toolFormerData=tool), typed("y")]
    events, tally = told(store, story, **{**composer, "status": composer.get("status", "")})
    assert "y" in [event.text for event in events if isinstance(event, Turn)]
    assert tally.seen == tally.kept + tally.skipped.total()


def test_a_database_that_cannot_be_read_is_one_transcript_that_says_why(user: Path, store: Path) -> None:
    store.parent.mkdir(parents=True)
    store.write_bytes(b"not a database" * 500)
    (transcript,) = READER.find(user)
    assert (transcript.part, transcript.size) == ("", 7000)
    with pytest.raises(OSError, match=r"^state\.vscdb is not an SQLite database$"):
        read(READER, transcript)
    store.unlink()
    database(store, "ItemTable").close()
    (transcript,) = READER.find(user)
    with pytest.raises(OSError, match=r"^state\.vscdb: no such table: cursorDiskKV$"):
        read(READER, transcript)


def test_links_are_not_followed(user: Path, store: Path, tmp_path: Path) -> None:
    told(tmp_path / "elsewhere" / "state.vscdb", STORY)
    store.parent.mkdir(parents=True)
    store.symlink_to(tmp_path / "elsewhere" / "state.vscdb")
    assert READER.find(user) == []


def lines_at(home: Path, *records: Any, name: str = "s-1/s-1", end: str = "\n") -> Path:
    path = home / ".cursor" / "projects" / "home-dev-shop" / "agent-transcripts" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join((made(each) + end).encode() for each in records))
    return path


def line(role: str, *blocks: Any) -> dict[str, Any]:
    return {
        "role": role,
        "message": {"content": [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]},
    }


LINES = [
    line("user", "<user_query>\nList the files\n</user_query>"),
    line(
        "assistant", "I will.", {"type": "tool_use", "name": "Shell", "input": {"command": "ls", "description": "List"}}
    ),
    {
        "role": "user",
        "message": {
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a.py"}]}]
        },
    },
    {"type": "turn_ended", "status": "success"},
    {"role": "assistant", "message": {"content": "As plain text."}},
    {"type": "turn_ended", "status": "aborted", "error": "User aborted/interrupted manually."},
]
LINES_OUTLINE = [
    "about",
    "user - <user_query> List the files </user_query>",
    "agent - I will. | Shell: ls",
    "tool - | ok: a.py",
    "agent - As plain text.",
    "agent - | interrupted",
]


def test_an_agents_lines_are_read_as_listed(tmp_path: Path) -> None:
    path = lines_at(tmp_path, name="c0ffee")
    path.write_bytes((HERE / "fixture-claude-mem.jsonl").read_bytes())
    (transcript,) = READER.find(tmp_path / ".cursor" / "projects")
    events, tally = read(READER, transcript)
    assert outline(events) == (HERE / "fixture-claude-mem.golden.txt").read_text(encoding="utf-8").splitlines()
    assert (tally.seen, tally.kept, events[0]) == (5, 5, About("c0ffee"))


def test_reading_goes_on_at_any_line_with_the_same_turns(tmp_path: Path) -> None:
    path = lines_at(tmp_path, *LINES)
    (transcript,) = READER.find(path)
    events, tally = read(READER, transcript)
    assert outline(events) == LINES_OUTLINE
    assert dict(tally.skipped) == {"host record": 1}
    turns = [event for event in events if isinstance(event, Turn)]
    assert len({turn.uid for turn in turns}) == len(turns)
    for turn in turns:
        again, tally = read(READER, transcript, Start(turn.place, turn.uid))
        assert [event for event in again if isinstance(event, Turn)] == [t for t in turns if t.place >= turn.place]
        assert tally.end == path.stat().st_size


def test_t40_line_ends_marks_bad_lines_and_a_cut_last_line(tmp_path: Path) -> None:
    path = lines_at(
        tmp_path, LINES[0], "{bad", "7", {"type": "hologram"}, {"role": "system"}, line("user"), LINES[4], end="\r\n"
    )
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes() + b'{"role":"assistant","mess')
    events, tally = read(READER, READER.find(path)[0])
    assert outline(events) == [*LINES_OUTLINE[:2], "agent - As plain text."]
    assert dict(tally.skipped) == {
        "not a JSON object": 2,
        "unknown record": 1,
        "host record": 1,
        "no text": 1,
        "unfinished last line": 1,
    }


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    message=VALUES,
    block=st.dictionaries(st.sampled_from(["type", "text", "name", "input", "content", "id"]), VALUES),
    cut=st.integers(0, 200),
)
def test_whatever_a_line_holds_nothing_is_raised(tmp_path: Path, message: Any, block: Any, cut: int) -> None:
    kinds = [{**block, "type": kind} for kind in ("text", "tool_use", "tool_result")]
    path = lines_at(
        tmp_path, {"role": "user", "message": message}, {"role": "assistant", "message": {"content": kinds}}
    )
    path.write_bytes(path.read_bytes() + json.dumps(LINES[1]).encode()[:cut])
    _, tally = read(READER, READER.find(path)[0])
    assert tally.seen + tally.skipped["unfinished last line"] == tally.kept + tally.skipped.total()


def test_a_project_that_was_trusted_says_its_folder_and_a_subagent_its_parent(tmp_path: Path) -> None:
    path = lines_at(tmp_path, LINES[0], name="s-1/subagents/s-2")
    trust = path.parents[3] / ".workspace-trusted"
    trust.write_text(json.dumps({"trustedAt": "2026-11-29", "workspacePath": "/home/dev/shop"}), encoding="utf-8")
    events, _ = read(READER, READER.find(path)[0])
    assert events[0] == About("s-2", cwd="/home/dev/shop", parent="s-1")
    trust.write_text("[", encoding="utf-8")
    assert read(READER, READER.find(path)[0])[0][0] == About("s-2", parent="s-1")


def test_lines_of_a_session_that_the_editors_database_has_are_copies(tmp_path: Path, store: Path) -> None:
    path = lines_at(tmp_path, *LINES, name=f"{ID}/{ID}")
    told(store, STORY)
    events, tally = read(READER, READER.find(path)[0])
    assert (events, dict(tally.skipped)) == ([], {"copy of an earlier record": 6})
    store.write_bytes(b"broken")
    assert outline(read(READER, READER.find(path)[0])[0]) == LINES_OUTLINE


def test_only_lines_of_agents_are_found_under_the_projects(tmp_path: Path) -> None:
    path = lines_at(tmp_path, LINES[0])
    other = path.parents[2] / "mcps" / "log.jsonl"
    other.parent.mkdir()
    other.write_text("{}\n", encoding="utf-8")
    (path.parent / "link.jsonl").symlink_to(other)
    assert [found.path for found in READER.find(tmp_path / ".cursor" / "projects")] == [path]
    assert READER.find(tmp_path / "gone") == []
    with pytest.raises(FileNotFoundError):
        read(READER, Transcript("cursor", tmp_path / "gone.jsonl", ""))


@pytest.mark.parametrize(
    ("platform", "env", "settings_folder", "projects"),
    [
        ("linux", {}, "/home/dev/.config", "/home/dev/.cursor"),
        ("linux", {"XDG_CONFIG_HOME": "/cfg", "CURSOR_DATA_DIR": "/data"}, "/cfg", "/data"),
        ("darwin", {"XDG_CONFIG_HOME": "/cfg"}, "/home/dev/Library/Application Support", "/home/dev/.cursor"),
        ("win32", {}, "/home/dev/AppData/Roaming", "/home/dev/.cursor"),
        ("win32", {"APPDATA": "/roaming"}, "/roaming", "/home/dev/.cursor"),
    ],
)
def test_the_default_places_on_each_platform(platform: str, env: Any, settings_folder: str, projects: str) -> None:
    roots = READER.roots(Machine(Path("/home/dev"), platform, env))
    assert roots == [Path(settings_folder) / "Cursor" / "User", Path(projects) / "projects"]
