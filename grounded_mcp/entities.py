"""What a text is about, as far as its letters tell: identifiers, paths, hosts, tickets, names - found without a model.

``entities`` reads a text of a store, ``asked`` a question. Texts that share an entity are related, which is all that
the graph search goes by: a missed entity costs little, a false one connects what has nothing to do with each other,
so whatever may be an ordinary word is left out. What one word's shape gives away is in ``wordshapes.py``, what code in
prose does in ``concrete.py``; this room adds what takes the words around it. Pure. Knows nothing about stores.

==============  =====================================================  ==========================================
kind            what is taken                                          key
==============  =====================================================  ==========================================
``name``        ``Maria Silva``, each part of it, ``NASA``, ``Maria:`` ``maria silva``, ``maria``, ``silva``
``identifier``  ``getUserById``, ``get_user_by_id``, ``os.path``       ``getuserbyid``, ``os.path``
``error``       ``TimeoutError``, ``ECONNREFUSED``                     ``timeouterror``
``env``         ``$HOME``, ``GROUNDED_HOME``                           ``home``, ``groundedhome``
``path``        ``src/a/b.py:42``, ``README.md``, ``.gitignore``       ``src/a/b.py`` and ``b.py``
``host``        of a URL or a mail address; ``db.internal:5432``       ``db.internal``
``ticket``      ``KB-4156``, ``#1234``                                 ``kb-4156``
``version``     ``v2.3``, ``1.0.21``                                   ``2.3``
``package``     ``@scope/pkg``, what is imported or installed          ``@scope/pkg``
``handle``      ``@maria``, ``maria@corp.example``                     ``@maria``
``flag``        ``--no-verify``                                        ``--no-verify``
==============  =====================================================  ==========================================

A name is a word with a capital where a sentence would not put one: not at its start, not in a heading, not a month.
At the start of a sentence it needs a second capital, a verb in the third person, or to be named again further on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, dropwhile, islice

from grounded_mcp.concrete import MAX_CHARS, EntityId, entity_id, packages, quoted, shapes
from grounded_mcp.folding import STOP_WORDS, fold, words
from grounded_mcp.wordshapes import Entity, squash

__all__ = ["ENTITIES_VERSION", "MAX_ENTITIES", "Entity", "EntityId", "asked", "entities", "entity_id"]

ENTITIES_VERSION = 1
"""Raised whenever the entities of any text change: stores compare it and extract again."""

MAX_ENTITIES = 40
"""Most entities of one text: a list of a hundred names is about none of them."""

_COMMON = STOP_WORDS | frozenset(
    """above absolutely according across action actually add added adding additionally after again against ago ah ai all
    allow allows almost along already also although always am amazing among and another anyone anything anyway api
    appendix apr april args arguments around asap ask assistant attributes aug august available avoid aw awesome aww
    back background based basic because become before behind below besides best better between big both bottom breaking
    bro btw bug build but bye call called can case cause caution certain change changed changes chapter check choose
    christmas class clear cli click code com come comment commit common complete config configuration congrats
    congratulations consider const content context cool copy correct could cpu create created creates css current
    currently customer dad danger data date day days dear debug dec december def default define definitely delete
    deprecated description despite details different do document documentation does done down dude due during each early
    easter either else email empty enable end english enjoy ensure enter error errors even ever every everyone
    everything exactly example examples except exciting expected explore fact false fantastic faq feb february few
    figure file files final finally find fine first five fix fixed follow following for force found four free fri friday
    from full fun function further furthermore future fyi get gets getting give given glad go god going good got gotcha
    gpu great guess gui ha had haha hang happy hard has hava have having he hello help hence her here hey hi high hint
    his hmm hope however html http hugs huh human i id ide idea ids if image import important in include included
    includes including indeed info information initial input inside instead internal internet introduction issue it its
    jan january json jul july jun june just keep key know knowing kwargs last lately later latest learn learning least
    left less let lets life like likely line link list load local log lol look looking looks lots love made main major
    make makes man many mar march may maybe me mean meanwhile message method might minor model module mom mon monday
    month more moreover most mostly move mr mrs ms much must name namely nature near nearly need needs neither never
    nevertheless new next nice nil no nobody none nope nor normally not note notes nothing notice nov november now null
    number oct october of off often oh ok okay old omg on once one ones only onto ooh open option optional options or
    original other others otherwise output over overview own page parameter parameters part pass per perfect perhaps
    phew please plus pm point possible pr press pretty previous previously print private probably problem project prompt
    provide provides prs public push put question questions quick quickly quite raise raises ram rather read ready
    realizing really reason recent recently red ref reference references related release remember remove removed removes
    replace request required requires response result results return returned returns review right run running same sat
    saturday save saw say sdk second section see seems select self send sep sept september server set sets several she
    should show shows similar similarly simple simply since single six small so some someone something sometimes
    somewhere soon sorry sound sounds source specific sql ssh start started starting state status step steps still stop
    string subject such summary sun sunday support sure system table take takes talk tell ten test tests text thank
    thanks that the then there therefore these thing things think third this those though thought three through thu thur
    thurs thursday thus time tip title to today todo together tomorrow tonight tons too tool top topic total totally
    towards true try trying tue tues tuesday turn tv two type types typically ugh uh ui um under unfortunately unless
    unlike until up update updated updates upon uri url us usa usage use used user users uses using usually value values
    var version very via view wait want wants warning was way we wed wednesday week welcome well what whatever whenever
    whereas wherever whether while whoa whole wish within without wonderful woohoo wow write written xml yaml yay yeah
    year years yep yes yesterday yet yields you your yourself""".split()  # noqa: SIM905 - a list literal would take 400 lines
)
"""Lower-case words that are no names however they are written: what sentences, headings and labels begin with."""

_LONGEST_NAME = 40
_CAPITAL = "A-ZÆØÞŁĐΑ-ΩА-ЯІЇЄҐ"
_NAME = rf"(?!I\b)[{_CAPITAL}][^\W_]*(?:['-][^\W_]+)*"
_CONTRACTED = re.compile("'(?:s|m|ve|ll|d|re|t)$")
_PLURAL = re.compile("[A-Z]{2,}s")
_MORE = r"[^\W_]*(?:['-][^\W_]+)*"
_ACTS = (
    " (?:is|was|has|had|said|says|wrote|writes|works|worked|lives|lived|joined|moved|likes|loves|wants|wanted|asked"
    "|told|owns|runs|prefers|knows|thinks)(?![a-z])"
)
_RUN = re.compile(
    rf"""[{_CAPITAL}](?:(?<=[a-z,;&][ ].)()|(?<=[a-z,;&][ ]\(.)()|(?<![\w.@/#$\\'-].))(?!(?<=I)\b)
    {_MORE}(?:[ ]{_NAME}){{0,4}}(?![\w(/\\@]|\.\w)(?:(?={_ACTS.replace(" ", "[ ]")})())?""",
    re.VERBOSE,
)
"""A run of words with capitals. Groups 1 and 2: inside a sentence; 3: with a verb in the third person behind it.

It begins with the letter, which a search skips to; what stands before is looked at then.
"""
_SPEAKER = re.compile(rf"^({_NAME}(?: {_NAME}){{0,2}}):[ \t]", re.MULTILINE)
_ABSTRACT = ("ing", "ed", "ly", "tion", "sion", "ment", "ness", "ance", "ence", "ity", "ism", "ings", "ions")


def entities(text: str) -> tuple[Entity, ...]:
    """What a text is about, each key once, at most ``MAX_ENTITIES``. Never raises; time linear in the length."""
    folded = fold(text[:MAX_CHARS])
    found = chain(_names(folded), packages(folded), _quoted(folded), shapes(folded))
    return tuple(islice({entity.key: entity for entity in found}.values(), MAX_ENTITIES))


def asked(text: str) -> tuple[Entity, ...]:
    """What a question asks about: its entities, and each of its plain words as one who speaks (``maria:``).

    Few write capitals in a question; but as names its words would be too many that only look like one.
    """
    folded = fold(text[:MAX_CHARS])
    plain = (_CONTRACTED.sub("", word).casefold() for word in words(folded).findall(folded))
    spoken = (Entity("name", f"{word}:") for word in plain if word.isalpha() and _telling(word))
    return tuple(islice({entity.key: entity for entity in chain(entities(text), spoken)}.values(), MAX_ENTITIES))


def _telling(word: str) -> bool:
    return 2 < len(word) <= _LONGEST_NAME and word not in _COMMON


# --- names ------------------------------------------------------------------------------------------------


def _names(folded: str) -> Iterator[Entity]:
    for speaker in _SPEAKER.finditer(folded):
        if found := tuple(_name(speaker[1].split())):
            yield Entity("name", f"{found[0].key}:")
            yield from found
    for run in _RUN.finditer(folded):
        if run[1] is not None or run[2] is not None:
            yield from _name(run[0].split(" "))
        elif run.lastindex or " " in run[0] or run[0].endswith("'s"):
            yield from _name(_without_start(folded, run))


def _name(run: Sequence[str]) -> Iterator[Entity]:
    """The whole name, and each part that is telling alone; nothing of a shout (``DO NOT EDIT``)."""
    if all(map(str.isupper, run)) and (len(run) != 1 or not 2 < len(run[0]) < 7):
        return
    parts = [_CONTRACTED.sub("", word).casefold() for word in run]
    telling = [part for part, word in zip(parts, run, strict=True) if _telling(part) and not _PLURAL.fullmatch(word)]
    if len(parts) > 1 and telling:
        yield Entity("name", " ".join(parts))
    yield from (Entity("name", part) for part in telling)


def _without_start(folded: str, run: re.Match[str]) -> Sequence[str]:
    """A run at the start of a sentence without the words that only begin it; none of a heading or a list's entry."""
    start, end = run.span()
    if folded[folded.rfind("\n", 0, start) + 1 : start].strip(" #*-") == "" and folded[end : end + 1] in ("", "\n"):
        return ()
    found = run[0].split(" ")
    if len(found) == 1:
        return () if found[0].endswith(_ABSTRACT) else found
    if all(map(str.isupper, found)):
        return ()
    return tuple(dropwhile(lambda word: _CONTRACTED.sub("", word).casefold() in _COMMON, found))


def _quoted(folded: str) -> Iterator[Entity]:
    """What a text marks as code, plain words too."""
    return (Entity("identifier", squash(word)) for word in quoted(folded) if _telling(word.casefold()))
