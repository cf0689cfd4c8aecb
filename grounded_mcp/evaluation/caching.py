"""Vectors that were made once: an embedder in front of another, which it asks only for what it has not seen.

It is an ``Embedder`` like any other and stands behind the same guard, so that nothing else of the pipeline differs.
A text's vector never depends on its neighbours (R17), so a kept one is the one that would be made.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path

from grounded_mcp.models import catalog
from grounded_mcp.models.base import Embedder, Purpose
from grounded_mcp.models.catalog import EmbeddingOptions
from grounded_mcp.values import Vector

log = logging.getLogger(__name__)

DIGEST = 16
"""Bytes that name a text within a model and a purpose."""
SAVED_AT_ONCE = 1_000
"""New vectors that are written together: what an interruption loses at most."""


class VectorFiles:
    """Vectors of one model in one folder, by digest. A file is written whole and never changed, so that processes
    need not know of each other; two of them may hold the same vector."""

    def __init__(self, folder: Path, dimensions: int) -> None:
        self._folder = folder
        self._record = DIGEST + 4 * dimensions
        self._new: dict[bytes, Vector] = {}
        self._lock = threading.Lock()
        self._kept = dict(self._read())

    def get(self, digest: bytes) -> Vector | None:
        return self._kept.get(digest)

    def put(self, digest: bytes, vector: Vector) -> None:
        self._kept[digest] = vector
        with self._lock:
            self._new[digest] = vector
            full = len(self._new) >= SAVED_AT_ONCE
        if full:
            self.save()

    def save(self) -> None:
        """Write what is new. A folder that cannot be written only makes the next run slower."""
        with self._lock:
            new, self._new = self._new, {}
        if not new:
            return
        data = b"".join(digest + vector for digest, vector in sorted(new.items()))
        path = self._folder / f"{blake2b(data, digest_size=DIGEST).hexdigest()}.vectors"
        unfinished = path.with_suffix(f".{os.getpid()}")
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            unfinished.write_bytes(data)
            unfinished.replace(path)
        except OSError as error:
            log.warning("vectors are not kept for the next run: %s", error)

    def _read(self) -> Iterable[tuple[bytes, Vector]]:
        for path in sorted(self._folder.glob("*.vectors")):
            data = path.read_bytes()
            if len(data) % self._record == 0:  # anything else is not ours
                for at in range(0, len(data), self._record):
                    yield data[at : at + DIGEST], Vector(data[at + DIGEST : at + self._record])


class CachedEmbedder:
    """``inner``, asked once for each text. With ``live`` queries are embedded anew, as they are for a user."""

    def __init__(self, inner: Embedder, files: VectorFiles, *, live: bool = False) -> None:
        self.fingerprint = inner.fingerprint
        self.dimensions = inner.dimensions
        self.floor = inner.floor
        self._inner = inner
        self._files = files
        self._live = live

    def embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        """One unit vector per text, in order. Raises: ModelError."""
        if self._live and purpose == "query":
            return self._inner.embed(texts, purpose)
        digests = [_digest(text, purpose) for text in texts]
        known = {digest: vector for digest in digests if (vector := self._files.get(digest)) is not None}
        missing = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in known}
        if missing:
            made = self._inner.embed(list(missing.values()), purpose)
            for digest, new in zip(missing, made, strict=True):
                self._files.put(digest, new)
                known[digest] = new
        return [known[digest] for digest in digests]


def _digest(text: str, purpose: Purpose) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST, person=purpose.encode()).digest()


class Models:
    """Each embedder loaded once for a whole run, and kept vectors in ``folder`` (None: nowhere)."""

    def __init__(self, folder: Path | None, *, live: bool = False) -> None:
        self._folder = folder
        self._live = live
        self._files: list[VectorFiles] = []
        self.load: Callable[[EmbeddingOptions], Embedder] = cache(self._load)

    def save(self) -> None:
        for files in self._files:
            files.save()

    def _load(self, options: EmbeddingOptions) -> Embedder:
        inner = catalog.load(options)
        if self._folder is None:
            return inner
        name = blake2b(inner.fingerprint.encode(), digest_size=DIGEST).hexdigest()
        files = VectorFiles(self._folder / name, inner.dimensions)
        self._files.append(files)
        return CachedEmbedder(inner, files, live=self._live)
