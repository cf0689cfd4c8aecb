"""Copilot CLI's sessions become turns: what was typed, said and done, without what hooks and skills put in."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from turning import DATA, outline, read

from grounded_mcp.ingest.transcripts.copilot import READER
from grounded_mcp.ingest.transcripts.turns import About, Event, Machine, Start, Tally, Transcript, Turn

SAMPLES = ["cli-1.0.102-hooks", "every-kind"]
WHERE = {"cwd": "/home/dev/shop", "branch": "main"}
Record = dict[str, Any]


def sample(name: str) -> Path:
    return DATA / "copilot" / f"{name}.jsonl"


def at(path: Path) -> Transcript:
    return Transcript("copilot", path, "")


def turns(events: list[Event]) -> list[Turn]:
    return [event for event in events if isinstance(event, Turn)]


def event(kind: str, id: str = "", **data: Any) -> Record:
    return {"type": kind, "id": id or f"{kind}-1", "timestamp": "2026-03-01T10:00:00Z", "parentId": None, "data": data}


def starts(**context: Any) -> Record:
    return event("session.start", sessionId="s-1", context=context)


def asks(text: str, id: str = "", **data: Any) -> Record:
    return event("user.message", id or f"asked {text}", content=text, **data)


def says(text: str, id: str = "", **data: Any) -> Record:
    return event("assistant.message", id or f"said {text}", content=text, **data)


def write(path: Path, *records: Record) -> Transcript:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    return at(path)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_session_is_told_as_a_person_would_list_it(name: str) -> None:
    events, tally = read(READER, at(sample(name)))
    assert outline(events) == sample(name).with_suffix(".golden.txt").read_text(encoding="utf-8").splitlines()
    assert tally.kept == len(turns(events))
    assert tally.seen == tally.kept + tally.skipped.total()


def test_what_is_left_out_is_counted_by_its_reason() -> None:
    _, tally = read(READER, at(sample("every-kind")))
    assert tally.seen == 31
    assert tally.skipped == {"host record": 12, "record of a subagent": 2, "unknown record": 2, "no text": 1}


def test_t27_neither_hooks_nor_the_host_speak_in_a_session() -> None:
    events, _ = read(READER, at(sample("cli-1.0.102-hooks")))
    texts = [turn.text for turn in turns(events)] + [each.text for turn in turns(events) for each in turn.outcomes]
    assert "What does the build use? ninja" in texts
    assert not [text for text in texts if "CTX-FROM" in text or "system_reminder" in text or "You are" in text]


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        ({}, True),
        ({"source": "user"}, True),
        ({"source": None}, True),
        ({"source": "skill-pdf"}, False),
        ({"source": "autopilot"}, False),
        ({"isAutopilotContinuation": True}, False),
        ({"isAutopilotContinuation": False}, True),
    ],
)
def test_only_what_the_person_sent_is_a_question(tmp_path: Path, data: Record, kept: bool) -> None:
    events, tally = read(READER, write(tmp_path / "a.jsonl", asks("Read the file.", **data)))
    assert [turn.text for turn in turns(events)] == (["Read the file."] if kept else [])
    assert tally.skipped["host record"] == (0 if kept else 1)


@pytest.mark.parametrize(
    ("data", "ok", "exit_code", "text"),
    [
        ({"success": True, "result": {"content": "done"}}, True, None, "done"),
        ({"success": True, "result": {"content": "for the model", "detailedContent": "all"}}, True, None, "all"),
        ({"success": True, "result": "done"}, True, None, "done"),
        ({"success": False, "error": {"message": "denied", "code": "denied"}}, False, None, "denied"),
        (
            {"success": True, "result": {"content": "a\n<exited with exit code 0>"}},
            True,
            0,
            "a\n<exited with exit code 0>",
        ),
        (
            {
                "success": True,
                "result": {"content": "<shellId: x1 completed with exit code 2>", "detailedContent": "a"},
            },
            False,
            2,
            "a",
        ),
        ({"success": True, "result": {"content": "see <exited with exit code 3> there"}}, True, None, None),
        ({"result": {"content": "<exited with exit code 1>\n<exited with exit code 0>"}}, True, 0, None),
        ({"result": {"content": "?"}}, None, None, "?"),
        ({}, None, None, ""),
    ],
)
def test_an_event_says_how_a_call_went(
    tmp_path: Path, data: Record, ok: bool | None, exit_code: int | None, text: str | None
) -> None:
    done = event("tool.execution_complete", toolCallId="c1", **data)
    (outcome,) = turns(read(READER, write(tmp_path / "a.jsonl", done))[0])[0].outcomes
    assert (outcome.call, outcome.ok, outcome.exit_code) == ("c1", ok, exit_code)
    assert text is None or outcome.text == text


def test_a_call_of_our_own_memory_is_known_by_its_name(tmp_path: Path) -> None:
    request = {"toolCallId": "c1", "name": "grounded-ground_recall", "arguments": {"query": "ninja"}}
    events, _ = read(READER, write(tmp_path / "a.jsonl", says("", toolRequests=[request, "odd"])))
    (call,) = turns(events)[0].calls
    assert (call.id, call.tool, call.kind) == ("c1", "grounded-ground_recall", "memory")


def test_a_turn_is_known_by_its_events_id_and_its_model(tmp_path: Path) -> None:
    events, _ = read(READER, write(tmp_path / "a.jsonl", starts(**WHERE), says("Hi.", id="e-9", model="claude")))
    (turn,) = turns(events)
    assert (turn.session, turn.uid, turn.model, turn.at) == ("s-1", "e-9", "claude", 1_772_359_200.0)


def test_the_working_directory_is_the_one_recorded_in_the_session(tmp_path: Path) -> None:
    path = tmp_path / "s-1" / "events.jsonl"
    (tmp_path / "s-1").mkdir()
    (tmp_path / "s-1" / "workspace.yaml").write_text("cwd: /home/dev/elsewhere\n", encoding="utf-8")
    assert read(READER, write(path, starts(**WHERE)))[0] == [About("s-1", "/home/dev/shop", "main")]


@pytest.mark.parametrize(
    ("line", "cwd"),
    [
        ("cwd: /home/dev/my shop", "/home/dev/my shop"),
        ('cwd: "/home/dev/shop"', "/home/dev/shop"),
        ("cwd: 'C:\\dev\\shop'", "C:\\dev\\shop"),
        ("  cwd: /nested", None),
        ("cwd:", None),
        ('cwd: "', '"'),
    ],
)
def test_the_workspace_file_names_the_working_directory_where_the_session_does_not(
    tmp_path: Path, line: str, cwd: str | None
) -> None:
    path = tmp_path / "s-2" / "events.jsonl"
    transcript = write(path, asks("Hello."))
    path.with_name("workspace.yaml").write_text(f"id: s-2\n{line}\nbranch: main\n", encoding="utf-8")
    events, _ = read(READER, transcript)
    assert events[0] == About("s-2", cwd)
    assert turns(events)[0].session == "s-2"


def test_a_linked_workspace_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("cwd: /home/dev/other\n", encoding="utf-8")
    transcript = write(tmp_path / "s-2" / "events.jsonl", asks("Hello."))
    (tmp_path / "s-2" / "workspace.yaml").symlink_to(tmp_path / "other.yaml")
    assert read(READER, transcript)[0][0] == About("s-2")


@pytest.mark.parametrize("name", SAMPLES)
def test_reading_on_from_any_turn_gives_the_same_turns(name: str) -> None:
    whole, tally = read(READER, at(sample(name)))
    all_turns = turns(whole)
    for known, turn in enumerate(all_turns):
        tip = all_turns[known - 1].uid if known else ""
        rest, rest_tally = read(READER, at(sample(name)), Start(turn.place, tip))
        assert turns(rest) == all_turns[known:]
        assert rest[0] == whole[0]
        assert rest_tally.end == tally.end
    nothing, _ = read(READER, at(sample(name)), Start(tally.end, all_turns[-1].uid))
    assert turns(nothing) == []


def test_reading_starts_again_in_a_file_that_a_rewind_made_shorter(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    talk = [starts(**WHERE), asks("One."), says("1."), asks("Two."), says("2.")]
    before, tally = read(READER, write(path, *talk))
    start = Start(tally.end, turns(before)[-1].uid)
    for records in (talk[:3], [*talk[:3], asks("Three. " * 99)], [*talk[:3], asks("Six."), says("6.")]):
        after, _ = read(READER, write(path, *records), start)
        assert after == read(READER, at(path))[0]


def test_case_16_a_half_written_event_is_told_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    whole = "".join(json.dumps(each) + "\n" for each in (starts(**WHERE), asks("Fix it."), says("Done.")))
    path.write_text(whole[:-30], encoding="utf-8")
    first, tally = read(READER, at(path))
    assert [turn.text for turn in turns(first)] == ["Fix it."]
    assert tally.skipped["unfinished last line"] == 1
    path.write_text(whole, encoding="utf-8")
    second, _ = read(READER, at(path), Start(tally.end, turns(first)[-1].uid))
    assert [turn.text for turn in turns(second)] == ["Done."]


def test_reading_goes_on_after_a_whole_event_whose_line_end_came_later(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(asks("Fix it.")), encoding="utf-8")
    first, tally = read(READER, at(path))
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" + json.dumps(says("Done.")) + "\n")
    second, _ = read(READER, at(path), Start(tally.end, turns(first)[-1].uid))
    assert [turn.text for turn in turns(second)] == ["Done."]


def test_t40_line_ends_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + sample("every-kind").read_bytes().replace(b"\n", b"\r\n"))
    assert outline(read(READER, at(path))[0]) == outline(read(READER, at(sample("every-kind")))[0])


def test_t40_bad_lines_in_the_middle_are_counted_and_their_neighbours_kept(tmp_path: Path) -> None:
    good = sample("every-kind").read_bytes().splitlines(keepends=True)
    bad = [b'{"type": "user.mess\n', b"[1, 2]\n", b"\xff\xfe\x00\n", b'{"type": "user.message", "data": 5}\n']
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join([*good[:5], *bad, *good[5:]]))
    events, tally = read(READER, at(path))
    assert outline(events) == outline(read(READER, at(sample("every-kind")))[0])
    assert tally.skipped["not a JSON object"] == 3
    assert tally.skipped["no text"] == 2


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_sessions_lie_in_copilots_home_on_every_platform(platform: str) -> None:
    home = Path("/home/dev")
    assert list(READER.roots(Machine(home, platform))) == [home / ".copilot/session-state"]
    assert list(READER.roots(Machine(home, platform, {"COPILOT_HOME": " "}))) == [home / ".copilot/session-state"]
    assert list(READER.roots(Machine(home, platform, {"COPILOT_HOME": "/srv/pilot"}))) == [
        Path("/srv/pilot/session-state")
    ]


def test_sessions_are_found_by_age_without_links_and_without_the_agents_own_files(tmp_path: Path) -> None:
    root, outside = tmp_path / "session-state", tmp_path / "outside"
    new, old = root / "s-1/events.jsonl", root / "s-0.jsonl"
    for path, age in ((new, 2_000), (old, 1_000), (root / "s-1/files/rows.jsonl", 3_000), (outside / "x.jsonl", 500)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n", encoding="utf-8")
        os.utime(path, (age, age))
    (root / "s-2").symlink_to(outside)
    (root / "s-3.jsonl").symlink_to(outside / "x.jsonl")
    found = list(READER.find(root))
    assert [transcript.path for transcript in found] == [old.resolve(), new.resolve()]
    assert {(transcript.agent, transcript.size) for transcript in found} == {("copilot", 3)}
    (tmp_path / "link").symlink_to(root)
    assert list(READER.find(tmp_path / "link")) == found
    assert [transcript.path for transcript in READER.find(old)] == [old.resolve()]
    assert list(READER.find(tmp_path / "gone")) == []


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = [
    "content", "source", "toolRequests", "toolCallId", "success", "result", "error", "model", "title", "context",
    "sessionId", "parentToolCallId", "isUserRequested", "reason",
]  # fmt: skip
_KINDS = st.sampled_from(
    ["user.message", "assistant.message", "tool.execution_complete", "abort", "session.start", "session.title_changed"]
)
_DATA = st.dictionaries(st.sampled_from(_FIELDS), _VALUES, max_size=6)
_EVENTS = st.fixed_dictionaries(
    {"type": _KINDS | _VALUES, "data": _DATA | _VALUES}, optional={"id": _VALUES, "timestamp": _VALUES}
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_EVENTS | _DATA, max_size=6))
def test_no_value_in_place_of_another_stops_a_reading(tmp_path_factory: pytest.TempPathFactory, odd: list[Any]) -> None:
    path = tmp_path_factory.getbasetemp() / "odd-copilot.jsonl"
    events, tally = read(READER, write(path, starts(**WHERE), *odd, says("Still here.")))
    assert turns(events)[-1].text == "Still here."
    assert tally.seen == tally.kept + tally.skipped.total() == len(odd) + 2
    assert tally.kept == len(turns(events))


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 8_000))
def test_no_bytes_stop_a_reading(tmp_path_factory: pytest.TempPathFactory, noise: bytes, cut: int) -> None:
    path = tmp_path_factory.getbasetemp() / "noise-copilot.jsonl"
    path.write_bytes(sample("every-kind").read_bytes()[:cut] + noise)
    events, tally = read(READER, at(path), Start(cut, "nothing"))
    assert isinstance(events[0], About)
    assert tally.end <= path.stat().st_size


def test_a_file_that_is_gone_is_an_error_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(READER.read(at(tmp_path / "gone.jsonl"), Start(), Tally()))
