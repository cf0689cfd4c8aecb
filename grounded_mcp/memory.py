"""The facade: what a face can ask of a memory. Verbs only; the work is done in the rooms below.

Knows nothing about MCP, the command line or how text is shown. Any verb may be called from any thread.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from grounded_mcp.accounts import Status
from grounded_mcp.brief import Brief, BriefOptions, brief
from grounded_mcp.dossier import ProjectMemory
from grounded_mcp.events import Caller
from grounded_mcp.foreground import Weights
from grounded_mcp.git import released
from grounded_mcp.ingest.compact import CompactOptions, CompactReport, compact
from grounded_mcp.ingest.documents import DocumentOptions, Progress, SyncReport, sync_documents
from grounded_mcp.ingest.facts import FactWriter, Statement
from grounded_mcp.ingest.redact import clean_project
from grounded_mcp.ingest.session_reading import Locate
from grounded_mcp.ingest.sessions import Progress as SessionProgress
from grounded_mcp.ingest.sessions import SessionOptions, SessionReport, sync_sessions
from grounded_mcp.ingest.transcripts.readers import readers
from grounded_mcp.ingest.transcripts.turns import Machine
from grounded_mcp.ingest.vectors import BackfillReport, mismatch
from grounded_mcp.knowledge.confidence import ConfidenceOptions
from grounded_mcp.knowledge.correction import Claims, let_go
from grounded_mcp.knowledge.freshness import Freshness
from grounded_mcp.knowledge.graph import Graph
from grounded_mcp.knowledge.journal import Journal
from grounded_mcp.knowledge.learnings import LearningOptions, LearningWriter, Lesson
from grounded_mcp.knowledge.project_memory import Grounds, ProjectMemoryOptions, collect, question
from grounded_mcp.knowledge.provenance import opened
from grounded_mcp.knowledge.reuse import Stats
from grounded_mcp.knowledge.standing import with_standing
from grounded_mcp.knowledge.whereabouts import Names, Whereabouts
from grounded_mcp.models.guard import GuardedEmbedder
from grounded_mcp.models.reranking import GuardedReranker
from grounded_mcp.outcomes import Forgotten, Learned, Remembered
from grounded_mcp.pack.asking import asked
from grounded_mcp.pack.disk import Disk
from grounded_mcp.pack.making import Means, PackOptions, make
from grounded_mcp.packing import Pack
from grounded_mcp.project import identify
from grounded_mcp.reading import Opened, pointer
from grounded_mcp.recall.ask import Ask, AskOptions, read
from grounded_mcp.recall.pipeline import Ports, RecallOptions, recall
from grounded_mcp.recall.scope import everything
from grounded_mcp.stores.base import Store
from grounded_mcp.text import Analyzer
from grounded_mcp.upkeep import Upkeep
from grounded_mcp.values import Project, Recall


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """The options of every verb."""

    ask: AskOptions
    recall: RecallOptions
    documents: DocumentOptions
    sessions: SessionOptions
    compact: CompactOptions
    project_memory: ProjectMemoryOptions
    pack: PackOptions
    brief: BriefOptions
    confidence: ConfidenceOptions
    learnings: LearningOptions
    batch_size: int
    page_chars: int


class Memory:
    """One store, one project, one embedder (or none).

    ``self.project`` is the project as it is stored, without secrets; its folders are read by their real names.
    ``self.embedder`` is the bounded door to the model; None where vectors are off.
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
        journal: Journal | None = None,
        upkeep: Upkeep | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.project = clean_project(project, writer.redactor)
        self._worktree = Path(project.worktree or project.root)
        self._disk = Disk(self._worktree, self.project.scope)
        self._store = store
        self.embedder = embedder
        self._reranker = reranker
        self._analyzer = analyzer
        self._writer = writer
        self._options = options
        self._where = Whereabouts(store, writer.redactor, self.project, Path(project.root), hostname, git_environment)
        self.formerly = self._where.formerly
        self._sources = sources
        self._git_environment = git_environment
        self._machine = machine
        self._locate = locate or (lambda cwd: identify(Path(cwd), env=git_environment))
        self._journal = journal or Journal(store, self.project.key, None, clock=clock)
        self._clock = clock
        self._freshness = lru_cache(8)(Freshness)
        self._claims = Claims(store, analyzer, options.recall.shape.fold_extra_words)
        self._lessons = LearningWriter(
            self._claims, writer, options.learnings, self._freshness(self._worktree), self._worktree, self.project
        )
        self._upkeep = upkeep or Upkeep(store, embedder, reranker, options.batch_size)

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
        caller: Caller | None = None,
    ) -> Recall:
        """One ranked, explained list over facts, sessions and documents. Where ``caller`` is None, nobody is told.

        Raises: InputError naming the field; StoreError. A failing model degrades the answer, it raises nothing.
        """
        ask = Ask(query, limit, sources, mode, min_score, since, until, trace)
        read(ask, everything(), self._clock(), self._options.ask)  # complain before touching the store
        checked = read(ask, self._where.filter(project, fact_scopes), self._clock(), self._options.ask)
        found = self._disk.recalled(recall(checked, self._ports(), self._options.recall, uuid.uuid4().hex[:16]))
        found = with_standing(found, self._store, self._freshness(self._worktree), self._options.confidence)
        self._journal.recalled(found, caller)
        return found if found.candidates else replace(found, hint=self._where.nothing_stored(checked.scope))

    def project_memory(
        self,
        project: str | None = None,
        *,
        query: str | None = None,
        intent: str | None = None,
        mode: str | None = None,
        limit: object = None,
        caller: Caller | None = None,
    ) -> ProjectMemory:
        """A project's verified scripts and recent sessions, and what ``query`` finds of its learnings and episodes.

        ``intent`` is given with ``query`` and only then. Raises: InputError; StoreError.
        """
        options, now = self._options, self._clock()
        asked = question(Ask(query or "", limit, None, mode), intent, now, options.ask, options.project_memory)
        about = self._where.one(project)
        freshness = self._freshness(self._worktree if about.key == self.project.key else Path(about.root))
        grounds = Grounds(self._ports(), freshness, options.project_memory, options.recall, options.confidence)
        found = collect(about, self._where.filter(project, None), asked, grounds, now, uuid.uuid4().hex[:16])
        self._journal.gave(found, caller)
        return found

    def pack(
        self,
        task: str,
        project: str | None = None,
        *,
        intent: str | None = None,
        max_per_bucket: object = None,
        since: object = None,
        detail: str | None = None,
        caller: Caller | None = None,
    ) -> Pack:
        """What is known for a task, by section and trust, and the files that would settle it. Raises: as ``recall``."""
        options, now = self._options, self._clock()
        about = self._where.one(project)
        folder = self._worktree if about.key == self.project.key else Path(about.root)
        job = asked(task, intent, max_per_bucket, since, detail, now, options.ask, options.pack)
        query = replace(job.query, scope=self._where.filter(project, None))
        files = Disk(folder), self._freshness(folder)
        means = Means(self._ports(), *files, options.pack, options.recall, options.confidence)
        made = make(query, job.read, means, uuid.uuid4().hex[:16], per_bucket=job.per_bucket, full=job.full)
        self._journal.recalled(made.shown, caller, made.read.intent)
        hint = self._where.nothing_stored(query.scope) if not made.recall.candidates else None
        return replace(made, recall=replace(made.recall, hint=hint)) if hint else made

    def open(self, id: str, *, offset: int | None = None, caller: Caller | None = None) -> Opened:
        """One page of the full text behind a pointer. Raises: NotFound, InputError."""
        found = self._disk.opened(opened(self._store, id, offset, self._options.page_chars))
        self._journal.opened(found.item.id, caller)
        return found

    def brief(self) -> Brief:
        """What an agent is told when it starts in this project (F5). Raises: StoreError."""
        look, weights = self._freshness(self._worktree).state, Weights(*self._options.confidence.weights.values())
        return brief(self._store, self.project, self._options.brief, self._clock(), look, weights)

    def names(self) -> Names:
        """What can be named here, for completing what a person types. Raises: StoreError."""
        return self._where.names()

    def status(self) -> Status:
        """Counts, versions, the project and why it was chosen, and what is wrong if anything is."""
        state, info = self.embedder.state if self.embedder else None, self._store.info()
        space = self.embedder.space if self.embedder and state and state.name == "ready" else None
        return Status(
            project=self.project,
            store=self._where.warned(info),
            embedder=state.name if state else "off",
            model=state.fingerprint if state else None,
            problem=(state.problem if state else None) or mismatch(info.space, space),
            sources=self._sources,
            usage=self._journal.usage(),
            here=self._where.held(),
        )

    # --- looking back -----------------------------------------------------------------------------------------

    def meet(self, caller: Caller) -> None:
        """A client session was offered the tools: it counts, whether or not it ever calls one."""
        self._journal.met(caller)

    def report_reuse(self, reused: bool, recall_id: str | None = None, *, caller: Caller) -> str | None:
        """Note whether what a recall returned was used: ``recall_id``'s, or the caller's session's latest.

        The recall that it was noted for; None where there is none, or telemetry is off. Raises: NotFound for an unknown
        ``recall_id``; StoreError.
        """
        return self._journal.report(reused, recall_id, caller)

    def stats(self, since: object = None, *, all_projects: bool = False, top: int = 10) -> Stats:
        """How recall was used and whether it helped, since a date, a time or an age. Raises: InputError; StoreError."""
        return self._journal.stats(since, all_projects=all_projects, top=top)

    def graph(self, since: object = None, *, all_projects: bool = False, recalls: int = 100) -> Graph:
        """Client sessions, their latest ``recalls``, the items and their evidence. Raises: InputError; StoreError."""
        return self._journal.graph(since, all_projects=all_projects, recalls=recalls)

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
        statement = Statement(text, self._where.scope(said), importance, pinned, topic_key)
        self._store.register(self.project, self._clock())
        remembered = self._writer.write(statement, self._clock(), replaces, self._claims.beside)
        self._upkeep.nudge()
        return replace(remembered, vector="pending" if self.embedder else "off")

    def record_learning(
        self,
        claim: str,
        outcome: str,
        *,
        script: str | None = None,
        command: str | None = None,
        supports: Sequence[str] = (),
        contradicts: Sequence[str] = (),
        note: str | None = None,
    ) -> Learned:
        """Store a claim about this project with its evidence, or add that to the learning that says the same.

        Raises: InputError, NotFound, RedactionError, StoreError: then nothing was stored.
        """
        self._store.register(self.project, self._clock())
        lesson = Lesson(claim, outcome, script, command, supports, contradicts, note)
        learned = self._lessons.write(lesson, self._clock())
        self._upkeep.nudge()
        return replace(learned, vector="pending" if self.embedder and learned.item else "off")

    def sync_documents(self, progress: Callable[[Progress], None] | None = None, *, reread: bool = False) -> SyncReport:
        """Index the project's files; ``reread`` opens unchanged ones too, as after new redaction rules.

        Raises: StoreError; InputError for a root that is no folder.
        """
        return sync_documents(
            *(self._worktree, self.project, self._store, self._writer.redactor, self._options.documents, self._clock()),
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
        only: Mapping[str, str] | None = None,
    ) -> SessionReport:
        """Import the sessions of coding agents on this machine: this project's, or every project's. ``only``: by agent,
        the one file or folder to look in.

        Raises: InputError for an unknown agent; StoreError.
        """
        if self._machine is None:
            return SessionReport()
        found = sync_sessions(
            readers(agents or self._options.sessions.agents),
            replace(self._machine, project_root=self._worktree),
            self._store,
            self._writer.redactor,
            replace(self._options.sessions, folders=only or self._options.sessions.folders),
            self._locate,
            self._clock(),
            progress,
            scope=None if all_projects else self.project.scope,
            reread=reread,
        )
        self._upkeep.nudge()
        return found

    def compact(self, *, all_projects: bool = False, older_than: float | None = None) -> CompactReport:
        """Archive this project's (or every project's) old sessions, with a digest of each of their weeks.

        ``older_than``: days since a session's last exchange, None as configured. Raises: InputError; StoreError.
        """
        options = self._options.compact
        if older_than is not None:
            options = replace(options, archive_after_days=older_than)
        report = compact(self._store, options, self._clock(), scopes=None if all_projects else (self.project.scope,))
        self._upkeep.nudge()
        return report

    def forget(self, *ids: str, action: str = "delete", reason: str = "") -> Forgotten:
        """Delete items and what was made from them, or retire them as wrong or outdated. No source brings them back.

        Raises: NotFound; InputError for what is no pointer or cannot be retired; RedactionError; StoreError.
        """
        chosen = [pointer(each)[0] for each in ids]
        return let_go(self._claims, chosen, action, reason, self._writer.redactor, self._clock())

    def fill_vectors(
        self, progress: Callable[[int, int], None] | None = None, stop: Callable[[], bool] = lambda: False
    ) -> BackfillReport | None:
        """Embed what has no vector yet; None where vectors are off."""
        return self._upkeep.fill(progress, stop)

    def reset_vectors(self) -> int:
        """Drop every vector, so that ``fill_vectors`` makes them with the configured model. Raises: see ``Upkeep``."""
        return self._upkeep.reset()

    # --- living -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Load the models, and fill vectors in the background from now on. Returns at once."""
        self._upkeep.start()

    def wait_ready(self, seconds: float) -> bool:
        """Wait for the models to load; True where there are none. For callers that would rather wait than degrade."""
        return self._upkeep.wait_ready(seconds)

    def close(self) -> None:
        """Stop background work at its next batch and release the store."""
        self._upkeep.close()
        self._journal.close()
        self._store.close()

    def _released(self, version: str) -> float | None:
        """When a version came out, by the project's tags."""
        return released(self._worktree, version, self._git_environment)

    def _ports(self) -> Ports:
        return Ports(self._store, self._analyzer, self.embedder, self._reranker, self._released)
