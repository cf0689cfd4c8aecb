"""A brief as a model reads it, and as data. Stored text is inert; each section is one advisory wrapper (P4). Pure."""

from __future__ import annotations

from typing import Any

from grounded_mcp.brief.choosing import Brief
from grounded_mcp.brief.lines import GUIDANCE, day, heading, section, title
from grounded_mcp.inert import telling

NOTHING = "Nothing is remembered of this project yet."
_KINDS = {
    "doc": ("document", "documents"),
    "script": ("command", "commands"),
    "episode": ("attempt", "attempts"),
    "digest": ("weekly digest", "weekly digests"),
}
"""What kinds are called, where it is not just with an s."""


def brief_text(made: Brief) -> str:
    """The brief in Markdown, within the room it was made for."""
    head = title(made)
    if made.empty:
        return f"{head}\n{NOTHING}"
    parts = [head, telling(GUIDANCE, (*(line for lane in made.lanes for line in lane.lines), *made.named))]
    for lane in made.lanes:
        parts += [heading(lane.name), section(lane.lines)]
    if made.named:
        parts += [heading("Also known, by name"), section([", ".join(made.named)])]
    if made.uncounted:
        parts.append("Not shown: " + ", ".join(_counted(kind, count) for kind, count in made.uncounted) + ".")
    return "\n".join(parts)


def brief_data(made: Brief) -> dict[str, Any]:
    """The same as JSON: texts as they are shown, without the wrappers that only a model needs."""
    return {
        "project": made.project,
        "name": made.name,
        "branch": made.branch,
        "worktree": made.worktree,
        "at": day(made.at),
        "lanes": [
            {
                "name": lane.name,
                "items": [{"open": id, "line": line} for id, line in zip(lane.ids, lane.lines, strict=True)],
                "left": len(lane.left),
            }
            for lane in made.lanes
        ],
        "named": list(made.named),
        "notShown": dict(made.uncounted),
        "empty": made.empty,
    }


def _counted(kind: str, count: int) -> str:
    one, more = _KINDS.get(kind, (kind, f"{kind}s"))
    return f"{count:,} {one if count == 1 else more}"
