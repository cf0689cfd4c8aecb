"""What of a conversation is worth quoting later: what was decided, how it ended, what it left open. Pure.

Every quote is a sentence of the conversation as it stands there (a line that was wrapped is one line). A person's own
words are told from the agent's only in the first line of a question, where it is certain who speaks.
Knows nothing about weeks, stores or how a quote is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from grounded_mcp.ingest.phrases import ANSWER, asks, concludes, decides, is_weak, leaves_open
from grounded_mcp.tokens import STOP_WORDS
from grounded_mcp.values import Passage

MIN_WORDS = 5
MAX_CHARS = 300
"""A longer sentence is not quoted: cut, it would no longer be what was said."""
MAX_DECISIONS = 4
MAX_OPEN = 2
"""Of one conversation."""
CLOSING = 12
"""So many sentences at the end of a conversation may say what it leaves open."""
HEAD = 5
"""Characters by which words are compared."""
_NEGATIONS = frozenset({"not", "no", "never", "don", "won", "isn", "doesn", "witho"})


class Quote(NamedTuple):
    """A sentence, the passage that it begins in, who said it, and when, where that is known."""

    text: str
    seq: int
    by_person: bool = False
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Excerpts:
    """Of one conversation. ``conclusion``: how its last telling answer begins. ``open``: what was still to be done."""

    decisions: tuple[Quote, ...] = ()
    conclusion: Quote | None = None
    open: tuple[Quote, ...] = ()


def excerpts(passages: Sequence[Passage]) -> Excerpts:
    """What to quote of a conversation, from its passages in order."""
    told = [list(_sentences(list(own))) for _, own in groupby(passages, key=lambda each: each.start_line)]
    quotes = [each.quote for exchange in told for each in exchange]
    decided = [each for each in quotes if decides(each.text, by_person=each.by_person)]
    decided.sort(key=lambda quote: not quote.by_person)
    decisions = distinct(decided)[:MAX_DECISIONS]
    last = next((exchange for exchange in reversed(told) if exchange), [])
    return Excerpts(
        tuple(sorted(decisions, key=lambda quote: quote.seq)),
        _conclusion(told, frozenset(decisions)),
        tuple(distinct(_left_open(last))[-MAX_OPEN:]),
    )


def distinct(quotes: Iterable[Quote]) -> list[Quote]:
    """The quotes without those that say what an earlier one says, in the same words or with some more or less.

    A word that only one of two has, but not the longer, tells them apart, and so does a negation.
    """
    kept: list[tuple[Quote, frozenset[str]]] = []
    for quote in quotes:
        words = _telling(quote.text)
        if not any(
            words & _NEGATIONS == other & _NEGATIONS and (words <= other or other <= words) for _, other in kept
        ):
            kept.append((quote, words))
    return [quote for quote, _ in kept]


def _telling(text: str) -> frozenset[str]:
    """Its words but for stop words, by their beginnings: "changed" is "change"."""
    return frozenset(word[:HEAD] for word in _WORD.findall(text.casefold()) if word not in STOP_WORDS)


def _conclusion(told: Sequence[Sequence[_Said]], quoted: frozenset[Quote]) -> Quote | None:
    """A statement after the last call, of the last exchange that has a telling one; else the last weak one.

    Not what is ``quoted`` already.
    """
    weak: Quote | None = None
    for exchange in reversed(told):
        ends = [each for each in exchange if each.last and not each.quote.by_person and each.quote not in quoted]
        ends = [each for each in ends if concludes(each.quote.text)]
        ends.sort(key=lambda each: (is_weak(each.quote.text), each.listed))
        if ends and not (ends[0].listed or is_weak(ends[0].quote.text)):
            return ends[0].quote
        weak = weak or (ends[0].quote if ends else None)
    return weak


def _left_open(exchange: Sequence[_Said]) -> Iterator[Quote]:
    """What the end of an exchange says is still to be done, and its last sentence if that asks, whoever asked it."""
    ends = [each.quote for each in exchange if each.last][-CLOSING:]
    yield from (quote for quote in ends if not quote.by_person and leaves_open(quote.text))
    yield from (quote for quote in ends[-1:] if asks(quote.text))


# --- sentences --------------------------------------------------------------------------------------------

# What ``transcripts.passages`` tells of calls, by the tools' names; what a command printed is not told apart.
_TOLD = re.compile(
    r"""(?:Ran|Read|Edited|Interrupted|Grep|Glob|LS|Bash\w*|Kill\w*|Task\w*|Agent|Web\w+|Skill|ToolSearch|Write|Edit
    |MultiEdit|Todo\w*|Notebook\w*|\w+PlanMode|AskUserQuestion|mcp__\S+|[a-z]+_[a-z_]+|grep|glob|list|ls)
    (?:\ failed|\ refused)?(?::|\ by\ the\ person)|\s*\||Asked:\ /""",
    re.VERBOSE,
)
_CUT = re.compile(r"\[[^\]]*(?:removed|characters|REDACTED|left out)[^\]]*\]")
_NOT_PROSE = re.compile(
    r"""[|{}<>\\]|//|=>|->|:=|==|&&|^[-+]{3}|^[^\w"'`*(“]|^\W*$
    |^The\ (?:tool\ use\ was\ rejected|(?:user|person)\ doesn't\ want)|^STOP\ what\ you\ are
    |^Switched\ to\ (?:a\ new\ )?branch""",
    re.VERBOSE,
)
_WRAPPED = re.compile(r"(?<=[\w,)`])\n(?=[a-z])")
_MARKER = re.compile(r"(?:[\s>#]|[-*+•]\s|\d{1,2}[.)]\s|\[[ x]\]\s)+", re.IGNORECASE)
_ENDS = re.compile(r"(?<=[.!?])(?:\*\*|[\"'”’)])?\s+(?=[A-Z0-9`*\"'“(])")
_SPAN = re.compile(r"`[^`]*`")
_WORD = re.compile(r"\w+")
_ASKED = "Asked: "


class _Said(NamedTuple):
    """A sentence in its place. ``last``: no call comes after it. ``listed``: it is an item of a list, or a heading."""

    quote: Quote
    last: bool
    listed: bool


def _sentences(passages: Sequence[Passage]) -> Iterator[_Said]:
    """The sentences of one exchange that are prose: no calls, code, tables, or lines that lost their middle."""
    text = _WRAPPED.sub(" ", "".join(passage.body for passage in passages))
    places = _places(passages)
    lines = list(re.finditer(r"[^\n]+", text))
    last_call = max((at for at, line in enumerate(lines) if _TOLD.match(line[0])), default=-1)
    fenced = False
    for at, found in enumerate(lines):
        line = found[0]
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        if fenced or fence or _TOLD.match(line) or _CUT.search(line):
            continue
        by_person = line.startswith(_ASKED)
        listed = not by_person and _MARKER.match(line) is not None
        for start, sentence in _split(line, len(_ASKED) if by_person else 0):
            if len(sentence) <= MAX_CHARS and not _NOT_PROSE.search(_SPAN.sub("", sentence)):
                began = [passage for place, passage in places if place <= found.start() + start][-1]
                person = by_person or ANSWER.fullmatch(sentence) is not None
                yield _Said(Quote(sentence, began.seq, person, began.at), at > last_call, listed)


def _places(passages: Sequence[Passage]) -> list[tuple[int, Passage]]:
    """Each passage with the place of its first character."""
    found, at = [], 0
    for passage in passages:
        found.append((at, passage))
        at += len(passage.body)
    return found


def _split(line: str, start: int) -> Iterator[tuple[int, str]]:
    """The sentences of a line from ``start`` on, without list markers, each with its place.

    Of a line that tells what a person answered to questions, those with their answers.
    """
    answers = list(ANSWER.finditer(line))
    if answers:
        yield from ((each.start(), each[0]) for each in answers)
        return
    marker = _MARKER.match(line, start)
    start = marker.end() if marker else start
    ends = [(each.start(), each.end()) for each in _ENDS.finditer(line, start)]
    for stop, following in [*ends, (len(line), len(line))]:
        sentence = line[start:stop].strip()
        if len(sentence.split()) >= MIN_WORDS:
            yield start, sentence
        start = following
