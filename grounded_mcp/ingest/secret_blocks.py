"""Secrets that are more than one word: armoured private keys and cookie headers.

A key may be whole, cut off at either end, numbered by a file viewer, quoted, indented, or one line of escaped
JSON. Works on the view that ``secret_spans`` makes, in which an escaped newline is a newline.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from grounded_mcp.ingest.secret_values import is_placeholder, is_random

_BEGIN = re.compile(rb"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_PUTTY = re.compile(rb"Private-Lines: ?[0-9]{1,4}")
_END_MARK = rb"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
_END = re.compile(_END_MARK)
_EOL = rb"[ \t\"'+,]{0,8}(?:\\{0,8}\r)?\\{0,8}\n"
# What viewers, diffs, comments and string literals put before a line: "    12→", "+", "> ", "# ", '"'.
_GUTTER = rb"[ \t]{0,16}(?:[0-9]{1,6}(?:\xe2\x86\x92|[|:\t]|[ ]{1,4}))?[ \t>|+#*\"'-]{0,16}"
_LINE = re.compile(
    rb"(?:%b){1,3}%b(?:[A-Za-z0-9+/]{12,}={0,2}|=[A-Za-z0-9+/]{4}"
    rb"|(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): ?[^\r\n\\]{0,100})|[ \t]{0,4}[A-Za-z0-9+/]{40,}={0,2}"
    % (_EOL, _GUTTER)
)
_LAST = re.compile(
    rb"(?:(?:%b)%b[A-Za-z0-9+/=]{1,80})?(?:(?:%b){1,3}%b|[ \t]{0,4})%b" % (_EOL, _GUTTER, _EOL, _GUTTER, _END_MARK)
)
_BODY_LINE = re.compile(rb"%b[A-Za-z0-9+/]{16,80}={0,2}[ \t\"'+,\\]{0,8}\r?" % _GUTTER)
_COOKIES = re.compile(rb"cookies?2?\\*[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\*[\"']?")
_COOKIE = re.compile(rb"[ \t]{0,4}([A-Za-z0-9_.-]{1,64})=([^;=\s\"'\\,]{1,4096}={0,2})(;?)")
_SHORTEST, _WINDOW, _MANY = 24, 8192, 64
_SESSION = re.compile(rb"sess|sid|auth|token|jwt|csrf|xsrf|login|remember")


def armored(view: bytes, at: int) -> int | None:
    """The end of the private key whose heading begins at ``at``; None if only the heading is there."""
    heading = _BEGIN.match(view, at) or _PUTTY.match(view, at)
    if heading is None:
        return None
    end = heading.end()
    while line := _LINE.match(view, end):
        end = line.end()
    if end - heading.end() < _SHORTEST:
        return None
    last = _LAST.match(view, end)
    return last.end() if last else end


def beheaded(view: bytes, at: int) -> tuple[int, int] | None:
    """Start and end of the private key that ends with the mark at ``at``, when its beginning was cut off."""
    mark = _END.match(view, at)
    if mark is None:
        return None
    window = view[max(0, at - _WINDOW) : at]
    lines = window.split(b"\n")
    start, found = at - len(lines.pop()), 0
    for line in reversed(lines):
        if _BODY_LINE.fullmatch(line) is None:
            break
        start, found = start - len(line) - 1, found + 1
    return (start, mark.end()) if found else None


def cookies(view: bytes, lower: bytes, at: int) -> Iterator[tuple[int, int]]:
    """The values in the cookie header at ``at`` that look random or whose name says "session"."""
    heading = _COOKIES.match(lower, at)
    pair = _COOKIE.match(view, heading.end()) if heading else None
    for _ in range(_MANY):
        if pair is None:
            return
        value, session = pair[2], _SESSION.search(pair[1].lower())
        if (is_random(value) or (session and is_random(value, 8))) and not is_placeholder(value):
            yield pair.span(2)
        pair = _COOKIE.match(view, pair.end()) if pair[3] else None
