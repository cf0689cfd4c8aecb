"""Tasks of Cline (command line and VS Code) and of Roo Code, which began as a copy of it: one JSON document a task.

``<id>.messages.json`` of the command line and ``api_conversation_history.json`` of the extensions hold the messages as
they went to the model; ``cline_messages`` reads them. Files beside them say where the task ran.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grounded_mcp.ingest.transcripts.cline_messages import Conversation
from grounded_mcp.ingest.transcripts.documents_json import beside, load, mapping, mappings, text
from grounded_mcp.ingest.transcripts.finding import files
from grounded_mcp.ingest.transcripts.lines import stamp_of
from grounded_mcp.ingest.transcripts.turns import About, Event, Machine, Start, Tally, Transcript

_MESSAGES = ".messages.json"
_HISTORY = "api_conversation_history.json"
_OLDER_HISTORY = "claude_messages.json"
_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_SERVERS = (".vscode-server", ".vscode-server-insiders", ".cursor-server", ".windsurf-server")
# The first prompt of a task of an extension names the folder that was open.
_OPEN_FOLDER = re.compile(r"^# Current (?:Working|Workspace) Directory \((.{1,1024}?)\) Files$", re.M)


@dataclass(frozen=True, slots=True)
class TaskReader:
    agent: str
    extension: str
    """The id of the VS Code extension, which names its folder."""
    has_command_line: bool = False

    def roots(self, machine: Machine) -> Sequence[Path]:
        tasks = [user / "globalStorage" / self.extension / "tasks" for user in _user_folders(machine)]
        return [*(_command_line(machine) if self.has_command_line else ()), *tasks]

    def find(self, root: Path) -> Iterator[Transcript]:
        for path in files(root, f"*{_MESSAGES}", _HISTORY, _OLDER_HISTORY):
            if path.name == _OLDER_HISTORY and (path.parent / _HISTORY).exists():
                continue
            with suppress(OSError):  # gone since it was listed
                yield Transcript(self.agent, path, stamp_of(path), size=path.stat().st_size)

    def read(self, transcript: Transcript, start: Start, tally: Tally) -> Iterator[Event]:
        found = load(transcript.path, tally)
        if found is None:
            return
        listed = found if isinstance(found, list) else mapping(found).get("messages")
        if not isinstance(listed, list):
            tally.seen += 1
            tally.skip("unknown record", "byte 0")
            return
        about = _about(transcript.path, mapping(found), listed)
        yield about
        conversation = Conversation(about.session)
        for place, message in enumerate(listed):
            tally.seen += 1
            turns, why = conversation.turns(mapping(message), place)
            if turns:
                tally.kept += 1
                yield from turns
            else:
                tally.skip(why, f"message {place}")


READER = TaskReader("cline", "saoudrizwan.claude-dev", has_command_line=True)
ROO = TaskReader("roo", "rooveterinaryinc.roo-cline")


def _command_line(machine: Machine) -> tuple[Path, Path]:
    env = machine.env
    data = Path(env.get("CLINE_DATA_DIR") or Path(env.get("CLINE_DIR") or machine.home / ".cline") / "data")
    return Path(env.get("CLINE_SESSION_DATA_DIR") or data / "sessions"), data / "tasks"


def _user_folders(machine: Machine) -> Iterator[Path]:
    """The user folders of VS Code and of editors built on it, then those of its servers for remote work."""
    home, env = machine.home, machine.env
    settings = {
        "darwin": home / "Library" / "Application Support",
        "win32": Path(env.get("APPDATA") or home / "AppData" / "Roaming"),
    }.get(machine.platform, Path(env.get("XDG_CONFIG_HOME") or home / ".config"))
    yield from (settings / editor / "User" for editor in _EDITORS)
    yield from (home / server / "data" / "User" for server in _SERVERS)


def _about(path: Path, document: Mapping[str, Any], messages: Sequence[object]) -> About:
    if not path.name.endswith(_MESSAGES):
        return _about_task(path.parent, messages)
    stem = path.name.removesuffix(_MESSAGES)
    manifest = mapping(beside(path.with_name(f"{stem}.json")))
    return About(
        text(document.get("sessionId")) or stem,
        cwd=text(manifest.get("cwd")) or text(manifest.get("workspace_root")) or None,
        title=text(mapping(manifest.get("metadata")).get("title")) or None,
        parent=text(manifest.get("parent_session_id")) or None,
    )


def _about_task(folder: Path, messages: Sequence[object]) -> About:
    item = mapping(beside(folder / "history_item.json"))  # Roo Code
    cwd = text(item.get("workspace")) or _open_folder(messages) or _listed_cwd(folder)
    return About(folder.name, cwd=cwd or None, parent=text(item.get("parentTaskId")) or None)


def _open_folder(messages: Sequence[object]) -> str:
    """The folder that the first prompt names. It stands in the host's part of it, which comes last."""
    content = mapping(messages[0]).get("content") if messages else ""
    said = [content] if isinstance(content, str) else [text(each.get("text")) for each in mappings(content)]
    found = [match[1] for each in said for match in _OPEN_FOLDER.finditer(each)]
    return found[-1] if found else ""


def _listed_cwd(folder: Path) -> str:
    """The folder by the extension's list of all tasks."""
    listed = mappings(beside(folder.parent.parent / "state" / "taskHistory.json"))
    mine = next((each for each in listed if each.get("id") == folder.name), {})
    return text(mine.get("cwdOnTaskInitialization")) or text(mine.get("shadowGitConfigWorkTree"))
