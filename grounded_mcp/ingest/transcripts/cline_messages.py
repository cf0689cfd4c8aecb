"""Messages of Cline and Roo Code: what the person, the agent and the tools say in them. Pure.

Three notations are in use, often in one history: blocks as Anthropic's API has them (``tool_use``, ``tool_result``),
blocks as Vercel's AI SDK has them (``tool-call``, ``tool-result``), and, before models called tools natively, tags in
the text: ``<execute_command><command>ls</command></execute_command>``, answered by a text block
``[execute_command for 'ls'] Result:``. What the person typed is marked by tags too, ``<task>`` or ``<feedback>`` among
them, beside ``<environment_details>`` and other text of the host.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, NamedTuple

from grounded_mcp.ingest.transcripts.calls import call
from grounded_mcp.ingest.transcripts.documents_json import mapping, mappings, said, text
from grounded_mcp.ingest.transcripts.turns import Call, Outcome, Turn, moment

Block = Mapping[str, Any]

# Tools by which the agent speaks to the person, whose answer is the person's; and the argument that holds the words.
_SPEECH = {"attempt_completion": "result", "ask_followup_question": "question", "plan_mode_respond": "response"}
_TOOLS = (
    *_SPEECH,
    *("execute_command", "read_file", "write_to_file", "replace_in_file", "apply_diff", "insert_content", "edit_file"),
    *("search_and_replace", "search_files", "codebase_search", "list_files", "list_code_definition_names"),
    *("browser_action", "web_fetch", "use_mcp_tool", "access_mcp_resource", "new_task", "switch_mode"),
    *("update_todo_list", "fetch_instructions", "load_mcp_documentation"),
)
# "content" and "diff" are not kept: they are listed so that no tag inside a file counts as an argument.
_ARGUMENTS = (
    *("command", "path", "content", "diff", "regex", "query", "url", "server_name", "tool_name", "arguments"),
    *("question", "result", "response", "message", "task_progress", "requires_approval", "file_pattern", "cwd"),
)
_TYPED = ("user_input", "task", "feedback", "answer", "user_message")
_RESUMED = "[TASK RESUMPTION]"
_HOST = (
    "<environment_details>",
    "<file_content",
    "<folder_content",
    "<url_content",
    "<explicit_instructions",
    "[ERROR]",
)
_RESULT = re.compile(r"\[([a-z_]{3,40})\b.*?\] Result:(?:\n|\Z)", re.S)
_EXIT_CODE = re.compile(r"[^\n]{0,300}?\bexit code:? (-?\d{1,10})\b", re.I)
_BY_AGENT = (*_TOOLS, "thinking")
_OPENING = {names: re.compile(rf"<({'|'.join(names)})(?:\s[^<>]*)?>") for names in (_BY_AGENT, _ARGUMENTS, _TYPED)}


class _Use(NamedTuple):
    """A tool as the agent used it. Those named by tags have no id."""

    name: str
    arguments: Mapping[str, Any]
    id: str = ""


class _Element(NamedTuple):
    name: str
    inner: str
    start: int
    end: int


@dataclass(slots=True)
class Conversation:
    """The messages of one task in their order. A result is told apart by the call it answers."""

    session: str
    tools: dict[str, str] = field(default_factory=dict)
    """Call id -> tool."""
    unanswered: list[Call] = field(default_factory=list)
    """Calls of the last message that have no id of their own."""

    def turns(self, message: Block, place: int) -> tuple[list[Turn], str]:
        """The turns of a message; where there are none, why."""
        role = text(message.get("role"))
        if message.get("isSummary") or message.get("isTruncationMarker") or role == "system":
            return [], "host record"
        if role not in ("user", "assistant", "tool"):
            return [], "host record" if message.get("type") == "reasoning" else "unknown record"
        id = text(message.get("id")) or str(place)
        blank = Turn(self.session, f"{self.session}:{id}", "user", place, at=moment(message.get("ts")))
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else mappings(content)
        if role == "assistant":
            model = text(mapping(message.get("modelInfo")).get("id")) or None
            found = self._agent(blocks, replace(blank, role="agent", model=model))
        else:
            found = self._person_and_tools(blocks, blank)
        return found, "no text"

    def _agent(self, blocks: Sequence[Block], blank: Turn) -> list[Turn]:
        words: list[str] = []
        made: list[Call] = []
        self.unanswered = []
        for piece in _pieces(blocks):
            if isinstance(piece, str):
                words.append(piece)
                continue
            self.tools[piece.id] = piece.name
            if piece.name in _SPEECH:
                words.append(text(piece.arguments.get(_SPEECH[piece.name])))
            else:
                made.append(_call(piece, piece.id or f"{blank.uid}:{len(made)}"))
                self.unanswered += [] if piece.id else made[-1:]
        spoken = said(words)
        return [replace(blank, text=spoken, calls=tuple(made))] if spoken or made else []

    def _person_and_tools(self, blocks: Sequence[Block], blank: Turn) -> list[Turn]:
        typed: list[str] = []
        answers: list[tuple[str, Outcome]] = []
        waiting = ""  # a tool whose result is the next block, whatever that looks like
        for block in blocks:
            words = text(block.get("text"))
            if block.get("type") in ("tool_result", "tool-result"):
                answers.append(self._outcome(block))
            elif block.get("type") == "text":
                tool, body = (waiting, words) if waiting else _header(words)
                waiting = "" if waiting or body.strip() else tool
                if not tool:
                    typed += _words_of_person(words)
                elif not waiting:
                    answers.append((tool, self._told_outcome(tool, body)))
        answers += [(waiting, self._told_outcome(waiting, ""))] if waiting else []
        replies = [_typed(outcome.text) if tool in _SPEECH else [] for tool, outcome in answers]
        spoken = said([*(words for reply in replies for words in reply), *typed])
        outcomes = tuple(outcome for (_, outcome), reply in zip(answers, replies, strict=True) if not reply)
        turns = [replace(blank, uid=f"{blank.uid}:results", role="tool", outcomes=outcomes)] if outcomes else []
        return [*turns, replace(blank, text=spoken)] if spoken else turns

    def _outcome(self, block: Block) -> tuple[str, Outcome]:
        id = text(block.get("tool_use_id")) or text(block.get("toolCallId"))
        tool = self.tools.get(id) or text(block.get("name")) or text(block.get("toolName"))
        words, ok = _output(block.get("content", block.get("output")))
        failed = block.get("is_error")
        return tool, _went(id, tool, words, not failed if isinstance(failed, bool) else ok)

    def _told_outcome(self, tool: str, body: str) -> Outcome:
        mine = next((each for each in self.unanswered if _bare(each.tool) == tool or tool == "use_mcp_tool"), None)
        if mine:
            self.unanswered.remove(mine)
        return _went(mine.id if mine else "", tool, body, None)


def _went(id: str, tool: str, output: str, ok: bool | None) -> Outcome:
    """A command's exit code stands in the first line of its output, where a version writes it at all."""
    found = _EXIT_CODE.match(output) if call(id, tool, None).kind == "command" else None
    code = int(found[1]) if found else None
    return Outcome(id, output, ok=ok if code is None or ok is False else code == 0, exit_code=code)


def _call(use: _Use, id: str) -> Call:
    if use.name == "use_mcp_tool":
        server, tool = text(use.arguments.get("server_name")), text(use.arguments.get("tool_name"))
        return call(id, f"{server}__{tool}", use.arguments.get("arguments"))
    return call(id, use.name, use.arguments)


def _bare(tool: str) -> str:
    return tool.rpartition("__")[2]


def _output(content: object) -> tuple[str, bool | None]:
    """The text of a result and whether it went well, where it says so.

    The command line writes the answer of a tool server, or of one of its own tools, as JSON into the text.
    """
    if isinstance(content, dict):  # the AI SDK: {"type": "text", "value": ...}
        words, ok = _output(content.get("value"))
        return words, False if text(content.get("type")).startswith("error") else ok
    parts = [text(each.get("text")) or text(each.get("value")) for each in mappings(content)]
    words = said(parts) or text(content)
    if not words.startswith(("{", "[")):
        return words, None
    try:
        found = json.loads(words)
    except (ValueError, RecursionError):
        return words, None
    return _structured(found) or (words, None)


def _structured(found: object) -> tuple[str, bool] | None:
    if isinstance(found, dict) and isinstance(found.get("content"), list):
        return said([text(each.get("text")) for each in mappings(found["content"])]), not found.get("isError")
    each_ran = mappings(found)
    if each_ran and all(isinstance(each.get("success"), bool) for each in each_ran):
        outputs = [text(each.get("result")) or text(each.get("error")) for each in each_ran]
        return said(outputs), all(each["success"] for each in each_ran)
    return None


def _header(words: str) -> tuple[str, str]:
    """The tool and the result, where a block of text says that it is one."""
    found = _RESULT.match(words)
    return (found[1], words[found.end() :]) if found else ("", "")


def _words_of_person(words: str) -> list[str]:
    """What the person typed in a block of text, which is all of it where nothing is marked."""
    if words.lstrip().startswith(_HOST):
        return []
    return _typed(words) or ([] if words.lstrip().startswith(_RESUMED) else [words])


def _typed(words: str) -> list[str]:
    """What stands in the tags that mark the person's own words: in the first, for files that were added follow it."""
    return [element.inner.strip("\n") for element in islice(_elements(words, _TYPED), 1)]


def _pieces(blocks: Sequence[Block]) -> Iterator[str | _Use]:
    """What the agent said and used, in its order."""
    for block in blocks:
        if block.get("type") == "text":
            yield from _pieces_of_text(text(block.get("text")))
        elif block.get("type") in ("tool_use", "tool-call"):
            id = text(block.get("id")) or text(block.get("toolCallId"))
            name = text(block.get("name")) or text(block.get("toolName"))
            yield _Use(name, mapping(block.get("input")), id)


def _pieces_of_text(words: str) -> Iterator[str | _Use]:
    """Words and tools named by tags. Thoughts are left out."""
    end = 0
    for element in _elements(words, _BY_AGENT):
        yield words[end : element.start].strip("\n")
        if element.name != "thinking":
            yield _Use(element.name, _arguments(element.inner))
        end = element.end
    yield words[end:].strip("\n") if end else words


def _arguments(inner: str) -> dict[str, object]:
    found: dict[str, object] = {}
    paths = []
    for element in _elements(inner, _ARGUMENTS):
        found.setdefault(element.name, element.inner.strip())
        paths += [element.inner.strip()] if element.name == "path" else []
    return found | ({"path": paths} if len(paths) > 1 else {})


def _elements(words: str, names: tuple[str, ...]) -> Iterator[_Element]:
    """The outermost elements with these names. Each closing tag is looked for once: a text may open many."""
    closings: dict[str, int] = {}
    end = 0
    for opening in _OPENING[names].finditer(words):
        name = opening[1]
        if opening.start() < end:
            continue
        closing = closings.get(name, 0)
        if 0 <= closing < opening.end():
            closing = closings[name] = words.find(f"</{name}>", opening.end())
        if closing >= 0:
            end = closing + len(name) + 3
            yield _Element(name, words[opening.end() : closing], opening.start(), end)
