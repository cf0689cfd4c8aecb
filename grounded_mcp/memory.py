"""The facade: what a face can ask of a memory. Verbs only; the work is done in the rooms below.

Knows nothing about MCP, the command line or how text is shown. Any verb may be called from any thread.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grounded_mcp.errors import StoreBusy, StoreError, StoreMismatch
from grounded_mcp.git import released
from grounded_mcp.ingest.compact import CompactOptions, CompactReport, compact
from grounded_mcp.ingest.documents import DocumentOptions, Progress, SyncReport, sync_documents
from grounded_mcp.ingest.facts import FactWriter, Statement
from grounded_mcp.ingest.forgetting import Forgotten, forget
from grounded_mcp.ingest.redact import clean_project
from grounded_mcp.ingest.session_reading import Locate
from grounded_mcp.ingest.sessions import Progress as SessionProgress
from grounded_mcp.ingest.sessions import SessionOptions, SessionReport, sync_sessions
from grounded_mcp.ingest.transcripts.readers import readers
from grounded_mcp.ingest.transcripts.turns import Machine
from grounded_mcp.ingest.vectors import LEASE, LEASE_SECONDS, BackfillReport, backfill
from grounded_mcp.models.guard import GuardedEmbedder
from grounded_mcp.models.reranking import GuardedReranker
from grounded_mcp.project import canonical_scope, identify, known_project
from grounded_mcp.reading import Opened, page, pointer
from grounded_mcp.recall.ask import Ask, AskOptions, read
from grounded_mcp.recall.pipeline import Ports, RecallOptions, recall
from grounded_mcp.recall.scope import ANY_PROJECT, admit, everything
from grounded_mcp.stores.base import Store
from grounded_mcp.stores.rules import check_space
from grounded_mcp.text import Analyzer
from grounded_mcp.values import GLOBAL_SCOPE, Project, Recall, Remembered, ScopeFilter, Space, Status

logger = logging.getLogger(__name__)

MAX_HISTORY = 20

MODEL_WAIT_S = 60.0
"""The longest that dropping all vectors waits for the model that is to make them again; it loads in about 2 s."""

POLL_S = 5.0
"""How soon vectors follow what another process wrote, and how often what kept them away is tried again."""


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """The options of every verb."""

    ask: AskOptions
    recall: RecallOptions
    documents: DocumentOptions
    sessions: SessionOptions
    compact: CompactOptions
    batch_size: int
    page_chars: int


class Memory:
    """One store, one project, one embedder (or none).

    ``self.project`` is the project as it is stored, without secrets; its folders are read by their real names.
    """

    def __init__(
        self,
        *,
        store: Store,
        embedder: GuardedEmbedder | None,
        reranker: GuardedReranker | None = None,
        analyzer: Analyzer,
        writer: FactWriter,
        project: Project,
        options: MemoryOptions,
        hostname: str,
        sources: tuple[str, ...] = (),
        git_environment: Mapping[str, str] | None = None,
        machine: Machine | None = None,
        locate: Locate | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.project = clean_project(project, writer.redactor)
        self._root = Path(project.root)
        self._worktree = Path(project.worktree or project.root)
        self._store = store
        self._embedder = embedder
        self._reranker = reranker
        self._analyzer = analyzer
        self._writer = writer
        self._options = options
        self._hostname = hostname
        self._sources = sources
        self._git_environment = git_environment
        self._machine = machine
        self._locate = locate or (lambda cwd: identify(Path(cwd), env=git_environment))
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
        ports = Ports(self._store, self._analyzer, self._embedder, self._reranker, self._released)
        found = recall(checked, ports, self._options.recall, uuid.uuid4().hex[:16])
        return found if found.candidates else replace(found, hint=self._nothing_stored(checked.scope))

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
        info = self._store.info()
        return Status(
            project=self.project,
            store=info,
            embedder=state.name if state else "off",
            model=state.fingerprint if state else None,
            problem=(state.problem if state else None) or self._mismatch(info.space),
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
        said = scope or "project"
        self._writer.check_scope(said)  # as it was written: some secrets are not recognised in lower case
        canonical = canonical_scope(said, self.project, self._store.projects(), hostname=self._hostname)
        self._store.register(self.project, self._clock())
        statement = Statement(text, canonical, importance, pinned, topic_key)
        remembered = self._writer.write(statement, self._clock(), replaces)
        if self._drain is not None:
            self._drain.nudge()
        return replace(remembered, vector="pending" if self._embedder else "off")

    def sync_documents(self, progress: Callable[[Progress], None] | None = None, *, reread: bool = False) -> SyncReport:
        """Index the project's files; ``reread`` opens unchanged ones too, as after new redaction rules.

        Raises: StoreError; InputError for a root that is no folder.
        """
        return sync_documents(
            self._worktree,
            self.project,
            self._store,
            self._writer.redactor,
            self._options.documents,
            self._clock(),
            progress,
            env=self._git_environment,
            reread=reread,
        )

    def sync_sessions(
        self,
        progress: Callable[[SessionProgress], None] | None = None,
        *,
        agents: Sequence[str] | None = None,
        all_projects: bool = False,
        reread: bool = False,
    ) -> SessionReport:
        """Import the sessions of coding agents on this machine: this project's, or every project's.

        Raises: InputError for an unknown agent; StoreError.
        """
        if self._machine is None:
            return SessionReport()
        found = sync_sessions(
            readers(agents or self._options.sessions.agents),
            replace(self._machine, project_root=self._worktree),
            self._store,
            self._writer.redactor,
            self._options.sessions,
            self._locate,
            self._clock(),
            progress,
            scope=None if all_projects else self.project.scope,
            reread=reread,
        )
        if self._drain is not None:
            self._drain.nudge()
        return found

    def compact(self, *, all_projects: bool = False, older_than: float | None = None) -> CompactReport:
        """Archive this project's (or every project's) old sessions, with a digest of each of their weeks.

        ``older_than``: days since a session's last exchange, None as configured. Raises: InputError; StoreError.
        """
        options = self._options.compact
        if older_than is not None:
            options = replace(options, archive_after_days=older_than)
        scopes = None if all_projects else (self.project.scope,)
        report = compact(self._store, options, self._clock(), scopes=scopes)
        if self._drain is not None:
            self._drain.nudge()
        return report

    def forget(self, id: str) -> Forgotten:
        """Delete an item and what was made from it; importing its source again does not bring it back.

        Raises: NotFound; InputError for what is no pointer; StoreError.
        """
        return forget(self._store, pointer(id)[0])

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
        """Drop every vector, so that ``fill_vectors`` makes them with the configured model.

        From then on the vectors of any other model are refused. Raises, with nothing dropped: ModelError when the model
        does not load; StoreBusy while another process fills in vectors; StoreError.
        """
        self.wait_ready(MODEL_WAIT_S)
        space = self._embedder.space if self._embedder else None
        with self._store.lease(LEASE, LEASE_SECONDS) as mine:
            if not mine:
                raise StoreBusy("Another process is adding vectors to this store.", "Stop it, or try again later.")
            return self._store.reset_vectors(space)

    # --- living -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Load the model, and fill vectors in the background from now on. Returns at once."""
        if self._embedder is not None and self._drain is None:
            self._embedder.start()
            self._drain = Drain(self._fill)
            self._drain.nudge()
        if self._reranker is not None:
            self._reranker.start()

    def wait_ready(self, seconds: float) -> bool:
        """Wait for the models to load; True where there are none. For callers that would rather wait than degrade."""
        if self._reranker is not None:
            self._reranker.wait_ready(seconds)
        return self._embedder is None or self._embedder.wait_ready(seconds)

    def close(self) -> None:
        """Stop background work at its next batch and release the store."""
        if self._drain is not None:
            self._drain.stop()
        for model in (self._embedder, self._reranker):
            if model is not None:
                model.close()
        self._store.close()

    def _fill(self, stop: Callable[[], bool]) -> str | None:
        """Fill in vectors if any are missing; why some still are, if anything is wrong."""
        report = self.fill_vectors(stop=stop)
        return report.reason if report else None

    def _released(self, version: str) -> float | None:
        """When a version came out, by the project's tags."""
        return released(self._worktree, version, self._git_environment)

    def _mismatch(self, held: Space | None) -> str | None:
        """What is wrong when the index is another model's; nothing is known before the model is loaded."""
        if self._embedder is None or self._embedder.state.name != "ready":
            return None
        try:
            check_space(held, self._embedder.space)
        except StoreMismatch as error:
            return str(error)
        return None

    def _nothing_stored(self, scope: ScopeFilter) -> str | None:
        """An empty answer from a project that was never indexed is not an answer about the question."""
        if scope.others is None or not self._store.scopes().isdisjoint(scope.others - {GLOBAL_SCOPE}):
            return None
        names = ", ".join(sorted(scope.others - {GLOBAL_SCOPE}))
        return f"Nothing is stored for {names} yet. Run `grounded-mcp sync` in its folder."

    def _scope(self, project: str | None, fact_scopes: Sequence[str] | None) -> ScopeFilter:
        known = self._store.projects()
        declared = None if project in (None, "", ANY_PROJECT) else self._declared(project or "", known)
        named = None
        if fact_scopes is not None:
            here = declared or self.project
            named = [canonical_scope(each, here, known, hostname=self._hostname) for each in fact_scopes]
        return admit(
            self.project,
            declared=declared,
            fact_scopes=named,
            stored=self._store.scopes(),
            known=known,
            anywhere=project == ANY_PROJECT,
        )

    def _declared(self, name: str, known: Sequence[Project]) -> Project:
        found = known_project(name, known)
        if found is not None:
            return found
        return clean_project(identify(self._root, explicit=name, env=self._git_environment), self._writer.redactor)


class Drain:
    """One background thread that runs ``work`` when nudged and every ``POLL_S``, and ends with the process.

    ``work`` is given what asks whether to stop, and answers what is wrong, which is logged when it is news.
    """

    def __init__(self, work: Callable[[Callable[[], bool]], str | None]) -> None:
        self._work = work
        self._said: str | None = None
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
            self._wanted.wait(POLL_S)
            self._wanted.clear()
            try:
                wrong = self._work(self._stopping.is_set)
            except StoreError as error:
                wrong = str(error)
            if wrong and wrong != self._said and not self._stopping.is_set():
                logger.warning("some passages wait for their vectors: %s", wrong)
            self._said = wrong
