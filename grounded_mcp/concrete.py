"""The concrete names in a text: paths, hosts, tickets, versions, identifiers, packages. No names of people or products.

What somebody who writes one of them means is beyond doubt, so that a hook may answer it unasked. ``entities`` adds the
names that take the words around them. Pure and light. Knows nothing about stores.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, islice
from typing import NewType

from grounded_mcp.folding import STOP_WORDS, fold, words
from grounded_mcp.wordshapes import Entity, squash
from grounded_mcp.wordshapes import shape as _shape

MAX_CHARS = 20_000
"""A longer text is read up to here; passages are far shorter."""

EntityId = NewType("EntityId", int)
"""48 bits of the key's BLAKE2b, signed. Stores keep nothing else, so that no name outlives the text it was in; among a
million keys the odds are 1 in 500 that any two meet."""

_recent = lru_cache(16_384)(_shape)

# Compiled when a text may hold one: most do not, and a start is not to pay for all of them.
_IMPORT = (
    r"(?m)^[ \t]*(?:from[ ]+([A-Za-z_]\w*)[\w.]*[ ]+import\b"
    r"|import[ ]+([A-Za-z_]\w*)[\w.]*(?:[ ]+as[ ]\w+)?[ ]*(?:$|[,;#]))"
)
_REQUIRE = r"""(?:from[ ]|require\()["']((?:@[\w.-]+/)?[A-Za-z][\w.-]*)"""
_INSTALL = (
    r"\b(?:pip3?|uv|npm|pnpm|yarn|cargo|gem|brew|apt|apt-get|poetry|bun)[ ](?:install|add)[ ](?:-[\w-]+[ ])*"
    r"((?:@[\w.-]+/)?[A-Za-z][\w.-]*)"
)
_QUOTED = r"`([A-Za-z][\w-]{2,60})`"

_VAGUE = frozenset({"name", "handle"})


def named(text: str, most: int) -> tuple[Entity, ...]:
    """What a person's message names beyond doubt, each key once, at most ``most``. Never raises; linear time.

    A path behind an @, which is how agents are pointed at a file, is a path.
    """
    folded = fold(text[:MAX_CHARS])
    marked = (Entity("identifier", squash(word)) for word in quoted(folded) if word.casefold() not in STOP_WORDS)
    pointed = chain.from_iterable(_recent(word[1:]) for word in words(folded).findall(folded) if word[0] == "@")
    found = chain(packages(folded), marked, shapes(folded), pointed)
    return tuple(islice({each.key: each for each in found if each.kind not in _VAGUE}.values(), most))


def shapes(folded: str) -> Iterator[Entity]:
    """What the shape of each word of a folded text gives away."""
    return chain.from_iterable(map(_recent, dict.fromkeys(words(folded).findall(folded))))


def packages(folded: str) -> Iterator[Entity]:
    """What a folded text imports, requires or installs."""
    if "import " in folded:
        yield from (Entity("package", (found[1] or found[2]).casefold()) for found in re.finditer(_IMPORT, folded))
    if "require(" in folded or "from '" in folded or 'from "' in folded:
        yield from (Entity("package", found[1].casefold()) for found in re.finditer(_REQUIRE, folded))
    if " install " in folded or " add " in folded:
        yield from (Entity("package", found[1].casefold()) for found in re.finditer(_INSTALL, folded))


def quoted(folded: str) -> Iterator[str]:
    """The words that a folded text marks as code."""
    if "`" in folded:
        yield from (found[1] for found in re.finditer(_QUOTED, folded))


@lru_cache(16_384)
def entity_id(key: str) -> EntityId:
    """What a store knows an entity by."""
    from hashlib import blake2b  # 3 ms that a text without any need not pay

    return EntityId(int.from_bytes(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=6).digest(), signed=True))
