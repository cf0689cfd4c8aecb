"""The server's knobs, beside their readers in this folder. Light: imports nothing, so that config can load it.

Knows nothing about where the values come from (``[server]`` in config.toml) or about MCP.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """``[server]``. Sizes are bytes, times are seconds.

    ``token`` is asked of every HTTP request but the health check when it is set, and opens everything; a store's named
    tokens open what each was made for. One of either must be there to leave loopback; then ``allowed_hosts`` must name
    the Host headers that are answered ("memory.example:8765").
    ``max_line_bytes`` bounds one request on stdio, ``max_body_bytes`` one over HTTP (the MCP SDK's own limit is
    also 4 MiB). ``max_reply_bytes`` bounds a tool's answer: text and structured half together, as UTF-8 JSON.
    ``grace_seconds`` is what calls in flight get once the client is gone; closing the store gets one second more.
    ``max_sessions`` and ``session_idle_seconds`` bound the sessions of streamable HTTP and SSE;
    ``max_connections`` bounds open sockets; a request head or body slower than ``request_seconds`` is dropped.
    ``requests_per_minute`` and ``requests_at_once`` bound each named token's; more are answered 429.
    ``log_level`` "debug" is the one setting under which logs may quote memory text.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    token: str = ""
    allowed_hosts: tuple[str, ...] = ()
    max_line_bytes: int = 8 * 1024 * 1024
    max_body_bytes: int = 4 * 1024 * 1024
    max_reply_bytes: int = 48_000
    grace_seconds: float = 2.0
    max_sessions: int = 1_000
    session_idle_seconds: float = 1_800.0
    max_connections: int = 2_000
    request_seconds: float = 10.0
    requests_per_minute: int = 600
    requests_at_once: int = 16
    log_level: str = "info"
