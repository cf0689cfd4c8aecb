"""What ``doctor`` does: look at a store, build its derived parts anew, clean its texts again.

Knows nothing about arguments, and prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from grounded_mcp.assemble import check_redaction, open_store, outdated_text, rescan_store
from grounded_mcp.errors import StoreDamaged
from grounded_mcp.faces.terminal import counted, one_line
from grounded_mcp.ingest.rescan import RescanReport
from grounded_mcp.settings import Settings

REPAIR = "`grounded-mcp doctor --repair` rebuilds what is derived from the text"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found or done, as data and as text, and whether all is well now."""

    data: Mapping[str, object]
    text: str
    sound: bool


def examine(settings: Settings, *, repair: bool) -> Diagnosis:
    """Check the store, and build what is derived anew if asked to. Raises: ConfigError, StoreError."""
    try:
        return _examined(settings, repair=repair)
    except StoreDamaged as error:
        if not (repair and "--repair" in error.remedy):
            raise
        raise _beyond_repair(Path(settings.places.store).expanduser(), error) from error


def _beyond_repair(store: Path, error: StoreDamaged) -> StoreDamaged:
    """What is left when a repair has failed: backups, and what can be read again from its sources."""
    backups = [name for name in _copies(store) if ".backup-" in name]
    copy = f"the copy {backups[-1]} that a migration kept" if backups else "a copy of it (none lies beside it)"
    return StoreDamaged(
        f"{error.message} It could not be repaired: too much of the file cannot be read.",
        f"Restore {copy}. Without one, move the file away and run `grounded-mcp sync`: documents and sessions come "
        "back as far as their files are there, stated facts and learnings from an export by `grounded-mcp import`.",
    )


def _examined(settings: Settings, *, repair: bool) -> Diagnosis:
    redaction = check_redaction(settings)
    with closing(open_store(settings, create=False)) as store:
        before = outdated_text(settings, store)
        if repair:
            report = store.repair()
            found, left, kept = report.found, report.left, report.kept
        else:
            found = left = store.check()
            kept = None
    lines = [f"found     {one_line(problem)}" for problem in (*redaction, *before, *found)]
    lines += [f"repaired; the store as it was: {one_line(str(kept))}"] if kept else []
    lines += [REPAIR] if left and not kept else []
    wrong = (*redaction, *before, *left)
    data = {"found": (*redaction, *before, *found), "left": wrong, "kept": str(kept) if kept else None}
    return Diagnosis(data, "\n".join(lines if wrong or found else ["sound"]), not wrong)


def clean_again(settings: Settings, progress: Callable[[int, int], None]) -> Diagnosis:
    """Every stored text through the redaction rules in force. Raises: ConfigError, StoreError."""
    redaction = check_redaction(settings)
    with closing(open_store(settings, create=False)) as store:
        report = rescan_store(settings, store, progress)
        copies = _copies(store.path) if store.path else []
    data = {**asdict(report), "copies": copies, "found": redaction}
    lines = [*(f"found     {one_line(problem)}" for problem in redaction), *_told(report, copies)]
    return Diagnosis(data, "\n".join(lines), not (redaction or report.busy or report.unchecked or not report.scrubbed))


def _told(report: RescanReport, copies: Sequence[str]) -> Iterator[str]:
    if report.busy:
        yield "Another process is doing this, or is importing sessions: nothing was done. Try again later."
        return
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(report.redactions.items()))
    yield f"read      {counted(report.seen, 'item')} in {report.seconds:.1f} s"
    yield f"changed   {counted(report.changed, 'item')}{': ' + kinds if kinds else ''}"
    if report.pending:
        yield f"vectors   {counted(report.pending, 'passage')} to embed again: `grounded-mcp sync` does it"
    if report.unchecked:
        yield f"left      {counted(report.unchecked, 'item')} could not be checked: as they were"
    if not report.scrubbed:
        yield "log       the old text is still in it, because another process was reading: run this again"
    if copies:
        yield f"copies    these hold the text as it was: {', '.join(map(one_line, copies))}"
    if report.changed:
        yield "Servers that are running keep the rules they were started with: restart them."


def _copies(store: Path) -> list[str]:
    """What earlier migrations and repairs set aside beside the store."""
    return sorted(str(each) for kind in ("backup", "corrupt") for each in store.parent.glob(f"{store.name}.{kind}-*"))
