"""Every stored text once more through the front door, after its rules or the user's patterns changed (I4).

What is found is rewritten in place: items keep their ids, and passages that are as they were keep their vectors. One
process does this at a time, in batches; one that was interrupted is gone on with. Which rules the texts of a store went
through is kept with the store, as the state of a source of its own. Knows nothing about what a secret looks like.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from grounded_mcp.errors import NotFound, RedactionError, StoreBusy
from grounded_mcp.ingest.facts import title_of
from grounded_mcp.ingest.redact import Redactor, clean_project
from grounded_mcp.ingest.secret_view import PLACEHOLDER
from grounded_mcp.ingest.sessions import LEASE as SESSIONS
from grounded_mcp.stores.base import Store
from grounded_mcp.text import fingerprint
from grounded_mcp.values import Clean, Evidence, Item, Passage, Record

LEASE = "rescan"
LEASE_S = 60.0
RENEW_S = 20.0
SOURCE = "redaction"
PAGE = 50
"""Items per batch: one write transaction at most, like a batch of documents."""

_PLACED = re.compile(PLACEHOLDER.pattern.decode())


@dataclass(frozen=True, slots=True)
class RescanReport:
    """What one run did. ``busy``: another process is at it, or is importing sessions, so nothing was done."""

    seen: int = 0
    """Items that were read."""
    changed: int = 0
    redactions: Mapping[str, int] = field(default_factory=dict)
    """What was taken out, by kind. A text that stands in a fact and in its passage counts once."""
    unchecked: int = 0
    """Items left as they were, because they could not be checked."""
    pending: int = 0
    """New passages, which wait for their vectors."""
    scrubbed: bool = True
    """Whether the old texts are gone from the files too; otherwise another process was reading them."""
    seconds: float = 0.0
    busy: bool = False


def note_rules(store: Store, redactor: Redactor) -> None:
    """Remember, with a store that holds nothing yet, what its texts will be cleaned by. Raises: StoreError."""
    if SOURCE not in store.checkpoints(SOURCE) and not store.ids(limit=1):
        store.save((), checkpoints={SOURCE: _state(redactor.rules)})


def is_outdated(store: Store, redactor: Redactor) -> bool:
    """Whether some of the stored text went through other rules than those in force. Raises: StoreError."""
    return bool(store.ids(limit=1)) and _states(store).get("rules") != redactor.rules


def rescan(
    store: Store, redactor: Redactor, now: float, progress: Callable[[int, int], None] | None = None
) -> RescanReport:
    """Clean every stored text again; ``progress(done, total)`` in items.

    Raises: StoreError, StoreBusy when another process took over meanwhile: what was done stays done.
    """
    started = time.monotonic()
    with ExitStack() as held:
        if not all(held.enter_context(store.lease(name, LEASE_S)) for name in (LEASE, SESSIONS)):
            return RescanReport(busy=True)
        run = _Rescan(store, redactor)
        run.projects(now)
        run.checkpoints()
        run.items(progress or (lambda done, total: None))
        scrubbed = store.scrub()
        if not run.unchecked:
            store.save((), checkpoints={SOURCE: _state(redactor.rules)})
    return RescanReport(
        run.seen, run.changed, dict(run.redactions), run.unchecked, run.pending, scrubbed, time.monotonic() - started
    )


class RecordCleaner:
    """Whole records through the rules: every text of them, cut as it was. ``scopes``: new ones of renamed projects."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactions: Counter[str] = Counter()
        self.scopes: dict[str, str] = {}
        self._redactor = redactor

    def clean(self, record: Record) -> Record:
        item, passages = record.item, record.passages
        texts: list[str] = [passage.body for passage in passages]
        whole = item.body if item.body is not None else "".join(texts)
        clean = self.text(whole)
        if clean != whole:
            texts = cut_alike(texts, clean) if "".join(texts) == whole else [self.text(text) for text in texts]
        clean_item = replace(
            item,
            scope=self.scopes.get(item.scope) or self.text(item.scope),
            title=self._title(item, clean),
            key=None if item.key is None else self.text(item.key),
            body=None if item.body is None else clean,
            content_hash=fingerprint(clean) if item.kind == "fact" and clean != whole else item.content_hash,
            attrs={name: self.text(value) for name, value in item.attrs.items()},
        )
        return Record(clean_item, tuple(self._passages(passages, texts)), tuple(self._notes(record.evidence)))

    def _title(self, item: Item, text: Clean) -> Clean:
        """A fact's title is the beginning of its text, where it is no more than that."""
        if item.kind == "fact" and item.body is not None and item.title == title_of(item.body):
            return title_of(text)
        return self.text(item.title)

    def _passages(self, passages: Iterable[Passage], texts: Iterable[str]) -> Iterable[Passage]:
        for passage, text in zip(passages, texts, strict=True):
            yield passage._replace(body=Clean(text), heading=self.text(passage.heading))

    def _notes(self, evidence: Iterable[Evidence]) -> Iterable[Evidence]:
        for each in evidence:
            yield replace(each, note=self.text(each.note))

    def text(self, text: str) -> Clean:
        cleaned = self._redactor.clean(text)
        self.redactions.update(cleaned.redactions)
        self.redactions.update(cleaned.removed)
        return cleaned.text


class _Rescan:
    """One run: the counts, the new keys of projects, and the leases."""

    def __init__(self, store: Store, redactor: Redactor) -> None:
        self.seen = self.changed = self.unchecked = self.pending = 0
        self._store = store
        self._redactor = redactor
        self._cleaner = RecordCleaner(redactor)
        self._renewed = time.monotonic()

    @property
    def redactions(self) -> Counter[str]:
        return self._cleaner.redactions

    def projects(self, now: float) -> None:
        """Projects by their clean names; what belongs to one follows it."""
        for project in self._store.projects():
            clean = clean_project(project, self._redactor)
            if clean != project:
                self._store.register(clean, now, replaces=project.key)
                self._cleaner.scopes[project.scope] = clean.scope

    def checkpoints(self) -> None:
        """States of sources, which hold folders and titles. One that is no longer legible has its source read again."""
        held = self._store.checkpoints("")
        clean = {name: self._cleaner.text(state) for name, state in held.items() if name != SOURCE}
        self._store.save((), checkpoints={name: state for name, state in clean.items() if state != held[name]})

    def items(self, progress: Callable[[int, int], None]) -> None:
        """All items by id, from where an earlier run under these rules got to."""
        state = _states(self._store)
        after = state.get("after", "") if state.get("under") == self._redactor.rules else ""
        total = sum(self._store.info().items.values())
        while page := self._store.ids(after=after, limit=PAGE):
            self._renew()
            after = page[-1]
            records = [record for each in page if (record := self._rewritten(each))]
            reached = _state(state.get("rules", ""), under=self._redactor.rules, after=after)
            self.pending += self._store.save(records, checkpoints={SOURCE: reached}).pending
            self.changed += len(records)
            self.seen += len(page)
            progress(self.seen, max(self.seen, total))

    def _rewritten(self, item_id: str) -> Record | None:
        """An item without what the rules find; None if that is how it is, or if it cannot be told."""
        try:
            item, passages = self._store.item(item_id)
            record = Record(item, passages, self._store.evidence(item_id))
            clean = self._cleaner.clean(record)
        except NotFound:  # forgotten meanwhile
            return None
        except RedactionError:
            self.unchecked += 1
            return None
        return clean if clean != record else None

    def _renew(self) -> None:
        """Keep the leases alive."""
        if time.monotonic() - self._renewed > RENEW_S:
            with self._store.lease(LEASE, LEASE_S) as ours, self._store.lease(SESSIONS, LEASE_S) as alone:
                if not (ours and alone):
                    raise StoreBusy("Another process took over.", "Nothing is lost; run it again later.")
            self._renewed = time.monotonic()


def cut_alike(parts: Sequence[str], clean: str) -> list[str]:
    """A cleaned text in as many parts as it had: cut at the same line, and within a line where it was cut before.

    Cleaning keeps every line break, so that a part that ended with one does again. No placeholder is cut.

    >>> cut_alike(["a\\n", "token x", "y\\n"], "a\\n[REDACTED:token:ab12]\\n")
    ['a\\n', '[REDACTED:token:ab12]', '\\n']
    """
    placeholders = [match.span() for match in _PLACED.finditer(clean)]
    cut, at = [], 0
    for part in parts[:-1]:
        lines = part.count("\n")
        end = at
        for _ in range(lines):
            end = clean.find("\n", end) + 1 or len(clean)
        stop = clean.find("\n", end)
        end = min(end + len(part) - part.rfind("\n") - 1, len(clean) if stop < 0 else stop)
        end = next((last for first, last in placeholders if first < end < last), end)
        cut.append(clean[at:end])
        at = end
    return [*cut, clean[at:]]


def _state(rules: str, **more: str) -> str:
    return json.dumps({"rules": rules, **more})


def _states(store: Store) -> Mapping[str, str]:
    held = store.checkpoints(SOURCE).get(SOURCE, "{}")
    try:
        found = json.loads(held)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
