"""A collection into a store of its own, by the way its kind of memory takes in every day.

Documents are written to files and synced, transcripts are imported, facts are remembered. Only for turns of talk there
is no importer that keeps them apart, so their records are made here as the session importer makes them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from grounded_mcp.assemble import REDACTION_KEY, open_memory, open_store
from grounded_mcp.errors import GroundedError
from grounded_mcp.evaluation.datasets import Collection, Document
from grounded_mcp.ingest.chunks import split
from grounded_mcp.ingest.redact import Redactor
from grounded_mcp.memory import Memory
from grounded_mcp.models.guard import Loader
from grounded_mcp.settings import Settings
from grounded_mcp.stores.base import MAX_BATCH
from grounded_mcp.values import Clean, Item, Kind, Passage, Record

AGENT = "claude-code"
PROJECT = "grounded-eval"
"""Not a word that a question might hold: a question that names a scope lifts its facts."""
MODEL_WAIT_S = 60.0
QUERY_TIMEOUT_S = 30.0
"""A vector that a busy machine brings late would change the ranking; the latency shows it instead."""
MAX_FILES = 10_000_000
ASKED_CHARS = 200
SAME_TALK_S = 7_200.0

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Filled:
    """A store with one collection in it. ``ids``: document ids by item key. ``now``: when the questions are asked."""

    ids: dict[str, str]
    kinds: tuple[Kind, ...]
    anywhere: bool
    """Whether the sessions are of many folders, so that the question goes to all projects."""
    documents: int
    left_out: tuple[str, ...]
    """Documents that the importer refused."""
    passages: int
    now: float


def sealed(settings: Settings, home: Path, transcripts: Path | None) -> Settings:
    """The same settings over a store under ``home``. Which files a project's sync leaves out is not what is measured,
    so nothing is."""
    places = replace(settings.places, home=home, store=str(home / "memory.db"))
    everything: dict[str, tuple[str, ...]] = dict.fromkeys(
        ("ignore", "secret_names", "vendored", "built", "binary_suffixes", "data_suffixes"), ()
    )
    documents = replace(settings.documents, max_files=MAX_FILES, **everything)  # type: ignore[arg-type]
    folders = {AGENT: str(transcripts)} if transcripts else {}
    return replace(
        settings,
        places=places,
        project_dir=home / "project",
        project_key=PROJECT,
        project_folders={},
        documents=documents,
        sessions=replace(settings.sessions, folders=folders),
        embedding=replace(settings.embedding, query_timeout_s=QUERY_TIMEOUT_S),
    )


def fill(collection: Collection, settings: Settings, load: Loader, progress: Progress) -> Filled:
    """Store and embed everything. ``settings`` are ``sealed``. Raises: GroundedError when vectors stay out."""
    folder = settings.project_dir
    folder.mkdir(parents=True)
    with closing(open_memory(settings, cwd=folder, load=load)) as memory:
        keys = _take_in(collection, settings, memory)
        memory.wait_ready(MODEL_WAIT_S)
        report = memory.fill_vectors(progress)
        if report is not None and report.reason:
            raise GroundedError(f"Vectors are missing: {report.reason}", "Correct that, or set embedding.provider.")
    return _account(collection, settings, keys)


def _take_in(collection: Collection, settings: Settings, memory: Memory) -> dict[str, str]:
    """Everything through its own door; document ids by item key."""
    if collection.transcripts is not None:
        memory.sync_sessions(agents=[AGENT], all_projects=True)
        return {}
    by_kind: dict[Kind, list[Document]] = {}
    for document in collection.documents:
        by_kind.setdefault(document.kind, []).append(document)
    keys = {document.id: document.id for document in collection.documents if document.kind != "doc"}
    if "doc" in by_kind:
        keys |= _write(by_kind["doc"], settings.project_dir)
        memory.sync_documents()
    for fact in by_kind.get("fact", ()):
        memory.remember(fact.text, topic_key=fact.id)
    if "session" in by_kind:
        _save_turns(by_kind["session"], settings, memory.project.scope)
    return keys


def _write(documents: Iterable[Document], folder: Path) -> dict[str, str]:
    """A file for each document. Where two have the same path, a number in front tells them apart."""
    keys: dict[str, str] = {}
    taken: set[str] = set()
    for number, document in enumerate(documents):
        key = document.path if document.path.casefold() not in taken else f"{number}-/{document.path}"
        taken.add(key.casefold())
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document.text, encoding="utf-8", errors="replace", newline="")
        keys[key] = document.id
    return keys


def _save_turns(documents: Sequence[Document], settings: Settings, scope: str) -> None:
    with closing(open_store(settings)) as store:
        redactor = Redactor(store.secret(REDACTION_KEY), settings.redaction)
        pairs = zip((None, *documents), documents, strict=False)
        records = [_turn(document, _asked(before, document), settings, scope, redactor) for before, document in pairs]
        for start in range(0, len(records), MAX_BATCH):
            store.save(records[start : start + MAX_BATCH])


def _asked(before: Document | None, turn: Document) -> str:
    """The question that a turn answers, if the turn before it is one: the importer heads what is said by it, too."""
    if before is None or "?" not in before.text or before.at is None or turn.at is None:
        return ""
    return before.text[-ASKED_CHARS:] if 0 <= turn.at - before.at <= SAME_TALK_S else ""


def _turn(document: Document, asked: str, settings: Settings, scope: str, redactor: Redactor) -> Record:
    """A session of one exchange, cut as the importer cuts one. A turn has no title of its own."""
    heading = redactor.clean(asked).text
    text = redactor.clean(document.text).text
    at = document.at if document.at is not None else time.time()
    item = Item(
        id=document.id,
        kind="session",
        scope=scope,
        title=Clean(""),
        key=document.id,
        created_at=at,
        updated_at=at,
    )
    pieces = split(text, "prose", settings.chunks)
    return Record(item, tuple(Passage(seq, Clean(piece.body), heading, at=at) for seq, piece in enumerate(pieces)))


def _account(collection: Collection, settings: Settings, keys: dict[str, str]) -> Filled:
    """What came to be stored, and the moment after the last session, when the questions are asked."""
    kinds: list[Kind] = ["session"] if collection.transcripts else sorted({each.kind for each in collection.documents})
    with closing(open_store(settings)) as store:
        known = {
            kind: [each for scope in store.scopes() for each in store.known(kind, scope).values()] for kind in kinds
        }
        passages = store.info().passages
    if collection.transcripts:
        keys = {each.key: each.attrs["session"] for each in known["session"]}
    stored = {each.key for found in known.values() for each in found}
    times = [each.updated_at for each in known.get("session", ())]
    return Filled(
        ids=keys,
        kinds=tuple(kinds),
        anywhere=collection.transcripts is not None,
        documents=len(stored),
        left_out=tuple(id_ for key, id_ in keys.items() if key not in stored),
        passages=passages,
        now=max(times, default=time.time()),
    )
