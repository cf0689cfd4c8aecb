"""A verified script, changed behind the memory's back: from then on its memory says that it is stale."""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from mcp import Client, StdioServerParameters


async def ask(client: Client, tool: str, **arguments: str) -> dict:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content[0].text
    return result.structured_content


async def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        script = folder / "deploy.sh"
        script.write_text("rsync -a build/ web:/srv/site\n", encoding="utf-8")
        env = {**os.environ, "GROUNDED_HOME": str(folder / "memory"), "GROUNDED_EMBEDDING__PROVIDER": "none"}
        server = StdioServerParameters(command=sys.executable, args=["-m", "grounded_mcp"], env=env, cwd=folder)
        async with Client(server) as client:
            claim = "The site is deployed with deploy.sh."
            await ask(client, "record_learning", claim=claim, outcome="verified", script="deploy.sh")
            (before,) = (await ask(client, "get_project_memory"))["scripts"]
            print("after it was run:   ", before["state"])

            script.write_text("rsync -a --delete build/ web:/srv/\n", encoding="utf-8")
            (after,) = (await ask(client, "get_project_memory"))["scripts"]
            print("after it was edited:", after["state"])

        assert (before["state"], after["state"]) == ("verified", "stale")


asyncio.run(main())
