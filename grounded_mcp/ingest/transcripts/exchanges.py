"""Turns become exchanges: what was asked, what was said and done until the next question, and how each call ended.

Streaming: one session's turns in, exchanges out, with at most two of them in memory. Pure; what ``clean`` is
(stripping what a host put in, then taking secrets out) is the caller's business, and nothing leaves here without it.
Knows nothing about formats, passages or stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from grounded_mcp.ingest.transcripts.outputs import denies, ends, refused, remark, sounds_failed, telling, window
from grounded_mcp.ingest.transcripts.shell import hides_exit, shows
from grounded_mcp.ingest.transcripts.turns import Call, CallKind, Outcome, Turn

Cleaner = Callable[[str], str]

_SPOKEN = frozenset({"task", "agent", "askuserquestion", "exitplanmode", "ask_user", "request_user_input", "question"})
"""Tools whose answer is what a person decided or another agent reported, not a listing."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps of one exchange, in characters and numbers. A longer exchange goes on as another part of the same number;
    a single longer text loses its middle, which is counted."""

    asked: int = 12_000
    text: int = 12_000
    part_text: int = 48_000
    part_actions: int = 200
    spoken: int = 1_500
    command: int = 1_200


@dataclass(frozen=True, slots=True)
class Action:
    """A call and how it ended. ``ok`` is None where nothing says so. ``output`` is trimmed to what tells."""

    kind: CallKind
    tool: str
    command: str = ""
    files: tuple[str, ...] = ()
    subject: str = ""
    ok: bool | None = None
    exit_code: int | None = None
    output: str = ""
    refused: bool = False
    """It was not let run, or not to its end; ``output`` is what the person said to that."""

    @property
    def failed(self) -> bool:
        return not self.refused and (self.ok is False or self.exit_code not in (None, 0))


Step = str | Action
"""What the agent said, or did."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question and everything up to the next, or (``part`` > 1) a later part of it when it is long.

    ``number`` counts questions from 1, and ``turns`` the session's turns, both inclusive. ``uid`` and ``place`` are
    those of the turn that opened it. ``continues``: another part follows. ``cut``: characters left out of texts.
    """

    number: int
    part: int
    uid: str
    place: int
    at: float | None
    until: float | None
    asked: str
    steps: tuple[Step, ...]
    model: str | None
    interrupted: bool
    turns: tuple[int, int]
    continues: bool = False
    cut: int = 0

    @property
    def said(self) -> tuple[str, ...]:
        """What the agent said, in order; the last one is its conclusion, unless the exchange goes on."""
        return tuple(step for step in self.steps if isinstance(step, str))

    @property
    def actions(self) -> tuple[Action, ...]:
        return tuple(step for step in self.steps if isinstance(step, Action))


def exchanges(
    turns: Iterable[Turn], clean: Cleaner, *, number: int = 1, turn: int = 1, limits: Limits | None = None
) -> Iterator[Exchange]:
    """The exchanges of one session's turns, in order; turns before the first question are one too.

    ``clean`` is applied to each text before it is trimmed. ``number`` and ``turn`` are those of the first exchange
    and turn here: a later import goes on with the last exchange, from its ``place``, under its number and first turn.
    An exchange that has unanswered calls when the next question comes waits for them until that one ends.
    """
    trim = _Trim(clean, limits or Limits())
    held: _Draft | None = None
    draft: _Draft | None = None
    for at, each in enumerate(turns, turn):
        text = trim.said(each)
        opens = each.role == "user" and bool(text)
        last = draft
        if draft is None:
            if not (text or each.calls):
                continue
            draft = _Draft(number, 1, each, at, trim)
        elif opens and draft.is_answered(each):
            draft = _Draft(draft.number + 1, 1, each, at, trim)
        elif each.role == "agent" and draft.is_full:
            draft = draft.next_part(each, at)
        if last is not None and draft is not last:
            if held is not None:
                yield held.done()
            held = last
        draft.take(each, at, text, opens)
        if held is not None and held.answer(each.outcomes):
            yield held.done()
            held = None
    yield from (rest.done() for rest in (held, draft) if rest is not None)


class _Trim:
    """Texts as they are kept: a generous window, cleaned, then cut to the limit."""

    def __init__(self, clean: Cleaner, limits: Limits) -> None:
        self.limits = limits
        self._clean = clean

    def said(self, turn: Turn) -> str:
        limit = self.limits.asked if turn.role == "user" else self.limits.text
        return self._cut(turn.text, limit) if turn.role != "tool" else ""

    def action(self, call: Call) -> Action:
        if call.kind == "memory":
            return Action(call.kind, call.tool)
        return Action(
            call.kind,
            call.tool,
            self._cut(call.command, self.limits.command),
            tuple(self._clean(path) for path in call.files),
            self._clean(call.subject).strip(),
        )

    def ended(self, action: Action, outcome: Outcome) -> Action:
        """The action with its outcome. A pipe or a list of commands hides the exit code: there the output tells."""
        if action.kind == "memory":
            return replace(action, ok=outcome.ok, exit_code=outcome.exit_code)
        if refused(outcome.text):
            return replace(action, refused=True, output=self._cut(remark(outcome.text), self.limits.spoken))
        ended = replace(action, ok=outcome.ok, exit_code=outcome.exit_code)
        if action.tool.casefold().rpartition("__")[2] in _SPOKEN:
            return replace(ended, output=self._cut(outcome.text, self.limits.spoken))
        if ended.failed:
            return replace(ended, output=telling(self._clean(window(outcome.text)), failed=True))
        if action.kind != "command" or shows(action.command):
            return ended
        text = self._clean(window(outcome.text))
        hidden = hides_exit(action.command)
        ok = False if hidden and denies(text) else outcome.ok
        return replace(ended, ok=ok, output=telling(text, failed=ok is not True or (hidden and sounds_failed(text))))

    def _cut(self, text: str, limit: int) -> str:
        return ends(self._clean(ends(text, 2 * limit)).strip(), limit)


@dataclass(slots=True)
class _Draft:
    """An exchange, or a part of one, while it is read."""

    number: int
    part: int
    first: Turn
    start: int
    trim: _Trim
    asked: str = ""
    steps: list[Step] = field(default_factory=list)
    waiting: dict[str, int] = field(default_factory=dict)
    """Unanswered calls by id, with their place in ``steps``."""
    model: str | None = None
    until: float | None = None
    end: int = 0
    size: int = 0
    actions: int = 0
    cut: int = 0
    interrupted: bool = False
    continues: bool = False

    def is_answered(self, turn: Turn) -> bool:
        """Whether a new question opens an exchange; until then it is more of the same question."""
        self.interrupted = self.interrupted or turn.interrupted
        return bool(self.steps) or self.interrupted or not self.asked

    @property
    def is_full(self) -> bool:
        return self.size >= self.trim.limits.part_text or self.actions >= self.trim.limits.part_actions

    def next_part(self, turn: Turn, at: int) -> _Draft:
        self.continues = True
        return _Draft(self.number, self.part + 1, turn, at, self.trim, self.asked)

    def take(self, turn: Turn, at: int, text: str, opens: bool) -> None:
        self.end, self.model = at, turn.model or self.model
        self.until = turn.at if turn.at is not None else self.until
        self.cut += max(0, len(turn.text.strip()) - len(text)) if turn.role != "tool" else 0
        if opens:
            self.asked = f"{self.asked}\n\n{text}".strip()
        else:
            self.interrupted = self.interrupted or turn.interrupted
            if text:
                self.steps.append(text)
                self.size += len(text)
        for call in turn.calls:
            self.waiting[call.id] = len(self.steps)
            self.steps.append(self.trim.action(call))
            self.actions += 1
        self.answer(turn.outcomes)

    def answer(self, outcomes: Iterable[Outcome]) -> bool:
        """Put outcomes to their calls; whether no call waits any more."""
        for outcome in outcomes:
            place = self.waiting.pop(outcome.call, None)
            action = self.steps[place] if place is not None else ""
            if place is not None and isinstance(action, Action):
                self.steps[place] = ended = self.trim.ended(action, outcome)
                self.size += len(ended.output)
        return not self.waiting

    def done(self) -> Exchange:
        return Exchange(
            self.number,
            self.part,
            self.first.uid,
            self.first.place,
            self.first.at,
            self.until,
            self.asked,
            tuple(self.steps),
            self.model,
            self.interrupted,
            (self.start, self.end),
            self.continues,
            self.cut,
        )
