"""Which folder a Gemini CLI session was in. Its records do not say, but they carry the SHA-256 of the folder's path.

So a path that is known, or that the conversation speaks of, can be proved to be the one. What lies beside the session
comes first: ``.project_root`` in the project's folder, then the registry ``projects.json``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from grounded_mcp.ingest.transcripts.documents_json import beside, mapping, plain_bytes, text

MAX_TRIED = 20_000
"""Paths that are hashed to find one session's folder: some 30 ms."""
MAX_SEARCHED = 20_000_000
"""Characters of a session that are searched for paths: about a second. The folder is usually spoken of early."""

_PATH = re.compile(r"""(?:[/\\][^/\\\s:*?"'<>|,;()\[\]{}`]+)+""")
_DRIVE = re.compile(r"\b[A-Za-z]:")
_MAX_PATH = 1_024


def project_root(transcript: Path, digest: str, said: Iterable[object]) -> str | None:
    """The folder's path, or None. ``digest``: what the session says it is the hash of. ``said``: its records."""
    chats = next((each for each in transcript.parents if each.name == "chats"), transcript.parent)
    project, gemini = chats.parent, chats.parent.parent.parent
    known = list(_known(gemini))
    named = _line(project / ".project_root") or next((path for path, name in known if name == project.name), None)
    if named or not digest:
        return named
    trusted = mapping(beside(gemini / "trustedFolders.json"))
    return _proved(digest, [*(path for path, _ in known), *trusted]) or _proved(digest, _ancestors(_paths(said)))


def _known(gemini: Path) -> Iterator[tuple[str, str]]:
    registry = mapping(mapping(beside(gemini / "projects.json")).get("projects"))
    return ((path, text(name)) for path, name in registry.items())


def _line(path: Path) -> str | None:
    raw = plain_bytes(path, limit=16 * _MAX_PATH)
    return (raw or b"").decode("utf-8-sig", "replace").strip() or None


def _proved(digest: str, paths: Iterable[str]) -> str | None:
    return next((path for path in paths if sha256(path.encode("utf-8", "surrogatepass")).hexdigest() == digest), None)


def _ancestors(paths: Iterable[str]) -> Iterator[str]:
    """Every path and the folders above it, each once, ``MAX_TRIED`` at most."""
    tried: set[str] = set()
    for path in paths:
        while path and path not in tried:
            if len(tried) >= MAX_TRIED:
                return
            tried.add(path)
            yield path
            path = path[: max(path.rfind("/"), path.rfind("\\"), 0)]


def _paths(said: Iterable[object]) -> Iterator[str]:
    """The absolute paths that records speak of, wherever in a record they stand."""
    left = MAX_SEARCHED
    for words in (words for record in said for words in _strings(record)):
        left -= len(words)
        if left < 0:
            return
        if words.startswith("/") and len(words) < _MAX_PATH:
            yield words.rstrip("/")  # one that holds blanks
        for found in _PATH.finditer(words) if "/" in words or "\\" in words else ():
            start = found.start()
            drive = words[start - 2 : start] if _DRIVE.match(words, max(start - 2, 0), start) else ""
            if len(found[0]) < _MAX_PATH:
                yield drive + found[0]


def _strings(record: object) -> Iterator[str]:
    waiting = [record]  # records may be nested deeper than functions may
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
