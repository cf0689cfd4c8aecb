"""Does anything that was found bear on the task at all? A pack of what is merely nearest would be taken for an answer.

Everything has a nearest passage, and every long question shares some words with it. What tells an answer is how near
it is, and whether it holds the words that are rare among all that was found: for a passage, the cosine similarity plus
half its share of the task's words, each word weighed by its rarity. A word that is in the file's own path counts twice:
the project itself chose to call it so. A task that names things (files, paths, identifiers) needs one of them to be
there, and then less of the rest. Both bars were set on tasks of eleven repositories, see bench/LOG.md. Pure; knows
nothing about sections.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from grounded_mcp.packing import PackItem
from grounded_mcp.values import Recall

POOL = 40
"""Where fewer passages were found, the others count as holding none of the words: in a small memory, where every
passage is about the task, its words would be common."""

Index = Callable[[str], Iterable[str]]
"""The index tokens of a text: ``text.Analyzer.index``."""

Asked = Mapping[frozenset[str], float]
"""The words of a task, each as its index terms, with what it weighs."""


@dataclass(frozen=True, slots=True)
class SettledOptions:
    """[pack.settled]: what is enough of cosine + half the share of the words, for a task that names what is there
    (``named``), for a passage that holds a name of three words or more (``distinct``), and for a task that names
    nothing (``unnamed``); and the cosine that counts where only words were searched (``unknown``)."""

    named: float
    distinct: float
    unnamed: float
    unknown: float


_NAMED = re.compile(r"\w[/._]\w|[a-z][A-Z]|\w_\w")
_DISTINCT = re.compile(r"[^\W_]+(?:_[^\W_]+){2,}")
"""`vector_cache_mb` is one thing, where `max_size` may be anybody's."""
_SUFFIX = re.compile(
    r"\.(?:bash|c|cfg|cpp|cs|css|go|h|html|ini|java|js|json|jsx|kt|lock|md|mdx|php|ps1|py|rb|rs|rst|scala|sh|sql|swift"
    r"|tf|toml|ts|tsx|txt|xml|yaml|yml)$"
)


def settled(items: Sequence[PackItem], found: Recall, options: SettledOptions, index: Index) -> bool:
    """Whether a pack has anything to stand on. A task that is a time and nothing else needs something of that time."""
    if found.rankings and all(ranking.lane == "temporal" for ranking in found.rankings):
        return any(_of_the_time(item, found) for item in items)
    named = {surface: set(_forms(terms)) for surface, terms in found.words if _NAMED.search(surface)}
    pool = [_tokens(item) for item in items]
    if named and all(tokens.isdisjoint(forms) for forms in named.values() for tokens in pool):
        return False
    distinct = [forms for surface, forms in named.items() if _DISTINCT.fullmatch(surface)]
    asked = _weighed(pool, found)
    blind = options.unknown if found.mode == "lexical" else None

    def enough(tokens: frozenset[str]) -> float:
        if any(not tokens.isdisjoint(forms) for forms in distinct):
            return options.distinct
        return options.named if named else options.unnamed

    return any(
        _near(item, blind) + _share(tokens, _path(item), asked, index) / 2 >= enough(tokens)
        for item, tokens in zip(items, pool, strict=True)
    )


def _of_the_time(item: PackItem, found: Recall) -> bool:
    passage, asked = item.candidate.found, found.aside.get("time", {})
    if passage is None or not asked:
        return False
    began = passage.item.created_at if passage.passage.at is None else passage.passage.at
    ended = passage.item.updated_at if passage.passage.at is None else passage.passage.at
    return began <= float(asked["until"]) and ended >= float(asked["since"])


def _tokens(item: PackItem) -> frozenset[str]:
    return frozenset(item.candidate.found.tokens.split() if item.candidate.found else ())


def _weighed(pool: Sequence[frozenset[str]], found: Recall) -> Asked:
    """The task's words by their rarity: BM25's idf, ln(1 + (n - df + 0.5) / (df + 0.5)), counted over the pool."""
    count = max(POOL, len(pool))

    def idf(terms: frozenset[str]) -> float:
        df = sum(not terms.isdisjoint(tokens) for tokens in pool)
        return math.log(1.0 + (count - df + 0.5) / (df + 0.5))

    return {terms: idf(terms) for terms in (frozenset(terms) for _, terms in found.words)}


def _share(tokens: frozenset[str], path: str, asked: Asked, index: Index) -> float:
    """How much of the task's words a passage holds, by weight; more than 1 where its path holds them, too."""
    called = frozenset(index(path))
    both = called | tokens
    held = [weight * (2 - called.isdisjoint(terms)) for terms, weight in asked.items() if not both.isdisjoint(terms)]
    return math.fsum(held) / math.fsum(asked.values()) if held else 0.0


def _path(item: PackItem) -> str:
    found = item.candidate.found
    return found.item.key or "" if found and found.item.kind == "doc" else ""


def _near(item: PackItem, blind: float | None) -> float:
    """The cosine; ``blind`` where none was computed: similarities are then relative to the best word match."""
    if blind is not None:
        return blind
    return max((vote.native or 0.0 for vote in item.candidate.votes if vote.lane == "vector"), default=0.0)


def _forms(terms: Sequence[str]) -> Iterator[str]:
    """What stands for a thing of this name: the whole of it, its last segment, and what a dotted name ends with."""
    whole = max(terms, key=len)
    last = whole.rpartition("/")[2]
    yield from (whole, last)
    if not _SUFFIX.search(last):
        yield last.rpartition(".")[2]
