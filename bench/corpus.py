"""Real text that every machine has: the standard library's own source, as a project of documents."""

from __future__ import annotations

import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path

STDLIB = Path(sysconfig.get_paths()["stdlib"])
QUERIES = (
    "how is a zip archive written to disk",
    "parse command line arguments with subcommands",
    "TimedRotatingFileHandler backupCount",
    "cancel a running asyncio task",
    "what happens when a socket times out",
    "convert a datetime to ISO format",
    "http.client HTTPSConnection certificate verification",
    "recursive directory walk following links",
    "read a configuration file with sections",
    "ThreadPoolExecutor max_workers default",
    "escape special characters in a regular expression",
    "unittest mock patch decorator order",
    "json decoder raises on invalid control character",
    "weak references and finalizers",
    "decimal rounding mode ROUND_HALF_EVEN",
    "os.path.join",
    "how are dataclass fields ordered",
    "compare two sequences and print the differences",
    "sqlite3 connection isolation_level",
    "smtplib starttls context",
)


def files(limit: int) -> Iterator[Path]:
    """At most ``limit`` source files of the standard library, tests left out, in a fixed order."""
    found = (path for path in sorted(STDLIB.rglob("*.py")) if not {"test", "tests", "site-packages"} & set(path.parts))
    for _, path in zip(range(limit), found, strict=False):
        yield path


def copy_to(folder: Path, limit: int) -> int:
    """Copy files into a project folder; returns their size in bytes."""
    size = 0
    for path in files(limit):
        target = folder / path.relative_to(STDLIB)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        size += target.stat().st_size
    return size
