"""What an agent is told unasked: a brief when it starts, and whole memories when a message names what they are about.

Pure and light: it imports neither the SDK nor a model, nor most of this package, because a hook runs it in the time
of a few starts of a bare interpreter; ``naming``, which only a message needs, is imported by name. Knows nothing about
SQL, clients or clocks.
"""

from grounded_mcp.brief.choosing import Brief, BriefOptions, brief
from grounded_mcp.brief.text import brief_data, brief_text

__all__ = [
    "Brief",
    "BriefOptions",
    "brief",
    "brief_data",
    "brief_text",
]
