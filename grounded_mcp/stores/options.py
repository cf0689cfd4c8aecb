"""The knobs of a store. Light, so that the settings can be collected without importing an engine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Settings of ``[store]``; the defaults are those of ``config.toml``."""

    busy_timeout_ms: int = 10_000
    """How long one attempt waits for another process's lock."""
    max_batch_wait_ms: int = 14_000
    """How long a write waits in all, retries included: a caller hears ``StoreBusy`` within 15 s (case 23)."""
    vector_cache_mb: int = 64
    """Vectors held in memory for searching, in MiB: 43,000 of 384 dimensions. Larger buckets are swept on disk."""
