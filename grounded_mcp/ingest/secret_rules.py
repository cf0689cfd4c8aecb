"""Secrets that are known by what stands before them: headers, URLs, flags, commands, files. Pure tables.

``secret_spans`` searches with them. Names of values ("password = x") are the business of ``secret_assign``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, fields

from grounded_mcp.ingest.secret_values import (
    PLACEHOLDER_WORDS,
    is_basic_login,
    is_placeholder,
    is_random,
    is_strong,
    is_weak,
)
from grounded_mcp.ingest.secret_vendors import ID_WORDS, SECRET_WORDS, SHAPES, VENDORS, Shape, Vendor

Judge = Callable[[bytes], bool]

# Raise this when the code around the tables finds other secrets than before.
_REVISION = 3


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern that begins with one of ``anchors`` (lower case) and is matched on the lower-cased text.

    Each group that took part is a secret if ``judge`` agrees. ``near``: one of these words must stand shortly
    before. ``back``: the secret began before the anchor, in these bytes. Repetitions that can fail are bounded, so
    that a text full of anchors costs linear time.
    """

    kind: str
    anchors: tuple[bytes, ...]
    pattern: re.Pattern[bytes]
    judge: Judge
    near: tuple[bytes, ...] = ()
    back: bytes = b""


def _literal(value: bytes) -> bool:
    return len(value) >= 3 and (not is_placeholder(value) or is_weak(value))


def _typed(value: bytes) -> bool:
    """A password as typed on a command line: not a flag, a number, a variable, a path or a short word."""
    word = value.isalpha() and value.islower() and len(value) < 8
    return _literal(value) and not word and not value.isdigit() and value[:1] not in b"-$/{~"


def _striking(value: bytes) -> bool:
    return is_strong(value) and not is_placeholder(value)


def _token(value: bytes) -> bool:
    return is_random(value) and not is_placeholder(value)


def _header(value: bytes) -> bool:
    return is_basic_login(value) or (is_random(value, 12) and not is_placeholder(value))


def _hex32(value: bytes) -> bool:
    return re.fullmatch(rb"[0-9a-f]{32}", value) is not None


def _base32(value: bytes) -> bool:
    return re.fullmatch(rb"[A-Z2-7]{16,}=*", value) is not None and any(digit in value for digit in b"234567")


_NAME_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
_URL_BYTES = _NAME_BYTES + b".:/"
# In the patterns: <Q> is an opening quote at any depth of JSON escaping, <W> the word of a command line it opens.
_Q = rb"\\*[\"']?"
_W = rb"([^\s\"'\\;|&`]{3,256})"


def _rule(
    kind: str,
    anchors: tuple[bytes, ...],
    pattern: bytes,
    judge: Judge = _literal,
    near: tuple[bytes, ...] = (),
    back: bytes = b"",
) -> Rule:
    return Rule(kind, anchors, re.compile(pattern.replace(b"<Q>", _Q).replace(b"<W>", _W)), judge, near, back)


_HEADERS_AND_URLS = (
    _rule(
        "authorization",
        (b"authorization",),
        rb"authorization<Q>\]?\s{0,4}[:=,]\s{0,4}<Q>(?:[a-z][a-z0-9-]{1,20}[ \t]{1,4})?([^\s\"'\\,;<>`]{8,})",
        _header,
    ),
    _rule("authorization", (b"bearer",), rb"bearer[\s:=]{1,4}<Q>([a-z0-9._~+/=|-]{12,})", _header),
    _rule("authorization", (b"basic",), rb"basic {1,4}([a-z0-9+/=_-]{8,})", is_basic_login),
    _rule("signature", (b"sig=", b"signature="), rb"sig(?:nature)?=([a-z0-9%+/=_-]{20,})", _token),
    _rule("totp_secret", (b"secret=",), rb"secret=([a-z2-7]{16,}=*)", _base32),
    _rule(
        "url_password",
        (b"://",),
        rb"://[^\s/@:?#\"'<>\\`]{0,128}:((?![0-9]{1,5}[/?#])[^\s/\"'<>\\`]{1,256})@[a-z0-9\[$%{(]",
    ),
    _rule("url_password", (b"://",), rb"://([^\s/@:?#\"'<>\\`]{16,256})@", _token),
    _rule("url_password", (b"@tcp(", b"@unix("), rb"()@", _typed, back=_NAME_BYTES + b"!#$%^&*+=~?./"),
    _rule("url_password", (b":thin",), rb":thin:[^\s/]{1,64}/([^\s@\"'\\]{3,128})@"),
    _rule(
        "webhook",
        (b"://hooks", b"://discord", b"://canary.discord", b"://ptb.discord"),
        rb"(://(?:hooks\.[a-z0-9.-]{1,60}/[a-z]|[a-z.]{0,8}discord(?:app)?\.com/api/webhooks/)[a-z0-9/_-]{20,})",
        back=_NAME_BYTES,
    ),
    _rule("webhook", (b".webhook.office.com",), rb"(\.webhook\.office\.com/[^\s\"'<>\\]{40,})", back=_URL_BYTES),
)

_COMMANDS = (
    _rule("password", (b" -p", b"\t-p"), rb"\s-p<Q><W>", _typed, (b"mysql", b"mariadb", b"7z ", b"sshpass")),
    _rule(
        "password",
        (b" -p",),
        rb" -p {1,3}<Q><W>",
        _typed,
        (b" login", b"sshpass", b"mongo", b"twine", b"sqlcmd", b"ssh-keygen"),
    ),
    _rule(
        "password",
        (b" -u", b" --user", b" --proxy-user"),
        rb" -(?:u|-user|-proxy-user)[ =]{0,3}<Q>[^\s:\"'\\]{1,64}:<W>",
        _typed,
        (b"curl", b"wget", b"http", b"lftp"),
    ),
    _rule("password", (b" -u",), rb" -u[ =]?<Q>[^\s%\"'\\]{1,64}%<W>", _typed, (b"smb", b"rpcclient")),
    _rule("password", (b" -a",), rb" -a {1,3}<Q><W>", _typed, (b"redis-cli",)),
    _rule("password", (b" -a",), rb" -a {1,3}<Q>[^\s:\"'\\]{1,64}:<W>", _typed, (b"http ", b"https ")),
    _rule("token", (b"login",), rb"login {1,3}<Q>([a-z0-9_.-]{20,256})", _token),
    _rule("password", (b"zip",), rb"zip(?: -[a-z0-9]{1,4}){0,4} -p {1,3}<Q><W>", _typed),
    _rule("password", (b" -n",), rb" -n {1,3}<Q><W>", _typed, (b"ssh-keygen",)),
    _rule("password", (b" -w",), rb" -w {1,3}<Q><W>", _typed, (b"ldap",)),
    _rule("password", (b" /p",), rb" /p:<Q><W>", _typed, (b"freerdp", b"rdesktop")),
    _rule("password", (b" pass",), rb" pass:<W>", _typed, (b"openssl",)),
    _rule("password", (b"net user",), rb"net user [^\s/]{1,64} <Q><W>", _typed),
    _rule("password", (b" /user",), rb" /user:\S{1,64} {1,3}<Q><W>", _typed, (b"net use",)),
    _rule("password", (b"convertto-secure",), rb"convertto-securestring(?: -string)? {1,3}<Q><W>", _typed),
    _rule("password", (b"http-basic",), rb"http-basic\.\S{1,64} \S{1,64} <Q><W>", _typed),
    _rule("password", (b"send",), rb"send (?:-- )?\\*[\"']([^\"'\\\n]{3,128})\\+\r", _literal, (b"assword",)),
    _rule(
        "secret",
        (b"alias set", b"host add"),
        rb"(?:alias set|host add) \S{1,64} \S{1,128} \S{1,64} <Q><W>",
        _typed,
        (b"mc ",),
    ),
    _rule(
        "token",
        (b"-stdin", b"-token", b"chpasswd"),
        rb"(?:-stdin|-token|chpasswd) {0,3}<<< {0,3}<Q>(?:[a-z0-9_-]{1,32}:)?<W>",
        _typed,
    ),
    _rule("password", (b"htpasswd",), rb"htpasswd (?:-[a-z]{1,6} ){1,3}\S{1,128} \S{1,64} <Q><W>", _typed),
    _rule("password", (b"sqlplus",), rb"sqlplus (?:-[a-z]{1,9} ){0,4}[^\s/]{1,64}/<Q>([^\s@\"'\\]{3,128})", _typed),
    _rule(
        "password",
        (b"echo",),
        rb"echo {1,3}(?:-n )?<Q>(?:[a-z0-9_-]{1,32}:)?<W><Q> {0,3}\| {0,3}(?:sudo )?"
        rb"(?:docker login|podman login|helm registry|chpasswd|passwd|sudo -s|gh auth|oc login)",
        _typed,
    ),
    _rule(
        "password",
        (b"identified",),
        rb"identified {1,3}(?:with {1,3}[a-z0-9_]{1,40} {1,3})?by {1,3}(?:password )?\\*[\"']([^\"'\\\n]{3,128})",
    ),
    _rule("password", (b" password",), rb" password '([^'\\\n]{3,128})'", _literal, (b"user ", b"role ")),
)

_FILES_AND_CODE = (
    _rule("netrc", (b"login",), rb"login\s{1,8}\S{1,64}\s{1,8}password\s{1,8}([^\s\"'\\]{3,256})"),
    _rule(
        "pgpass",
        (b":5432", b":5433", b":6432"),
        rb":[0-9]{4}:[^:\s]{1,64}:[^:\s]{1,64}:([^:\s\"'\\]{4,128})",
        _typed,
    ),
    _rule(
        "cookie",
        (b"\ttrue", b"\tfalse"),
        rb"\t(?:true|false)\\{0,8}\t[0-9]{1,20}\\{0,8}\t[^\t\n\\]{1,64}\\{0,8}\t([^\s\\]{8,4096})",
        _header,
    ),
    _rule("jwk", (b'"d', b'"k'), rb"\"[dk]\\*\"\s{0,4}:\s{0,4}\\*\"([a-z0-9_-]{40,})", _token),
    _rule("rsa_exponent", (b"<d>",), rb"<d>\s{0,40}([a-z0-9+/=]{40,})", _token),
    _rule(
        "password",
        (b"basicauth(", b"login(", b"auth(", b"auth=(", b"authenticate(", b"credentials(", b"credential(", b"signin("),
        rb"[a-z]{4,12}=?\(\s{0,8}[\"'][^\s\"']{1,64}[\"'], {0,2}[\"']([^\s\"'\\]{6,256})[\"']",
        _striking,
    ),
    _rule("api_key", (b"client(", b"api(", b"sdk(", b"login("), rb"[a-z]{3,6}\([\"']([a-z0-9_-]{24,256})[\"']", _token),
)

# Vendors' tokens whose fixed part stands in the middle or at the end.
_TOKENS = (
    _rule("terraform_token", (b".atlasv1",), rb"(\.atlasv1\.[a-z0-9_-]{40,})", back=_NAME_BYTES),
    _rule("telegram_token", (b":aa",), rb":(aa[a-z0-9_-]{32,})", _token),
    _rule("firebase_key", (b":apa91b",), rb":(apa91b[a-z0-9_-]{60,})", _token),
    _rule("salesforce_token", (b"!aq", b"!ar"), rb"!(a[qr][a-z0-9_.]{60,})", _token),
    _rule("mailchimp_key", (b"-us",), rb"()-us[0-9]{1,2}", _hex32, back=b"0123456789abcdef"),
    _rule("azure_secret", (b"q~",), rb"(q~[a-z0-9_~.-]{31,34})", back=_NAME_BYTES + b".~"),
    _rule("maxmind_key", (b"_mmk",), rb"()_mmk", _token, back=_NAME_BYTES),
)

RULES = (*_HEADERS_AND_URLS, *_COMMANDS, *_FILES_AND_CODE, *_TOKENS)


def _described(row: Vendor | Rule | Shape) -> tuple[object, ...]:
    """A row as text that is the same in every process."""
    values = [getattr(row, field.name) for field in fields(row)]
    return tuple(
        value.pattern if isinstance(value, re.Pattern) else getattr(value, "__name__", value) for value in values
    )


def rules_version(*more: object) -> str:
    """Twelve hex digits of SHA-256 over every table, so that a store knows which rules its texts went through."""
    rows = [_described(row) for table in (VENDORS, RULES, SHAPES) for row in table]
    words = [sorted(table) for table in (SECRET_WORDS, ID_WORDS, PLACEHOLDER_WORDS)]
    return hashlib.sha256(repr((_REVISION, rows, words, more)).encode()).hexdigest()[:12]
