"""The facade: what a face can ask of a memory. Verbs only; the work is done in the rooms below.

Knows nothing about MCP, the command line or how text is shown. Any verb may be called from any thread.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from grounded_mcp.errors import NotFound, StoreError
from grounded_mcp.ingest.documents import DocumentOptions, Progress, SyncReport, sync_documents
from grounded_mcp.ingest.facts import FactWriter, Statement
from grounded_mcp.ingest.vectors import BackfillReport, backfill
from grounded_mcp.models.guard import GuardedEmbedder
from grounded_mcp.project import canonical_scope, identify, known_project
from grounded_mcp.reading import Opened, page, pointer
from grounded_mcp.recall.ask import Ask, AskOptions, read
from grounded_mcp.recall.pipeline import Ports, RecallOptions, recall
from grounded_mcp.recall.scope import ANY_PROJECT, admit, everything
from grounded_mcp.stores.base import Store
from grounded_mcp.text import Analyzer
from grounded_mcp.values import Project, Recall, Remembered, ScopeFilter, Status

MAX_HISTORY = 20


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """The options of every verb."""

    ask: AskOptions
    recall: RecallOptions
    documents: DocumentOptions
    batch_size: int
    page_chars: int


class Memory:
    """One store, one project, one embedder (or none)."""

    def __init__(
        self,
        *,
        store: Store,
        embedder: GuardedEmbedder | None,
        analyzer: Analyzer,
        writer: FactWriter,
        project: Project,
        options: MemoryOptions,
        hostname: str,
        sources: tuple[str, ...] = (),
        git_environment: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.project = project
        self._store = store
        self._embedder = embedder
        self._analyzer = analyzer
        self._writer = writer
        self._options = options
        self._hostname = hostname
        self._sources = sources
        self._git_environment = git_environment
        self._clock = clock
        self._drain: Drain | None = None

    @property
    def embedder(self) -> GuardedEmbedder | None:
        """The bounded door to the model; None where vectors are off."""
        return self._embedder

    # --- asking -------------------------------------------------------------------------------------------

    def recall(
        self,
        query: str,
        *,
        limit: object = None,
        sources: Sequence[str] | None = None,
        project: str | None = None,
        fact_scopes: Sequence[str] | None = None,
        mode: str | None = None,
        min_score: object = None,
        since: object = None,
        until: object = None,
        trace: bool = False,
    ) -> Recall:
        """One ranked, explained list over facts, sessions and documents.

        Raises: InputError naming the field; StoreError. A failing model degrades the answer, it raises nothing.
        """
        ask = Ask(query, limit, sources, mode, min_score, since, until, trace)
        read(ask, everything(), self._clock(), self._options.ask)  # complain before touching the store
        checked = read(ask, self._scope(project, fact_scopes), self._clock(), self._options.ask)
        ports = Ports(self._store, self._analyzer, self._embedder)
        return recall(checked, ports, self._options.recall, uuid.uuid4().hex[:16])

    def open(self, id: str, *, offset: int | None = None) -> Opened:
        """One page of the full text behind a pointer. Raises: NotFound, InputError."""
        item_id, seq = pointer(id)
        item, passages = self._store.item(item_id)
        chars = self._options.page_chars
        return page(
            item, passages, seq=seq, offset=offset, chars=chars, history=self._store.history(item_id, MAX_HISTORY)
        )

    def status(self) -> Status:
        """Counts, versions, the project and why it was chosen, and what is wrong if anything is."""
        state = self._embedder.state if self._embedder else None
        return Status(
            project=self.project,
            store=self._store.info(),
            embedder=state.name if state else "off",
            model=state.fingerprint if state else None,
            problem=state.problem if state else None,
            sources=self._sources,
        )

    # --- writing ------------------------------------------------------------------------------------------

    def remember(
        self,
        text: str,
        *,
        scope: str | None = None,
        importance: float | None = None,
        pinned: bool | None = None,
        topic_key: str | None = None,
        replaces: str | None = None,
    ) -> Remembered:
        """Store one fact; its vector follows. ``scope`` None means the current project.

        Raises: InputError, NotFound, RedactionError, StoreError: then nothing was stored.
        """
        canonical = canonical_scope(scope or "project", self.project, self._store.projects(), hostname=self._hostname)
        self._store.register(self.project, self._clock())
        statement = Statement(text, canonical, importance, pinned, topic_key)
        remembered = self._writer.write(statement, self._clock(), replaces)
        if self._drain is not None:
            self._drain.nudge()
        return remembered

    def sync_documents(self, progress: Callable[[Progress], None] | None = None, *, reread: bool = False) -> SyncReport:
        """Index the project's files; ``reread`` opens unchanged ones too, as after new redaction rules.

        Raises: StoreError; InputError for a root that is no folder.
        """
        return sync_documents(
            Path(self.project.worktree or self.project.root),
            self.project,
            self._store,
            self._writer.redactor,
            self._options.documents,
            self._clock(),
            progress,
            env=self._git_environment,
            reread=reread,
        )

    def fill_vectors(
        self,
        progress: Callable[[int, int], None] | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> BackfillReport | None:
        """Embed what has no vector yet; None where vectors are off."""
        if self._embedder is None:
            return None
        return backfill(self._store, self._embedder, batch_size=self._options.batch_size, progress=progress, stop=stop)

    def reset_vectors(self) -> int:
        """Drop every vector, so that ``fill_vectors`` makes them with the configured model."""
        return self._store.reset_vectors()

    # --- living -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Load the model, and fill vectors in the background from now on. Returns at once."""
        if self._embedder is not None and self._drain is None:
            self._embedder.start()
            self._drain = Drain(self._fill_when_ready)
            self._drain.nudge()

    def wait_ready(self, seconds: float) -> bool:
        """Wait for the model to load; True where vectors are off. For callers that would rather wait than degrade."""
        return self._embedder is None or self._embedder.wait_ready(seconds)

    def close(self) -> None:
        """Stop background work at its next batch and release the store."""
        if self._drain is not None:
            self._drain.stop()
        self._store.close()

    def _fill_when_ready(self, stop: Callable[[], bool]) -> None:
        while not stop():
            if self.wait_ready(1.0):
                self.fill_vectors(stop=stop)
                return
            if self._embedder is not None and self._embedder.state.name == "failed":
                return

    def _scope(self, project: str | None, fact_scopes: Sequence[str] | None) -> ScopeFilter:
        if project == ANY_PROJECT and fact_scopes is None:
            return everything()
        known = self._store.projects()
        declared = None if project in (None, "", ANY_PROJECT) else self._declared(project or "", known)
        named = None
        if fact_scopes is not None:
            here = declared or self.project
            named = [canonical_scope(each, here, known, hostname=self._hostname) for each in fact_scopes]
        return admit(self.project, declared=declared, fact_scopes=named, stored=self._store.scopes(), known=known)

    def _declared(self, name: str, known: Sequence[Project]) -> Project:
        return known_project(name, known) or identify(Path(self.project.root), explicit=name, env=self._git_environment)


class Drain:
    """One background thread that runs ``work`` whenever it was nudged, and ends with the process."""

    def __init__(self, work: Callable[[Callable[[], bool]], object]) -> None:
        self._work = work
        self._wanted = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def nudge(self) -> None:
        """There is work: start the thread if it does not run."""
        with self._lock:
            self._wanted.set()
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(target=self._run, name="grounded-vectors", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join(timeout=1.0)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wanted.wait()
            self._wanted.clear()
            with suppress(StoreError, NotFound):
                self._work(self._stopping.is_set)
