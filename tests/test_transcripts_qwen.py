"""Sessions of Qwen Code."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from turning import DATA, outline, read
from unruly import lines, spoiled, unharmed

from grounded_mcp.ingest.transcripts.qwen import READER
from grounded_mcp.ingest.transcripts.turns import About, Machine, Start, Tally, Transcript, Turn

QWEN = DATA / "qwen"
LOG = QWEN / "every-kind.jsonl"


def transcript(path: Path) -> Transcript:
    return Transcript("qwen", path, "")


def turns_of(path: Path, start: Start | None = None) -> list[Turn]:
    events, _ = read(READER, transcript(path), start or Start())
    return [event for event in events if isinstance(event, Turn)]


def record(uuid: str, parent: str | None, text: str, **more: Any) -> dict[str, Any]:
    said = {"role": "user", "parts": [{"text": text}]}
    return {"uuid": uuid, "parentUuid": parent, "sessionId": "s", "type": "user", "message": said} | more


def rewind(uuid: str, parent: str | None) -> dict[str, Any]:
    return {"uuid": uuid, "parentUuid": parent, "sessionId": "s", "type": "system", "subtype": "rewind"}


def log(tmp_path: Path, *records: Any) -> Path:
    path = tmp_path / "s.jsonl"
    path.write_bytes(lines(*records))
    return path


@pytest.mark.parametrize("name", ["every-kind.jsonl", "gen-0.24.4.jsonl"])
def test_a_session_reads_as_its_checked_summary_says(name: str) -> None:
    events, _ = read(READER, transcript(QWEN / name))
    golden = (QWEN / name).with_suffix(".golden.txt").read_text(encoding="utf-8")
    assert outline(events) == golden.splitlines()


def test_every_record_is_counted_with_a_reason_and_a_place() -> None:
    _, tally = read(READER, transcript(LOG))
    assert (tally.seen, tally.kept, tally.end) == (18, 8, LOG.stat().st_size)
    assert tally.skipped == {
        "host record": 5,
        "rewound": 2,
        "copy of an earlier record": 1,
        "no text": 1,
        "unknown record": 1,
    }
    assert tally.examples["host record"][0] == "byte 0"


def test_a_rewind_to_the_beginning_takes_everything_back(tmp_path: Path) -> None:
    path = log(tmp_path, record("a", None, "one"), rewind("b", None), record("c", "b", "two"))
    assert [turn.text for turn in turns_of(path)] == ["two"]


def test_a_rewind_to_a_record_that_is_not_there_takes_nothing_back(tmp_path: Path) -> None:
    path = log(tmp_path, record("a", None, "one"), rewind("b", "gone"), record("c", "b", "two"))
    assert [turn.text for turn in turns_of(path)] == ["one", "two"]


def test_a_second_rewind_behind_the_first_takes_both_branches_back(tmp_path: Path) -> None:
    branches = [record("b", "a", "two"), rewind("r", "a"), record("c", "r", "three"), rewind("t", "a")]
    path = log(tmp_path, record("a", None, "one"), *branches, record("d", "t", "four"))
    assert [turn.text for turn in turns_of(path)] == ["one", "four"]


def test_reading_on_from_any_record_gives_what_a_full_read_gives_from_there() -> None:
    whole = turns_of(LOG)
    offset, started_over = 0, []
    for number, line in enumerate(LOG.read_bytes().splitlines(keepends=True)):
        got = turns_of(LOG, Start(offset))
        if got[:1] == whole[:1]:
            started_over.append(number)
            assert got == whole
        else:
            assert got == [turn for turn in whole if turn.place >= offset]
        offset += len(line)
    # Before the first turn; after q8, which a later rewind goes back to, up to that rewind.
    assert started_over == [0, 1, 9, 10, 11]


def test_case_16_a_half_written_last_record_waits_until_it_is_whole(tmp_path: Path) -> None:
    path = log(tmp_path, record("a", None, "one"))
    before, whole = path.stat().st_size, path.read_bytes() + lines(record("b", "a", "two"))
    path.write_bytes(whole[:-20])
    _, tally = read(READER, transcript(path))
    assert (tally.kept, tally.end, tally.skipped) == (1, before, {"unfinished last line": 1})
    path.write_bytes(whole)
    assert [turn.text for turn in turns_of(path, Start(tally.end))] == ["two"]


def test_what_is_written_while_the_log_is_read_is_left_for_the_next_time(tmp_path: Path) -> None:
    path = log(tmp_path, record("a", None, "one"))
    before, tally = path.stat().st_size, Tally()
    reading = READER.read(transcript(path), Start(), tally)
    next(reading)
    path.write_bytes(path.read_bytes() + lines(rewind("b", None)))
    assert [event.text for event in reading if isinstance(event, Turn)] == ["one"]
    assert (tally.seen, tally.end) == (1, before)


def test_t40_bad_lines_crlf_and_a_byte_order_mark_do_not_hide_their_neighbours(tmp_path: Path) -> None:
    path = log(tmp_path)
    content = lines(record("a", None, "one")) + b"{not json\n" + lines(record("b", "a", "two"))
    path.write_bytes(b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n"))
    _, tally = read(READER, transcript(path))
    assert [turn.text for turn in turns_of(path)] == ["one", "two"]
    assert tally.skipped == {"not a JSON object": 1}


def test_a_copy_in_another_session_has_the_same_id(tmp_path: Path) -> None:
    fork = record("a", None, "one", sessionId="t", forkedFrom={"sessionId": "s", "messageUuid": "a"})
    (tmp_path / "fork").mkdir()
    one, other = turns_of(log(tmp_path, record("a", None, "one"))), turns_of(log(tmp_path / "fork", fork))
    assert [(turn.session, turn.uid) for turn in one + other] == [("s", "a"), ("t", "a")]


def test_a_subagent_is_a_session_of_its_own_that_knows_what_started_it(tmp_path: Path) -> None:
    path = log(tmp_path, record("a", None, "explore", isSidechain=True, agentId="explore-7f", cwd="/home/me/app"))
    events, _ = read(READER, transcript(path))
    assert events[0] == About("s:explore-7f", cwd="/home/me/app", parent="s")


def test_sessions_and_subagents_are_found_among_the_other_files(tmp_path: Path) -> None:
    project = tmp_path / "projects" / "-home-me-app"
    for at, name in enumerate(["chats/b.jsonl", "subagents/b/agent-1.jsonl", "chats/a.jsonl", "memory/x.jsonl"]):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_bytes(lines(record("a", None, name)))
        os.utime(project / name, (1_000 - at, 1_000 - at))
    (project / "chats" / "link.jsonl").symlink_to(project / "chats" / "a.jsonl")
    found = list(READER.find(tmp_path / "projects"))
    assert [each.path.name for each in found] == ["a.jsonl", "agent-1.jsonl", "b.jsonl"]
    assert all(each.stamp and each.size == each.path.stat().st_size for each in found)
    assert [each.path.name for each in READER.find(project / "memory" / "x.jsonl")] == ["x.jsonl"]
    assert list(READER.find(tmp_path / "gone")) == []


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_default_folders_are_below_the_home_folder_or_those_qwen_is_told(platform: str) -> None:
    home = Path("/home/me")
    assert READER.roots(Machine(home, platform)) == [home / ".qwen" / "projects", home / ".qwen" / "tmp"]
    told = Machine(home, platform, {"QWEN_HOME": "/data/qwen"})
    assert READER.roots(told)[0] == Path("/data/qwen/projects")
    told = Machine(home, platform, {"QWEN_HOME": "/data/qwen", "QWEN_RUNTIME_DIR": "/run/qwen"})
    assert READER.roots(told)[0] == Path("/run/qwen/projects")


RECORDS = [json.loads(line) for line in LOG.read_bytes().splitlines()]


@settings(max_examples=80, deadline=None)
@given(spoiled(RECORDS), st.integers(0, 400))
def test_no_value_in_any_place_does_harm(records: list[Any], cut: int) -> None:
    content = lines(*records)
    unharmed(READER, "s.jsonl", content[: len(content) - cut])


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=80))
def test_no_bytes_do_harm(content: bytes) -> None:
    unharmed(READER, "s.jsonl", content)
