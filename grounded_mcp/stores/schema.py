"""One step of a store's schema, whichever the engine: numbered alike on both, and with the same meaning."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Migration:
    """Numbers are contiguous from 1; a step that was released is never edited."""

    number: int
    name: str
    script: str
