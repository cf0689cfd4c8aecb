"""How much one token may ask: so many requests a minute, and so many at once. For one event loop; takes no locks.

Knows nothing about who is behind a name.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

MINUTE = 60.0


@dataclass(slots=True)
class _Spent:
    left: float
    at: float
    running: int = 0


class Limits:
    """A bucket for each name: full it holds ``per_minute`` requests, and it fills up evenly within a minute."""

    def __init__(self, per_minute: int, at_once: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._at_once = at_once
        self._clock = clock
        self._spent: dict[str, _Spent] = {}

    def enter(self, name: str) -> int:
        """0: go on, and ``leave`` afterwards. Otherwise the seconds to wait before asking again."""
        now = self._clock()
        spent = self._spent.setdefault(name, _Spent(self._per_minute, now))
        filled = spent.left + (now - spent.at) * self._per_minute / MINUTE
        spent.left, spent.at = min(filled, self._per_minute), now
        if spent.running >= self._at_once:
            return 1
        if spent.left < 1:
            return math.ceil((1 - spent.left) * MINUTE / self._per_minute)
        spent.left -= 1
        spent.running += 1
        return 0

    def leave(self, name: str) -> None:
        self._spent[name].running -= 1
