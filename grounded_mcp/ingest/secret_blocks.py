"""Secrets that are more than one word: private keys, cookie headers, and what base64 hides.

A key may be whole, cut off at either end or both, numbered by a file viewer, quoted, indented, or one line of
escaped JSON. Works on the view that ``secret_view`` makes, in which an escaped newline is a newline.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator

from grounded_mcp.ingest.secret_values import is_placeholder, is_random

_BEGIN = re.compile(rb"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_PUTTY = re.compile(rb"Private-Lines: ?[0-9]{1,4}")
_END_MARK = rb"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
_END = re.compile(_END_MARK)
_BAR = rb"\xe2\x94[\x82\x83]"
_EOL = rb"(?:[ \t\"'+,|]|%b){0,8}(?:\\{0,8}\r)?\\{0,8}\n" % _BAR
# What viewers, searches, diffs, comments and literals put before a line: "    12→", "a.pem:12:", "+", "> ", "# ", '"'.
_GUTTER = (
    rb"(?:[A-Za-z0-9_./~-]{1,100}[:-][0-9]{1,6}[:-])?[ \t]{0,16}(?:[0-9]{1,6}(?:\xe2\x86\x92|[|:\t]|[ ]{1,4}))?"
    rb"(?:[ \t>|+#*\"'-]|%b){0,16}" % _BAR
)
_LINE = re.compile(
    rb"(?:%b){1,3}%b(?:[A-Za-z0-9+/]{12,}={0,2}|=[A-Za-z0-9+/]{4}"
    rb"|(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): ?[^\r\n\\]{0,100})|[ \t]{0,4}[A-Za-z0-9+/]{40,}={0,2}"
    % (_EOL, _GUTTER)
)
_LAST = re.compile(
    rb"(?:(?:%b)%b[A-Za-z0-9+/=]{1,80})?(?:(?:%b){1,3}%b|[ \t]{0,4})%b" % (_EOL, _GUTTER, _EOL, _GUTTER, _END_MARK)
)
_BODY_LINE = re.compile(rb"%b[A-Za-z0-9+/]{16,80}={0,2}(?:[ \t\"'+,|\\]|%b){0,8}\r?" % (_GUTTER, _BAR))
_NO_LINE = re.compile(rb"[ \t\"'+,|\\]{0,16}\r?")
# How a key begins in base64: PKCS#1 and PKCS#8 for RSA (a sequence with the integer 0), SEC 1, PKCS#8 for elliptic
# curves and for Ed25519, and OpenSSH's own format.
BARE_KEYS = (b"MII", b"MHcCAQEEI", b"MIGHAgEAMBMGByqGSM49", b"MC4CAQAwBQYDK2VwBCIEI", b"b3BlbnNzaC1rZXktdjEA")
_BARE = re.compile(
    rb"(?:MII[A-J][A-Za-z0-9+/][AQgw]IBA(?:AK[BC]|DAN)|%b)[A-Za-z0-9+/]{20,}={0,2}" % b"|".join(BARE_KEYS[1:])
)
_BASE64 = re.compile(rb"[A-Za-z0-9+/]{32,}")
_BASE64_LINE = re.compile(rb"%b%b([A-Za-z0-9+/]{4,80})(?=={0,2}(?:%b|$))" % (_EOL, _GUTTER, _EOL))
_PADDING = re.compile(rb"={0,2}")
_READABLE = re.compile(rb"[\t\n\r -~]*")
_PROBE = 32
_WIDTHS = (60, 76)
"""How wide programs make lines of base64: 60 to 76 characters."""
_COOKIES = re.compile(rb"(?:cookies?2?\\*[\"']?[ \t]{0,4}[:=][ \t]{0,4}| -b {1,3})\\*[\"']?")
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
        body = _BODY_LINE.fullmatch(line)
        if body is None and _NO_LINE.fullmatch(line) is None:
            break
        start, found = start - len(line) - 1, found + (body is not None)
    return (start, mark.end()) if found else None


def bare(view: bytes, at: int) -> int | None:
    """The end of the private key without a heading that begins at ``at``, its further lines included."""
    first = _BARE.match(view, at)
    if first is None:
        return None
    end = first.end()
    while line := _LINE.match(view, end):
        end = line.end()
    return end


def encoded(view: bytes, at: int) -> tuple[int, bytes]:
    """The end of the base64 at ``at``, over as many lines as it has, and the text in it; empty if it is no text."""
    first = _BASE64.match(view, at)
    if first is None or not _READABLE.fullmatch(_decoded(first[0][:_PROBE])):
        return at, b""
    lines, width, end = [first[0]], len(first[0]), first.end()
    more = _BASE64_LINE.match(view, end) if _WIDTHS[0] <= width <= _WIDTHS[1] else None
    while more is not None and len(more[1]) <= width:
        lines.append(more[1])
        end = more.end()
        more = _BASE64_LINE.match(view, end) if len(more[1]) == width else None
    padding = _PADDING.match(view, end)
    text = _decoded(b"".join(lines))
    return padding.end() if padding else end, text if text.isascii() else b""


def _decoded(base64: bytes) -> bytes:
    """What is in a piece of base64, as far as it is whole groups of four."""
    return binascii.a2b_base64(base64[: len(base64) & ~3])


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
