"""Claude Code's sessions: what becomes a turn, what a rewind takes back, and where reading goes on."""

from __future__ import annotations

import json
import os
import tempfile
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import turning
from hypothesis import given, settings
from hypothesis import strategies as st

from grounded_mcp.ingest.transcripts.claude_code import READER
from grounded_mcp.ingest.transcripts.turns import (
    FROM_THE_START,
    About,
    Call,
    Machine,
    Outcome,
    Start,
    Tally,
    Transcript,
    Turn,
)

DATA = turning.DATA / "claude_code"
SESSION = "11111111-2222-4333-8444-555555555555"
GOLDEN = {
    "rejected": {"host record": 6, "no text": 2},
    "interrupted": {"host record": 20, "no text": 2},
    "compacted": {"host record": 2, "no text": 3},
    "hooks": {"host record": 35},
    "agent-aac57f5": {"host record": 3},
}

Record = dict[str, Any]
Write = Callable[..., Transcript]


def transcript(path: Path) -> Transcript:
    return Transcript("claude-code", path, "")


def entry(uuid: str, parent: str | None, type: str = "user", content: object = None, **more: object) -> Record:
    said = uuid if content is None else content
    blocks = [{"type": "text", "text": said}] if type == "assistant" and isinstance(said, str) else said
    common = {"parentUuid": parent, "isSidechain": False, "cwd": "/w/app", "sessionId": SESSION, "gitBranch": "main"}
    return {**common, "type": type, "message": {"role": type, "content": blocks}, "uuid": uuid, **more}


def chain(*uuids: str, parent: str | None = None) -> list[Record]:
    """One after the other: those that start with ``a`` by the agent, the others by the person."""
    entries = []
    for uuid in uuids:
        entries.append(entry(uuid, parent, "assistant" if uuid.startswith("a") else "user"))
        parent = uuid
    return entries


def result(uuid: str, parent: str, id: str, text: str = "done", rich: object = None, **said: object) -> Record:
    block = {"type": "tool_result", "tool_use_id": id, "content": text, **said}
    return entry(uuid, parent, content=[block], toolUseResult=rich)


def attached(uuid: str, parent: str, attachment: Record) -> Record:
    return {**entry(uuid, parent, "attachment"), "attachment": attachment}


def use(uuid: str, parent: str, id: str, command: str = "ls") -> Record:
    block = {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}
    return entry(uuid, parent, "assistant", [block])


@pytest.fixture
def written(tmp_path: Path) -> Write:
    def write(*entries: object, name: str = f"{SESSION}.jsonl") -> Transcript:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(each) + "\n" for each in entries), encoding="utf-8", newline="\n")
        return transcript(path)

    return write


def turns(found: Transcript, start: Start = FROM_THE_START) -> list[Turn]:
    return [event for event in turning.read(READER, found, start)[0] if isinstance(event, Turn)]


def texts(found: Transcript) -> list[str]:
    return [turn.text for turn in turns(found)]


def skipped(found: Transcript) -> dict[str, int]:
    return dict(turning.read(READER, found)[1].skipped)


@pytest.mark.parametrize("name", GOLDEN)
def test_a_real_session_reads_as_a_person_would_list_it(name: str) -> None:
    path = next(DATA.rglob(f"{name}.jsonl"))
    events, tally = turning.read(READER, transcript(path))
    assert turning.outline(events) == (DATA / f"{name}.golden.txt").read_text(encoding="utf-8").splitlines()
    assert dict(tally.skipped) == GOLDEN[name]
    assert tally.seen == tally.kept + sum(tally.skipped.values())
    assert tally.end == path.stat().st_size


# What a record is


def test_a_message_sent_while_a_tool_ran_is_the_persons_own_turn(written: Write) -> None:
    both = [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}, {"type": "text", "text": "and test it"}]
    found = turns(written(*chain("u1"), use("a1", "u1", "t1"), entry("r1", "a1", content=both)))
    assert [(turn.role, turn.uid, turn.text) for turn in found[2:]] == [
        ("tool", "r1", ""),
        ("user", "r1/aside", "and test it"),
    ]


@pytest.mark.parametrize("prompt", ["use ninja", [{"type": "text", "text": "use ninja"}]])
def test_a_message_queued_in_mid_work_is_the_persons_words_once(written: Write, prompt: object) -> None:
    queued = {"type": "queued_command", "commandMode": "prompt", "prompt": prompt, "source_uuid": "s1"}
    found = written(
        *chain("u1", "a1"),
        attached("q1", "a1", queued),
        attached("q2", "q1", queued),
        entry("s1", "q2", content="use ninja"),
        attached("q3", "s1", {**queued, "source_uuid": "s3", "commandMode": "task-notification"}),
        attached("q4", "q3", {**queued, "source_uuid": "s4", "origin": {"kind": "peer"}}),
    )
    assert texts(found) == ["u1", "a1", "use ninja"]
    assert skipped(found) == {"copy of an earlier record": 2, "host record": 2}


@pytest.mark.parametrize(
    "host",
    [
        {"content": "expanded skill", "isMeta": True},
        {"content": "This session is being continued", "isCompactSummary": True},
        {"content": "<command-name>/compact</command-name><command-args>keep ids</command-args>"},
        {"content": "<command-message>pr</command-message>\n<command-name>/pr</command-name>"},
        {"content": "<local-command-stdout>Bye!</local-command-stdout>"},
        {"content": "Caveat: The messages below were generated by the user while running local commands."},
        {"content": "<task-notification>\n<task-id>b1</task-id></task-notification>"},
        {"content": "<system-reminder>todo list is empty</system-reminder>\n"},
        {"content": "go on", "origin": {"kind": "auto-continuation"}},
        {"content": "tick", "promptSource": "system"},
    ],
)
def test_what_the_client_wrote_in_the_persons_name_is_no_turn(written: Write, host: Record) -> None:
    found = written(entry("u1", None, **host))
    assert turns(found) == []
    assert skipped(found) == {"host record": 1}


def test_a_reminder_inside_a_prompt_stays_for_later_stages(written: Write) -> None:
    said = "<system-reminder>x</system-reminder> why is it <b>red</b>? <system-reminder>y</system-reminder>"
    assert texts(written(entry("u1", None, content=said))) == [said]


def test_the_words_behind_a_command_that_the_agent_answers_are_the_persons(written: Write) -> None:
    command = "<command-message>plan</command-message>\n<command-name>/plan</command-name>\n"
    said = f"{command}<command-args>ask for consent</command-args>"
    assert texts(written(entry("u1", None, content=said))) == ["/plan ask for consent"]


def test_a_shell_line_of_the_person_is_a_command_and_its_output(written: Write) -> None:
    first, second = turns(
        written(
            entry("u1", None, content="<bash-input>git status</bash-input>"),
            entry("u2", "u1", content="<bash-stdout>clean</bash-stdout><bash-stderr>warning</bash-stderr>"),
        )
    )
    assert (first.role, first.calls) == ("user", (Call("u1", "Bash", "command", "git status"),))
    assert (second.role, second.outcomes) == ("tool", (Outcome("u1", "clean\nwarning"),))


def test_stopping_the_agent_is_marked_and_has_no_words(written: Write) -> None:
    stop = [{"type": "text", "text": "[Request interrupted by user for tool use]"}]
    (turn,) = turns(written(entry("u1", None, content=stop)))
    assert (turn.role, turn.text, turn.interrupted) == ("user", "", True)


def test_thinking_synthetic_answers_and_api_errors_are_left_out(written: Write) -> None:
    found = written(
        entry("a1", None, "assistant", [{"type": "thinking", "thinking": "hm"}]),
        {**entry("a2", "a1", "assistant"), "message": {"model": "<synthetic>", "content": "No response requested."}},
        entry("a3", "a2", "assistant", "API Error: 529", isApiErrorMessage=True),
        {
            **entry("a4", "a3", "assistant"),
            "message": {"model": "claude-x", "content": [{"type": "text", "text": "hi"}]},
        },
    )
    assert [(turn.text, turn.model) for turn in turns(found)] == [("hi", "claude-x")]
    assert skipped(found) == {"no text": 1, "host record": 2}


@pytest.mark.parametrize(
    ("text", "more", "ok", "code"),
    [
        ("12 passed", {"is_error": False, "rich": {"stdout": "12 passed", "interrupted": False}}, True, 0),
        (
            "",
            {"is_error": False, "rich": {"stdout": "", "returnCodeInterpretation": "No matches"}},
            True,
            None,
        ),
        ("running", {"is_error": False, "rich": {"stdout": "", "backgroundTaskId": "b1"}}, None, None),
        ("partial", {"is_error": False, "rich": {"stdout": "", "interrupted": True}}, False, None),
        ("Exit code 2\nboom", {"is_error": True, "rich": "Error: Exit code 2\nboom"}, False, 2),
        ("<tool_use_error>File does not exist", {"is_error": True}, False, None),
        ("The user doesn't want to proceed", {"is_error": True}, None, None),
        ("<tool_use_error>Sibling tool call errored</tool_use_error>", {"is_error": True}, None, None),
        ("contents", {"rich": {"type": "text"}}, True, None),
        ("contents", {}, None, None),
    ],
)
def test_an_outcome_says_what_the_record_says_about_it(
    written: Write, text: str, more: Record, ok: bool | None, code: int | None
) -> None:
    (turn,) = turns(written(result("r1", "a1", "t1", text, **more)))
    assert turn.outcomes == (Outcome("t1", text, ok, code),)


def test_folder_branch_and_title_are_told_when_they_change(written: Write) -> None:
    events, _ = turning.read(
        READER,
        written(
            {"type": "summary", "summary": "Another session", "leafUuid": "elsewhere"},
            {"type": "summary", "summary": "Fix the build", "leafUuid": "a1"},
            *chain("u1", "a1"),
            entry("u2", "a1", gitBranch="fix/x"),
            {"type": "custom-title", "customTitle": "Build", "sessionId": SESSION},
            {"type": "ai-title", "aiTitle": "Fixing a build", "sessionId": SESSION},
        ),
    )
    assert [event for event in events if isinstance(event, About)] == [
        About(SESSION, title="Fix the build"),
        About(SESSION, "/w/app", "main"),
        About(SESSION, "/w/app", "fix/x"),
        About(SESSION, title="Build"),
    ]


# Rewinds


def test_a_prompt_asked_anew_takes_the_old_branch_back(written: Write) -> None:
    entries = [*chain("u1", "a1", "u2", "a2", "u3", "a3"), *chain("u4", "a4", parent="a1")]
    found = written(*entries)
    assert texts(found) == ["u1", "a1", "u4", "a4"]
    assert skipped(found) == {"rewound": 4}


def test_a_rewind_behind_a_compaction_takes_both_sides_of_it_back(written: Write) -> None:
    boundary = {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "b",
        "parentUuid": None,
        "logicalParentUuid": "a2",
    }
    found = written(*chain("u1", "a1", "u2", "a2"), boundary, *chain("u3", "a3", parent="b"), *chain("u4", parent="a1"))
    assert texts(found) == ["u1", "a1", "u4"]


def test_a_boundary_that_names_a_later_record_closes_no_circle(written: Write) -> None:
    boundary = {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "b",
        "parentUuid": None,
        "logicalParentUuid": "a2",
    }
    found = written(*chain("u1", "a1"), boundary, *chain("u2", "a2", parent="b"), *chain("u3", parent="a2"))
    assert texts(found) == ["u1", "a1", "u2", "a2", "u3"]


NOTHING_TAKEN_BACK = {
    "several tool calls of one message": [
        *chain("u1"), use("a1", "u1", "t1"), use("a2", "a1", "t2"), result("r1", "a1", "t1"), result("r2", "a2", "t2"),
        *chain("a3", "u2", parent="r2"),
    ],
    "prompts without a parent, as after an accepted plan": [*chain("u1", "a1"), *chain("u2", "a2")],
    "a second terminal whose branch goes on": [
        *chain("u1", "a1", "u2", "a2"), *chain("u3", "a3", parent="a1"), *chain("u4", parent="a2"),
    ],
    "leaving in a second terminal": [
        *chain("u1", "a1", "u2", "a2"),
        entry("c1", "a1", content="Caveat: The messages below were generated", isMeta=True),
        entry("c2", "c1", content="<command-name>/exit</command-name>"),
    ],
    "a queued prompt on a stale record": [*chain("u1", "a1", "u2", "a2"), entry("u3", "a1", promptSource="queued")],
    "two answers to one prompt": [*chain("u1", "a1"), *chain("a2", "u2", parent="u1")],
    "a stop, and a prompt beside it": [
        *chain("u1"), entry("u2", "u1", content="[Request interrupted by user]"), *chain("u3", parent="u1"),
    ],
    "a parent that is nowhere": [*chain("u1", "a1", parent="gone"), *chain("u2", parent="gone")],
    "a circle": [*chain("u1", "a1", parent="a1"), *chain("u2", parent="a1")],
    "parents written after their children": [*reversed(chain("u1", "a1", "u2", "a2"))],
}  # fmt: skip


@pytest.mark.parametrize("case", NOTHING_TAKEN_BACK)
def test_a_branch_that_is_no_rewind_keeps_everything(written: Write, case: str) -> None:
    found = written(*NOTHING_TAKEN_BACK[case])
    answered = skipped(found)
    assert "rewound" not in answered
    assert turning.read(READER, found)[1].kept + answered.get("host record", 0) == len(NOTHING_TAKEN_BACK[case])


def test_an_older_subagent_inside_the_file_is_a_session_of_its_own(written: Write) -> None:
    side = [entry(uuid, "a1", content=uuid, isSidechain=True, agentId="x9") for uuid in ("s1", "s2")]
    events, _ = turning.read(READER, written(*chain("u1", "a1"), *side, *chain("u2", parent="a1")))
    found = [event for event in events if isinstance(event, Turn)]
    assert [(turn.session, turn.text) for turn in found] == [
        (SESSION, "u1"),
        (SESSION, "a1"),
        (f"{SESSION}/agent-x9", "s1"),
        (f"{SESSION}/agent-x9", "s2"),
        (SESSION, "u2"),
    ]
    assert About(f"{SESSION}/agent-x9", "/w/app", "main", parent=SESSION) in events


def test_a_record_written_twice_counts_once(written: Write) -> None:
    entries = chain("u1", "a1", "u2")
    found = written(*entries, entries[1], *chain("a2", parent="u2"))
    assert texts(found) == ["u1", "a1", "u2", "a2"]
    assert skipped(found) == {"copy of an earlier record": 1}


def test_a_uuid_inside_another_record_is_not_taken_for_its_own(written: Write) -> None:
    entries = chain("u1", "a1", "u2", "a2")
    carrier = {"type": "progress", "data": {"message": entries[1]}, "uuid": "p1", "parentUuid": "u1"}
    found = written(carrier, *entries, *chain("u3", parent="a1"))
    assert texts(found) == ["u1", "a1", "u3"]


# Going on


def boundaries(found: Transcript) -> list[tuple[Start, int]]:
    """Every place between two turns of different records, and how many turns come before."""
    all_turns = turns(found)
    pairs = enumerate(pairwise(all_turns), start=1)
    return [(Start(after.place, before.uid), count) for count, (before, after) in pairs if after.place > before.place]


@pytest.mark.parametrize("name", GOLDEN)
def test_reading_goes_on_at_any_turn_with_the_same_turns(name: str) -> None:
    found = transcript(next(DATA.rglob(f"{name}.jsonl")))
    whole = turns(found)
    for start, count in boundaries(found):
        assert turns(found, start) == whole[count:]


def test_reading_goes_on_after_an_aside_and_after_host_records(written: Write) -> None:
    both = [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}, {"type": "text", "text": "and test it"}]
    hook = {"type": "system", "subtype": "turn_duration", "uuid": "h1", "parentUuid": "r1"}
    found = written(*chain("u1"), use("a1", "u1", "t1"), entry("r1", "a1", content=both), hook)
    start = Start(found.path.stat().st_size, "r1/aside")
    with found.path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry("u2", "h1")) + "\n")
    assert [turn.uid for turn in turns(found, start)] == ["u2"]


@pytest.mark.parametrize("tip", ["a2", "", "never written"])
def test_a_rewind_into_what_was_read_starts_over(written: Write, tip: str) -> None:
    found = written(*chain("u1", "a1", "u2", "a2"))
    start = Start(found.path.stat().st_size, tip)
    with found.path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry("u3", "a1")) + "\n")
    again = turns(found, start)
    assert (again[0].place, [turn.uid for turn in again]) == (0, ["u1", "a1", "u3"])


def test_a_rewind_within_the_new_part_is_seen_there(written: Write) -> None:
    found = written(*chain("u1", "a1"))
    start = Start(found.path.stat().st_size, "a1")
    with found.path.open("a", encoding="utf-8") as file:
        file.writelines(
            json.dumps(each) + "\n" for each in [*chain("u2", "a2", parent="a1"), *chain("u3", parent="a1")]
        )
    assert [turn.uid for turn in turns(found, start)] == ["u3"]


@pytest.mark.parametrize("offset", [5, 10**9])
def test_a_place_that_is_no_start_of_a_line_any_more_starts_over(written: Write, offset: int) -> None:
    found = written(*chain("u1", "a1"))
    assert [turn.uid for turn in turns(found, Start(offset, "u1"))] == ["u1", "a1"]


def test_case_16_a_half_written_last_line_waits_until_it_is_whole(written: Write) -> None:
    found = written(*chain("u1", "a1"))
    line = json.dumps(entry("u2", "a1")) + "\n"
    with found.path.open("a", encoding="utf-8") as file:
        file.write(line[:40])
    _, tally = turning.read(READER, found)
    assert (tally.kept, dict(tally.skipped)) == (2, {"unfinished last line": 1})
    with found.path.open("a", encoding="utf-8") as file:
        file.write(line[40:])
    assert [turn.uid for turn in turns(found, Start(tally.end, "a1"))] == ["u2"]


def test_t40_bad_lines_byte_marks_and_unknown_types_leave_the_rest_as_it_is(written: Write) -> None:
    found = written(*chain("u1", "a1"))
    first, second = found.path.read_bytes().splitlines()
    odd = [b"\xef\xbb\xbf" + first, b'{"type":"user",', b"[1]", b'{"type":"novel","uuid":"n1"}', b"", second]
    found.path.write_bytes(b"\r\n".join(odd) + b"\r\n")
    assert texts(found) == ["u1", "a1"]
    assert skipped(found) == {"not a JSON object": 2, "unknown record": 1}


def test_t39_a_long_file_with_a_huge_line_is_read_in_little_memory(written: Write) -> None:
    filler = "x" * 6_000
    entries = (entry(f"u{n}", f"u{n - 1}" if n else None, content=filler) for n in range(3_000))
    image = entry("big", "u1", content="i" * (9 * 1024 * 1024))
    found = written(*entries, image, entry("last", "big"))
    tracemalloc.start()
    tally = Tally()
    kept = sum(isinstance(event, Turn) for event in READER.read(found, FROM_THE_START, tally))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (kept, dict(tally.skipped)) == (3_001, {"longer than the limit": 1})
    assert peak < 24 * 1024 * 1024 < found.path.stat().st_size


# Finding


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_sessions_lie_in_the_home_folder_unless_the_configuration_was_moved(platform: str) -> None:
    assert READER.roots(Machine(Path("/home/dev"), platform)) == [Path("/home/dev/.claude/projects")]
    moved = Machine(Path("/home/dev"), platform, {"CLAUDE_CONFIG_DIR": "/etc/claude"})
    assert READER.roots(moved) == [Path("/etc/claude/projects")]


def test_sessions_and_both_kinds_of_subagent_files_are_found_and_nothing_else(tmp_path: Path) -> None:
    config = tmp_path / SESSION  # a name like a session's above the root says nothing
    wanted = [f"-w-app/{SESSION}.jsonl", f"-w-app/{SESSION}/subagents/agent-a1.jsonl", "-w-app/agent-b2.jsonl"]
    other = [
        f"-w-app/{SESSION}/subagents/agent-acompact-c3.jsonl", f"-w-app/{SESSION}/tool-results/x.jsonl",
        f"-w-app/{SESSION}/subagents/workflows/journal.jsonl", "-w-app/agent-aprompt_suggestion-d4.jsonl",
        "-w-app/notes.md", "../history.jsonl",
    ]  # fmt: skip
    for age, name in enumerate([*wanted, *other]):
        path = config / "projects" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(entry("u1", None)) + "\n", encoding="utf-8")
        os.utime(path, (age, age))
    outside = tmp_path / "elsewhere" / "linked.jsonl"
    outside.parent.mkdir()
    outside.write_text("{}\n", encoding="utf-8")
    try:
        (config / "projects" / "-w-app" / "linked.jsonl").symlink_to(outside)
        (config / "projects" / "linked").symlink_to(outside.parent, target_is_directory=True)
    except OSError:
        pass  # links are a privilege on some machines
    for root in (config, config / "projects"):
        found = list(READER.find(root))
        assert [each.path for each in found] == [(config / "projects" / name).resolve() for name in wanted]
    sessions = [event for each in found for event in turning.read(READER, each)[0] if isinstance(event, About)]
    assert [(about.session, about.parent) for about in sessions] == [
        (SESSION, None),
        (f"{SESSION}/agent-a1", SESSION),
        (f"{SESSION}/agent-b2", SESSION),
    ]
    assert list(READER.find(tmp_path / "nowhere")) == []


# Anything at all

PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
FIELDS = st.sampled_from(["type", "text", "content"])
VALUES = st.recursive(
    PLAIN | st.sampled_from(["u1", "a1", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=3),
    max_leaves=4,
)
WHOLE = [
    *chain("u1", "a1", "u2"),
    use("a2", "u2", "t1"),
    result("r1", "a2", "t1", rich={"stdout": ""}),
    *chain("u3", parent="a1"),
    attached("q1", "u3", {"type": "queued_command", "prompt": "p", "origin": {"kind": "human"}}),
    {"type": "summary", "summary": "s", "leafUuid": "u1"},
]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_content_of_a_file_raises(data: st.DataObject) -> None:
    entries = [json.loads(json.dumps(each)) for each in WHOLE]
    for _ in range(3):
        at = data.draw(st.sampled_from(entries))
        inner = [each for each in (at, at.get("message"), at.get("attachment")) if isinstance(each, dict) and each]
        target = data.draw(st.sampled_from(inner))
        target[data.draw(st.sampled_from(sorted(target)))] = data.draw(VALUES)
    raw = "".join(json.dumps(each) + "\n" for each in entries).encode()
    raw = raw[: data.draw(st.integers(0, len(raw)))] + data.draw(st.binary(max_size=20))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{SESSION}.jsonl"
        path.write_bytes(raw)
        events, tally = turning.read(READER, transcript(path), Start(data.draw(st.integers(0, 900)), "u1"))
    found = [event for event in events if isinstance(event, Turn)]
    assert len({turn.uid for turn in found}) == len(found)
    assert tally.end <= len(raw)
