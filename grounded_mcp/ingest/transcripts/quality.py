"""How much a session is worth finding again: high, medium or low, by rules over what happened in it. Pure.

The first rule that applies decides; ``Tallied`` counts, exchange by exchange, what the rules ask for.

==============  =======  ==================================================================================
rule            quality  when
==============  =======  ==================================================================================
nothing said    low      the agent neither said nor did anything
small talk      low      nothing was done, and fewer than 60 words were asked and said in all
unanswered      low      no outcome was reached, and the last question has neither answer nor action
abandoned       low      no outcome was reached, the person stopped the agent and did not go on
mostly failing  low      no outcome was reached, and of four actions or more the greater part failed
reached         high     an outcome was reached, and at most half of the actions failed
otherwise       medium
==============  =======  ==================================================================================

An outcome is reached by a commit; by a check (test, lint, build) that passed after the last edit; or by a conclusion:
a last text of 30 words or more after three actions or more, nothing done after it, and not cut off by the person.
An action counts as failed only where the transcript says so.
Knows nothing about agents' formats, stores or ranking.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal

from grounded_mcp.ingest.transcripts.exchanges import Action, Exchange
from grounded_mcp.ingest.transcripts.shell import purposes

Quality = Literal["high", "medium", "low"]

SMALL_TALK_WORDS = 60
CONCLUSION_WORDS = 30
CONCLUSION_ACTIONS = 3
JUDGED_ACTIONS = 4
PROVING = frozenset({"test", "lint", "build"})


@dataclass(frozen=True, slots=True)
class Tallied:
    """What happened in a session so far. Numbers and truths only: ``dataclasses.asdict`` is JSON, ``Tallied(**it)``
    reads it back. The last exchange may still grow, so a checkpoint holds the tally without it."""

    exchanges: int = 0
    asked: int = 0
    """Questions; an exchange without one was begun by the agent."""
    words: int = 0
    said: int = 0
    actions: int = 0
    edits: int = 0
    commands: int = 0
    failed: int = 0
    judged: int = 0
    """Actions of which the transcript says how they ended."""
    committed: bool = False
    proven: bool = False
    """A check passed after the last edit."""
    answered: bool = False
    interrupted: bool = False
    closing: int = 0
    """Words of the agent's last text, 0 where it did something afterwards."""

    def plus(self, exchange: Exchange) -> Tallied:
        """The tally with one more exchange, or one more part of the last one."""
        acts = exchange.actions
        last = exchange.steps[-1] if exchange.steps else None
        counted = replace(
            self,
            exchanges=self.exchanges + (exchange.part == 1),
            asked=self.asked + (exchange.part == 1 and bool(exchange.asked)),
            words=self.words + sum(map(_words, exchange.said)) + _words(exchange.asked) * (exchange.part == 1),
            said=self.said + len(exchange.said),
            actions=self.actions + len(acts),
            edits=self.edits + sum(act.kind == "edit" for act in acts),
            commands=self.commands + sum(act.kind == "command" for act in acts),
            failed=self.failed + sum(act.failed for act in acts),
            judged=self.judged + sum(act.ok is not None or act.exit_code is not None for act in acts),
            answered=bool(exchange.steps) or (exchange.part > 1 and self.answered),
            interrupted=exchange.interrupted,
            closing=_words(last) if isinstance(last, str) else 0,
        )
        return reduce(_after, acts, counted)

    @property
    def concluded(self) -> bool:
        """The agent had the last word, and it was more than a remark."""
        return self.closing >= CONCLUSION_WORDS and self.actions >= CONCLUSION_ACTIONS and not self.interrupted

    @property
    def reached(self) -> bool:
        return self.committed or self.proven or self.concluded


def _after(tallied: Tallied, action: Action) -> Tallied:
    """What an action does to the two outcomes that are acts: an edit needs proof again, a commit stays."""
    if action.kind == "edit" and not (action.failed or action.refused):
        return replace(tallied, proven=False)
    if action.kind != "command" or action.failed or action.ok is None:
        return tallied
    done = purposes(action.command)
    return replace(
        tallied,
        committed=tallied.committed or "commit" in done,
        proven=tallied.proven or (tallied.edits > 0 and not PROVING.isdisjoint(done)),
    )


def _words(text: str) -> int:
    return len(text.split())


RULES: tuple[tuple[str, Quality, Callable[[Tallied], bool]], ...] = (
    ("nothing said", "low", lambda t: not t.said and not t.actions),
    ("small talk", "low", lambda t: not t.actions and t.words < SMALL_TALK_WORDS),
    ("unanswered", "low", lambda t: not t.reached and not t.answered),
    ("abandoned", "low", lambda t: not t.reached and t.interrupted),
    ("mostly failing", "low", lambda t: not t.reached and t.judged >= JUDGED_ACTIONS and 2 * t.failed > t.judged),
    ("reached", "high", lambda t: t.reached and 2 * t.failed <= max(1, t.judged)),
    ("otherwise", "medium", lambda _: True),
)


def judge(tallied: Tallied) -> tuple[Quality, str]:
    """The quality of a session, and the name of the rule that decided it."""
    return next((quality, name) for name, quality, applies in RULES if applies(tallied))
