"""Whose memory may answer: the scope filter (R9). Pure.

A named project admits ``global`` and its own rows only. Named fact scopes admit exactly those facts and
``global``. With nothing named, the folder's project answers: rows of other known projects are left out, and
``machine:``, ``agent:`` and unclaimed scopes pass. ``*`` as project lifts the filter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from grounded_mcp.foreground import GLOBAL_SCOPE, Here

if TYPE_CHECKING:
    from grounded_mcp.values import Project, ScopeFilter

ANY_PROJECT = "*"


def everything() -> ScopeFilter:
    """No filter at all."""
    from grounded_mcp.values import ScopeFilter  # a brief asks only for ``at_home``, and is to be quick

    return ScopeFilter(facts=None, others=None, source="none")


def admit(
    folder: Project,
    *,
    declared: Project | None,
    fact_scopes: Sequence[str] | None,
    stored: Iterable[str],
    known: Iterable[Project],
    anywhere: bool = False,
) -> ScopeFilter:
    """The filter for one recall.

    ``declared`` is the project the caller named, ``fact_scopes`` the canonical scopes the caller named, ``stored``
    every scope the store holds and ``known`` every registered project. ``anywhere``: the caller named ``*``, so that
    only the facts are filtered, and only where their scopes are named.
    """
    from grounded_mcp.values import ScopeFilter

    if anywhere:
        facts = None if fact_scopes is None else frozenset({GLOBAL_SCOPE, *fact_scopes})
        return ScopeFilter(facts, None, "none" if facts is None else "factScopes")
    home = declared or folder
    everyone = (*known, home)
    others = frozenset({GLOBAL_SCOPE, home.scope})
    named = declared.scope if declared else None
    if fact_scopes is not None:
        return ScopeFilter(frozenset({GLOBAL_SCOPE, *fact_scopes}), others, "factScopes", named)
    if declared is not None:
        return ScopeFilter(frozenset({GLOBAL_SCOPE, *_own_scopes(declared, everyone)}), others, "project", named)
    return ScopeFilter(*at_home(folder, stored, known), "folder")


def at_home(folder: Here, stored: Iterable[str], known: Iterable[Here]) -> tuple[frozenset[str], frozenset[str]]:
    """The scopes of facts, and of everything else, that a folder's project admits where nothing is named."""
    everyone = (*known, folder)
    elsewhere = (_own_scopes(each, everyone) for each in everyone if each.key != folder.key)
    foreign = frozenset().union(*elsewhere) - _own_scopes(folder, everyone)
    return frozenset({GLOBAL_SCOPE, folder.scope, *stored}) - foreign, frozenset({GLOBAL_SCOPE, folder.scope})


def _own_scopes(project: Here, known: Sequence[Here]) -> set[str]:
    """The project's scope, and its plain name where no other known project shares it.

    A fact may have been stored under ``project:alpha`` before the folder of alpha was ever seen.
    """
    namesakes = {other.key for other in known if other.name == project.name}
    return {project.scope} | ({f"project:{project.name}"} if len(namesakes) == 1 else set())
