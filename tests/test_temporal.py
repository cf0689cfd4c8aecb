"""Time expressions: which window each means, and what only looks like one (R6)."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grounded_mcp.ingest.transcripts.exchanges import Exchange
from grounded_mcp.ingest.transcripts.passages import passages
from grounded_mcp.recall import lanes
from grounded_mcp.recall.temporal import (
    MAX_CHARS,
    TemporalOptions,
    Window,
    closeness,
    nudge,
    only_time,
    window,
    without,
)
from grounded_mcp.stores.sqlite import SqliteStore
from grounded_mcp.text import Analyzer
from grounded_mcp.values import Clean, Item, Passage, PassageId, Query, Record, ScopeFilter, StoredPassage

DAY = 86_400.0


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


NOW = at("2026-11-29 15:30")
"""A Sunday."""
RELEASES = {"v2.2": at("2026-03-01"), "v2.3": at("2026-06-01 12:00"), "2.3": at("2026-06-01 12:00")}


def read(text: str) -> Window:
    found = window(text, NOW, RELEASES.get)
    assert found is not None
    return found


def bounds(text: str) -> tuple[float, float]:
    found = read(text)
    return found.since, found.until


# An empty bound is an open one.
SAID = [
    ("what did we do yesterday", "2026-11-28", "2026-11-29"),
    ("what changed today", "2026-11-29", "2026-11-30"),
    ("this morning's work on the parser", "2026-11-29 05:00", "2026-11-29 12:00"),
    ("what broke this morning", "2026-11-29 05:00", "2026-11-29 12:00"),
    ("what did we do last night", "2026-11-28 18:00", "2026-11-29 06:00"),
    ("what did we do last week", "2026-11-16", "2026-11-23"),
    ("what did we do this week", "2026-11-23", "2026-11-30"),
    ("in the past week", "2026-11-22 15:30", "now"),
    ("what changed in the last week", "2026-11-22 15:30", "now"),
    ("over the past month", "2026-10-30 15:30", "now"),
    ("last month", "2026-10-01", "2026-11-01"),
    ("last quarter", "2026-07-01", "2026-10-01"),
    ("last year", "2025-01-01", "2026-01-01"),
    ("what did we decide this year", "2026-01-01", "2027-01-01"),
    ("in the past 7 days", "2026-11-22 15:30", "now"),
    ("what happened in the last 3 weeks", "2026-11-08 15:30", "now"),
    ("2 days ago", "2026-11-27", "2026-11-28"),
    ("two months ago", "2026-09-15 15:30", "2026-10-15 15:30"),
    ("a year ago", "2025-05-31 03:30", "2026-05-31 03:30"),
    ("a couple of weeks ago", "2026-11-01 15:30", "2026-11-22 15:30"),
    ("a few days ago", "2026-11-24 15:30", "2026-11-27 15:30"),
    ("what did we ship in March", "2026-03-01", "2026-04-01"),
    ("what did we ship in may", "2026-05-01", "2026-06-01"),
    ("March 2026", "2026-03-01", "2026-04-01"),
    ("what did we do on 2026-02-03", "2026-02-03", "2026-02-04"),
    ("since 2026-10-01", "2026-10-01", "now"),
    ("before 5 March", "", "2026-03-05"),
    ("after 5 March", "2026-03-06", "now"),
    ("until 5 March", "", "2026-03-06"),
    ("between 3 and 5 March 2026", "2026-03-03", "2026-03-06"),
    ("between August 11 and August 15 2023", "2023-08-11", "2023-08-16"),
    ("between March and May", "2026-03-01", "2026-06-01"),
    ("between March and May 2025", "2025-03-01", "2025-06-01"),
    ("from 2026-01-05 to 2026-01-11", "2026-01-05", "2026-01-12"),
    ("from January 5 onwards", "2026-01-05", "now"),
    ("week of January 12", "2026-01-12", "2026-01-19"),
    ("what did we work on in the week of 2 February 2026", "2026-02-02", "2026-02-09"),
    ("the week starting 2026-02-02", "2026-02-02", "2026-02-09"),
    ("the week beginning February 2, 2026", "2026-02-02", "2026-02-09"),
    ("the week ending 8 Feb 2026", "2026-02-02", "2026-02-09"),
    ("on 14 February", "2026-02-14", "2026-02-15"),
    ("on Monday", "2026-11-23", "2026-11-24"),
    ("last Tuesday", "2026-11-24", "2026-11-25"),
    ("on Wednesday afternoon", "2026-11-25 12:00", "2026-11-25 18:00"),
    ("last weekend", "2026-11-21", "2026-11-23"),
    ("over the weekend", "2026-11-28", "2026-11-30"),
    ("this past weekend", "2026-11-28", "2026-11-30"),
    ("2026-W05", "2026-01-26", "2026-02-02"),
    ("in week 5 of 2026", "2026-01-26", "2026-02-02"),
    ("Q3 2025", "2025-07-01", "2025-10-01"),
    ("in Q3", "2026-07-01", "2026-10-01"),
    ("2025-Q3", "2025-07-01", "2025-10-01"),
    ("third quarter of 2025", "2025-07-01", "2025-10-01"),
    ("first half of 2025", "2025-01-01", "2025-07-01"),
    ("in the first half of February", "2026-02-01", "2026-02-15"),
    ("early March", "2026-03-01", "2026-03-11"),
    ("mid-February", "2026-02-10", "2026-02-20"),
    ("at the end of March 2026", "2026-03-22", "2026-04-01"),
    ("beginning of November 2022", "2022-11-01", "2022-11-11"),
    ("the second week of November", "2026-11-08", "2026-11-15"),
    ("the last week of January", "2026-01-25", "2026-02-01"),
    ("two weeks before August 11, 2023", "2023-07-28", "2023-08-04"),
    ("the week before August 3, 2023", "2023-07-27", "2023-08-03"),
    ("the day after 2026-02-03", "2026-02-04", "2026-02-05"),
    ("the Sunday before October 25, 2022", "2022-10-23", "2022-10-24"),
    ("last weekend before April 10, 2023", "2023-04-08", "2023-04-10"),
    ("February 3-7, 2026", "2026-02-03", "2026-02-08"),
    ("3–7 February 2026", "2026-02-03", "2026-02-08"),
    ("in 2025", "2025-01-01", "2026-01-01"),
    ("since 2024", "2024-01-01", "now"),
    ("late 2025", "2025-09-01", "2026-01-01"),
    ("last summer", "2026-06-01", "2026-09-01"),
    ("in summer 2021", "2021-06-01", "2021-09-01"),
    ("during the summer", "2026-06-01", "2026-09-01"),
    ("the day before yesterday", "2026-11-27", "2026-11-28"),
    ("the week before last", "2026-11-09", "2026-11-16"),
    ("more than 2 weeks ago", "", "2026-11-12 03:30"),
    ("in the last 24 hours", "2026-11-28 15:30", "now"),
    ("past 7d", "2026-11-22 15:30", "now"),
    ("2h ago", "2026-11-29 13:00", "2026-11-29 14:00"),
    ("29 February", "2024-02-29", "2024-03-01"),
    ("on the 5th of March", "2026-03-05", "2026-03-06"),
    ("March 5th", "2026-03-05", "2026-03-06"),
    ("around 5 March 2026", "2026-03-02", "2026-03-09"),
    ("last Friday on 23 January, 2022", "2022-01-23", "2022-01-24"),
    ("in December", "2025-12-01", "2026-01-01"),
    ("last March", "2026-03-01", "2026-04-01"),
    ("last November", "2025-11-01", "2025-12-01"),
    ("by July 10, 2022", "", "2022-07-11"),
    ("as of December 2023", "", "2024-01-01"),
    ("December 1,2023", "2023-12-01", "2023-12-02"),
    ("between Monday and Wednesday", "2026-11-23", "2026-11-26"),
    ("H2 2025", "2025-07-01", "2026-01-01"),
    ("from last week", "2026-11-16", "2026-11-23"),
    ("weekend of 14 February", "2026-02-14", "2026-02-16"),
    ("2026-02-03T10:00:00Z", "2026-02-03", "2026-02-04"),
    ("on the evening of 7 July, 2023", "2023-07-07 18:00", "2023-07-08"),
    ("What did we agree about last week?", "2026-11-16", "2026-11-23"),
    ("as mentioned on 3 June, 2023?", "2023-06-03", "2023-06-04"),
    ("at the end of last week", "2026-11-21", "2026-11-23"),
    ("from Monday to Wednesday", "2026-11-23", "2026-11-26"),
    ("January 2026 to March 2026", "2026-01-01", "2026-04-01"),
    ("in the 2nd half of 2025", "2025-07-01", "2026-01-01"),
    ("the week commencing 2 March 2026", "2026-03-02", "2026-03-09"),
    ("2026-02-03 – 2026-02-05", "2026-02-03", "2026-02-06"),
    ("on 2026/02/03", "2026-02-03", "2026-02-04"),
    ("this quarter", "2026-10-01", "2027-01-01"),
    ("previous month", "2026-10-01", "2026-11-01"),
    ("this March", "2026-03-01", "2026-04-01"),
    ("the week of 2026-02-04", "2026-02-02", "2026-02-09"),
    ("since yesterday", "2026-11-28", "now"),
    ("until last Friday", "", "2026-11-28"),
    ("all of last month", "2026-10-01", "2026-11-01"),
    ("up to 2026-03-01", "", "2026-03-02"),
    ("starting March 2026", "2026-03-01", "now"),
    ("throughout 2025", "2025-01-01", "2026-01-01"),
    ("between November and February", "2025-11-01", "2026-03-01"),
]


def moment(text: str, otherwise: float) -> float:
    return NOW if text == "now" else at(text) if text else otherwise


@pytest.mark.parametrize(("said", "since", "until"), SAID)
def test_r6_a_time_expression_becomes_its_window(said: str, since: str, until: str) -> None:
    expected = (moment(since, -math.inf), moment(until, math.inf))
    assert bounds(said) == expected
    assert bounds(f"what did we do {said}") == expected


NO_TIME = [
    "when did we switch to postgres",
    "when was the cache added",
    "it may fail on 5 retries",
    "the service may be restarted",
    "this may break the build",
    "this MAY be null",
    "March through the failing tests",
    "how do we march over the list",
    "the second attempt of the parser",
    "in a second process",
    "every second",
    "listen on port 8080",
    "port 2026 is taken",
    "bind to localhost:2026",
    "KB-2026 ticket",
    "ticket PROJ-2025 status",
    "why does v2.3 fail",
    "python 3.11 support",
    "since python is slow",
    "2026 tests passed",
    "reduce it in 2000 lines",
    "in 2000 requests",
    "between 2000 and 3000 lines",
    "100 days retention",
    "retention of 100 days",
    "keep logs for 7 days",
    "a 30 days trial",
    "session expires after 2 weeks",
    "cache for 24 hours",
    "commit 2026abc",
    "deadbeef2026-02",
    "uuid 2026-0205-aaaa",
    "docs/2026-02-03-plan.md",
    "file log_2026-02-03.txt",
    "how do we configure beans in Spring",
    "in Spring Boot",
    "spring cleaning",
    "H2 database",
    "h1 heading",
    "only 5 may run at once",
    "at most 2 march in step",
    "step 3 may hang",
    "exit early may fail",
    "late may be a problem",
    "before may is called",
    "sep field",
    "in oct or hex",
    "written by June",
    "ask May about it",
    "April's pull request",
    "on Mondays we deploy",
    "every Monday",
    "the Monday.com integration",
    "the last commit",
    "last 100 lines",
    "the last minute",
    "next week",
    "next month",
    "tomorrow",
    "in the next 2 weeks",
    "year zero handling",
    "the weekly report",
    "day of week calculation",
    "month names localisation",
    "fall back to polling",
    "winter theme",
    "sunset the API",
    "dec 10",
    "dec to hex conversion",
    "jan the developer",
    "week number formatting",
    "sprint week",
    "monthly digest",
    "200 OK in 2 seconds",
    "RFC 2026",
    "RFC 3339 dates",
    "ISO 8601 format",
    "2.3.1 release notes",
    "error 2019 on start",
    "version 2024.1",
    "v2026.1",
    "the year field",
    "today_count variable",
    "yesterdays",
    '"sun" and "sat"',
    "bug 5 in mar file",
    "1/2 of the tests",
    "12/24 split",
    "10-12 workers",
    "2 to 3 may be enough",
    "Q3 of the form",
    "q4 quantisation",
    "W05 board",
    "2025 in total",
    "model gpt-4-2025-01",
    "sha 20260203",
    "timeout after 30 days",
    "more than 5 days",
    "older than 3 months",
    "in 2 days",
    "within 2 days",
    "the 5th attempt",
    "python 3.12 in 2.3",
]


@pytest.mark.parametrize("text", NO_TIME)
def test_r6_what_is_no_time_is_no_window(text: str) -> None:
    assert window(text, NOW, RELEASES.get) is None


RELEASED = [
    ("before the release of v2.3", "", "2026-06-01 12:00"),
    ("what did we fix before v2.3?", "", "2026-06-01 12:00"),
    ("since v2.3", "2026-06-01 12:00", "now"),
    ("after we released v2.3", "2026-06-01 12:00", "now"),
    ("since the 2.3 release", "2026-06-01 12:00", "now"),
    ("between v2.2 and v2.3", "2026-03-01", "2026-06-01 12:00"),
    ("around the release of v2.3", "2026-05-29 12:00", "2026-06-04 12:00"),
]


@pytest.mark.parametrize(("said", "since", "until"), RELEASED)
def test_r6_a_release_is_a_time_where_its_date_is_known(said: str, since: str, until: str) -> None:
    assert bounds(said) == (moment(since, -math.inf), moment(until, math.inf))
    assert window(said, NOW) is None


def test_r6_a_release_that_nobody_knows_is_no_window() -> None:
    assert window("before the release of v9.9", NOW, RELEASES.get) is None


def test_a_version_is_only_looked_up_where_the_words_ask_for_a_time() -> None:
    asked: list[str] = []
    window("why does v2.3 fail with python 3.11", NOW, lambda version: asked.append(version))
    assert asked == []


@pytest.mark.parametrize(
    ("text", "words", "rest"),
    [
        (
            "what did we work on in the week of January 5, 2026",
            "in the week of January 5, 2026",
            "what did we work on ",
        ),
        ("what broke this morning?", "this morning", "what broke ?"),
        ("between March and May, what changed?", "between March and May", ", what changed?"),
        ("which bugs since 2026-10-01 were fixed", "since 2026-10-01", "which bugs  were fixed"),
        ("fixes from last week", "from last week", "fixes "),
    ],
)
def test_r6_the_expression_is_told_as_it_was_written(text: str, words: str, rest: str) -> None:
    found = read(text)
    assert (found.words, without(text, found)) == (words, rest)


@pytest.mark.parametrize(
    ("text", "precise"),
    [
        ("on 5 March 2026", True),
        ("last week", True),
        ("2026-W05", True),
        ("before 5 March", True),
        ("between March and May", False),
        ("in March", False),
        ("early March 2026", False),
        ("a few days ago", False),
        ("last summer", False),
    ],
)
def test_a_window_says_whether_it_is_a_guess(text: str, precise: bool) -> None:
    assert read(text).precise is precise


@pytest.mark.parametrize(
    ("text", "only"),
    [
        ("what did we work on in the week of January 5, 2026", True),
        ("What happened yesterday?", True),
        ("list everything we discussed last month", True),
        ("2026-02-03", True),
        ("what did we decide about caching last week", False),
        ("Which sessions touched auth.py in March?", False),
        ("错误 yesterday", False),
    ],
)
def test_a_question_for_a_time_and_nothing_else_is_told_apart(text: str, only: bool) -> None:
    assert only_time(text, read(text)) is only


def test_of_two_times_the_one_with_a_year_counts() -> None:
    assert bounds("the issue from last week, as filed on 2026-02-03") == (at("2026-02-03"), at("2026-02-04"))
    assert bounds("yesterday or last week") == (at("2026-11-28"), at("2026-11-29"))


def test_a_month_that_has_not_begun_is_last_years() -> None:
    assert [window("in March", at(now), None) for now in ("2026-02-28 23:00", "2026-03-01")] == [
        Window(at("2025-03-01"), at("2025-04-01"), "in March", False, 0),
        Window(at("2026-03-01"), at("2026-04-01"), "in March", False, 0),
    ]


def test_a_pasted_log_is_not_searched_for_dates() -> None:
    log = "why does this fail?" + " x" * MAX_CHARS + " 2026-02-03T10:00:00Z started"
    assert window(log, NOW) is None


_WORDS = ["in", "on", "the", "week", "of", "last", "first", "half", "before", "March", "may", "5", "31", "2026", "Q3"]
_WORDS += ["ago", "days", "since", "between", "and", "Monday", "9999", "0", "year", "2026-02-30", "v2.3", "end", "-"]


@given(st.lists(st.sampled_from(_WORDS), max_size=12), st.floats(0.0, 4e9))
@settings(max_examples=200, deadline=None)
def test_any_words_make_a_window_that_is_in_order_and_in_the_text_or_none(words: list[str], now: float) -> None:
    text = " ".join(words)
    found = window(text, now, {"v2.3": 1e9}.get)
    if found is not None:
        assert found.since <= found.until
        assert found.words
        assert text[found.start :].startswith(found.words)


@given(st.text(max_size=80), st.floats(0.0, 4e9))
@settings(max_examples=100, deadline=None)
def test_no_text_raises(text: str, now: float) -> None:
    found = window(text, now)
    assert found is None or closeness(found, 0.0, now) >= 0.0


@given(st.dates(date(1990, 1, 1), date(2099, 12, 31)), st.floats(0.0, 4e9))
@settings(max_examples=60, deadline=None)
def test_r6_a_date_with_its_year_is_that_day_in_every_notation_whatever_the_clock_says(day: date, now: float) -> None:
    first = datetime(day.year, day.month, day.day, tzinfo=UTC)
    expected = (first.timestamp(), (first + timedelta(days=1)).timestamp())
    for form in ("%Y-%m-%d", "%Y/%m/%d", "%d %B %Y", "%B %d, %Y", "%b %d, %Y", "%d of %B, %Y"):
        found = window(f"what did we do on {first:{form}}?", now)
        assert found is not None
        assert found[:2] == expected, form


@given(st.dates(date(2000, 1, 1), date(2099, 12, 31)), st.dates(date(2010, 1, 1), date(2099, 12, 31)))
@settings(max_examples=60, deadline=None)
def test_r6_a_date_without_its_year_is_the_latest_that_has_begun(day: date, today: date) -> None:
    now = datetime(today.year, today.month, today.day, 12, tzinfo=UTC).timestamp()
    found = window(f"on {day.day} {day:%B}", now)
    assert found is not None
    assert found.since <= now
    leap = (day.month, day.day) == (2, 29)
    assert now - found.since < (8 * 366 if leap else 366) * DAY
    assert datetime.fromtimestamp(found.since, UTC).strftime("%m-%d") == f"{day:%m-%d}"


# --- closeness --------------------------------------------------------------------------------------------

WEEK = Window(at("2026-01-05"), at("2026-01-12"), "", True, 0)


@pytest.mark.parametrize(
    ("began", "ended", "expected"),
    [
        ("2026-01-07", "2026-01-07", 1.0),
        ("2025-12-01", "2026-01-05", 1.0),
        ("2025-12-01", "2026-03-01", 1.0),
        ("2026-01-19", "2026-02-19", 0.367879),
        ("2025-12-01", "2025-12-22", 0.135335),
    ],
)
def test_r6_closeness_is_1_where_they_touch_and_falls_with_the_windows_own_length(
    began: str, ended: str, expected: float
) -> None:
    assert round(closeness(WEEK, at(began), at(ended)), 6) == expected


def test_a_day_is_the_shortest_scale_and_a_week_that_of_an_open_window() -> None:
    hour = Window(at("2026-01-05 10:00"), at("2026-01-05 11:00"), "", True, 0)
    before = Window(-math.inf, at("2026-01-05"), "", True, 0)
    assert round(closeness(hour, at("2026-01-06 11:00"), at("2026-01-06 11:00")), 6) == 0.367879
    assert round(closeness(before, at("2026-01-12"), at("2026-01-12")), 6) == 0.367879
    assert closeness(before, 0.0, 0.0) == 1.0


@given(st.floats(0, 4e9), st.floats(0, 1e9), st.floats(0, 4e9), st.floats(0, 1e9))
@settings(max_examples=60)
def test_closeness_lies_between_0_and_1(since: float, length: float, began: float, lasted: float) -> None:
    assert 0.0 <= closeness(Window(since, since + length, "", True, 0), began, began + lasted) <= 1.0


def stored(said_at: float | None, began: float, ended: float) -> StoredPassage:
    item = Item("s", "session", "project:a", Clean("t"), created_at=began, updated_at=ended)
    return StoredPassage(PassageId(1), Passage(0, Clean("x"), at=said_at), item, 1, 1)


def test_r6_what_lies_in_the_window_is_lifted_by_its_own_time_before_its_items() -> None:
    began, ended = at("2026-01-01"), at("2026-03-01")
    options = TemporalOptions(boost=2.0)
    assert nudge(stored(at("2026-01-06"), began, ended), WEEK, options) == ("time", 2.0)
    assert nudge(stored(None, began, ended), WEEK, options) == ("time", 2.0)
    assert round(nudge(stored(at("2026-01-19"), began, ended), WEEK, options).factor, 6) == 1.367879
    assert nudge(stored(at("2026-01-06"), began, ended), WEEK, TemporalOptions(boost=1.0)).factor == 1.0


# --- the lane ---------------------------------------------------------------------------------------------


def session(name: str, *said_at: float) -> Record:
    item = Item(name, "session", "project:a", Clean(name), created_at=min(said_at), updated_at=max(said_at))
    said = enumerate(said_at)
    return Record(item, tuple(Passage(seq, Clean(f"{name} {seq}"), "", seq, seq, when) for seq, when in said))


def test_r6_the_lane_ranks_every_kind_by_time_without_words_or_model(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db", Analyzer())
    old = at("2025-01-01")
    fact = Item("f", "fact", "global", Clean(""), created_at=old, updated_at=at("2026-01-07"))
    store.save(
        [
            session("once", at("2026-01-06")),
            session("often", *(at("2026-01-08") + 60 * n for n in range(5))),
            session("later", at("2026-01-15")),
            session("long ago", old),
            Record(fact, (Passage(0, Clean("lever")),)),
        ]
    )
    scope = ScopeFilter(frozenset({"global"}), frozenset({"project:a"}), "none")
    query = Query("what did we do in the week of 5 January 2026", ("session", "fact"), "lexical", 10, NOW, scope)
    sessions, facts = lanes.temporal(store, read(query.text), query, lanes.GatherOptions(0, 4, 1))
    found = store.fetch([hit.passage for hit in (*sessions.hits, *facts.hits)])
    assert (sessions.lane, sessions.kind, facts.kind) == ("temporal", "session", "fact")
    assert [found[hit.passage].item.id for hit in sessions.hits] == ["often", "once", "often", "often"]
    assert [found[hit.passage].item.id for hit in facts.hits] == ["f"]
    store.close()


def test_r6_a_passage_of_a_session_has_the_time_of_its_question() -> None:
    exchange = Exchange(3, 1, "u", 0, NOW, NOW + 60, "why is it slow? " * 90, (), None, False, (5, 8))
    made = passages(exchange, cwd=None)
    assert len(made) > 1
    assert {passage.at for passage in made} == {NOW}
