"""The pure rooms of a context pack: what a passage decides and when, what a document says that is not so, where a file
begins to answer, and the files as they are now."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grounded_mcp.pack.decisions import decision, stated_date
from grounded_mcp.pack.disagree import Setting, differing, gone, stated
from grounded_mcp.pack.disk import Disk
from grounded_mcp.pack.pointing import Line, line_of
from grounded_mcp.text import Analyzer, fingerprint
from grounded_mcp.values import Clean, Item, Kind, Passage, PassageId, StoredPassage
from tests.candidates import NOW, item

ANALYZER = Analyzer()


def passage(
    body: str, key: str = "docs/notes.md", heading: str = "", form: str = "guidance", kind: Kind = "doc"
) -> StoredPassage:
    about = item(kind, "x", key=key, attrs={"form": form}, updated_at=NOW)
    return StoredPassage(PassageId(1), Passage(0, Clean(body), heading, 1, 9), about, 1, len(body))


def day(year: int, month: int, of_month: int) -> float:
    return datetime(year, month, of_month, tzinfo=UTC).timestamp()


# --- decisions (C4) -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "sign"),
    [
        (passage("Postgres holds it.", key="docs/adr/0004-store.md"), "decision record"),
        (passage("Postgres holds it.", key="docs/decisions/0004-store.md"), "decision record"),
        (passage("Postgres holds it.", key="adr-0004.md"), "decision record"),
        (passage("- `open` takes a path.", key="CHANGELOG.md"), "changelog"),
        (passage("- `open` takes a path.", key="docs/release-notes.rst"), "changelog"),
        (passage("Postgres holds it.", heading="Store > Why one file"), "heading"),
        (passage("Postgres holds it.", heading="Decision"), "heading"),
        (passage("We decided to keep one file."), "sentence"),
        (passage("Redis was ruled out because it forgets."), "sentence"),
        (passage("Let's go with one file.", key="claude-code:1", kind="session"), "sentence"),
        (passage("I'll use the lock instead, it is simpler.", key="claude-code:1", kind="session"), "sentence"),
    ],
)
def test_c4_a_decision_is_known_by_its_place_its_heading_or_a_sentence_that_decides(
    found: StoredPassage, sign: str
) -> None:
    made = decision(found)
    assert made is not None
    assert made.sign == sign


@pytest.mark.parametrize(
    "found",
    [
        passage("Postgres holds it."),
        passage("Postgres holds it.", key="docs/adr/README.md"),
        passage("Postgres holds it.", heading="Why one file > Install"),
        passage("# We decided to keep one file.", key="src/store.py", form="live"),
        passage("How do tests run?", key="claude-code:1", kind="session"),
    ],
    ids=["prose", "index of records", "only its parent is why", "a program's comment", "a question"],
)
def test_c4_what_only_describes_decides_nothing(found: StoredPassage) -> None:
    assert decision(found) is None


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-03-01-berths.md", day(2026, 3, 1)),
        ("## 1.2.0 (2024/12/31)", day(2024, 12, 31)),
        ("Decided on 1 March 2026.", day(2026, 3, 1)),
        ("Decided on Mar. 1, 2026.", day(2026, 3, 1)),
        ("2026-02-30", None),
        ("12026-03-01", None),
        ("version 1.2.3", None),
    ],
)
def test_c4_a_date_is_one_that_the_text_states_and_the_calendar_has(text: str, at: float | None) -> None:
    assert stated_date(text) == at


@given(st.dates(date(1900, 1, 1), date(2099, 12, 31)))
@settings(max_examples=50)
def test_c4_every_day_reads_the_same_in_digits_and_in_words(on: date) -> None:
    at = day(on.year, on.month, on.day)
    assert stated_date(f"on {on:%Y-%m-%d}:") == at
    assert stated_date(f"on {on.day} {on:%B} {on.year}:") == at
    assert stated_date(f"on {on:%b} {on.day}, {on.year}:") == at


def test_c4_a_heading_dates_a_decision_before_its_path_and_its_text() -> None:
    made = decision(passage("We decided it, 2026-03-03.", key="notes/2026-03-02.md", heading="2026-03-01"))
    assert made is not None
    assert made.at == day(2026, 3, 1)


def test_c4_what_an_entry_of_a_changelog_says_does_not_date_it() -> None:
    undated = decision(passage('- "since 2026-10-01" is read as a time.', key="CHANGELOG.md"))
    dated = decision(passage("1.2, 2026-09-01\n\n- since 2026-10-01", key="CHANGELOG.md"))
    assert undated is not None and undated.at is None  # noqa: PT018 - one decision
    assert dated is not None and dated.at == day(2026, 9, 1)  # noqa: PT018 - one decision


def test_c4_a_document_that_states_no_date_has_none_and_a_conversation_its_time() -> None:
    undated = decision(passage("We decided to keep one file."))
    said = decision(passage("We decided to keep one file.", key="claude-code:1", kind="session"))
    assert undated is not None and undated.at is None  # noqa: PT018 - one decision
    assert said is not None and said.at == NOW  # noqa: PT018 - one decision


# --- disagreements (C2) --------------------------------------------------------------------------------------


def test_c2_a_path_in_backticks_that_is_not_there_is_gone_if_its_first_folder_is_there() -> None:
    there = {"src", "src/here.py"}
    text = "`src/here.py`, `src/gone.py`, `other/gone.py`, src/bare.py, `src/../x/up.py`, `src/gone.py`"
    assert list(gone(text, there.__contains__)) == ["src/gone.py"]


@pytest.mark.parametrize(
    ("text", "settings_"),
    [
        ("retry_limit = 5", {"retry_limit": "5"}),
        ("`retry_limit` defaults to `5`", {"retry_limit": "5"}),
        ("MAX_SIZE: int = 10", {"max_size": "10"}),
        ('server.host: "localhost"', {"server.host": "localhost"}),
        ("limit = 5", {}),
        ("retry_limit = compute(5)", {}),
        ("retry_limit = 5\nretry_limit = 6", {}),
        ("retry_limit = 5%", {}),
    ],
)
def test_c2_a_setting_is_a_programs_name_with_one_plain_value(text: str, settings_: dict[str, str]) -> None:
    assert stated(text) == settings_


def test_c2_a_setting_differs_only_where_all_live_files_agree_on_another_value() -> None:
    said = {"retry_limit": "5"}
    assert list(differing(said, [{"retry_limit": "3"}])) == [(Setting("retry_limit", "5"), Setting("retry_limit", "3"))]
    assert list(differing(said, [{"retry_limit": "3"}, {"retry_limit": "5"}])) == []
    assert list(differing(said, [{"retry_limit": "3"}, {"retry_limit": "4"}])) == []
    assert list(differing(said, [{"other_limit": "3"}])) == []


@given(st.text(max_size=200))
@settings(max_examples=100)
def test_c2_a_text_never_disagrees_with_itself(text: str) -> None:
    assert list(differing(stated(text), [stated(text)])) == []
    assert list(gone(text, lambda _: True)) == []


# --- where to read -------------------------------------------------------------------------------------------


def at(passage: Passage, task: str) -> int | None:
    """The line's number for a task."""
    words = [(word.surface, word.terms) for word in ANALYZER.query_words(task)]
    line = line_of(passage, words, ANALYZER.index)
    assert line is None or line.text == passage.body.splitlines()[line.number - (passage.start_line or 0)]
    return line and line.number


def test_c4_the_line_is_the_one_with_most_of_the_words_and_of_equal_ones_a_definition() -> None:
    body = "# allocate it\ndef allocate(berth):\n    return berth\n"
    here = Passage(0, Clean(body), "", 41, 43)
    assert at(here, "allocate berths") == 42
    assert at(here, "return") == 43
    assert at(here, "elsewhere") == 41
    assert at(Passage(0, Clean(body)), "allocate") is None


@pytest.mark.parametrize(
    ("body", "task", "number"),
    [
        ('[berths]\nmode = "first"\nlimit = 12\n', "what is the limit of berths", 3),
        ("[limits]\nfirst = 1\nlimit = 12\n", "limits", 3),
        ('{\n  "name": "quay",\n  "berthLimit": 12\n}\n', "berthLimit", 3),
        ("service:\n  # how long a ship waits\n  port: 8090\n", "which port has the service", 3),
        ("class Berths:\n    LIMIT: int = 12\n    names = []\n", "limit of berths", 2),
        ("export const retries = 3\n", "retries", 1),
        ("def allocate_berth(ship):\n    berth = pool.pop()\n    return berth\n", "allocate a berth", 1),
        ("def berth(ship):\n    slot = 1\n    return slot\n", "berth", 1),
        ("# Berths\n\nThe limit of berths is told by the pilot.\n\n# x\n", "limit of berths", 3),
    ],
    ids=["toml", "same word", "json", "yaml", "class", "const", "computed", "another setting", "prose"],
)
def test_c2_a_line_that_sets_a_value_comes_before_the_head_of_its_section(body: str, task: str, number: int) -> None:
    assert at(Passage(0, Clean(body), "", 1, 9), task) == number


@given(st.text(max_size=100), st.text(max_size=20), st.integers(1, 1000))
@settings(max_examples=100)
def test_c4_the_line_lies_within_the_passage(body: str, task: str, start: int) -> None:
    words = [(word.surface, word.terms) for word in ANALYZER.query_words(task)]
    line = line_of(Passage(0, Clean(body), "", start, start + 100), words, ANALYZER.index)
    assert line is not None
    assert start <= line.number < start + max(1, len(body.splitlines()))


# --- the files now (C6) --------------------------------------------------------------------------------------


def indexed(root: Path, name: str) -> Item:
    """The file as a sync would have stored it."""
    found = (root / name).stat()
    attrs = {"size": str(found.st_size), "mtime_ns": str(found.st_mtime_ns)}
    return item("doc", "x", key=name, attrs=attrs, content_hash=fingerprint((root / name).read_text(encoding="utf-8")))


def test_c6_a_file_is_as_indexed_changed_or_missing(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one = 1\n", encoding="utf-8")
    held, disk = indexed(tmp_path, "a.py"), Disk(tmp_path)
    assert disk.state(held) == "as indexed"
    os.utime(tmp_path / "a.py", ns=(1, 1))
    assert disk.state(held) == "as indexed"
    (tmp_path / "a.py").write_text("two = 2\n", encoding="utf-8")
    assert disk.state(held) == "changed"
    (tmp_path / "a.py").unlink()
    assert disk.state(held) == "missing"


def test_c6_a_line_of_a_file_that_changed_is_where_it_is_now(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one = 1\ntwo = 2\n", encoding="utf-8")
    held, disk = indexed(tmp_path, "a.py"), Disk(tmp_path)
    (tmp_path / "a.py").write_text("two = 2\nnew = 0\none = 1\nsix = 6\n    two = 2\n", encoding="utf-8")
    assert disk.line(held, Line(2, "two = 2"), "changed") == 1
    assert disk.line(held, Line(4, "two = 2"), "changed") == 5
    assert disk.line(held, Line(1, "gone = 1"), "changed") is None
    assert disk.line(held, Line(2, "two = 2"), "as indexed") == 2


def test_c6_what_is_no_file_has_no_state_and_no_name_reaches_out_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out.py").write_text("x = 1\n", encoding="utf-8")
    (tmp_path / "in" / "link.py").symlink_to(tmp_path / "out.py")
    disk = Disk(tmp_path / "in")
    assert disk.state(item("fact", "f", key="out.py")) is None
    assert disk.state(item("doc", "d", key="link.py", content_hash=fingerprint("x = 1\n"))) != "as indexed"
    assert not disk.has("../out.py")
    assert not disk.has("link.py")
    assert disk.has(".")
    assert not disk.has("a\0b")
