"""How far an item is to be trusted (C2): rules over kind, git state, signs, place and form, the first that fits. Pure.

=================  ==============================================================================================
level              what it is, after the page "How retrieval works"
=================  ==============================================================================================
``live_state``     can be run or observed: source code, scripts, manifests, configuration
``tracker``        kept to record state: PROJECT_STATE.md, TODO.md, dated decision notes; a learning that held
``committed_doc``  durable written framing: README, CLAUDE.md, AGENTS.md, a PRD; a fact that a person stated
``discussion``     conversations and what agents reasoned; an observation that nothing proved
``discounted``     may be stale: untracked or deleted files, generated reports, what is archived or refuted
=================  ==============================================================================================

A path that one of ``[pack.trust]``'s patterns names is what they say, unless the file is gone. Knows nothing about
scores or sections.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from typing import NamedTuple

from grounded_mcp.packing import Trust
from grounded_mcp.trust import Confidence
from grounded_mcp.values import Item

_REPORT_SUFFIXES = ("htm", "html", "json", "md", "txt", "xml")
GENERATED = (
    *(f"{folder}/*.{suffix}" for folder in ("coverage", "htmlcov", "reports") for suffix in _REPORT_SUFFIXES),
    *(
        f"{what}[-_]report.{suffix}"
        for what in ("audit", "benchmark", "build", "coverage", "lint", "performance", "scan", "test")
        for suffix in _REPORT_SUFFIXES
    ),
    *("report.htm", "report.html", "lighthouse[-_.]*", "benchmark-results*", "*.generated.*"),
    *("*_pb2.py", "*.pb.go", "*.lock"),
)
"""Paths of what tools write. A header that says so is found when a document is indexed (``attrs["generated"]``)."""

_FORMS: Mapping[str, tuple[Trust, str]] = {
    "live": ("live_state", "programs run or read it"),
    "tracker": ("tracker", "it is kept to record state"),
    "guidance": ("committed_doc", "a document of the project"),
}


@dataclass(frozen=True, slots=True)
class TrustOptions:
    """[pack.trust]: paths (``*`` within a folder or across folders) that are of a level whatever their name says."""

    live_state: Sequence[str]
    tracker: Sequence[str]
    committed_doc: Sequence[str]
    discussion: Sequence[str]
    discounted: Sequence[str]


class Level(NamedTuple):
    """A level and the rule that gave it."""

    trust: Trust
    because: str


def level(item: Item, confidence: Confidence | None, options: TrustOptions) -> Level:
    """The trust in an item. ``confidence``: what stands behind it, where that was judged."""
    if item.kind == "doc":
        return _document(item, options)
    if confidence is not None and confidence.state != "active":
        return Level("discounted", f"it is {confidence.state}")
    if item.kind == "fact":
        stated = item.origin == "stated"
        return Level("committed_doc", "a person stated it") if stated else Level("discussion", "it was derived")
    if item.kind == "learning" and confidence is not None and confidence.support_count > 0:
        proven = confidence.evidence_score >= PROVEN
        return Level("tracker", "it was verified") if proven else Level("discussion", "nothing proved it")
    return Level("discussion", "an agent tried it" if item.kind == "episode" else "it was said in a session")


PROVEN = 0.5
"""The evidence score of one verified outcome that nothing contradicts (P3)."""


def _document(item: Item, options: TrustOptions) -> Level:
    if item.state == "missing":
        return Level("discounted", "its file is gone")
    path = item.key or ""
    for trust in ("discounted", "live_state", "tracker", "committed_doc", "discussion"):
        if matches(path, tuple(getattr(options, trust))):
            return Level(trust, "[pack.trust] names it")
    if item.attrs.get("git") == "untracked":
        return Level("discounted", "git does not track it")
    if "generated" in item.attrs or matches(path, GENERATED):
        return Level("discounted", "a tool generated it")
    if item.state == "archived":
        return Level("discounted", "it is archived")
    return Level(*_FORMS.get(item.attrs.get("form", ""), _FORMS["guidance"]))


def matches(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether a path fits one of the patterns, case aside. One without a slash is about the name alone."""
    folded = path.casefold()
    whole, name = _compiled(patterns)
    return whole.match(folded) is not None or name.match(folded.rpartition("/")[2]) is not None


@lru_cache(64)
def _compiled(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What whole paths, and what names, are to match; nothing matches where there is no pattern."""
    split = ([each for each in patterns if "/" in each], [each for each in patterns if "/" not in each])
    whole, name = (re.compile("|".join(translate(each.casefold()) for each in some) or r"(?!)") for some in split)
    return whole, name
