"""What a question holds decides how much each lane counts for it. Pure.

No weight is right for every question: an identifier or a path is found by its letters, a paraphrase by its meaning.
The rules look at the question alone, never at a data set. Knows nothing about stores or scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from grounded_mcp.entities import asked
from grounded_mcp.recall.fusion import FusionOptions
from grounded_mcp.tokens import Ask


@dataclass(frozen=True, slots=True)
class Traits:
    """``literal``: it names a file, an identifier, a version or another string that means itself."""

    literal: bool = False


@dataclass(frozen=True, slots=True)
class AdaptOptions:
    """[recall.fusion.adapt]. ``literal``: what the lexical lane's weight is multiplied by for a literal question."""

    literal: float


def traits_of(text: str, words: Sequence[Ask]) -> Traits:
    """What the question holds."""
    literal = any(entity.kind in _LITERAL for entity in asked(text))
    return Traits(literal=literal and bool(words))


_LITERAL = frozenset({"path", "identifier"})


def adapted(fusion: FusionOptions, traits: Traits, options: AdaptOptions) -> FusionOptions:
    """The fusion for one question."""
    if not traits.literal or options.literal == 1.0:
        return fusion
    lexical = fusion.weights.get("lexical", 1.0) * options.literal
    return replace(fusion, weights={**fusion.weights, "lexical": lexical})
