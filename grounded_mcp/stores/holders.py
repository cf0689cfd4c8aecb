"""Who holds a lease, whichever the engine: one thread of one process, told from every other on any host.

Knows nothing about leases themselves.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_HAS_PROC = (PROC / "self" / "stat").exists()


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lease: one thread, of one open store, of one process, on one host."""

    host: str
    pid: int
    born: str
    name: str


def this_thread(store: str) -> Holder:
    """The thread that asks. ``store`` tells this open store from others of the process."""
    pid = os.getpid()
    return Holder(_host(), pid, birth(pid), f"{store}-{threading.get_ident()}")


def _host() -> str:
    """The host, and the process namespace within it: a process id means nothing in another one."""
    namespace = ""
    with suppress(OSError):
        namespace = str((PROC / "self" / "ns" / "pid").readlink())
    return f"{socket.gethostname()} {namespace}".strip()


def birth(pid: int) -> str:
    """What tells a process from a later one with the same id; empty when it is gone.

    On Linux the start time, field 22 of proc(5) stat; a zombie is gone. Elsewhere only that it runs.
    """
    if not _HAS_PROC:
        return "running" if _runs(pid) else ""
    try:
        fields = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def _runs(pid: int) -> bool:
    if sys.platform == "win32":  # there os.kill() would end the process
        import ctypes

        kernel = ctypes.windll.kernel32
        handle = kernel.OpenProcess(0x1000, False, pid)  # PROCESS_QUERY_LIMITED_INFORMATION
        if handle:
            kernel.CloseHandle(handle)
        return bool(handle)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
