"""``name = value``: finds the value that belongs to a secret's name, in whatever notation it was written.

Env files, shell, JSON at any depth of escaping, YAML, XML, code, headers, command-line flags, URL parameters,
connection strings and plain sentences. Knows nothing about vendors. A value is taken only if it is none of a
placeholder, a template or an expression; how much it must look like a secret depends on the kind of name.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from grounded_mcp.ingest.secret_values import (
    PIECE,
    is_basic_login,
    is_code,
    is_placeholder,
    is_random,
    is_scattered,
    is_strong,
    is_uuid,
    longest_stretch,
)

Kind = Literal["password", "secret", "token", "key", "api_key", "credential"]
# "line": the value is all that follows. "call" and "loose" are weak signs: password("x"), "token x".
Notation = Literal["plain", "line", "env", "flag", "prose", "loose", "call"]

# Kind -> the names that say it, as they end. Those in ``_GLUABLE`` may follow other letters: "dbpassword".
_NAMES: dict[Kind, str] = {
    "password": "passwords, password, passwort, passwd, passphrase, passcode, pass, pwd, pw, psk, kennwort,"
    " mot de passe, contraseña, contrasena, senha, wachtwoord, пароль, 密码, 密碼, 口令, パスワード, 비밀번호",
    "secret": "secrets, secret",
    "token": "tokens, token, jwt, auth, pat, 令牌, トークン",
    "key": "keys, key, 密钥, 密鑰",
    "credential": "credentials, credential, creds, cred, 凭证, 凭据",
}
KINDS: dict[bytes, Kind] = {name.encode(): kind for kind, names in _NAMES.items() for name in names.split(", ")}
_GLUABLE = frozenset(name for name in KINDS if len(name) >= 5) | {b"pwd"}
# What makes "accountkey" a key and "dbpass" a password, where "monkey" and "bypass" are none.
_GLUE = tuple(
    b"""access account admin api app auth bind bot client db deploy encryption ftp license mail master my mysql
    pg private redis refresh require root secret service session shared signing smtp ssh storage user""".split()
)
# A name that goes on like this describes a secret (its length, its file) and does not hold one.
_DESCRIBES = frozenset(
    b"""algorithm alias arn at attempts attribute bits budget cache callback checksum class column config count
    created date default delimiter description digest dir directory duration encoding endpoint env error exp
    expiration expired expires expiry factory field file filename fingerprint format fn func function generator
    handler hash header help hint id ids idx index info input kind label left len length level limit list
    location manager map mapping max message method min mode name names number object page param parameter
    params path pattern per placeholder policy pool position prefix prompt provider reference ref regex required
    response rotation rule rules salt schema scheme scope seconds service set sha size source spec state status
    store suffix text the time timeout title ttl type types uri url usage used validation validator version
    window""".split()
)
# A key with one of these before it is public, or sorts and finds things.
_NO_SECRET_KEY = frozenset(
    b"""anon cache column config context dedup dedupe dict dist distinct event foreign group hash host hot i18n
    idempotency index item json locale lookup map message object order partition primary property pub public
    publishable recv registry routing row section shortcut sort tag translation unique""".split()
)
ASSIGN_TABLES = (sorted(KINDS.items()), _GLUE, sorted(_DESCRIBES), sorted(_NO_SECRET_KEY))

_NAME_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
_SUFFIX = re.compile(rb"[A-Za-z0-9_.-]{0,40}")
_OPERATOR = re.compile(
    rb"""(?P<close>\\{0,8}["'`]?)[\])*]{0,3}
    (?:[ ](?:for|on|of|in|at)[ ][A-Za-z0-9_@.:/'-]{1,40})?           # password for bob:
    (?:
      (?P<assign>
          [ \t]{0,4}:[ ]{0,2}[A-Za-z_][A-Za-z0-9_.]{0,40}(?:\[[A-Za-z0-9_.,|\[\] ]{0,40}\])?(?:[ ]\|[ ]None)?[ ]=[ ]
        | ,?[ \t]{0,8}\n?[ \t]{0,16}\\{0,8}["']?value\\{0,8}["']?[ \t]{0,4}[:=]
        | [ \t]{0,16}(?:=>|->|:=|={1,3}|:|\xef\xbc\x9a|\xef\xbc\x9d|\xe2\x86\x92)\*{0,2}
        | > )
    | (?P<prose>[ \t]{1,4}(?:is|was)[ \t:]|'s[ ]|[ ]?(?:\xe6\x98\xaf|\xe4\xb8\xba|\xe7\x82\xba|\xe3\x81\xaf))
    | (?P<call>[ ]?,|\()
    | (?P<loose>[ ](?:\||-|\xe2\x80\x93)[ ]|[ ]\() )[ \t]{0,16}
    (?P<wrap>[A-Za-z_][A-Za-z0-9_:.]{0,40}!?\()?""",
    re.VERBOSE | re.IGNORECASE,
)
_SETTERS = (b"set ", b"set -x ", b"set -gx ", b"set -ux ", b"set -ugx ", b"setx ", b"env ")
_TRAILING = b".,:*?"
_SPACE = re.compile(rb"[ \t]{1,4}")
_OPEN = re.compile(rb"[bfrunBFRUN@]{0,2}(\\{0,8})(\"{3}|'{3}|[\"'`])")
_UNTIL = {quote: rb"(?:[^%b\\\r\n]|\\[^\r\n]){1,4096}" % quote for quote in (b'"', b"'", b"`")}
_QUOTED = {quote: re.compile(until) for quote, until in _UNTIL.items()}
_ESCAPED = {quote: re.compile(rb"[^%b\\\r\n]{1,4096}" % quote) for quote in _UNTIL}
# Where an unquoted value ends. It is judged by its first 64 bytes, and taken whole.
_ENDS: dict[Notation, bytes] = {
    "plain": rb"[^\s\"'`,;<>()\[\]{}|\\&]",
    "line": rb"[^\s\"'`,;<>()\[\]{}|\\&]",
    "prose": rb"[^\s\"'`,;<>()\[\]{}|\\]",
    "loose": rb"[^\s\"'`,;<>()\[\]{}|\\]",
    "flag": rb"[^\s\"'`<>|\\]",
    "env": rb"[^\s\"'`<>\\&]",
}
_HEAD = {notation: re.compile(end + rb"{1,64}") for notation, end in _ENDS.items()}
_HEAD["loose"] = re.compile(_ENDS["loose"] + rb"{6,64}")
_WHOLE = {notation: re.compile(end + rb"*") for notation, end in _ENDS.items()}
_NO_VALUE = re.compile(rb"\s|://|\.(?:pem|key|crt|json|ya?ml|txt|py|[jt]s|md|cfg|conf|ini|toml|html?|sh|env)$")
_NESTED = re.compile(rb"[A-Za-z_][A-Za-z_.-]*=[^=]")
_WORDS = re.compile(rb"[A-Za-z]+(?:[-_./: ]+[A-Za-z]+)*[.:!?]*")
_TECHNICAL = re.compile(
    rb"(?i)(?:sha|md|utf|base|v|python|py|oauth|rsa|aes|ipv|http|web|x|p|s|k|ec|tls|ssl|h|level|arg|var|ed|b|iso"
    rb"|latin|int|uint|float)[-_]?[0-9]{1,5}(?:[-_].*)?|0x[0-9a-f]{1,16}"
)


class Value(NamedTuple):
    """Where the value stands in the text, what it is called, and how it was written."""

    start: int
    end: int
    kind: Kind
    notation: Notation
    quoted: bool


def assigned(raw: bytes, start: int, end: int) -> Value | None:
    """The secret that is assigned to the name at ``raw[start:end]`` (one of ``KINDS``, in any case), if any."""
    kind = KINDS[raw[start:end].lower()]
    before = raw[max(0, start - 40) : start]
    lead = before[len(before.rstrip(_NAME_BYTES)) :]
    if kind == "key" and before.rstrip(b" _.-").lower().endswith(_GLUE):
        kind = "api_key"
    stop = _name_end(raw, start, end, lead, kind)
    if stop is None:
        return None
    name = lead + raw[start:stop]
    found = None if name in (b"PASS", b"Pass") else _value(raw, stop, name, kind)
    if found is None or not _holds_secret(raw[found.start : found.end], found):
        return None
    return _whole(raw, found)


def _name_end(raw: bytes, start: int, end: int, lead: bytes, kind: Kind) -> int | None:
    """Where the whole name ends ("password_staging"), or None if it names no secret ("bypass", "token_count")."""
    glued = lead[-1:].isalpha() and not (raw[start : start + 1].isupper() and lead[-1:].islower())
    if glued and raw[start:end].lower() not in _GLUABLE and not lead.lower().endswith(_GLUE):
        return None
    after = raw[end : end + 1]
    if after.isalpha() and not (after.isupper() and raw[end - 1 : end].islower()):
        return None
    suffix = _SUFFIX.match(raw, end)
    stop = suffix.end() if suffix else end
    if stop > end and any(word.lower() in _DESCRIBES for word in PIECE.findall(raw, end, stop)):
        return None
    if lead:
        words = [word.lower() for word in PIECE.findall(lead)]
        if b"public" in words or (kind in ("key", "api_key") and words and words[-1] in _NO_SECRET_KEY):
            return None
    return stop


def _value(raw: bytes, stop: int, name: bytes, kind: Kind) -> Value | None:
    """What follows the name, its notation recognised; an unquoted value is cut to what is judged."""
    operator = _OPERATOR.match(raw, stop) or _SPACE.match(raw, stop)
    if operator is None:
        return None
    notation, at = _notation(raw, stop, name, operator), operator.end()
    quote = _OPEN.match(raw, at)
    if quote:
        inside = (_ESCAPED if quote[1] else _QUOTED)[quote[2][:1]].match(raw, quote.end())
        if inside and raw.startswith(quote[1] + quote[2][:1], inside.end()):
            return Value(*inside.span(), kind, notation, True)
        at = quote.end()
    head = _HEAD[notation].match(raw, at) if notation != "call" else None
    after = raw[head.end() : head.end() + 1] if head else b""
    if head is None or after in (b"(", b"[") or (notation == "loose" and quote):
        return None
    if notation == "plain" and after in (b"", b"\n") and operator.group() in (b"=", b": "):
        notation = "line"
    return Value(*head.span(), kind, notation, False)


def _notation(raw: bytes, stop: int, name: bytes, operator: re.Match[bytes]) -> Notation:
    if operator.re is _SPACE:
        return "flag" if _takes_argument(raw, stop, name) else "loose"
    if operator["call"] or operator["wrap"]:
        return "call"
    if operator["loose"] or name == b"pass":
        return "loose"
    if operator["prose"]:
        return "prose"
    if name.startswith(b"-"):
        return "flag"
    return "env" if operator.group() == b"=" and name.upper() == name else "plain"


def _takes_argument(raw: bytes, stop: int, name: bytes) -> bool:
    """Whether a name followed by a space is a flag ("--token X") or an argument ("set -x API_TOKEN X")."""
    start = stop - len(name)
    return name.startswith(b"-") or raw[max(0, start - 12) : start].lower().endswith(_SETTERS)


def _whole(raw: bytes, found: Value) -> Value:
    match = None if found.quoted else _WHOLE[found.notation].match(raw, found.start)
    return found._replace(end=found.start + len(match.group().rstrip(_TRAILING))) if match else found


def _holds_secret(value: bytes, found: Value) -> bool:
    if not found.quoted:
        value = value.rstrip(_TRAILING)
        if _is_expression(value, found):
            return False
    if found.notation in ("loose", "call"):
        fits = _is_striking(value, found)
    elif found.kind == "password" or (found.kind == "secret" and found.quoted and len(value) >= 8):
        fits = _is_password(value, found)
    elif found.kind == "key":
        fits = is_random(value) and not is_uuid(value)
    else:
        fits = is_random(value, 12) or is_basic_login(value)
    return fits and not _NO_VALUE.search(value) and not is_placeholder(value)


def _is_expression(value: bytes, found: Value) -> bool:
    """``os.getenv`` or ``password_field`` or ``a=b``; where nothing else can stand, a bare word is a value."""
    if found.notation in ("env", "line", "flag") and value.isalpha():
        return False
    return is_code(value) or _NESTED.match(value) is not None


def _is_striking(value: bytes, found: Value) -> bool:
    """Whether a value looks like a secret enough to need no operator before it."""
    if found.kind != "password":
        return is_random(value, 20 if found.notation == "loose" else 12) and len(longest_stretch(value)) >= 12
    return is_strong(value) and len(value) >= 6 and not _TECHNICAL.fullmatch(value) and not _NESTED.match(value)


def _is_password(value: bytes, found: Value) -> bool:
    """Whether a value of a password's name is one: not a sentence, a path, a name of an algorithm, a count."""
    if len(value) < 4 or value.startswith((b"/", b"./", b"~/", b"--")) or _TECHNICAL.fullmatch(value):
        return False
    if value.isdigit():
        return len(value) >= 6 and found.notation != "prose"
    if _WORDS.fullmatch(value):
        return _is_secret_word(value, found)
    return re.search(rb"[A-Za-z]", value) is not None


def _is_secret_word(value: bytes, found: Value) -> bool:
    """Letters only: "swordfish" is taken where nothing but a value can stand."""
    if is_scattered(value):
        return True
    if found.notation in ("env", "flag"):
        return len(value) >= (6 if found.notation == "env" else 8)
    whole = found.quoted or found.notation == "line"
    return whole and len(value) >= (6 if found.quoted else 8) and value.isalpha() and value.islower()
