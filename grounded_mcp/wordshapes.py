"""One written word in, the entities that its shape alone gives away out: paths, hosts, tickets, identifiers.

``entities.entities`` finds the words of a text; this room says what a word is by its letters, signs and their
order, and what its key is. Pure: strings in, entities out. Knows nothing about sentences or whole texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from grounded_mcp.folding import HASH_HEAD, STOP_WORDS

EntityKind = Literal[
    "name", "identifier", "error", "env", "path", "host", "ticket", "version", "package", "handle", "flag"
]

MAX_WORD = 200
"""A longer word is noise (base64, minified code)."""
MAX_KEY = 120
"""A longer key is noise too."""


class Entity(NamedTuple):
    """Two are the same thing when their keys are equal: ``import redis`` and ``Redis`` meet."""

    kind: EntityKind
    key: str


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


FILE_ENDINGS = _set(
    """bash bat c cc cfg clj cmake conf cpp cs css csv cts cxx dart db diff dll dockerfile env erl ex exe exs fish go
    gradle graphql gz h hpp hs html htm ico ini ipynb java jpg jpeg js json json5 jsonl jsx kt kts lock log lua m md
    mdx mjs ml mod mts onnx parquet patch pdf pem php pl plist png properties proto ps1 py pyi pyx r rb rs rst rtf sass
    scala scss sh so sql sqlite sum svelte svg swift tar tex tf tgz toml ts tsv tsx txt vue wasm whl xls xlsx xml yaml
    yml zig zip zsh"""
)
"""What a file's name ends in; a bare name of one dot is a file, a host or an attribute by its ending."""

_DOMAINS = _set(
    """com org net edu gov mil int example test local localdomain internal lan corp home arpa invalid
    de uk fr nl es it ch at se no pl eu us ca au jp cn kr br in ru io ai dev app cloud xyz"""
)
_SHORT_DOMAINS = _set("com org net edu gov example test local internal io ai dev eu de fr nl ch jp")
"""A host of two labels ends in one of these: ``self.app`` and ``map.in`` are code."""
_SELVES = _set("self this cls super std java javax app sys e i")
_ROOTS = _set(
    """src lib bin usr etc home tmp var opt docs doc test tests cmd internal pkg packages app apps scripts tools
    config node_modules dist build examples"""
)
_NO_TICKETS = _set("utf sha iso aes md rsa ipv crc base ascii rfc pep http tls ssl usb covid cp win x")
_ORDINARY = _set(
    """property staticmethod classmethod dataclass override param params return returns type see throws throw
    deprecated author since todo ts-ignore example default private public test"""
)
"""What stands after an @ in code and its comments; nobody is called that."""

_LINE = re.compile(r"(?::\d+)+$")
_EMAIL = re.compile(r"[\w.-]+@((?:[a-z0-9-]+\.)+[a-z]{2,})")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_ADDRESS = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}")
_VERSION = re.compile(r"(?!(?:\d+\.){3}\d+$)(?:v(?=\d+\.)|(?=\d+\.\d+\.))(\d+(?:\.\d+)+(?:-?[a-z]+\.?\d*)?)")
_TICKET = re.compile(r"([A-Z][A-Z0-9]{1,9})-\d{1,7}")
_SNAKE = re.compile(r"_*[a-zA-Z]\w*?[a-zA-Z0-9]_+\w+")
_CAMEL = re.compile(r"[a-z]+[0-9]*[A-Z]\w*|[A-Z]+[a-z0-9]+[A-Z]\w*|[A-Z]{2,}[a-z]{2,}\w*")
_ERROR = re.compile(
    r"[A-Z]\w+(?:Error|Exception|Warning|Fault)|SIG[A-Z]{2,6}"
    r"|E(?:ACC|ADDR|AGAIN|BADF|BUSY|CONN|DEAD|EXIST|HOST|INTR|INVAL|ISDIR|LOOP|MFILE|NET|NO|PERM|PIPE|ROFS|TIMED|XDEV)[A-Z]*"
)
_HASH = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}")
_NUMBERED = re.compile(r"(?=.{5})[a-z][a-z0-9]*(?:-[a-z0-9]+)*-(?:[a-z]*\d[a-z0-9]*)(?:-[a-z0-9]+)*")
_DOTFILE = re.compile(r"\.(?:env|git[a-z]+|docker[a-z]+|editorconfig|[a-z]+rc|[a-z]+ignore)")
_PARTS = re.compile(r"::|->|\.")
_DRIVE = re.compile(r"[a-z]:/")


def shape(word: str) -> tuple[Entity, ...]:
    """What one word of a folded text (``tokens.words``) is; nothing for a plain word. The key says what it is alone.

    Linear in the word's length, up to ``MAX_WORD``.
    """
    if word.isidentifier():
        return () if word.isalpha() and (word.islower() or word.istitle()) else _name(word)
    word = word.removesuffix("'s")
    if len(word) > MAX_WORD:
        return ()
    rules = _OF_SIGIL.get(word[:1]) or next(rules for sign, rules in _OF_SIGN if sign in word)
    for rule in rules:
        if found := tuple(rule(word)):
            return found if len(word) <= MAX_KEY else ()
    return ()


def squash(name: str) -> str:
    """One key for ``getUserById``, ``get_user_by_id`` and ``GET_USER_BY_ID``."""
    return name.casefold().replace("_", "")


def _flag(word: str) -> Iterator[Entity]:
    if word.startswith("--") and len(word) > 3:
        yield Entity("flag", word.casefold())


def _variable(word: str) -> Iterator[Entity]:
    name = word.lstrip("${")
    if len(name) > 2 and name.isidentifier():
        yield Entity("env", squash(name) if "_" in name else f"${name.casefold()}")


def _handle(word: str) -> Iterator[Entity]:
    name = word[1:].casefold()
    if "/" in name:
        yield Entity("package", "/".join(word.casefold().split("/")[:2]))
    elif "." in name:
        yield from _code(word[1:])
    elif len(name) > 2 and name not in _ORDINARY and not name.isdigit():
        yield Entity("handle", f"@{name}")


def _number(word: str) -> Iterator[Entity]:
    if word[1:].isdecimal() and len(word) > 2:
        yield Entity("ticket", word)


def _ticket(word: str) -> Iterator[Entity]:
    if (found := _TICKET.fullmatch(word)) and found[1].casefold() not in _NO_TICKETS:
        yield Entity("ticket", word.casefold())


def _address(word: str) -> Iterator[Entity]:
    """A URL gives its host, and on a forge its repository; a mail address itself and its host."""
    low = word.casefold()
    scheme, marked, rest = low.partition("://")
    if marked and scheme.isalnum():
        host, *path = rest.rsplit("@", 1)[-1].split("/")
        yield from _host(host)
        if host in ("github.com", "gitlab.com", "bitbucket.org") and len(path) > 1:
            yield Entity("package", f"{path[0]}/{path[1].removesuffix('.git')}")
    elif mail := _EMAIL.fullmatch(low):
        yield Entity("handle", low)
        yield from _host(mail[1])


def _host(word: str) -> Iterator[Entity]:
    low = word.casefold()
    bare = _LINE.sub("", low)
    if bare == "localhost" or (_ADDRESS.fullmatch(bare) and all(int(part) < 256 for part in bare.split("."))):
        yield Entity("host", low if bare == "localhost" else bare)
        return
    labels = bare.removeprefix("www.").split(".")
    endings = _SHORT_DOMAINS if len(labels) == 2 else _DOMAINS
    if len(labels) > 1 and labels[-1] in endings and labels[0] not in _SELVES and all(map(_LABEL.fullmatch, labels)):
        yield Entity("host", ".".join(labels))


def _bare_host(word: str) -> Iterator[Entity]:
    """Outside an address only small letters: ``Done.Net`` is two sentences."""
    if ("." in word and word == word.lower()) or word.startswith("localhost:"):
        yield from _host(word)


def _path(word: str) -> Iterator[Entity]:
    """The whole and its last name, so that a file meets its path. A line number is no part of it."""
    path = _LINE.sub("", word.replace("\\", "/")).casefold()
    path = _DRIVE.sub("", path).lstrip("./") if "/" in path else path
    *folders, last = (part for part in path.split("/") if part)
    stem, dotted, ending = last.rpartition(".")
    is_file = bool(dotted and stem and ending in FILE_ENDINGS)
    if not folders:
        if is_file or _DOTFILE.fullmatch(last):
            yield Entity("path", last)
        return
    worded = sum(any(map(str.isalpha, part)) for part in (*folders, last))
    if is_file or (worded > len(folders) and (len(folders) > 1 or folders[0] in _ROOTS)):
        yield Entity("path", "/".join((*folders, last)))
        if is_file:
            yield Entity("path", last)


def _version(word: str) -> Iterator[Entity]:
    if found := _VERSION.fullmatch(word.casefold()):
        yield Entity("version", found[1])


def _code(word: str) -> Iterator[Entity]:
    """An identifier; of several joined by dots the last, or the whole where the last is a plain word (``os.path``)."""
    if "/" in word or "#" in word or "@" in word:
        return
    names = [name for name in _PARTS.split(_LINE.sub("", word)) if name]
    while names and names[0].casefold() in _SELVES:
        names = names[1:]
    found = _name(names[-1]) if names else ()
    if not found and len(names) > 1 and all(map(str.isidentifier, names)) and _is_code(names):
        found = (Entity("identifier", ".".join(names).casefold()),)
    yield from found


def _is_code(names: list[str]) -> bool:
    """Not ``e.g``, ``U.S`` or a full stop without a space behind it (``done.The``)."""
    return max(map(len, names)) > 2 and min(map(len, names)) > 1 and names[-1].casefold() not in STOP_WORDS


def _name(word: str) -> tuple[Entity, ...]:
    """What letters, digits and underscores alone can be."""
    if len(word) > MAX_KEY:
        return ()
    if "_" in word:
        return (Entity("env" if word.isupper() else "identifier", squash(word)),) if _SNAKE.fullmatch(word) else ()
    if _ERROR.fullmatch(word):
        return (Entity("error", word.casefold()),)
    if _CAMEL.fullmatch(word):
        return () if _plural(word) else (Entity("identifier", word.casefold()),)
    low = word.casefold()
    return (Entity("identifier", f"^{low[:HASH_HEAD]}"),) if _HASH.fullmatch(low) else ()


def _plural(word: str) -> bool:
    """``APIs`` and ``IDs``."""
    return word[:-1].isupper() and word.endswith("s")


def _numbered(word: str) -> Iterator[Entity]:
    low = word.casefold()
    if _NUMBERED.fullmatch(low) and low.split("-")[0] not in _NO_TICKETS:
        yield Entity("identifier", low)


def _dotted(word: str) -> Iterable[Entity]:
    """Letters, digits and dots: by what is behind the last one, a file, a host or a member of something."""
    if word[0].isdecimal() or word[1:2].isdecimal():
        return (*_version(word), *_host(word)) or _code(word)
    ending = word.rpartition(".")[2].casefold()
    if ending in FILE_ENDINGS or ":" in word:
        return tuple(_path(word)) or tuple(_bare_host(word)) or _code(word)
    return (ending in _DOMAINS and tuple(_bare_host(word))) or _code(word)


_Rule = Callable[[str], Iterable[Entity]]
_OF_SIGIL: Mapping[str, tuple[_Rule, ...]] = {
    "-": (_flag,),
    "$": (_variable,),
    "@": (_handle,),
    "#": (_number,),
    ".": (_path,),
}
_OF_SIGN: tuple[tuple[str, tuple[_Rule, ...]], ...] = (
    ("/", (_address, _path)),
    ("\\", (_path,)),
    ("@", (_address,)),
    ("-", (_ticket, _version, _path, _bare_host, _numbered, _code)),
    ("", (_dotted,)),
)
"""By the first of these signs that a word holds. Of its rules, the first that finds anything decides."""
