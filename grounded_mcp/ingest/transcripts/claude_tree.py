"""Which records of a Claude Code session the person took back, found before any of them is read in full.

A session is an append-only log; ``parentUuid`` makes it a tree. It branches for ordinary reasons (several tool calls
of one message, hooks, a second terminal), and nothing in those says that a branch was given up. It also branches when
the person rewinds and asks anew: the new prompt then hangs on the same record as the old one. Only that is taken for
a rewind, and only where the whole old branch was written before the new prompt; everything else stays. Prompts that
hang on nothing stay too: an accepted plan or a cleared context starts one in mid-session.

Knows links, and nothing about what a record says: the caller tells which records are prompts.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Iterator, KeysView, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from grounded_mcp.ingest.transcripts.lines import MAX_LINE_BYTES, open_plain

WINDOW_BYTES = 2 * 1024 * 1024
"""How far before the place to go on from the last turn is looked for: hooks and snapshots may lie between."""

Record = Mapping[str, Any]
_NONE = 0
_FIELDS = re.compile(rb'"(uuid|parentUuid|logicalParentUuid)": ?(null|"[^"\\]+")')
_BOTH = {b"uuid", b"parentUuid"}


@dataclass(frozen=True, slots=True)
class Tree:
    """Records by ``key`` of their uuid."""

    known: KeysView[int]
    repeated: frozenset[int]
    """Those written more than once."""
    rewound: frozenset[int]
    outside: frozenset[int]
    """Records that are not in what was read, and that prompts in it hang on."""


@dataclass(slots=True)
class _Links:
    """One entry a record, in the order of the file: 8 bytes for each list, and a dict of two whole numbers."""

    at: dict[int, int] = field(default_factory=dict)
    parents: array[int] = field(default_factory=lambda: array("q"))
    offsets: array[int] = field(default_factory=lambda: array("q"))
    maybe_prompts: list[int] = field(default_factory=list)
    repeated: set[int] = field(default_factory=set)


def key(uuid: object) -> int:
    """A uuid in 8 bytes; 0 for anything else."""
    return hash(uuid.encode("utf-8", "surrogatepass")) if isinstance(uuid, str) and uuid else _NONE


def grow(path: Path, offset: int, asks: Callable[[Record], bool]) -> Tree:
    """The tree of a file from a byte on. ``asks``: whether a record is a prompt of the person. Raises: OSError."""
    with open_plain(path) as file:
        links = _links(file, offset)
        worth = _worth_reading(links, offset)
        prompts = [ordinal for ordinal in worth if asks(_record(file, links.offsets[ordinal]))]
    rewound = frozenset(_rewound(links, prompts))
    outside = frozenset(links.parents[ordinal] for ordinal in prompts) - links.at.keys()
    return Tree(links.at.keys(), frozenset(links.repeated), rewound, outside)


def leads_back(path: Path, offset: int, tip: str, outside: frozenset[int]) -> bool:
    """Whether records before ``offset`` lead from each of ``outside`` up to ``tip``, the last turn before it.

    Raises: OSError.
    """
    start = max(0, offset - WINDOW_BYTES)
    with open_plain(path) as file:
        file.seek(start)
        raw = file.read(offset - start)
    if start + len(raw) != offset or not raw.endswith(b"\n"):
        return False
    parents = dict(ids for line in raw.split(b"\n") if (ids := _ids(line, {})))
    return key(tip) in parents and all(_climbs(each, key(tip), parents) for each in outside)


def _climbs(start: int, tip: int, parents: Mapping[int, int]) -> bool:
    passed = set()
    while start != tip and start in parents and start not in passed:
        passed.add(start)
        start = parents[start]
    return start == tip


def _links(file: IO[bytes], offset: int) -> _Links:
    links = _Links()
    for start, raw in _lines(file, offset):
        ids = _ids(raw, links.at)
        if ids is None:
            continue
        own, parent = ids
        if own in links.at:
            links.repeated.add(own)
            continue
        ordinal = links.at[own] = len(links.parents)
        links.parents.append(parent)
        links.offsets.append(start)
        if parent and b'"user"' in raw and b'"tool_result"' not in raw:
            links.maybe_prompts.append(ordinal)
    return links


def _lines(file: IO[bytes], offset: int) -> Iterator[tuple[int, bytes]]:
    """Lines and where they start; those over the limit are passed over in pieces."""
    file.seek(offset)
    inside = False
    while raw := file.readline(MAX_LINE_BYTES + 1):
        whole = raw.endswith(b"\n")
        if not inside and (whole or len(raw) <= MAX_LINE_BYTES):
            yield offset, raw
        inside = not whole
        offset += len(raw)


def _ids(raw: bytes, known: Mapping[int, int]) -> tuple[int, int] | None:
    """Keys of a record and of its parent (0: none), or None for a record without a uuid.

    A quote inside a JSON string is escaped, so what matches is always a field; with one of each kind in the line both
    are the record's own, and the line need not be parsed. Compaction cuts the link to what came before and keeps it as
    ``logicalParentUuid``, which newer versions use for a record that comes later: only an earlier one is a parent.
    """
    found = _FIELDS.findall(raw)
    if len(found) == 2 and {found[0][0], found[1][0]} == _BOTH:
        values = dict(found)
        own, parent = values[b"uuid"], values[b"parentUuid"]
        return (hash(own[1:-1]), hash(parent[1:-1]) if parent != b"null" else _NONE) if own != b"null" else None
    record = _object(raw) if found else {}
    if not (mine := key(record.get("uuid"))):
        return None
    before = key(record.get("logicalParentUuid"))
    return mine, key(record.get("parentUuid")) or (before if before in known else _NONE)


def _record(file: IO[bytes], offset: int) -> Record:
    file.seek(offset)
    return _object(file.readline(MAX_LINE_BYTES + 1))


def _object(raw: bytes) -> Record:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _worth_reading(links: _Links, offset: int) -> list[int]:
    """Prompts, as far as bytes tell, that share a parent with another; in the rest of a file, also those that hang on
    what came before it. In a whole file a parent that is nowhere says nothing."""
    children: dict[int, list[int]] = {}
    for ordinal in links.maybe_prompts:
        if offset or links.parents[ordinal] in links.at:
            children.setdefault(links.parents[ordinal], []).append(ordinal)
    groups = (group for parent, group in children.items() if len(group) > 1 or parent not in links.at)
    return sorted(ordinal for group in groups for ordinal in group)


def _rewound(links: _Links, prompts: list[int]) -> Iterator[int]:
    """Keys of records in branches that start with a prompt and end before a later prompt under the same parent."""
    latest_prompt = {links.parents[ordinal]: ordinal for ordinal in prompts}
    if len(latest_prompt) == len(prompts):
        return
    parents = array("q", (links.at.get(parent, -1) for parent in links.parents))
    ends = _ends(parents)
    taken_back = bytearray(len(parents))
    for ordinal in prompts:
        taken_back[ordinal] = ends[ordinal] < latest_prompt[links.parents[ordinal]]
    own = list(links.at)
    for ordinal in _below(parents, taken_back):
        yield own[ordinal]


def _ends(parents: array[int]) -> array[int]:
    """For each record the last one in its branch. From the end of the file on, so each is set once."""
    ends = array("q", [-1]) * len(parents)
    for last in range(len(parents) - 1, -1, -1):
        at = last
        while at >= 0 and ends[at] < last:
            ends[at] = last
            at = parents[at]
    return ends


def _below(parents: array[int], roots: bytearray) -> Iterator[int]:
    """The given records and all in branches under them, whatever order they are in."""
    unknown, no, yes = 0, 1, 2
    state = bytearray(yes if root else unknown for root in roots)
    for start in range(len(parents)):
        at, trail = start, []
        while at >= 0 and state[at] == unknown:
            state[at] = no  # for a circle, which ends here
            trail.append(at)
            at = parents[at]
        answer = state[at] if at >= 0 else no
        for passed in trail:
            state[passed] = answer
        if state[start] == yes:
            yield start
