"""Contents as the Gemini API writes them: what the parts of a message say, call and answer. Pure.

Gemini CLI and Qwen Code, which began as a copy of it, record them as they are. Knows nothing about their files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from grounded_mcp.ingest.transcripts.calls import call
from grounded_mcp.ingest.transcripts.documents_json import mapping, mappings, said, text
from grounded_mcp.ingest.transcripts.turns import Call, Outcome

CANCELLED = "cancelled"
_WENT_WELL = {"success": True, "error": False}
# The shell tool closes its output with these lines; the code is left out where it is 0 in later versions.
_EXIT_CODE = re.compile(r"^Exit Code: (-?\d{1,10})$(?=\n(?:Signal|Background PIDs|Process Group PGID): |\s*\Z)", re.M)


def words(content: object) -> str:
    """What a content says: a string, a part, or a list of either. Thoughts, files and calls say nothing."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    return said([part if isinstance(part, str) else _words(mapping(part)) for part in parts])


def _words(part: Mapping[str, Any]) -> str:
    return "" if part.get("thought") else text(part.get("text"))


def calls(content: object) -> list[Call]:
    """The function calls among the parts of a content."""
    asked = [mapping(part.get("functionCall")) for part in mappings(content)]
    return [call(text(each.get("id")), text(each.get("name")), each.get("args")) for each in asked if each]


def answers(content: object, status: object = None) -> list[Outcome]:
    """The function responses among the parts of a content. ``status``: how the client says the call went."""
    given = [mapping(part.get("functionResponse")) for part in mappings(content)]
    return [_answer(each, text(status)) for each in given if each]


def _answer(given: Mapping[str, Any], status: str) -> Outcome:
    response = mapping(given.get("response"))
    failed = "error" in response and "output" not in response
    ok = False if failed and status != CANCELLED else _WENT_WELL.get(status)
    return outcome(text(given.get("id")), text(given.get("name")), answer_text(response), ok)


def outcome(id: str, tool: str, output: str, ok: bool | None) -> Outcome:
    """What came back for a call. A command that ran counts as a success for the clients: its exit code decides."""
    found = _EXIT_CODE.findall(output) if call(id, tool, None).kind == "command" else []
    code = int(found[-1]) if found else None
    return Outcome(id, output, ok=ok if code is None or ok is False else code == 0, exit_code=code)


def answer_text(response: Mapping[str, Any]) -> str:
    """``output`` or ``error`` of a response, or the contents of a tool server's answer, or all of it as JSON."""
    for name in ("output", "error"):
        if name in response:
            value = response[name]
            return value if isinstance(value, str) else _json(value)
    return words(response.get("content")) or (_json(response) if response else "")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
