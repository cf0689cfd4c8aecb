"""What every client needs: its packages, a home of its own, and the server as a command that no client can break."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import serving

from tests.clients.packages import TOOLS, Packages, Unavailable, packages
from tests.conftest import REPOSITORY, Command

FACT = "Builds run with ninja."


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say why clients were skipped: a run without them is not a run with them."""
    skipped = terminalreporter.stats.get("skipped", [])
    told = {str(each.longrepr[-1]) for each in skipped if "tests/clients/" in each.nodeid}
    for reason in sorted(told):
        terminalreporter.write_line(f"clients: {reason.removeprefix('Skipped: ')}")


def needed(*specs: str) -> Packages:
    found = packages(*specs)
    if isinstance(found, Unavailable):
        pytest.skip(f"{found}")
    return found


@pytest.fixture(scope="session")
def tools() -> Packages:
    return needed(*TOOLS)


@dataclass(frozen=True)
class Ground:
    """A store that knows one fact, a project, and a server over it. ``server``: the command that serves on stdio."""

    home: Path
    project: Path
    server: str
    environment: dict[str, str]


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    folder = tmp_path_factory.mktemp("clients")
    home, project, server = folder / "home", folder / "quayside", folder / "serve"
    project.mkdir()
    home.mkdir()
    told = Command(home, project, {"GROUNDED_PROJECT__KEY": "quayside"})("remember", FACT, "--pin")
    assert told.returncode == 0, told.stderr
    server.write_text(_script(home), encoding="utf-8")
    server.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GROUNDED_", "CLAUDE_"))}
    return Ground(home, project, str(server), {**kept, "HOME": str(folder)})


@pytest.fixture(scope="module")
def address(ground: Ground) -> Iterator[str]:
    """The same store over HTTP: the address without its path."""
    with serving.http(ground.home, project__key="quayside") as (_, port):
        yield f"http://127.0.0.1:{port}"


def _script(home: Path) -> str:
    """Clients keep most of their environment from a server, so that it is set here."""
    variables = {
        "GROUNDED_HOME": str(home),
        "GROUNDED_EMBEDDING__PROVIDER": "none",
        "GROUNDED_PROJECT__KEY": "quayside",
        "PYTHONPATH": str(REPOSITORY),
    }
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    return f'#!/bin/sh\n{exports}exec {shlex.quote(sys.executable)} -m grounded_mcp "$@"\n'
