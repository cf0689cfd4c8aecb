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
    PLACEHOLDER_WORDS,
    WEAK_WORDS,
    is_basic_login,
    is_code,
    is_placeholder,
    is_random,
    is_scattered,
    is_strong,
    is_uuid,
    is_weak,
    longest_stretch,
)

Kind = Literal["password", "secret", "token", "key", "api_key", "credential", "mnemonic"]
# "line": the value is all that follows. "below": it is the whole next line. "call" and "loose" are weak signs:
# password("x"), "token x".
Notation = Literal["plain", "line", "env", "flag", "prose", "loose", "call", "below"]

# Kind -> the names that say it, as they end. Those in ``_GLUABLE`` may follow other letters: "dbpassword".
_NAMES: dict[Kind, str] = {
    "password": "passwords, password, passwort, passwd, passphrase, passcode, pass, pwd, pw, psk, kennwort,"
    " storepass, keypass, mot de passe, contraseña, contrasena, senha, wachtwoord, пароль, 密码, 密碼, 口令,"
    " パスワード, 비밀번호",
    "secret": "secrets, secret",
    "token": "tokens, token, jwt, auth, pat, 令牌, トークン",
    "key": "keys, key, 密钥, 密鑰",
    "credential": "credentials, credential, creds, cred, 凭证, 凭据",
    "mnemonic": "mnemonic, seed phrase, recovery phrase",
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
    created date default delimiter description digest dir directory duration encoding encryption endpoint env error exp
    expiration expired expires expiry factory field file filename fingerprint format fn func function generator
    handler hash hasher hashing header help hint id ids idx index info input kind label left len length level limit list
    location manager map mapping max message method min mode name names number object page param parameter
    params path pattern per placeholder policy pool position prefix prompt provider reference ref regex required
    response rotation rule rules salt schema scheme scope seconds service set sha size sock socket source spec state
    status stdin store suffix text the time timeout title ttl type types uri url usage used validation validator version
    window""".split()
)
# A key with one of these before it is public, or sorts and finds things.
_NO_SECRET_KEY = frozenset(
    b"""anon cache column config context dedup dedupe dict dist distinct event foreign group hash host hot i18n
    idempotency index item json locale lookup map message object order partition primary property pub public
    publishable recv registry routing row section shortcut sort tag translation unique gpg pgp""".split()
)
# A token with one of these before it turns pages, or is a part of a text.
_NO_SECRET_TOKEN = frozenset(
    b"""bos cancel cancellation change continuation eos idempotency lock mask next pad page pagination request sequence
    start sync unk""".split()
)
_NO_SECRET = {"key": _NO_SECRET_KEY, "api_key": _NO_SECRET_KEY, "token": _NO_SECRET_TOKEN}
ASSIGN_TABLES = (sorted(KINDS.items()), _GLUE, *map(sorted, (_DESCRIBES, _NO_SECRET_KEY, _NO_SECRET_TOKEN, WEAK_WORDS)))

_NAME_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
_SUFFIX = re.compile(rb"[A-Za-z0-9_.-]{0,40}")
# A quote as it is, or as HTML, JSON or JavaScript write it where it must not be one.
_ENTITY = rb"(?:&quot;|&\#3[49];|\\{1,8}u002[27])"
_OPERATOR = re.compile(
    rb"""(?P<close>(?:%b|\\{0,8}["'`])?)[\])*]{0,3}
    (?:[ ](?:for|on|of|in|at)[ ](?:user[ ]|the[ ])?[A-Za-z0-9_@.:/'-]{1,40})?   # password for bob:
    (?:
      (?P<assign>
          [ \t]{0,4}:[ ]{0,2}[A-Za-z_][A-Za-z0-9_.]{0,40}(?:\[[A-Za-z0-9_.,|\[\] ]{0,40}\])?(?:[ ]\|[ ]None)?[ ]=[ ]
        | ,?[ \t]{0,8}(?:\\?\n[ \t]{0,8}(?:[0-9]{1,6}(?:\xe2\x86\x92|[|:\t]))?[ \t|>+-]{0,24})?
          \\{0,8}["']?value\\{0,8}["']?[ \t]{0,4}[:=]
        | [ ]-{1,2}(?:body|value|secret-string|b|v)[ =]
        | [ \t]{0,4}</t[hd]>\s{0,24}<t[hd](?:[ ][^<>\n]{0,60})?>
        | [ \t]{0,16}(?:=>|->|:[=-]|={1,3}|:|\xef\xbc\x9a|\xef\xbc\x9d|\xe2\x86\x92)\*{0,2}
        | > )
    | (?P<prose>[ \t]{1,4}(?:is|was|ist|lautet|est|es)[ \t:]|'s[ ]
        |[ ]?(?:\xe6\x98\xaf|\xe4\xb8\xba|\xe7\x82\xba|\xe3\x81\xaf))
    | (?P<call>[ ]?,|\(|[ ](?:\|\||\?\?|or)(?=[ ]\\{0,8}["']))
    | (?P<loose>[ \t]{1,40}(?:\||\xe2\x94\x82)[ ]|[ ](?:-|\xe2\x80\x93|to)[ ]|[ ]\() )[ \t]{0,16}
    (?P<wrap>[A-Za-z_][A-Za-z0-9_:.]{0,40}!?\()?"""
    % _ENTITY,
    re.VERBOSE | re.IGNORECASE,
)
_BELOW = re.compile(
    rb"[*\"'`]{0,3}:?\*{0,2}[ \t]{0,4}(?:\\?\n){1,2}(?:[ \t]{0,8}`{3}[a-z]{0,12}\\?\n)?[ \t]{0,8}`?"
    rb"([^\s\"'`,;:<>()\[\]{}|\\&]{16,256})`?[ \t]{0,4}(?=\\?[\r\n]|$)"
)
_SETTERS = (b"set ", b"set -x ", b"set -gx ", b"set -ux ", b"set -ugx ", b"setx ", b"env ")
_TRAILING = b".,:*?"
_SPACE = re.compile(rb"[ \t]{1,4}")
_OPEN = re.compile(rb"[bfrunBFRUN@]{0,2}(\\{0,8})(\"{3}|'{3}|[\"'`])")
_WRITTEN_QUOTE = re.compile(rb"%b([^&\\\r\n]{1,4096})%b" % (_ENTITY, _ENTITY))
_PHRASE = re.compile(rb"[A-Za-z0-9]{2,16}(?: [A-Za-z0-9]{2,16}){2,31}(?=[ \t]{0,4}(?:\\?[\r\n]|$))")
_NUMBERS = re.compile(rb"[0-9]+")
_PHRASE_NAMES = (b"passphrase", b"mnemonic", b"seed phrase", b"recovery phrase")
# Words of a sentence about a password, as no passphrase has them.
_SENTENCE = PLACEHOLDER_WORDS | frozenset(
    b"""about after again also an and are article be been before but by cannot characters contain contains correct
    did do does due during each either error expected failed fails first found given hash have how if incorrect
    into its just least length less letters long longer match matches mismatch more most must never next no
    non nor not now one only other out over policy policies private protected provide provided reasons same see
    shall short should so still such than their them then there these they too two under up used using via want
    was we were what when where whether which while who will without would yet""".split()
)
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
# In these an "&" is a part of the value, unless it begins an entity or the next parameter of a form.
_AND = rb"&(?:amp;)?(?!\#?[A-Za-z0-9]{1,8};|[A-Za-z_][A-Za-z0-9_.%\[\]-]{0,40}=)"
_GOES_ON: tuple[Notation, ...] = ("plain", "line", "env")
# Where a value that reads like a placeholder may be a weak secret: nothing but a value stands there.
_GIVEN = ("plain", "line", "env", "flag", "prose")
_QUERY_HEAD = {notation: re.compile(end + rb"{1,64}") for notation, end in _ENDS.items()}
_QUERY_HEAD["loose"] = re.compile(_ENDS["loose"] + rb"{6,64}")
_QUERY_WHOLE = {notation: re.compile(end + rb"*") for notation, end in _ENDS.items()}
_HEAD = _QUERY_HEAD | {
    each: re.compile(rb"%b{1,64}(?:%b%b{1,64}){0,2}" % (_ENDS[each], _AND, _ENDS[each])) for each in _GOES_ON
}
_WHOLE = _QUERY_WHOLE | {each: re.compile(rb"%b*(?:%b%b+)*" % (_ENDS[each], _AND, _ENDS[each])) for each in _GOES_ON}
_NO_VALUE = re.compile(
    rb"\s|://|^(?:/(?:dev|etc|home|mnt|opt|private|proc|root|run|srv|tmp|usr|var|Users)/|~/|[A-Z]:[\\/])"
    rb"|\.(?:pem|key|crt|json|ya?ml|txt|py|[jt]s|md|cfg|conf|ini|toml|html?|sh|env)$"
)
_NESTED = re.compile(rb"[A-Za-z_][A-Za-z_.-]*=[^=]")
_WORDS = re.compile(rb"[A-Za-z]+(?:[-_./: ]+[A-Za-z]+)*[.:!?]*")
_TECHNICAL = re.compile(
    rb"(?i)(?:sha|md|utf|base|v|python|py|oauth|rsa|aes|ipv|http|web|x|p|s|k|ec|tls|ssl|h|level|arg|var|ed|b|iso"
    rb"|latin|int|uint|float)[-_]?[0-9]{1,5}(?:[-_].*)?|0x[0-9a-f]{1,16}|[0-9]{1,4}[.:][0-9].*"
)


class Value(NamedTuple):
    """Where the value stands in the text, what it is called, and how it was written (``query``: in a URL)."""

    start: int
    end: int
    kind: Kind
    notation: Notation
    quoted: bool
    query: bool = False


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
    if glued and is_random(lead):  # not a name, but random text that ends like one
        return None
    after = raw[end : end + 1]
    if after.isalpha() and not (after.isupper() and raw[end - 1 : end].islower()):
        return None
    suffix = _SUFFIX.match(raw, end)
    stop = suffix.end() if suffix else end
    if stop > end and any(word.lower() in _DESCRIBES for word in PIECE.findall(raw, end, stop)):
        return None
    if raw[start - 1 : start] == b":" and b"arn:" in raw[max(0, start - 120) : start]:
        return None
    if lead:
        words = [word.lower() for word in PIECE.findall(lead)]
        if b"public" in words or (words and words[-1] in _NO_SECRET.get(kind, ())):
            return None
    return stop


def _value(raw: bytes, stop: int, name: bytes, kind: Kind) -> Value | None:
    """What follows the name, its notation recognised; an unquoted value is cut to what is judged."""
    below = _BELOW.match(raw, stop)
    if below and _is_title(raw, stop - len(name), stop):
        return Value(*below.span(1), kind, "below", False)
    operator = _OPERATOR.match(raw, stop) or _SPACE.match(raw, stop)
    if operator is None:
        return None
    notation, at = _notation(raw, stop, name, operator), operator.end()
    if quoted := _in_quotes(raw, at):
        return Value(*quoted, kind, notation, True)
    quote = _OPEN.match(raw, at)
    at = quote.end() if quote else at
    if notation == "plain" and name.lower().endswith(_PHRASE_NAMES) and (phrase := _PHRASE.match(raw, at)):
        return Value(*phrase.span(), kind, notation, True)
    query = raw[stop - len(name) - 1 : stop - len(name)] in (b"?", b"&")
    head = (_QUERY_HEAD if query else _HEAD)[notation].match(raw, at) if notation != "call" else None
    after = raw[head.end() : head.end() + 1] if head else b""
    if head is None or after in (b"(", b"[") or (notation == "loose" and quote) or head[0][-1:] + after == b"->":
        return None
    if notation == "plain" and after in (b"", b"\n") and operator.group() in (b"=", b": "):
        notation = "line"
    return Value(*head.span(), kind, notation, False, query)


def _is_title(raw: bytes, start: int, stop: int) -> bool:
    """Whether a name is one that what is below it may belong to, and not the end of a line of base64."""
    line = raw[raw.rfind(b"\n", max(0, start - 80), start) + 1 : start]
    written = raw[stop : stop + 1] == b":" or b" " in line
    return written and stop - start < 32 and line[-1:] not in (b"+", b"/")


def _in_quotes(raw: bytes, at: int) -> tuple[int, int] | None:
    """The value that is quoted at ``at``, in the notation of its opening quote."""
    quote = _OPEN.match(raw, at)
    if quote is None:
        written = _WRITTEN_QUOTE.match(raw, at)
        return written.span(1) if written else None
    inside = (_ESCAPED if quote[1] else _QUOTED)[quote[2][:1]].match(raw, quote.end())
    closed = inside and raw.startswith(quote[1] + quote[2][:1], inside.end())
    return inside.span() if inside and closed else None


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
    rest = None if found.quoted else (_QUERY_WHOLE if found.query else _WHOLE).get(found.notation)
    match = rest.match(raw, found.start) if rest else None
    return found._replace(end=found.start + len(match.group().rstrip(_TRAILING))) if match else found


def _holds_secret(value: bytes, found: Value) -> bool:
    if found.quoted and b" " in value:
        return _is_phrase(value, found)
    if not found.quoted:
        value = value.rstrip(_TRAILING)
        if _is_expression(value, found):
            return False
    if found.notation in ("loose", "call", "below"):
        fits = _is_striking(value, found)
    elif found.kind == "password" or (found.kind == "secret" and found.quoted and len(value) >= 8):
        fits = _is_password(value, found)
    elif found.kind == "key":
        fits = is_random(value) and not is_uuid(value)
    else:
        fits = _is_token(value, found) or is_basic_login(value)
    return fits and not _NO_VALUE.search(value) and (not is_placeholder(value) or _is_weak(value, found))


def _is_weak(value: bytes, found: Value) -> bool:
    return (found.quoted or found.notation in _GIVEN) and found.kind != "key" and is_weak(value)


def _is_token(value: bytes, found: Value) -> bool:
    """Whether a value of a token's name is one; a short one needs digits in several places, a plain one three."""
    if is_random(value, 12):
        return True
    bare = found.notation in _GIVEN and found.notation != "plain"  # and in code a variable would be plain
    plain = value.isalnum() and not value.isdigit() and not _TECHNICAL.fullmatch(value)
    if plain and (found.quoted or bare) and len(value) >= (16 if found.quoted else 8) and is_weak(value):
        return True
    return found.notation in ("prose", "line", "plain") and is_random(value, 8) and len(_NUMBERS.findall(value)) >= 2


def _is_phrase(value: bytes, found: Value) -> bool:
    """Whether words in quotes are a passphrase: few, plain, and none that a sentence about a password has."""
    words = value.split(b" ")
    if found.kind == "mnemonic":
        return len(words) in (12, 15, 18, 21, 24) and all(word.isalpha() and word.islower() for word in words)
    if found.kind != "password" or not 2 <= len(words) <= 12 or len(value) < 12 or found.notation in ("call", "loose"):
        return False
    said = {word.strip(b".,:;!?").lower() for word in words}
    if said & _SENTENCE or is_placeholder(value):
        return False
    if any(is_strong(word) and len(word) >= 6 for word in words):
        return True
    least = 2 if found.notation in ("env", "flag") else 4
    return len(words) >= least and all(word.isalnum() and word.islower() for word in words)


def _is_expression(value: bytes, found: Value) -> bool:
    """``os.getenv`` or ``password_field`` or ``a=b``; where nothing else can stand, a bare word is a value."""
    if found.notation in ("env", "line", "flag") and value.isalpha():
        return False
    if b"&" in value and all(part.isalpha() or _TECHNICAL.fullmatch(part) for part in value.split(b"&")):
        return True  # mask & 0xff, Named & Typed
    return is_code(value) or _NESTED.match(value) is not None


def _is_striking(value: bytes, found: Value) -> bool:
    """Whether a value looks like a secret enough to need no operator before it."""
    if found.notation == "below" and (found.kind == "key" or is_uuid(value)):
        return False
    if found.kind != "password":
        named = any(word.lower() in KINDS for word in PIECE.findall(value))
        least = 12 if found.notation == "call" else 20
        return not named and is_random(value, least) and len(longest_stretch(value)) >= 12
    return is_strong(value) and len(value) >= 6 and not _TECHNICAL.fullmatch(value) and not _NESTED.match(value)


def _is_password(value: bytes, found: Value) -> bool:
    """Whether a value of a password's name is one: not a sentence, a path, a name of an algorithm, a count."""
    if len(value) < 4 or value.startswith((b"/", b"./", b"~/", b"-")) or _TECHNICAL.fullmatch(value):
        return False
    if value.isdigit():
        return len(value) >= 6
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
