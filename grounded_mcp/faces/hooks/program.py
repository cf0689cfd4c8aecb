"""``grounded-mcp hook EVENT --client NAME``: what an agent is told at its own events, in that agent's own words.

It runs inside somebody's session, so that it never fails it: whatever goes wrong, the exit code is 0, stdout holds an
answer of the client's dialect or nothing, and it is over within ``[hooks] deadline_s``. It makes no store, and writes
nowhere but in the data directory.
"""

from __future__ import annotations

import json
import os
import time
from _thread import start_new_thread
from collections.abc import Callable, Sequence
from typing import NoReturn

from grounded_mcp.faces.hooks import dialects
from grounded_mcp.home import find

MAX_BYTES = 8 * 1_048_576
"""Of what a client sends; more is not read, and then it is no JSON."""
DEADLINE_S = 0.9
"""Until the settings are known, and where they say nothing else."""
WRITING_S = 5.0
"""What a client that is slow to read its hook's answer gets beyond that."""
USAGE = "usage: grounded-mcp hook EVENT --client NAME [--home DIR]"

Extend = Callable[[float], None]


def main(argv: Sequence[str]) -> NoReturn:
    """Answer one event. The process ends here, with 0, and without the interpreter's own clearing up."""
    began, extend = time.monotonic(), _watch()
    data = b""
    try:
        data = respond(argv, _sent, lambda seconds: extend(began + seconds - time.monotonic()))
        extend(WRITING_S)
        while data:
            data = data[os.write(1, data) :]
    except BaseException as error:  # noqa: BLE001 - the boundary to somebody else's session
        _complain(f"{type(error).__name__}: {error}")
    os._exit(0)


def respond(argv: Sequence[str], read: Callable[[], bytes], extend: Extend = lambda _: None) -> bytes:
    """What the client is to read. Raises: GroundedError, OSError, ValueError for a request that cannot be answered."""
    event, client, home = _arguments(argv)
    kind, dialect = dialects.kind_of(event), dialects.DIALECTS.get(client)
    if dialect is None:
        raise ValueError(f"there is no client {client!r}; known are {', '.join(dialects.NAMES)}. {USAGE}")
    if kind is None:
        return b""
    sent = _read(read)
    if sent is None:
        return dialect.silence.get(kind, "").encode()
    dialect = dialects.dialect_of(client, sent) or dialect
    from grounded_mcp.faces.hooks.events import Call, context  # after what can be refused without it

    try:
        told = context(Call(kind, dialect, sent, find(home)), time.time(), extend)
    except Exception as error:  # noqa: BLE001 - a client that wants JSON gets it all the same
        _complain(f"{type(error).__name__}: {error}")
        told = ""
    made = dialects.answer(dialect, kind, told)
    text = dialect.silence.get(kind, "") if made is None else json.dumps(made, ensure_ascii=False)
    return text.encode("utf-8", "replace")


def _arguments(argv: Sequence[str]) -> tuple[str, str, str | None]:
    """EVENT and the values of ``--client`` and ``--home``; anything else is passed over."""
    words, named = list(argv), {"--client": "", "--home": ""}
    event = ""
    while words:
        word = words.pop(0)
        name, given, value = word.partition("=")
        if name in named:
            named[name] = value if given else (words.pop(0) if words else "")
        elif not word.startswith("-"):
            event = event or word
    return event, named["--client"], named["--home"] or None


def _read(read: Callable[[], bytes]) -> dict[str, object] | None:
    """The object that was sent, an empty one where nothing was; None for what is none."""
    data = read()
    try:
        sent = json.loads(data.decode("utf-8-sig", "replace")) if data.strip() else {}
    except (ValueError, RecursionError):
        return None
    return sent if isinstance(sent, dict) else None


def _sent() -> bytes:
    if os.isatty(0):
        return b""
    parts, size = [], 0
    while size <= MAX_BYTES and (part := os.read(0, 1_048_576)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _watch() -> Extend:
    """End the process when its time is up, whatever it waits for. Returns what gives it more time, from now on."""
    until = [time.monotonic() + DEADLINE_S]

    def watch() -> None:
        while (left := until[0] - time.monotonic()) > 0:
            time.sleep(min(left, 0.05))
        os._exit(0)

    def extend(seconds: float) -> None:
        until[0] = time.monotonic() + seconds

    start_new_thread(watch, ())
    return extend


def _complain(text: str) -> None:
    """One line on stderr, which clients show to nobody unless asked."""
    line = " ".join(text.split())[:500]
    try:
        os.write(2, f"grounded-mcp hook: {line}\n".encode("utf-8", "replace"))
    except OSError:
        return
