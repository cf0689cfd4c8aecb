"""Which memories a startup brief shows: every lane has a share of the room, and what one leaves the next ones get (F5).

Pinned facts are shown always: where they do not fit as they are, each gets shorter before any is left out. What did not
fit is named in one line, and counted where even its name does not fit. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from grounded_mcp.brief import lines
from grounded_mcp.brief.lines import Look, Room
from grounded_mcp.foreground import Foreground, Here, Most, Note, Shelf, Weights
from grounded_mcp.recall.scope import at_home


class BriefOptions(NamedTuple):
    """[brief]. Shares are parts of the room; what is left of it is for names of the rest.

    ``max_chars`` and ``max_tokens``: clients put more than 10,000 characters (Claude Code, Cursor) or 2,500 tokens
    (Codex) into a file instead. ``facts`` ...: the most that are looked at. ``*_chars``: of one line's text.
    """

    max_chars: int = 9_500
    max_tokens: int = 2_500
    pinned_share: float = 0.35
    facts_share: float = 0.25
    sessions_share: float = 0.12
    scripts_share: float = 0.13
    facts: int = 80
    sessions: int = 8
    scripts: int = 8
    learnings: int = 20
    fact_chars: int = 400
    title_chars: int = 160
    name_chars: int = 60
    mentions: int = 5
    common: int = 20
    names: int = 40


class Lane(NamedTuple):
    """One section: its lines, inert, with the ids of what they show, and what did not fit."""

    name: str
    lines: tuple[str, ...]
    ids: tuple[str, ...]
    left: tuple[Note, ...]


class Brief(NamedTuple):
    """A startup brief, within its room. ``named``: the rest by name, inert; ``uncounted``: what is not even named."""

    project: str
    name: str
    branch: str | None
    worktree: str | None
    at: float
    lanes: tuple[Lane, ...]
    named: tuple[str, ...]
    uncounted: tuple[tuple[str, int], ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """What is shown in full, so that nobody needs to be told again."""
        return tuple(id for lane in self.lanes for id in lane.ids)

    @property
    def empty(self) -> bool:
        return not self.ids and not self.named and not self.uncounted


class _Way(NamedTuple):
    """How a lane is filled."""

    name: str
    notes: tuple[Note, ...]
    share: float
    line: Callable[[Note, int, Look], str]
    lengths: tuple[int, ...]
    """Characters of a line's text: the first of these with which all fit, else the last."""


REST_SHARE = 0.15
"""The part of the room that is kept for the names of the rest."""
PINNED_LENGTHS = (4_000, 1_000, 400, 200, 100)


def brief(
    store: Shelf,
    project: Here,
    options: BriefOptions = BriefOptions(),  # noqa: B008 - immutable
    now: float = 0.0,
    look: Look = lambda _: "verified",
    weights: Weights = Weights(),  # noqa: B008 - immutable
) -> Brief:
    """The brief of a project. ``look`` says how the files of a script are now; ``now`` is noted. Raises: StoreError.

    Facts come from the scopes that a recall admits there (R9), everything else from the project and ``global``.
    """
    facts, others = at_home(project, store.scopes(), store.projects())
    most = Most(options.facts, options.sessions, options.scripts, options.learnings)
    found = store.foreground(facts, others, most, weights)
    room = Room(options.max_chars, options.max_tokens)
    part = 1.0 - room.part(lines.frame(project))
    lanes, left = _fill(_ways(found, options), room, part, look)
    named, uncounted = _rest(found, lanes, room, left, options.name_chars)
    return Brief(
        *(project.key, project.name, project.branch, project.worktree, now),
        *(tuple(lane for lane in lanes if lane.lines), named, uncounted),
    )


def _ways(found: Foreground, options: BriefOptions) -> tuple[_Way, ...]:
    pinned = tuple(note for note in found.facts if note.pinned)
    others = tuple(note for note in found.facts if not note.pinned)
    titles = (options.title_chars,)
    return (
        _Way("Pinned facts", pinned, options.pinned_share, lines.fact, PINNED_LENGTHS),
        _Way("Facts", others, options.facts_share, lines.fact, (options.fact_chars,)),
        _Way("Recent sessions", found.sessions, options.sessions_share, lines.session, titles),
        _Way("Commands that worked", found.scripts, options.scripts_share, lines.script, (options.fact_chars,)),
    )


def _fill(ways: Sequence[_Way], room: Room, part: float, look: Look) -> tuple[list[Lane], float]:
    """Each lane within its share; then, in their order, more as far as others left room. And what is left of that."""
    taken = [_take(way, room, way.share * part, look) for way in ways]
    for at, way in enumerate(ways):
        lane, cost = taken[at]
        free = (1.0 - REST_SHARE) * part - sum(cost for _, cost in taken) + cost
        if free > cost and (lane.left or len(way.lengths) > 1):
            taken[at] = _take(way, room, free, look)
    return [lane for lane, _ in taken], part - sum(cost for _, cost in taken)


def _take(way: _Way, room: Room, part: float, look: Look) -> tuple[Lane, float]:
    """As many as fit in a part of the room, at the greatest length at which all do."""
    for chars in way.lengths:
        kept, cost = [], 0.0
        for note in way.notes:
            line = way.line(note, chars, look)
            more = room.part(line)
            if cost + more > part:
                break
            kept.append(line)
            cost += more
        if len(kept) == len(way.notes):
            break
    shown = way.notes[: len(kept)]
    return Lane(way.name, tuple(kept), tuple(note.id for note in shown), way.notes[len(kept) :]), cost


def _rest(
    found: Foreground, lanes: Sequence[Lane], room: Room, part: float, chars: int
) -> tuple[tuple[str, ...], tuple[tuple[str, int], ...]]:
    """Names of what did not fit and of learnings while there is room, and what is only counted, by kind."""
    left = [note for lane in lanes for note in lane.left] + list(found.learnings)
    named: list[str] = []
    for note in left:
        each = lines.name(note, chars)
        cost = room.part(each + ", ")
        if cost > part:
            break
        part -= cost
        named.append(each)
    told = [id for lane in lanes for id in lane.ids] + [note.id for note in left[: len(named)]]
    kinds = {note.id: note.kind for note in (*found.facts, *found.sessions, *found.scripts, *found.learnings)}
    shown = [kinds[id] for id in told]
    rest = {kind: count - shown.count(kind) for kind, count in sorted(found.counts.items())}
    return tuple(named), tuple((kind, count) for kind, count in rest.items() if count > 0)
