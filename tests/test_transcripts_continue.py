"""Sessions of Continue."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from turning import DATA, outline, read
from unruly import VALUES, spoiled, unharmed

from grounded_mcp.ingest.transcripts.continue_dev import READER
from grounded_mcp.ingest.transcripts.documents_json import MAX_DOCUMENT_BYTES
from grounded_mcp.ingest.transcripts.turns import About, Machine, Start, Transcript, Turn

CONTINUE = DATA / "continue"
EVERY_KIND = CONTINUE / "every-kind.json"


def turns_of(path: Path, start: Start | None = None) -> list[Turn]:
    events, _ = read(READER, Transcript("continue", path, ""), start or Start())
    return [event for event in events if isinstance(event, Turn)]


def session(tmp_path: Path, **document: Any) -> Path:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"sessionId": "s", "history": []} | document), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["every-kind.json", "gen-1.5.47.json"])
def test_a_session_reads_as_its_checked_summary_says(name: str) -> None:
    events, _ = read(READER, Transcript("continue", CONTINUE / name, ""))
    golden = (CONTINUE / name).with_suffix(".golden.txt").read_text(encoding="utf-8")
    assert outline(events) == golden.splitlines()


def test_every_message_is_counted_with_a_reason_and_a_place() -> None:
    _, tally = read(READER, Transcript("continue", EVERY_KIND, ""))
    assert (tally.seen, tally.kept, tally.end) == (10, 6, EVERY_KIND.stat().st_size)
    assert tally.skipped == {"host record": 1, "no text": 1, "copy of an earlier record": 1, "unknown record": 1}
    assert tally.examples["copy of an earlier record"] == ["message 4"]


def test_a_document_is_read_as_a_whole_from_wherever_reading_was_to_go_on() -> None:
    assert turns_of(EVERY_KIND, Start(500, "x")) == turns_of(EVERY_KIND)
    assert [turn.place for turn in turns_of(EVERY_KIND)] == [1, 3, 3, 5, 5, 6, 7, 9]


def test_a_turn_names_the_model_that_the_message_the_log_or_the_session_names() -> None:
    agent = [turn.model for turn in turns_of(EVERY_KIND) if turn.role == "agent"]
    assert agent == ["Qwen 3", "Local model", "Local model", "Local model"]
    assert turns_of(CONTINUE / "gen-1.5.47.json")[1].model == "mock-model"


def test_the_first_turn_has_the_time_at_which_the_list_says_the_session_began(tmp_path: Path) -> None:
    items = [{"message": {"role": role, "content": "x"}} for role in ("system", "user", "assistant")]
    path = session(tmp_path, history=items)
    listed = [{"sessionId": "other", "dateCreated": "1"}, {"sessionId": "s", "dateCreated": "1759399200000"}]
    path.with_name("sessions.json").write_text(json.dumps(listed), encoding="utf-8")
    assert [turn.at for turn in turns_of(path)] == [1759399200.0, None]


@pytest.mark.parametrize(
    ("given_", "cwd"),
    [
        ("/home/me/app", "/home/me/app"),
        ("file:///home/me/my%20app", "/home/me/my app"),
        ("file:///c%3A/boats/app", "c:/boats/app"),
        ("", None),
    ],
)
def test_the_folder_is_a_path_also_where_an_editor_wrote_a_url(tmp_path: Path, given_: str, cwd: str | None) -> None:
    path = session(tmp_path, workspaceDirectory=given_, title="New Session")
    events, _ = read(READER, Transcript("continue", path, ""))
    assert events == [About("s", cwd=cwd)]


def test_a_document_that_is_too_long_is_counted_and_not_loaded(tmp_path: Path) -> None:
    path = session(tmp_path)
    os.truncate(path, MAX_DOCUMENT_BYTES + 1)
    events, tally = read(READER, Transcript("continue", path, ""))
    assert (events, tally.seen, tally.skipped) == ([], 1, {"longer than the limit": 1})


def test_t40_a_byte_order_mark_and_crlf_are_fine_and_a_cut_off_document_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    whole = b"\xef\xbb\xbf" + EVERY_KIND.read_bytes().replace(b"\n", b"\r\n")
    path.write_bytes(whole)
    assert turns_of(path) == turns_of(EVERY_KIND)
    path.write_bytes(whole[:-9])
    events, tally = read(READER, Transcript("continue", path, ""))
    assert (events, tally.skipped) == ([], {"not a JSON object": 1})


def test_sessions_are_found_but_not_their_list(tmp_path: Path) -> None:
    for at, name in enumerate(["b.json", "a.json", "sessions.json", "notes.txt"]):
        (tmp_path / name).write_text("{}", encoding="utf-8")
        os.utime(tmp_path / name, (1_000 - at, 1_000 - at))
    (tmp_path / "link.json").symlink_to(tmp_path / "a.json")
    found = list(READER.find(tmp_path))
    assert [each.path.name for each in found] == ["a.json", "b.json"]
    assert [each.size for each in found] == [2, 2]
    assert list(READER.find(tmp_path / "gone")) == []


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_default_folder_is_below_the_home_folder_or_where_continue_is_told(platform: str) -> None:
    home = Path("/home/me")
    assert READER.roots(Machine(home, platform)) == [home / ".continue" / "sessions"]
    assert READER.roots(Machine(home, platform, {"CONTINUE_GLOBAL_DIR": "/c"})) == [Path("/c/sessions")]


@settings(max_examples=80, deadline=None)
@given(spoiled(json.loads(EVERY_KIND.read_bytes())))
def test_no_value_in_any_place_does_harm(document: Any) -> None:
    unharmed(READER, "s.json", json.dumps(document).encode())


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=80) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_no_bytes_do_harm(content: bytes) -> None:
    unharmed(READER, "s.json", content)
