"""The tools, called through the SDK's in-memory client over a real memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.server.lowlevel import Server

from grounded_mcp.assemble import open_memory
from grounded_mcp.config import load
from grounded_mcp.faces.lifetime import Opening
from grounded_mcp.faces.options import ServerOptions
from grounded_mcp.faces.protocol import build
from grounded_mcp.memory import Memory
from grounded_mcp.render import RenderOptions
from grounded_mcp.settings import settings

VIEW = RenderOptions(snippet_chars=400, max_chars=10_000, page_chars=6_000)


@dataclass
class Clock:
    """A time that stands still until it is moved."""

    now: float = 1_790_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Asker:
    """One client's calls, and the memory behind them."""

    server: Server[Any]
    opening: Opening
    clock: Clock

    @property
    def memory(self) -> Memory:
        return self.opening.memory()

    def both(self, tool: str, **arguments: Any) -> tuple[dict[str, Any], str]:
        """Both halves of a call that succeeds."""
        result = self._call(tool, arguments)
        assert not result.is_error, result.content[0].text
        return result.structured_content, result.content[0].text

    def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.both(tool, **arguments)[0]

    def wrong(self, tool: str, **arguments: Any) -> str:
        """The text of a call that the caller got wrong."""
        result = self._call(tool, arguments)
        assert result.is_error
        return str(result.content[0].text)

    def embed(self) -> None:
        embed(self.memory)

    def _call(self, tool: str, arguments: dict[str, Any]) -> Any:
        async def talk() -> Any:
            with anyio.fail_after(60):
                async with Client(self.server) as client:
                    return await client.call_tool(tool, arguments)

        return anyio.run(talk)


def embed(memory: Memory) -> None:
    """Wait until everything has its vector, whichever thread makes it."""
    for _ in range(500):
        memory.fill_vectors()
        if not memory.status().store.vectors.get("pending"):
            return
        threading.Event().wait(0.02)
    raise AssertionError("no vectors in ten seconds")


@contextmanager
def asker(
    home: Path, project: Path, provider: str = "none", clock: Clock | None = None, **more: str
) -> Iterator[Asker]:
    """A server over the store in ``home``; opened again on the same one it is like another process. Agents keep their
    sessions beside ``home``. ``more``: settings, as they stand in the environment."""
    clock = clock or Clock()
    env = {"GROUNDED_HOME": str(home), "GROUNDED_EMBEDDING__PROVIDER": provider, "HOME": str(home.parent), **more}
    opening = Opening(lambda: open_memory(settings(load(cwd=project, env=env)), cwd=project, clock=clock))
    try:
        yield Asker(build(opening, ServerOptions(), lambda: VIEW), opening, clock)
    finally:
        opening.close()
