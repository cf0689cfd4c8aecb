"""Aider's sessions: ``.aider.chat.history.md`` in the project, all sessions of a project in one markdown file.

``# aider chat started at <local time>`` begins a session, ``#### `` a line of what the person typed, ``> `` a line of
the console; everything else is what the model wrote. Aider ends its own lines with two spaces, by which they can be
told from a heading or a quotation of the model's (aider/io.py, ``append_chat_history``). Messages have no times of
their own: theirs is the time at which the session started. Knows nothing about stores or other agents.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grounded_mcp.ingest.transcripts.calls import MAX_COMMAND, MAX_SUBJECT
from grounded_mcp.ingest.transcripts.finding import files
from grounded_mcp.ingest.transcripts.lines import stamp_of
from grounded_mcp.ingest.transcripts.markdown import Block, TextLine, local_moment, text_lines, without_thoughts
from grounded_mcp.ingest.transcripts.turns import (
    About,
    Call,
    Event,
    Machine,
    Outcome,
    Role,
    Start,
    Tally,
    Transcript,
    Turn,
)

HISTORY = ".aider.chat.history.md"
_USER, _CONSOLE, _HARD_BREAK = "#### ", "> ", "  "
_STARTED = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_RESUMES = ("> Tokens: ", "> Applied edit to ")
"""Console lines by which a message of the model has ended, whatever block it left open."""

_TALK = re.compile(r"/(?:ask|code|architect|context)\s+(?=\S)")
"""Commands that only say how the rest is meant. Aider then repeats the rest as a prompt of its own."""
_COMMAND = re.compile(r"!|/[a-z][a-z-]*(?:\s|$)")
"""What the person asks of aider itself, not of the model. A path has a second slash."""

_MODEL = re.compile(r"(?:Main model|Model): (\S+) with .*edit format")
_APPLIED = "Applied edit to "
_RUNNING = "Running "
_COMMIT = re.compile(r"Commit ([0-9a-f]{7,40}) (\S.*)")
_MISMATCH = re.compile(r"failed to (?:exactly )?match (?:any )?lines in (\S.*)")
_STOPPED = "^C"

_SEARCH = re.compile(r"<{5,9} SEARCH>?\s*")
_REPLACE = re.compile(r">{5,9} REPLACE\s*")
_FENCES = ("```", "~~~", "<source>", "<code>", "<pre>", "****")
_THINKING, _ANSWER = "► **THINKING**", "► **ANSWER**"

Made = list[Event] | str
"""The turns of a block, or why it has none."""


@dataclass(slots=True)
class _Session:
    """A session while it is read."""

    id: str
    key: str
    """The id without the folder: a copy of the file in another clone has the same turns."""
    at: float | None
    model: str | None = None
    prompted: bool = False
    """What stands before the first prompt is not the model's."""
    echo: str | None = None
    """What aider is about to repeat."""
    count: int = 0
    edits: dict[str, str] = field(default_factory=dict)
    """The calls of the model's last message, by path."""

    def turn(self, role: Role, place: int, text: str = "", **more: Any) -> Turn:
        self.count += 1
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        uid = f"{self.key}-{self.count}-{digest}"
        return Turn(self.id, uid, role, place, text, self.at, self.model if role == "agent" else None, **more)


class _Aider:
    agent = "aider"

    def roots(self, machine: Machine) -> Sequence[Path]:
        return [] if machine.project_root is None else [machine.project_root / HISTORY]

    def find(self, root: Path) -> Iterable[Transcript]:
        for path in files(root, HISTORY):
            try:
                yield Transcript(self.agent, path, stamp_of(path), size=path.stat().st_size)
            except OSError:
                continue

    def read(self, transcript: Transcript, start: Start, tally: Tally) -> Iterator[Event]:
        """Every session of the file, from its start whatever ``start`` says: no line tells which session it is in."""
        folder = transcript.path.parent
        sessions: Counter[str] = Counter()
        session = _session("", folder, sessions)
        for kind, block in _blocks(text_lines(transcript.path, tally), tally):
            tally.seen += 1
            if kind == "start":
                session = _session(block.lines[0], folder, sessions)
                made: Made = [About(session.id, cwd=str(folder))]
            else:
                made = "longer than the limit" if block.too_long else _MAKERS[kind](session, block)
            if isinstance(made, str):
                tally.skip(made, f"byte {block.offset}")
            else:
                tally.kept += 1
                yield from made


READER = _Aider()


def _session(started: str, folder: Path, sessions: Counter[str]) -> _Session:
    """``started``: as the heading has it; empty for what stands before the first heading."""
    sessions[started] += 1
    key = f"{started.replace(' ', 'T') or 'unknown'}-{sessions[started]}"
    where = hashlib.sha256(str(folder).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return _Session(f"{key}-{where}", key, local_moment(started))


def _blocks(lines: Iterator[TextLine], tally: Tally) -> Iterator[tuple[str, Block]]:
    """Lines that belong together, with what they are: "start", "user", "console" or "agent".

    A block that is still being written, as its last line shows, is left for the next time.
    """
    kinds = _Kinds()
    current, block = "", Block(0)
    for line in lines:
        kind, text = kinds.of(line.text)
        if block.lines and (kind != current or kind == "start"):
            yield current, block
            block = Block(line.offset)
        if not line.ended and line.text.strip():
            tally.seen += 1
            tally.skip("unfinished last line", f"byte {line.offset}")
            return
        if not block.lines:
            block = Block(line.offset)
        current = kind
        if kind and (text.strip() or block.lines or kind == "user"):
            block.add(text)
    if block.lines:
        yield current, block


class _Kinds:
    """What each line is, from what stood before it."""

    def __init__(self) -> None:
        self.last = ""
        self.spaced = False
        """Whether aider's lines end with two spaces here; an editor may have taken them away."""
        self.replacing = False
        self.unended = False

    def of(self, line: str) -> tuple[str, str]:
        """The kind of the next line ("" for one between blocks), and what it says."""
        self.last, said = self._of(line)
        return self.last, said

    def _of(self, line: str) -> tuple[str, str]:
        if started := _STARTED.fullmatch(line):
            self.replacing = self.unended = False
            return "start", started[1]
        hard = line.endswith(_HARD_BREAK)
        if self.replacing and not line.startswith(_RESUMES):
            self.replacing = not _REPLACE.fullmatch(line)
            return "agent", line
        self.replacing = False
        if line.startswith(_USER) and (hard or not self.spaced):
            self.unended, self.spaced = False, self.spaced or hard
            return "user", line.removeprefix(_USER).rstrip()
        if self.unended:
            self.unended = not hard
            return "console", line.rstrip()
        if line.startswith(_CONSOLE) and (hard or not self.spaced or self.last in ("user", "console")):
            # A message of several lines has the two spaces only at its end.
            self.unended, self.spaced = self.spaced and not hard, self.spaced or hard
            return "console", line.removeprefix(_CONSOLE).rstrip()
        if not line.strip() and self.last != "agent":
            return "", ""
        self.replacing = _SEARCH.fullmatch(line) is not None
        return "agent", line


def _user(session: _Session, block: Block) -> Made:
    said = "\n".join(block.lines).strip()
    repeated, session.echo = said == session.echo, None
    session.prompted = True
    if repeated:
        return "copy of an earlier record"
    if not said or said == "<blank>":
        return "no text"
    if talk := _TALK.match(said):
        said = session.echo = said[talk.end() :]
    elif _COMMAND.match(said):
        return "host record"
    return [session.turn("user", block.offset, said)]


def _agent(session: _Session, block: Block) -> Made:
    session.echo = None
    if not session.prompted:
        return "host record"
    text = _answer("\n".join(block.lines))
    paths = list(dict.fromkeys(_edited(text.split("\n"))))
    session.edits = {path: f"{session.key}-{session.count + 1}-edit-{at}" for at, path in enumerate(paths, 1)}
    made = tuple(Call(id, "SEARCH/REPLACE", "edit", files=(path,)) for path, id in session.edits.items())
    return [session.turn("agent", block.offset, text, calls=made)] if text else "no text"


def _answer(text: str) -> str:
    """Without what the model thought aloud, in either form in which aider writes it down."""
    thinking, answer = text.find(_THINKING), text.find(_ANSWER)
    if 0 <= thinking < answer:
        text = text[:thinking].rstrip("-\n ") + text[answer + len(_ANSWER) :]
    return without_thoughts(text)


def _edited(lines: Sequence[str]) -> Iterator[str]:
    """The path of each SEARCH block: in the lines before it, in front of a fence or behind it; else the one before's.

    A path with spaces looks like a sentence; aider names it when it applies the edit.
    """
    path = ""
    for at, line in enumerate(lines):
        if _SEARCH.fullmatch(line):
            above = (each.strip() for each in reversed(lines[max(0, at - 3) : at]))
            named = next((each for each in above if each and not each.startswith(_FENCES)), "").strip("`*#:")
            path = named if named and not re.search(r"\s", named) else path
            if path:
                yield path


def _console(session: _Session, block: Block) -> Made:
    """What aider did itself: edits it applied, commands it ran, commits it made. All else it says is not kept."""
    made: list[Call] = []
    outcomes: list[Outcome] = []
    stopped = False
    for line in block.lines:
        if model := _MODEL.match(line):
            session.model = model[1]
        stopped = stopped or line.startswith(_STOPPED)
        id = f"{session.key}-{session.count + 1}-{len(made) + 1}"
        if line.startswith(_RUNNING) and not line.endswith("..."):
            made.append(Call(id, "run", "command", command=line.removeprefix(_RUNNING)[:MAX_COMMAND]))
        elif commit := _COMMIT.match(line):
            made.append(Call(id, "commit", subject=commit[2][:MAX_SUBJECT]))
            outcomes.append(Outcome(id, line, True))
        elif line.startswith(_APPLIED):
            path = line.removeprefix(_APPLIED)
            if path not in session.edits:
                session.edits[path] = id
                made.append(Call(id, "edit", "edit", files=(path,)))
            outcomes.append(Outcome(session.edits[path], line, True))
        elif (mismatch := _MISMATCH.search(line)) and mismatch[1] in session.edits:
            outcomes.append(Outcome(session.edits[mismatch[1]], line.lstrip("# "), False))
    turns: list[Event] = []
    if made or stopped:
        turns.append(session.turn("agent", block.offset, calls=tuple(made), interrupted=stopped))
    if outcomes:
        turns.append(session.turn("tool", block.offset, outcomes=tuple(outcomes)))
    return turns or "host record"


_MAKERS: Mapping[str, Callable[[_Session, Block], Made]] = {"user": _user, "agent": _agent, "console": _console}
