"""Which project does a caller mean, and what does that admit? Names as callers write them into scopes as stored (R9).

Knows nothing about what is asked there.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, get_args

from grounded_mcp.accounts import StoreInfo
from grounded_mcp.errors import InputError
from grounded_mcp.foreground import ELSEWHERE, Most, Weights
from grounded_mcp.ingest.redact import Redactor, clean_project
from grounded_mcp.project import canonical_scope, elsewhere, identify, known_project
from grounded_mcp.recall.scope import ANY_PROJECT, admit
from grounded_mcp.stores.base import Store
from grounded_mcp.values import GLOBAL_SCOPE, Filter, Kind, Project, ScopeFilter

LATEST = 1_000
"""Items whose ids are offered."""


MOST_NAMED = 5
"""Known projects that are named where one is unknown, the most similar first."""


class Names(NamedTuple):
    """What a person may name here. ``ids``: of the latest items that a recall admits, newest first."""

    projects: tuple[str, ...]
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """The current project among those that the store knows. ``root``: its folder by its real name."""

    store: Store
    redactor: Redactor
    project: Project
    root: Path
    hostname: str
    environment: Mapping[str, str] | None

    def scope(self, written: str) -> str:
        """A fact's scope as it is stored. Raises: InputError."""
        return canonical_scope(written, self.project, self.store.projects(), hostname=self.hostname)

    def filter(self, project: str | None, fact_scopes: Sequence[str] | None) -> ScopeFilter:
        """What a recall admits. Raises: InputError for what cannot be a project or a scope; StoreError."""
        known = self.store.projects()
        declared = None if project in (None, "", ANY_PROJECT) else self._declared(project or "", known)
        named = None
        if fact_scopes is not None:
            here = declared or self.project
            named = [canonical_scope(each, here, known, hostname=self.hostname) for each in fact_scopes]
        return admit(
            self.project,
            declared=declared,
            fact_scopes=named,
            stored=self.store.scopes(),
            known=known,
            anywhere=project == ANY_PROJECT,
        )

    def one(self, name: str | None) -> Project:
        """The project of a name; the current one without a name. Raises: InputError; StoreError."""
        if name == ANY_PROJECT:
            remedy = "Name one project, or leave it out for the current one; ground_recall searches all."
            raise InputError("project", "* is not a project.", remedy)
        return self._declared(name, self.store.projects()) if name else self.project

    def names(self) -> Names:
        """What can be named here. Raises: StoreError."""
        admitted = self.filter(None, None)
        facts = Filter(frozenset({"fact"}), admitted.facts)
        others = Filter(frozenset(get_args(Kind)) - {"fact"}, admitted.others)
        with self.store.reading():
            found = [*self.store.recent(facts, LATEST), *self.store.recent(others, LATEST)]
            known = {project.name for project in self.store.projects()}
        latest = sorted(found, key=lambda item: (-item.updated_at, item.id))[:LATEST]
        return Names(tuple(sorted(known)), tuple(item.id for item in latest))

    def held(self) -> dict[Kind, int]:
        """The items by kind that a recall here admits. Raises: StoreError."""
        admitted = self.filter(None, None)
        facts, others = admitted.facts or frozenset(), admitted.others or frozenset()
        counts = self.store.foreground(facts, others, Most(0, 0, 0, 0), Weights()).counts
        return {kind: counts[kind] for kind in sorted(get_args(Kind)) if counts.get(kind)}

    def nothing_stored(self, scope: ScopeFilter) -> str | None:
        """An empty answer from a project that was never indexed is not an answer about the question."""
        if scope.others is None or not self.store.scopes().isdisjoint(scope.others - {GLOBAL_SCOPE}):
            return None
        wanted = min(scope.others - {GLOBAL_SCOPE})
        known = self.store.projects()
        at = {project.scope: project.root for project in known} | {self.project.scope: str(self.root)}
        if wanted not in at and known:
            return self._unknown(wanted.removeprefix("project:"), known)
        told = self.formerly() if wanted == self.project.scope else None
        if told is None and self._is_here(at.get(wanted)):
            told = "Run `grounded-mcp sync` in its folder."
        return f"Nothing is stored for {wanted} yet." + (f" {told}" if told else "")

    def _is_here(self, root: str | None) -> bool:
        """Whether a project's folder is on this machine; of one that is not known, it may be where there are any."""
        if root is None:
            return str(self.root) != ELSEWHERE
        with suppress(OSError):
            return Path(root).is_dir()
        return False

    def _unknown(self, name: str, known: Sequence[Project]) -> str:
        from difflib import get_close_matches  # only for a name that is wrong

        count = Counter(project.name for project in known)
        names = sorted({project.key if count[project.name] > 1 else project.name for project in known})
        nearest = get_close_matches(name, names, n=MOST_NAMED, cutoff=0.0)
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        return f"No project {name} is known here. Known: {', '.join(nearest)}{more}."

    def formerly(self, *, merge: bool = False) -> str | None:
        """Where the memory of this folder is, while its project holds nothing: under the key that it had before it was
        moved or got a remote. With the command that brings it here, also once something is (``merge``). Raises:
        StoreError."""
        stored = self.store.scopes()
        if self.project.scope in stored or str(self.root) == ELSEWHERE:
            return None
        held = {
            each: sum(self.store.info(scopes=(each.scope,)).items.values())
            for each in self.store.projects()
            if each.scope in stored and self._was(each)
        }
        if not held:
            return None
        there = max(held, key=lambda each: held[each])
        count = f"{held[there]:,} item{'s are' if held[there] > 1 else ' is'} stored under"
        where = "another key of this folder. To have it here:"
        if there.root != self.project.root:
            where = "a key of the same name, whose folder is gone. If it was moved here:"
        command = ["grounded-mcp", "projects", "rename", there.key, self.project.key, *["--merge"] * merge]
        return f"{count} {where} `{shlex.join(command)}`"

    def warned(self, info: StoreInfo) -> StoreInfo:
        """What ``status`` says, with that. Raises: StoreError."""
        told = self.formerly()
        return replace(info, warnings=(*info.warnings, told)) if told else info

    def _was(self, other: Project) -> bool:
        """Whether a project may be this one by another key: of the same root, or of its name with none any more."""
        if other.root == self.project.root:
            return True
        alike = other.name.casefold() == self.project.name.casefold()
        return alike and other.root != ELSEWHERE and not os.path.exists(other.root)  # noqa: PTH110 - never raises

    def _declared(self, name: str, known: Sequence[Project]) -> Project:
        found = known_project(name, known)
        if found is not None:
            return found
        if str(self.root) == ELSEWHERE:
            return clean_project(elsewhere(name), self.redactor)
        return clean_project(identify(self.root, explicit=name, env=self.environment), self.redactor)
