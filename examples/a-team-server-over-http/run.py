"""One server with a token, two agents that share it, and a stranger who is refused."""

import asyncio
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


@contextmanager
def serving(folder: Path, token: str) -> Iterator[str]:
    """The address of a running server; port 0 takes a free one, and the server says which."""
    env = {**os.environ, "GROUNDED_HOME": str(folder / "memory"), "GROUNDED_EMBEDDING__PROVIDER": "none"}
    command = [sys.executable, "-m", "grounded_mcp", "serve", "--transport", "http", "--port", "0"]
    env |= {"GROUNDED_SERVER__TOKEN": token, "GROUNDED_PROJECT__KEY": "team"}
    with subprocess.Popen(command, env=env, cwd=folder, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            line = next(line for line in server.stderr if "serving http" in line)
            yield line.split("serving ")[1].split()[0]
        finally:
            server.terminate()


async def ask(address: str, token: str, tool: str, **arguments: str) -> dict:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content[0].text
    return result.structured_content


async def main() -> None:
    token = secrets.token_urlsafe(32)
    with tempfile.TemporaryDirectory() as scratch, serving(Path(scratch), token) as address:
        print("serving", address)
        fact = "Customer data never leaves the Frankfurt region."
        stored = await ask(address, token, "remember_fact", text=fact)
        print("one agent stored", stored["id"])

        found = await ask(address, token, "ground_recall", query="where may customer data be kept")
        print("another recalled", found["data"][0]["text"])
        assert found["data"][0]["id"] == stored["id"]

        async with httpx2.AsyncClient() as stranger:
            refused = await stranger.post(address, json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
        print("a stranger got", refused.status_code)
        assert refused.status_code == 401


asyncio.run(main())
