"""The protocol's SDK for TypeScript, which most clients are made with: version 1 and version 2, every transport."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import FACT, Ground
from tests.clients.packages import Packages

HERE = Path(__file__).parent
ROUTES = {"stdio": "", "http": "/mcp", "sse": "/sse"}


def visit(tools: Packages, ground: Ground, script: str, kind: str, target: str) -> Any:
    for each in HERE.glob("typescript-*.mjs"):  # modules are looked for beside the script that imports them
        shutil.copyfile(each, tools.folder / each.name)
    command = ["node", str(tools.folder / script), kind, target]
    env = tools.environment(ground.environment)
    done = subprocess.run(
        command, env=env, cwd=ground.project, capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("version", "kind"), [("v1", "stdio"), ("v1", "http"), ("v1", "sse"), ("v2", "stdio"), ("v2", "http")]
)
def test_f1_f2_the_typescript_sdk_is_served(
    tools: Packages, ground: Ground, address: str, version: str, kind: str
) -> None:
    target = f"{address}{ROUTES[kind]}" if kind != "stdio" else ground.server
    seen = visit(tools, ground, f"typescript-{version}.mjs", kind, target)
    assert seen["server"] == "grounded-mcp"
    assert len(seen["tools"]) == 8
    for half in ("structured", "text", "brief", "prompt"):
        assert FACT in seen[half], half
    assert seen["wrong"] == [True, "query: 7 is not usable. Give a text."]
    assert seen["completed"] == ["blended"]
    assert "ground_recall" in seen["instructions"]
    if version == "v2":
        assert seen["version"] == "2026-07-28"
