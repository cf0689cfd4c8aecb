"""The clients: how each is recognised, which files it reads, and what they have to hold. Data; nothing is run.

Paths, keys and what each client needs are those of the clients' own documentation, and of the versions that were tried
(docs/decisions/0013). Knows nothing about how a file is edited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from grounded_mcp.clients import hooks
from grounded_mcp.clients.merging import FormatName
from grounded_mcp.clients.program import NAME, Program
from grounded_mcp.clients.splicing import Entry


@dataclass(frozen=True, slots=True)
class Machine:
    """Where things are for this user: ``env`` holds the variables by which clients are told to look elsewhere."""

    user: Path
    env: Mapping[str, str]
    platform: str
    search: str | None = None
    """The PATH to look for programs on."""


Where = Callable[[Machine], Path]
Entries = Callable[[Program], tuple[Entry, ...]]


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A file of a client, and the entries that it is to hold."""

    where: Where
    entries: Entries
    format: FormatName = "json"
    hooks: bool = False
    """Holds hooks only, so that it is left alone when none are wanted."""


@dataclass(frozen=True, slots=True)
class Client:
    """``programs`` are looked for on the PATH, ``signs`` are files or folders that only this client makes."""

    name: str
    title: str
    files: tuple[SettingsFile, ...]
    programs: tuple[str, ...] = ()
    signs: tuple[Where, ...] = ()
    note: str = ""


# --- places -----------------------------------------------------------------------------------------------


def _under(folder: str, rest: str = "", *, variable: str = "") -> Where:
    """A place under the user's home; ``variable`` stands for ``folder`` where it is set."""

    def where(machine: Machine) -> Path:
        moved = machine.env.get(variable, "").strip() if variable else ""
        base = Path(moved) if moved else machine.user / folder
        return base / rest if rest else base

    return where


def _applications(rest: str) -> Where:
    """A place in the folder where the operating system keeps applications' settings."""

    def where(machine: Machine) -> Path:
        base = {
            "darwin": machine.user / "Library" / "Application Support",
            "win32": Path(machine.env.get("APPDATA") or machine.user / "AppData" / "Roaming"),
        }.get(machine.platform, Path(machine.env.get("XDG_CONFIG_HOME") or machine.user / ".config"))
        return base / rest

    return where


def _config(rest: str, *, windows: str = "") -> Where:
    """A place in ``~/.config``, on macOS too; ``windows`` is its name in the roaming folder there."""

    def where(machine: Machine) -> Path:
        if machine.platform == "win32" and windows:
            return Path(machine.env.get("APPDATA") or machine.user / "AppData" / "Roaming") / windows
        return Path(machine.env.get("XDG_CONFIG_HOME") or machine.user / ".config") / rest

    return where


def _claude_json(machine: Machine) -> Path:
    return _under("", ".claude.json", variable="CLAUDE_CONFIG_DIR")(machine)


def _gemini(rest: str) -> Where:
    return _under("", f".gemini/{rest}", variable="GEMINI_CLI_HOME")


def _cline(machine: Machine) -> Path:
    data = machine.env.get("CLINE_DATA_DIR", "").strip()
    base = Path(data) if data else _under(".cline", "data", variable="CLINE_DIR")(machine)
    return base / "settings" / "cline_mcp_settings.json"


def _opencode(machine: Machine) -> Path:
    """The one of its two names that is there."""
    folder = _config("opencode")(machine)
    return folder / ("opencode.jsonc" if (folder / "opencode.jsonc").is_file() else "opencode.json")


# --- entries ----------------------------------------------------------------------------------------------


def _server(program: Program, **more: Any) -> dict[str, Any]:
    command, *args = program.command
    return {**more.pop("first", {}), "command": command, "args": args, "env": dict(program.env), **more}


def _member(program: Program, *, keys: tuple[str, ...] = ("mcpServers",), **more: Any) -> tuple[Entry, ...]:
    return (Entry((*keys, NAME), _server(program, **more)),)


def _opencode_entries(program: Program) -> tuple[Entry, ...]:
    value = {
        "type": "local",
        "command": list(program.command),
        "environment": dict(program.env),
        "enabled": True,
        "timeout": START_MS,
    }
    return (Entry(("mcp", NAME), value),)


def _cline_entries(program: Program) -> tuple[Entry, ...]:
    return (Entry(("mcpServers", NAME), {"transport": _server(program, first={"type": "stdio"})}),)


def _continue_entries(program: Program) -> tuple[Entry, ...]:
    return (Entry(("mcpServers",), _server(program, first={"name": NAME, "type": "stdio"}), "item"),)


# --- the table --------------------------------------------------------------------------------------------

START_MS = 20_000
"""For clients that give up on a server that starts slowly: a first start compiles its modules, some 3 s."""

CALL_MS = 60_000
"""For one call; the longest, a recall while the model loads, is answered in 2 s."""

_CLAUDE_SERVER = partial(_member, first={"type": "stdio"}, timeout=CALL_MS, alwaysLoad=True)
_CODEX_SERVER = partial(
    _member,
    keys=("mcp_servers",),
    required=True,
    startup_timeout_sec=START_MS // 1000,
    tool_timeout_sec=CALL_MS // 1000,
)
_ZED_SERVER = partial(_member, keys=("context_servers",), first={"source": "custom"})
_VSCODE_SERVER = partial(_member, keys=("servers",), first={"type": "stdio"})
_COPILOT_SERVER = partial(_member, first={"type": "local"}, tools=["*"])

CLIENTS: tuple[Client, ...] = (
    Client(
        "claude-code",
        "Claude Code",
        (
            SettingsFile(_claude_json, _CLAUDE_SERVER),
            SettingsFile(_under(".claude", "settings.json", variable="CLAUDE_CONFIG_DIR"), hooks.claude, hooks=True),
        ),
        ("claude",),
        (_under(".claude", variable="CLAUDE_CONFIG_DIR"), _claude_json),
    ),
    Client(
        "codex",
        "Codex",
        (
            SettingsFile(_under(".codex", "config.toml", variable="CODEX_HOME"), _CODEX_SERVER, "toml"),
            SettingsFile(_under(".codex", "hooks.json", variable="CODEX_HOME"), hooks.codex, hooks=True),
        ),
        ("codex",),
        (_under(".codex", variable="CODEX_HOME"),),
        "Codex asks once whether to trust the hooks. It waits for the server and does not start without it: run "
        "`grounded-mcp disconnect` before you uninstall this.",
    ),
    Client(
        "gemini",
        "Gemini CLI",
        (
            SettingsFile(_gemini("settings.json"), partial(_member, timeout=CALL_MS)),
            SettingsFile(_gemini("settings.json"), hooks.gemini, hooks=True),
        ),
        ("gemini",),
        (_gemini(""),),
    ),
    Client(
        "opencode",
        "opencode",
        (SettingsFile(_opencode, _opencode_entries),),
        ("opencode",),
        (_config("opencode"),),
        "opencode has no hooks that run commands.",
    ),
    Client(
        "cursor",
        "Cursor",
        (
            SettingsFile(_under(".cursor", "mcp.json"), _member),
            SettingsFile(_under(".cursor", "hooks.json"), hooks.cursor, hooks=True),
        ),
        ("cursor", "cursor-agent"),
        (_under(".cursor"), _applications("Cursor")),
    ),
    Client(
        "vscode",
        "VS Code",
        (SettingsFile(_applications("Code/User/mcp.json"), _VSCODE_SERVER),),
        ("code",),
        (_applications("Code/User"),),
        "VS Code runs the hooks that are connected for Claude Code and Copilot CLI.",
    ),
    Client(
        "copilot",
        "Copilot CLI",
        (
            SettingsFile(_under(".copilot", "mcp-config.json", variable="COPILOT_HOME"), _COPILOT_SERVER),
            SettingsFile(_under(".copilot", "hooks/grounded.json", variable="COPILOT_HOME"), hooks.copilot, hooks=True),
        ),
        ("copilot",),
        (_under(".copilot", variable="COPILOT_HOME"),),
    ),
    Client(
        "qwen",
        "Qwen Code",
        (
            SettingsFile(
                _under(".qwen", "settings.json", variable="QWEN_HOME"),
                partial(_member, timeout=CALL_MS, alwaysLoadTools=True),
            ),
            SettingsFile(_under(".qwen", "settings.json", variable="QWEN_HOME"), hooks.qwen, hooks=True),
        ),
        ("qwen",),
        (_under(".qwen", variable="QWEN_HOME"),),
    ),
    Client(
        "windsurf",
        "Windsurf",
        (SettingsFile(_under(".codeium", "windsurf/mcp_config.json"), _member),),
        ("windsurf",),
        (_under(".codeium", "windsurf"),),
        "Windsurf's hooks cannot tell the model anything.",
    ),
    Client(
        "zed",
        "Zed",
        (SettingsFile(_config("zed/settings.json", windows="Zed/settings.json"), _ZED_SERVER),),
        ("zed", "zeditor"),
        (_config("zed", windows="Zed"),),
        "Zed has no hooks.",
    ),
    Client(
        "cline",
        "Cline CLI",
        (SettingsFile(_cline, _cline_entries),),
        ("cline",),
        (_under(".cline", variable="CLINE_DIR"),),
    ),
    Client(
        "cline-vscode",
        "Cline in VS Code",
        (
            SettingsFile(
                _applications("Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
                _member,
            ),
        ),
        (),
        (_applications("Code/User/globalStorage/saoudrizwan.claude-dev"),),
    ),
    Client(
        "continue",
        "Continue",
        (SettingsFile(_under(".continue", "config.yaml", variable="CONTINUE_GLOBAL_DIR"), _continue_entries, "yaml"),),
        ("cn",),
        (_under(".continue", variable="CONTINUE_GLOBAL_DIR"),),
        "Continue has no hooks.",
    ),
    Client(
        "claude-desktop",
        "Claude Desktop",
        (SettingsFile(_applications("Claude/claude_desktop_config.json"), _member),),
        (),
        (_applications("Claude"),),
    ),
)
BY_NAME: Mapping[str, Client] = {each.name: each for each in CLIENTS}


@dataclass(frozen=True, slots=True)
class Undetectable:
    """A client whose settings are not a file of the user's: what to paste, and where."""

    name: str
    title: str
    where: str
    entries: Entries = field(default=_member)


PRINTED: tuple[Undetectable, ...] = (
    Undetectable("jetbrains", "JetBrains AI Assistant", "Settings > Tools > AI Assistant > Model Context Protocol"),
    Undetectable("junie", "Junie", "a project's .junie/mcp/mcp.json"),
    Undetectable("air", "JetBrains Air", "a project's .air/mcp.json"),
    Undetectable("other", "any other client", "its list of MCP servers"),
)
