"""Times in the forms that callers and transcripts use become seconds since 1970, in UTC (case 20)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grounded_mcp.errors import InputError
from grounded_mcp.when import iso, parse_time

NOW = 1_790_000_000.0  # 2026-09-21T14:13:20Z
LAST = 253_402_128_000.0  # 9999-12-30T00:00:00Z


@pytest.fixture(params=["UTC", "Asia/Kolkata", "America/St_Johns"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The host's time zone, which must not matter."""
    monkeypatch.setenv("TZ", request.param)
    if hasattr(time, "tzset"):
        time.tzset()
    yield request.param
    monkeypatch.undo()
    if hasattr(time, "tzset"):
        time.tzset()


FORMS = [
    ("2026-09-21T14:13:20", NOW),
    ("2026-09-21 14:13:20", NOW),
    ("2026-09-21T14:13:20Z", NOW),
    ("2026-09-21t14:13:20z", NOW),
    ("2026-09-22T04:13:20+14:00", NOW),
    ("2026-09-21T02:13:20-12:00", NOW),
    ("2026-09-21T19:43:20.5+05:30", NOW + 0.5),
    ("20260921T141320Z", NOW),
    ("  2026-09-21T14:13:20Z\n", NOW),
    ("2026-09-21", 1_789_948_800.0),
    ("20260921", 1_789_948_800.0),
    (1_790_000_000, NOW),
    (1_790_000_000.0, NOW),
    (1_790_000_000_000, NOW),
    (1_790_000_000_000_000, NOW),
    ("1790000000", NOW),
    ("1790000000.25", NOW + 0.25),
    ("1790000000000", NOW),
    ("1790000000000000", NOW),
    ("36h", NOW - 129_600.0),
    ("7d", NOW - 604_800.0),
    ("2 W", NOW - 1_209_600.0),
    # The hour that a clock in Berlin shows twice: the offset says which one is meant.
    ("2026-10-25T02:30:00+02:00", 1_792_888_200.0),
    ("2026-10-25T02:30:00+01:00", 1_792_891_800.0),
    ("0001-01-01", 0.0),
    ("0001-01-01T00:00:00+14:00", 0.0),
    ("9999-12-31T23:59:59-14:00", LAST),
    (-5, 0.0),
    (10**17, 100_000_000_000.0),
    (10**30, LAST),
]


@pytest.mark.parametrize(("value", "seconds"), FORMS)
def test_case_20_every_form_of_a_time_is_read_as_utc(value: object, seconds: float, zone: str) -> None:
    assert parse_time(value, field="since", now=NOW) == seconds


@pytest.mark.parametrize(
    "value",
    [
        None, True, [], {}, b"2026", "", " ", "yesterday", "2026", "12345", "2026-13-01", "2026-02-30", "25:00", "1e9",
        "-5", "7 d d", "9999999d", "x" * 10_000, "\x00", "\ud800", float("nan"), float("inf"), float("-inf"),
        10**400, pytest.param(10**5000, id="too long for str"),
    ],
)  # fmt: skip
def test_case_20_what_is_no_time_is_refused_by_name(value: object) -> None:
    with pytest.raises(InputError, match=r"since: .* is not a time\. Give an ISO 8601 date or time") as refused:
        parse_time(value, field="since", now=NOW)
    assert refused.value.field == "since"
    assert len(str(refused.value)) < 300


def test_a_date_is_its_first_moment_and_on_demand_its_last() -> None:
    def both(text: str) -> tuple[str, str]:
        return iso(parse_time(text, field="until", now=NOW)), iso(
            parse_time(text, field="until", now=NOW, end_of_day=True)
        )

    assert both("2026-10-01") == ("2026-10-01T00:00:00Z", "2026-10-01T23:59:59Z")
    assert both("20261001") == ("2026-10-01T00:00:00Z", "2026-10-01T23:59:59Z")
    assert both("2026-10-01T09:30") == ("2026-10-01T09:30:00Z", "2026-10-01T09:30:00Z")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "1970-01-01T00:00:00Z"),
        (NOW + 0.9, "2026-09-21T14:13:20Z"),
        (-1.0, "1970-01-01T00:00:00Z"),
        (1e300, "9999-12-30T00:00:00Z"),
        (float("inf"), "9999-12-30T00:00:00Z"),
        (float("nan"), "1970-01-01T00:00:00Z"),
    ],
)
def test_a_time_is_shown_to_the_second_and_never_fails(seconds: float, text: str, zone: str) -> None:
    assert iso(seconds) == text


@given(st.integers(0, 253_000_000_000), st.integers(-14 * 60, 14 * 60))
def test_an_offset_is_converted_not_relabelled(seconds: int, minutes: int) -> None:
    local = datetime.fromtimestamp(seconds, timezone(timedelta(minutes=minutes)))
    assert parse_time(local.isoformat(), field="since", now=NOW) == seconds
    assert iso(seconds) == local.astimezone(UTC).isoformat()[:19] + "Z"


@given(st.one_of(st.text(max_size=30), st.floats(), st.integers(), st.none(), st.booleans()))
def test_any_value_is_read_or_refused(value: object) -> None:
    try:
        seconds = parse_time(value, field="since", now=NOW)
    except InputError:
        return
    assert 0.0 <= seconds <= LAST
