"""Transcripts that hooks put into the queue, imported: each by its own agent's reader, into its own project.

Runs in a server or a sync, never in a hook. Knows nothing about the transcripts' formats.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from grounded_mcp.errors import GroundedError, InputError
from grounded_mcp.faces.hooks import files

if TYPE_CHECKING:
    from grounded_mcp.memory import Memory

logger = logging.getLogger(__name__)


def drain(memory: Memory, home: str) -> int:
    """Import what waits; how many transcripts were. One that cannot be read stays out; while another process imports,
    the rest waits. Raises: StoreError."""
    done = 0
    for name in files.names(home, "queue"):
        entry = files.read(home, "queue", name)
        match entry:
            case {"agent": str() as agent, "path": str() as path}:
                try:
                    if memory.sync_sessions(agents=[agent], all_projects=True, only={agent: path}).busy:
                        return done
                    done += 1
                except InputError as error:  # an agent that this version does not read
                    logger.warning("a transcript in the queue was left out: %s", error)
        if files.read(home, "queue", name) == entry:  # it may have grown meanwhile
            files.remove(home, "queue", name)
    return done


def drain_in_background(memory: Memory, home: str) -> None:
    """The same, in a thread that ends with the process."""
    if any(files.names(home, "queue")):
        threading.Thread(target=_drain_quietly, args=(memory, home), name="grounded-queue", daemon=True).start()


def _drain_quietly(memory: Memory, home: str) -> None:
    try:
        drain(memory, home)
    except GroundedError as error:
        logger.warning("queued transcripts wait for the next start: %s", error.message)
