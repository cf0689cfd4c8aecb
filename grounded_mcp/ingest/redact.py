"""The one front door for text: everything that is stored goes through ``Redactor.clean``.

Drops NUL and ``<private>`` blocks, repairs lone surrogates and line ends, and replaces secrets by a placeholder
that says what was there. Knows nothing about where a text comes from or goes to. What looks like a secret is in
the ``secret_*`` rooms. Not found are hex and other characters of one case, or fewer than 32 characters, that stand
in a sentence with no name, prefix or notation around them: they could as well be a hash or an identifier.
"""

from __future__ import annotations

import hmac
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from grounded_mcp.errors import ConfigError, RedactionError
from grounded_mcp.ingest.kingfisher import Kingfisher
from grounded_mcp.ingest.secret_assign import ASSIGN_TABLES
from grounded_mcp.ingest.secret_rules import rules_version
from grounded_mcp.ingest.secret_spans import Scanner, Search
from grounded_mcp.ingest.secret_vendors import AHEAD
from grounded_mcp.ingest.secret_view import PLACEHOLDER
from grounded_mcp.values import Clean, Project

RULES_VERSION = rules_version(*ASSIGN_TABLES)
"""Changes whenever the tables do: a text redacted under another version is worth a second look."""

_PRIVATE_TAG = re.compile(r"<[ \t\r\n]*(/?)[ \t\r\n]*private[ \t\r\n]*>", re.IGNORECASE | re.ASCII)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_PASSES = 8
_AT_PLACEHOLDERS = re.compile(f"({PLACEHOLDER.pattern.decode()})")


@dataclass(frozen=True, slots=True)
class RedactOptions:
    """``extra_patterns``: regular expressions of your own secrets, in the syntax of the engine.

    ``engine``: "auto" takes google-re2 if it is installed. Without it an extra pattern may take more than linear
    time; the rules of this package do not. ``scanner``: what looks for secrets besides the rules of this package.
    """

    extra_patterns: tuple[str, ...] = ()
    engine: Literal["auto", "re2", "re"] = "auto"
    scanner: Literal["none", "kingfisher"] = "none"


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A text that may be stored, and what was taken out of it.

    ``redactions``: secrets by kind. ``removed``: "nul" and "surrogate" count characters, "private" counts blocks.
    """

    text: Clean
    redactions: Mapping[str, int]
    removed: Mapping[str, int]


class Redactor:
    """Cleans text. ``key`` (any bytes, kept with the store) makes equal secrets recognisable and not guessable.

    Raises ``ConfigError`` for an engine or a scanner that is not installed, or a pattern that does not compile. Safe
    to share between threads.
    """

    def __init__(self, key: bytes, options: RedactOptions | None = None) -> None:
        options = options or RedactOptions()
        self._key = key
        engine = _engine(options.engine)
        self.engine = engine.name
        self._scanner = Scanner(engine.of_bytes, ahead=AHEAD if engine.name == "re" else b"")
        self._extra = tuple(_user_pattern(pattern, engine) for pattern in options.extra_patterns)
        self._second = Kingfisher() if options.scanner == "kingfisher" else None
        self.rules = _rules_in_force(key, options)
        """What a text is cleaned by, as a short text that is another one under other rules, patterns or scanners."""

    def clean(self, text: str) -> Cleaned:
        """The text without secrets. Lines keep their numbers. Cleaning a clean text changes nothing.

        Raises ``RedactionError`` if anything at all goes wrong: a text is never handed back unchecked.
        """
        try:
            return self._clean(text)
        except Exception as failure:  # noqa: BLE001 - fails closed: whatever broke, the text is not stored
            name = type(failure).__name__
        # Raised outside the handler, so that no chained exception carries the text into a log.
        raise RedactionError(
            f"A text of {len(text)} characters could not be checked for secrets ({name}), so it was not stored.",
            "Run `grounded-mcp doctor`; if it repeats, report the name of the error and how the text came about.",
        )

    def _clean(self, text: str) -> Cleaned:
        removed: dict[str, int] = {}
        if "\0" in text:
            removed["nul"] = text.count("\0")
            text = text.replace("\0", "")
        text, blocks = _without_private(text) if "<" in text else (text, 0)
        try:
            raw = text.encode()
        except UnicodeEncodeError:
            text, removed["surrogate"] = _LONE_SURROGATE.subn("\ufffd", text)
            raw = text.encode()
        if blocks:
            removed["private"] = blocks
        if b"\r\n" in raw:
            *lines, last = raw.split(b"\n")
            raw = b"\n".join([*(line.rstrip(b"\r") for line in lines), last])
        redactions: Counter[str] = Counter()
        text = self._without_secrets(raw, redactions)
        for pattern in self._extra:
            text = self._without_matches(pattern, text, redactions)
        if self._second is not None:
            text = self._without_spans(self._second, text.encode(), redactions)
        return Cleaned(Clean(text), dict(redactions), removed)

    def _without_secrets(self, raw: bytes, redactions: Counter[str]) -> str:
        """What a secret hid, another pass finds ("x]TOKEN=..."): it is done until nothing is found."""
        while spans := self._scanner.spans(raw):
            parts, at = [], 0
            for span in spans:
                redactions[span.kind] += 1
                parts += [raw[at : span.start], self._placeholder(span.kind, raw[span.start : span.end])]
                at = span.end
            raw = b"".join([*parts, raw[at:]])
        return raw.decode()

    def _without_matches(self, pattern: re.Pattern[str], text: str, redactions: Counter[str]) -> str:
        """Without what a user's own pattern matches, between the placeholders that are there already."""
        parts = _AT_PLACEHOLDERS.split(text)
        for index in range(0, len(parts), 2):
            part, pieces, at = parts[index], [], 0
            for match in pattern.finditer(part):
                if match.end() > match.start():
                    redactions["custom"] += 1
                    pieces += [part[at : match.start()], self._placeholder("custom", match.group().encode()).decode()]
                    at = match.end()
            parts[index] = "".join([*pieces, part[at:]])
        return "".join(parts)

    def _without_spans(self, scanner: Kingfisher, raw: bytes, redactions: Counter[str]) -> str:
        """Without what a second scanner finds, where nothing was redacted yet."""
        known = [match.span() for match in PLACEHOLDER.finditer(raw)]
        parts, at = [], 0
        for start, end in scanner.spans(raw):
            if any(start < stop and begin < end for begin, stop in known):
                continue
            redactions["kingfisher"] += 1
            parts += [raw[at:start], self._placeholder("kingfisher", raw[start:end])]
            at = end
        return b"".join([*parts, raw[at:]]).decode()

    def _placeholder(self, kind: str, secret: bytes) -> bytes:
        """What stands for a secret: its kind, four hex digits that equal secrets share, and its line breaks."""
        mark = hmac.digest(self._key, secret, "sha256")[:2].hex()
        return f"[REDACTED:{kind}:{mark}]".encode() + b"\n" * secret.count(b"\n")


def clean_project(project: Project, redactor: Redactor) -> Project:
    """A project as it may be stored: folders, branches and remotes can be named after anything.

    Raises: RedactionError.
    """
    texts = {name: getattr(project, name) for name in ("key", "name", "reason", "root", "branch", "worktree")}
    return replace(project, **{name: redactor.clean(text).text for name, text in texts.items() if text})


def _rules_in_force(key: bytes, options: RedactOptions) -> str:
    """``RULES_VERSION``, and a keyed mark of what the user added: a pattern may be as secret as what it finds."""
    added = (options.extra_patterns, options.scanner)
    if added == ((), "none"):
        return RULES_VERSION
    return f"{RULES_VERSION}+{hmac.digest(key, repr(added).encode(), 'sha256')[:6].hex()}"


def _without_private(text: str) -> tuple[str, int]:
    """Without ``<private>`` blocks, and how many there were. What is left of their lines is the line breaks.

    Dropping a block can join the halves of another tag, so it is done until none is left; a text that takes more
    than ``_PASSES`` was made to, and is cut at its first tag.
    """
    dropped = 0
    for _ in range(_PASSES):
        kept, found = _split_private(text)
        if not found:
            return text, dropped
        text, dropped = kept, dropped + found
    opening = next((tag.start() for tag in _PRIVATE_TAG.finditer(text) if not tag[1]), len(text))
    return text[:opening], dropped + (opening < len(text))


def _split_private(text: str) -> tuple[str, int]:
    """One pass: blocks may be nested; one that is never closed reaches to the end of the text."""
    kept, found, depth, at = [], 0, 0, 0
    for tag in _PRIVATE_TAG.finditer(text):
        if tag[1]:
            if depth == 1:
                kept.append("\n" * text.count("\n", at, tag.end()))
                at = tag.end()
            depth = max(0, depth - 1)
            continue
        if depth == 0:
            kept.append(text[at : tag.start()])
            at, found = tag.start(), found + 1
        depth += 1
    return "".join(kept) + ("" if depth else text[at:]), found


class _Engine(NamedTuple):
    """``of_bytes`` compiles the tables' searches, ``of_text`` the user's patterns; ``error`` is what they raise."""

    name: Literal["re2", "re"]
    of_bytes: Callable[[bytes], Search]
    of_text: Callable[[str], re.Pattern[str]]
    error: type[Exception]


def _engine(wanted: Literal["auto", "re2", "re"]) -> _Engine:
    if wanted != "re":
        try:
            import re2
        except ImportError:
            if wanted == "re2":
                raise ConfigError(
                    "The engine re2 is not installed.",
                    "Run `pip install 'grounded-memory-mcp[re2]'`, or set the engine to auto.",
                ) from None
        else:
            as_bytes, as_text = re2.Options(), re2.Options()
            as_bytes.encoding = re2.Options.Encoding.LATIN1
            as_bytes.log_errors = as_text.log_errors = False
            return _Engine(
                "re2", lambda each: re2.compile(each, as_bytes), lambda each: re2.compile(each, as_text), re2.error
            )
    return _Engine("re", re.compile, re.compile, re.error)


def _user_pattern(pattern: str, engine: _Engine) -> re.Pattern[str]:
    try:
        return engine.of_text(pattern)
    except engine.error as failure:
        raise ConfigError(
            f"The pattern {pattern!r} cannot be used by {engine.name}: {failure}",
            "Correct it in extra_patterns, or remove it.",
        ) from failure
