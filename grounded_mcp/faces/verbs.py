"""What each command does: arguments into a verb of the memory, and what came back onto the screen. Translation only.

Stored text is laid out for reading on a terminal. Anywhere else it may be a program or an agent that reads, so that
``recall`` and ``open`` print what their tools answer: each text in its advisory wrapper (P4). Imports nothing heavy.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from grounded_mcp.errors import GroundedError
from grounded_mcp.faces import connecting, evaluate

if TYPE_CHECKING:
    from grounded_mcp.accounts import Status
    from grounded_mcp.events import Caller
    from grounded_mcp.memory import Memory
    from grounded_mcp.settings import Settings

MODEL_WAIT_S = 60.0
"""A person at a terminal would rather wait for the model than get a degraded answer; it loads in about 2 s."""


def quickstart(args: argparse.Namespace) -> int:
    from grounded_mcp.faces.quickstart import quickstart

    folder = Path(args.path).expanduser()
    return quickstart(_settings(args, folder), folder, question=args.ask)


def sync(args: argparse.Namespace) -> None:
    from grounded_mcp.faces import terminal
    from grounded_mcp.faces.folders import to_sync
    from grounded_mcp.faces.progress import bar

    with _memory(args, to_sync(args, partial(_settings, args))) as memory:
        report = sessions = None
        elsewhere = memory.formerly(merge=True)
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
            _drain(memory, args)
        if args.reembed:
            memory.reset_vectors()
        vectors = None
        if not args.no_vectors:
            memory.wait_ready(MODEL_WAIT_S)
            with bar("passages", quiet=args.json) as step:
                vectors = memory.fill_vectors(step)
        _report(
            args,
            {name: found and asdict(found) for name, found in zip(_SYNCED, (report, sessions, vectors), strict=True)}
            | ({"note": elsewhere} if elsewhere else {}),
            "\n".join([terminal.synced(report, sessions, vectors), *([elsewhere] if elsewhere else [])]),
        )


_SYNCED = ("documents", "sessions", "vectors")


def _drain(memory: Memory, args: argparse.Namespace) -> None:
    """Transcripts that hooks put aside, also those that lie where no agent usually keeps any."""
    from grounded_mcp.faces.hooks.importing import drain

    drain(memory, str(_settings(args).places.home))


def recall(args: argparse.Namespace) -> None:
    if args.intent:
        _project_memory(args)
        return
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
            caller=_caller("recall"),
        )
    envelope = recall_envelope(found, _settings(args).render)
    text = terminal.recalled(found) if sys.stdout.isatty() else recall_text(envelope, trace=False)
    _report(args, envelope, f"{text}\n\n{terminal.explained(found)}" if args.explain else text)


def pack(args: argparse.Namespace) -> None:
    from grounded_mcp.render import pack_envelope, pack_lengths, pack_text

    with _memory(args) as memory:
        memory.wait_ready(MODEL_WAIT_S)
        made = memory.pack(
            " ".join(args.task),
            args.project,
            intent=args.intent,
            max_per_bucket=args.max_per_bucket,
            since=args.since,
            detail="full" if args.full else None,
            caller=_caller("pack"),
        )
    envelope = pack_envelope(made, pack_lengths(_settings(args).render, args.max_bytes, together=False))
    _report(args, envelope, pack_text(envelope))


def _project_memory(args: argparse.Namespace) -> None:
    """What the tool answers, for a person too: learnings, attempts and scripts each with what stands behind them."""
    from grounded_mcp.render import project_memory_envelope, project_memory_text

    with _memory(args) as memory:
        if args.mode != "lexical":
            memory.wait_ready(MODEL_WAIT_S)
        found = memory.project_memory(
            args.project,
            query=" ".join(args.query),
            intent=args.intent,
            mode=args.mode,
            limit=args.limit,
            caller=_caller("recall"),
        )
    envelope = project_memory_envelope(found, _settings(args).render)
    _report(args, envelope, project_memory_text(envelope))


def remember(args: argparse.Namespace) -> None:
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


def learn(args: argparse.Namespace) -> int:
    from grounded_mcp.faces import terminal
    from grounded_mcp.render import learned_envelope

    claim = sys.stdin.read() if args.claim == ["-"] else " ".join(args.claim)
    here = Path(args.script) if args.script else None
    with _memory(args) as memory:
        result = memory.record_learning(
            claim,
            args.outcome,
            script=str(here.resolve()) if here and here.is_file() else args.script,  # as a shell would find it
            command=args.command,
            supports=args.supports,
            contradicts=args.contradicts,
            note=args.note,
        )
        _report(args, learned_envelope(result), terminal.learned(result))
        if result.item:
            _embed_a_batch(memory)
    return 0 if result.item else 1


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
        print(f"grounded-mcp: vectors: {clean(wrong)}", file=sys.stderr)


def open_(args: argparse.Namespace) -> None:
    from grounded_mcp.faces import terminal
    from grounded_mcp.render import opened_envelope, opened_text

    with _memory(args, create=False) as memory:
        result = memory.open(args.id, offset=args.offset, caller=_caller("open"))
    envelope = opened_envelope(result)
    _report(args, envelope, terminal.opened(result) if sys.stdout.isatty() else opened_text(envelope))


def forget(args: argparse.Namespace) -> None:
    from grounded_mcp.faces import terminal

    with _memory(args, create=False) as memory:
        action = "retire" if args.retire else "delete"
        result = memory.forget(*args.id, action=action, reason=args.reason)
    data = {"action": action, "ids": [item.id for item in result.items]}
    more = {"others": result.others, "unchanged": result.unchanged, "alike": result.alike}
    _report(args, {**data, **more}, terminal.forgotten(result))


def compact(args: argparse.Namespace) -> None:
    from grounded_mcp.faces import terminal

    with _memory(args, create=False) as memory:
        report = memory.compact(all_projects=args.all_projects, older_than=args.older_than)
        _report(args, asdict(report), terminal.compacted(report))
        if report.pending:
            _embed_a_batch(memory)


def status(args: argparse.Namespace) -> None:
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


def brief(args: argparse.Namespace) -> int:
    from grounded_mcp.faces.hooks.showing import show

    return show(as_json=args.json, message=args.message)


def hook(args: argparse.Namespace) -> None:
    from grounded_mcp.faces.hooks.program import main

    main([args.event, "--client", args.client, "--home", args.home])


def stats(args: argparse.Namespace) -> None:
    from grounded_mcp.faces import figures

    with _memory(args, create=False) as memory:
        found = memory.stats(args.since, all_projects=args.all_projects, top=args.top)
        graph = memory.graph(args.since, all_projects=args.all_projects) if args.graph else None
    _report(args, figures.as_data(found, graph), figures.text(found))


def _nothing_yet(settings: Settings) -> Status:
    """The status of a store that nobody has made yet; asking makes none."""
    from grounded_mcp.accounts import Status, StoreInfo
    from grounded_mcp.assemble import find_project

    told = "There is no store yet: `grounded-mcp sync` or `grounded-mcp remember` makes one."
    return Status(
        project=find_project(settings, settings.project_dir),
        store=StoreInfo(settings.places.store, "none", 0, {}, 0, {}, None, 0, warnings=(told,)),
        embedder="off" if settings.embedding.provider == "none" else "idle",
        model=None,
        problem=None,
        sources=settings.places.sources,
    )


def doctor(args: argparse.Namespace) -> int:
    from grounded_mcp.faces.doctor import clean_again, examine
    from grounded_mcp.faces.progress import bar

    if args.rescan:
        with bar("items", quiet=args.json) as step:
            diagnosis = clean_again(_settings(args), step)
    else:
        diagnosis = examine(_settings(args), repair=args.repair)
    _report(args, diagnosis.data, diagnosis.text)
    return 0 if diagnosis.sound else 1


def connect(args: argparse.Namespace) -> int:
    return connecting.connect(args, _settings(args).places, print)


def disconnect(args: argparse.Namespace) -> int:
    return connecting.disconnect(args, _settings(args).places, print)


def eval_(args: argparse.Namespace) -> None:
    _report(args, *evaluate.measured(args))


def export(args: argparse.Namespace) -> int:
    return _transferred(args, "export")


def import_(args: argparse.Namespace) -> int:
    return _transferred(args, "import_")


def backup(args: argparse.Namespace) -> int:
    return _transferred(args, "backup")


def migrate(args: argparse.Namespace) -> int:
    return _transferred(args, "migrate")


def _transferred(args: argparse.Namespace, verb: str) -> int:
    from grounded_mcp.faces import transferring

    data, text, sound = getattr(transferring, verb)(args, _settings(args))
    _report(args, data, text)
    return 0 if sound else 1


def token(args: argparse.Namespace) -> None:
    from grounded_mcp.faces import tokening

    _report(args, *tokening.run(args, _settings(args)))


def projects(args: argparse.Namespace) -> None:
    from grounded_mcp.faces import projects as verb

    _report(args, *verb.run(args, _settings(args)))


def serve(args: argparse.Namespace) -> None:
    from grounded_mcp.config import load
    from grounded_mcp.faces.server import serve

    flags = {"store.location": args.store} if args.store else {}
    serve(transport=args.transport, host=args.host, port=args.port, load=partial(load, flags=flags))


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


def _caller(tool: str) -> Caller:
    from grounded_mcp.events import COMMAND_LINE

    return replace(COMMAND_LINE, tool=tool)


def _report(args: argparse.Namespace, data: Mapping[str, object], text: str) -> None:
    print(_json(data) if args.json else text)


def _json(data: Mapping[str, object]) -> str:
    """JSON with every script as it is, or in ASCII where a name holds what a terminal must not get (case 5)."""
    shown = json.dumps(data, ensure_ascii=False, indent=2, default=str)
    return shown if clean(shown) == shown else json.dumps(data, indent=2, default=str)


def clean(text: str) -> str:
    from grounded_mcp.inert import printable

    return printable(text)[0]
