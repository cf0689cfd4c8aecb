"""``grounded-mcp brief``: what a hook would tell, for a person or a script to read. As light as a hook."""

from __future__ import annotations

import json
import os
import sys
import time

from grounded_mcp.brief.text import brief_data, brief_text
from grounded_mcp.errors import GroundedError
from grounded_mcp.faces.hooks.events import make_brief, make_mentions
from grounded_mcp.faces.hooks.place import settings
from grounded_mcp.home import find


def show(*, as_json: bool = False, message: str | None = None) -> int:
    """Print the brief of the project here, or what a message would bring. 0: done; 1: it could not be, and why."""
    try:
        text = _made(as_json=as_json, message=message)
    except GroundedError as error:
        sys.stderr.write(f"grounded-mcp: {error}\n")
        return 1
    data = (text + "\n").encode("utf-8", "replace")
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stderr.close()
    return 0


def _made(*, as_json: bool, message: str | None) -> str:
    home, now = find(), time.time()
    folder = home.env.get("CLAUDE_PROJECT_DIR") or os.getcwd()  # noqa: PTH109
    in_force = settings(home, folder)
    if message is not None:
        told, ids = make_mentions(home, folder, in_force, now, message)
        return json.dumps({"items": ids, "text": told}, ensure_ascii=False, indent=2) if as_json else told
    made, _ = make_brief(home, folder, in_force, now)
    return json.dumps(brief_data(made), ensure_ascii=False, indent=2) if as_json else brief_text(made)
