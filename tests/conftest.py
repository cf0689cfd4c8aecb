"""What every test may use: a data directory of its own, and the command as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import apsw
import postgres_server
import pytest

REPOSITORY = Path(__file__).parent.parent


def pytest_report_header() -> list[str]:
    parts = [f"{name} {version(name)}" for name in ("mcp", "sqlite-vec", "fastembed", "onnxruntime")]
    engine = f"SQLite {apsw.sqlite_lib_version()} (apsw {apsw.apsw_version()})"
    return [f"{engine}, {', '.join(parts)}", postgres_server.describe()]


@dataclass(frozen=True)
class Command:
    """``grounded-mcp`` run as a process, with a data directory of its own and vectors off unless asked for."""

    home: Path
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)

    def environment(self, **more: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("GROUNDED_", "CLAUDE_", "PYTHON"))}
        ours = {
            "GROUNDED_HOME": str(self.home),
            "GROUNDED_EMBEDDING__PROVIDER": "none",
            "PYTHONPATH": str(REPOSITORY),
            **dict.fromkeys(("HOME", "USERPROFILE"), str(self.home.parent)),  # no agent's sessions but a test's own
        }
        return {**kept, **ours, **self.env, **more}

    def argv(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "grounded_mcp", *args]

    def __call__(
        self, *args: str, cwd: Path | None = None, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(*args),
            cwd=cwd or self.cwd,
            env=self.environment(**(env or {})),
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )

    def json(self, *args: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Any:
        """The parsed output of a verb with ``--json``; the verb has to succeed."""
        done = self(*args, "--json", cwd=cwd, env=env)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty project folder, its name unlike any word a test searches for."""
    folder = tmp_path / "quayside"
    folder.mkdir()
    return folder


@pytest.fixture
def command(tmp_path: Path, project: Path) -> Command:
    return Command(tmp_path / "home", project)


@pytest.fixture
def git() -> Callable[..., str]:
    """git in a folder, with an identity and without the machine's own configuration."""

    def run(folder: Path, *args: str) -> str:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
        env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        done = subprocess.run(
            ["git", *identity, *args], cwd=folder, env=env, capture_output=True, text=True, check=True
        )
        return done.stdout

    return run
