"""An exchange as passages that stand alone: what was asked, changed, said and run, and how it ended. Pure.

The bodies of an exchange's passages, joined, tell it in order; each but the first has the question as its heading,
so that it can be found, read and shown by itself. Of what was read or searched for, only paths and patterns are told.
Knows nothing about stores, secrets (texts are clean already) or formats.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from grounded_mcp.ingest.chunks import ChunkOptions, split
from grounded_mcp.ingest.transcripts.exchanges import Action, Exchange, Step
from grounded_mcp.ingest.transcripts.shell import normal
from grounded_mcp.values import Clean, Passage

TOPIC_WORDS = 6
"""A shorter question ("yes", "commit this") is about what was asked before."""
COMMAND_CHARS = 240


@dataclass(frozen=True, slots=True)
class PassageOptions:
    """``chunks``: sizes of the pieces. ``heading``: characters of the question in front of them."""

    chunks: ChunkOptions = field(default_factory=ChunkOptions)
    heading: int = 120


_DEFAULT = PassageOptions()
_PLAN = re.compile(r"\W*implement the following plan:?\s*#+\s*(?:plan:\s*)?(?P<name>\S[^\n]*)", re.IGNORECASE)
"""A client begins a new session with a plan that was approved in another one."""


def passages(
    exchange: Exchange, *, cwd: str | None, seq: int = 0, topic: str = "", options: PassageOptions = _DEFAULT
) -> tuple[Passage, ...]:
    """The pieces of one exchange, numbered from ``seq``; none where nothing was said or done.

    ``topic``: what was asked before (see ``topic_after``), which a short question is shown with. A passage's lines
    are the session's turns, first and last of the exchange; its time is the question's.
    """
    text = "\n".join(_told(exchange, cwd))
    if not text:
        return ()
    asked = exchange.asked if exchange.part == 1 else f"{exchange.asked} (part {exchange.part})"
    short = topic if _is_short(exchange.asked) else ""
    heading = headline(" > ".join(filter(None, (short, asked))), options.heading)
    pieces = split(f"{text}\n\n", "prose", options.chunks)
    start, end = exchange.turns
    first = heading if short or exchange.part > 1 else ""
    return tuple(
        Passage(number, Clean(piece.body), first if number == seq else heading, start, end, exchange.at)
        for number, piece in enumerate(pieces, seq)
    )


def topic_after(topic: str, exchange: Exchange) -> str:
    """What a short question in the next exchange would be about."""
    return topic if _is_short(exchange.asked) else headline(exchange.asked, 90)


def headline(text: str, limit: int) -> str:
    """A text on one line of at most ``limit`` characters, cut after a word."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    kept = line[: limit - 1]
    return (kept.rpartition(" ")[0] or kept).rstrip(",;:.") + "…"


def title(asked: str, limit: int) -> str:
    """What a session is called by its first question: the headline, and of a plan that was handed over its own."""
    plan = _PLAN.match(asked)
    return headline(plan["name"] if plan else asked, limit)


def relative(path: str, cwd: str | None) -> str:
    """A path as seen from the session's folder, if it lies in it; separators are slashes then."""
    plain, root = path.replace("\\", "/"), (cwd or "").replace("\\", "/").rstrip("/")
    return plain[len(root) + 1 :] if root and plain.startswith(f"{root}/") else path


def _is_short(asked: str) -> bool:
    return len(asked.split()) < TOPIC_WORDS


# --- telling ----------------------------------------------------------------------------------------------


def _told(exchange: Exchange, cwd: str | None) -> Iterator[str]:
    """The exchange line by line. What was edited stands in front: it is what a session is looked for by."""
    if exchange.asked and exchange.part == 1:
        yield f"Asked: {exchange.asked}"
    edits = (act for act in exchange.actions if act.kind == "edit" and not (act.failed or act.refused))
    yield from _listed("Edited", (relative(path, cwd) for act in edits for path in act.files))
    for sort, group in groupby(exchange.steps, key=_sort):
        yield from _TELL[sort](list(group), cwd)
    if exchange.interrupted:
        yield "Interrupted by the person."


def _sort(step: Step) -> str:
    if isinstance(step, str):
        return "said"
    if step.kind == "command":
        return "command"
    if step.output:
        return "answered"
    return "tried" if step.failed or step.refused else step.kind


def _listed(label: str, values: Iterable[str]) -> Iterator[str]:
    distinct = dict.fromkeys(value for value in values if value)
    if distinct:
        yield f"{label}: {', '.join(distinct)}"


def _said(steps: list[Step], _cwd: str | None) -> Iterator[str]:
    yield from (step for step in steps if isinstance(step, str))


def _read(steps: list[Step], cwd: str | None) -> Iterator[str]:
    yield from _listed("Read", (relative(path, cwd) for act in _acts(steps) for path in act.files))


def _used(steps: list[Step], cwd: str | None) -> Iterator[str]:
    """``Grep: func.*PrePush, hooks``: one line for each run of one tool."""
    for tool, group in groupby(_acts(steps), key=lambda act: act.tool):
        yield from _listed(tool, (relative(act.subject, cwd) for act in group))


def _answered(steps: list[Step], cwd: str | None) -> Iterator[str]:
    for act in _acts(steps):
        about = act.subject or ", ".join(relative(path, cwd) for path in act.files)
        how = " refused" if act.refused else " failed" if act.failed else ""
        yield f"{act.tool}{how}: {about}".rstrip(": ")
        yield act.output


def _ran(steps: list[Step], cwd: str | None) -> Iterator[str]:
    for act in _acts(steps):
        line = normal(act.command, cwd or "")
        line = line if len(line) <= COMMAND_CHARS else headline(line, COMMAND_CHARS)
        yield f"Ran: {line}{_how(act)}"
        yield from filter(None, (act.output,))


def _how(act: Action) -> str:
    if act.refused:
        return " -> refused"
    if act.failed:
        return f" -> failed ({act.exit_code})" if act.exit_code else " -> failed"
    return " -> ok" if act.ok else ""


def _nothing(_steps: list[Step], _cwd: str | None) -> Iterator[str]:
    yield from ()


def _acts(steps: list[Step]) -> Iterator[Action]:
    return (step for step in steps if isinstance(step, Action))


_TELL: Mapping[str, Callable[[list[Step], str | None], Iterator[str]]] = {
    "said": _said,
    "command": _ran,
    "read": _read,
    "answered": _answered,
    "other": _used,
    "edit": _nothing,
    "memory": _nothing,
    "tried": _nothing,
}
