"""``connect`` and ``disconnect`` as a person uses them: as processes, in a home of their own."""

from __future__ import annotations

import json
import shlex
import stat
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from grounded_mcp.clients import jsonc, ledger
from grounded_mcp.clients.changing import carry_out, connecting
from grounded_mcp.clients.program import Program
from grounded_mcp.clients.table import BY_NAME, CLIENTS, Machine
from grounded_mcp.errors import ClientError
from tests.conftest import REPOSITORY, Command

SETTINGS = {
    ".claude.json": '{\n  "starts": 12,\n  "mcpServers": {\n    "other": {"type": "stdio", "command": "x"}\n  }\n}',
    ".claude/settings.json": '{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"mine"}]}]},"model":"opus"}\n',
    ".codex/config.toml": 'model = "m" # mine\r\n\r\n[mcp_servers.other]\r\ncommand = "x"\r\n',
    ".codex/hooks.json": "",
    ".gemini/settings.json": '{\n\t"theme": "dark",\n\t"mcpServers": {},\n}\n',
    ".config/opencode/opencode.jsonc": '{\n  // mine\n  "$schema": "x", // last\n}\n',
    ".cursor/mcp.json": '\ufeff{"mcpServers": {}}',
    ".cursor/hooks.json": '{\n    "version": 1,\n    "hooks": {\n        "stop": [{"command": "mine"}]\n    }\n}\n',
    ".config/Code/User/mcp.json": '{\r\n    "servers": {}, // none yet\r\n    "inputs": []\r\n}\r\n',
    ".copilot/mcp-config.json": "{}",
    ".qwen/settings.json": "// only a comment\n",
    ".codeium/windsurf/mcp_config.json": '{\n  "mcpServers": {\n  }\n}\n',
    ".config/zed/settings.json": '// Zed settings\n//\n{\n  "tab_size": 4, /* wide */\n}\n',
    ".cline/data/settings/cline_mcp_settings.json": '{ "mcpServers": { } }\n',
    ".continue/config.yaml": "name: mine # keep\nmcpServers:\n  - name: other\n    command: x\n\nmodels: []",
    ".config/Claude/claude_desktop_config.json": '{\n  "globalShortcut": ""\n}\n',
}
"""A file of each client in a layout of its own: comments, tabs, CRLF, a mark in front, one line, nothing at all."""


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """The home of somebody who has every client."""
    for name, text in SETTINGS.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return tmp_path


@pytest.fixture
def agents(command: Command, tmp_path: Path) -> Command:
    """The command, for a user whose clients are all under the scratch home and of which none is on the PATH."""
    return replace(command, env={"PATH": str(tmp_path / "bin"), "XDG_CONFIG_HOME": str(tmp_path / ".config")})


def tree(home: Path) -> dict[str, bytes]:
    """Every file under a home but for the data directory and the project, and every folder."""
    found = (each for each in home.rglob("*") if each.relative_to(home).parts[0] not in ("home", "quayside"))
    return {str(each.relative_to(home)): each.read_bytes() if each.is_file() else b"" for each in found}


def parsed(path: Path) -> Any:
    text = path.read_bytes().decode("utf-8-sig")
    load = {".toml": tomllib.loads, ".yaml": yaml.safe_load}.get(path.suffix, jsonc.load)
    return load(text.replace("\r\n", "\n"))


# --- nothing without consent, nothing left behind -----------------------------------------------------------


def test_connect_shows_the_change_and_makes_none_until_somebody_says_yes(agents: Command, user: Path) -> None:
    before = tree(user)
    for answer in ("n\n", ""):
        shown = agents("connect", "claude-code", stdin=answer)
        assert shown.returncode == 1
        assert '+    "grounded": {' in shown.stdout
        assert '-    "other": {"type": "stdio", "command": "x"}\n+    "other"' in shown.stdout
        assert "Nothing was changed" in shown.stdout
    dry = agents("connect", "--dry-run")
    assert dry.returncode == 0
    assert dry.stdout.count("\n+++ ") == 17
    assert tree(user) == before
    assert not agents.home.exists()
    agreed = agents("connect", "claude-code", stdin="y\n")
    assert agreed.returncode == 0, agreed.stderr
    assert "grounded" in parsed(user / ".claude.json")["mcpServers"]


def test_case_64_all_clients_connected_twice_and_disconnected_are_byte_identical(agents: Command, user: Path) -> None:
    before = tree(user)
    done = agents.json("connect", "--yes")
    assert {each["client"] for each in done["files"]} == set(BY_NAME) - {"cline-vscode"}
    assert {each["action"] for each in done["files"]} == {"create", "change"}
    once = tree(user)
    assert {each["action"] for each in agents.json("connect", "--yes")["files"]} == {"unchanged"}
    assert tree(user) == once
    for name in SETTINGS:
        assert b"grounded" in once[name], name
    agents.json("disconnect", "--yes")
    assert tree(user) == before
    assert not agents.home.exists()


def test_case_64_files_and_folders_that_we_made_are_gone_again(agents: Command, tmp_path: Path) -> None:
    before = tree(tmp_path)
    agents.json("connect", *BY_NAME, "--yes")
    made = tree(tmp_path)
    assert (tmp_path / ".copilot/hooks/grounded.json").is_file()
    assert {stat.S_IMODE((tmp_path / each).stat().st_mode) for each in made if (tmp_path / each).is_file()} == {0o600}
    agents.json("disconnect", "--yes")
    assert tree(tmp_path) == before


def test_case_64_purge_after_full_use_leaves_no_trace(agents: Command, user: Path) -> None:
    before = tree(user)
    (agents.cwd / "deploy.md").write_text("# Deploying\n\nRun `harbour promote`.\n", encoding="utf-8")
    for verb in (("sync",), ("remember", "Deploys go out on Tuesdays."), ("recall", "deploys"), ("status",)):
        assert agents(*verb).returncode == 0
    assert tree(user) == before, "only connect edits the settings of clients"
    agents.json("connect", "--yes")
    for groups in parsed(user / ".codex/hooks.json")["hooks"].values():
        _run_hook(agents, groups[-1]["hooks"][-1]["command"])
    kept = agents("disconnect", "--purge", stdin="n\n")
    assert (kept.returncode, (agents.home / "memory.db").is_file()) == (1, True)
    done = agents("disconnect", "--purge", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert tree(user) == before
    assert not agents.home.exists()


def _run_hook(agents: Command, line: str) -> None:
    sent = json.dumps({"session_id": "s1", "cwd": str(agents.cwd), "prompt": "deploys", "source": "startup"})
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        input=sent,
        env={name: value for name, value in agents.environment().items() if name != "GROUNDED_HOME"},
        cwd=agents.cwd,
        capture_output=True,
        encoding="utf-8",
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, line
    assert not done.stdout or isinstance(json.loads(done.stdout), dict)


def test_purge_deletes_by_name_and_leaves_what_is_not_ours(agents: Command, tmp_path: Path) -> None:
    agents("remember", "Deploys go out on Tuesdays.")
    (agents.home / "thesis.txt").write_text("mine", encoding="utf-8")
    done = agents.json("disconnect", "--purge", "--yes")
    assert done["purge"]["left"] == [str(agents.home / "thesis.txt")]
    assert [each.name for each in agents.home.iterdir()] == ["thesis.txt"]


def test_purge_deletes_a_store_that_lies_elsewhere(agents: Command, tmp_path: Path) -> None:
    store = tmp_path / "elsewhere" / "team [1].db"
    store.parent.mkdir()
    elsewhere = replace(agents, env={**agents.env, "GROUNDED_STORE": str(store)})
    assert elsewhere("remember", "Deploys go out on Tuesdays.").returncode == 0
    (store.parent / "team 1.db").write_text("mine", encoding="utf-8")
    elsewhere.json("disconnect", "--purge", "--yes")
    assert [each.name for each in store.parent.iterdir()] == ["team 1.db"]


def test_purge_keeps_the_data_while_a_client_cannot_be_disconnected(agents: Command, user: Path) -> None:
    agents.json("connect", "cursor", "--yes")
    path = user / ".cursor/mcp.json"
    path.write_bytes(path.read_bytes() + b"}")
    done = agents("disconnect", "--purge", "--yes")
    assert done.returncode == 1
    assert "is not valid JSON" in done.stdout
    assert (agents.home / "clients" / "connected.json").is_file()


# --- what each client is given ------------------------------------------------------------------------------


def test_each_client_is_given_what_it_needs(agents: Command, user: Path) -> None:
    agents.json("connect", "--yes")
    script = Path(sys.executable).with_name("grounded-mcp")
    command = [str(script)] if script.is_file() else [sys.executable, "-m", "grounded_mcp"]
    start = {"command": command[0], "args": command[1:], "env": {"GROUNDED_HOME": str(agents.home)}}
    stdio = {"type": "stdio", **start}
    expected: dict[str, tuple[tuple[str, ...], Any]] = {
        ".claude.json": (("mcpServers", "grounded"), {**stdio, "timeout": 60_000, "alwaysLoad": True}),
        ".codex/config.toml": (
            ("mcp_servers", "grounded"),
            {**start, "required": True, "startup_timeout_sec": 20, "tool_timeout_sec": 60},
        ),
        ".gemini/settings.json": (("mcpServers", "grounded"), {**start, "timeout": 60_000}),
        ".config/opencode/opencode.jsonc": (
            ("mcp", "grounded"),
            {"type": "local", "command": command, "environment": start["env"], "enabled": True, "timeout": 20_000},
        ),
        ".cursor/mcp.json": (("mcpServers", "grounded"), start),
        ".config/Code/User/mcp.json": (("servers", "grounded"), stdio),
        ".copilot/mcp-config.json": (("mcpServers", "grounded"), {"type": "local", **start, "tools": ["*"]}),
        ".qwen/settings.json": (("mcpServers", "grounded"), {**start, "timeout": 60_000, "alwaysLoadTools": True}),
        ".codeium/windsurf/mcp_config.json": (("mcpServers", "grounded"), start),
        ".config/zed/settings.json": (("context_servers", "grounded"), {"source": "custom", **start}),
        ".cline/data/settings/cline_mcp_settings.json": (("mcpServers", "grounded"), {"transport": stdio}),
        ".config/Claude/claude_desktop_config.json": (("mcpServers", "grounded"), start),
    }
    for name, (keys, value) in expected.items():
        found = parsed(user / name)
        for key in keys:
            found = found[key]
        assert found == value, name
    servers = parsed(user / ".continue/config.yaml")["mcpServers"]
    assert servers == [{"name": "other", "command": "x"}, {"name": "grounded", **stdio}]


HOOKED = {
    "claude-code": (".claude/settings.json", "SessionStart UserPromptSubmit PreCompact Stop SessionEnd"),
    "codex": (".codex/hooks.json", "SessionStart UserPromptSubmit PreCompact Stop SessionEnd"),
    "gemini": (".gemini/settings.json", "SessionStart BeforeAgent PreCompress AfterAgent SessionEnd"),
    "qwen": (".qwen/settings.json", "SessionStart UserPromptSubmit PreCompact Stop SessionEnd"),
    "cursor": (".cursor/hooks.json", "sessionStart beforeSubmitPrompt preCompact stop sessionEnd"),
    "copilot": (
        ".copilot/hooks/grounded.json",
        "sessionStart userPromptSubmitted preCompact agentStop sessionEnd",
    ),
}


@pytest.mark.parametrize("client", HOOKED)
def test_hooks_name_the_event_the_client_and_the_data_directory(agents: Command, user: Path, client: str) -> None:
    agents.json("connect", client, "--yes")
    name, events = HOOKED[client]
    hooks = parsed(user / name)["hooks"]
    assert set(hooks) == set(events.split())
    for event, groups in hooks.items():
        last = groups[-1].get("hooks", [groups[-1]])[-1]
        words = shlex.split(last.get("command") or last["bash"])
        assert words[-6:] == ["hook", event, "--client", client, "--home", str(agents.home)]
        limit = last.get("timeout") or last["timeoutSec"]
        assert (
            limit == (3 if "rompt" in event else 10 if "nd" in event[-3:] else 5)
            if client != "gemini"
            else limit >= 3_000
        )
    if "mine" in SETTINGS.get(name, ""):
        assert "mine" in json.dumps(hooks), "the user's own hook stays"


def test_on_request_a_message_asks_the_running_server_where_the_client_can(agents: Command, user: Path) -> None:
    before = tree(user)
    agents.json("connect", "claude-code", "codex", "gemini", "--yes")
    agents.json("connect", "claude-code", "codex", "gemini", "--tool-hooks", "--yes")
    for client, name in (("claude-code", ".claude/settings.json"), ("codex", ".codex/hooks.json")):
        hooks = parsed(user / name)["hooks"]
        asked = ("hook_event_name", "session_id", "cwd", "prompt")
        assert hooks["UserPromptSubmit"] == [
            {
                "hooks": [
                    {
                        "type": "mcp_tool",
                        "server": "grounded",
                        "tool": "grounded_mcp_hook",
                        "input": {**{each: f"${{{each}}}" for each in asked}, "client": client},
                        "timeout": 3,
                    }
                ]
            }
        ]
        assert {hooks[event][-1]["hooks"][0]["type"] for event in set(hooks) - {"UserPromptSubmit"}} == {"command"}
    agents.json("disconnect", "codex", "--yes")
    (user / ".claude/settings.json").write_bytes((user / ".claude/settings.json").read_bytes() + b"\n")
    agents.json("disconnect", "--yes")
    left = tree(user)
    assert left.pop(".claude/settings.json") == before.pop(".claude/settings.json") + b"\n"
    assert left == before


def test_no_hooks_means_none_and_takes_those_of_an_earlier_connect_out(agents: Command, user: Path) -> None:
    before = tree(user)
    agents.json("connect", "claude-code", "gemini", "--yes")
    agents.json("connect", "claude-code", "gemini", "--no-hooks", "--yes")
    now = tree(user)
    assert now[".claude/settings.json"] == before[".claude/settings.json"]
    assert b'"hooks"' not in now[".gemini/settings.json"]
    assert b"grounded" in now[".gemini/settings.json"]
    agents.json("disconnect", "--yes")
    assert tree(user) == before


def test_a_relative_data_directory_and_a_settings_file_are_written_as_absolute_paths(agents: Command) -> None:
    moved = {**agents.env, "GROUNDED_HOME": "data", "GROUNDED_STORE": "postgresql://u:secret@db/x"}
    shown = agents("connect", "--print", "cursor", "--no-hooks", env=moved).stdout
    server = json.loads(shown.partition("\n")[2])["mcpServers"]["grounded"]
    assert server["env"] == {"GROUNDED_HOME": str(agents.cwd / "data")}


def test_print_says_what_to_paste_where_and_changes_nothing(agents: Command, user: Path) -> None:
    before = tree(user)
    shown = agents("connect", "--print", "jetbrains", "codex").stdout
    assert shown.startswith("# JetBrains AI Assistant: Settings > Tools > AI Assistant > Model Context Protocol\n{")
    assert "\n[mcp_servers.grounded]\ncommand = " in shown
    generic = agents.json("connect", "--print")["files"]
    assert [each["client"] for each in generic] == ["other"]
    assert json.loads(generic[0]["text"])["mcpServers"]["grounded"]["env"] == {"GROUNDED_HOME": str(agents.home)}
    assert tree(user) == before


# --- detection ----------------------------------------------------------------------------------------------


def test_a_client_is_found_by_its_folder_or_by_its_program_which_is_not_run(agents: Command, tmp_path: Path) -> None:
    missing = agents("connect", "--yes")
    assert missing.returncode == 1
    assert "no client was found" in missing.stderr
    (tmp_path / ".cursor").mkdir()
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'was-run'}\n", encoding="utf-8")
    program.chmod(0o755)
    found = {each["client"] for each in agents.json("connect", "--dry-run")["files"]}
    assert found == {"cursor", "codex"}
    assert not (tmp_path / "was-run").exists()


def test_variables_that_move_a_clients_folder_are_followed(agents: Command, tmp_path: Path) -> None:
    moved = {"CLAUDE_CONFIG_DIR": str(tmp_path / "c"), "CODEX_HOME": str(tmp_path / "x")}
    done = agents.json("connect", "claude-code", "codex", "--dry-run", env=moved)
    assert [each["path"] for each in done["files"]] == [
        str(tmp_path / each) for each in ("c/.claude.json", "c/settings.json", "x/config.toml", "x/hooks.json")
    ]


@pytest.mark.parametrize(("name", "said"), [("emacs", "Choose from claude-code"), ("jetbrains", "--print jetbrains")])
def test_an_unknown_client_is_refused_with_the_names_there_are(agents: Command, name: str, said: str) -> None:
    done = agents("connect", name, "--yes")
    assert done.returncode == 1
    assert said in done.stderr


def test_a_change_in_a_line_of_any_length_is_shown_whole(agents: Command, tmp_path: Path) -> None:
    path = tmp_path / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"a": "x" * 5_000, "mcpServers": {}, "b": "y" * 5_000}), encoding="utf-8")
    shown = agents("connect", "cursor", "--dry-run").stdout
    gone, come = (line for line in shown.splitlines() if "mcpServers" in line and line[:4] in ("-… x", "+… x"))
    assert gone == f'-… {"x" * 42}", "mcpServers": {{}}, "b": "{"y" * 51} …'
    assert f'"env": {{"GROUNDED_HOME": "{agents.home}"}}' in come
    assert len(come) < 1_000


def test_connect_says_where_the_copies_are_and_what_to_do_next(agents: Command, user: Path) -> None:
    done = agents("connect", "zed", "--yes").stdout
    copies = agents.home / "clients" / "before"
    assert f"the files as they were are in {copies}." in done
    assert [each.read_text("utf-8") for each in copies.iterdir()] == [SETTINGS[".config/zed/settings.json"]]
    assert "Nothing is remembered yet: run `grounded-mcp sync` in a project." in done
    assert agents("remember", "Deploys go out on Tuesdays.").returncode == 0
    assert "Nothing is remembered yet" not in agents("connect", "codex", "--yes").stdout


def test_json_asks_nobody(agents: Command, user: Path) -> None:
    done = agents("connect", "--json")
    assert done.returncode == 1
    assert "--yes" in done.stderr


# --- files of other people ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "broken", "said"),
    [
        (".cursor/mcp.json", b'{\n  "a": 1\n  "b": 2\n}', "is not valid JSON: line 3"),
        (".cursor/mcp.json", '{"a": "é"}'.encode("latin-1"), "is not valid JSON"),
        (".cursor/mcp.json", '{"a": 1}'.encode("utf-16"), "is not valid JSON"),
        (".cursor/mcp.json", b'{"mcpServers": {"grounded": {"command": "another"}}}', "is something else"),
        (".cursor/mcp.json", b'{"mcpServers": []}', "is no object"),
    ],
)
def test_a_file_that_cannot_be_changed_is_left_as_it_is_and_the_others_are_connected(
    agents: Command, user: Path, name: str, broken: bytes, said: str
) -> None:
    (user / name).write_bytes(broken)
    done = agents("connect", "cursor", "codex", "--yes")
    assert done.returncode == 1
    assert said in done.stdout
    assert (user / name).read_bytes() == broken
    assert "grounded" in parsed(user / ".codex/config.toml")["mcp_servers"]


def test_a_linked_settings_file_stays_a_link_and_its_mode_stays(agents: Command, user: Path) -> None:
    path, real = user / ".claude.json", user / "dotfiles.json"
    path.rename(real)
    path.symlink_to("dotfiles.json")
    real.chmod(0o640)
    before = tree(user)
    agents.json("connect", "claude-code", "--yes")
    assert path.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert "grounded" in parsed(real)["mcpServers"]
    agents.json("disconnect", "--yes")
    assert path.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert tree(user) == before


def test_what_others_changed_in_the_meantime_survives_disconnect(agents: Command, user: Path) -> None:
    before = tree(user)
    agents.json("connect", "codex", "claude-code", "--yes")
    toml = user / ".codex/config.toml"
    toml.write_bytes(toml.read_bytes().replace(b'"m"', b'"n"') + b"\r\n[tui]\r\nx = 1\r\n")
    (user / ".claude/settings.json").unlink()
    agents.json("disconnect", "--yes")
    assert toml.read_bytes() == before[".codex/config.toml"].replace(b'"m"', b'"n"') + b"\r\n[tui]\r\nx = 1\r\n"
    assert (user / ".claude.json").read_bytes() == before[".claude.json"]
    assert not (user / ".claude/settings.json").exists()
    assert not agents.home.exists()


def test_without_its_records_a_client_that_is_named_is_still_disconnected(agents: Command, user: Path) -> None:
    before = parsed(user / ".codex/config.toml")
    agents.json("connect", "codex", "--yes")
    (agents.home / "clients" / "connected.json").unlink()
    assert agents.json("disconnect", "--yes")["files"] == []
    agents.json("disconnect", "codex", "--yes")
    assert parsed(user / ".codex/config.toml") == before
    assert parsed(user / ".codex/hooks.json") == {}


def test_records_that_cannot_be_read_are_said_and_nothing_is_touched(agents: Command, user: Path) -> None:
    agents.json("connect", "codex", "--yes")
    (agents.home / "clients" / "connected.json").write_text("{", encoding="utf-8")
    before = tree(user)
    done = agents("disconnect", "--yes")
    assert done.returncode == 1
    assert "Move it away" in done.stderr
    assert tree(user) == before


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_case_62_what_is_kept_of_clients_settings_is_private(agents: Command, user: Path, umask: int) -> None:
    line = f"umask {umask:o}; exec {shlex.join(agents.argv('connect', '--yes'))}"
    subprocess.run(["/bin/sh", "-c", line], env=agents.environment(), cwd=agents.cwd, check=True, capture_output=True)
    kept = [agents.home, *(agents.home / "clients").rglob("*"), agents.home / "clients"]
    assert {stat.S_IMODE(each.stat().st_mode) for each in kept if each.is_file()} == {0o600}
    assert {stat.S_IMODE(each.stat().st_mode) for each in kept if each.is_dir()} == {0o700}


# --- between the plan and the deed ---------------------------------------------------------------------------


def _plan(user: Path, home: Path, name: str) -> Any:
    machine = Machine(user, {}, "linux")
    program = Program(("/opt/v/bin/grounded-mcp",), {"GROUNDED_HOME": str(home)})
    return connecting(BY_NAME[name], machine, program, home, ledger.load(home))


def test_an_edit_between_the_plan_and_the_deed_is_not_overwritten(user: Path) -> None:
    home = user / "home"
    (change, *_) = _plan(user, home, "cursor")
    (user / ".cursor/mcp.json").write_text('{"edited": 1}', encoding="utf-8")
    with pytest.raises(ClientError, match="another program"):
        carry_out(change, home)
    assert (user / ".cursor/mcp.json").read_text(encoding="utf-8") == '{"edited": 1}'
    assert ledger.load(home) == {}
    assert [each.name for each in (user / ".cursor").iterdir() if each.suffix == ".tmp"] == []


def test_what_was_agreed_to_is_done_even_if_the_file_changed_elsewhere_but_no_other_thing(user: Path) -> None:
    home, path = user / "home", user / ".claude.json"
    (shown, _) = _plan(user, home, "claude-code")
    path.write_text(path.read_text(encoding="utf-8").replace("12", "13"), encoding="utf-8")
    (again, _) = _plan(user, home, "claude-code")
    assert again.agreed() == shown.agreed()
    path.write_text('{"mcpServers": {}}', encoding="utf-8")
    (again, _) = _plan(user, home, "claude-code")
    assert again.agreed() != shown.agreed()


def test_a_crash_after_the_record_and_before_the_file_leaves_nothing_to_undo(agents: Command, user: Path) -> None:
    before = tree(user)
    agents.json("connect", "codex", "--yes")
    for name in (".codex/config.toml", ".codex/hooks.json"):
        (user / name).write_bytes(before[name])
    agents.json("disconnect", "--yes")
    assert tree(user) == before
    assert not agents.home.exists()


def test_a_folder_that_cannot_be_used_is_said(agents: Command, tmp_path: Path) -> None:
    (tmp_path / ".cursor").write_text("mine", encoding="utf-8")
    done = agents("connect", "cursor", "--yes")
    assert done.returncode == 1
    assert "mcp.json cannot be read: not a directory. It is as it was" in done.stdout
    assert (tmp_path / ".cursor").read_text(encoding="utf-8") == "mine"


def test_the_command_line_loads_neither_clients_nor_yaml_before_they_are_asked_for() -> None:
    code = (
        "import sys; from grounded_mcp.faces import cli; cli._parser();"
        "print([n for n in sys.modules if n == 'yaml' or n.startswith('grounded_mcp.clients')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.strip() == "[]"


def test_every_client_of_the_table_has_a_name_of_its_own() -> None:
    assert len(BY_NAME) == len(CLIENTS) == 14


def test_a_client_of_which_one_file_is_refused_is_left_whole_and_the_others_are_connected(
    agents: Command, tmp_path: Path
) -> None:
    folder = tmp_path / ".cursor"
    folder.mkdir()
    (folder / "mcp.json").write_text('{"mcpServers": [1, 2', encoding="utf-8")
    done = agents("connect", "cursor", "zed", "--yes")
    assert done.returncode == 1
    assert [each.name for each in folder.iterdir()] == ["mcp.json"]
    assert "What was refused above is as it was." in done.stdout
    assert "grounded" in (tmp_path / ".config/zed/settings.json").read_text(encoding="utf-8")
