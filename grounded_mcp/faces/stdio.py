"""MCP over stdin and stdout: one JSON-RPC message per line, UTF-8, every unreadable line answered.

The SDK's own stdio transport drops unreadable lines and batches without a word, has no limit on a line, and
writes from the thread pool that runs the tools. Knows nothing about tools; reads in a thread of its own, so
that the end of input is noticed while the event loop or a tool is busy.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import mcp_types as types
from anyio.from_thread import BlockingPortal
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from grounded_mcp.faces.lifetime import Lifetime
from grounded_mcp.faces.replies import clean, encoded
from grounded_mcp.faces.wire import Oversized, Wire, find_id, lines

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream
    from mcp.server.lowlevel import Server

_END = 1_024
"""Bytes at either end of a line that is no JSON in which its id is looked for."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that is no message, with the error that answers it (JSON-RPC 2.0, section 5.1)."""

    reply: types.JSONRPCError


class Pending:
    """Requests that were read and not answered yet: what the end of input waits for, within the grace."""

    def __init__(self) -> None:
        self._ids: set[object] = set()
        self._changed = threading.Condition()

    def note(self, message: types.JSONRPCMessage) -> None:
        """Count a request in; count it out with its answer, or when the client cancels it."""
        with self._changed:
            match message:
                case types.JSONRPCRequest(id=number):
                    self._ids.add(number)
                case types.JSONRPCNotification(method="notifications/cancelled", params={"requestId": number}):
                    self._ids.discard(number if isinstance(number, str | int) else None)
                case types.JSONRPCResponse(id=number) | types.JSONRPCError(id=number):
                    self._ids.discard(number)
                case _:
                    return
            self._changed.notify_all()

    def wait(self, seconds: float) -> bool:
        """Whether everything was answered within ``seconds``."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._ids, timeout=seconds)


def read_line(line: bytes | Oversized, limit: int) -> types.JSONRPCMessage | Refused:
    """One line as a message, or why it is none. Lone surrogates in it become U+FFFD."""
    if isinstance(line, Oversized):
        told = f"The request has {line.length} bytes; the limit is {limit}."
        return _refused(types.INVALID_REQUEST, told, _found_id(line.head, line.tail))
    try:
        value = json.loads(line.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return _refused(types.PARSE_ERROR, "The line is not JSON.", _found_id(line[:_END], line[-_END:]))
    # NaN stays: the tool that gets it names the argument.
    value = clean(value, numbers=False)
    if isinstance(value, list):
        return _refused(types.INVALID_REQUEST, "Batches are not served: send one message per line.", None)
    if not isinstance(value, dict):
        return _refused(types.INVALID_REQUEST, "A message is a JSON object.", None)
    return _message(value)


def _message(value: dict[str, Any]) -> types.JSONRPCMessage | Refused:
    number = value.get("id")
    usable = number if isinstance(number, str | int) and not isinstance(number, bool) else None
    if "id" in value and "method" in value and usable is None:
        return _refused(types.INVALID_REQUEST, "The id of a request is a string or a whole number.", None)
    try:
        return types.jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        told = 'A message has "jsonrpc": "2.0" and a "method"; its "params" are an object.'
        return _refused(types.INVALID_REQUEST, told, usable)


def _found_id(head: bytes, tail: bytes) -> Any:
    found = find_id(head, tail)
    return json.loads(found.decode("utf-8", "replace")) if found else None


def _refused(code: int, message: str, number: Any) -> Refused:
    return Refused(types.JSONRPCError(jsonrpc="2.0", id=number, error=types.ErrorData(code=code, message=message)))


async def serve(server: Server[Any], wire: Wire, lifetime: Lifetime, max_line_bytes: int) -> None:
    """Serve one client until ``lifetime`` ends the process, as the end of input or a closed stdout make it do."""
    pending = Pending()
    lifetime.drain = pending.wait
    to_server, inbox = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbox, to_client = anyio.create_memory_object_stream[SessionMessage](0)
    async with BlockingPortal() as portal, anyio.create_task_group() as tasks:
        tasks.start_soon(_write_out, wire, to_client, pending, lifetime)

        def take(message: types.JSONRPCMessage | Refused) -> None:
            if isinstance(message, Refused):
                portal.call(outbox.send, SessionMessage(message.reply))
            else:
                pending.note(message)
                portal.call(to_server.send, SessionMessage(message))

        reader = threading.Thread(target=_read_in, args=(wire, take, lifetime, max_line_bytes), daemon=True)
        reader.start()
        await server.run(inbox, outbox, server.create_initialization_options())


def _read_in(
    wire: Wire,
    take: Callable[[types.JSONRPCMessage | Refused], None],
    lifetime: Lifetime,
    max_line_bytes: int,
) -> None:
    """The reading thread. ``take`` blocks until the loop accepted the message, so that memory stays bounded."""
    try:
        for line in lines(wire, max_line_bytes):
            take(read_line(line, max_line_bytes))
    finally:
        lifetime.end("stdin closed")


async def _write_out(
    wire: Wire, to_client: MemoryObjectReceiveStream[SessionMessage], pending: Pending, lifetime: Lifetime
) -> None:
    # A limiter of its own: forty blocked tools fill the default one, and no reply could be written.
    limiter = anyio.CapacityLimiter(1)
    async for item in to_client:
        line = encoded(item.message.model_dump(by_alias=True, exclude_unset=True)) + b"\n"
        try:
            await anyio.to_thread.run_sync(wire.write, line, limiter=limiter, abandon_on_cancel=True)
        except OSError:
            lifetime.end("stdout closed")
        pending.note(item.message)
