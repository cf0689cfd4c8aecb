"""A second opinion about secrets: the rules of MongoDB's Kingfisher, run in this process, beside the tables' own.

Optional, and never on the network: only its scanner is used, none of what could validate or revoke a credential.
Knows nothing about what becomes of a span.
"""

from __future__ import annotations

import threading
from importlib.util import find_spec
from typing import Any

from grounded_mcp.errors import ConfigError


class Kingfisher:
    """Finds secrets in UTF-8 text. Safe to share between threads.

    Its rules are compiled when they are first needed, which takes seconds once per machine and 0.7 s from its own
    cache afterwards. Raises: ConfigError when the package is not installed.
    """

    def __init__(self) -> None:
        if find_spec("kingfisher_sdk") is None:
            raise ConfigError(
                "The scanner kingfisher is not installed.",
                "Run `pip install 'grounded-memory-mcp[secrets]'`, or set redaction.scanner to none.",
            )
        self._compiling = threading.Lock()
        self._scanner: Any = None

    def spans(self, text: bytes) -> list[tuple[int, int]]:
        """Where secrets stand: start and end, sorted and disjoint. Raises whatever the scanner does."""
        found = sorted(
            (finding.location["start_offset"], finding.location["end_offset"])
            for finding in self._compiled().scan(text)
            if finding.visible  # the others are what a rule needs beside a secret, and often none
        )
        merged: list[tuple[int, int]] = []
        for start, end in found:
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged

    def _compiled(self) -> Any:
        with self._compiling:
            if self._scanner is None:
                from kingfisher_sdk import Scanner

                self._scanner = Scanner()
            return self._scanner
