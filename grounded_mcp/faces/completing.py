"""What a client may offer while a person types an argument of a prompt or of a resource.

Knows nothing about where the names come from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import mcp_types as types

from grounded_mcp.faces.prompts import checked
from grounded_mcp.faces.replies import clean
from grounded_mcp.faces.resources import TEMPLATE, not_there
from grounded_mcp.packing import PACK_INTENTS

if TYPE_CHECKING:
    from grounded_mcp.memory import Memory

MOST = 100
"""Values in one answer, by the protocol."""

Source = Callable[[Callable[[], "Memory"]], Sequence[str]]

_SOURCES: Final[Mapping[tuple[str, str], Source]] = {
    ("context_pack", "intent"): lambda _: PACK_INTENTS,
    ("context_pack", "project"): lambda memory: memory().names().projects,
    (TEMPLATE, "id"): lambda memory: memory().names().ids,
}
"""Argument of a prompt (by name) or resource (by template) -> what it may be. Anything else is free text."""


def completed(
    ref: types.ResourceTemplateReference | types.PromptReference,
    argument: str,
    typed: str,
    memory: Callable[[], Memory],
) -> types.CompleteResult:
    """What begins with ``typed``, without case. Raises: MCPError for what is not there; GroundedError of the memory."""
    if isinstance(ref, types.PromptReference):
        about = checked(ref.name)
    elif ref.uri == TEMPLATE:
        about = ref.uri
    else:
        raise not_there(ref.uri, f"There is no resource template of this name. There is {TEMPLATE}.")
    source = _SOURCES.get((about, argument))
    known = source(memory) if source else ()
    fits = [clean(each) for each in known if each.lower().startswith(typed.lower())]
    found = types.Completion(values=fits[:MOST], total=len(fits), has_more=len(fits) > MOST)
    return types.CompleteResult(completion=found)
