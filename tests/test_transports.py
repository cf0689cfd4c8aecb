"""One store, one question, every way in: the same ranked list over stdio, SSE and streamable HTTP, with the model."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import serving
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client

import grounded_mcp
from grounded_mcp.assemble import open_memory
from grounded_mcp.config import load
from grounded_mcp.render import recall_envelope
from grounded_mcp.settings import settings
from tests.conftest import Command

PACKAGE = Path(grounded_mcp.__file__).parent
QUESTIONS = (
    "how do I undo a bad release?",
    "HB-412",
    "which stage drops near-identical facts?",
    "candidate_minimum",
    "what must a person who is on call know?",
    "port 8090",
)

Ranked = list[tuple[Any, ...]]
Connect = Callable[[Any], Client]


@pytest.fixture(scope="session")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """A project of prose and code that are at hand, indexed with the bundled model, and a fact."""
    folder = tmp_path_factory.mktemp("transports")
    shutil.copytree(PACKAGE / "example", folder / "project")
    for name in ("ask", "pipeline", "shape"):
        shutil.copy(PACKAGE / "recall" / f"{name}.py", folder / "project")
    command = Command(folder / "home", folder / "project", {"GROUNDED_EMBEDDING__PROVIDER": "fastembed"})
    report = command.json("sync")
    assert report["documents"]["added"] > 5
    assert report["vectors"]["left"] == 0
    command.json("remember", "Who is on call keeps the release key", "--importance", "0.9")
    return command


@pytest.fixture(scope="session")
def over_stdio(indexed: Command) -> Connect:
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "grounded_mcp"], env=indexed.environment(), cwd=indexed.cwd
    )
    return lambda mode: Client(parameters, mode=mode)


@contextmanager
def listening(indexed: Command, transport: str) -> Iterator[int]:
    """A server process on a free port, and that port."""
    log = indexed.home / f"{transport}.log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            indexed.argv("serve", "--transport", transport, "--port", "0"),
            cwd=indexed.cwd,
            env=indexed.environment(),
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )
    try:
        yield serving._announced_port(process, log)
    finally:
        process.kill()
        process.wait(serving.WAIT)


@pytest.fixture(scope="session")
def over_http(indexed: Command) -> Iterator[Connect]:
    with listening(indexed, "http") as port:
        yield lambda mode: Client(f"http://127.0.0.1:{port}/mcp", mode=mode)


@pytest.fixture(scope="session")
def over_sse(indexed: Command) -> Iterator[Connect]:
    with listening(indexed, "sse") as port:
        yield lambda mode: Client(sse_client(f"http://127.0.0.1:{port}/sse"), mode=mode)


def ranked(envelope: dict[str, Any]) -> Ranked:
    return [(card["id"], card["rank"], card["score"], card["ranks"]) for card in envelope["data"]]


async def answers(client: Client) -> list[Ranked]:
    """What the server ranks for every question, once its model is there."""
    async with client:
        status: dict[str, Any] = {}
        while status.get("embedder") != "ready":
            status = (await client.call_tool("memory_status", {})).structured_content or {}
            assert status["embedder"] in ("idle", "loading", "ready"), status
        lists = []
        for question in QUESTIONS:
            result = await client.call_tool("ground_recall", {"query": question})
            assert not result.is_error
            assert result.structured_content is not None
            envelope = result.structured_content
            assert (envelope["meta"]["mode"], envelope["meta"]["degraded"]) == ("hybrid", False)
            lists.append(ranked(envelope))
        return lists


def asked(client: Client) -> list[Ranked]:
    async def talk() -> list[Ranked]:
        with anyio.fail_after(2 * serving.WAIT):
            return await answers(client)

    return anyio.run(talk)


@pytest.fixture(scope="session")
def expected(indexed: Command) -> list[Ranked]:
    """The same lists with no process and no protocol in between."""
    options = settings(load(cwd=indexed.cwd, env=indexed.environment()))
    with closing(open_memory(options, cwd=indexed.cwd)) as memory:
        assert memory.wait_ready(serving.WAIT)
        return [ranked(recall_envelope(memory.recall(question), options.render)) for question in QUESTIONS]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("way", ["over_stdio", "over_http", "over_sse"])
def test_f2_r17_every_transport_and_mode_of_the_client_gets_the_same_list(
    request: pytest.FixtureRequest, expected: list[Ranked], way: str, mode: Any
) -> None:
    assert asked(request.getfixturevalue(way)(mode)) == expected


def test_the_lists_that_are_compared_come_from_both_lanes_and_both_sources(expected: list[Ranked]) -> None:
    assert sum(map(len, expected)) > 3 * len(QUESTIONS)
    cards = [card for each in expected for card in each]
    assert {tuple(sorted(ranks)) for *_, ranks in cards} >= {("lexical", "vector"), ("vector",)}
    assert {id.partition("_")[0] for id, *_ in cards} == {"doc", "fact"}
