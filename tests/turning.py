"""Transcripts as a person would list them: one line for each turn, to compare with a checked-in summary."""

from __future__ import annotations

from pathlib import Path

from grounded_mcp.ingest.transcripts.turns import FROM_THE_START, About, Event, Reader, Start, Tally, Transcript, Turn
from grounded_mcp.when import iso

DATA = Path(__file__).parent / "data" / "transcripts"
_WIDTH = 100


def read(reader: Reader, transcript: Transcript, start: Start = FROM_THE_START) -> tuple[list[Event], Tally]:
    tally = Tally()
    return list(reader.read(transcript, start, tally)), tally


def outline(events: list[Event]) -> list[str]:
    """``user 2026-01-02T03:04:05Z first words of the text | Bash: pytest -q | ok: 12 passed``."""
    return [_about(event) if isinstance(event, About) else _turn(event) for event in events]


def _about(about: About) -> str:
    named = {"cwd": about.cwd, "branch": about.branch, "title": about.title, "parent": about.parent}
    return " | ".join(["about", *(f"{name}: {value}" for name, value in named.items() if value is not None)])


def _turn(turn: Turn) -> str:
    parts = [f"{turn.role} {iso(turn.at) if turn.at is not None else '-'} {_short(turn.text)}".rstrip()]
    parts += [f"{call.tool}: {_short(call.command or ', '.join(call.files) or call.subject)}" for call in turn.calls]
    for outcome in turn.outcomes:
        how = {True: "ok", False: "failed", None: "came back"}[outcome.ok]
        code = "" if outcome.exit_code is None else f" {outcome.exit_code}"
        parts.append(f"{how}{code}: {_short(outcome.text)}")
    return " | ".join([*parts, *(["interrupted"] if turn.interrupted else [])])


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else f"{line[:_WIDTH]}..."
