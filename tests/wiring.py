"""A way to the tests' Postgres server that can be cut and mended: the network between two machines, on one."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

import postgres_server


@contextmanager
def wired() -> Iterator[Wire]:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        parts = urlsplit(postgres_server.url())
        user = parts.netloc.rpartition("@")[0].rstrip(":") or "postgres"
        wire = Wire(listener, f"postgresql://{user}@127.0.0.1:{listener.getsockname()[1]}{parts.path}")
        threading.Thread(target=wire.serve, daemon=True).start()
        yield wire
        wire.cut()
        for pair in wire.pairs:
            for end in pair:
                end.close()


@dataclass
class Wire:
    """A way to the server that can be cut and mended."""

    listener: socket.socket
    url: str
    pairs: list[tuple[socket.socket, socket.socket]] = field(default_factory=list)
    whole: bool = True

    def cut(self) -> None:
        self.whole = False
        for pair in self.pairs:
            for end in pair:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                ours, _ = self.listener.accept()
                if not self.whole:
                    ours.close()
                    continue
                theirs = reach()
                self.pairs.append((ours, theirs))
                for one, other in ((ours, theirs), (theirs, ours)):
                    threading.Thread(target=pump, args=(one, other), daemon=True).start()


def reach() -> socket.socket:
    parts = urlsplit(postgres_server.url())
    folder = parse_qs(parts.query).get("host", [""])[0]
    if folder:
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{folder}/.s.PGSQL.{parts.port or 5432}")
        return server
    return socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 5432))


def pump(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(65_536):
            other.sendall(data)
    for end in (one, other):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
