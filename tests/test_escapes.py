"""Recalled text is escaped; who reads it is told, once an answer, what the escapes stand for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grounded_mcp.inert import ESCAPED
from tests.asking import Asker, asker
from tests.conftest import Command

CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ground_recall", {"query": "granite berth"}),
    ("get_project_memory", {"query": "granite berth", "intent": "inspect"}),
    ("context_pack", {"task": "granite berth rule"}),
    ("open_memory", {}),
)


@pytest.fixture
def ask(tmp_path: Path, project: Path) -> Iterator[Asker]:
    with asker(tmp_path / "home", project) as ask:
        yield ask


def told(ask: Asker, claim: str) -> list[tuple[int, int]]:
    """How often each answer about a claim says what the escapes stand for, in either half."""
    learnt = ask("record_learning", claim=claim, outcome="verified")["id"]
    ask("remember_fact", text=claim)
    counts = []
    for tool, arguments in CALLS:
        made, text = ask.both(tool, **(arguments or {"id": learnt}))
        guidance = made["guidance"] if tool == "open_memory" else made["meta"]["guidance"]
        counts.append((guidance.count(ESCAPED), text.count(ESCAPED)))
    return counts


@pytest.mark.parametrize("claim", ["The granite berth rule is `depth < 7`.", "The granite berth rule is R&D."])
def test_an_answer_with_escapes_says_once_in_each_half_what_they_stand_for(ask: Asker, claim: str) -> None:
    assert told(ask, claim) == [(1, 1)] * 4


def test_an_answer_without_escapes_does_not_speak_of_them(ask: Asker) -> None:
    assert told(ask, "The granite berth rule is depth 7.") == [(0, 0)] * 4


def test_the_brief_and_what_a_message_brings_say_so_too(command: Command) -> None:
    plain = command("remember", "The granite berth is closed, see KB-41.")
    assert plain.returncode == 0
    assert ESCAPED not in command("brief").stdout + command("brief", "--message", "KB-42?").stdout
    assert command("remember", "R&D closed the granite berth, see KB-42.").returncode == 0
    assert command("brief").stdout.count(ESCAPED) == 1
    assert command("brief", "--message", "KB-42?").stdout.count(ESCAPED) == 1
    assert ESCAPED not in command("brief", "--message", "KB-41?").stdout
