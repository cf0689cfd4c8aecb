"""The exact similarity of candidates, to the same last digit whichever engine found them (R17).

numpy is imported by the first search, when the embedder has loaded it. Knows nothing about where vectors are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grounded_mcp.stores.rules import SCORE_DIGITS
from grounded_mcp.values import Hit, PassageId

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int64]

ROUNDING = 1e-6
"""Far more than float32 products of unit vectors are off by."""


def best(ids: Ids, vectors: Floats, query: Floats, k: int) -> tuple[Hit, ...]:
    """The ``k`` rows of highest cosine with the query, best first, ties by passage id. Row i belongs to ``ids[i]``."""
    import numpy as np

    exact = vectors.astype(np.float64)
    # Not a BLAS product: its last digits depend on the kernel that the machine picks.
    cosine = (exact * query).sum(axis=1) / np.sqrt((exact * exact).sum(axis=1)) / np.linalg.norm(query)
    scores = np.round(cosine, SCORE_DIGITS)
    chosen = np.lexsort((ids, -scores))[:k]
    pairs = zip(ids[chosen].tolist(), scores[chosen].tolist(), strict=True)
    return tuple([Hit(PassageId(id_), score) for id_, score in pairs])
