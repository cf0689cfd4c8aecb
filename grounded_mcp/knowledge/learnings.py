"""Recording a learning: a claim with what speaks for or against it, beside what it supports and what it corrects.

Saying a claim again adds evidence to the learning that is there. A verified outcome against an older claim retires
that, with its copies; they stay readable as history. Knows nothing about who records, or about ranking.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, get_args

from grounded_mcp.errors import InputError, NotFound
from grounded_mcp.inert import OPEN
from grounded_mcp.ingest.chunks import split
from grounded_mcp.ingest.facts import FactWriter, title_of
from grounded_mcp.knowledge.conflicts import sentences
from grounded_mcp.knowledge.correction import CLAIMS, DOCUMENTS, LEARNINGS, Claims, ids_of, text_of
from grounded_mcp.knowledge.freshness import Freshness
from grounded_mcp.knowledge.shown import verified_by
from grounded_mcp.outcomes import Learned
from grounded_mcp.recall.gist import gist
from grounded_mcp.text import fingerprint
from grounded_mcp.values import Clean, Evidence, EvidenceKind, Item, Passage, Project, Record

Outcome = Literal["verified", "failed", "diagnostic"]
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)

_PROOF: dict[Outcome, tuple[EvidenceKind, bool]] = {
    "verified": ("verified outcome", True),
    "failed": ("verified outcome", False),
    "diagnostic": ("diagnostic episode", True),
}
"""What each outcome is for the claim itself: the kind of evidence, and whether it supports."""

STATED = "stated:"
"""Begins the source of evidence that a caller stated. Mined evidence has a conversation's id there, and what a claim
says of another one has the id of the claim: it goes when that is deleted."""

_PLACEHOLDER = re.compile(r"\[REDACTED:[^\]]*\]")
_QUOTED = OPEN.split(" ", 1)[0]


@dataclass(frozen=True, slots=True)
class LearningOptions:
    """[learnings]: lengths in characters; ``max_links``: ids in ``supports`` and ``contradicts`` together."""

    max_chars: int = 2_000
    max_note_chars: int = 1_000
    max_links: int = 20


@dataclass(frozen=True, slots=True)
class Lesson:
    """A claim as a caller states it. ``supports`` and ``contradicts`` name other claims that the outcome speaks to."""

    claim: str
    outcome: str
    script: str | None = None
    command: str | None = None
    supports: Sequence[str] = ()
    contradicts: Sequence[str] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A lesson without secrets, and the hash of its script as it is now."""

    claim: Clean
    command: Clean
    note: Clean
    script: Mapping[str, str]
    redactions: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LearningWriter:
    """Everything a lesson passes on its way into the store. ``root``: the folder that scripts lie in.

    It is cleaned and split as facts are.
    """

    claims: Claims
    facts: FactWriter
    options: LearningOptions
    freshness: Freshness
    root: Path
    project: Project

    def write(self, lesson: Lesson, now: float) -> Learned:
        """Store one claim with its evidence, in one transaction with all that it changes.

        Raises: InputError naming the field; NotFound for an unknown id; RedactionError; StoreError: then nothing
        was stored.
        """
        outcome = check(lesson, self.options)
        cleaned = self._clean(lesson)
        for_it, against = self._named("supports", lesson.supports), self._named("contradicts", lesson.contradicts)
        if (refused := self._refused(cleaned.claim, outcome)) is not None:
            return replace(refused, redactions=cleaned.redactions)
        before = self._before(cleaned.claim)
        if before is not None and any(each.id == before.id for each in (*for_it, *against)):
            raise InputError("supports, contradicts", f"{before.id} is the claim itself.", "Name other claims.")
        item = self._item(cleaned, outcome, before, now)
        retired = self._retired(against, item.id) if outcome == "verified" else ()
        conflicts = self.claims.conflicts(item.body or "", item.scope, {item.id, *ids_of(retired)})
        if not retired:
            conflicts = tuple({each.id: each for each in (*against, *conflicts)}.values())
        seen, told = _evidence(outcome, item.id, cleaned.note, now)
        shown = self._shown_by(item, told, cleaned) if outcome == "verified" else ()
        self.claims.store.save(
            [
                Record(item, self._passages(cleaned.claim, item), (seen,)),
                *self._spoken_to(for_it, replace(told, supports=True), ids_of(retired)),
                *self._spoken_to(against, replace(told, supports=False), ids_of(retired)),
                *shown,
            ],
            supersede=dict.fromkeys(ids_of(retired), item.id),
            conflicts=[(item.id, each.id) for each in conflicts],
        )
        evidence = Counter(each.supports for each in self.claims.store.evidence(item.id))
        return Learned(
            outcome="merged" if before is not None and before.state == "active" else "stored",
            item=item,
            support_count=evidence[True],
            contradiction_count=evidence[False],
            supported=ids_of(for_it),
            contradicted=ids_of(against),
            retired=ids_of(retired),
            scripts=ids_of(each.item for each in shown),
            conflicts=conflicts,
            redactions=cleaned.redactions,
        )

    # --- reading the lesson ---------------------------------------------------------------------------------

    def _clean(self, lesson: Lesson) -> Cleaned:
        parts = [
            self.facts.redactor.clean((each or "").strip()) for each in (lesson.claim, lesson.command, lesson.note)
        ]
        counts: Counter[str] = Counter()
        for part in parts:
            counts.update(part.redactions)
        claim, command, note = (part.text for part in parts)
        return Cleaned(claim, command, note, self._script(lesson.script), counts)

    def _script(self, path: str | None) -> dict[str, str]:
        """A path as seen from the project's folder, with the file's hash. Raises: InputError."""
        if not path or not path.strip():
            return {}
        if self.facts.redactor.clean(path).text != path:
            raise InputError("script", "it holds what looks like a secret.", "Name the script by another path.")
        inside = Path(path.strip())
        if inside.is_absolute() or ".." in inside.parts:
            real, root = (self.root / inside).resolve(), self.root.resolve()
            inside = real.relative_to(root) if real.is_relative_to(root) else inside
        sha256 = self.freshness.sha256(inside.as_posix())
        if sha256 is None:
            raise InputError(
                "script", f"there is no file {path[:200]!r} in the project.", "Give a path inside the project's folder."
            )
        return {inside.as_posix(): sha256}

    def _named(self, field: str, ids: Sequence[str]) -> tuple[Item, ...]:
        """The claims behind ids or pointers. Raises: NotFound, InputError."""
        found = {}
        for each in ids:
            item_id = each.strip().partition("#")[0]
            item = self._held(item_id)
            if item is None:
                raise NotFound(field, f"there is no item {item_id[:80]}.", "Use an id that a recall returned.")
            if item.kind not in CLAIMS:
                raise InputError(field, f"{item.id} is a {item.kind}.", "Name the id of a learning or a fact.")
            if item.state == "superseded":
                raise InputError(field, f"{item.id} is already retired.", "Name what took its place.")
            found[item.id] = item
        return tuple(found.values())

    def _held(self, item_id: str) -> Item | None:
        try:
            return self.claims.store.item(item_id)[0]
        except NotFound:
            return None

    def _refused(self, claim: Clean, outcome: Outcome) -> Learned | None:
        if not re.search(r"\w", _PLACEHOLDER.sub("", claim)):
            return Learned("rejected", reason="Nothing is left of the claim after secrets were removed.")
        if _QUOTED in claim.lower():
            return Learned("rejected", reason="It quotes what this memory answered: state what you found yourself.")
        place = None if outcome == "failed" else self._guidance(claim)
        if place is None:
            return None
        return Learned("rejected", reason="A document of the project says the same already.", pointer=place)

    def _guidance(self, claim: Clean) -> str | None:
        """The passage of a guidance document (CLAUDE.md, AGENTS.md, a README) that says all of a claim (T27)."""
        told = [gist(each) for each in sentences(claim)]
        store = self.claims.store
        for item in self.claims.near(claim, self.project.scope, DOCUMENTS):
            if item.attrs.get("form") != "guidance" or item.state != "active":
                continue
            for passage in store.item(item.id)[1]:
                said = [gist(each) for each in sentences(passage.body)]
                if all(any(one.same_as(other, 0) for other in said) for one in told):
                    return f"{item.id}#{passage.seq}" if passage.seq else item.id
        return None

    # --- making records -------------------------------------------------------------------------------------

    def _before(self, claim: Clean) -> Item | None:
        """The learning that says the same: an active one, else the retired one in whose place it goes."""
        scope = self.project.scope
        return self.claims.same(claim, scope, LEARNINGS) or self._held(learning_id(scope, claim))

    def _item(self, cleaned: Cleaned, outcome: Outcome, before: Item | None, now: float) -> Item:
        told = before.attrs if before is not None and before.state == "active" else {}
        scripts = json.loads(told.get("scripts", "{}"))
        proven = {path: seen for path, seen in cleaned.script.items() if outcome == "verified" or path not in scripts}
        attrs = {
            **told,
            "branch": self.project.branch or "",
            "worktree": self.project.worktree or "",
            "command": cleaned.command or told.get("command", ""),
            "scripts": json.dumps({**scripts, **proven}) if scripts or proven else "",
        }
        attrs = {name: value for name, value in attrs.items() if value}
        if before is not None:
            return replace(before, state="active", attrs=attrs, updated_at=now)
        item_id = learning_id(self.project.scope, cleaned.claim)
        return Item(
            id=item_id,
            kind="learning",
            scope=self.project.scope,
            title=title_of(cleaned.claim),
            key=item_id.partition("_")[2],
            body=cleaned.claim,
            origin="stated",
            created_at=now,
            updated_at=now,
            content_hash=fingerprint(cleaned.claim),
            attrs=attrs,
        )

    def _passages(self, claim: Clean, item: Item) -> tuple[Passage, ...]:
        chunks = split(item.body or claim, "prose", self.facts.chunks)
        return tuple(Passage(seq, Clean(chunk.body)) for seq, chunk in enumerate(chunks))

    def _retired(self, against: Iterable[Item], new: str) -> tuple[Item, ...]:
        """What a correction takes back: the claims, and what says the same as one of them."""
        found = {each.id: each for old in against for each in (old, *self.claims.copies(old))}
        found.pop(new, None)
        return tuple(found.values())

    def _shown_by(self, item: Item, told: Evidence, cleaned: Cleaned) -> tuple[Record, ...]:
        store, root = self.claims.store, self.root
        return verified_by(item, told, cleaned.command, cleaned.script, root, store, self.freshness)

    def _spoken_to(self, items: Iterable[Item], seen: Evidence, gone: Collection[str]) -> list[Record]:
        records = []
        for item in items:
            if item.id in gone:
                kept = replace(item, state="superseded", body=Clean(text_of(item)))
                records.append(Record(kept, evidence=(seen,)))
                continue
            aged = replace(item, updated_at=seen.at) if item.kind == "learning" else item
            records.append(Record(aged, self.claims.store.item(item.id)[1], (seen,)))
        return records


def _evidence(outcome: Outcome, claim: str, note: Clean, now: float) -> tuple[Evidence, Evidence]:
    """What an outcome is for the claim itself, and, with the claim as its source, for what it speaks to."""
    (kind, holds), said = _PROOF[outcome], uuid.uuid4()
    seen = Evidence(f"{STATED}{said.hex}", 0, holds, kind, now, note)
    return seen, replace(seen, session=claim, place=said.int >> 97)


def check(lesson: Lesson, options: LearningOptions) -> Outcome:
    """The outcome of a usable lesson. Raises: InputError naming what is wrong."""
    if not lesson.claim.strip():
        raise InputError("claim", "it is empty.", "State in a sentence what was learnt.")
    limits = (("claim", lesson.claim, options.max_chars), ("note", lesson.note, options.max_note_chars))
    for field, text, most in (*limits, ("command", lesson.command, options.max_note_chars)):
        if len(text or "") > most:
            raise InputError(field, f"it has {len(text or ''):,} characters.", f"Give at most {most:,}.")
    outcome = next((each for each in OUTCOMES if each == lesson.outcome), None)
    if outcome is None:
        raise InputError("outcome", f"{lesson.outcome[:40]!r} is not usable.", f"Give one of {', '.join(OUTCOMES)}.")
    if len(lesson.supports) + len(lesson.contradicts) > options.max_links:
        raise InputError("supports, contradicts", "too many ids are given.", f"Give at most {options.max_links}.")
    both = {each.strip().partition("#")[0] for each in lesson.supports} & {
        each.strip().partition("#")[0] for each in lesson.contradicts
    }
    if both:
        raise InputError("contradicts", f"{min(both)[:80]} is also in supports.", "Name each claim once.")
    return outcome


def learning_id(scope: str, claim: str) -> str:
    """The same words in the same order are the same learning, whatever their case, and the filler between them."""
    said = " ".join(gist(claim).told) or " ".join(claim.casefold().split())
    return "lrn_" + hashlib.sha256(f"{scope}\0{said}".encode("utf-8", "replace")).hexdigest()[:16]
