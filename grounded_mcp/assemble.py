"""Settings in, Memory out: the only file that knows every concrete name.

Knows nothing about faces. Importing it is cheap; the store's engine is imported when a store is opened.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING

from grounded_mcp.errors import ConfigError
from grounded_mcp.ingest.facts import FactWriter
from grounded_mcp.ingest.redact import Redactor
from grounded_mcp.memory import Memory, MemoryOptions
from grounded_mcp.models.guard import GuardedEmbedder
from grounded_mcp.project import canonical_path, identify
from grounded_mcp.settings import Settings
from grounded_mcp.text import Analyzer
from grounded_mcp.values import Project

if TYPE_CHECKING:
    from grounded_mcp.stores.sqlite import SqliteStore

REDACTION_KEY = "redaction"


def open_memory(settings: Settings, *, cwd: Path | None = None, explicit_project: str | None = None) -> Memory:
    """The memory of the project that ``cwd`` belongs to. The model is loaded when it is first needed.

    Raises: ConfigError, InputError for a project that cannot be one, StoreError for a store that cannot be opened.
    """
    project = find_project(settings, cwd or settings.project_dir, explicit_project)
    store = open_store(settings)
    embedder = None if settings.embedding.provider == "none" else GuardedEmbedder(settings.embedding)
    redactor = Redactor(store.secret(REDACTION_KEY), settings.redaction)
    return Memory(
        store=store,
        embedder=embedder,
        analyzer=Analyzer(settings.analyzer),
        writer=FactWriter(store, redactor, settings.facts, settings.chunks),
        project=project,
        options=MemoryOptions(
            ask=settings.ask,
            recall=settings.recall,
            documents=settings.documents,
            batch_size=settings.embedding.batch_size,
            page_chars=settings.render.page_chars,
        ),
        git_environment=settings.places.environment,
        hostname=socket.gethostname(),
        sources=settings.places.sources,
    )


def open_store(settings: Settings) -> SqliteStore:
    """The configured store. Raises: ConfigError for an engine that is not there, StoreError."""
    location = settings.places.store
    if location.startswith(("postgres://", "postgresql://")):
        raise ConfigError("The store is a Postgres URL; this release has SQLite only.", "Give the path of a file.")
    from grounded_mcp.stores.sqlite import SqliteStore

    return SqliteStore(Path(location).expanduser(), Analyzer(settings.analyzer), settings.store)


def find_project(settings: Settings, cwd: Path, explicit: str | None = None) -> Project:
    """The one identity that every face uses: argument > configuration > git > path."""
    here = canonical_path(str(cwd.expanduser().resolve()))
    by_folder = {canonical_path(folder): key for folder, key in settings.project_folders.items()}
    inside = [folder for folder in by_folder if here == folder or here.startswith(folder.rstrip("/") + "/")]
    configured = by_folder[max(inside, key=len)] if inside else settings.project_key
    env = settings.places.environment
    return identify(cwd, explicit=explicit, configured=configured or None, env=env)
