"""An embedder without a model: a bag of hashed words. For tests, and for machines too small for a real one.

It finds texts that share words, so it adds little to the lexical lane; but its vectors are real ones, the same on
every machine, made in microseconds by the standard library alone.
"""

from __future__ import annotations

import math
import re
import struct
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b

from grounded_mcp.errors import ModelError
from grounded_mcp.models.base import Purpose
from grounded_mcp.values import Vector

_WORD = re.compile(r"\w+")


class HashingEmbedder:
    """Each distinct word adds ``1 + ln(count)`` to one of ``dimensions`` places, with a sign from its hash.

    Without word characters the pieces between white space count as words; white space alone has no vector.
    """

    def __init__(self, dimensions: int = 256) -> None:
        self.dimensions = dimensions
        self.fingerprint = f"hashing/{dimensions}/1"
        self.floor = 0.1

    def embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        """One unit vector per text, in order. Raises: ModelError "invalid" for a text of white space alone."""
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Vector:
        words = _WORD.findall(text.casefold()) or text.split()
        if not words:
            raise ModelError(
                "invalid", "A text without words has no vector.", "Nothing to do: it has no words to find."
            )
        sums = self._sums(words)
        if not any(sums):  # two words met in one place with opposite signs
            sums = self._sums([" ".join(words)])
        norm = math.sqrt(math.fsum(value * value for value in sums))
        return Vector(struct.pack(f"<{self.dimensions}f", *(value / norm for value in sums)))

    def _sums(self, words: Sequence[str]) -> list[float]:
        sums = [0.0] * self.dimensions
        for word, count in Counter(words).items():
            digest = blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
            place, negative = divmod(int.from_bytes(digest, "little"), 2)
            sums[place % self.dimensions] += (-1 if negative else 1) * (1 + math.log(count))
        return sums
