"""Does anything that was found bear on the task at all? A pack of what is merely nearest would be taken for an answer.

Everything has a nearest passage. What tells an answer from it is how near that is, and whether the task's own words are
in it: of the things that it names (files, paths, identifiers) at least one. Pure; knows nothing about sections.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grounded_mcp.packing import PackItem
from grounded_mcp.values import Recall


@dataclass(frozen=True, slots=True)
class SettledOptions:
    """[pack.settled]: similarity that is enough by itself, and the least that is enough with this part of the words."""

    similarity: float
    least: float
    words: float


_NAMED = re.compile(r"\w[/._]\w|[a-z][A-Z]|\w_\w")
_SUFFIX = re.compile(
    r"\.(?:bash|c|cfg|cpp|cs|css|go|h|html|ini|java|js|json|jsx|kt|lock|md|mdx|php|ps1|py|rb|rs|rst|scala|sh|sql|swift"
    r"|tf|toml|ts|tsx|txt|xml|yaml|yml)$"
)


def settled(items: Sequence[PackItem], found: Recall, options: SettledOptions) -> bool:
    """Whether a pack has anything to stand on. A task that is a time and nothing else needs something of that time."""
    if found.rankings and all(ranking.lane == "temporal" for ranking in found.rankings):
        return any(_of_the_time(item, found) for item in items)
    return _names_something(items, found) and any(_bears(item, found, options) for item in items)


def _of_the_time(item: PackItem, found: Recall) -> bool:
    passage, asked = item.candidate.found, found.aside.get("time", {})
    if passage is None or not asked:
        return False
    began = passage.item.created_at if passage.passage.at is None else passage.passage.at
    ended = passage.item.updated_at if passage.passage.at is None else passage.passage.at
    return began <= float(asked["until"]) and ended >= float(asked["since"])


def _names_something(items: Sequence[PackItem], found: Recall) -> bool:
    """Whether any item holds one of the things that the task names; true where it names none."""
    named = [set(_forms(terms)) for surface, terms in found.words if _NAMED.search(surface)]
    if not named:
        return True
    held = {token for item in items if item.candidate.found for token in item.candidate.found.tokens.split()}
    return any(not held.isdisjoint(forms) for forms in named)


def _forms(terms: Sequence[str]) -> Iterator[str]:
    """What stands for a thing of this name: the whole of it, its last segment, and what a dotted name ends with."""
    whole = max(terms, key=len)
    last = whole.rpartition("/")[2]
    yield from (whole, last)
    if not _SUFFIX.search(last):
        yield last.rpartition(".")[2]


def _bears(item: PackItem, found: Recall, options: SettledOptions) -> bool:
    share = item.matched / item.asked if item.asked else 0.0
    if found.mode == "lexical":  # similarities are relative to the best word match, so that words alone tell
        return share >= options.words
    near = max((vote.native or 0.0 for vote in item.candidate.votes if vote.lane == "vector"), default=0.0)
    return near >= options.similarity or (near >= options.least and share >= options.words)
