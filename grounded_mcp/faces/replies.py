"""What may leave the process: clean JSON, readable errors, and log lines that name places instead of texts.

Pure but for the logging formatter. Knows nothing about transports or about what an answer means.
"""

from __future__ import annotations

import json
import logging
import math
import re
import traceback
from typing import Any, Final

INTERNAL: Final = "The memory server failed on this call; the reason is in its log. Other calls still work."
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_DEEPEST = 64
"""Nesting that is still walked. Nothing of ours nests deeper than ten; JSON parsers of clients give up at 100."""


def encoded(value: object) -> bytes:
    """``value`` as one line of strict JSON in UTF-8, cleaned first where it is not representable as it stands."""
    try:
        return _dumps(value)
    except ValueError:
        return _dumps(clean(value))


def _dumps(value: object) -> bytes:
    # UnicodeEncodeError (a lone surrogate) is a ValueError too, as is NaN under allow_nan=False.
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")


def clean(value: Any, *, numbers: bool = True, depth: int = 0) -> Any:
    """The same JSON value with lone surrogates as U+FFFD, and NaN and infinities as null unless not ``numbers``."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, float):
        return value if math.isfinite(value) or not numbers else None
    if depth > _DEEPEST:
        return None
    if isinstance(value, dict):
        return {clean(str(key)): clean(item, numbers=numbers, depth=depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item, numbers=numbers, depth=depth + 1) for item in value]
    return value


def one_line(text: str, limit: int = 2_000) -> str:
    """An error's text as a client may see it: no control characters, no lone surrogates, bounded."""
    visible = _CONTROL.sub(" ", clean(text.replace("\r\n", "\n").replace("\n", " ")))
    return visible if len(visible) <= limit else f"{visible[: limit - 1]}\u2026"


def places(error: BaseException) -> str:
    """Where an exception came from, without its words: types and source lines, causes last.

    An exception's own text may quote a memory, a query or a header, and so never enters a log (case 59).
    """
    told: list[str] = []
    current: BaseException | None = error
    while current is not None and len(told) < 5:
        frames = traceback.extract_tb(current.__traceback__)
        trail = " > ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-12:])
        told.append(f"{type(current).__name__} at {trail or 'an unknown place'}")
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return "\n  caused by ".join(told)


class PlacesOnly(logging.Formatter):
    """A log formatter that tells an exception by its ``places``, whoever logs it, and lets no control code through."""

    def format(self, record: logging.LogRecord) -> str:
        return _CONTROL.sub(" ", super().format(record))

    def formatException(self, ei: Any) -> str:
        return places(ei[1]) if ei[1] is not None else ""
