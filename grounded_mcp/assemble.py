"""Settings in, Memory out: the only file that knows every concrete name.

Knows nothing about faces. Importing it is cheap; the store's engine is imported when a store is opened.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

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
from grounded_mcp.project import identify_configured
from grounded_mcp.settings import Settings
from grounded_mcp.text import Analyzer
from grounded_mcp.values import Project

if TYPE_CHECKING:
    from grounded_mcp.stores.sqlite import SqliteStore

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
        store = opened.enter_context(closing(open_store(settings, create=create)))
        redactor = Redactor(store.secret(REDACTION_KEY), settings.redaction)
        note_rules(store, redactor)
        memory = Memory(
            store=store,
            embedder=None if settings.embedding.provider == "none" else GuardedEmbedder(settings.embedding, load),
            reranker=None if settings.reranker.model == NONE else GuardedReranker(settings.reranker),
            analyzer=Analyzer(settings.analyzer),
            writer=FactWriter(store, redactor, settings.facts, settings.chunks),
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
            git_environment=settings.places.environment,
            hostname=socket.gethostname(),
            sources=settings.places.sources,
            machine=Machine(settings.places.user, sys.platform, settings.places.agents),
            locate=_locator(settings, project),
            journal=_journal(settings, store, redactor, project, clock),
            clock=clock,
        )
        opened.pop_all()  # from here on the memory closes the store
    return memory


def _journal(
    settings: Settings, store: SqliteStore, redactor: Redactor, project: Project, clock: Callable[[], float]
) -> Journal:
    options, key = settings.telemetry, clean_project(project, redactor).key
    kept = Telemetry(store, options, lambda text: redactor.clean(text).text, clock) if options.enabled else None
    return Journal(store, key, kept, clock=clock)


def open_store(settings: Settings, *, create: bool = True) -> SqliteStore:
    """The configured store. Raises: ConfigError for an engine that is not there, StoreError."""
    location = settings.places.store
    if location.startswith(("postgres://", "postgresql://")):
        raise ConfigError("The store is a Postgres URL; this release has SQLite only.", "Give the path of a file.")
    from grounded_mcp.stores.sqlite import SqliteStore

    return SqliteStore(Path(location).expanduser(), Analyzer(settings.analyzer), settings.store, create=create)


def outdated_text(settings: Settings, store: SqliteStore) -> tuple[str, ...]:
    """Whether stored text went through other redaction rules than those in force, as a sentence. Raises: StoreError."""
    redactor = Redactor(store.secret(REDACTION_KEY), settings.redaction)
    told = "Text was redacted under older rules: run `grounded-mcp doctor --rescan`."
    return (told,) if is_outdated(store, redactor) else ()


def rescan_store(settings: Settings, store: SqliteStore, progress: Callable[[int, int], None]) -> RescanReport:
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
