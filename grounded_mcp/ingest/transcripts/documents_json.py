"""A session kept as one JSON document: loaded whole, up to a size, and safe to look into whatever it holds.

For formats that rewrite their file on every save, so that there is no place to read on from. Knows no agent's format.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grounded_mcp.ingest.transcripts.finding import own
from grounded_mcp.ingest.transcripts.lines import open_plain
from grounded_mcp.ingest.transcripts.turns import Tally

MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
"""A parsed document takes about four times its size in memory."""
MAX_BESIDE_BYTES = 8 * 1024 * 1024


def load(path: Path, tally: Tally, limit: int = MAX_DOCUMENT_BYTES) -> object:
    """The document, or None, with the reason counted in ``tally``, for one that is too long or no JSON.

    A file cut off while it was written is no JSON; it is read again when its stamp changes. Raises: OSError.
    """
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        raw = file.read(limit + 1) if size <= limit else b""
    tally.end = size
    if size > limit or len(raw) > limit:
        tally.seen += 1
        tally.skip("longer than the limit", "byte 0")
        return None
    found = _parsed(raw)
    if found is None and raw.strip():
        tally.seen += 1
        tally.skip("not a JSON object", "byte 0")
    return found


def beside(path: Path) -> object:
    """A small JSON file that lies beside a transcript and describes it, or None: it may be missing or anything."""
    raw = plain_bytes(path)
    return None if raw is None else _parsed(raw)


def plain_bytes(path: Path, limit: int = MAX_BESIDE_BYTES) -> bytes | None:
    """The contents of a regular file of the current user, or None. Links are not followed."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or not own(status) or status.st_size > limit:
            return None
        with open_plain(path) as file:
            return file.read(limit)
    except (OSError, ValueError):  # ValueError: a name with a null character
        return None


def _parsed(raw: bytes) -> object:
    try:
        return json.loads(raw.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None


def mapping(value: object) -> Mapping[str, Any]:
    """``value`` where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The objects of an array, or none."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text(value: object) -> str:
    """``value`` where it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def said(parts: list[str]) -> str:
    """Pieces of one message as one text; blank ones are left out."""
    return "\n".join(part for part in parts if part.strip())
