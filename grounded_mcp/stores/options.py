"""The knobs of a store. Light, so that the settings can be collected without importing an engine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PostgresOptions:
    """Settings of ``[store.postgres]``; the defaults are those of ``config.toml``."""

    schema: str = "grounded"
    """Where in the database the tables are: stores in schemas of their own know nothing of each other."""
    pool_size: int = 8
    """Most connections of one process."""
    pool_timeout_s: float = 5.0
    """The longest a call waits for a connection: a free one, or a server that is back."""
    connect_timeout_s: float = 5.0
    statement_timeout_s: float = 30.0
    """The server ends a statement that takes longer."""
    exact_vectors: int = 20_000
    """So many vectors are compared one by one; a search that admits more goes through an index (HNSW)."""
    ef_search: int = 200
    """How many candidates that index looks at first; it goes on where filters leave too few."""
    index_memory_mb: int = 512
    """Memory of the server for making that index: 100,000 vectors of 384 dimensions took 30 s, in 64 MB 112 s."""


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Settings of ``[store]``; the defaults are those of ``config.toml``."""

    busy_timeout_ms: int = 10_000
    """How long one attempt waits for another process's lock."""
    max_batch_wait_ms: int = 14_000
    """How long a write waits in all, retries included: a caller hears ``StoreBusy`` within 15 s (case 23)."""
    vector_cache_mb: int = 64
    """Vectors held in memory for searching, in MiB: 43,000 of 384 dimensions. Larger buckets are swept on disk."""
    postgres: PostgresOptions = PostgresOptions()
