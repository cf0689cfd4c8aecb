"""Transcripts that hooks put into the queue, imported: each by its own agent's reader, into its own project.

Runs in a server or a sync, never in a hook. Knows nothing about the transcripts' formats.
"""

from __future__ import annotations

import logging
import math
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from grounded_mcp.errors import GroundedError, InputError
from grounded_mcp.faces.hooks import files

if TYPE_CHECKING:
    from grounded_mcp.memory import Memory

logger = logging.getLogger(__name__)

QUIET_S = 900.0
"""A server that runs on imports a session once nothing was said in it for so long: what is said now is in view."""


def drain(memory: Memory, home: str, before: float = math.inf) -> int:
    """Import what waits since before a time; how many transcripts were. One that cannot be read stays out; while
    another process imports, the rest waits. Raises: StoreError."""
    done = 0
    for name in files.names(home, "queue"):
        entry = files.read(home, "queue", name)
        match entry:
            case {"at": float() | int() as at} if at > before:
                continue
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


def drain_in_background(memory: Memory, home: str, quiet_s: float = QUIET_S) -> None:
    """The same now, and from then on what has been quiet for so long, in a thread that ends with the process, or once
    nobody else has the memory."""
    args = (weakref.ref(memory), home, quiet_s)
    threading.Thread(target=_go_on, args=args, name="grounded-queue", daemon=True).start()


def _go_on(held: Callable[[], Memory | None], home: str, quiet_s: float) -> None:
    before = math.inf
    while (memory := held()) is not None:
        _drain_quietly(memory, home, before)
        del memory
        time.sleep(quiet_s)
        before = time.time() - quiet_s


def _drain_quietly(memory: Memory, home: str, before: float) -> None:
    try:
        if any(files.names(home, "queue")):
            drain(memory, home, before)
    except GroundedError as error:
        logger.warning("queued transcripts wait for the next start: %s", error.message)
