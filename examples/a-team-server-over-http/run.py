"""Two teams, one server: what each token opens. ``python run.py [STORE]``

STORE is the path of a new file or a ``postgresql://`` URL; without it, a file that is gone afterwards. The server is
the real one, on a free port of this machine, and the agents speak MCP to it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

COMMAND = [sys.executable, "-m", "grounded_mcp"]


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        store = sys.argv[1] if len(sys.argv) > 1 else str(Path(home) / "memory.db")
        env = {**os.environ, "GROUNDED_HOME": home, "GROUNDED_STORE": store}
        web, app = (token(env, name, f"github.com/acme/{name}") for name in ("web", "app"))
        with served(env) as url:
            anyio.run(story, url, web, app)
            subprocess.run([*COMMAND, "token", "revoke", "web"], env=env, check=True)
            anyio.run(refused, url, web)


async def story(url: str, web: str, app: str) -> None:
    told = await ask(url, web, "remember_fact", text="The web team deploys on Tuesdays at 15:00 UTC.")
    print(f"web remembers    {told['id']} in {told['scope']}")
    for name, bearer, known in (("web", web, [told["id"]]), ("app", app, [])):
        found = await ask(url, bearer, "ground_recall", query="when is deployment day", project="*")
        cards = [card["id"] for card in found["data"]]
        print(f"{name} recalls      {cards or 'nothing'}")
        assert cards == known
    refusal = ""
    try:
        await ask(url, app, "open_memory", id=told["id"])
    except LookupError as error:
        refusal = str(error)
    print(f"app opens it     {refusal}")
    assert "there is no item" in refusal


async def refused(url: str, bearer: str) -> None:
    async with httpx2.AsyncClient() as http:
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        answer = await http.post(url, json=ping, headers={"Authorization": f"Bearer {bearer}"})
    print(f"web, revoked     HTTP {answer.status_code}")
    assert answer.status_code == 401


async def ask(url: str, bearer: str, tool: str, **arguments: Any) -> dict[str, Any]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {bearer}"}) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        result = await client.call_tool(tool, arguments)
    if result.is_error:
        raise LookupError(result.content[0].text)
    return dict(result.structured_content)


def token(env: dict[str, str], name: str, project: str) -> str:
    argv = [*COMMAND, "token", "create", name, "--project", project, "--expires", "1d", "--json"]
    made = subprocess.run(argv, env=env, capture_output=True, check=True, encoding="utf-8")
    return str(json.loads(made.stdout)["token"])


@contextmanager
def served(env: dict[str, str]) -> Iterator[str]:
    argv = [*COMMAND, "serve", "--transport", "http", "--port", "0"]
    process = subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, encoding="utf-8")
    try:
        assert process.stderr is not None
        found = next(filter(None, (re.search(r"serving (http://[^ ]*/mcp)", line) for line in process.stderr)))
        yield found[1]
    finally:
        process.terminate()
        process.communicate(timeout=30)


if __name__ == "__main__":
    main()
