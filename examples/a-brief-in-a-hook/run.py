"""The session's start and two messages, as Claude Code sends them to its hooks."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def run(folder: Path, *args: str, stdin: str = "") -> str:
    env = {**os.environ, "GROUNDED_HOME": str(folder / "memory"), "GROUNDED_EMBEDDING__PROVIDER": "none"}
    command = [sys.executable, "-m", "grounded_mcp", *args]
    return subprocess.run(command, input=stdin, env=env, cwd=folder, check=True, capture_output=True, text=True).stdout


def hook(folder: Path, event: str, **sent: str) -> str:
    """What the model is given; empty where the hook says nothing."""
    payload = {"session_id": "s-1", "cwd": str(folder), "hook_event_name": event, **sent}
    printed = run(folder, "hook", event, "--client", "claude-code", stdin=json.dumps(payload))
    return json.loads(printed)["hookSpecificOutput"]["additionalContext"] if printed else ""


with tempfile.TemporaryDirectory() as scratch:
    folder = Path(scratch)
    run(folder, "remember", "Answer in British English.", "--pin", "--scope", "global")
    brief = hook(folder, "SessionStart", source="startup")
    print(brief, "\n")
    assert "Answer in British English." in brief

    run(folder, "remember", "The retry limit of src/queue/worker.py is 7 because of ticket QUE-212.")
    told = hook(folder, "UserPromptSubmit", prompt="May I change src/queue/worker.py?")
    print(told)
    assert "QUE-212" in told

    assert hook(folder, "UserPromptSubmit", prompt="Thank you!") == ""
