"""Aider's history file: what is the person's, the model's and the console's, and which session it is in (I3)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grounded_mcp.ingest.transcripts import markdown
from grounded_mcp.ingest.transcripts.aider import HISTORY, READER
from grounded_mcp.ingest.transcripts.turns import About, Machine, Start, Transcript, Turn
from tests.turning import DATA, outline, read

FOLDER = DATA / "aider"
SAMPLE = (FOLDER / "two-sessions.md").read_bytes()
FIRST = b"# aider chat started at 2026-03-02 09:15:00\n\n> Aider v0.86.2  \n"


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """A zone set in the environment counts from ``tzset`` on; afterwards the machine's own counts again."""
    if not hasattr(time, "tzset"):
        pytest.skip("this platform does not read TZ")
    with monkeypatch.context() as patch:
        yield patch
    time.tzset()


def at_zone(patch: pytest.MonkeyPatch, name: str) -> None:
    patch.setenv("TZ", name)
    time.tzset()


def written(tmp_path: Path, content: bytes, folder: str = "ferry") -> Transcript:
    path = tmp_path / folder / HISTORY
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return Transcript("aider", path, "1")


def turns(tmp_path: Path, content: bytes) -> list[Turn]:
    return [event for event in read(READER, written(tmp_path, content))[0] if isinstance(event, Turn)]


def test_every_turn_of_two_sessions_is_told_as_a_person_would(tmp_path: Path, zone: pytest.MonkeyPatch) -> None:
    at_zone(zone, "UTC")
    events, tally = read(READER, written(tmp_path, SAMPLE))
    told = [line.replace(str(tmp_path / "ferry"), "FOLDER") for line in outline(events)]
    assert told == (FOLDER / "two-sessions.golden.txt").read_text(encoding="utf-8").splitlines()
    assert (tally.seen, tally.kept, tally.end) == (18, 13, len(SAMPLE))
    assert tally.skipped == {"host record": 4, "copy of an earlier record": 1}


def test_what_the_person_typed_is_kept_word_for_word(tmp_path: Path) -> None:
    said = [turn.text for turn in turns(tmp_path, SAMPLE) if turn.role == "user"]
    assert said == [
        "keep the tide table in UTC",
        "now the tests:\n\n  tests/test_tides.py fails on line 6",
        "/home/sam/notes.md says nothing about leap seconds",
        "write a README",
    ]


def test_headings_and_quotations_of_the_model_are_not_the_persons_or_the_consoles(tmp_path: Path) -> None:
    text = next(turn.text for turn in turns(tmp_path, SAMPLE) if turn.role == "agent")
    assert text.startswith("I will store UTC and convert at the edge.\n\n#### What changes\n> UTC in, local out.\n")
    assert "#### not a prompt  \n" in text
    assert "> not the console  \n" in text
    assert "jump twice" not in text


def test_each_session_has_an_id_of_its_time_and_folder_and_a_copy_has_the_same_turns(tmp_path: Path) -> None:
    here, _ = read(READER, written(tmp_path, SAMPLE))
    there, _ = read(READER, written(tmp_path, SAMPLE, "clone"))
    ids = [event.session for event in here if isinstance(event, About)]
    assert [id.rpartition("-")[0] for id in ids] == ["2026-03-02T09:15:00-1", "2026-03-02T18:40:10-1"]
    assert {event.session for event in here}.isdisjoint({event.session for event in there})
    uids = [event.uid for event in here if isinstance(event, Turn)]
    assert len(set(uids)) == len(uids)
    assert uids == [event.uid for event in there if isinstance(event, Turn)]


def test_two_sessions_of_the_same_second_are_two(tmp_path: Path) -> None:
    events, _ = read(READER, written(tmp_path, FIRST + b"\n#### one  \n\n" + FIRST + b"\n#### one  \n"))
    assert len({event.session for event in events}) == 2
    assert len({event.uid for event in events if isinstance(event, Turn)}) == 2


def test_the_model_is_the_one_that_the_console_named_last(tmp_path: Path) -> None:
    models = [turn.model for turn in turns(tmp_path, SAMPLE) if turn.role == "agent" and turn.text]
    assert models == ["gpt-5", "gpt-5", "claude-sonnet-5"]


def test_an_edit_has_the_outcome_that_the_console_reports(tmp_path: Path) -> None:
    found = turns(tmp_path, SAMPLE)
    files = {call.id: call.files for turn in found for call in turn.calls if call.kind == "edit"}
    results = [(files[o.call], o.ok) for turn in found for o in turn.outcomes if o.call in files]
    assert results == [(("src/tides.py",), True), (("src/show.py",), False), (("README.md",), True)]
    assert [call.command for turn in found for call in turn.calls if call.kind == "command"] == ["pytest -q tests"]


@pytest.mark.parametrize(
    ("zone_name", "expected"),
    [("UTC", 1_772_442_900.0), ("Asia/Kolkata", 1_772_423_100.0), ("America/St_Johns", 1_772_455_500.0)],
)
def test_case_20_the_time_in_a_heading_is_of_the_machines_zone(
    tmp_path: Path, zone: pytest.MonkeyPatch, zone_name: str, expected: float
) -> None:
    at_zone(zone, zone_name)
    assert {turn.at for turn in turns(tmp_path, FIRST + b"\n#### hello  \n")} == {expected}


@pytest.mark.parametrize("start", ["2026-02-30 10:00:00", "0000-00-00 00:00:00"])
def test_case_20_a_heading_with_an_impossible_time_begins_a_session_without_one(tmp_path: Path, start: str) -> None:
    (turn,) = turns(tmp_path, f"# aider chat started at {start}\n\n#### hello  \n".encode())
    assert (turn.text, turn.at) == ("hello", None)


def test_t40_line_ends_of_windows_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    plain = read(READER, written(tmp_path, SAMPLE))[0]
    windows = read(READER, written(tmp_path, b"\xef\xbb\xbf" + SAMPLE.replace(b"\n", b"\r\n")))[0]
    assert outline(windows) == outline(plain)


def test_a_file_whose_trailing_spaces_an_editor_took_away_still_has_its_prompts(tmp_path: Path) -> None:
    content = (
        b"# aider chat started at 2026-03-02 09:15:00\n\n> Aider v0.86.2\n\n#### hello\n\nHi.\n\n> Tokens: 1k sent\n"
    )
    assert [(turn.role, turn.text) for turn in turns(tmp_path, content)] == [("user", "hello"), ("agent", "Hi.")]


def test_a_message_that_is_still_being_written_waits(tmp_path: Path) -> None:
    content = FIRST + b"\n#### hello  \n\nHi, I will lo"
    events, tally = read(READER, written(tmp_path, content))
    assert [event.text for event in events if isinstance(event, Turn)] == ["hello"]
    assert tally.skipped["unfinished last line"] == 1
    events, _ = read(READER, written(tmp_path, content + b"ok at it.\n"))
    assert [event.text for event in events if isinstance(event, Turn)] == ["hello", "Hi, I will look at it."]


@pytest.mark.parametrize("offset", [1, 700, len(SAMPLE)])
def test_reading_again_from_any_place_reads_the_whole_file(tmp_path: Path, offset: int) -> None:
    transcript = written(tmp_path, SAMPLE)
    assert read(READER, transcript, Start(offset, "x"))[0] == read(READER, transcript)[0]


def test_what_stands_before_the_first_prompt_is_not_the_models(tmp_path: Path) -> None:
    content = FIRST + b"> aider --message # Task\n\nEnsure  \nthe pier is long.  \n\n#### go  \n\nGone.\n\n"
    assert [turn.text for turn in turns(tmp_path, content)] == ["go", "Gone."]


def test_a_message_beyond_the_limit_is_counted_and_its_neighbours_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(markdown, "MAX_BLOCK_CHARS", 100)
    monkeypatch.setattr(markdown, "MAX_LINE_BYTES", 1_000)
    content = FIRST + b"\n#### one  \n\n" + b"word\n" * 50 + b"\n#### two  \n\n" + b"x" * 5_000 + b"\nshort\n"
    events, tally = read(READER, written(tmp_path, content))
    assert [event.text for event in events if isinstance(event, Turn)] == ["one", "two", "short"]
    assert tally.skipped["longer than the limit"] == 2


def test_t33_texts_are_not_changed_and_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    (turn,) = turns(tmp_path, FIRST + b"\n#### <system-reminder>a</system-reminder> \xff \xed\xa0\x80  \n")
    assert turn.text == "<system-reminder>a</system-reminder> \ufffd \ufffd\ufffd\ufffd"


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_history_lies_in_the_project_on_every_platform(tmp_path: Path, platform: str) -> None:
    assert READER.roots(Machine(tmp_path, platform, {}, tmp_path / "p")) == [tmp_path / "p" / HISTORY]
    assert READER.roots(Machine(tmp_path, platform)) == []


def test_only_a_regular_file_of_that_name_is_found(tmp_path: Path) -> None:
    transcript = written(tmp_path, SAMPLE)
    (found,) = READER.find(transcript.path)
    assert (found.path, found.size, found.agent) == (transcript.path.resolve(), len(SAMPLE), "aider")
    assert found.stamp.startswith(f"{len(SAMPLE)}:")
    assert list(READER.find(tmp_path / "gone" / HISTORY)) == []
    (tmp_path / "folder").mkdir()
    try:
        (tmp_path / "folder" / HISTORY).symlink_to(transcript.path)
    except OSError:
        return
    assert list(READER.find(tmp_path / "folder")) == []


LINES = st.sampled_from(
    [
        *(
            "# aider chat started at 2026-03-02 09:15:00",
            "#### a  ",
            "#### ",
            "####",
            "#### /code a  ",
            "> Running x  ",
        ),
        *(
            "> Applied edit to a.py  ",
            "> Commit abcdef1 m  ",
            "> b",
            ">",
            "<<<<<<< SEARCH",
            ">>>>>>> REPLACE",
            "```",
            "",
        ),
        *("a.py", "<think>", "</think>", "► **THINKING**", "► **ANSWER**", "> ^C  ", "failed to match lines in a.py"),
    ]
)


@given(st.lists(LINES | st.text(max_size=20), max_size=40), st.binary(max_size=20))
@settings(max_examples=150, deadline=None)
def test_no_content_raises_and_every_block_is_counted(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], tail: bytes
) -> None:
    content = "\n".join(lines).encode("utf-8", "replace") + tail
    events, tally = read(READER, written(tmp_path_factory.getbasetemp(), content))
    assert tally.seen == tally.kept + sum(tally.skipped.values())
    uids = [event.uid for event in events if isinstance(event, Turn)]
    assert len(set(uids)) == len(uids)
