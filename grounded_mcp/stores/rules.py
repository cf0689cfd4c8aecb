"""What every engine must decide alike: the text that is indexed and embedded, and what a vector must be.

Pure. Two engines that ask here give the same answers (R17). Knows nothing about SQL or connections.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from hashlib import blake2b

from grounded_mcp.errors import StoreError, StoreMismatch
from grounded_mcp.values import Filter, Item, Passage, Space, Vector

MAX_K = 4096
"""Most hits one search returns; a larger ``k`` is lowered to this on every engine (case 42)."""

MAX_TERMS = 64
"""Most terms one search looks up: 5,000 took 0.03 s in FTS5, 50,000 took 8.2 s (engine-facts 4f)."""

NOTE_MS = 500
"""The longest that telemetry waits for another process's write: it is tried again, and nothing else waits for it."""

DAY = 86_400.0
OPEN_SCALE = 7 * DAY
REACH = 2.0
"""How many times its scale a time window reaches: beyond, closeness is under 0.14."""

NORM_TOLERANCE = 1e-3
"""How far from 1 the length of a unit vector may be: float32 rounding stays far below, a raw model output does not."""


BM25_K1, BM25_B = 1.2, 0.75
"""As FTS5 has them (R3)."""

PLACE_TOKENS = 2
"""FTS5 counts a passage's kind and bucket, which it is filtered by, as tokens of it. So does every engine."""

SCORE_DIGITS = 9
"""Scores are rounded before they are compared, so that engines agree (R10)."""


def term_key(token: str) -> int:
    """What an index of our own knows a token by: 8 bytes of its digest, as a signed number."""
    return int.from_bytes(blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).digest(), signed=True)


def idf(passages: int, holding: int) -> float:
    """How telling a term is that ``holding`` of so many passages hold; never less than 1e-6, as in FTS5."""
    return max(math.log((passages - holding + 0.5) / (holding + 0.5)), 1e-6)


def average_length(passages: int, tokens: int) -> float:
    """Tokens of a passage on average, those of its place included."""
    return (tokens + PLACE_TOKENS * passages) / passages


def text_to_index(title: str, passage: Passage) -> str:
    """What keyword search finds a passage by: its item's title, the headings above it, and its body."""
    return "\n".join(part for part in (title, passage.heading, passage.body) if part)


def text_to_embed(title: str, heading: str, body: str) -> str:
    """``title > heading`` in front of the body: context before the text is what helps vectors most."""
    context = " > ".join(part for part in (title, heading) if part)
    return f"{context}\n{body}" if context else body


def passage_digest(title: str, heading: str, body: str) -> bytes:
    """16 bytes that are equal exactly when two passages are indexed and embedded alike."""
    parts = (part.encode("utf-8", "surrogatepass") for part in (title, heading, body))
    return blake2b(b"".join(struct.pack("<Q", len(part)) + part for part in parts), digest_size=16).digest()


def text_size(item: Item, passages: Sequence[Passage]) -> int:
    """Characters of an item's whole text."""
    return len(item.body) if item.body is not None else sum(len(passage.body) for passage in passages)


def clamp(k: int) -> int:
    return max(0, min(k, MAX_K))


def window(where: Filter) -> tuple[bool, float, float]:
    """Whether a filter bounds time, and its two inclusive bounds."""
    since = -math.inf if where.since is None else where.since
    until = math.inf if where.until is None else where.until
    return where.since is not None or where.until is not None, since, until


def closeness(gap: float, scale: float) -> float:
    """How near something is to a window, in 0..1: 1 where they touch (``gap`` <= 0), else e^(-gap / scale)."""
    return 1.0 if gap <= 0.0 else math.exp(-gap / scale)


def window_scale(since: float, until: float) -> float:
    """How far outside a window closeness to it falls to 1/e, in seconds: as far as the window is long.

    A window of less than a day counts as a day, one without a beginning or an end as a week.
    """
    return max(until - since, DAY) if math.isfinite(until - since) else OPEN_SCALE


def timed_score(near: float, inside: int, turn: int) -> float:
    """What a passage is worth to a time window: half for closeness, half for how much of its item lies inside.

    ``near``: closeness. ``inside``: the item's exchanges in the window; ``turn``: which one of the item's hits this is,
    from 1, so that the first of every item stands before the second of any.
    """
    return round(0.5 * near + 0.5 * inside / (inside + 1) / turn, 9)


def unpack_vector(vector: Vector, dimensions: int) -> tuple[float, ...]:
    """The components of a unit vector of this many dimensions. Raises: StoreError naming what is wrong with it."""
    remedy = "The model's output is broken; passages that cannot be embedded are stored without a vector."
    if len(vector) != 4 * dimensions:
        fault = f"A vector of {len(vector) / 4:g} dimensions does not fit an index of {dimensions}."
        raise StoreError(fault, "Rebuild the vectors with `grounded-mcp sync --reembed`.")
    components = struct.unpack(f"<{dimensions}f", vector)
    norm = math.hypot(*components)
    if not math.isfinite(norm):
        raise StoreError("A vector holds a component that is not a finite number.", remedy)
    if abs(norm - 1.0) > NORM_TOLERANCE:
        raise StoreError(f"A vector has length {norm:.4g} instead of 1.", remedy)
    return components


def check_space(held: Space | None, given: Space) -> None:
    """Vectors of two models are never mixed (T5, case 44). Raises: StoreMismatch when ``given`` is not the one held."""
    if held is not None and held != given:
        raise StoreMismatch(
            f"The index holds vectors of {held.model} ({held.dimensions} dimensions), "
            f"not of {given.model} ({given.dimensions}).",
            "Configure that model again, or rebuild the vectors with `grounded-mcp sync --reembed`.",
        )
