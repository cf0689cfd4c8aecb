"""``grounded-mcp quickstart``: index the project here, then ask it one question exactly as an agent would.

The server is started as a child over stdio and asked through a real MCP client, so that what is shown is what a
client gets. Without a project of one's own a small bundled example is used, in a store that is thrown away.
"""

from __future__ import annotations

import dataclasses
import html
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from grounded_mcp.assemble import open_memory
from grounded_mcp.errors import GroundedError
from grounded_mcp.faces import terminal
from grounded_mcp.faces.progress import bar
from grounded_mcp.settings import Settings

EXAMPLE = Path(__file__).parent.parent / "example"
EXAMPLE_KEY = "harbour"
EXAMPLE_QUESTION = "How do I roll back a bad release in production?"
MODEL_WAIT_S = 60.0
TEXTS = (".md", ".mdx", ".rst", ".txt", ".adoc", ".py", ".js", ".ts", ".go", ".rs", ".java", ".rb", ".toml", ".json")
"""Names that end so are a sign of a project."""
VECTOR_BUDGET_S = 300.0
"""The longest quickstart spends on vectors; a running server makes the rest in the background."""


def quickstart(settings: Settings, path: Path, question: str | None) -> int:
    """Index, ask, show, say how to connect. Returns the exit code."""
    with _subject(settings, path) as (chosen, folder, is_example):
        if is_example:
            print("No project here: using a small bundled example in a temporary store.\n")
        name = _index(chosen, folder)
        asked = question or (EXAMPLE_QUESTION if is_example else f"What is {name} for, and how is it run?")
        answer = _ask(chosen, folder, asked)
        print(f"\nAsked over MCP (stdio): {asked}\n")
        print(_shown(answer))
    print(_connecting())
    return 0 if answer["data"] else 1


@contextmanager
def _subject(settings: Settings, path: Path) -> Iterator[tuple[Settings, Path, bool]]:
    """The folder to index and the store to use: the caller's own, or the example's."""
    folder = path.expanduser().resolve()
    if _has_documents(folder):
        yield settings, folder, False
        return
    with tempfile.TemporaryDirectory(prefix="grounded-example-", ignore_cleanup_errors=True) as scratch:
        example = Path(scratch, "harbour")
        shutil.copytree(EXAMPLE, example)
        home = Path(scratch, "home")
        places = dataclasses.replace(settings.places, home=home, store=str(home / "memory.db"))
        yield dataclasses.replace(settings, places=places, project_dir=example, project_key=EXAMPLE_KEY), example, True


def _has_documents(folder: Path) -> bool:
    """Whether there is anything to index: a repository, or a text in the folder or in one right below.

    A home folder has such texts, too, and is nobody's project; nor is a folder above one.
    """
    if not folder.is_dir():
        raise GroundedError(f"{terminal.plain(str(folder))} is not a folder.", "Name a folder of your project.")
    if any((parent / ".git").exists() for parent in (folder, *folder.parents)):
        return True
    if Path.home().is_relative_to(folder):
        return False
    found = (child for depth in ("*", "[!.]*/*") for child in folder.glob(depth))
    return any(child.suffix.lower() in TEXTS and child.is_file() for child in found)


def _index(settings: Settings, folder: Path) -> str:
    with closing(open_memory(settings, cwd=folder)) as memory:
        print(f"Project {terminal.one_line(memory.project.key)} (from {terminal.one_line(memory.project.reason)})")
        with bar("files") as step:
            report = memory.sync_documents(lambda progress: step(progress.done, progress.total))
        memory.wait_ready(MODEL_WAIT_S)
        deadline = time.monotonic() + VECTOR_BUDGET_S
        with bar("passages") as step:
            vectors = memory.fill_vectors(step, stop=lambda: time.monotonic() > deadline)
        print(terminal.synced(report, None, vectors))
        return _title(Path(memory.project.worktree or memory.project.root)) or memory.project.name


def _title(root: Path) -> str | None:
    """What the project's README calls it: a clone's folder or remote often has another name."""
    with suppress(OSError):
        text = (root / "README.md").read_text(encoding="utf-8", errors="replace")
        heading = next((line for line in text[:10_000].splitlines() if line.startswith("# ")), "")
        return terminal.one_line(heading[2:])[:80] or None
    return None


def _ask(settings: Settings, folder: Path, question: str) -> dict[str, Any]:
    """One ``ground_recall`` through the SDK's own client and a child process."""
    import anyio

    try:
        return anyio.run(_asked, settings, folder, question)
    except GroundedError:
        raise
    except Exception as error:
        cause: BaseException = error
        while isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        raise GroundedError(
            f"The server could not be asked over MCP: {cause}.", "Run `grounded-mcp status`."
        ) from error


async def _asked(settings: Settings, folder: Path, question: str) -> dict[str, Any]:
    import anyio
    from mcp import Client, StdioServerParameters

    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "grounded_mcp", "serve"],
        cwd=str(folder),
        env={
            **(settings.places.environment or {}),
            "PYTHONPATH": str(Path(__file__).parent.parent.parent),  # so that it runs from a checkout too
            "CLAUDE_PROJECT_DIR": str(folder),  # a client that runs us may have set it to another project
            "GROUNDED_HOME": str(settings.places.home.absolute()),
            "GROUNDED_STORE": _absolute(settings.places.store),
            "GROUNDED_PROJECT__KEY": settings.project_key,
            "GROUNDED_SERVER__LOG_LEVEL": "warning",
        },
    )
    async with Client(server) as client:
        with anyio.move_on_after(MODEL_WAIT_S):
            while (await client.call_tool("memory_status", {})).structured_content.get("embedder") == "loading":
                await anyio.sleep(0.1)
        result = await client.call_tool("ground_recall", {"query": question, "limit": 5})
    if result.is_error or result.structured_content is None:
        raise GroundedError(f"The server answered with an error: {result.content}.", "Run `grounded-mcp status`.")
    return dict(result.structured_content)


def _absolute(store: str) -> str:
    """The store's location as a process in another folder finds it."""
    return store if "://" in store else str(Path(store).expanduser().absolute())


def _shown(answer: Mapping[str, Any]) -> str:
    """The cards as a person reads them: where, why, what."""
    meta = answer["meta"]
    head = f"{len(answer['data'])} of at least {meta['available']} memories, mode {meta['mode']}"
    lines = [head, *([f"Degraded: {_line(meta['degradedReason'])}"] if meta["degraded"] else [])]
    for card in answer["data"]:
        where = ":".join(filter(None, (_line(card.get("path", card.get("title", ""))), card.get("lines"))))
        ranks = " + ".join(f"{lane} rank {rank + 1}" for lane, rank in card["ranks"].items())
        text = terminal.plain(html.unescape(card["text"].partition(">")[2].rpartition("</")[0]))
        lines += [f"\n{card['rank']:>2}. {where}  {_line(card.get('heading', ''))}".rstrip()]
        lines += [f"    {ranks}, score {card['score']}", *(f"    | {line}" for line in text.splitlines()[:6])]
    return "\n".join(lines) if answer["data"] else f"{head}\n{meta['guidance']}"


def _line(field: str) -> str:
    """A field of a card as a terminal shows it: what was escaped for a model is itself again."""
    return terminal.one_line(html.unescape(field))


def _connecting() -> str:
    script = Path(sys.executable).with_name("grounded-mcp")
    found = str(script) if script.exists() else shutil.which("grounded-mcp")
    command = shlex.join([found] if found else [sys.executable, "-m", "grounded_mcp"])
    return (
        "\nConnect your agents (it shows what it would change in their settings, and asks):\n"
        f"  {command} connect\n"
        f"Any other client: `{command} connect --print`.\n"
        "Later: `grounded-mcp sync` after changes, `grounded-mcp remember TEXT` for facts, `grounded-mcp recall QUERY`."
    )
