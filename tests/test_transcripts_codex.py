"""Codex's rollouts become turns: what was said and done, told once, and nothing that Codex put in."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from turning import DATA, outline, read

from grounded_mcp.ingest.transcripts.codex import READER
from grounded_mcp.ingest.transcripts.turns import About, Event, Machine, Start, Tally, Transcript, Turn

SAMPLES = ["cli-0.66", "exec-0.171-hooks", "every-kind", "bare-2025"]
SESSION = "019cb001-0000-7000-8000-00000000000a"
Record = dict[str, Any]


def sample(name: str) -> Path:
    return DATA / "codex" / f"{name}.jsonl"


def at(path: Path) -> Transcript:
    return Transcript("codex", path, "")


def turns(events: list[Event]) -> list[Turn]:
    return [event for event in events if isinstance(event, Turn)]


def record(kind: str, second: int = 0, **payload: Any) -> Record:
    return {"timestamp": f"2026-03-01T10:00:{second:02d}.000Z", "type": kind, "payload": payload}


def meta(id: str = SESSION, **more: Any) -> Record:
    return record("session_meta", id=id, cwd="/home/dev/shop", **more)


def item(kind: str, second: int = 0, **payload: Any) -> Record:
    return record("response_item", second, type=kind, **payload)


def asks(*texts: str, second: int = 0, kinds: list[Any] | None = None, **more: Any) -> Record:
    content = [{"type": "input_text", "text": text} for text in texts]
    passed = {} if kinds is None else {"internal_chat_message_metadata_passthrough": {"content_item_kinds": kinds}}
    return item("message", second, role="user", content=content, **passed, **more)


def says(text: str, second: int = 0, **more: Any) -> Record:
    return item("message", second, role="assistant", content=[{"type": "output_text", "text": text}], **more)


def rolls_back(count: object) -> Record:
    return record("event_msg", type="thread_rolled_back", num_turns=count)


def write(path: Path, *records: Record) -> Transcript:
    path.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    return at(path)


def told(path: Path, *records: Record) -> list[str]:
    events, _ = read(READER, write(path, *records))
    return [f"{turn.role}: {turn.text}" for turn in turns(events)]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_session_is_told_as_a_person_would_list_it(name: str) -> None:
    events, tally = read(READER, at(sample(name)))
    assert outline(events) == sample(name).with_suffix(".golden.txt").read_text(encoding="utf-8").splitlines()
    assert tally.kept == len(turns(events))
    assert tally.seen == tally.kept + tally.skipped.total()


def test_what_is_left_out_is_counted_by_its_reason() -> None:
    _, tally = read(READER, at(sample("every-kind")))
    assert tally.seen == 40
    assert tally.skipped == {"host record": 13, "rewound": 2, "unknown record": 2, "no text": 1}


def test_t27_neither_hooks_nor_codex_itself_speak_for_the_person() -> None:
    events, _ = read(READER, at(sample("exec-0.171-hooks")))
    everything = " ".join(turn.text for turn in turns(events))
    assert "CTX" not in everything
    assert "environment_context" not in everything
    assert "SKILL" not in everything


@pytest.mark.parametrize(
    "text",
    [
        "<environment_context>\n  <cwd>/home/dev</cwd>\n</environment_context>",
        "<user_instructions>\nUse tabs.\n</user_instructions>",
        "# AGENTS.md instructions for /home/dev\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>",
        "\n<turn_aborted>\nThe user interrupted the previous turn.\n</turn_aborted>",
        '<SUBAGENT_NOTIFICATION>{"status":"done"}</SUBAGENT_NOTIFICATION>',
        "<user_shell_command>\n<command>\nls\n</command>\n</user_shell_command>",
        "<skill>\n<name>pdf</name>\n</skill>",
    ],
)
def test_a_text_that_codex_put_in_is_no_question(tmp_path: Path, text: str) -> None:
    assert told(tmp_path / "a.jsonl", meta(), asks(text)) == []
    assert told(tmp_path / "a.jsonl", meta(), asks(text, "And what about Rust?")) == ["user: And what about Rust?"]


def test_only_what_was_typed_is_kept_where_the_record_tells_the_kinds_apart(tmp_path: Path) -> None:
    hook = asks("Fix it.", "Prefer tabs.", kinds=["user.text", "hooks.additional_context"])
    alike = asks("<skill> is a strange tag, what is it?", kinds=["user.text"])
    unknown = asks("<environment_context></environment_context>", "Go on.", kinds=["unknown", "unknown"])
    short = asks("One.", "Two.", kinds=["user.text"])
    assert told(tmp_path / "a.jsonl", meta(), hook, alike, unknown, short) == [
        "user: Fix it.",
        "user: <skill> is a strange tag, what is it?",
        "user: Go on.",
        "user: One.\nTwo.",
    ]


def test_the_summary_of_a_compaction_is_not_conversation(tmp_path: Path) -> None:
    summary = record("compacted", message="We fixed it.", replacement_history=[asks("Fix it.")["payload"]])
    assert told(tmp_path / "a.jsonl", meta(), asks("Fix it."), summary, says("Done.")) == [
        "user: Fix it.",
        "agent: Done.",
    ]


@pytest.mark.parametrize(
    ("output", "ok", "exit_code", "text"),
    [
        ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\n2\n", True, 0, "2\n"),
        ("Exit code: 1\nWall time: 0.1 seconds\nTotal output lines: 9\nOutput:\nno", False, 1, "no"),
        ("Wall time: 0.0074 seconds\nOutput:\n{}", None, None, "{}"),
        ("Chunk ID: a1\nWall time: 1 seconds\nProcess exited with code 137\nOutput:\n", False, 137, ""),
        ("Chunk ID: a1\nWall time: 1 seconds\nProcess running with session ID 7\nOutput:\nup", None, None, "up"),
        ("Command: bash -lc 'a\nb'\nChunk ID: a1\nProcess exited with code 0\nOutput:\nb", True, 0, "b"),
        ('{"output":"ok\\n","metadata":{"exit_code":0,"duration_seconds":0.1}}', True, 0, "ok\n"),
        ('{"output":"","metadata":{"exit_code":-1,"duration_seconds":0.1}}', False, -1, ""),
        ('{"output":"cut off', None, None, '{"output":"cut off'),
        ('{"output":1,"metadata":{"exit_code":0}}', None, None, '{"output":1,"metadata":{"exit_code":0}}'),
        ("Plan updated", None, None, "Plan updated"),
        ("The log says:\nExit code: 1\nOutput:\n", None, None, "The log says:\nExit code: 1\nOutput:\n"),
        ("aborted", False, None, "aborted"),
        ("aborted transactions: 0", None, None, "aborted transactions: 0"),
        ("aborted by user after 5.0s", False, None, "aborted by user after 5.0s"),
        ("unsupported call: foo", False, None, "unsupported call: foo"),
        ({"content": "no such tool", "success": False}, False, None, "no such tool"),
        ({"content": [{"type": "input_text", "text": "a"}, {"text": "b"}]}, None, None, "a\nb"),
        ([{"type": "input_text", "text": "Exit code: 0\nOutput:\na"}], True, 0, "a"),
        (None, None, None, ""),
    ],
)
def test_an_output_says_how_a_call_went(
    tmp_path: Path, output: object, ok: bool | None, exit_code: int | None, text: str
) -> None:
    events, _ = read(READER, write(tmp_path / "a.jsonl", item("function_call_output", call_id="c1", output=output)))
    (outcome,) = turns(events)[0].outcomes
    assert (outcome.call, outcome.ok, outcome.exit_code, outcome.text) == ("c1", ok, exit_code, text)


def test_a_call_of_our_own_memory_is_known_by_its_name_in_either_form(tmp_path: Path) -> None:
    apart = item("function_call", name="ground_recall", namespace="mcp__grounded", arguments="{}", call_id="a")
    joined = item("function_call", name="mcp__grounded__ground_recall", arguments="{}", call_id="b")
    events, _ = read(READER, write(tmp_path / "a.jsonl", apart, joined))
    assert [(call.tool, call.kind) for turn in turns(events) for call in turn.calls] == [
        ("mcp__grounded__ground_recall", "memory"),
        ("mcp__grounded__ground_recall", "memory"),
    ]


@pytest.mark.parametrize(
    ("reason", "interrupted"), [("interrupted", True), ("replaced", True), (None, True), ("budget_limited", False)]
)
def test_a_turn_is_interrupted_when_the_person_stopped_it(tmp_path: Path, reason: object, interrupted: bool) -> None:
    stop = record("event_msg", 9, type="turn_aborted", reason=reason)
    events, _ = read(READER, write(tmp_path / "a.jsonl", meta(), asks("Go."), says("Going."), stop))
    assert any(turn.interrupted for turn in turns(events)) is interrupted
    assert [turn.text for turn in turns(events) if turn.text] == ["Go.", "Going."]


def test_turns_that_were_rolled_back_are_left_out(tmp_path: Path) -> None:
    talk = [asks("One."), says("1."), asks("Two."), says("2."), asks("Three."), says("3.")]
    assert told(tmp_path / "a.jsonl", meta(), *talk, rolls_back(2), asks("Four.")) == [
        "user: One.",
        "agent: 1.",
        "user: Four.",
    ]
    assert told(tmp_path / "a.jsonl", meta(), *talk, rolls_back(99), asks("Four.")) == ["user: Four."]
    again = [*talk, rolls_back(1), asks("Four."), rolls_back(2)]
    assert told(tmp_path / "a.jsonl", meta(), *again) == ["user: One.", "agent: 1."]


def test_reading_starts_again_when_turns_that_were_read_have_been_rolled_back(tmp_path: Path) -> None:
    talk = [meta(), asks("One."), says("1."), asks("Two."), says("2.")]
    before, tally = read(READER, write(tmp_path / "a.jsonl", *talk))
    rolled = write(tmp_path / "a.jsonl", *talk, rolls_back(1), asks("Three."))
    after, _ = read(READER, rolled, Start(tally.end, turns(before)[-1].uid))
    assert [turn.text for turn in turns(after)] == ["One.", "1.", "Three."]
    assert after == read(READER, rolled)[0]


def test_the_model_is_the_one_of_the_turn_it_answered_in() -> None:
    events, _ = read(READER, at(sample("every-kind")))
    models = {turn.text: turn.model for turn in turns(events) if turn.text}
    assert models["I'll run them first."] == "gpt-5.3-codex"
    assert models["All 12 tests pass now: the timeout in src/http.ts was 30 s."] == "gpt-5.3-codex-mini"
    assert models["The checkout tests time out in CI. Why?"] is None


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


def fork_of(parent: list[Record], id: str, *more: Record) -> list[Record]:
    """A fork's file: its own first record, then the parent's under the time of the fork."""
    copied = [{**each, "timestamp": "2026-03-05T08:00:00.000Z"} for each in parent]
    return [meta(id, forked_from_id=SESSION), *copied, *more]


def uids(path: Path, *records: Record) -> list[str]:
    return [turn.uid for turn in turns(read(READER, write(path, *records))[0])]


def test_a_fork_repeats_its_parents_turns_under_the_same_uids(tmp_path: Path) -> None:
    call = item("function_call", 3, name="shell", arguments="{}", call_id="c1")
    parent = [meta(), asks("One."), says("1."), call, asks("Two.", second=5)]
    original = uids(tmp_path / "p.jsonl", *parent, says("2."))
    first = uids(tmp_path / "f.jsonl", *fork_of(parent, "fork-a", says("two!"), asks("Three.")))
    of_fork = uids(tmp_path / "g.jsonl", *[meta("fork-b"), *fork_of(parent, "fork-a", says("two!"), says("other"))])
    assert first[:4] == original[:4]
    assert of_fork[:5] == first[:5]
    assert len({*original, *first, *of_fork}) == 4 + 1 + 2 + 1


def test_a_turn_with_an_id_of_its_own_keeps_its_uid_even_where_a_copy_leaves_others_out(tmp_path: Path) -> None:
    one = asks("One.", id="msg_01a228e5-8f59-7070-85cd-c37497958748")
    two = says("2.", id="msg_01a228e5-923d-76f1-8f1a-8961766b2d78")
    parent = uids(tmp_path / "p.jsonl", meta(), one, says("thinking aloud"), two)
    child = uids(tmp_path / "c.jsonl", *fork_of([meta(), one, two], "child"))
    assert child == [parent[0], parent[2]]


def test_equal_words_in_different_sessions_are_different_turns(tmp_path: Path) -> None:
    talk = [asks("Go on."), says("Done.", id="msg_1"), asks("Go on."), says("Done.", id="msg_1")]
    ours = uids(tmp_path / "a.jsonl", meta("session-a"), *talk)
    theirs = uids(tmp_path / "b.jsonl", meta("session-b"), *talk)
    assert len({*ours, *theirs}) == 8


@pytest.mark.parametrize(
    ("given", "parent"),
    [
        ({"source": "cli"}, None),
        ({"source": "cli", "forked_from_id": "other"}, None),
        ({"source": {"subagent": {"thread_spawn": {"parent_thread_id": "main", "depth": 1}}}}, "main"),
        ({"source": {"subagent": "review"}, "parent_thread_id": "main"}, "main"),
        ({"source": {"subagent": "review"}, "forked_from_id": "main"}, "main"),
        ({"source": {"subagent": "compact"}}, "unknown"),
    ],
)
def test_a_subagent_names_the_session_that_started_it(tmp_path: Path, given: Record, parent: str | None) -> None:
    path = tmp_path / "a.jsonl"
    events, _ = read(READER, write(path, meta(session_id="top", git={"branch": "main"}, **given)))
    assert events == [About(SESSION, "/home/dev/shop", "main", parent=parent)]


def test_a_file_without_its_first_record_is_known_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "rollout-2026-03-01T10-00-00-019cb001-0000-7000-8000-0000000000ff.jsonl"
    context = asks("<environment_context>\n  <cwd>/home/dev/lost</cwd>\n</environment_context>")
    events, _ = read(READER, write(path, context, says("Hello.")))
    assert events[0] == About("019cb001-0000-7000-8000-0000000000ff", "/home/dev/lost")
    assert turns(events)[0].session == "019cb001-0000-7000-8000-0000000000ff"


def test_case_16_a_half_written_record_is_told_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    whole = "".join(json.dumps(each) + "\n" for each in (meta(), asks("Fix it."), says("Done.")))
    path.write_text(whole[:-30], encoding="utf-8")
    first, tally = read(READER, at(path))
    assert [turn.text for turn in turns(first)] == ["Fix it."]
    assert tally.skipped["unfinished last line"] == 1
    path.write_text(whole, encoding="utf-8")
    second, _ = read(READER, at(path), Start(tally.end, turns(first)[-1].uid))
    assert [turn.text for turn in turns(second)] == ["Done."]
    assert [*first, *turns(second)] == read(READER, at(path))[0]


def test_t40_line_ends_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + sample("every-kind").read_bytes().replace(b"\n", b"\r\n"))
    assert outline(read(READER, at(path))[0]) == outline(read(READER, at(sample("every-kind")))[0])


def test_t40_bad_lines_in_the_middle_are_counted_and_their_neighbours_kept(tmp_path: Path) -> None:
    good = sample("cli-0.66").read_bytes().splitlines(keepends=True)
    bad = [b'{"timestamp": "2025\n', b"[1, 2]\n", b"\xff\xfe\x00\n", b'{"type": "response_item", "payload": 5}\n']
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join([*good[:9], *bad, *good[9:]]))
    events, tally = read(READER, at(path))
    assert outline(events) == outline(read(READER, at(sample("cli-0.66")))[0])
    assert tally.skipped["not a JSON object"] == 3
    assert tally.skipped["unknown record"] == 1


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_sessions_lie_in_codexs_home_on_every_platform(platform: str) -> None:
    home = Path("/home/dev")
    default = [home / ".codex/sessions", home / ".codex/archived_sessions"]
    assert list(READER.roots(Machine(home, platform))) == default
    assert list(READER.roots(Machine(home, platform, {"CODEX_HOME": " "}))) == default
    assert list(READER.roots(Machine(home, platform, {"CODEX_HOME": "/srv/codex"}))) == [
        Path("/srv/codex/sessions"),
        Path("/srv/codex/archived_sessions"),
    ]


def test_rollouts_are_found_by_age_and_links_are_not_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "sessions", tmp_path / "outside"
    new, old = root / "2026/03/01/rollout-a.jsonl", root / "2026/03/02/rollout-b.jsonl"
    for path, age in ((new, 2_000), (old, 1_000), (outside / "c.jsonl", 500)):
        path.parent.mkdir(parents=True)
        path.write_text("{}\n", encoding="utf-8")
        os.utime(path, (age, age))
    (root / "notes.txt").write_text("no", encoding="utf-8")
    (root / "linked.jsonl").symlink_to(outside / "c.jsonl")
    (root / "linked").symlink_to(outside)
    found = list(READER.find(root))
    assert [transcript.path.name for transcript in found] == ["rollout-b.jsonl", "rollout-a.jsonl"]
    assert {(transcript.agent, transcript.size) for transcript in found} == {("codex", 3)}
    assert found[0].stamp != found[1].stamp
    assert [transcript.path for transcript in READER.find(new)] == [new.resolve()]
    assert list(READER.find(tmp_path / "gone")) == []


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = [
    "type", "role", "content", "id", "session_id", "call_id", "name", "namespace", "arguments", "input", "action",
    "output", "timestamp", "cwd", "git", "source", "model", "num_turns", "reason", "status", "payload", "text",
    "internal_chat_message_metadata_passthrough",
]  # fmt: skip
_KINDS = st.sampled_from(
    ["message", "function_call", "local_shell_call", "web_search_call", "function_call_output", "turn_aborted",
     "thread_rolled_back", "session_meta", "turn_context", "response_item", "event_msg", "compacted"]
)  # fmt: skip
_PAYLOADS = st.dictionaries(st.sampled_from(_FIELDS), _VALUES | _KINDS | st.just("user"), max_size=8)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.fixed_dictionaries({"type": _KINDS | _VALUES, "payload": _PAYLOADS | _VALUES}) | _PAYLOADS, max_size=6)
)
def test_no_value_in_place_of_another_stops_a_reading(tmp_path_factory: pytest.TempPathFactory, odd: list[Any]) -> None:
    path = tmp_path_factory.getbasetemp() / "odd-codex.jsonl"
    transcript = write(path, meta(), *odd, says("Still here."))
    events, tally = read(READER, transcript)
    assert tally.seen == tally.kept + tally.skipped.total() == len(odd) + 2
    assert tally.kept == len(turns(events))


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 2_000))
def test_no_bytes_stop_a_reading(tmp_path_factory: pytest.TempPathFactory, noise: bytes, cut: int) -> None:
    path = tmp_path_factory.getbasetemp() / "noise-codex.jsonl"
    path.write_bytes(sample("bare-2025").read_bytes()[:cut] + noise)
    events, tally = read(READER, at(path))
    assert isinstance(events[0], About)
    assert tally.end <= path.stat().st_size


def test_a_file_that_is_gone_is_an_error_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(READER.read(at(tmp_path / "gone.jsonl"), Start(), Tally()))
