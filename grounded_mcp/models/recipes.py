"""What is known about single models: where their noise starts, and what they want in front of a text.

Pure data. A model that is not listed gets ``Recipe()``: no prefixes and the documented floor of 0.3 (R4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Recipe:
    """``floor``: cosine similarity below which neighbours are noise. The prefixes are part of the embedded text."""

    floor: float = 0.3
    query: str = ""
    passage: str = ""


_SEARCHING = Recipe(query="Represent this sentence for searching relevant passages: ")
_NOMIC = Recipe(query="search_query: ", passage="search_document: ")

# Prefixes are those of each model's own card. Floors are listed only where they were measured.
RECIPES: Mapping[str, Recipe] = {
    # docs/decisions/0003-embedding-model.md: the highest floor at which, on each of four data sets, 99 % of the
    # questions keep a right passage; about half of what questions from another domain find is below it.
    "all-minilm-l6-v2-int8": Recipe(floor=0.14),
    "baai/bge-small-en-v1.5": _SEARCHING,
    "baai/bge-base-en-v1.5": _SEARCHING,
    "baai/bge-large-en-v1.5": _SEARCHING,
    "snowflake/snowflake-arctic-embed-xs": _SEARCHING,
    "snowflake/snowflake-arctic-embed-s": _SEARCHING,
    "snowflake/snowflake-arctic-embed-m": _SEARCHING,
    "snowflake/snowflake-arctic-embed-m-long": _SEARCHING,
    "snowflake/snowflake-arctic-embed-l": _SEARCHING,
    "mixedbread-ai/mxbai-embed-large-v1": _SEARCHING,
    "intfloat/multilingual-e5-large": Recipe(query="query: ", passage="passage: "),
    "nomic-ai/nomic-embed-text-v1": _NOMIC,
    "nomic-ai/nomic-embed-text-v1.5": _NOMIC,
    "nomic-ai/nomic-embed-text-v1.5-q": _NOMIC,
    "google/embeddinggemma-300m": Recipe(query="task: search result | query: ", passage="title: none | text: "),
}


def recipe(model: str) -> Recipe:
    """The recipe of a model by name, in any case."""
    return RECIPES.get(model.lower(), Recipe())
