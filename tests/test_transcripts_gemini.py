"""Sessions of Gemini CLI, both as a log and as one document."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from turning import DATA, outline, read
from unruly import VALUES, lines, spoiled, unharmed

from grounded_mcp.ingest.transcripts.documents_json import MAX_DOCUMENT_BYTES
from grounded_mcp.ingest.transcripts.gemini import READER
from grounded_mcp.ingest.transcripts.turns import About, Machine, Start, Tally, Transcript, Turn

GEMINI = DATA / "gemini"
LOG = GEMINI / "every-kind.jsonl"
HEADER = {"sessionId": "s", "projectHash": "", "kind": "main"}


def transcript(path: Path) -> Transcript:
    return Transcript("gemini", path, "")


def turns_of(path: Path, start: Start | None = None) -> list[Turn]:
    events, _ = read(READER, transcript(path), start or Start())
    return [event for event in events if isinstance(event, Turn)]


def message(id: str, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"id": id, "timestamp": "2026-10-02T10:00:00Z", "type": kind, "content": content} | more


def log(tmp_path: Path, *records: Any) -> Path:
    path = tmp_path / "session-2026-10-02T10-00-s.jsonl"
    path.write_bytes(lines(HEADER, *records))
    return path


def about_of(path: Path) -> About:
    events, _ = read(READER, transcript(path))
    assert isinstance(events[0], About)
    return events[0]


@pytest.mark.parametrize("name", ["every-kind.jsonl", "gen-0.61.0.jsonl", "real-0.23.json", "agtrace.json"])
def test_a_session_reads_as_its_checked_summary_says(name: str) -> None:
    events, _ = read(READER, transcript(GEMINI / name))
    golden = (GEMINI / name).with_suffix(".golden.txt").read_text(encoding="utf-8")
    assert outline(events) == golden.splitlines()


def test_every_record_of_a_log_is_counted_with_a_reason_and_a_place() -> None:
    _, tally = read(READER, transcript(LOG))
    assert (tally.seen, tally.kept, tally.end) == (21, 6, LOG.stat().st_size)
    assert tally.skipped == {
        "host record": 7,
        "copy of an earlier record": 3,
        "rewound": 2,
        "unknown record": 2,
        "no text": 1,
    }
    assert tally.examples["host record"][0] == "byte 0"


def test_a_message_written_again_counts_once_with_its_last_version_in_the_place_of_the_first(tmp_path: Path) -> None:
    path = log(tmp_path, message("a", "gemini", "dra"), message("b", "user", "wait"), message("a", "gemini", "draft"))
    assert [(turn.uid, turn.text) for turn in turns_of(path)] == [("s:a", "draft"), ("s:b", "wait")]
    assert turns_of(path)[0].place == len(lines(HEADER))


def test_a_rewind_to_a_message_of_the_models_list_takes_nothing_back(tmp_path: Path) -> None:
    path = log(tmp_path, message("a", "user", "still here"), {"$rewindTo": "x9"})
    assert [turn.text for turn in turns_of(path)] == ["still here"]


def test_a_message_sent_again_after_a_rewind_counts(tmp_path: Path) -> None:
    path = log(tmp_path, message("a", "user", "one"), {"$rewindTo": "a"}, message("a", "user", "two"))
    assert [turn.text for turn in turns_of(path)] == ["two"]


def test_a_compression_does_not_replace_what_was_said() -> None:
    texts = " ".join(turn.text for turn in turns_of(LOG))
    assert "SUMMARY" not in texts
    assert "Running the tests." in texts


def test_a_log_that_only_has_lists_for_the_model_is_read_from_the_last_one(tmp_path: Path) -> None:
    first, second = message("a", "user", "one"), message("b", "gemini", "two")
    path = log(tmp_path, {"$set": {"messages": [first]}}, {"$set": {"messages": [first, second]}})
    assert [turn.text for turn in turns_of(path)] == ["one", "two"]
    assert [turn.place for turn in turns_of(path, Start(len(lines(HEADER))))] == [0, 1]
    assert turns_of(path, Start(path.stat().st_size)) == []


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
    # Before the first turn; in the middle of g1's versions; between u2 and the rewind that takes it back.
    assert started_over == [0, 1, 2, 4, 5, 6, 9, 10]


def test_a_message_rewritten_behind_the_start_makes_reading_start_over(tmp_path: Path) -> None:
    path = log(tmp_path, message("a", "gemini", "dra"), message("b", "user", "wait"))
    offset = path.stat().st_size
    assert turns_of(path, Start(offset)) == []
    path.write_bytes(path.read_bytes() + lines(message("a", "gemini", "draft")))
    assert [turn.text for turn in turns_of(path, Start(offset))] == ["draft", "wait"]


def test_case_16_a_half_written_last_record_waits_until_it_is_whole(tmp_path: Path) -> None:
    path = log(tmp_path, message("a", "user", "one"))
    before, whole = path.stat().st_size, path.read_bytes() + lines(message("b", "gemini", "two"))
    path.write_bytes(whole[:-20])
    events, tally = read(READER, transcript(path))
    assert (outline(events)[1:], tally.end) == (["user 2026-10-02T10:00:00Z one"], before)
    assert tally.skipped["unfinished last line"] == 1
    path.write_bytes(whole)
    assert [turn.text for turn in turns_of(path, Start(tally.end))] == ["two"]


def test_what_is_written_while_the_log_is_read_is_left_for_the_next_time(tmp_path: Path) -> None:
    path = log(tmp_path, message("a", "user", "one"))
    before, tally = path.stat().st_size, Tally()
    reading = READER.read(transcript(path), Start(), tally)
    next(reading)
    path.write_bytes(path.read_bytes() + lines(message("b", "gemini", "two")))
    assert [event.text for event in reading if isinstance(event, Turn)] == ["one"]
    assert (tally.seen, tally.end) == (2, before)
    assert [turn.text for turn in turns_of(path, Start(tally.end))] == ["two"]


def test_t40_bad_lines_crlf_and_a_byte_order_mark_do_not_hide_their_neighbours(tmp_path: Path) -> None:
    path = log(tmp_path)
    good = [
        lines(HEADER),
        lines(message("a", "user", "one")),
        b"{not json\n",
        b"[1]\n",
        lines(message("b", "user", "2")),
    ]
    path.write_bytes(b"\xef\xbb\xbf" + b"".join(good).replace(b"\n", b"\r\n"))
    _, tally = read(READER, transcript(path))
    assert [turn.text for turn in turns_of(path)] == ["one", "2"]
    assert tally.skipped == {"host record": 1, "not a JSON object": 2}


def test_a_running_call_has_no_result_yet(tmp_path: Path) -> None:
    call = {"id": "c", "name": "read_file", "args": {"file_path": "a"}, "status": "executing"}
    (turn,) = turns_of(log(tmp_path, message("a", "gemini", "", toolCalls=[call])))
    assert [(each.kind, each.files) for each in turn.calls] == [("read", ("a",))]


def test_an_exit_code_that_a_program_prints_is_not_the_commands_own(tmp_path: Path) -> None:
    output = "Output: Exit Code: 5\nfine\nProcess Group PGID: 7"
    result = [{"functionResponse": {"id": "c", "name": "run_shell_command", "response": {"output": output}}}]
    call = {"id": "c", "name": "run_shell_command", "args": {}, "status": "success", "result": result}
    outcome = turns_of(log(tmp_path, message("a", "gemini", "", toolCalls=[call])))[1].outcomes[0]
    assert (outcome.ok, outcome.exit_code) == (True, None)


def project(tmp_path: Path, name: str, session: dict[str, Any]) -> Path:
    path = tmp_path / ".gemini" / "tmp" / name / "chats" / "session-1.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(session), encoding="utf-8")
    return path


def sha256(path: str) -> str:
    return hashlib.sha256(path.encode()).hexdigest()


def test_the_project_root_is_what_the_projects_folder_names(tmp_path: Path) -> None:
    path = project(tmp_path, "app", {"sessionId": "s", "messages": []})
    (path.parent.parent / ".project_root").write_text("/home/me/app\n", encoding="utf-8")
    assert about_of(path).cwd == "/home/me/app"


def test_the_project_root_is_found_in_the_registry_by_folder_name(tmp_path: Path) -> None:
    path = project(tmp_path, "app-1", {"sessionId": "s", "messages": []})
    registry = {"projects": {"/home/me/app": "app", "/srv/app": "app-1"}}
    (tmp_path / ".gemini" / "projects.json").write_text(json.dumps(registry), encoding="utf-8")
    assert about_of(path).cwd == "/srv/app"


@pytest.mark.parametrize(
    ("name", "known"),
    [("projects.json", {"projects": {"/srv/app": "app"}}), ("trustedFolders.json", {"/srv/app": "T"})],
)
def test_a_known_root_with_the_sessions_hash_is_its_root(tmp_path: Path, name: str, known: dict[str, Any]) -> None:
    digest = sha256("/srv/app")
    path = project(tmp_path, digest, {"sessionId": "s", "projectHash": digest, "messages": []})
    assert about_of(path).cwd is None
    (tmp_path / ".gemini" / name).write_text(json.dumps(known), encoding="utf-8")
    assert about_of(path).cwd == "/srv/app"


@pytest.mark.parametrize(
    ("root", "said"),
    [
        ("/home/me/app", "wrote to new file: /home/me/app/src/a.py."),
        ("/home/me/my app", "/home/me/my app/src/a.py"),
        ("C:\\work\\app", "wrote to C:\\work\\app\\src\\a.py"),
    ],
)
def test_a_path_of_the_conversation_that_has_the_sessions_hash_is_its_root(
    tmp_path: Path, root: str, said: str
) -> None:
    call = {"id": "c", "name": "write_file", "args": {"file_path": said}, "status": "success"}
    messages = [message("a", "gemini", "not in /home/other/app", toolCalls=[call])]
    path = project(tmp_path, "x", {"sessionId": "s", "projectHash": sha256(root), "messages": messages})
    assert about_of(path).cwd == root


def test_a_root_that_is_a_link_to_a_file_elsewhere_is_not_read(tmp_path: Path) -> None:
    path = project(tmp_path, "app", {"sessionId": "s", "messages": []})
    (tmp_path / "elsewhere").write_text("/etc", encoding="utf-8")
    (path.parent.parent / ".project_root").symlink_to(tmp_path / "elsewhere")
    assert about_of(path).cwd is None


def test_a_document_that_is_too_long_is_counted_and_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "session-1.json"
    path.touch()
    os.truncate(path, MAX_DOCUMENT_BYTES + 1)
    events, tally = read(READER, transcript(path))
    assert (events, tally.seen, tally.skipped) == ([], 1, {"longer than the limit": 1})


def test_a_document_cut_off_while_it_was_written_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "session-1.json"
    path.write_bytes((GEMINI / "agtrace.json").read_bytes()[:-100])
    events, tally = read(READER, transcript(path))
    assert (events, tally.skipped) == ([], {"not a JSON object": 1})


def test_sessions_are_found_among_the_other_files_and_know_what_started_them(tmp_path: Path) -> None:
    chats = tmp_path / "tmp" / "app" / "chats"
    (chats / "s-parent").mkdir(parents=True)
    for at, name in enumerate(
        ["session-b.jsonl", "session-a.json", "s-parent/sub.jsonl", "notes.json", "../logs.json"]
    ):
        (chats / name).write_bytes(lines({"sessionId": name}))
        os.utime(chats / name, (1_000 - at, 1_000 - at))
    (chats / "session-link.json").symlink_to(chats / "session-a.json")
    found = list(READER.find(tmp_path / "tmp"))
    assert [each.path.name for each in found] == ["sub.jsonl", "session-a.json", "session-b.jsonl"]
    assert [each.size for each in found] == [each.path.stat().st_size for each in found]
    assert about_of(found[0].path).parent == "s-parent"
    assert about_of(found[2].path).parent is None
    assert [each.path.name for each in READER.find(chats / "notes.json")] == ["notes.json"]
    assert list(READER.find(tmp_path / "gone")) == []


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_default_folder_is_below_the_home_folder_or_the_one_gemini_is_told(platform: str) -> None:
    home = Path("/home/me")
    assert READER.roots(Machine(home, platform)) == [home / ".gemini" / "tmp"]
    told = Machine(home, platform, {"GEMINI_CLI_HOME": "/data"})
    assert READER.roots(told) == [Path("/data/.gemini/tmp")]


RECORDS = [json.loads(line) for line in LOG.read_bytes().splitlines()]


@settings(max_examples=80, deadline=None)
@given(spoiled(RECORDS), st.integers(0, 400))
def test_no_value_in_any_place_of_a_log_does_harm(records: list[Any], cut: int) -> None:
    content = lines(*records)
    unharmed(READER, "session-1.jsonl", content[: len(content) - cut])


@settings(max_examples=60, deadline=None)
@given(spoiled(json.loads((GEMINI / "agtrace.json").read_bytes())))
def test_no_value_in_any_place_of_a_document_does_harm(document: Any) -> None:
    unharmed(READER, "session-1.json", json.dumps(document).encode())


@settings(max_examples=40, deadline=None)
@given(
    st.binary(max_size=80) | VALUES.map(lambda value: json.dumps(value).encode()), st.sampled_from(["json", "jsonl"])
)
def test_no_bytes_do_harm(content: bytes, suffix: str) -> None:
    unharmed(READER, f"session-1.{suffix}", content)
