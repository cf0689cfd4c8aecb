"""The temporal lane's reading of a question: a time expression becomes a window, nearness to it a number (R6). Pure.

``periods`` reads the calendar; here are the words around it: "since", "between ... and", "the week of". Only what can
hardly mean anything else counts: a window that is not meant would lift the wrong things. Knows nothing about stores.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from grounded_mcp.recall.periods import (
    DAY,
    MONTH,
    NUMBER,
    ORDINALS,
    PART,
    WEEK,
    WEEKDAYS,
    WORDS,
    Clock,
    Dated,
    Period,
    earlier,
    part_of,
    periods,
    week,
)
from grounded_mcp.stores.rules import closeness as nearness
from grounded_mcp.stores.rules import window_scale
from grounded_mcp.tokens import STOP_WORDS
from grounded_mcp.values import Nudge, StoredPassage

MAX_CHARS = 500
"""A question is read up to here: what is longer is pasted, and logs are full of dates that nobody asks about."""


class Window(NamedTuple):
    """A stretch of time that a question is about, in seconds since the epoch (UTC); bounds may be infinite.

    ``words``: the expression as it was written, at ``start`` of the text. ``precise``: the calendar says where it
    begins and ends ("on 5 March 2026"), not a guess ("early March", "a few days ago").
    """

    since: float
    until: float
    words: str
    precise: bool
    start: int


def window(text: str, now: float, dated: Dated | None = None) -> Window | None:
    """The window that ``text`` names, relative to ``now``; None where it names none.

    Days begin at midnight UTC and weeks on Monday; a month or day without a year is the latest that has begun. Of
    several expressions the first with a year counts, else the first. ``dated`` knows when versions were released:
    without its answer "before the release of v2.3" is no window.
    """
    clock = Clock(datetime.fromtimestamp(now, UTC), text[:MAX_CHARS], dated)
    read = list(_readings(clock, periods(clock)))
    dates = (each for each in read if _HAS_YEAR.search(clock.text[each.period.start : each.period.end]))
    chosen = next(dates, read[0] if read else None)
    return None if chosen is None else _window(clock, chosen)


def closeness(window: Window, began: float, ended: float) -> float:
    """How near a stretch of time is to a window: 1 where they touch, else e^(-gap / length of the window).

    A window of less than a day counts as a day long, one without a beginning or an end as a week.
    """
    return nearness(max(window.since - ended, began - window.until), window_scale(window.since, window.until))


@dataclass(frozen=True, slots=True)
class TemporalOptions:
    """[recall.temporal]. ``boost``: the multiplier for what lies in the window that a question names; 1 for none."""

    boost: float


def nudge(found: StoredPassage, window: Window, options: TemporalOptions) -> Nudge:
    """1 + (boost - 1) x closeness: by the passage's own time, else by when its item began and ended."""
    item, at = found.item, found.passage.at
    began, ended = (min(item.created_at, item.updated_at), item.updated_at) if at is None else (at, at)
    return Nudge("time", 1.0 + (options.boost - 1.0) * closeness(window, began, ended))


_ASKING = STOP_WORDS | frozenset(
    """accomplish accomplished achieve achieved activities activity all anything changed changes conversation
    conversations discuss discussed everything get give go going got happen happened happening happens list overview
    progress project recap session sessions show summarise summarize summary talk talked team tell thing things up us
    went what's work worked working""".split()  # noqa: SIM905 - a list literal would take 40 lines
)
"""Words that ask for everything there is."""


def only_time(text: str, window: Window) -> bool:
    """Whether a question asks for a time and nothing else, as "what did we work on last week" does."""
    rest = without(text, window).lower().replace("’", "'")
    return all(word in _ASKING for word in re.findall(r"[^\W_]+(?:'\w+)?", rest))


def without(text: str, window: Window) -> str:
    """The question without its time expression: what is left to be searched for by words."""
    return f"{text[: window.start]}{text[window.start + len(window.words) :]}"


def _readings(clock: Clock, found: list[Period]) -> Iterator[_Read]:
    for at, period in enumerate(found):
        with suppress(OverflowError, ValueError):  # before the first or after the last day of the calendar
            read = _range(clock, found[at : at + 2]) or _framed(clock, _Read(period.since, period.until, period))
            if read is not None:
                yield read


# --- the words around a period ----------------------------------------------------------------------------


class _Read(NamedTuple):
    """A period with the words in front of it that were understood; an open end is None."""

    since: datetime | None
    until: datetime | None
    period: Period
    asked: bool = False
    """A word in front of it makes it a time."""

    def framed(self, since: datetime | None, until: datetime | None, *, precise: bool = True) -> _Read:
        sure = self.period._replace(precise=self.period.precise and precise)
        return _Read(since, until, sure, asked=True)

    @property
    def length(self) -> timedelta:
        return self.period.until - self.period.since


Frame = Callable[["re.Match[str]", _Read, Clock], _Read | None]


def _as_it_is(found: re.Match[str], read: _Read, clock: Clock) -> _Read:
    return read._replace(asked=True)


def _named(found: re.Match[str], read: _Read, clock: Clock) -> _Read:
    """Words that belong to the expression and decide nothing."""
    return read


def _bounded(found: re.Match[str], read: _Read, clock: Clock) -> _Read:
    word = " ".join(found["word"].lower().split())
    since, until = read.period.since, read.period.until
    if word in ("since", "starting"):
        return read.framed(since, None)
    if word == "after":
        return read.framed(until, None)
    return read.framed(None, since if word in ("before", "prior to", "more than", "over", "earlier than") else until)


def _around(found: re.Match[str], read: _Read, clock: Clock) -> _Read:
    slack = max(read.length, 3 * DAY)
    return read.framed(read.period.since - slack, read.period.until + slack, precise=False)


def _half(found: re.Match[str], read: _Read, clock: Clock) -> _Read | None:
    since, until = read.period.since, read.period.until
    middle = since.replace(month=7) if read.length > 360 * DAY else since + _days((until - since) / 2)
    first = ORDINALS[found["which"].lower()] == 1
    return _narrowed(read, since if first else middle, middle if first else until) if read.length > DAY else None


def _part_of_day(found: re.Match[str], read: _Read, clock: Clock) -> _Read | None:
    made = part_of(read.period, found["part"].lower())
    return _narrowed(read, made.since, made.until, precise=False) if read.length == DAY else None


def _third(found: re.Match[str], read: _Read, clock: Clock) -> _Read | None:
    since, until = read.period.since, read.period.until
    third = _days((until - since) / 3)
    at = _THIRDS[found["which"].lower()]
    if read.length <= DAY:
        return None
    bounds = (since, since + third, until - third, until)
    return _narrowed(read, bounds[at], bounds[at + 1], precise=False)


def _week_of_month(found: re.Match[str], read: _Read, clock: Clock) -> _Read | None:
    if not 27 * DAY < read.length < 32 * DAY:
        return None
    which = found["which"].lower()
    since = read.period.until - WEEK if which == "last" else read.period.since + (ORDINALS[which] - 1) * WEEK
    return _narrowed(read, since, since + WEEK)


def _week_of_day(found: re.Match[str], read: _Read, clock: Clock) -> _Read | None:
    if read.length > DAY:
        return None
    how, since = found["how"].lower(), read.period.since
    if how in ("starting", "beginning", "from", "commencing"):
        return _narrowed(read, since, since + WEEK)
    if how == "ending":
        return _narrowed(read, since - 6 * DAY, since + DAY)
    made = week(since)
    return _narrowed(read, made.since + 5 * DAY if found["end"] else made.since, made.until)


def _beside(found: re.Match[str], read: _Read, clock: Clock) -> _Read:
    """ "The week before", "two weeks after" something: a unit long, so many away."""
    count, unit = found["count"], found["unit"].lower()
    length = {"day": DAY, "week": WEEK, "month": 30 * DAY, "year": 365 * DAY}[unit]
    number = 1 if count is None else int(count) if count.isdigit() else WORDS[count.lower()]
    far = (number - 1) * length
    if found["word"].lower() == "before":
        until = read.period.since - far
        return _narrowed(read, until - length, until, precise=count is None)
    since = read.period.until + far
    return _narrowed(read, since, since + length, precise=count is None)


def _weekday_beside(found: re.Match[str], read: _Read, clock: Clock) -> _Read:
    name, before = found["weekday"].lower(), found["word"].lower() == "before"
    edge = read.period.since if before else read.period.until - DAY
    wanted = 5 if name == "weekend" else WEEKDAYS.index(name)
    away = (edge.weekday() - wanted - 1) % 7 + 1 if before else (wanted - edge.weekday() - 1) % 7 + 1
    since = edge - away * DAY if before else edge + away * DAY
    return _narrowed(read, since, since + (2 * DAY if name == "weekend" else DAY))


def _narrowed(read: _Read, since: datetime, until: datetime, *, precise: bool = True) -> _Read:
    period = read.period._replace(since=since, until=until, precise=read.period.precise and precise, sure=True)
    return _Read(since, until, period)


def _days(length: timedelta) -> timedelta:
    return timedelta(days=round(length / DAY))


_THIRDS = {"early": 0, "beginning": 0, "start": 0, "mid": 1, "middle": 1, "late": 2, "end": 2}
_NTH = "|".join(ORDINALS)
_DAYS = "|".join(WEEKDAYS)

FRAMES: tuple[tuple[re.Pattern[str], Frame], ...] = tuple(
    (re.compile(rf"(?<![\w-])(?:{pattern})$", re.IGNORECASE), frame)
    for pattern, frame in (
        (r"(?:the\s+)?(?P<which>first|second|1st|2nd)\s+half\s+of\s+(?:the\s+)?", _half),
        (r"(?:the\s+)?(?:very\s+)?(?P<which>beginning|start|middle|end)\s+of\s+(?:the\s+)?", _third),
        (rf"(?:the\s+)?{PART}\s+of\s+(?:the\s+)?", _part_of_day),
        (r"(?P<which>early|mid|late)(?:\s+in)?[\s-]+", _third),
        (rf"(?:the\s+)?(?P<which>{_NTH}|last)\s+week\s+(?:of|in)\s+", _week_of_month),
        (
            r"(?:the\s+)?week(?P<end>end)?\s+(?P<how>of|starting|beginning|commencing|ending|from)"
            r"(?:\s+on)?\s+(?:the\s+)?",
            _week_of_day,
        ),
        (rf"(?:the\s+)?(?P<count>{NUMBER})?\s*(?P<unit>day|week|month|year)s?\s+(?P<word>before|after)\s+", _beside),
        (rf"(?:the\s+|last\s+|next\s+)?(?P<weekday>{_DAYS}|weekend)\s+(?P<word>before|after)\s+", _weekday_beside),
        (
            r"(?P<word>since|after|before|prior\s+to|until|till|through|up\s+to|as\s+of|by|starting|earlier\s+than)"
            r"(?:\s+(?:on|in))?\s+(?:the\s+)?",
            _bounded,
        ),
        (r"(?P<word>more\s+than|over)\s+(?=$)", _bounded),
        (r"(?:around|circa)\s+(?:the\s+)?", _around),
        (r"(?:back\s+)?(?:in|on|during|within|throughout|over|dated)\s+(?:the\s+)?", _as_it_is),
        (r"(?:all\s+of|all|earlier|later|just|of|from|at|for|between)\s+", _named),
    )
)


def _framed(clock: Clock, read: _Read) -> _Read | None:
    """What the words in front make of a period; None where they do not make it a time."""
    while not read.asked:
        wider = _widened(clock, read)
        if wider is None:
            break
        read = wider
    return read if read.asked or read.period.sure else None


def _widened(clock: Clock, read: _Read) -> _Read | None:
    """The period with the words right in front of it."""
    front = clock.text[: read.period.start]
    for pattern, frame in FRAMES:
        found = pattern.search(front)
        made = frame(found, read, clock) if found and _fits(found, frame, read, clock) else None
        if found and made:
            return made._replace(period=made.period._replace(start=found.start()))
    return None


def _fits(found: re.Match[str], frame: Frame, read: _Read, clock: Clock) -> bool:
    """Some words only go with some periods: "by June" is a person, "over 2 weeks ago" a bound."""
    if frame is not _bounded:
        return True
    word = found["word"].lower()
    if word == "by":
        return read.length <= DAY and read.period.sure
    if word.startswith(("over", "more")):
        return clock.text[: read.period.end].lower().endswith(("ago", "back", "earlier"))
    return True


_BETWEEN = re.compile(r"(?<![\w-])(?:between|from)\s+(?:the\s+)?$", re.IGNORECASE)
_LINK = re.compile(r"\s*(?:\s(?:(?P<and>and)|to|until|till|through)\s|-|–|—)\s*(?:the\s+)?", re.IGNORECASE)
_HAS_YEAR = re.compile(r"(?:19|20)\d\d")
_HAS_MONTH = re.compile(MONTH, re.IGNORECASE)
_ONWARDS = re.compile(r"\s+(?:on(?=\s*$|[,.?!])|onwards?|forward)\b", re.IGNORECASE)


def _range(clock: Clock, found: list[Period]) -> _Read | None:
    """ "Between X and Y", "from X to Y", "X to Y", "from X onwards"."""
    first, text = found[0], clock.text
    front = _BETWEEN.search(text[: first.start])
    start = front.start() if front else first.start
    onwards = _ONWARDS.match(text, first.end) if front else None
    if onwards:
        return _Read(first.since, None, first._replace(start=start, end=onwards.end()), asked=True)
    link = _LINK.fullmatch(text[first.end : found[1].start]) if len(found) > 1 else None
    if link is None or not (front or (link["and"] is None and first.sure and found[1].sure)):
        return None
    last = found[1]
    since = _aligned(clock, first, last)
    if since >= last.until:
        return None
    whole = first._replace(start=start, end=last.end, precise=first.precise and last.precise)
    return _Read(since, last.until, whole, asked=True)


def _aligned(clock: Clock, first: Period, last: Period) -> datetime:
    """Where a range begins: without a year, at the last such day or month before its other end."""
    words = clock.text[first.start : first.end].lower()
    if _HAS_YEAR.search(words):
        return first.since
    if any(name in words for name in WEEKDAYS):
        return first.since - WEEK if first.since > last.since else first.since
    if _HAS_MONTH.search(words):
        moved = earlier(first.since, 12 * (first.since.year - last.since.year))
        return earlier(moved, 12) if moved > last.since else moved
    return first.since


def _window(clock: Clock, read: _Read) -> Window:
    since = -math.inf if read.since is None else read.since.timestamp()
    now = clock.now.timestamp()
    until = read.until.timestamp() if read.until is not None else now if since <= now else math.inf
    start = read.period.start
    return Window(since, until, clock.text[start : read.period.end], read.period.precise, start)
