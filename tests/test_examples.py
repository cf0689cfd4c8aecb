"""The examples, each as a person runs it: a process that asserts its own outcome, in a home of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

STORIES = sorted(path.parent.name for path in (REPOSITORY / "examples").glob("*/run.py"))


@pytest.mark.parametrize("story", STORIES)
def test_an_example_ends_as_it_says(story: str, tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GROUNDED_", "CLAUDE_"))}
    env = {**kept, "PYTHONPATH": str(REPOSITORY), "HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    program = [sys.executable, str(REPOSITORY / "examples" / story / "run.py")]
    done = subprocess.run(
        program, cwd=tmp_path, env=env, capture_output=True, encoding="utf-8", timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout, "a story is told while it runs"
    assert list(tmp_path.iterdir()) == [], "what it made is gone"


def test_every_example_is_explained_and_listed() -> None:
    assert len(STORIES) == 4
    listed = (REPOSITORY / "examples/README.md").read_text(encoding="utf-8")
    for story in STORIES:
        assert f"`{story}`" in listed
        assert "python run.py" in (REPOSITORY / "examples" / story / "README.md").read_text(encoding="utf-8")
