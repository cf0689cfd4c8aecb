"""The ways in which people write a stretch of time: dates, weeks, months, "yesterday", "the last 3 weeks". Pure.

A table of forms, the most telling first; each turns what it matched into a stretch of the calendar in UTC. What words
around it do to it ("since", "the week of") is ``temporal``'s business. Knows nothing about queries or stores.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import NamedTuple

Dated = Callable[[str], float | None]
"""When a version was released, in seconds since the epoch, if that is known."""


class Period(NamedTuple):
    """A stretch of time that was written at ``start:end`` of a text. ``until`` is its first moment after.

    ``sure``: it can mean nothing else; otherwise only a word such as "in" or "since" makes it a time. ``precise``: the
    calendar says where it begins and ends, not a guess.
    """

    since: datetime
    until: datetime
    start: int = 0
    end: int = 0
    sure: bool = True
    precise: bool = True


class Clock(NamedTuple):
    """What a text is read against. ``text`` is the whole of it."""

    now: datetime
    text: str
    dated: Dated | None = None

    @property
    def today(self) -> datetime:
        return self.now.replace(hour=0, minute=0, second=0, microsecond=0)


Form = Callable[["re.Match[str]", Clock], Period | None]

DAY, WEEK = timedelta(days=1), timedelta(days=7)
_COUNTED = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
WORDS = {"a": 1, "an": 1, "couple": 2, "few": 3, "several": 4} | {word: at for at, word in enumerate(_COUNTED, 1)}
NUMBER = rf"\d{{1,3}}|{'|'.join(sorted(WORDS, key=len, reverse=True))}"
ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4}
MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
OTHER_WORDS = frozenset({"may", "march", "mar", "sep", "oct", "dec", "MAY", "MAR", "SEP", "OCT", "DEC"})
"""Written so, these are verbs, parts of a file's name or number systems as well."""
WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The month a season begins with, in the north."""
PARTS = {"morning": (5, 12), "afternoon": (12, 18), "evening": (18, 24), "night": (18, 30)}
"""Hours of a day, UTC."""
PART = rf"(?P<part>{'|'.join(PARTS)})"
YEAR = r"(?P<year>(?:19|20)\d\d)\b"
FIRST_YEAR = 1990


# --- stretches of the calendar ----------------------------------------------------------------------------


def day(year: int, month: int, number: int) -> Period | None:
    try:
        first = datetime(year, month, number, tzinfo=UTC)
    except ValueError:
        return None
    return Period(first, first + DAY)


def months(year: int, month: int, count: int = 1) -> Period:
    """``count`` months from a month on, which may be below 1 or above 12."""
    return Period(_month(year, month), _month(year, month + count))


def week(of: datetime) -> Period:
    """Monday to Sunday, around a moment."""
    monday = of.replace(hour=0, minute=0, second=0, microsecond=0) - of.weekday() * DAY
    return Period(monday, monday + WEEK)


def _month(year: int, month: int) -> datetime:
    years, index = divmod(month - 1, 12)
    return datetime(year + years, index + 1, 1, tzinfo=UTC)


def earlier(moment: datetime, count: int) -> datetime:
    """The same day so many months before, or the last one of that month."""
    first = _month(moment.year, moment.month - count)
    return moment.replace(
        year=first.year, month=first.month, day=min(moment.day, monthrange(first.year, first.month)[1])
    )


# --- forms ------------------------------------------------------------------------------------------------


def _iso_day(found: re.Match[str], clock: Clock) -> Period | None:
    return day(int(found["year"]), int(found["number"]), int(found["day"]))


def _iso_month(found: re.Match[str], clock: Clock) -> Period | None:
    number = int(found["number"])
    return months(int(found["year"]), number) if 1 <= number <= 12 else None


def _iso_week(found: re.Match[str], clock: Clock) -> Period | None:
    try:
        monday = datetime.fromisocalendar(int(found["year"] or clock.now.year), int(found["week"]), 1)
    except ValueError:
        return None
    made = week(monday.replace(tzinfo=UTC))
    if not found["year"] and made.since > clock.now:
        made = week(made.since - 52 * WEEK)
    return made._replace(sure=bool(found["year"]))


def _quarter(found: re.Match[str], clock: Clock) -> Period | None:
    name = found["number"].lower()
    number = ORDINALS.get(name) or int(name)
    size = 6 if (found.groupdict().get("half") or "q").lower() == "h" else 3
    if number * size > 12 or (size == 6 and not found["year"]):  # H2 alone is a database, or a heading
        return None
    month = (number - 1) * size + 1
    if found["year"]:
        return months(int(found["year"]), month, size)
    return _latest(months(clock.now.year, month, size), clock)._replace(sure=False)


def _latest(made: Period, clock: Clock) -> Period:
    """A stretch of this year, or of the last one while it has not begun."""
    if made.since <= clock.now:
        return made
    return Period(earlier(made.since, 12), earlier(made.until, 12))


def _day_of_month(found: re.Match[str], clock: Clock) -> Period | None:
    name = found["month"].lower()
    number, last = int(found["day"]), int(found.groupdict().get("last") or found["day"])
    for year in [int(found["year"])] if found["year"] else range(clock.now.year, clock.now.year - 8, -1):
        first, end = day(year, _number(name), number), day(year, _number(name), last)
        if first and end and first.since < end.until and (found["year"] or first.since <= clock.now):
            sure = bool(found["year"] or found["nth"]) or found["month"] not in OTHER_WORDS
            return Period(first.since, end.until, sure=sure)
    return None


def _number(name: str) -> int:
    return MONTHS.index(name[:3]) + 1


def _month_of_year(found: re.Match[str], clock: Clock) -> Period:
    return months(int(found["year"]), _number(found["month"].lower()))


def _bare_month(found: re.Match[str], clock: Clock) -> Period | None:
    name = found["month"]
    doubtful = name in OTHER_WORDS and (found["which"] or not _fronted(found, clock, _IN_MONTH))
    if doubtful or (name in OTHER_WORDS and len(name) == 3 and name != "may"):
        return None
    made = _latest(months(clock.now.year, _number(found["month"].lower())), clock)
    if (found["which"] or "").lower().startswith("last") and made.until > clock.now:
        made = Period(earlier(made.since, 12), earlier(made.until, 12))
    return made._replace(sure=bool(found["which"]), precise=False)


def _bare_year(found: re.Match[str], clock: Clock) -> Period | None:
    year = int(found["year"])
    if not FIRST_YEAR <= year <= clock.now.year + 1 or not _fronted(found, clock, _IN_YEAR):
        return None
    return months(year, 1, 12)._replace(sure=False)


def _fronted(found: re.Match[str], clock: Clock, words: re.Pattern[str]) -> bool:
    return words.search(clock.text[: found.start()]) is not None


def _season(found: re.Match[str], clock: Clock) -> Period | None:
    if not (found["year"] or found["which"]) and found["season"].lower() in ("spring", "fall"):
        return None  # a framework, and a verb
    month = SEASONS[found["season"].lower()]
    which = (found["which"] or "").strip().lower()
    if found["year"]:
        made = months(int(found["year"]), month, 3)
    else:
        made = _latest(months(clock.now.year, month, 3), clock)
        if which == "last" and made.until > clock.now:
            made = months(made.since.year - 1, month, 3)
    return made._replace(sure=bool(found["year"] or which), precise=False)


def _named_day(found: re.Match[str], clock: Clock) -> Period:
    name = " ".join(found["name"].lower().split())
    back = 0 if name in ("today", "this", "tonight") else 2 if name.startswith("the day before") else 1
    first = clock.today - back * DAY
    part = "night" if name == "tonight" else (found["part"] or "").lower()
    return part_of(Period(first, first + DAY), part)


def part_of(made: Period, part: str) -> Period:
    if part not in PARTS:
        return made
    begins, ends = PARTS[part]
    first = made.since
    return Period(first + timedelta(hours=begins), first + timedelta(hours=ends), sure=made.sure, precise=False)


def _weekday(found: re.Match[str], clock: Clock) -> Period:
    """The latest before today."""
    back = (clock.now.weekday() - WEEKDAYS.index(found["weekday"].lower()) - 1) % 7 + 1
    if (found["which"] or "").lower() == "this" and back == 7:
        back = 0
    first = clock.today - back * DAY
    made = part_of(Period(first, first + DAY), (found["part"] or "").lower())
    return made._replace(sure=bool(found["which"] or found["part"] or found["own"]))


def _weekend(found: re.Match[str], clock: Clock) -> Period:
    saturday = week(clock.now).since + 5 * DAY
    if found["which"].lower() == "last" or saturday > clock.now:
        saturday -= WEEK
    return Period(saturday, saturday + 2 * DAY)


UNIT = r"(?P<unit>minute|hour|day|week|month|quarter|year|[hdw](?=s?\b))s?\b"
_SHORT = {"h": "hour", "d": "day", "w": "week"}
_LENGTH = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": DAY,
    "week": WEEK,
    "month": 30 * DAY,
    "quarter": 91 * DAY,
    "year": 365 * DAY,
}


def _count(text: str) -> int:
    word = text.lower()
    return int(word) if word.isdigit() else WORDS[word]


def _past(found: re.Match[str], clock: Clock) -> Period:
    """The last so many units up to now."""
    unit = _SHORT.get(found["unit"].lower(), found["unit"].lower())
    vague = (found["count"] or "").lower() in ("few", "several", "couple")
    return Period(clock.now - _count(found["count"] or "1") * _LENGTH[unit], clock.now, precise=not vague)


def _ago(found: re.Match[str], clock: Clock) -> Period:
    """The day, or a stretch as long as the unit around the moment; wider for "a few"."""
    unit = _SHORT.get(found["unit"].lower(), found["unit"].lower())
    count, length = _count(found["count"]), _LENGTH[unit]
    if found["count"].lower() in ("few", "several", "couple"):
        return Period(clock.now - (count + 2) * length, clock.now - (count - 1) * length, precise=False)
    if unit == "day":
        first = clock.today - count * DAY
        return Period(first, first + DAY)
    moment = clock.now - count * length
    return Period(moment - length / 2, moment + length / 2, precise=False)


def _this_or_last(found: re.Match[str], clock: Clock) -> Period:
    now, back = clock.now, {"this": 0, "before last": 2}.get(" ".join(found["which"].lower().split()), 1)
    unit = found["unit"].lower()
    if unit == "week":
        return week(now - back * WEEK)
    size = {"month": 1, "quarter": 3, "year": 12}[unit]
    first = (now.month - 1) // size * size + 1
    return months(now.year, first - back * size, size)


def _release(found: re.Match[str], clock: Clock) -> Period | None:
    """The moment of a release; only looked up where the words before it ask for a time."""
    if clock.dated is None or not _fronted(found, clock, _BOUND):
        return None
    at = clock.dated(found["version"])
    if at is None:
        return None
    moment = datetime.fromtimestamp(at, UTC)
    return Period(moment, moment, sure=False)


_OPEN, _CLOSE = r"(?<![\w./:@#-])", r"(?![\w/-]|\.\w)"
_ND = r"(?P<nth>st|nd|rd|th)?"
_OF_YEAR = rf"(?:,?\s*(?:of\s+)?{YEAR}(?!-\d))?(?!\d|[:.]\d|-\d)"
_TO = r"\s*(?:-|–|\bto\b|\band\b|\bthrough\b)\s*"
_LONG = "hour|day|week|month|quarter|year"
_ALONE = r"\b(?!\s+(?:of|before|after)\b)"
_IN_MONTH = re.compile(r"\b(?:in|during|since|until|till|throughout)\s+$", re.IGNORECASE)
_IN_YEAR = re.compile(
    r"\b(?:in|during|since|before|after|until|till|through|throughout|of|early|mid|late|between|from|and|to)[\s-]+$",
    re.IGNORECASE,
)
_BOUND = re.compile(r"\b(?:since|after|before|until|till|around|between|and|to)\s+(?:the\s+)?$", re.IGNORECASE)
_AFTER_YEAR = (
    r"(?=\s*$|\s*[,?!;)]|\.(?:\s|$)|\s+(?:we|did|do|does|was|were|is|are|the|i|you|they|he|she|it|and|to|until|through"
    r"|when|with|about|by)\b)"
)
_VERSION = r"(?P<version>v\d+(?:\.\d+)*(?:-[a-z0-9.]+)?|\d+(?:\.\d+)+)"

FORMS: tuple[tuple[re.Pattern[str], Form], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), form)
    for pattern, form in (
        (
            rf"{_OPEN}(?P<year>(?:19|20)\d\d)([-/])(?P<number>\d\d?)\2(?P<day>\d\d?)"
            rf"(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?{_CLOSE}",
            _iso_day,
        ),
        (rf"{_OPEN}(?P<year>(?:19|20)\d\d)-?W(?P<week>\d\d){_CLOSE}", _iso_week),
        (rf"\bweek\s+(?P<week>\d\d?)(?:,?\s+(?:of\s+)?{YEAR})?\b(?!\.\d)", _iso_week),
        (rf"{_OPEN}(?P<year>(?:19|20)\d\d)-(?P<number>\d\d){_CLOSE}", _iso_month),
        (rf"{_OPEN}(?P<half>[QH])(?P<number>[1-4])(?:[\s/-]*(?:of\s+)?{YEAR})?{_CLOSE}", _quarter),
        (rf"{_OPEN}{YEAR}[\s/-]?(?P<half>[QH])(?P<number>[1-4]){_CLOSE}", _quarter),
        (rf"\b(?P<number>{'|'.join(ORDINALS)})\s+quarter\s+(?:of\s+)?{YEAR}", _quarter),
        (rf"\b{MONTH}\s*(?P<day>[0-3]?\d){_ND}{_TO}(?P<last>[0-3]?\d)(?:th|st|nd|rd)?\b{_OF_YEAR}", _day_of_month),
        (rf"{_OPEN}(?P<day>[0-3]?\d){_ND}{_TO}(?P<last>[0-3]?\d)(?:th|st|nd|rd)?\s+{MONTH}{_OF_YEAR}", _day_of_month),
        (rf"\b{MONTH}\s*(?:the\s+)?(?P<day>[0-3]?\d){_ND}\b{_OF_YEAR}", _day_of_month),
        (rf"{_OPEN}(?P<day>[0-3]?\d){_ND}\s+(?:of\s+)?{MONTH}{_OF_YEAR}", _day_of_month),
        (rf"\b{MONTH},?\s+(?:of\s+)?{YEAR}", _month_of_year),
        (
            r"\b(?:(?P<which>last|this|past)\s+|the\s+)?(?P<season>spring|summer|autumn|fall|winter)\b"
            rf"(?:\s+(?:of\s+)?{YEAR})?",
            _season,
        ),
        (rf"\b(?P<name>the\s+day\s+before\s+yesterday|yesterday|today|tonight)\b(?:\s+{PART}\b)?", _named_day),
        (rf"\b(?P<name>this|last(?=\s+night|\s+evening))\s+{PART}\b", _named_day),
        (rf"\b(?:last|past|previous)\s+(?:(?P<count>{NUMBER})\s*(?:of\s+)?)(?:more\s+)?{UNIT}", _past),
        (rf"\b(?:the\s+(?:last|past)|(?:this\s+)?past)\s+(?P<count>)(?P<unit>{_LONG}){_ALONE}", _past),
        (rf"\b(?:an?\s+)?(?P<count>{NUMBER})\s*(?:of\s+)?{UNIT}\s+(?:ago|back)\b", _ago),
        (rf"\b(?P<which>this|last|previous)\s+(?P<unit>week|month|quarter|year){_ALONE}", _this_or_last),
        (r"\bthe\s+(?P<unit>week|month|quarter|year)\s+(?P<which>before\s+last)\b", _this_or_last),
        (rf"\b(?P<which>this\s+past|last|this|past|over\s+the|on\s+the|at\s+the)\s+weekend{_ALONE}", _weekend),
        (
            rf"\b(?:(?P<which>last|this)\s+)?(?P<weekday>{'|'.join(WEEKDAYS)})\b(?P<own>'s\b)?(?:\s+{PART}\b)?",
            _weekday,
        ),
        (rf"\b(?P<which>(?:last|this(?:\s+past)?)\s+)?{MONTH}(?!\w)", _bare_month),
        (rf"{_OPEN}{YEAR}{_AFTER_YEAR}", _bare_year),
        (
            r"(?:(?:release|launch|tagging)\s+of\s+|(?:we\s+)?(?:released|shipped|tagged|cut)\s+)?"
            rf"(?:version\s+)?(?<![\w.-]){_VERSION}(?![\w-]|\.\w)(?:\s+(?:release|was\s+released|came\s+out))?",
            _release,
        ),
    )
)


def periods(clock: Clock) -> list[Period]:
    """The stretches of time in a text, in its order; where two forms claim the same words, the first has them."""
    taken: list[Period] = []
    for made in chain.from_iterable(_read(pattern, form, clock) for pattern, form in FORMS):
        if all(made.end <= other.start or other.end <= made.start for other in taken):
            taken.append(made)
    return sorted(taken, key=lambda made: made.start)


def _read(pattern: re.Pattern[str], form: Form, clock: Clock) -> Iterator[Period]:
    for found in pattern.finditer(clock.text):
        try:
            made = form(found, clock)
        except (OverflowError, ValueError):  # a date before the first or after the last of the calendar
            continue
        if made is not None:
            yield made._replace(start=found.start(), end=found.end())
