"""What of a long text is kept: its ends, and of a tool's output the lines that tell how it went. Pure.

A text is cut in two steps, because a secret must be whole where it is looked for: ``window`` takes generous ends at
line borders, then secrets and what a host put in are taken out, and ``telling`` or ``ends`` trim what is left.
Knows nothing about tools, commands or sessions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

WINDOW_HEAD = 2_000
WINDOW_TAIL = 6_000
"""Characters; the end of an output says how it went."""
OUTPUT_CHARS = 700
LINE_CHARS = 200
LAST_LINES = 3
TELLING_LINES = 8

_TELLING = re.compile(
    r"""\b(?:errors?|fail(?:ed|ure|ures|s)?|fatal|panic|exception|traceback|undefined|cannot|can't|could\ not|not\ found
    |denied|invalid|unexpected|unable|missing|no\ such|refused|timed\ out|timeout|conflict|segmentation|rejected)\b
    |\w(?:Error|Exception)\b|^E\s{2,}|^\s*[✗✕✘×]|\bFAIL\b""",
    re.IGNORECASE | re.VERBOSE,
)
_REFUSED = re.compile(
    r"""\s*(?:Error:\ |<tool_use_error>)*(?:The\ (?:user|person)\ (?:doesn't\ want|does\ not\ want|rejected|denied)
    |User\ (?:rejected|denied|declined)|\[Request\ interrupted\ by|Sibling\ tool\ call|Permission\ to\ use
    |(?:command\ )?(?:rejected|aborted|denied|cancell?ed)\ by\ (?:the\ )?user|\[?Operation\ cancell?ed)""",
    re.IGNORECASE | re.VERBOSE,
)
_REMARK = re.compile(r"(?:the user said|feedback|reason)\b[^:\n]{0,40}:\s*", re.IGNORECASE)
_DENIAL = re.compile(
    r"""^-*\s*FAIL\b|\bexit(?:ed)?\ (?:status|code|with)\D{0,8}[1-9]|\b[1-9]\d*\ (?:failed|failing|errors?\b)|^npm\ ERR!
    |\bBUILD\ FAILED\b|^Traceback\ |^error(?:\[\w+\])?:|\btask\ failed\b|\bcommand\ not\ found\b""",
    re.MULTILINE | re.VERBOSE,
)
_NOTHING_WRONG = re.compile(r"\b(?:no|0|zero|without)\s+(?:errors?|failures?|failed|issues?)\b", re.IGNORECASE)
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_NOTHING_TOLD = re.compile(
    r"""(?:[\W_]*|(?:Output|Error|Signal|Background\ PIDs):\ (?:\((?:none|empty)\)|0)|Process\ Group\ PGID:\ \d+
    |Exit\ Code:\ -?\d+|Directory:\ \(root\)|Shell\ cwd\ was\ reset\ to\ .*)$""",
    re.VERBOSE,
)
"""Rules and blank lines, and what a host's shell tool says about itself."""
# What must not be taken apart by a cut: the rest of a block whose beginning is gone would pass for plain text.
_BLOCKS = ("private", "system-reminder", "project-memory")


def window(text: str, head: int = WINDOW_HEAD, tail: int = WINDOW_TAIL) -> str:
    """The first ``head`` and the last ``tail`` characters, cut at line borders (at white space in a longer line).

    Where something is left out, a line says how much. An end that has no border at all is left out whole.
    """
    if len(text) <= head + tail:
        return text
    start, end = _up_to(text, head), _from(text, len(text) - tail)
    end = _after_blocks(text, start, end)
    return f"{text[:start].rstrip()}\n[… {end - start:,} characters …]\n{text[end:].lstrip()}"


def ends(text: str, limit: int) -> str:
    """A text of at most about ``limit`` characters: three quarters of them from its beginning."""
    return window(text, limit * 3 // 4, limit // 4)


def telling(text: str, failed: bool) -> str:
    """The lines that say what went wrong where something did, and the last lines: ``OUTPUT_CHARS`` at most."""
    lines = list(dict.fromkeys(line for line in map(_plain, text.split("\n")) if not _NOTHING_TOLD.match(line)))
    wanted = set(range(max(0, len(lines) - LAST_LINES), len(lines)))
    if failed:
        wanted |= set(_places(lines)[:TELLING_LINES])
    return _within([lines[at] for at in sorted(wanted)], OUTPUT_CHARS)


def sounds_failed(text: str) -> bool:
    """Whether an output speaks of an error, where nothing else says how a command went."""
    return any(_is_telling(line) for line in map(_plain, text.split("\n")))


def refused(text: str) -> bool:
    """Whether a result says that the call was not let run, or not to its end: then it tells nothing about the call."""
    return _REFUSED.match(text) is not None


def remark(text: str) -> str:
    """What the person said to a refused call, if anything."""
    found = _REMARK.search(text)
    return text[found.end() :].strip() if found else ""


def denies(text: str) -> bool:
    """Whether an output says plainly that what ran has failed."""
    return _DENIAL.search(_NOTHING_WRONG.sub("", text)) is not None


def _places(lines: Sequence[str]) -> list[int]:
    return [at for at, line in enumerate(lines) if _is_telling(line)]


def _is_telling(line: str) -> bool:
    return _TELLING.search(_NOTHING_WRONG.sub("", line)) is not None


def _plain(line: str) -> str:
    """A line as a terminal would show it in the end, cut to ``LINE_CHARS``."""
    shown = _ESCAPES.sub("", line.rstrip()).rpartition("\r")[2].rstrip()
    return shown if len(shown) <= LINE_CHARS else shown[: LINE_CHARS - 1].rstrip() + "…"


def _within(lines: Sequence[str], limit: int) -> str:
    """As many lines as fit, the first and the last ones before those between."""
    while len(lines) > 1 and sum(map(len, lines)) + len(lines) > limit:
        middle = len(lines) // 2
        lines = [*lines[:middle], *lines[middle + 1 :]]
    return "\n".join(lines)


def _up_to(text: str, at: int) -> int:
    """The last border before ``at``: a line end, else white space, else the beginning."""
    line = text.rfind("\n", 0, at)
    if line > 0:
        return line
    return max((found.start() for found in re.finditer(r"\s", text[:at])), default=0)


def _from(text: str, at: int) -> int:
    line = text.find("\n", at)
    if 0 <= line < len(text) - 1:
        return line + 1
    space = re.compile(r"\s").search(text, at)
    return space.end() if space else len(text)


def _after_blocks(text: str, start: int, end: int) -> int:
    """``end``, moved behind every block that opens in what is cut out and closes after it."""
    for name in _BLOCKS:
        opened = text.rfind(f"<{name}", start, end)
        if opened >= 0 and text.find(f"</{name}", opened, end) < 0:
            closed = text.find(f"</{name}", end)
            border = text.find(">", closed) + 1 if closed >= 0 else 0
            end = border or len(text)
    return end
