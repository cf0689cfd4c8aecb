"""A weekly digest: what a project's conversations of one week came to, in their own words. Pure.

An overview and five sections, each a run of passages that stand alone under its name: what was decided, what was done,
files, commands, and what stayed open. Every sentence is quoted from a conversation and names where it stands
(``id#passage``); only counts and labels are the digest's own. A conversation of low quality is only counted.
Knows nothing about stores, or about when a digest is written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from grounded_mcp.ingest.checkpoints import digest
from grounded_mcp.ingest.excerpts import MIN_WORDS, Excerpts, Quote, distinct
from grounded_mcp.ingest.transcripts.passages import headline, relative
from grounded_mcp.text import estimate_tokens
from grounded_mcp.values import Clean, Evidence, Item, Passage, Record
from grounded_mcp.when import iso

RULES = "1"
"""Raised when digests are written differently: then all of them are written again."""
MAX_TOKENS = 200
"""Of a passage, estimated; the default model reads 256, and title and heading are put in front."""
TITLE_CHARS = 90
LISTED = 3
"""Files and commands have a third of the lines that sentences have: the rare ones are in the conversations."""
MAX_BRANCHES = 8

_LABELS: Mapping[str, str] = {"failed": "failed", "abandoned": "abandoned", "unknown": "not verified"}
"""How an attempt that was not seen to succeed is called."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a digest knows of one conversation. ``ending``: the outcome of its last attempt, which ``attempt`` holds."""

    item: Item
    excerpts: Excerpts = field(default_factory=Excerpts)
    attempt: Item | None = None

    @property
    def quality(self) -> str:
        return self.item.attrs.get("quality", "medium")

    @property
    def ending(self) -> str:
        return self.attempt.attrs.get("outcome", "") if self.attempt else ""


class Run(NamedTuple):
    """One time that a command (a script's item and title) was seen to work or fail."""

    script: str
    command: str
    seen: Evidence


def week_of(at: float) -> str:
    """The ISO week of a time in UTC: ``2026-W05``."""
    year, week, _ = datetime.fromisoformat(iso(at)).isocalendar()
    return f"{year:04}-W{week:02}"


def monday(week: str) -> datetime:
    """The first moment of an ISO week, UTC."""
    year, number = week.split("-W")
    return datetime.fromisocalendar(int(year), int(number), 1).replace(tzinfo=UTC)


def digest_id(scope: str, week: str) -> str:
    return f"dig_{digest(scope, week)}"


def weekly(
    week: str, scope: str, told: Sequence[Told], runs: Iterable[Run], *, lines: int, content_hash: str = ""
) -> Record:
    """The digest of one week's conversations. ``runs``: of these conversations only. ``lines``: most of a section.

    ``content_hash`` is what the caller tells an outdated digest by.
    """
    ordered = sorted(told, key=lambda each: (each.item.updated_at, each.item.id))
    good = [each for each in ordered if each.quality != "low"]
    sections = {
        "Overview": [_overview(week, ordered)],
        "Decisions": _decisions(good, lines),
        "What was done": _most((_done(each) for each in good), lines, "conversations"),
        "Files": _most(_files(good), lines // LISTED, "files"),
        "Verified commands": _most(_commands(runs), lines // LISTED, "commands"),
        "Open ends": _most(_open_ends(good), lines, "open ends"),
    }
    item = Item(
        id=digest_id(scope, week),
        kind="digest",
        scope=scope,
        title=Clean(f"Week {week}: {_counted(len(ordered), 'session')}"),
        key=week,
        created_at=monday(week).timestamp(),
        updated_at=max(each.item.updated_at for each in ordered),
        content_hash=content_hash,
        attrs={
            "session": "\n".join(each.item.id for each in ordered),
            "agents": "\n".join(sorted({each.item.attrs.get("agent", "") for each in ordered})),
            **{quality: str(n) for quality, n in sorted(Counter(each.quality for each in ordered).items())},
        },
    )
    return Record(item, tuple(_passages(sections)))


# --- sections ---------------------------------------------------------------------------------------------


def _overview(week: str, told: Sequence[Told]) -> str:
    start = monday(week)
    agents = Counter(each.item.attrs.get("agent", "unknown") for each in told)
    quality = Counter(each.quality for each in told)
    graded = ", ".join(f"{quality[name]} {name}" for name in ("high", "medium", "low") if quality[name])
    branches = dict.fromkeys(each.item.attrs.get("branch", "") for each in told)
    named = [name for name in branches if name][:MAX_BRANCHES]
    lines = [
        f"{start:%Y-%m-%d} to {start + timedelta(days=6):%Y-%m-%d}: {_counted(len(told), 'session')} ("
        + ", ".join(f"{name} {count}" for name, count in sorted(agents.items()))
        + f"), by quality {graded}."
    ]
    lines += [f"Branches: {', '.join(named)}."] if named else []
    return "\n".join(lines)


def _decisions(told: Sequence[Told], lines: int) -> list[str]:
    """People's first where there are too many; shown by date."""
    owners: dict[Quote, Told] = {}
    for each in told:
        for quote in each.excerpts.decisions:
            owners.setdefault(quote, each)
    ranked = sorted(owners, key=lambda quote: not quote.by_person)
    kept = set(distinct(ranked)[:lines])
    return [
        f"- {_day(owner.item, quote)} {'a person: ' if quote.by_person else ''}{quote.text} ({_pointer(owner, quote)})"
        for quote, owner in owners.items()
        if quote in kept
    ]


def _done(each: Told) -> str:
    quote = each.excerpts.conclusion
    state = f" [{_LABELS.get(each.ending, each.ending)}]" if each.ending else ""
    said = f": {quote.text}" if quote else ""
    return f"- {_day(each.item)} {_title(each.item)}{state}{said} ({_pointer(each, quote)})"


def _files(told: Sequence[Told]) -> Iterator[str]:
    edited: Counter[str] = Counter()
    for each in told:
        paths = each.item.attrs.get("files", "").split("\n")
        inside = {relative(path, each.item.attrs.get("cwd")) for path in paths if path}
        edited.update(path for path in inside if not _OUTSIDE.match(path))
    for path, count in sorted(edited.items(), key=lambda pair: (-pair[1], pair[0])):
        yield f"- {path}: edited in {_counted(count, 'session')}"


def _commands(runs: Iterable[Run]) -> Iterator[str]:
    """What was seen to work at least once; a check that failed for what it checked is told apart."""
    seen: dict[tuple[str, str], Counter[str]] = {}
    for run in runs:
        how = "worked" if run.seen.supports else "failed" if run.seen.kind == "verified outcome" else "found fault"
        seen.setdefault((run.command, run.script), Counter())[how] += 1
    for (command, script), counts in sorted(seen.items(), key=lambda pair: (-pair[1]["worked"], pair[0])):
        if counts["worked"]:
            told = ", ".join(f"{how} {counts[how]}" for how in ("worked", "failed", "found fault") if counts[how])
            yield f"- `{command}`: {told} ({script})"


def _open_ends(told: Sequence[Told]) -> Iterator[str]:
    """What is said to be still to do, and each conversation's last attempt if that was not seen to succeed.

    What nothing shows to work may well work, so it comes last.
    """
    for outcome in ("failed", "abandoned", "", "unknown"):
        for each in told:
            if outcome and each.attempt and each.ending == outcome and _is_telling(each.attempt):
                yield f"- {_day(each.item)} {_LABELS[outcome]}: {_title(each.attempt)} ({each.attempt.id})"
            for quote in each.excerpts.open if not outcome else ():
                yield f"- {_day(each.item, quote)} {quote.text} ({_pointer(each, quote)})"


def _is_telling(attempt: Item) -> bool:
    """An attempt that changed nothing, or is asked for in a word ("push"), leaves nothing open to come back to."""
    changed = attempt.attrs.get("outcome") != "unknown" or attempt.attrs.get("files")
    return bool(changed) and len(_title(attempt).split()) >= MIN_WORDS


def _most(found: Iterable[str], lines: int, noun: str) -> list[str]:
    every = list(dict.fromkeys(found))
    return every[:lines] + ([f"- and {len(every) - lines} more {noun}"] if len(every) > lines else [])


# --- wording ----------------------------------------------------------------------------------------------

_OUTSIDE = re.compile(r"[/~\\]|[A-Za-z]:[\\/]|\.\./")
_PLACEHOLDER = re.compile(r"\[[^\]]*(?:removed|REDACTED|left out)[^\]]*\]")
_HEADING = re.compile(r"\s#+(?:\s|…|$)")
_PLAN = re.compile(r"^\W*implement the following plan:?\s*", re.IGNORECASE)


def _title(item: Item) -> str:
    """A title without what stands in front of every plan, or for what was taken out; its first heading only."""
    bare = _PLAN.sub("", _PLACEHOLDER.sub(" ", item.title)).lstrip("# ")
    return headline(_HEADING.split(bare, maxsplit=1)[0], TITLE_CHARS) or item.attrs.get("branch", "") or "untitled"


def _pointer(each: Told, quote: Quote | None) -> str:
    return f"{each.item.id}#{quote.seq}" if quote and quote.seq else each.item.id


def _day(item: Item, quote: Quote | None = None) -> str:
    """The date of what is quoted where that is known, else that of the conversation's end."""
    return iso(item.updated_at if quote is None or quote.at is None else quote.at)[:10]


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


# --- passages ---------------------------------------------------------------------------------------------


def _passages(sections: Mapping[str, Sequence[str]]) -> Iterator[Passage]:
    """Whole lines in passages of at most ``MAX_TOKENS``; a section's first passage begins with its name."""
    packed = [(name, pack) for name, lines in sections.items() if lines for pack in _packs([f"{name}:", *lines])]
    for seq, (name, pack) in enumerate(packed):
        ends = "\n" if seq + 1 == len(packed) or packed[seq + 1][0] == name else "\n\n"
        yield Passage(seq, Clean("\n".join(pack) + ends), name)


def _packs(lines: Sequence[str]) -> Iterator[list[str]]:
    pack: list[str] = []
    size = 0
    for line in lines:
        tokens = estimate_tokens(line)
        if pack and size + tokens > MAX_TOKENS:
            yield pack
            pack, size = [], 0
        pack.append(line)
        size += tokens
    if pack:
        yield pack
