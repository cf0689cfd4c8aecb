"""Settings in, Memory out: the only file that knows every concrete name.

Knows nothing about faces. Importing it is cheap; the store's engine is imported when a store is opened.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grounded_mcp.errors import ConfigError, RedactionError
from grounded_mcp.ingest.facts import FactWriter
from grounded_mcp.ingest.redact import RULES_VERSION, Redactor, clean_project
from grounded_mcp.ingest.rescan import RescanReport, is_outdated, note_rules, rescan
from grounded_mcp.ingest.transcripts.turns import Machine
from grounded_mcp.knowledge.journal import Journal
from grounded_mcp.listeners.telemetry import Telemetry
from grounded_mcp.memory import Memory, MemoryOptions
from grounded_mcp.models import catalog
from grounded_mcp.models.guard import GuardedEmbedder, Loader
from grounded_mcp.models.reranking import NONE, GuardedReranker
from grounded_mcp.project import elsewhere, identify_configured
from grounded_mcp.settings import Settings
from grounded_mcp.stores.base import Store
from grounded_mcp.stores.bounded import BoundedStore, rights
from grounded_mcp.text import Analyzer
from grounded_mcp.upkeep import Upkeep
from grounded_mcp.values import Project

if TYPE_CHECKING:
    from grounded_mcp.stores.postgres import PostgresStore
    from grounded_mcp.stores.roster import Token
    from grounded_mcp.stores.sqlite import SqliteStore

    OpenStore = SqliteStore | PostgresStore

REDACTION_KEY = "redaction"

_MADE_UP_SECRET = "export DEPLOY_TOKEN=q8Zr2LxV7tKw9BnM4cJd"  # noqa: S105 - what the check below has to find


def open_memory(
    settings: Settings,
    *,
    cwd: Path | None = None,
    explicit_project: str | None = None,
    create: bool = True,
    load: Loader = catalog.load,
    clock: Callable[[], float] = time.time,
) -> Memory:
    """The memory of the project that ``cwd`` belongs to. The model is loaded when it is first needed, by ``load``.

    ``create=False`` makes no store where there is none. ``clock`` gives the time that ages are counted from.
    Raises: ConfigError, InputError for a project that cannot be one, StoreError for a store that cannot be opened.
    """
    project = find_project(settings, cwd or settings.project_dir, explicit_project)
    with ExitStack() as opened:
        base = open_base(settings, create=create, load=load, clock=clock)
        opened.callback(base.store.close)
        memory = build_memory(base, project)
        opened.pop_all()  # from here on the memory closes the store
    return memory


@dataclass(frozen=True, slots=True)
class Base:
    """What every memory over one store stands on."""

    settings: Settings
    store: OpenStore
    redactor: Redactor
    embedder: GuardedEmbedder | None
    reranker: GuardedReranker | None
    upkeep: Upkeep
    clock: Callable[[], float]


def open_base(
    settings: Settings,
    *,
    create: bool = True,
    load: Loader = catalog.load,
    clock: Callable[[], float] = time.time,
) -> Base:
    """The configured store, open, with models that are loaded once they are needed. Raises: as ``open_store``."""
    with ExitStack() as opened:
        store = opened.enter_context(closing(open_store(settings, create=create)))
        redactor = Redactor(store.secret(REDACTION_KEY), settings.redaction)
        note_rules(store, redactor)
        embedder = None if settings.embedding.provider == "none" else GuardedEmbedder(settings.embedding, load)
        reranker = None if settings.reranker.model == NONE else GuardedReranker(settings.reranker)
        upkeep = Upkeep(store, embedder, reranker, settings.embedding.batch_size)
        base = Base(settings, store, redactor, embedder, reranker, upkeep, clock)
        opened.pop_all()
    return base


def build_memory(base: Base, project: Project) -> Memory:
    """The memory of a project of this machine. Closing it closes the store and the models."""
    settings = base.settings
    return _memory(
        base,
        base.store,
        project,
        upkeep=base.upkeep,
        hostname=socket.gethostname(),
        sources=settings.places.sources,
        git_environment=settings.places.environment,
        machine=Machine(settings.places.user, sys.platform, settings.places.agents),
        locate=_locator(settings, project),
    )


def bounded_memory(base: Base, token: Token) -> Memory:
    """The memory of a token's bearer: its first project, elsewhere, and of the store only what the token admits.

    Closing it closes nothing else.
    """
    given = rights(token.projects, token.scopes, read_only=token.read_only)
    store = BoundedStore(base.store, given)
    home = token.projects[0]
    project = next((each for each in store.projects() if each.key == home), None) or elsewhere(home)
    project = replace(project, reason=f"the token {token.name}")
    return _memory(base, store, project, upkeep=base.upkeep.shared(), hostname=token.name)


def _memory(base: Base, store: Store, project: Project, *, upkeep: Upkeep, hostname: str, **more: Any) -> Memory:
    settings = base.settings
    return Memory(
        store=store,
        embedder=base.embedder,
        reranker=base.reranker,
        analyzer=Analyzer(settings.analyzer),
        writer=FactWriter(store, base.redactor, settings.facts, settings.chunks),
        project=project,
        options=MemoryOptions(
            ask=settings.ask,
            recall=settings.recall,
            documents=settings.documents,
            sessions=settings.sessions,
            compact=settings.compact,
            project_memory=settings.project_memory,
            pack=settings.pack,
            brief=settings.brief,
            confidence=settings.confidence,
            learnings=settings.learnings,
            batch_size=settings.embedding.batch_size,
            page_chars=settings.render.page_chars,
        ),
        hostname=hostname,
        upkeep=upkeep,
        journal=_journal(settings, store, base.redactor, project, base.clock),
        clock=base.clock,
        **more,
    )


def _journal(
    settings: Settings, store: Store, redactor: Redactor, project: Project, clock: Callable[[], float]
) -> Journal:
    options, key = settings.telemetry, clean_project(project, redactor).key
    kept = Telemetry(store, options, lambda text: redactor.clean(text).text, clock) if options.enabled else None
    return Journal(store, key, kept, clock=clock)


def open_store(settings: Settings, *, create: bool = True) -> OpenStore:
    """The configured store. Raises: ConfigError for an engine that is not there, StoreError."""
    location = settings.places.store
    if location.startswith(("postgres://", "postgresql://")):
        return _postgres(settings, create=create)
    from grounded_mcp.stores.sqlite import SqliteStore

    return SqliteStore(Path(location).expanduser(), Analyzer(settings.analyzer), settings.store, create=create)


def _postgres(settings: Settings, *, create: bool) -> PostgresStore:
    try:
        from grounded_mcp.stores.postgres import PostgresStore
    except ImportError as error:
        raise ConfigError(
            f"The store is a Postgres URL, and {error.name} is not installed.",
            "Install it: pip install 'grounded-memory-mcp[postgres]'",
        ) from error
    return PostgresStore(settings.places.store, Analyzer(settings.analyzer), settings.store, create=create)


def redactor_of(settings: Settings, store: Store) -> Redactor:
    """The rules in force, with the key that the store keeps for placeholders. Raises: ConfigError, StoreError."""
    return Redactor(store.secret(REDACTION_KEY), settings.redaction)


def outdated_text(settings: Settings, store: Store) -> tuple[str, ...]:
    """Whether stored text went through other redaction rules than those in force, as a sentence. Raises: StoreError."""
    redactor = Redactor(store.secret(REDACTION_KEY), settings.redaction)
    told = "Text was redacted under older rules: run `grounded-mcp doctor --rescan`."
    return (told,) if is_outdated(store, redactor) else ()


def rescan_store(settings: Settings, store: Store, progress: Callable[[int, int], None]) -> RescanReport:
    """Every stored text through the rules in force. Raises: ConfigError, StoreError."""
    return rescan(store, Redactor(store.secret(REDACTION_KEY), settings.redaction), time.time(), progress)


def check_redaction(settings: Settings) -> tuple[str, ...]:
    """What keeps secrets from being taken out, as sentences; empty when a made-up one is found (case 58).

    While something is wrong nothing is stored: the front door fails closed. Raises: ConfigError.
    """
    redactor = Redactor(b"doctor", settings.redaction)
    try:
        found = redactor.clean(_MADE_UP_SECRET).redactions
        wrong = "" if found else "They miss a secret that they know: install grounded-memory-mcp again."
    except RedactionError as error:
        wrong = error.message
    return (f"Redaction rules {RULES_VERSION} on {redactor.engine}: {wrong}",) if wrong else ()


def _locator(settings: Settings, project: Project) -> Callable[[str], Project]:
    """The project of a recorded working directory, by the rules for every other folder.

    A name that was given by hand is this project's only; it holds for every folder that is this project's otherwise.
    """
    unnamed = replace(settings, project_key="")

    @cache
    def located(cwd: str) -> Project:
        return find_project(unnamed, Path(cwd))

    def locate(cwd: str) -> Project:
        there = located(cwd)
        if there.key == located(project.root).key:  # perhaps another worktree of it
            return replace(there, key=project.key, name=project.name)
        return there

    return locate


def find_project(settings: Settings, cwd: Path, explicit: str | None = None) -> Project:
    """The one identity that every face uses: argument > configuration > git > path."""
    env = settings.places.environment
    return identify_configured(cwd, settings.project_folders, settings.project_key, env, explicit)
