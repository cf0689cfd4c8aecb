"""Two statements that cannot both hold: the same subject with another value, or one of them negated (T28). Pure.

A rule of thumb decides by words, so it is built to be silent in doubt: a conflict that is not there costs more trust
than one that is missed. Texts are compared sentence by sentence, in the words of ``recall.gist``.

- *Negation*: without words that negate, both say exactly the same, and one of them is negated.
- *Value*: both say the same of the same subject up to one word, which is a number, quantity, version, path, host or
  name in the place of the value ("port is 8090", "API listens on 8091"). A bare name counts where the subject can have
  only one (a branch, an owner) or where both names are known to exclude each other (npm, pnpm).

Bounds ("at least 3"), refinements (3.11 and 3.11.4, a folder and a file in it), other units for the same quantity,
and numbers that name something (issue 5, step 2) are no conflicts. Knows nothing about stores or scopes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from grounded_mcp.recall.gist import Gist, gist

Clash = Literal["value", "negation"]
Relation = Literal["is", "place", "has", "uses"]
Shape = Literal["number", "quantity", "version", "dotted", "path", "identifier", "word"]

MAX_SENTENCES = 24
MAX_SENTENCE = 400
MAX_CHARS = 20_000
"""Of each text; what is longer is a document rather than a claim."""
MAX_NAME_WORDS = 3


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _stems(text: str) -> frozenset[str]:
    return frozenset(gist(text.replace("_", "")).told)


# --- words ------------------------------------------------------------------------------------------------

_NEGATIONS = _words(
    "not no without avoid none nor neither nicht kein keine keinen nie niemals ohne pas jamais sans aucun nunca sin"
    " ningún jamás não sem non senza niet geen nooit не нет никогда"
)
# What says the same as its opposite negated: (concept, whether it is the negative one).
_POLES = {
    stem: (concept, negative)
    for concept, positives, negatives in (
        ("enabled", "enable enabled active", "disable disabled inactive"),
        ("allowed", "allow allowed permit permitted", "forbid forbidden prohibit prohibited deny disallowed"),
        ("required", "required mandatory", "optional"),
        ("safe", "safe", "unsafe"),
        ("supported", "supported", "unsupported"),
    )
    for names, negative in ((positives, False), (negatives, True))
    for name in names.split()
    for stem in gist(name).told
}
_GIVEN_UP = re.compile(r"(?i)\b(?:no longer|not any ?more|stop(?=\s+\w+ing\b))\b")
_ANY_MORE = re.compile(r"(?i)\bany ?more\b")

_HEADS = _words(
    "port host hostname address url uri endpoint domain version branch username owner maintainer lead author path "
    "folder directory file region zone bucket database schema namespace cluster language framework editor license "
    "encoding charset locale currency timezone manager runner linter formatter bundler compiler interpreter runtime "
    "shell engine broker registry provider platform entrypoint command script target prefix suffix algorithm protocol "
    "scheme mode level strategy theme deadline limit timeout style user name password channel model cache queue"
)
"""Nouns of what there is one of."""

_FAMILIES = tuple(
    map(
        _stems,
        (
            "npm yarn pnpm bun",
            "poetry pipenv pdm uv hatch conda",
            "pytest unittest nose",
            "jest vitest mocha",
            "tabs spaces",
            "single double",
            "postgres mysql mariadb sqlite oracle",
            "rebase squash merge",
            "black yapf autopep8",
            "http https",
        ),
    )
)
_ALIASES = {"postgresql": "postgres", "127.0.0.1": "localhost", "nodejs": "node", "node.js": "node"}
_EMPTY_NOUNS = _stems("number value setting current currently")
# Not names, though they may stand where a name does.
_ADJECTIVES = _stems(
    "slow fast broken fragile flaky new old big small good bad dynamic random unknown wrong correct ready down up full "
    "empty stable free busy large long short safe important critical green red clean dirty done live private public "
    "shared unique common different special same fine okay huge tiny strict simple complex open closed late early "
    "required secure here there missing"
)
_ADJECTIVE = re.compile(r"(?:able|ible|ous|ive|ful|less|ed|ing|ly|ical|ant|ent)$")
_NUMBERED = _stems("issue ticket bug pr pull step migration commit chapter section line page case test rule phase row")
_BOUND = re.compile(
    r"(?i)\b(?:at (?:least|most)|more than|less than|fewer than|greater than|over|under|above|below|up to|between|"
    r"around|about|approximately|roughly|minimum|maximum|from)\b|[<>≥≤~]"
)
_MOVED = _stems("port host hostname address url endpoint version branch region bucket database schema")

# --- sentences --------------------------------------------------------------------------------------------

_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_WORD = re.compile(r"\w[\w-]*")
_RELATIONS: tuple[tuple[Relation, str], ...] = (
    (
        "place",
        r"(?:(?:is|are)\s+)?(?:located|stored|kept|hosted|deployed|served|reachable|published)\s+(?:at|in|on|under|to)"
        r"|(?:lives?|resides?|points?|resolves?|defaults?|listens?|binds?|runs?|goes|expires?)\s+(?:at|in|on|to|after)"
        r"|(?:is|are)\s+(?:at|in|on|under)|(?:is|are)\s+set\s+to",
    ),
    ("is", r"(?:is|are|equals?|(?:should|must|has to|have to)\s+be)(?:\s+(?:named|called))?"),
    ("uses", r"uses?|using"),
    ("has", r"requires?|needs?|has|have|takes?|keeps?|waits?|allows?|retries"),
)
_RELATION = re.compile(
    r"(?i)(?P<sign>:?=|:(?=\s))|" + "|".join(rf"(?P<{name}>(?<!\w)(?:{words})(?!\w))" for name, words in _RELATIONS)
)
_LISTENS = re.compile(r"(?i)(?:listens?|binds?)\b")
_THE = re.compile(r"(?i)\s*(?:the|our|its|my)\b")

_UNITS = {
    name: (unit, factor)
    for unit, factor, names in (
        ("seconds", 0.001, "ms millisecond milliseconds"),
        ("seconds", 1, "s sec secs second seconds"),
        ("seconds", 60, "min mins minute minutes"),
        ("seconds", 3_600, "h hr hrs hour hours"),
        ("seconds", 86_400, "d day days"),
        ("seconds", 604_800, "week weeks"),
        ("bytes", 1e3, "kb"),
        ("bytes", 1_024, "kib"),
        ("bytes", 1e6, "mb"),
        ("bytes", 1_048_576, "mib"),
        ("bytes", 1e9, "gb"),
        ("bytes", 1_073_741_824, "gib"),
        ("percent", 1, "% percent"),
    )
    for name in names.split()
}
_QUANTITY = re.compile(
    rf"(?i)(?<![\w.])(\d+(?:\.\d+)?)[\s-]?({'|'.join(sorted(map(re.escape, _UNITS), key=len, reverse=True))})(?!\w)"
)

_SHAPES: tuple[tuple[Shape, re.Pattern[str]], ...] = (
    ("quantity", re.compile(r"[\d.]+_(?:seconds|bytes|percent)")),
    ("version", re.compile(r"v\d+(?:\.\d+)*|\d+(?:\.\d+)+(?:[-+]?(?:rc|a|b|beta|alpha)[\w.]*)?")),
    ("number", re.compile(r"\d[\d:,/_-]*")),
    ("path", re.compile(r".*[/\\].*")),
    ("dotted", re.compile(r".*\w[.@]\w.*|localhost(?::\d+)?")),
    ("identifier", re.compile(r".*[\d_@#-].*")),
    ("word", re.compile(r".*")),
)


@dataclass(frozen=True, slots=True)
class Said:
    """One sentence: what it says without its negation, and its value where it has one."""

    words: Gist
    negative: bool
    subject: frozenset[str] = frozenset()
    head: str = ""
    relation: Relation | None = None
    value: tuple[str, ...] = ()
    bounded: bool = False
    plural: bool = False
    alone: bool = True
    """Whether it is all that its text says. Other sentences may say what a bare "the port" is the port of."""


def clash(one: str, other: str) -> Clash | None:
    """Why two texts cannot both hold; None where nothing speaks against it."""
    return clashing(said(one), said(other))


def clashing(one: Sequence[Said], other: Sequence[Said]) -> Clash | None:
    """``clash`` of texts that were read before."""
    found = (_clash(left, right) for left, right in product(one, other))
    return next(filter(None, found), None)


def said(text: str) -> tuple[Said, ...]:
    """A text's sentences as they are compared. Questions say nothing."""
    told = [each for each in sentences(text[:MAX_CHARS]) if not each.endswith("?") and len(each) <= MAX_SENTENCE]
    del told[MAX_SENTENCES:]
    return tuple(_said(each, alone=len(told) == 1) for each in told)


def sentences(text: str) -> list[str]:
    """A text's sentences and lines, without the marks of a list."""
    return [each for each in (_BULLET.sub("", piece).strip() for piece in _SENTENCE_END.split(text)) if each]


def _said(sentence: str, *, alone: bool) -> Said:
    text = _QUANTITY.sub(_quantity, _ANY_MORE.sub(" ", _GIVEN_UP.sub("not", sentence)))
    words, negative = _without_negation(gist(text))
    for match in _RELATION.finditer(text):
        ahead, behind = text[: match.start()], text[match.end() :]
        relation: Relation = "is" if match["sign"] else next(name for name, _ in _RELATIONS if match[name])
        if relation == "is" and _THE.match(behind) and _is_value(gist(ahead).told):
            ahead, behind = behind, ahead  # "8090 is the port"
        subject, value = gist(ahead).told, tuple(_ALIASES.get(word, word) for word in gist(behind).told)
        if not value or not (subject or relation in ("uses", "has")):
            continue
        plural = not re.match(r"(?i)is\b|\w+s\b", match[0])
        head = _head(ahead)
        if len(value) > 1 and relation != "is" and value[0] in _MOVED and _is_exact(value[1]):
            subject, value, relation, head = (*subject, value[0]), value[1:], "is", value[0]
        elif _LISTENS.match(match[0]) and _shape(value[0]) == "number":
            subject, relation = (*subject, "port"), "is"
        about = frozenset(subject) - _EMPTY_NOUNS
        return Said(words, negative, about, head, relation, value, bool(_BOUND.search(text)), plural, alone)
    return Said(words, negative, alone=alone)


def _without_negation(told: Gist) -> tuple[Gist, bool]:
    negative, kept = False, []
    for word in told.told:
        concept, opposite = _POLES.get(word, (word, False))
        negative ^= opposite or word in _NEGATIONS
        if word not in _NEGATIONS:
            kept.append(concept)
    marks = frozenset(_POLES.get(word, (word, False))[0] for word in told.marks - _NEGATIONS) & frozenset(kept)
    poles = frozenset(concept for concept, _ in _POLES.values())
    return Gist(marks - poles, tuple(dict.fromkeys(kept))), negative


def _head(subject: str) -> str:
    """The noun that a subject is about: of "owner of the build" it is the owner."""
    words = _WORD.findall(re.split(r"(?i)\s(?:of|for|in|on|at|to)\s", subject, maxsplit=1)[0].lower())
    return next((word for word in reversed(words) if not _stems(word) & _EMPTY_NOUNS), "")


def _quantity(match: re.Match[str]) -> str:
    unit, factor = _UNITS[match[2].lower()]
    amount = f"{float(match[1]) * factor:.4f}".rstrip("0").rstrip(".")
    return f"{amount}_{unit}"


def _is_value(words: Sequence[str]) -> bool:
    return len(words) == 1 and _is_exact(words[0])


def _is_exact(word: str) -> bool:
    """Whether it is a value by its shape: a number, a version, a path, a host."""
    return _shape(word) not in ("word", "identifier")


def _shape(word: str) -> Shape:
    return next(name for name, pattern in _SHAPES if pattern.fullmatch(word))


# --- rules ------------------------------------------------------------------------------------------------


def _clash(one: Said, other: Said) -> Clash | None:
    if one.negative != other.negative:
        enough = 1 if one.alone and other.alone else 3
        return "negation" if len(one.words.told) >= enough and one.words.same_as(other.words, 0) else None
    if one.negative or one.relation is None or one.relation != other.relation or one.subject != other.subject:
        return None
    if one.bounded or other.bounded or (len(one.subject) < 2 and not (one.alone and other.alone)):
        return None
    return "value" if _exclude(one, other) else None


def _exclude(one: Said, other: Said) -> bool:
    """Whether one subject cannot have both values."""
    pairs = [(a, b) for a, b in zip(one.value, other.value, strict=False) if a != b]
    if len(one.value) == len(other.value) and len(pairs) == 1:
        (left, right), at = pairs[0], next(i for i, word in enumerate(one.value) if word != other.value[i])
        if at and one.value[at - 1] in _NUMBERED:
            return False
        shape = _shape(left)
        return shape == _shape(right) and _RULES[shape](one, other, left, right)
    return _are_names(one, other) and not set(one.value) & set(other.value)


def _numbers(_one: Said, _other: Said, left: str, right: str) -> bool:
    return left.replace(",", "") != right.replace(",", "")


def _versions(_one: Said, _other: Said, left: str, right: str) -> bool:
    return not _refines(left.removeprefix("v"), right.removeprefix("v"), ".")


def _paths(one: Said, _other: Said, left: str, right: str) -> bool:
    left, right = (re.sub(r"^\w+://", "", each).replace("\\", "/").strip("/") for each in (left, right))
    if one.relation not in ("is", "place") or _refines(left, right, "/"):
        return False
    # "Tests are in tests/unit" leaves room for more of them beside it.
    return not (one.relation == "place" and one.plural and left.split("/")[0] == right.split("/")[0])


def _hosts(one: Said, _other: Said, left: str, right: str) -> bool:
    return one.relation in ("is", "place") and not _refines(left, right, ":")


def _names(one: Said, other: Said, left: str, right: str) -> bool:
    if any(left in family and right in family for family in _FAMILIES):
        return one.relation in ("is", "uses")
    return _are_names(one, other)


_RULES = {
    "quantity": _numbers,
    "number": _numbers,
    "version": _versions,
    "path": _paths,
    "dotted": _hosts,
    "identifier": _names,
    "word": _names,
}


def _are_names(one: Said, other: Said) -> bool:
    """Whether both values are plain names of what there is one of."""
    named = one.relation == "is" and one.head == other.head and one.head in _HEADS
    return named and all(len(each.value) <= MAX_NAME_WORDS and all(_is_name(each.value)) for each in (one, other))


def _is_name(words: Sequence[str]) -> Iterator[bool]:
    for word in words:
        kind = _shape(word)
        yield kind == "identifier" or (kind == "word" and word not in _ADJECTIVES and not _ADJECTIVE.search(word))


def _refines(one: str, other: str, joint: str) -> bool:
    """Whether one is the other, or begins with all of it: 3.11 and 3.11.4."""
    return one == other or one.startswith(other + joint) or other.startswith(one + joint)
