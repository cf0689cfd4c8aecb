"""Where in a file to begin reading: the line of a passage that says most about a task. Pure.

Knows nothing about files or stores.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from grounded_mcp.values import Passage

_DEFINES = re.compile(
    r"^\s*(?:export\s+|public\s+|private\s+|static\s+|async\s+|pub\s+|default\s+)*"
    r"(?:def|class|function|func|fn|interface|type|struct|enum|trait|impl|module|const|let|var|val)\s+[\w$]+"
    r"|^\s*(?:[A-Z][A-Z0-9_]+|[\w.-]+)\s*[:=]|^\[[^\]]+\]|^#+\s"
)


def line_of(passage: Passage, words: Sequence[str]) -> int | None:
    """The line, counted in the file from 1, that holds most of the words; of equal ones one that defines something,
    then the first. None for a passage without lines.
    """
    if passage.start_line is None:
        return None
    wanted = [word.casefold() for word in words]
    best, most = 0, (0, False)
    for number, line in enumerate(passage.body.splitlines()):
        low = line.casefold()
        worth = (sum(word in low for word in wanted), bool(_DEFINES.match(line)))
        if worth[0] and worth > most:
            best, most = number, worth
    return passage.start_line + best
