"""From values to what a model reads, advisory-wrapped and within a budget. Pure; one module per kind of answer."""

from grounded_mcp.render.cards import card, compact, matched_by, matched_terms
from grounded_mcp.render.packed import pack_envelope, pack_lengths, pack_text
from grounded_mcp.render.pages import (
    opened_envelope,
    opened_text,
    status_envelope,
    status_text,
)
from grounded_mcp.render.project_memory import project_memory_envelope, project_memory_text
from grounded_mcp.render.recalled import (
    EMPTY,
    GUIDANCE,
    NO_WORDS,
    RenderOptions,
    recall_envelope,
    recall_text,
)
from grounded_mcp.render.snippet import cut_around
from grounded_mcp.render.written import (
    forgotten_envelope,
    forgotten_text,
    learned_envelope,
    learned_text,
    remembered_envelope,
    remembered_text,
)

__all__ = [
    "EMPTY",
    "GUIDANCE",
    "NO_WORDS",
    "RenderOptions",
    "card",
    "compact",
    "cut_around",
    "forgotten_envelope",
    "forgotten_text",
    "learned_envelope",
    "learned_text",
    "matched_by",
    "matched_terms",
    "opened_envelope",
    "opened_text",
    "pack_envelope",
    "pack_lengths",
    "pack_text",
    "project_memory_envelope",
    "project_memory_text",
    "recall_envelope",
    "recall_text",
    "remembered_envelope",
    "remembered_text",
    "status_envelope",
    "status_text",
]
