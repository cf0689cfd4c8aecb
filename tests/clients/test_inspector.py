"""The MCP Inspector, the protocol's own client for people: both eras, over stdio and over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.clients.conftest import FACT, Ground
from tests.clients.packages import Packages

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest, ground: Ground) -> str:
    return ground.server if request.param == "stdio" else f"{request.getfixturevalue('address')}/mcp"


def inspect(tools: Packages, ground: Ground, target: str, era: str, method: str, *args: str) -> tuple[int, Any]:
    """The exit code and what was printed."""
    asked = ("--cli", target, "--method", method, *args, "--protocol-era", era, "--format", "json", "-q")
    done = tools.run("mcp-inspector", *asked, env=ground.environment, cwd=ground.project)
    assert done.stdout, done.stderr
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


@ERAS
def test_f1_the_inspector_lists_the_tools_and_finds_no_error_in_their_schemas(
    tools: Packages, ground: Ground, target: str, era: str
) -> None:
    code, (listed,) = inspect(tools, ground, target, era, "tools/list", "--strict")
    assert code == 0
    assert len(listed["result"]["tools"]) == 8


@ERAS
def test_f1_the_inspector_recalls_a_fact(tools: Packages, ground: Ground, target: str, era: str) -> None:
    asked = ("--tool-name", "ground_recall", "--tool-arg", "query=ninja")
    code, (found,) = inspect(tools, ground, target, era, "tools/call", *asked)
    assert code == 0
    assert FACT in found["result"]["content"][0]["text"]
    assert FACT in found["result"]["structuredContent"]["data"][0]["text"]


@ERAS
def test_f1_the_inspector_reads_the_brief_as_a_resource(tools: Packages, ground: Ground, target: str, era: str) -> None:
    code, (read,) = inspect(tools, ground, target, era, "resources/read", "--uri", "memory://brief")
    assert code == 0
    assert FACT in read["result"]["contents"][0]["text"]


@ERAS
def test_f1_the_inspector_gets_the_brief_as_a_prompt(tools: Packages, ground: Ground, era: str) -> None:
    asked = ("--prompt-name", "startup_brief")
    code, (got,) = inspect(tools, ground, ground.server, era, "prompts/get", *asked)
    assert code == 0
    assert FACT in got["result"]["messages"][0]["content"]["text"]


@ERAS
def test_g5_the_inspector_is_told_which_argument_was_wrong(tools: Packages, ground: Ground, era: str) -> None:
    asked = ("--tool-name", "ground_recall", "--tool-arg", "search=ninja")
    code, told = inspect(tools, ground, ground.server, era, "tools/call", *asked)
    assert code == 5, "the Inspector's code for a tool's error"
    assert "search: is not an argument. Did you mean query?" in json.dumps(told)
