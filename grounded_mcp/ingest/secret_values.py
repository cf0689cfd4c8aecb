"""Is this value a secret, a placeholder or code? Pure judgements on one value, as UTF-8 bytes.

Knows nothing about where the value stood: the rules in ``secret_rules`` and ``secret_assign`` decide which
judgement a place asks for. Only the first ``_JUDGED`` bytes are looked at, so a judgement costs the same for
any input.
"""

from __future__ import annotations

import binascii
import re

_JUDGED = 128
PIECE = re.compile(rb"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_CASED_WORD = re.compile(rb"[A-Z]?[a-z]+|[A-Z]+")
_SEPARATORS = re.compile(rb"[^A-Za-z0-9]+")
_LONG_HEX = re.compile(rb"[0-9a-f]{32}|[0-9A-F]{32}")
_LETTER, _DIGIT, _SPECIAL = re.compile(rb"[A-Za-z]"), re.compile(rb"[0-9]"), re.compile(rb"[!@#$%^&*+=?~]")
_UUID = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

# Words that people put where a secret belongs. A value made of nothing else is a placeholder.
PLACEHOLDER_WORDS = frozenset(
    b"""access account actual add admin alice an any api app apply as at auth badpass bar basic baz bearer bob
    bool boolean bytes callable cert change changed changeit changeme client co com common config correct cred
    credential credentials creds current custom data database db default define demo dev development dict digest
    disabled dummy email empty enabled encrypted enter env environ environment example expired fake false field
    file fill float foo for forgot form from func function get github gitlab go good goodpass google guest
    header here hidden host id in input insert int integer invalid is it item key keys label len list local
    localhost login map masked me missing mock mode my myapp mypass mypassword mysecret mytoken na name new nil
    no none not null number object of off ok old omitted on openai optional or org our page param pass passed
    passphrase passwd password passwords passwort path placeholder please postgres prefix private prod
    production pswd public put pw pwd qux random read real redacted ref regex removed replace replaceme required
    reset role root sample secret secretkey secrets self service set shared shhh some somepass staging str
    string strong super supersecret temp test tested tester testing testpass testpassword tests text that the
    this to todo token tokens top true type undef undefined unknown unset update url us use user username users valid
    validation value var variable void weak with word write wrong xxx you your""".split()
)
# Those of them that weak passwords are made of, with digits to them: "postgres123", "Admin@123".
WEAK_WORDS = frozenset(
    b"""actual admin app basic bob client data database db default demo dev development go good goodpass google guest
    host item local localhost login my mypass mypassword mysecret new org pass passphrase passwd password passwort
    postgres private prod production pswd public pw pwd root secret service staging strong super supersecret temp test
    tested tester testing testpass testpassword tests the user users username weak you""".split()
)
_MARK = re.compile(
    rb"example|change[_-]?me|change[_-]?this|placeholder|redacted|your[_-]|[_-]your|your(?:key|token|pass|secret|api)"
    rb"|dummy|xxxx|replace(?:me|[_-])|insert[_-]|not[_-]a[_-]|foobar|deadbeef|\*\*|\.\.\.|\xe2\x80[\xa6\xa2]"
)
_WEAK_MARK = re.compile(rb"1234567|abc(?:123|defg)|secret123")
_MADE_UP = re.compile(rb"[A-Za-z0-9!@#$%^&*+=?~]{6,64}")
# ${NAME}, $NAME, $(command), {{ name }}, {name}, %(name)s, %s, %NAME%, <name>, #{name}, @name@, __NAME__, [name]
_TEMPLATE = re.compile(
    rb"[$#%]?\{[^{}]*\}|\$\(|^\$[A-Za-z_]\w*$|^\$[A-Z_]|\{\{|<%|%\(|%[sdrv](?:[^A-Za-z0-9]|$)|%[A-Z_]+%|^<|[A-Za-z ]>$"
    rb"|^@\w+@$|^__\w+__$|^\["
)
_TEMPLATE_BYTES = frozenset(b"$#%{<>@_[")
_CALL = re.compile(rb"^[A-Za-z_$][\w$.:]{0,80}!?[(\[{<]")
_DOTTED = re.compile(rb"^[*&@!+]?[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[\w$]+)+;?$")
_NAME = re.compile(rb"^[*&@!+]?(?:[A-Za-z_][A-Za-z_-]*|[A-Za-z]+_[A-Za-z0-9_]*)$")


def is_random(value: bytes, least: int = 16) -> bool:
    """Whether a value reads like the output of a generator rather than like words.

    Random text changes between lower case, upper case and digits every two characters or so: the pieces between
    changes average 1.6 characters in base62, 2.1 in hex and 2.5 in lower-case base36; those of identifiers, paths
    and sentences average four or more. Short words joined by "_" are told apart by their longest stretch without
    a separator. ``least`` is the shortest value, in bytes, that is judged at all.
    """
    if len(value) < least:
        return False
    head = value[:_JUDGED]
    if len(set(head)) < (8 if least >= 16 else 6):
        return False
    if _LONG_HEX.search(head):
        return True
    pieces = PIECE.findall(head)
    known = sum(map(len, pieces))
    numbers = [piece for piece in pieces if piece.isdigit()]
    stretch = longest_stretch(head)
    mixed = stretch.lower() != stretch != stretch.upper()
    longest = 5 if len(numbers) > 1 and len(stretch) >= 16 and not mixed else 3.2
    if known < len(head) * 0.7 or known - sum(map(len, numbers)) < 3 or known > longest * len(pieces):
        return False
    return len(stretch) >= min(8, least) if numbers else len(stretch) >= 14 and mixed


def longest_stretch(value: bytes) -> bytes:
    """The longest part of a value that has letters and digits only."""
    return max(_SEPARATORS.split(value), key=len)


def is_scattered(value: bytes) -> bool:
    """Whether letters change case too often for a name in camel case: "kfQmvPzRw"."""
    pieces = PIECE.findall(value)
    return value.isalpha() and len(value) >= 8 and len(pieces) >= 3 and len(value) <= 3 * len(pieces)


def is_strong(value: bytes) -> bool:
    """Whether a short value can hardly be a word: letters and digits with a special character, or random."""
    if not _LETTER.search(value) or not _DIGIT.search(value):
        return False
    return _SPECIAL.search(value) is not None or is_random(value, 8)


def is_uuid(value: bytes) -> bool:
    """Whether the value is a UUID: an identifier unless its name says otherwise."""
    return _UUID.fullmatch(value) is not None


def is_placeholder(value: bytes) -> bool:
    """Whether a value stands for a secret that is not there: a template, a mask, or only words for one."""
    head = value[:_JUDGED].lower()
    distinct = set(head)
    if len(distinct) <= 3 or _MARK.search(head) or _WEAK_MARK.search(head):
        return True
    if not _TEMPLATE_BYTES.isdisjoint(distinct) and _TEMPLATE.search(value[:_JUDGED]):
        return True
    words = _CASED_WORD.findall(value[:_JUDGED])
    known = sum(map(len, words))
    return known * 2 >= len(head) and all(word.lower() in PLACEHOLDER_WORDS for word in words)


def is_weak(value: bytes) -> bool:
    """Whether a value that reads like a placeholder is a weak secret: "admin123", "abc123xyz", "12345678".

    It has three digits or more, no separator as in "test-key-123", and no word that only placeholders have.
    """
    if _MADE_UP.fullmatch(value) is None or len(_DIGIT.findall(value)) < 3:
        return False
    if len(set(value)) <= 3 or _MARK.search(value.lower()) or _TEMPLATE.search(value):
        return False
    return all(
        word in WEAK_WORDS or word not in PLACEHOLDER_WORDS for word in map(bytes.lower, _CASED_WORD.findall(value))
    )


def is_code(value: bytes) -> bool:
    """Whether an unquoted value is an expression: a call, a subscript, an attribute, a bare name."""
    head = value[:_JUDGED]
    if _CALL.match(head):
        return True
    if _DOTTED.match(head):
        return not any(is_random(part) for part in re.split(rb"[.:>?-]+", head))
    return bool(_NAME.match(head)) and not (is_random(head, 12) or is_scattered(head))


def is_basic_login(value: bytes) -> bool:
    """Whether a value is base64 of ``user:password``, with a password that is not a placeholder."""
    try:
        decoded = binascii.a2b_base64(value + b"=" * (-len(value) % 4), strict_mode=True)
    except binascii.Error:
        return False
    _, colon, password = decoded.partition(b":")
    return bool(colon) and decoded.isascii() and not is_placeholder(password)
