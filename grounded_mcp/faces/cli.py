"""The command line: the same verbs as the tools, for a person. Translation only.

Stored text is laid out for reading on a terminal. Anywhere else it may be a program or an agent that reads, so that
``recall`` and ``open`` print what their tools answer: each text in its advisory wrapper (P4).
Imports nothing heavy: ``--help`` and ``status`` never load the MCP SDK or a model. The bare command serves stdio.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grounded_mcp import __version__
from grounded_mcp.errors import GroundedError
from grounded_mcp.faces import evaluate

if TYPE_CHECKING:
    from grounded_mcp.memory import Memory
    from grounded_mcp.settings import Settings
    from grounded_mcp.values import Status

MODEL_WAIT_S = 60.0
"""A person at a terminal would rather wait for the model than get a degraded answer; it loads in about 2 s."""

TRANSPORTS = ("stdio", "sse", "http")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. 0: done; 1: it could not be done, the reason is on stderr; 2: wrong usage; 130: interrupted."""
    _speak_utf8()
    args = _parser().parse_args(argv)
    _log_to_stderr()
    try:
        return int(args.run(args) or 0)
    except GroundedError as error:
        print(f"grounded-mcp: {_clean(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; what was finished is kept", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0


# --- verbs ------------------------------------------------------------------------------------------------


def _quickstart(args: argparse.Namespace) -> int:
    from grounded_mcp.faces.quickstart import quickstart

    folder = Path(args.path).expanduser()
    return quickstart(_settings(args, folder), folder, question=args.ask)


def _sync(args: argparse.Namespace) -> None:
    from grounded_mcp.faces import terminal
    from grounded_mcp.faces.progress import bar

    with _memory(args, Path(args.path)) as memory:
        report = sessions = None
        if not args.sessions:
            with bar("files", quiet=args.json) as step:
                report = memory.sync_documents(lambda at: step(at.done, at.total), reread=args.reread)
        if not args.documents:
            with bar("bytes", quiet=args.json) as step:
                sessions = memory.sync_sessions(
                    lambda at: step(at.done, at.total),
                    agents=args.agent,
                    all_projects=args.all_projects,
                    reread=args.reread,
                )
        if args.reembed:
            memory.reset_vectors()
        vectors = None
        if not args.no_vectors:
            memory.wait_ready(MODEL_WAIT_S)
            with bar("passages", quiet=args.json) as step:
                vectors = memory.fill_vectors(step)
        _report(
            args,
            {name: found and asdict(found) for name, found in zip(_SYNCED, (report, sessions, vectors), strict=True)},
            terminal.synced(report, sessions, vectors),
        )


_SYNCED = ("documents", "sessions", "vectors")


def _recall(args: argparse.Namespace) -> None:
    from grounded_mcp.faces import terminal
    from grounded_mcp.render import recall_envelope, recall_text

    with _memory(args) as memory:
        if args.mode != "lexical":
            memory.wait_ready(MODEL_WAIT_S)
        found = memory.recall(
            " ".join(args.query),
            limit=args.limit,
            sources=args.source,
            project=args.project,
            fact_scopes=args.fact_scope,
            mode=args.mode,
            min_score=args.min_score,
            since=args.since,
            until=args.until,
            trace=args.explain,
        )
    envelope = recall_envelope(found, _settings(args).render)
    text = terminal.recalled(found) if sys.stdout.isatty() else recall_text(envelope, trace=False)
    _report(args, envelope, f"{text}\n\n{terminal.explained(found)}" if args.explain else text)


def _remember(args: argparse.Namespace) -> None:
    from grounded_mcp.faces import terminal
    from grounded_mcp.render import remembered_envelope

    text = sys.stdin.read() if args.text == ["-"] else " ".join(args.text)
    with _memory(args) as memory:
        result = memory.remember(
            text,
            scope=args.scope,
            importance=args.importance,
            pinned=True if args.pin else None,
            topic_key=args.topic,
            replaces=args.replaces,
        )
        _report(args, remembered_envelope(result), terminal.remembered(result))
        _embed_a_batch(memory)


def _embed_a_batch(memory: Memory) -> None:
    """One batch of what waits for a vector, about what was just stored. Nothing that goes wrong here undoes that."""
    done: list[int] = []
    try:
        report = memory.fill_vectors(lambda embedded, _: done.append(embedded), stop=lambda: bool(done))
    except GroundedError as error:
        wrong: str | None = str(error)
    else:
        left = report.left if report else 0
        wrong = (report and report.reason) or (f"{left} still wait: `grounded-mcp sync` makes them." if left else None)
    if wrong:
        print(f"grounded-mcp: vectors: {_clean(wrong)}", file=sys.stderr)


def _open(args: argparse.Namespace) -> None:
    from grounded_mcp.faces import terminal
    from grounded_mcp.render import opened_envelope, opened_text

    with _memory(args, create=False) as memory:
        result = memory.open(args.id, offset=args.offset)
    envelope = opened_envelope(result)
    _report(args, envelope, terminal.opened(result) if sys.stdout.isatty() else opened_text(envelope))


def _forget(args: argparse.Namespace) -> None:
    from grounded_mcp.faces import terminal

    with _memory(args, create=False) as memory:
        result = memory.forget(args.id)
    _report(args, {"id": result.item.id, "kind": result.item.kind, "others": result.others}, terminal.forgotten(result))


def _compact(args: argparse.Namespace) -> None:
    from grounded_mcp.faces import terminal

    with _memory(args, create=False) as memory:
        report = memory.compact(all_projects=args.all_projects, older_than=args.older_than)
        _report(args, asdict(report), terminal.compacted(report))
        if report.pending:
            _embed_a_batch(memory)


def _status(args: argparse.Namespace) -> None:
    from grounded_mcp.faces import terminal
    from grounded_mcp.render import status_envelope

    settings = _settings(args)
    location = settings.places.store
    if "://" not in location and not Path(location).expanduser().exists():
        result = _nothing_yet(settings)
    else:
        with _memory(args, create=False) as memory:
            result = memory.status()
    _report(args, status_envelope(result), terminal.status(result))


def _nothing_yet(settings: Settings) -> Status:
    """The status of a store that nobody has made yet; asking makes none."""
    from grounded_mcp.assemble import find_project
    from grounded_mcp.values import Status, StoreInfo

    told = "There is no store yet: `grounded-mcp sync` or `grounded-mcp remember` makes one."
    return Status(
        project=find_project(settings, settings.project_dir),
        store=StoreInfo(settings.places.store, "none", 0, {}, 0, {}, None, 0, warnings=(told,)),
        embedder="off" if settings.embedding.provider == "none" else "idle",
        model=None,
        problem=None,
        sources=settings.places.sources,
    )


def _doctor(args: argparse.Namespace) -> int:
    from grounded_mcp.faces.doctor import clean_again, examine
    from grounded_mcp.faces.progress import bar

    if args.rescan:
        with bar("items", quiet=args.json) as step:
            diagnosis = clean_again(_settings(args), step)
    else:
        diagnosis = examine(_settings(args), repair=args.repair)
    _report(args, diagnosis.data, diagnosis.text)
    return 0 if diagnosis.sound else 1


def _eval(args: argparse.Namespace) -> None:
    _report(args, *evaluate.measured(args))


def _serve(args: argparse.Namespace) -> None:
    from grounded_mcp.config import load
    from grounded_mcp.faces.server import serve

    serve(transport=args.transport, host=args.host, port=args.port, load=load)


# --- arguments --------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="grounded-mcp",
        description="A local memory for coding agents. Without a command it serves MCP over stdio.",
    )
    parser.add_argument("--version", action="version", version=f"grounded-mcp {__version__}")
    parser.set_defaults(run=_serve, transport="stdio", host=None, port=None, project=None)
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")
    for add in (
        *(_add_quickstart, _add_sync, _add_recall, _add_remember, _add_open, _add_forget, _add_compact),
        *(_add_status, _add_doctor, _add_serve),
    ):
        add(verbs)
    evaluate.arguments(_verb(verbs, "eval", _eval, evaluate.TEXT))
    return parser


_Verbs = Any  # argparse's subparsers action is private
_Run = Callable[[argparse.Namespace], int | None]


def _verb(verbs: _Verbs, name: str, run: _Run, text: str, *, reports: bool = True) -> argparse.ArgumentParser:
    verb: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text)
    verb.set_defaults(run=run)
    if reports:
        verb.add_argument("--json", action="store_true", help="print JSON instead of text")
    return verb


def _add_quickstart(verbs: _Verbs) -> None:
    verb = _verb(verbs, "quickstart", _quickstart, "index this project and ask it one question over MCP", reports=False)
    verb.add_argument("path", nargs="?", default=".", help="a folder of the project (default: this one)")
    verb.add_argument("--ask", metavar="QUESTION", help="the question to ask (default: one about the project)")


def _add_sync(verbs: _Verbs) -> None:
    text = "index a project's documents and import its sessions; only what changed is read again"
    verb = _verb(verbs, "sync", _sync, text)
    verb.add_argument("path", nargs="?", default=".", help="a folder of the project (default: this one)")
    part = verb.add_mutually_exclusive_group()
    part.add_argument("--documents", action="store_true", help="only the documents")
    part.add_argument("--sessions", action="store_true", help="only the sessions of coding agents on this machine")
    verb.add_argument("--agent", action="append", metavar="NAME", help="only this agent's sessions; may be repeated")
    verb.add_argument("--all-projects", action="store_true", help="sessions of every project, not only of this one")
    verb.add_argument("--reread", action="store_true", help="read unchanged files too, as after new redaction rules")
    verb.add_argument("--no-vectors", action="store_true", help="leave the vectors to a running server")
    verb.add_argument("--reembed", action="store_true", help="drop all vectors and make them with the configured model")


def _add_recall(verbs: _Verbs) -> None:
    verb = _verb(verbs, "recall", _recall, "search the memory")
    verb.add_argument("query", nargs="+", help="what you are looking for, in words")
    verb.add_argument("--source", action="append", metavar="KIND", help="fact, session or doc; may be repeated")
    verb.add_argument("--limit", help="results in all")
    verb.add_argument("--project", help="a project's key, name or folder; * for all projects")
    verb.add_argument(
        "--fact-scope", action="append", metavar="SCOPE", help="admit facts of this scope; may be repeated"
    )
    verb.add_argument("--mode", help="hybrid, lexical or vector")
    verb.add_argument("--min-score", help="leave out results below this score")
    verb.add_argument("--since", help="only what changed since then: a date, a time, or an age such as 7d")
    verb.add_argument("--until", help="only what changed until then")
    verb.add_argument("--explain", action="store_true", help="show lanes, votes and boosts of every result")


def _add_remember(verbs: _Verbs) -> None:
    verb = _verb(verbs, "remember", _remember, "store a fact")
    verb.add_argument("text", nargs="+", help="the fact, in a sentence; - reads it from standard input")
    verb.add_argument("--scope", help="global, project, project:NAME, machine or agent:NAME (default: project)")
    verb.add_argument("--importance", type=float, help="0 to 1 (default: 0.6)")
    verb.add_argument("--pin", action="store_true", help="always in the startup brief")
    verb.add_argument("--topic", metavar="KEY", help="replaces what this scope holds under the same key")
    verb.add_argument("--replaces", metavar="ID", help="the fact that this one corrects")


def _add_open(verbs: _Verbs) -> None:
    verb = _verb(verbs, "open", _open, "show the full text behind a result")
    verb.add_argument("id", help="the `open` pointer of a result")
    verb.add_argument("--offset", type=int, help="go on from this character")


def _add_forget(verbs: _Verbs) -> None:
    text = "delete an item for good; its source is left alone, and importing that does not bring it back"
    verb = _verb(verbs, "forget", _forget, text)
    verb.add_argument("id", help="the `open` pointer of a result")


def _add_compact(verbs: _Verbs) -> None:
    verb = _verb(verbs, "compact", _compact, "archive old sessions, with a digest of each week of them")
    verb.add_argument("--all-projects", action="store_true", help="sessions of every project, not only of this one")
    verb.add_argument("--older-than", type=float, metavar="DAYS", help="since the last exchange (default: 30)")


def _add_status(verbs: _Verbs) -> None:
    _verb(verbs, "status", _status, "show the project and why it was chosen, the store and the model")


def _add_doctor(verbs: _Verbs) -> None:
    verb = _verb(verbs, "doctor", _doctor, "check the store; exit 1 if something is wrong with it")
    how = verb.add_mutually_exclusive_group()
    how.add_argument("--repair", action="store_true", help="rebuild indexes and vectors' copies from the stored text")
    how.add_argument("--rescan", action="store_true", help="redact all stored text again, as after new redaction rules")


def _add_serve(verbs: _Verbs) -> None:
    verb = _verb(verbs, "serve", _serve, "serve MCP", reports=False)
    verb.add_argument("--transport", choices=TRANSPORTS, default="stdio", help="default: stdio")
    verb.add_argument("--host", help="address to bind for sse and http (default: 127.0.0.1)")
    verb.add_argument("--port", type=int, help="port for sse and http (default: 8765)")


# --- between arguments and verbs --------------------------------------------------------------------------


def _settings(args: argparse.Namespace, folder: Path | None = None) -> Settings:
    from grounded_mcp.config import load
    from grounded_mcp.settings import settings

    return settings(load(folder=folder and folder.expanduser().resolve()))


@contextmanager
def _memory(args: argparse.Namespace, path: Path | None = None, *, create: bool = True) -> Iterator[Memory]:
    from grounded_mcp.assemble import open_memory

    settings = _settings(args, path)
    with closing(open_memory(settings, cwd=settings.project_dir, create=create)) as memory:
        yield memory


def _report(args: argparse.Namespace, data: Mapping[str, object], text: str) -> None:
    print(_json(data) if args.json else text)


def _json(data: Mapping[str, object]) -> str:
    """JSON with every script as it is, or in ASCII where a name holds what a terminal must not get (case 5)."""
    shown = json.dumps(data, ensure_ascii=False, indent=2, default=str)
    return shown if _clean(shown) == shown else json.dumps(data, indent=2, default=str)


def _clean(text: str) -> str:
    from grounded_mcp.inert import printable

    return printable(text)[0]


def _log_to_stderr() -> None:
    """Warnings only, and exceptions by place: their words may quote what is stored (case 59)."""
    from grounded_mcp.faces.replies import PlacesOnly

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PlacesOnly("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def _speak_utf8() -> None:
    """Consoles that are not UTF-8 get a replacement character instead of a traceback."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="replace")
