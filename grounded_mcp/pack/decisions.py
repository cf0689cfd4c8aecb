"""Decisions, found without a model (C4): in decision records, changelogs, headings, and sentences that decide. Pure.

A rule looks at a passage alone; what it returns is whether something was decided there, by which sign, and when. A date
is one that the passage, its heading or its path states; else the time of the exchange. Knows nothing about ranking.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import NamedTuple

from grounded_mcp.values import Item, StoredPassage

HEAD_CHARS = 400
"""A document's own date stands in its first lines, as a changelog's entry does above it."""

_RECORDS = re.compile(
    r"(?:^|/)(?:adrs?|decisions?|rfcs?|decision-records?)/[^/]+$|(?:^|/)(?:adr|rfc|decision)[-_]", re.I
)
_CHANGES = re.compile(r"(?:^|/)(?:changelog|changes|history|news|releases?|release[-_ ]?notes)(?:\.[a-z]+)?$", re.I)
_HEADING = re.compile(
    r"\b(?:decision|decided|rationale|why\b|trade-?offs?|alternatives?|considered options|consequences|resolution"
    r"|conclusion|entscheidung|décision|decisión)",
    re.I,
)
_SENTENCE = re.compile(
    r"\b(?:(?:we|i|they|team) (?:have )?(?:decided|chose|agreed|opted|settled)\b"
    r"|decision:|decided (?:to|on|against|that)\b"
    r"|(?:chosen|rejected|ruled out|dropped|abandoned|reverted) (?:because|since|in favou?r|after|as)\b"
    r"|(?:i'll|i will|we'll|we will|let's|let us) (?:go with|use|keep|stick (?:to|with)|switch to|drop)\b"
    r"|going (?:with|forward with)\b|in favou?r of\b|rather than\b.{0,80}\bbecause\b|instead of\b.{0,80}\bbecause\b"
    r"|the (?:reason|rationale)\b|on purpose\b|deliberately\b)",
    re.I,
)
_ENTRY = re.compile(r"^\s*[-*+]\s", re.M)
_ISO = re.compile(r"(?<!\d)((?:19|20)\d{2})[-/.](0[1-9]|1[0-2])[-/.](0[1-9]|[12]\d|3[01])(?!\d)")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WORDS = re.compile(
    rf"\b(?:(\d{{1,2}})\s+({'|'.join(_MONTHS)})[a-z]*\.?,?\s+((?:19|20)\d{{2}})"
    rf"|({'|'.join(_MONTHS)})[a-z]*\.?\s+(\d{{1,2}}),?\s+((?:19|20)\d{{2}}))\b",
    re.I,
)


class Decision(NamedTuple):
    """A decision in a passage. ``at``: seconds since the epoch, None where nothing tells."""

    sign: str
    at: float | None


def decision(found: StoredPassage) -> Decision | None:
    """What was decided in a passage, if anything. Programs decide nothing: their comments describe."""
    item = found.item
    sign = _document(found) if item.kind == "doc" else _said(found)
    return Decision(sign, _decided_at(found)) if sign else None


def _document(found: StoredPassage) -> str | None:
    item, path = found.item, found.item.key or ""
    if item.attrs.get("form") == "live":
        return None
    if _RECORDS.search(path) and "readme" not in path.casefold():
        return "decision record"
    if _CHANGES.search(path):
        return "changelog"
    if _HEADING.search(found.passage.heading.rpartition(" > ")[2]):
        return "heading"
    return "sentence" if _SENTENCE.search(found.passage.body) else None


def _said(found: StoredPassage) -> str | None:
    return "sentence" if _SENTENCE.search(found.item.body or found.passage.body) else None


def _decided_at(found: StoredPassage) -> float | None:
    item, passage = found.item, found.passage
    if passage.at is not None:
        return passage.at
    head = passage.body[:HEAD_CHARS]
    if _CHANGES.search(item.key or ""):  # what an entry says may be about any day
        head = _ENTRY.split(head)[0]
    stated = (stated_date(text) for text in (passage.heading, item.key or "", head))
    return next((at for at in stated if at is not None), _own_time(item))


def _own_time(item: Item) -> float | None:
    """A document's file may have been touched since; everything else is as old as it says."""
    return None if item.kind == "doc" else item.updated_at


def stated_date(text: str) -> float | None:
    """The first date that a text states, at midnight UTC: 2026-03-01, 1 March 2026, March 1, 2026."""
    if (match := _ISO.search(text)) is not None:
        year, month, day = map(int, match.groups())
    elif (match := _WORDS.search(text)) is not None:
        one, name, after, other, two, last = match.groups()
        year, day = int(after or last), int(one or two)
        month = _MONTHS.index((name or other)[:3].lower()) + 1
    else:
        return None
    try:
        found = date(year, month, day)
    except ValueError:
        return None
    return datetime(found.year, found.month, found.day, tzinfo=UTC).timestamp()
