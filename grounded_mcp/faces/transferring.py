"""``grounded-mcp export``, ``import``, ``backup`` and ``migrate``: arguments, and reports as data and text.

Translation only; prints nothing. No tool of the server leads here: an agent names no file (case 53).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from grounded_mcp.errors import ConfigError, InputError
from grounded_mcp.faces.progress import bar
from grounded_mcp.faces.terminal import counted, one_line

if TYPE_CHECKING:
    from grounded_mcp.settings import Settings
    from grounded_mcp.transfer.importing import ImportReport
    from grounded_mcp.transfer.verifying import Verdict

EXPORT: Final = "write the memory to a file of JSON lines, which docs/export.md describes"
IMPORT: Final = "read such a file into the memory; what was forgotten here stays forgotten"
BACKUP: Final = "copy the store into one file, checked and of one moment, also while it is in use"
MIGRATE: Final = "move everything from one store to another, such as a file to Postgres, and compare both"

Reported = tuple[Mapping[str, object], str, bool]
"""What a verb reports, as data and as text, and whether all is well."""


def export_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("file", nargs="?", help="where to (default: exports/grounded-TIME.jsonl in the data directory)")
    verb.add_argument("--project", action="append", metavar="KEY", help="only this project's, and what is global")
    verb.add_argument("--vectors", action="store_true", help="vectors too, so that nothing is embedded again")
    verb.add_argument("--telemetry", action="store_true", help="counters of recalls too")
    verb.add_argument("--force", action="store_true", help="replace a file that is there")


def import_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("file", help="what `grounded-mcp export` wrote")
    verb.add_argument("--merge", action="store_true", help="into a store that holds something: the newer version stays")
    verb.add_argument("--forgotten", action="store_true", help="also what was deleted here")


def backup_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("file", help="where to")
    verb.add_argument("--force", action="store_true", help="replace a file that is there")


def migrate_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("source", metavar="FROM", help="a store: the path of a file, or a postgresql:// URL")
    verb.add_argument("target", metavar="TO", help="a new store; or one that an interrupted migration began")


def export(args: argparse.Namespace, settings: Settings) -> Reported:
    from grounded_mcp.assemble import open_store
    from grounded_mcp.project import elsewhere, known_project
    from grounded_mcp.transfer.exporting import ExportOptions, scopes_of
    from grounded_mcp.transfer.exporting import export as write
    from grounded_mcp.transfer.paths import named, private_folder, written

    given = named(args.file) if args.file else None
    with closing(open_store(settings, create=False)) as store:
        # Not into the folder of the call: in a repository it would be one `git add` away from everyone.
        usual = f"grounded-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.jsonl"
        target = given or private_folder(settings.places.home / "exports") / usual
        known = store.projects()
        keys = [(known_project(each, known) or elsewhere(each)).key for each in args.project or ()]
        options = ExportOptions(scopes_of(keys) if keys else None, args.vectors, args.telemetry)
        with bar("items", quiet=args.json) as step, written(target, force=args.force) as out:
            report = write(store, out, options, time.time(), step)
    text = f"{counted(report.items, 'item')} in {one_line(str(target))} ({report.bytes:,} bytes)"
    return {"file": str(target), **asdict(report)}, text, True


def import_(args: argparse.Namespace, settings: Settings) -> Reported:
    from grounded_mcp.assemble import open_store, redactor_of
    from grounded_mcp.transfer.importing import bring_in, check
    from grounded_mcp.transfer.paths import named, opened

    with opened(named(args.file)) as file:
        checked = check(file)
        with closing(open_store(settings)) as store:
            if store.ids(limit=1) and not args.merge:
                raise InputError("file", "the store holds something already.", "Add --merge, or name a new store.")
            file.seek(0)
            with bar("items", quiet=args.json) as step:
                redactor = redactor_of(settings, store)
                report = bring_in(store, file, checked, redactor, time.time(), step, forgotten=args.forgotten)
    return asdict(report), "\n".join(_imported(report)), not report.unchecked


def _imported(report: ImportReport) -> Iterator[str]:
    yield f"{counted(report.added, 'item')} added, {report.updated} updated, {report.unchanged} as they were"
    for count, told in (
        (report.forgotten, "forgotten here, left out: --forgotten brings them back"),
        (report.older, "newer here, left as they are"),
        (report.unchecked, "could not be checked for secrets, not stored"),
    ):
        if count:
            yield f"{counted(count, 'item')} {told}"
    if report.redactions:
        yield "redacted: " + ", ".join(f"{count} {kind}" for kind, count in sorted(report.redactions.items()))
    if report.pending:
        yield f"{counted(report.pending, 'passage')} to embed: `grounded-mcp sync` does it"


def backup(args: argparse.Namespace, settings: Settings) -> Reported:
    from grounded_mcp.assemble import open_store
    from grounded_mcp.stores.sqlite import SqliteStore
    from grounded_mcp.transfer.paths import beside, check_free, named, settle

    target = named(args.file)
    check_free(target, force=args.force)
    with closing(open_store(settings, create=False)) as store, beside(target) as copy:
        if not isinstance(store, SqliteStore):
            told = "A Postgres store is backed up by Postgres's own tools."
            raise ConfigError(told, "Use pg_dump, or `grounded-mcp migrate` into a file: see docs/team-server.md.")
        store.backup(copy)
        settle(copy, target, force=args.force)
        items = sum(store.info().items.values())
    size = target.stat().st_size
    return (
        {"file": str(target), "bytes": size},
        f"{one_line(str(target))}: {size:,} bytes, sound ({items:,} items)",
        True,
    )


def migrate(args: argparse.Namespace, settings: Settings) -> Reported:
    from grounded_mcp.assemble import open_store
    from grounded_mcp.text import Analyzer
    from grounded_mcp.transfer.moving import move

    places = [_place(each, field) for each, field in ((args.source, "from"), (args.target, "to"))]
    if places[0] == places[1]:
        raise InputError("to", "it is the same store.", "Name another.")
    ways = [replace(settings, places=replace(settings.places, store=place)) for place in places]
    words = Analyzer(settings.analyzer).query
    with (
        closing(open_store(ways[0], create=False)) as source,
        closing(open_store(ways[1])) as target,
        bar("items", quiet=args.json) as step,
    ):
        report = move(source, target, words, time.time(), step)
        target.maintain()  # Postgres plans by statistics that it has not gathered yet
    verdict = report.verdict
    data = {"moved": report.moved, "before": report.before, "same": verdict.same, **asdict(verdict)}
    return data, "\n".join(_moved(report.moved, report.before, verdict)), verdict.same


def _place(text: str, field: str) -> str:
    from grounded_mcp.transfer.paths import named

    return text if text.startswith(("postgres://", "postgresql://")) else str(named(text, field))


def _moved(moved: int, before: int, verdict: Verdict) -> Iterator[str]:
    yield f"{counted(moved, 'item')} moved" + (f", {before:,} by an earlier run" if before else "")
    for name, (old, new) in verdict.counts.items():
        yield f"{name:16} {old:>9,} {new:>9,}{'' if old == new else '   differs'}"
    yield f"hash of all items {verdict.seal[:16]}: {_differences(verdict.differing, verdict.extra)}"
    yield f"searches          {verdict.searches[0]} of {verdict.searches[1]} give the same in both"
    if not verdict.same:
        yield "Not the same: is something else writing? Stop it, and run this again."


def _differences(differing: Sequence[str], extra: Sequence[str]) -> str:
    return "the same in both" if not differing and not extra else f"{len(differing)} differ, {len(extra)} too many"
