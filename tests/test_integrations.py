"""The ready-made integrations: their versions, commands and hooks are those of this package.

``integrations/README.md`` names the tool by which each client checks its own format.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from grounded_mcp import __version__
from grounded_mcp.clients.hooks import CLAUDE_EVENTS, GEMINI_EVENTS, GEMINI_MATCHERS, tool_hook
from tests.conftest import REPOSITORY

FOLDER = REPOSITORY / "integrations"
PLUGIN = FOLDER / "claude-code/plugins/grounded"
DISTRIBUTION = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RUN = ["--from", f"grounded-memory-mcp=={__version__}", "grounded-mcp"]


def read(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def test_every_version_is_the_packages() -> None:
    assert DISTRIBUTION["version"] == __version__
    bundle = tomllib.loads((FOLDER / "mcpb/pyproject.toml").read_text(encoding="utf-8"))["project"]
    server = read("registry/server.json")
    marketplace = read("claude-code/.claude-plugin/marketplace.json")
    plugin = read("claude-code/plugins/grounded/.claude-plugin/plugin.json")
    named = (plugin, read("gemini/gemini-extension.json"), read("mcpb/manifest.json"), bundle, server)
    versions = [each["version"] for each in (*named, *marketplace["plugins"], *server["packages"])]
    assert versions == [__version__] * 7
    assert bundle["dependencies"] == [f"grounded-memory-mcp=={__version__}"]


def test_what_is_installed_is_the_distribution_and_never_a_package_of_the_commands_name() -> None:
    assert DISTRIBUTION["name"] == "grounded-memory-mcp"
    assert {"grounded-mcp", "grounded-memory-mcp"} <= set(DISTRIBUTION["scripts"]), "`uvx NAME` runs a script NAME"
    assert read("registry/server.json")["packages"][0]["identifier"] == "grounded-memory-mcp"
    for path in FOLDER.rglob("*"):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            assert re.search(r"(uvx|install)( --\S+)* grounded-mcp\b", text) is None, path
            assert set(re.findall(r"grounded-memory-mcp==([\w.]+)", text)) <= {__version__}, path


def test_the_servers_are_started_alike_and_get_what_their_clients_need() -> None:
    plugin = json.loads((PLUGIN / ".mcp.json").read_text(encoding="utf-8"))["mcpServers"]
    assert plugin == {"memory": {"command": "uvx", "args": RUN, "timeout": 60_000, "alwaysLoad": True}}
    extension = read("gemini/gemini-extension.json")["mcpServers"]
    assert extension == {"grounded": {"command": "uvx", "args": RUN, "timeout": 60_000}}
    bundle = read("mcpb/manifest.json")["server"]
    assert bundle["type"] == "uv"
    assert (FOLDER / "mcpb" / bundle["entry_point"]).is_file()


@pytest.mark.parametrize(
    ("name", "client", "limits"),
    [
        ("claude-code/plugins/grounded/hooks/hooks.json", "claude-code", CLAUDE_EVENTS),
        ("gemini/hooks/hooks.json", "gemini", GEMINI_EVENTS),
    ],
)
def test_the_hooks_are_those_that_connect_installs(name: str, client: str, limits: dict[str, int]) -> None:
    found = {}
    for event, ((group,),) in ((event, (groups,)) for event, groups in read(name)["hooks"].items()):
        (hook,) = group["hooks"]
        assert client == "claude-code" or group["matcher"] == GEMINI_MATCHERS.get(event, "*")
        found[event] = hook["timeout"]
        if hook["type"] == "mcp_tool":
            assert (event, hook) == ("UserPromptSubmit", tool_hook("claude-code", "plugin:grounded:memory"))
            continue
        assert f"{' '.join(RUN)} hook {event} --client {client} " in hook["command"]
        assert "uvx --offline" in hook["command"], "a hook never downloads"
    assert found == dict(limits)


def test_a_hook_of_the_plugin_is_silent_where_uv_is_missing(tmp_path: Path) -> None:
    shell = shutil.which("sh")
    assert shell is not None
    for groups in read("claude-code/plugins/grounded/hooks/hooks.json")["hooks"].values():
        line = groups[0]["hooks"][0].get("command", "true")
        done = subprocess.run([shell, "-c", line], env={"PATH": str(tmp_path)}, capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_marketplace_lists_the_plugin_that_is_there() -> None:
    (listed,) = read("claude-code/.claude-plugin/marketplace.json")["plugins"]
    folder = FOLDER / "claude-code" / listed["source"]
    plugin = json.loads((folder / ".claude-plugin/plugin.json").read_text(encoding="utf-8"))
    assert {name: listed[name] for name in ("name", "version", "description")} == {
        name: plugin[name] for name in ("name", "version", "description")
    }
    skill = (folder / "skills/recall/SKILL.md").read_text(encoding="utf-8")
    assert re.match(r"---\nname: recall\ndescription: .{40,1024}\n---\n", skill)


def test_the_registry_entry_keeps_the_registrys_limits() -> None:
    """From the schema of 2025-12-11: the form of the name, and the length of title and description."""
    server = read("registry/server.json")
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", server["name"])
    assert 3 <= len(server["name"]) <= 200
    assert 1 <= len(server["title"]) <= 100
    assert 1 <= len(server["description"]) <= 100
    assert server["packages"][0]["transport"] == {"type": "stdio"}
    assert "latest" not in json.dumps(server["packages"])


def test_the_registry_finds_its_name_for_us_in_the_readme_once_there_is_an_owner() -> None:
    name = read("registry/server.json")["name"]
    lines = re.findall(r"<!-- mcp-name: (\S+) -->", (REPOSITORY / "README.md").read_text(encoding="utf-8"))
    assert lines == ([] if "OWNER" in name else [name])
