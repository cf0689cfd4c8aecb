"""What is known of a project, as data: scripts that worked, recent sessions, and what a question found beside them.

Pure. Knows nothing about how it is collected or shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from grounded_mcp.trust import Confidence
from grounded_mcp.values import Item, Project, Recall

Intent = Literal["generate", "repair", "diagnose", "inspect"]
"""What an agent recalls for. It is recorded, and changes no ranking (P2)."""

INTENTS: tuple[Intent, ...] = get_args(Intent)


@dataclass(frozen=True, slots=True)
class VerifiedScript:
    """A command that was seen to work, and whether its files are still the ones that worked (P1)."""

    item: Item
    state: Literal["verified", "stale", "missing"]
    files: tuple[str, ...]
    changed: tuple[str, ...]
    """Those of the files that are missing, or are not known to be as they were."""
    confidence: Confidence


@dataclass(frozen=True, slots=True)
class ProjectMemory:
    """The answer of ``get_project_memory``. ``recall`` is None where nothing was asked."""

    id: str
    project: Project
    at: float
    scripts: tuple[VerifiedScript, ...]
    scripts_available: int
    sessions: tuple[Item, ...]
    lists_ms: float = 0.0
    """Milliseconds that scripts and sessions took, which those of ``recall`` hold, too."""
    reported: str | None = None
    """The earlier recall that a report of reuse was noted for; empty where there was none, None without a report."""
    intent: Intent | None = None
    recall: Recall | None = None
