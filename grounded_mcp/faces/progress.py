"""A progress bar for work that takes a while: on a terminal, silence anywhere else."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_UNTOLD = {"ncols": 79, "nrows": 24}
"""Where a terminal does not say how large it is: the usual one, less a column so that no line wraps."""


@contextmanager
def bar(unit: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Yields ``step(done, total)``. The bar is on stderr and gone when the work is done."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from tqdm import tqdm

    with tqdm(total=0, unit=f" {unit}", leave=False, file=sys.stderr, **_size()) as shown:

        def step(done: int, total: int) -> None:
            shown.total = total
            shown.update(done - shown.n)

        yield step


def _size() -> dict[str, int]:
    """Nothing follows the window. A terminal that tells no size, as below other programs, would be shown nothing."""
    try:
        told = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):
        return _UNTOLD
    return {} if told.columns and told.lines else _UNTOLD
