"""Two server processes, one after the other, on one data directory: what the first is told the second recalls."""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from mcp import Client, StdioServerParameters


async def call(folder: Path, tool: str, **arguments: str) -> dict:
    """Start a server, call one tool, and let the server end."""
    env = {**os.environ, "GROUNDED_HOME": str(folder / "memory"), "GROUNDED_EMBEDDING__PROVIDER": "none"}
    server = StdioServerParameters(command=sys.executable, args=["-m", "grounded_mcp"], env=env, cwd=folder)
    async with Client(server) as client:
        result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content[0].text
    return result.structured_content


async def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        stored = await call(folder, "remember_fact", text="Releases are cut on Tuesdays, never on a Friday.")
        print("the first server stored", stored["id"])

        found = await call(folder, "ground_recall", query="when are releases cut")
        card = found["data"][0]
        print("the second recalled", card["id"], "by", card["matchedBy"])
        print(card["text"])

        assert card["id"] == stored["id"]
        assert "never on a Friday" in card["text"]


asyncio.run(main())
