"""Nearest vectors: candidates from a matrix in memory, or from a sweep where that would not fit; then exact cosine.

A matrix is a copy of one bucket's vectors, never the truth: triggers raise the bucket's stamp with every change, and a
search whose snapshot shows another stamp reads the bucket again. At 10,000 vectors a search takes 0.6 ms this way
against 3 ms for a sweep of the sketches. numpy is imported by the first search, when the embedder has loaded it.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import apsw

from grounded_mcp.stores import sqlite_sql as sql
from grounded_mcp.stores.cosine import ROUNDING, best
from grounded_mcp.stores.sqlite_connection import rows
from grounded_mcp.stores.sqlite_vectors import candidates, sketch_of
from grounded_mcp.values import Hit, Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int64]

MAX_BUCKETS = 32
"""A search over more buckets sweeps the file once instead: 300 small matrices took 33 ms, the sweep 9 ms."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Row ``i`` of ``vectors`` belongs to passage ``ids[i]``."""

    stamp: int
    ids: Ids
    vectors: Floats

    def nearest(self, query: Floats, k: int) -> Matrix:
        """The ``k`` rows of largest product with the query, and every row that ties with the last of them."""
        if len(self.ids) <= k:
            return self
        import numpy as np

        # Not ``@``: BLAS wakes threads on every core for half a millisecond of work, and waits for the last of them.
        products = np.einsum("ij,j->i", self.vectors, query)
        chosen = np.flatnonzero(products >= np.partition(products, -k)[-k] - ROUNDING)
        return Matrix(self.stamp, self.ids[chosen], self.vectors[chosen])


class Matrices:
    """The matrices of one process; the least recently used go when they exceed ``limit`` bytes. Thread-safe."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._held: OrderedDict[int, Matrix] = OrderedDict()
        self._too_big: dict[int, int] = {}

    def of(self, db: apsw.Connection, buckets: Sequence[int], dimensions: int) -> list[Matrix] | None:
        """The buckets' vectors as this snapshot has them; None when they do not fit the limit."""
        if len(buckets) > MAX_BUCKETS:
            return None
        stamps: Mapping[int, int] = dict(rows(db, sql.STAMPS, (json.dumps(buckets),)))
        with self._lock:
            found = [self._one(db, bucket, stamp, dimensions) for bucket, stamp in stamps.items()]
            whole = [matrix for matrix in found if matrix is not None]
            size = sum(matrix.vectors.nbytes for matrix in whole)
            self._evict()
        return whole if len(whole) == len(found) and size <= self._limit else None

    def _one(self, db: apsw.Connection, bucket: int, stamp: int, dimensions: int) -> Matrix | None:
        held = self._held.get(bucket)
        if held is None or held.stamp != stamp:
            if self._too_big.get(bucket) == stamp:
                return None
            self._held.pop(bucket, None)
            count = rows(db, sql.COUNT_BUCKET, (bucket,))[0][0]
            if count * dimensions * 4 > self._limit:
                self._too_big[bucket] = stamp
                return None
            held = _load(rows(db, sql.BUCKET_VECTORS, (bucket,)), stamp, dimensions)
        self._held[bucket] = held
        self._held.move_to_end(bucket)
        return held

    def _evict(self) -> None:
        size = sum(matrix.vectors.nbytes for matrix in self._held.values())
        while size > self._limit:
            _, oldest = self._held.popitem(last=False)
            size -= oldest.vectors.nbytes


def swept(
    db: apsw.Connection, buckets: Sequence[int], components: Sequence[float], count: int, window: Mapping[str, object]
) -> Matrix:
    """The ``count`` passages whose sketches are nearest, with their exact vectors."""
    arguments = {"code": sketch_of(components), "buckets": json.dumps(buckets), "candidates": count, **window}
    return _load(rows(db, sql.SWEEP, arguments), 0, len(components))


def ranked(
    db: apsw.Connection,
    matrices: Matrices,
    buckets: Sequence[int],
    vector: Vector,
    components: Sequence[float],
    k: int,
    window: Mapping[str, object],
) -> tuple[Hit, ...]:
    """The ``k`` nearest passages of the buckets by exact cosine, best first, ties by passage id."""
    import numpy as np

    query = np.frombuffer(vector, "<f4")
    held = None if window["windowed"] else matrices.of(db, buckets, len(components))
    if held is None:
        near = [swept(db, buckets, components, candidates(k), window)]
    else:
        near = [matrix.nearest(query, k) for matrix in held]
    if not near:
        return ()
    ids = np.concatenate([matrix.ids for matrix in near])
    return best(ids, np.concatenate([matrix.vectors for matrix in near]), query, k)


def _load(found: Sequence[tuple[Any, ...]], stamp: int, dimensions: int) -> Matrix:
    import numpy as np

    ids = np.fromiter((row[0] for row in found), np.int64, len(found))
    vectors = np.frombuffer(b"".join(row[1] for row in found), "<f4").reshape(len(found), dimensions)
    return Matrix(stamp, ids, vectors)
