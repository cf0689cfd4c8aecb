"""Whether anybody still waits for what a thread is doing: set by whoever began the work, asked by whatever may last.

Knows nothing about who began it or how it was called off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_asked: ContextVar[Callable[[], bool] | None] = ContextVar("called off", default=None)


@contextmanager
def while_wanted(called_off: Callable[[], bool]) -> Iterator[None]:
    """Work of this thread in the block stops soon once ``called_off``, which is asked often and answers at once."""
    token = _asked.set(called_off)
    try:
        yield
    finally:
        _asked.reset(token)


def called_off() -> bool:
    """Whether this thread's work is no longer wanted; False where nobody said how to tell."""
    asked = _asked.get()
    return asked is not None and asked()
