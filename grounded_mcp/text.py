"""Pure strings: the one analyzer that both engines index with, fingerprints, and a token estimate.

``Analyzer.index`` turns a text into tokens, ``Analyzer.query`` a query into some of the same tokens. A query is
nothing but a set of index tokens, any of which may match: no phrases, prefixes or operators, so no input is a
syntax error and every engine that can look up a token gives the same answer (R2). How one word becomes tokens is
in ``tokens.py``. Knows nothing about engines, scores or stored things.

A token holds no white space and no control character, is lower case, and is at most ``tokens.MAX_TOKEN``
characters long: joined by spaces, a tokenizer that splits at spaces gives the same tokens back.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from itertools import chain

from py_rust_stemmers import SnowballStemmer

from grounded_mcp.measure import estimate_tokens
from grounded_mcp.tokens import STOP_WORDS, Ask, asks, fold, index_terms, words

__all__ = ["TOKENS_VERSION", "Analyzer", "AnalyzerOptions", "estimate_tokens", "fingerprint"]

TOKENS_VERSION = 1
"""Raised whenever the index tokens of any text change: stores compare it and index again."""

_CACHED_WORDS = 16_384
_CACHED_LENGTH = 64


@dataclass(frozen=True, slots=True)
class AnalyzerOptions:
    """The analyzer's settings; the defaults are those of ``config.toml``, ``[recall.lexical]`` and ``[recall]``."""

    stemming: bool = True
    """English words are cut to their stem, in the index and in queries alike. Changing it means indexing again."""
    max_terms: int = 64
    """Most terms of one query: engines slow down steeply with many (50,000 took 8.2 s in FTS5)."""
    max_query_chars: int = 2000
    """A longer query is read up to here."""


class Analyzer:
    """Turns texts and queries into tokens. Safe to share between threads; remembers recent words, nothing else."""

    def __init__(self, options: AnalyzerOptions | None = None) -> None:
        self.options = options or AnalyzerOptions()
        self._stem: Callable[[str], str] = SnowballStemmer("english").stem_word if self.options.stemming else str
        self._expand = partial(index_terms, stem=self._stem)
        self._remembered = lru_cache(_CACHED_WORDS)(self._expand)

    @property
    def fingerprint(self) -> str:
        """Equal for two analyzers exactly when they index every text alike."""
        return f"tokens-{TOKENS_VERSION}-{'english' if self.options.stemming else 'exact'}"

    def index(self, text: str) -> list[str]:
        """The tokens of a text, in order; marked identifier parts once, all others as often as they occur.

        Takes time linear in the text's length.
        """
        recent, fresh = self._remembered, self._expand
        folded = fold(text)
        found = words(folded).findall(folded)
        return list(_marks_once(recent(w) if len(w) <= _CACHED_LENGTH else fresh(w) for w in found))

    def query(self, text: str) -> tuple[str, ...]:
        """The tokens a query asks for, each once; empty when the text holds no letter or digit (R2, T22)."""
        return tuple(dict.fromkeys(chain.from_iterable(ask.terms for ask in self.query_words(text))))

    def query_words(self, text: str) -> tuple[Ask, ...]:
        """The words of a query with their tokens. Stop words are left out unless there is nothing else.

        With more than ``max_terms`` tokens the least specific go: marked parts first, then short plain words.
        """
        typed = unicodedata.normalize("NFC", _head(text, self.options.max_query_chars))
        folded = fold(typed)
        # Folding rarely changes the length; when it does, a word is shown as it was folded.
        shown = typed if len(typed) == len(folded) else folded
        found = tuple(words(folded).finditer(folded))
        telling = [word for word in found if word[0].casefold() not in STOP_WORDS] or found
        wanted = (asks(word[0], shown[word.start() : word.end()], self._stem) for word in telling)
        return _most_specific(tuple(dict.fromkeys(chain.from_iterable(wanted))), self.options.max_terms)


def _marks_once(terms: Iterable[Sequence[str]]) -> Iterator[str]:
    """A text is about an identifier when it names it; being crowded with similar ones must not outrank that."""
    seen = set()
    for term in chain.from_iterable(terms):
        if term[0] == "~":
            if term in seen:
                continue
            seen.add(term)
        yield term


def _head(text: str, limit: int) -> str:
    """At most ``limit`` characters, without a last word that would be cut in two."""
    if len(text) <= limit:
        return text
    whole = text[: limit + 1].rsplit(None, 1)[:1]
    return whole[0] if whole and len(whole[0]) <= limit else text[:limit]


def _most_specific(query: tuple[Ask, ...], limit: int) -> tuple[Ask, ...]:
    terms = tuple(dict.fromkeys(chain.from_iterable(ask.terms for ask in query)))
    if len(terms) <= limit:
        return query
    kept = frozenset(sorted(terms, key=lambda term: (term[0] == "~", term.isalpha(), -len(term)))[:limit])
    cut = (Ask(ask.surface, tuple(term for term in ask.terms if term in kept)) for ask in query)
    return tuple(ask for ask in cut if ask.terms)


def fingerprint(text: str) -> str:
    """32 hex digits of the text's SHA-256; line endings do not matter."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return sha256(unified.encode("utf-8", "surrogatepass")).hexdigest()[:32]
