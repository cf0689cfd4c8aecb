"""A progress bar for work that takes a while: on a terminal, silence anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(unit: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Yields ``step(done, total)``. The bar is on stderr and gone when the work is done."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from tqdm import tqdm

    with tqdm(total=0, unit=f" {unit}", leave=False, file=sys.stderr) as shown:

        def step(done: int, total: int) -> None:
            shown.total = total
            shown.update(done - shown.n)

        yield step
