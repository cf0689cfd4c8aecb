"""Reading a point in time, from whatever form callers and transcripts use. Pure.

Knows nothing about the clock: relative times are relative to the ``now`` it is given.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta

from grounded_mcp.errors import InputError

FORMS = "an ISO 8601 date or time (2026-10-01, 2026-10-01T09:30:00+02:00), seconds since 1970, or an age such as 7d"
_AGE = re.compile(r"(\d{1,6})\s*([hdw])")
_AGE_SECONDS = {"h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_EPOCH = re.compile(r"\d{9,18}(\.\d{1,9})?")
"""Digits enough to be seconds since 1970; eight are a date without hyphens."""
_DATE = re.compile(r"\d{4}-?\d\d-?\d\d")
_LARGEST = 1e300
"""Not a time by any unit, and still a float: whole numbers of JSON may be beyond."""
_FIRST = datetime(1970, 1, 1, tzinfo=UTC).timestamp()
_LAST = datetime(9999, 12, 30, tzinfo=UTC).timestamp()


def parse_time(value: object, *, field: str, now: float, end_of_day: bool = False) -> float:
    """Seconds since the epoch for a time in any of ``FORMS``.

    A time without an offset is UTC; one with an offset is converted. A date without a time is its first moment,
    or its last with ``end_of_day``. Numbers from 1e11 on are milliseconds, from 1e14 on microseconds. Times
    before 1970 or after 9999 are held at those bounds. Raises: InputError naming ``field``.
    """
    seconds = _from_number(value) if isinstance(value, int | float) else _from_text(value, now, end_of_day)
    if seconds is None:
        raise InputError(field, f"{_shown(value)} is not a time.", f"Give {FORMS}.")
    return _held(seconds)


def iso(seconds: float) -> str:
    """``2026-10-01T09:30:00Z``, to the second; times out of range are held at 1970 and 9999, NaN is 1970."""
    return datetime.fromtimestamp(_held(seconds), UTC).isoformat()[:19] + "Z"


def _held(seconds: float) -> float:
    return min(max(_FIRST, seconds), _LAST)  # in this order NaN, which compares as false, gives _FIRST


def _shown(value: object) -> str:
    # str() of a whole number of more than 4,300 digits raises.
    return repr(value[:60]) if isinstance(value, str) else f"this {type(value).__name__}"


def _from_number(value: float) -> float | None:
    if isinstance(value, bool) or not abs(value) < _LARGEST:
        return None
    if abs(value) >= 1e14:
        return value / 1e6
    return value / 1e3 if abs(value) >= 1e11 else float(value)


def _from_text(value: object, now: float, end_of_day: bool) -> float | None:
    text = value.strip() if isinstance(value, str) else ""
    if age := _AGE.fullmatch(text.lower()):
        return now - int(age[1]) * _AGE_SECONDS[age[2]]
    if _EPOCH.fullmatch(text):
        return _from_number(float(text))
    try:
        parsed = datetime.fromisoformat(text.upper())
    except ValueError:
        return None
    if end_of_day and _DATE.fullmatch(text):
        parsed = datetime.combine(parsed, time.max)
    aware = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    # timestamp() overflows for the first and last day of the calendar in far-off zones; subtraction does not.
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(seconds=1)
