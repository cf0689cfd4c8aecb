"""A context pack as a model reads it, within a budget of bytes (C2-C4). Pure.

Both halves of a reply say everything, for clients show a model one of them, and both together fit the budget: it is
what a client receives. First the summaries go, then items from the end; the first item stays, cut if need be. Knows
nothing about tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grounded_mcp.inert import Inert, inert, telling, wrap
from grounded_mcp.packing import SECTIONS, Disagreement, Nearest, Pack, PackItem, ReadFirst, Section
from grounded_mcp.render.cards import (
    FIELD_CHARS,
    MAX_TERMS,
    TERM_CHARS,
    TITLE_CHARS,
    Envelope,
    compact,
    conflicting,
    conflicts_line,
    field,
    matched_by,
    matched_terms,
    notes,
    quoted,
    rounded,
)
from grounded_mcp.render.recalled import GUIDANCE, MIN_SNIPPET, NO_WORDS, SHORT_GUIDANCE, RenderOptions
from grounded_mcp.render.snippet import cut_around
from grounded_mcp.values import Item, StoredPassage
from grounded_mcp.when import iso

NOTHING = (
    "The search ran and found nothing near enough to the task to stand on. Say that the memory does not know rather "
    "than guess; the project itself may still answer."
)
NEAREST = "`nearest` points at what came closest: none of it is near enough to stand on, but you may look at it."
TALK_ONLY = "Only conversations speak of this: none of them is an authority for what is true now. Check before you act."
SNIPPET, SUMMARY = "snippet:", "summary:"
"""What stands above the two texts of an item that has both."""

CUT = "Cut to fit max_bytes: open an item's `open` pointer for its full text."

LEAST_BYTES = 2_304
"""Less cannot hold one item with what must be said of it, in both halves."""

FRAME = 288
"""Bytes that a protocol puts around the two halves, the longest request id of common clients included."""

BARE = {"id", "source", "trust", "score", "similarity", "matched", "matched_by", "path", "timestamp", "text", "open"}
BARE |= {"because", "on_disk", "size"}
"""The fields of an item where there is hardly room for one."""

ORDER: Mapping[str, tuple[Section, ...]] = {
    "reasoning_archive": ("decisions", "past_reasoning", "current_truth", "examples", "discounted")
}
"""In which order an intent shows the sections, where that is not their own: what comes last is dropped first."""


@dataclass(frozen=True, slots=True)
class PackLengths:
    """Of one answer: bytes, characters of a snippet and of a summary. ``together``: the bytes are of a reply with both
    halves, not of the longer one."""

    max_bytes: int
    snippet: int
    summary: int
    together: bool


@dataclass(frozen=True, slots=True)
class _Shown:
    """How much of a pack is shown: so many items, of so many characters, with summaries or without; ``chars``: the most
    of any other stored text, where only what must be said is."""

    items: int
    snippet: int
    summary: int = 0
    chars: int = FIELD_CHARS

    @property
    def bare(self) -> bool:
        return self.chars < FIELD_CHARS


def pack_lengths(options: RenderOptions, max_bytes: int | None, *, together: bool = True) -> PackLengths:
    """The lengths in force. A budget that a caller names is lowered to the cap, and raised to what an empty answer
    takes."""
    wanted = options.pack_bytes if max_bytes is None else min(max_bytes, options.pack_byte_cap)
    return PackLengths(max(LEAST_BYTES, wanted), options.pack_snippet_chars, options.pack_summary_chars, together)


def pack_envelope(pack: Pack, lengths: PackLengths) -> Envelope:
    """``{section: items ..., read_first, current_truth_caveat, disagreements, meta}``; what is empty is left out."""
    items = sum(map(len, pack.sections.values()))
    one = min(items, 1)
    tried = (
        _Shown(items, lengths.snippet, lengths.summary),
        *(_Shown(count, lengths.snippet) for count in range(items, 0, -1)),
        *(_Shown(one, length) for length in (lengths.snippet // 2, MIN_SNIPPET)),
        *(_Shown(one, length, chars=length) for length in (MIN_SNIPPET, MIN_SNIPPET // 2, MIN_SNIPPET // 5)),
    )
    cards: dict[tuple[int, int], list[Envelope]] = {}  # made once for each length of the texts
    envelope: Envelope = {}
    for shown in tried:
        made = cards.setdefault((shown.snippet, shown.chars), []) if not shown.summary else []
        envelope = _envelope(pack, shown, made)
        if _bytes(envelope, lengths) <= lengths.max_bytes:
            break
    return envelope


def _bytes(envelope: Envelope, lengths: PackLengths) -> int:
    text = pack_text(envelope)
    if lengths.together:
        return FRAME + len(compact([envelope, text]).encode("utf-8", "replace"))
    return max(len(half.encode("utf-8", "replace")) for half in (compact(envelope), text))


def _envelope(pack: Pack, shown: _Shown, cards: list[Envelope]) -> Envelope:
    named = [(name, item) for name in ORDER.get(pack.read.intent, SECTIONS) for item in pack.sections.get(name, ())]
    cards += [_item(item, pack, shown) for _, item in named[len(cards) : shown.items]]
    sections: Envelope = {}
    for (name, _), card in zip(named[: shown.items], cards, strict=False):
        sections.setdefault(name, []).append(card)
    files = [] if shown.bare else [_file(each) for each in pack.read_first]
    doubts = [] if shown.bare else [_doubt(each) for each in pack.disagreements]
    near = [] if shown.bare else [_near(each) for each in pack.nearest]
    told = {"nearest": near, "read_first": files, "current_truth_caveat": pack.caveat, "disagreements": doubts}
    return {**sections, **{name: value for name, value in told.items() if value}, "meta": _meta(pack, shown, sections)}


def _meta(pack: Pack, shown: _Shown, sections: Mapping[str, Sequence[Envelope]]) -> Envelope:
    recall, read = pack.recall, pack.read
    given = sum(map(len, sections.values()))
    dropped = sum(map(len, pack.sections.values())) - given
    cut = dropped or shown.snippet <= MIN_SNIPPET
    empty = not pack.sections
    degraded = recall.degradation
    guidance = SHORT_GUIDANCE if shown.bare or dropped else GUIDANCE
    if not shown.bare:
        guidance = telling(guidance, (item["text"] for items in sections.values() for item in items))
    meta = {
        "intent": read.intent,
        "intent_words": [
            field(word, min(TERM_CHARS, shown.chars)) for word in read.words[: 3 if shown.bare else MAX_TERMS]
        ],
        "mode": recall.mode,
        "degraded": degraded is not None,
        "degraded_reason": field(f"{degraded.reason} {degraded.remedy}", shown.chars) if degraded else None,
        "empty": empty,
        "archive": pack.archive or "not searched",
        "dropped": dropped or None,
        "left_out": None if shown.bare else dict(pack.left_out),
        "recall_id": recall.id,
        "total_ms": rounded(recall.stats.total_ms, 1),
        "note": " ".join(_said(pack, shown, cut=bool(cut))),
        "guidance": (NOTHING if recall.words else NO_WORDS) if empty else guidance,
    }
    return {name: value for name, value in meta.items() if value not in (None, "", [], {})}


def _said(pack: Pack, shown: _Shown, *, cut: bool) -> Iterator[str]:
    if pack.sections and all(
        item.trust in ("discussion", "discounted") for items in pack.sections.values() for item in items
    ):
        yield TALK_ONLY
    if pack.nearest and not shown.bare:
        yield NEAREST
    if cut:
        yield CUT
    if pack.recall.hint:
        yield field(pack.recall.hint, shown.chars)


# --- parts ------------------------------------------------------------------------------------------------


def _item(item: PackItem, pack: Pack, shown: _Shown) -> Envelope:
    candidate, found = item.candidate, item.candidate.found
    if found is None:
        raise ValueError("a pack is made of fetched passages")
    words = matched_terms(pack.recall, found)
    safe = _texts(found, words, shown)
    seq, owner = found.passage.seq, found.item
    fields = {
        "id": field(owner.id),
        "source": owner.kind,
        "trust": item.trust,
        "because": item.because,
        "score": rounded(candidate.score, 4) or 0.0,
        "similarity": rounded(item.similarity, 4) or 0.0,
        "matched": f"{item.matched}/{item.asked}",
        "matched_by": matched_by(candidate.votes),
        "title": field(_title(owner), TITLE_CHARS),
        **_place(item, shown.chars),
        "timestamp": iso(found.passage.at if found.passage.at is not None else owner.updated_at),
        "decided": iso(item.decided)[:10] if item.decided is not None else None,
        "on_disk": item.disk if item.disk in ("changed", "missing") else None,
        "text": wrap(safe),
        **notes(safe),
        **conflicting(pack.recall.conflicts.get(owner.id, ())),
        "size": found.size,
        "open": field(f"{owner.id}#{seq}" if seq else owner.id),
    }
    return {
        name: value for name, value in fields.items() if value not in (None, "") and (not shown.bare or name in BARE)
    }


def _texts(found: StoredPassage, words: Sequence[str], shown: _Shown) -> Inert:
    """A passage's snippet, and its summary where that is shown and says more: within one wrapper (P4)."""
    snippet = inert(cut_around(found.passage.body, words, shown.snippet))
    if not shown.summary or len(found.passage.body.strip()) <= shown.snippet:
        return snippet
    summary = inert(cut_around(found.passage.body, words, shown.summary))
    return Inert(f"{SNIPPET}\n{snippet.text}\n\n{SUMMARY}\n{summary.text}", *summary[1:])


def _title(owner: Item) -> str:
    """A document's without its path, which stands beside it."""
    if owner.kind != "doc" or not owner.key:
        return owner.title
    return "" if owner.title == owner.key else owner.title.removesuffix(f" ({owner.key})")


def _place(item: PackItem, chars: int) -> Envelope:
    """``path:line`` of a file; agent, session and turns of a conversation."""
    found = item.candidate.found
    if found is None:
        return {}
    passage, owner = found.passage, found.item
    if owner.kind == "doc":
        path = field(owner.key or "", chars)
        return {"path": f"{path}:{passage.start_line}" if passage.start_line is not None else path}
    if owner.kind == "session":
        turns = f"{passage.start_line}-{passage.end_line}" if passage.start_line is not None else ""
        return {"agent": field(owner.attrs.get("agent", ""), TITLE_CHARS), "turns": turns}
    return {"topic": field(owner.key or "", TITLE_CHARS)} if owner.kind == "fact" else {}


def _file(each: ReadFirst) -> Envelope:
    path = field(each.path)
    return {
        "path": f"{path}:{each.line}" if each.line is not None else path,
        "why": each.why,
        "on_disk": each.disk,
        "open": field(each.item),
    }


def _near(each: Nearest) -> Envelope:
    place = f"{field(each.path)}:{each.line}" if each.line is not None else field(each.path)
    return {"source": each.kind, **({"path": place} if place else {}), "open": field(each.pointer)}


def _doubt(each: Disagreement) -> Envelope:
    return {"open": field(each.item), "says": field(each.says, TITLE_CHARS), "but": field(each.against, TITLE_CHARS)}


# --- text -------------------------------------------------------------------------------------------------


def pack_text(envelope: Envelope) -> str:
    """The envelope for a client that shows only text: the same facts."""
    meta = envelope["meta"]
    lines = [_headline(meta)]
    lines += [meta[name] for name in ("note", "guidance") if name in meta]
    if caveat := envelope.get("current_truth_caveat"):
        lines.append(f"current_truth_caveat: {caveat}")
    if near := envelope.get("nearest"):
        lines += ["", "nearest:"]
        lines += [" | ".join([f"- {each['source']}", *_pointers(each)]) for each in near]
    if files := envelope.get("read_first"):
        lines += ["", "read_first:"]
        lines += [f"- {quoted(each['path'])} | {each['why']} | {each['on_disk']} | {each['open']}" for each in files]
    lines += [f"disagreement: {each['open']} says {each['says']}, but {each['but']}" for each in _doubts(envelope)]
    for name in ORDER.get(meta["intent"], SECTIONS):
        if name in envelope:
            lines += ["", f"## {name}"]
        for each in envelope.get(name, ()):
            lines += ["", _line(each), each["text"]]
    return "\n".join(lines)


def _doubts(envelope: Envelope) -> Sequence[Envelope]:
    found: Sequence[Envelope] = envelope.get("disagreements", ())
    return found


def _pointers(each: Envelope) -> list[str]:
    return [quoted(each[name]) for name in ("path", "open") if name in each]


_SAID_ELSEWHERE = ("note", "guidance", "intent", "intent_words", "left_out")


def _headline(meta: Mapping[str, Any]) -> str:
    decided = f" ({', '.join(map(quoted, meta['intent_words']))})" if "intent_words" in meta else ""
    parts = [f"intent {meta['intent']}{decided}"]
    parts += [f"{name} {quoted(value)}" for name, value in meta.items() if name not in _SAID_ELSEWHERE]
    parts += [f"left out: {why} {count}" for why, count in meta.get("left_out", {}).items()]
    return " | ".join(parts)


def _line(each: Mapping[str, Any]) -> str:
    head = f"[{each['source']}, {each['trust']}: {each['because']}] {quoted(each.get('title', ''))}".rstrip()
    named = {
        "agent": each.get("agent"),
        "turns": each.get("turns"),
        "topic": each.get("topic"),
        "at": each["timestamp"],
        "decided": each.get("decided"),
        "on disk": each.get("on_disk"),
        "matched": each["matched"],
        "score": f"{each['score']} (similarity {each['similarity']}, {each['matched_by']})",
        "conflicts with": conflicts_line(each),
        "hidden characters removed": each.get("hidden_chars_removed"),
        "external URL": "yes" if each.get("external_url") else None,
        "size": each["size"],
        "open": each["open"],
    }
    where = [quoted(each["path"])] if "path" in each else []
    return " | ".join(
        [head, *where, *(f"{name} {quoted(value)}" for name, value in named.items() if value not in (None, ""))]
    )
