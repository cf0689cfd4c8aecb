"""What a caller said becomes a checked, bounded Query; what cannot be one is refused by name. Pure.

Knows nothing about faces: every field name in an error is the argument's name on the wire.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar, get_args

from grounded_mcp.errors import InputError
from grounded_mcp.values import Kind, Mode, Query, ScopeFilter
from grounded_mcp.when import parse_time

SOURCES: tuple[Kind, ...] = ("fact", "session", "doc")
MODES: tuple[Mode, ...] = get_args(Mode)
_Name = TypeVar("_Name", bound=str)
_SURROGATE = re.compile("[\ud800-\udfff]")
_LARGEST = 10**15


@dataclass(frozen=True, slots=True)
class AskOptions:
    """[recall]: how much a caller may ask for. Lengths in characters."""

    limit: int
    max_limit: int
    mode: Mode
    max_query_chars: int


@dataclass(frozen=True, slots=True)
class Ask:
    """A recall as a caller words it; None means "as configured"."""

    query: str
    limit: object = None
    sources: Sequence[str] | None = None
    mode: str | None = None
    min_score: object = None
    since: object = None
    until: object = None
    trace: bool = False


def read(ask: Ask, scope: ScopeFilter, now: float, options: AskOptions) -> Query:
    """The Query for an Ask. A query longer than the cap is cut, a limit above the cap is lowered to it, a lone
    surrogate becomes U+FFFD and NUL is dropped, as in what is stored, and a date as ``until`` includes that day.

    Raises: InputError naming the field.
    """
    if not isinstance(ask.query, str):
        raise InputError("query", "a text is needed.", "Say in words what you are looking for.")
    since = None if ask.since is None else parse_time(ask.since, field="since", now=now)
    until = None if ask.until is None else parse_time(ask.until, field="until", now=now, end_of_day=True)
    if since is not None and until is not None and since > until:
        raise InputError("since", "it lies after until.", "Swap the two, or leave one out.")
    return Query(
        text=_SURROGATE.sub("\ufffd", ask.query.replace("\0", "").strip()[: options.max_query_chars]),
        kinds=_sources(ask.sources),
        mode=_one_of("mode", ask.mode, MODES) if ask.mode is not None else options.mode,
        limit=min(_limit(ask.limit), options.max_limit) if ask.limit is not None else options.limit,
        now=now,
        scope=scope,
        min_score=None if ask.min_score is None else _min_score(ask.min_score),
        since=since,
        until=until,
        trace=ask.trace,
    )


def _limit(value: object) -> int:
    number = _number(value)
    if number is None or number < 1 or number % 1:
        raise InputError("limit", f"{_shown(value)} is not a count.", "Give a whole number of at least 1.")
    return int(number)


def _min_score(value: object) -> float:
    number = _number(value)
    if number is None or number < 0:
        raise InputError("minScore", f"{_shown(value)} is not a score.", "Give a number of at least 0.")
    return number


def _number(value: object) -> float | None:
    """A finite number, also from its text; whole numbers too large for a float count as the largest."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(min(value, _LARGEST) if isinstance(value, int) else value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _sources(names: object) -> tuple[Kind, ...]:
    if names is None:
        return SOURCES
    if not isinstance(names, list | tuple) or not names:
        raise InputError("sources", "a list of at least one source is needed.", f"Choose from {_listed(SOURCES)}.")
    return tuple(dict.fromkeys(_one_of("sources", name, SOURCES) for name in names))


def _one_of(field: str, name: object, allowed: tuple[_Name, ...]) -> _Name:
    for choice in allowed:
        if name == choice:
            return choice
    raise InputError(field, f"{_shown(name)} is unknown.", f"Choose from {_listed(allowed)}.")


def _shown(value: object) -> str:
    """A value as an error quotes it. Never ``str`` of any whole number: beyond 4,300 digits it raises."""
    if isinstance(value, str):
        return repr(value[:40])
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < _LARGEST):
        return str(value)
    return f"this {type(value).__name__}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
