"""The command line: what it takes. ``verbs`` does what is asked.

Imports nothing heavy: ``--help`` and ``status`` never load the MCP SDK or a model. The bare command serves stdio.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from typing import Any

from grounded_mcp import __version__
from grounded_mcp.errors import GroundedError
from grounded_mcp.faces import connecting, evaluate, projects, tokening, transferring, verbs
from grounded_mcp.faces.hooks import arguments as hooked

TRANSPORTS = ("stdio", "sse", "http")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. 0: done; 1: it could not be done, the reason is on stderr; 2: wrong usage; 130: interrupted."""
    _speak_utf8()
    args = _parser().parse_args(argv)
    _log_to_stderr()
    try:
        return int(args.run(args) or 0)
    except GroundedError as error:
        print(f"grounded-mcp: {verbs.clean(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; what was finished is kept", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0


# --- arguments --------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="grounded-mcp",
        description="A local memory for coding agents. Without a command it serves MCP over stdio.",
    )
    parser.add_argument("--version", action="version", version=f"grounded-mcp {__version__}")
    parser.set_defaults(run=verbs.serve, transport="stdio", host=None, port=None, store=None, project=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for add in (
        *(_add_quickstart, _add_sync, _add_recall, _add_pack, _add_remember, _add_learn, _add_open, _add_forget),
        *(_add_compact, _add_status, _add_stats, _add_doctor, _add_serve),
    ):
        add(commands)
    connecting.connect_arguments(_verb(commands, "connect", verbs.connect, connecting.CONNECT))
    connecting.disconnect_arguments(_verb(commands, "disconnect", verbs.disconnect, connecting.DISCONNECT))
    hooked.brief_arguments(_verb(commands, "brief", verbs.brief, hooked.BRIEF))
    hooked.hook_arguments(_verb(commands, "hook", verbs.hook, hooked.HOOK, reports=False))
    for name, run, add_to, text in (
        ("export", verbs.export, transferring.export_arguments, transferring.EXPORT),
        ("import", verbs.import_, transferring.import_arguments, transferring.IMPORT),
        ("backup", verbs.backup, transferring.backup_arguments, transferring.BACKUP),
        ("migrate", verbs.migrate, transferring.migrate_arguments, transferring.MIGRATE),
    ):
        add_to(_verb(commands, name, run, text))
    tokening.arguments(_verb(commands, "token", verbs.token, tokening.TEXT, reports=False))
    projects.arguments(_verb(commands, "projects", verbs.projects, projects.TEXT, reports=False))
    evaluate.arguments(_verb(commands, "eval", verbs.eval_, evaluate.TEXT))
    return parser


_Verbs = Any  # argparse's subparsers action is private
_Run = Callable[[argparse.Namespace], int | None]


def _verb(commands: _Verbs, name: str, run: _Run, text: str, *, reports: bool = True) -> argparse.ArgumentParser:
    verb: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    verb.set_defaults(run=run)
    if reports:
        verb.add_argument("--json", action="store_true", help="print JSON instead of text")
    return verb


def _add_quickstart(commands: _Verbs) -> None:
    verb = _verb(
        commands, "quickstart", verbs.quickstart, "index this project and ask it one question over MCP", reports=False
    )
    verb.add_argument("path", nargs="?", default=".", help="a folder of the project (default: this one)")
    verb.add_argument("--ask", metavar="QUESTION", help="the question to ask (default: one about the project)")


def _add_sync(commands: _Verbs) -> None:
    text = "index a project's documents and import its sessions; only what changed is read again"
    verb = _verb(commands, "sync", verbs.sync, text)
    verb.add_argument("path", nargs="?", default=".", help="a folder of the project (default: this one)")
    part = verb.add_mutually_exclusive_group()
    part.add_argument("--documents", action="store_true", help="only the documents")
    part.add_argument("--sessions", action="store_true", help="only the sessions of coding agents on this machine")
    verb.add_argument("--agent", action="append", metavar="NAME", help="only this agent's sessions; may be repeated")
    verb.add_argument("--all-projects", action="store_true", help="sessions of every project, not only of this one")
    verb.add_argument("--reread", action="store_true", help="read unchanged files too, as after new redaction rules")
    verb.add_argument("--whole-home", action="store_true", help="also where the project is a home folder or above one")
    verb.add_argument("--no-vectors", action="store_true", help="leave the vectors to a running server")
    verb.add_argument("--reembed", action="store_true", help="drop all vectors and make them with the configured model")


def _add_recall(commands: _Verbs) -> None:
    verb = _verb(commands, "recall", verbs.recall, "search the memory")
    verb.add_argument("query", nargs="+", help="what you are looking for, in words")
    verb.add_argument("--source", action="append", metavar="KIND", help="fact, session or doc; may be repeated")
    verb.add_argument("--limit", help="results in all")
    verb.add_argument("--project", help="a project's key, name or folder; * for all projects")
    verb.add_argument(
        "--fact-scope", action="append", metavar="SCOPE", help="admit facts of this scope; may be repeated"
    )
    verb.add_argument("--mode", help="hybrid, lexical or vector")
    verb.add_argument(
        "--intent",
        metavar="WHY",
        help="search learnings and attempts instead, with verified scripts: generate, repair, diagnose or inspect",
    )
    verb.add_argument("--min-score", help="leave out results below this score")
    verb.add_argument("--since", help="only what changed since then: a date, a time, or an age such as 7d")
    verb.add_argument("--until", help="only what changed until then")
    verb.add_argument("--explain", action="store_true", help="show lanes, votes and boosts of every result")


def _add_pack(commands: _Verbs) -> None:
    text = "gather what is known for a task: by section and trust, with the files that would settle it"
    verb = _verb(commands, "pack", verbs.pack, text)
    verb.add_argument("task", nargs="+", help="what you are about to do or want to know")
    verb.add_argument("--project", help="another project's key, name or folder")
    verb.add_argument("--intent", help="current_truth, reasoning_archive or blended (default: read from the task)")
    verb.add_argument("--max-bytes", type=int, metavar="N", help="of the answer (default: 6144, 2304 at least)")
    verb.add_argument("--max-per-bucket", metavar="N", help="items of a section (default: 3)")
    verb.add_argument("--since", help="only what changed since then: a date, a time, or an age such as 7d")
    verb.add_argument("--full", action="store_true", help="archived sessions, too")


def _add_remember(commands: _Verbs) -> None:
    verb = _verb(commands, "remember", verbs.remember, "store a fact")
    verb.add_argument("text", nargs="+", help="the fact, in a sentence; - reads it from standard input")
    verb.add_argument("--scope", help="global, project, project:NAME, machine or agent:NAME (default: project)")
    verb.add_argument("--importance", type=float, help="0 to 1 (default: 0.6)")
    verb.add_argument("--pin", action="store_true", help="always in the startup brief")
    verb.add_argument("--topic", metavar="KEY", help="replaces what this scope holds under the same key")
    verb.add_argument("--replaces", metavar="ID", help="the fact that this one corrects")


def _add_learn(commands: _Verbs) -> None:
    verb = _verb(commands, "learn", verbs.learn, "record what work has shown, with its outcome as evidence")
    verb.add_argument("claim", nargs="+", help="what is true, in a sentence; - reads it from standard input")
    outcome = verb.add_mutually_exclusive_group()
    for name, text in (
        ("verified", "it was checked and holds (default)"),
        ("failed", "it was checked and does not hold"),
        ("diagnostic", "it was observed, and is not proven"),
    ):
        outcome.add_argument(f"--{name}", dest="outcome", action="store_const", const=name, help=text)
    verb.set_defaults(outcome="verified")
    verb.add_argument("--script", metavar="PATH", help="a file of the project that it relies on")
    verb.add_argument("--command", metavar="COMMAND", help="the command that showed it")
    verb.add_argument("--supports", action="append", default=[], metavar="ID", help="a claim that this speaks for")
    verb.add_argument("--contradicts", action="append", default=[], metavar="ID", help="a claim that it speaks against")
    verb.add_argument("--note", help="how it was seen")


def _add_open(commands: _Verbs) -> None:
    verb = _verb(commands, "open", verbs.open_, "show the full text behind a result")
    verb.add_argument("id", help="the `open` pointer of a result")
    verb.add_argument("--offset", type=int, help="go on from this character")


def _add_forget(commands: _Verbs) -> None:
    text = "delete items for good, or retire them; their source is left alone, and importing that brings none back"
    verb = _verb(commands, "forget", verbs.forget, text)
    verb.epilog = (
        "A document comes back once the text of its file changes; a line in .groundedignore keeps the file out."
    )
    verb.add_argument("id", nargs="+", help="the `open` pointer of a result; several may be given")
    verb.add_argument("--retire", action="store_true", help="keep them as history, as wrong or outdated")
    verb.add_argument("--reason", default="", help="why; kept with what is retired")


def _add_compact(commands: _Verbs) -> None:
    verb = _verb(commands, "compact", verbs.compact, "archive old sessions, with a digest of each week of them")
    verb.add_argument("--all-projects", action="store_true", help="sessions of every project, not only of this one")
    verb.add_argument("--older-than", type=float, metavar="DAYS", help="since the last exchange (default: 30)")


def _add_status(commands: _Verbs) -> None:
    _verb(commands, "status", verbs.status, "show the project and why it was chosen, the store and the model")


def _add_stats(commands: _Verbs) -> None:
    text = "show how recall was used, how fast it was, and how often what it returned was used again"
    verb = _verb(commands, "stats", verbs.stats, text)
    verb.add_argument("--since", help="a date, a time, or an age such as 7d (default: 30d)")
    verb.add_argument("--all-projects", action="store_true", help="recalls from every project, not only from this one")
    verb.add_argument("--top", type=int, default=10, metavar="N", help="items by reuse (default: 10)")
    verb.add_argument("--graph", action="store_true", help="with --json: also sessions, recalls, items and evidence")


def _add_doctor(commands: _Verbs) -> None:
    verb = _verb(commands, "doctor", verbs.doctor, "check the store; exit 1 if something is wrong with it")
    how = verb.add_mutually_exclusive_group()
    how.add_argument("--repair", action="store_true", help="rebuild indexes and vectors' copies from the stored text")
    how.add_argument("--rescan", action="store_true", help="redact all stored text again, as after new redaction rules")


def _add_serve(commands: _Verbs) -> None:
    verb = _verb(commands, "serve", verbs.serve, "serve MCP", reports=False)
    verb.add_argument("--transport", choices=TRANSPORTS, default="stdio", help="default: stdio")
    verb.add_argument("--host", help="address to bind for sse and http (default: 127.0.0.1)")
    verb.add_argument("--port", type=int, help="port for sse and http (default: 8765)")
    verb.add_argument("--store", help="a path, or a postgresql:// URL without a password: see docs/team-server.md")


# --- the process ------------------------------------------------------------------------------------------


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
