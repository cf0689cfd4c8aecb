"""Agents' tools by what they do: which of them run commands, edit or read files, or are this memory's own. Pure.

Names are those that agents write into their transcripts (and the fields of the arguments beside them), collected
from the transcripts of the clients themselves. A tool that is not listed is kept by its name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from grounded_mcp.ingest.transcripts.turns import Call, CallKind

_NAMES: Mapping[CallKind, str] = {
    "command": """bash shell shell_command exec_command local_shell run_shell_command run_terminal_cmd
        run_terminal_command run_terminal_command_v2 execute_command run_commands powershell terminal""",
    "edit": """edit multiedit write notebookedit apply_patch replace write_file edit_file create_file write_to_file
        editor replace_in_file apply_diff insert_content search_and_replace str_replace_editor str_replace create
        edit_existing_file create_new_file search_replace delete_file edit_file_v2 single_find_and_replace
        multi_edit patch""",
    "read": """read read_file read_many_files view view_file notebookread read_files read_currently_open_file
        read_file_v2 view_image""",
}
_KINDS: Mapping[str, CallKind] = {name: kind for kind, names in _NAMES.items() for name in names.split()}
_MEMORY = ("ground_recall", "get_project_memory", "context_pack", "remember_fact", "record_learning", "open_memory")
_MEMORY_STATUS = ("memory_status", "forget_memory")
_SERVER = "grounded"

_COMMAND = ("command", "cmd", "commands", "script")
_FILE = (
    "file_path", "filePath", "path", "target_file", "absolute_path", "notebook_path", "filename", "filepath", "file",
    "relative_workspace_path", "relativeWorkspacePath", "targetFile", "paths", "files",
)  # fmt: skip
_SUBJECT = ("description", "pattern", "query", "url", "subject", "prompt", "skill", "regex", "title", "explanation")
_PATCH = ("input", "patch", "patch_text", "patchText", "diff")
_PATCHED = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")
MAX_COMMAND = 4_000
MAX_SUBJECT = 300
MAX_FILES = 50


def call(id: str, tool: str, arguments: object) -> Call:
    """A call as the rest of the product sees it. ``arguments``: a mapping, JSON of one, or anything else.

    >>> call("1", "Bash", {"command": "pytest -q"}).command
    'pytest -q'
    >>> call("2", "shell", '{"command": ["bash", "-lc", "ls"]}').command
    'ls'
    """
    given = _mapping(arguments)
    kind = _kind(tool)
    command = _command(given) if kind == "command" else ""
    files = _files(given, arguments) if kind in ("edit", "read") else ()
    return Call(id, tool, kind, command[:MAX_COMMAND], files[:MAX_FILES], _first(given, _SUBJECT)[:MAX_SUBJECT])


def _kind(tool: str) -> CallKind:
    name = tool.casefold()
    if is_memory(name):
        return "memory"
    bare = name.rpartition("__")[2].rpartition(".")[2]
    return _KINDS.get(bare, "other")


def is_memory(tool: str) -> bool:
    """Whether a tool is this product's own, under any client's prefix: what it answered is not news."""
    name = tool.casefold()
    own = any(name.endswith(each) for each in _MEMORY)
    return own or (_SERVER in name and any(name.endswith(each) for each in _MEMORY_STATUS))


def _mapping(arguments: object) -> Mapping[str, object]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return {}
    return arguments if isinstance(arguments, Mapping) else {}


def _command(given: Mapping[str, object]) -> str:
    for name in _COMMAND:
        value = given.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
        if isinstance(value, Sequence) and not isinstance(value, str) and value:
            return _of_words([str(word) for word in value])
    return ""


def _of_words(words: Sequence[str]) -> str:
    """``["bash", "-lc", "make test"]`` is what is run inside."""
    if len(words) == 3 and words[1] in ("-c", "-lc", "-ic", "/c", "-Command"):
        return words[2].strip()
    return " ".join(words)


def _files(given: Mapping[str, object], arguments: object) -> tuple[str, ...]:
    found: list[str] = []
    for name in _FILE:
        value = given.get(name)
        for each in value if isinstance(value, list) else [value]:
            path = each.get("path") if isinstance(each, Mapping) else each
            if isinstance(path, str) and path.strip():
                found.append(path.strip())
    patch = _first(given, _PATCH) or (arguments if isinstance(arguments, str) else "")
    for line in patch.splitlines() if "*** " in patch else ():
        found += [line.removeprefix(mark).strip() for mark in _PATCHED if line.startswith(mark)]
    return tuple(dict.fromkeys(found))


def _first(given: Mapping[str, object], names: Sequence[str]) -> str:
    values = (given.get(name) for name in names)
    return next((value.strip() for value in values if isinstance(value, str) and value.strip()), "")
