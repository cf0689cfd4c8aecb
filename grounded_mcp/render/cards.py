"""One recalled passage as a card: its fields, and the same fields as one line of text (R11, P4). Pure.

Every stored string passes through ``inert`` on its way out. Knows nothing about budgets or the other cards.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from grounded_mcp.inert import FIELD_CHARS as FIELD_CHARS
from grounded_mcp.inert import Inert, inert, wrap
from grounded_mcp.inert import field as field  # every renderer takes both from here
from grounded_mcp.render.snippet import cut_around
from grounded_mcp.trust import Confidence
from grounded_mcp.values import Candidate, Item, LaneName, Recall, StoredPassage, Vote
from grounded_mcp.when import iso

Envelope = dict[str, Any]

TITLE_CHARS = 120
TERM_CHARS = 40
MAX_CONFLICTS = 3
MAX_TERMS = 12
"""A card names so many matched terms at most; lengths are of the text before it is escaped."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_CONVERSATION = ("agent", "session", "branch", "quality")
"""What a card says about the conversation that a passage is from."""

BRIEF = {
    *("id", "source", "rank", "score", "matchedBy", "title", "path", "lines", "topic", "text", "state", "updatedAt"),
    *("conflicts", "on_disk"),
    *("agent", "turns"),
    *("duplicates", "hidden_chars_removed", "external_url", "open"),
}
"""The fields of a card that is shown briefly, to make room for better ones."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A card before its text is cut: what does not depend on the length is worked out once."""

    fields: Envelope
    brief: Envelope
    body: str
    words: tuple[str, ...]
    chars: int
    """Of the card as JSON, without its text; ``brief_chars`` likewise."""
    brief_chars: int

    def card(self, snippet: int, *, brief: bool = False) -> Envelope:
        """The card with at most ``snippet`` characters of its text."""
        safe = inert(cut_around(self.body, self.words, snippet))
        return {**(self.brief if brief else self.fields), "text": wrap(safe), **notes(safe)}

    def at_least(self, snippet: int, *, brief: bool = False) -> int:
        """Characters of JSON that the card will have if nothing in its text has to be removed or escaped."""
        return (self.brief_chars if brief else self.chars) + min(snippet, len(self.body))


def draft(candidate: Candidate, rank: int, recall: Recall) -> Draft:
    if candidate.found is None:
        raise ValueError("a card is made from a fetched passage")
    words = matched_terms(recall, candidate.found)
    fields = _fields(candidate, rank, candidate.found, words, recall.confidence.get(candidate.id))
    fields |= conflicting(recall.conflicts.get(candidate.found.item.id, ()))
    if disk := recall.disk.get(candidate.found.item.id):
        fields["on_disk"] = disk
    brief = {name: value for name, value in fields.items() if name in BRIEF}
    body = candidate.found.passage.body
    return Draft(fields, brief, body, words, len(compact(fields)), len(compact(brief)))


def card(candidate: Candidate, rank: int, recall: Recall, snippet: int) -> Envelope:
    """One result (R11). Fields without a value are left out. ``snippet``: characters of its text."""
    return draft(candidate, rank, recall).card(snippet)


def _fields(
    candidate: Candidate, rank: int, found: StoredPassage, words: Sequence[str], confidence: Confidence | None
) -> Envelope:
    item, seq = found.item, found.passage.seq
    fields: Envelope = {
        "id": field(item.id),
        "source": candidate.kind,
        "rank": rank,
        "score": rounded(candidate.score, 4) or 0.0,
        "matchedBy": matched_by(candidate.votes),
        "ranks": {vote.lane: vote.rank for vote in candidate.votes if vote.rank is not None},
        "boosts": {nudge.name: rounded(nudge.factor, 3) for nudge in candidate.nudges},
        "matchedTerms": [field(word, TERM_CHARS) for word in words[:MAX_TERMS]],
        "title": field(item.title, TITLE_CHARS),
        "text": wrap(Inert("", 0, False)),
        **_place(found),
        "scope": field(item.scope),
        "importance": rounded(item.importance, 3),
        "pinned": item.pinned or None,
        "state": item.state,
        "updatedAt": iso(item.updated_at),
        "confidence": _confidence(confidence),
        "chunks": candidate.chunks if candidate.chunks > 1 else None,
        "duplicates": candidate.duplicates or None,
        "size": found.size,
        "open": field(f"{item.id}#{seq}" if seq else item.id),
    }
    return {name: value for name, value in fields.items() if value not in (None, {}, [], "")}


def conflicting(items: Sequence[Item]) -> Envelope:
    """What cannot hold beside an item, where there is anything: pointers and titles."""
    shown = [{"open": field(item.id), "title": field(item.title, TITLE_CHARS)} for item in items[:MAX_CONFLICTS]]
    return {"conflicts": shown} if shown else {}


def conflicts_line(envelope: Mapping[str, Any]) -> str:
    """The same as part of a line; empty where there are none."""
    return ", ".join(f"{each['open']} {quoted(each['title'])}" for each in envelope.get("conflicts", ()))


def _confidence(confidence: Confidence | None) -> Envelope | None:
    """In short: the whole object is what ``get_project_memory`` says about learnings."""
    if confidence is None:
        return None
    return {"evidence_score": rounded(confidence.evidence_score, 3), "state": confidence.state}


def matched_by(votes: Sequence[Vote]) -> str:
    """``both`` for words and meaning, else the first of ``lexical``, ``vector``, ``graph`` and ``temporal`` (R11)."""
    lanes = {vote.lane for vote in votes if vote.rank is not None}
    return "both" if {"lexical", "vector"} <= lanes else next(lane for lane in get_args(LaneName) if lane in lanes)


def matched_terms(recall: Recall, found: StoredPassage) -> tuple[str, ...]:
    """The query's words that occur in the passage, as the caller wrote them, each once."""
    tokens = set(found.tokens.split())
    return tuple(dict.fromkeys(surface for surface, terms in recall.words if tokens.intersection(terms)))


def card_line(each: Mapping[str, Any]) -> str:
    """A card's fields, all but its text, as one line."""
    where = [each.get("path", ""), each.get("lines", "")]
    found = " + ".join(f"{lane} #{rank}" for lane, rank in each.get("ranks", {}).items())
    how = found if found and each["matchedBy"] != "both" else f"{each['matchedBy']}: {found}".rstrip(": ")
    named = {
        "topic": each.get("topic"),
        "agent": each.get("agent"),
        "session": each.get("session"),
        "branch": each.get("branch"),
        "turns": each.get("turns"),
        "quality": each.get("quality"),
        "matched": ", ".join(each.get("matchedTerms", ())),
        "boosts": ", ".join(f"{name} x{factor}" for name, factor in each.get("boosts", {}).items()),
        "scope": each.get("scope"),
        "importance": each.get("importance"),
        "pinned": "yes" if each.get("pinned") else None,
        "state": each["state"],
        "on disk": each.get("on_disk"),
        "updated": each["updatedAt"],
        "confidence": "{evidence_score} {state}".format(**each["confidence"]) if "confidence" in each else None,
        "conflicts with": conflicts_line(each),
        "chunks": each.get("chunks"),
        "duplicates": each.get("duplicates"),
        "size": each.get("size"),
        "hidden characters removed": each.get("hidden_chars_removed"),
        "external URL": "yes" if each.get("external_url") else None,
        "open": each["open"],
    }
    head = [f"{each['rank']}. [{each['source']}] {quoted(each.get('title', ''))}".rstrip()]
    head += [quoted(part) for part in (":".join(filter(None, where)), each.get("heading")) if part]
    tail = [f"{name} {quoted(value)}" for name, value in named.items() if value not in (None, "")]
    return " | ".join([*head, f"score {each['score']} ({how})", *tail])


def quoted(value: object) -> str:
    """A field as part of a line: in quotes where it could pass for several fields."""
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if "|" in text or text.startswith('"') else text


def _place(found: StoredPassage) -> Envelope:
    """Where the passage stands: path, heading and lines of a document; agent, session and turns of a conversation."""
    passage, item = found.passage, found.item
    place: Envelope = {"heading": field(passage.heading, TITLE_CHARS)}
    if item.kind == "doc":
        place["path"] = field(item.key or "")
        if passage.start_line is not None:
            place["lines"] = f"{passage.start_line}-{passage.end_line}"
    elif item.kind == "session":
        place |= {name: field(item.attrs.get(name, ""), TITLE_CHARS) for name in _CONVERSATION}
        place["turns"] = f"{passage.start_line}-{passage.end_line}" if passage.start_line is not None else ""
    elif item.key:
        place["topic"] = field(item.key, TITLE_CHARS)
    return place


def notes(safe: Inert) -> Envelope:
    """What was found while a text was made inert."""
    found = {"hidden_chars_removed": safe.hidden_removed or None, "external_url": safe.external_url or None}
    return {name: value for name, value in found.items() if value is not None}


def rounded(value: float | None, digits: int) -> float | None:
    """A number as it may stand in JSON: NaN and infinities are no numbers there."""
    return round(value, digits) if value is not None and math.isfinite(value) else None


def compact(envelope: object) -> str:
    """The envelope as it goes over the wire."""
    return _encode(envelope)
