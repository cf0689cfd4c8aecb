"""Stored text cleaned again: what new rules find leaves the items, the indexes and the files; everything else stays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grounded_mcp.errors import RedactionError, StoreFull
from grounded_mcp.ingest.redact import RedactOptions, Redactor
from grounded_mcp.ingest.rescan import LEASE, SESSIONS, SOURCE, cut_alike, is_outdated, note_rules, rescan
from grounded_mcp.stores.sqlite import SqliteStore
from grounded_mcp.text import Analyzer, fingerprint
from grounded_mcp.values import Clean, Evidence, Filter, Item, Passage, Project, Record, Space, Vector
from tests.conftest import Command

BADGE = "EMP-4711"
OLD, NEW = Redactor(b"k"), Redactor(b"k", RedactOptions(extra_patterns=(r"EMP-\d{4}",)))
MARK = NEW.clean(BADGE).text
ANALYZER = Analyzer()
EVERYTHING = Filter(frozenset({"fact", "doc", "session", "script"}))
SPACE = Space("model", 4)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "memory.db", ANALYZER)) as opened:
        yield opened


def fact(item_id: str, text: str, **fields: Any) -> Record:
    title = fields.pop("title", text)
    item = Item(item_id, "fact", "global", Clean(title), body=Clean(text), content_hash=fingerprint(text), **fields)
    return Record(item, (Passage(0, Clean(text)),))


def written(folder: Path) -> bytes:
    """Every byte of every file, in lower case."""
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()).lower()


def texts(record: Record) -> list[str]:
    item = record.item
    found = [item.title, item.key or "", item.body or "", item.scope, json.dumps(dict(item.attrs))]
    found += [text for passage in record.passages for text in (passage.heading, passage.body)]
    return [*found, *(each.note for each in record.evidence)]


def stored(store: SqliteStore, item_id: str) -> Record:
    return Record(*store.item(item_id), store.evidence(item_id))


# --- what is cleaned --------------------------------------------------------------------------------------


def everywhere(word: str) -> list[Record]:
    """A record of every kind of text that a store keeps, each with the word in it."""
    seen = Evidence("ses_1", 3, True, "ran", 5.0, Clean(f"exit 0 for {word}"))
    note = Item(
        "doc_1", "doc", "project:a", Clean(f"Badges {word} (b.md)"), key=f"notes/{word}.md", attrs={"git": word}
    )
    session = Item("ses_1", "session", "project:a", Clean(f"who is {word}"), key="codex:1", attrs={"cwd": f"/w/{word}"})
    script = Item("scr_1", "script", "project:a", Clean(f"./badge {word}"), key=f"./badge {word}")
    return [
        fact("fact_1", f"the badge {word} opens the gate", key=f"badge {word}"),
        Record(note, (Passage(0, Clean("one\n")), Passage(1, Clean(f"two {word}\n"), f"Gate > {word}", 2, 2))),
        Record(session, (Passage(0, Clean(f"asked: {word}?\n"), "", 1, 2), Passage(1, Clean("done\n"), "", 3, 3))),
        Record(script, (Passage(0, Clean(f"./badge {word}")),), (seen,)),
    ]


def test_every_stored_text_is_cleaned_again_and_keeps_its_place(store: SqliteStore) -> None:
    store.save(everywhere(BADGE), checkpoints={"codex:1": json.dumps({"cwd": f"/w/{BADGE}", "title": "t"})})
    store.register(Project("a", "a", "path", f"/w/{BADGE}", BADGE), 1.0)
    report = rescan(store, NEW, 2.0)
    assert (report.seen, report.changed, report.unchecked, report.scrubbed) == (4, 4, 0, True)
    assert set(report.redactions) == {"custom"}
    expected = everywhere(MARK)
    expected[0] = replace(expected[0], item=replace(expected[0].item, content_hash=fingerprint(expected[0].item.body)))
    assert [stored(store, record.item.id) for record in expected] == expected
    assert json.loads(store.checkpoints("codex")["codex:1"]) == {"cwd": f"/w/{MARK}", "title": "t"}
    assert store.projects() == (Project("a", "a", "path", f"/w/{MARK}", MARK),)


def test_no_byte_of_the_old_text_stays_in_the_files(store: SqliteStore, tmp_path: Path) -> None:
    store.save(everywhere(BADGE) + [fact(f"fill_{n}", f"filler number {n} at the quay") for n in range(60)])
    store.save([fact("fact_2", f"the badge {BADGE} opens the door")], supersede={"fact_1": "fact_2"})
    assert BADGE.lower().encode() in written(tmp_path)
    assert rescan(store, NEW, 1.0).scrubbed
    left = written(tmp_path)
    assert (BADGE.lower().encode() in left, b"4711" in left, b"filler number 7" in left) == (False, False, True)
    assert store.check() == ()


def test_passages_that_are_as_they_were_keep_their_vectors_and_are_found(store: SqliteStore) -> None:
    store.save(everywhere(BADGE)[1:2])
    store.save([fact("fact_9", "the quay is wet", title="")])
    vectors = {each.id: Vector(b"\0\0\x80\x3f" + b"\0" * 12) for each in store.pending(10)}
    assert store.set_vectors(SPACE, vectors) == 3
    store.save([replace(everywhere(BADGE)[1], item=replace(everywhere(BADGE)[1].item, title=Clean("Badges (b.md)")))])
    store.set_vectors(SPACE, {each.id: Vector(b"\0\0\x80\x3f" + b"\0" * 12) for each in store.pending(10)})
    report = rescan(store, NEW, 1.0)
    assert (report.pending, store.waiting()) == (1, 1)  # the one passage that changed, not its neighbour
    found = store.lexical(ANALYZER.query("redacted custom"), EVERYTHING, 5)
    assert [store.fetch([hit.passage])[hit.passage].passage.seq for hit in found] == [1]


def test_history_stays_history_and_is_cleaned_too(store: SqliteStore) -> None:
    store.save([fact("fact_1", f"the badge {BADGE} opens the gate")])
    store.save([fact("fact_2", "the badge opens nothing")], supersede={"fact_1": "fact_2"})
    rescan(store, NEW, 1.0)
    (before,) = store.history("fact_2", 5)
    assert (before.id, before.state, before.body) == ("fact_1", "superseded", f"the badge {MARK} opens the gate")


def test_what_belongs_to_a_project_follows_its_new_key(store: SqliteStore, tmp_path: Path) -> None:
    store.register(Project(f"h.example/{BADGE}", BADGE, "remote", "/w/x"), 1.0)
    record = everywhere("x")[1]
    store.save([replace(record, item=replace(record.item, scope=f"project:h.example/{BADGE}"))])
    rescan(store, NEW, 2.0)
    assert store.scopes() == {f"project:h.example/{MARK}"}
    assert [project.key for project in store.projects()] == [f"h.example/{MARK}"]
    assert BADGE.lower().encode() not in written(tmp_path)


def test_a_store_that_is_clean_already_is_left_as_it_is(store: SqliteStore) -> None:
    store.save(everywhere("nothing"))
    before = [stored(store, item_id) for item_id in store.ids(limit=10)]
    report = rescan(store, NEW, 1.0)
    assert (report.seen, report.changed, report.redactions, report.pending) == (4, 0, {}, 0)
    assert [stored(store, item_id) for item_id in store.ids(limit=10)] == before


def test_a_secret_over_two_passages_is_found(store: SqliteStore) -> None:
    body = "".join(f"{line}{'A' * 44}{line}bK9x\n" for line in ("MIIEpAIBAAKCAQEA", "x7QzP2mW9kLr", "T4vB8nHj3sDf"))
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY-----\n"
    parts = [f"before\n{key[:110]}", f"{key[110:]}after\n"]
    item = Item("doc_1", "doc", "project:a", Clean("k.md"), key="k.md")
    store.save([Record(item, tuple(Passage(seq, Clean(part)) for seq, part in enumerate(parts)))])
    assert rescan(store, OLD, 1.0).changed == 1
    first, second = (passage.body for passage in store.item("doc_1")[1])
    assert first.startswith("before\n[REDACTED:private_key:")
    assert second.endswith("after\n")
    assert (first + second).count("\n") == "".join(parts).count("\n")
    assert "x7QzP2mW9kLr" not in first + second


# --- when and by whom -------------------------------------------------------------------------------------


def test_a_store_is_outdated_when_its_text_went_through_other_rules(store: SqliteStore) -> None:
    assert not is_outdated(store, OLD), "nothing is stored"
    note_rules(store, OLD)
    store.save([fact("fact_1", "one")])
    assert (is_outdated(store, OLD), is_outdated(store, NEW)) == (False, True)
    note_rules(store, NEW)
    assert is_outdated(store, NEW), "what is stored was not cleaned by being looked at"
    rescan(store, NEW, 1.0)
    assert (is_outdated(store, NEW), is_outdated(store, OLD)) == (False, True)


def test_a_store_that_does_not_say_by_which_rules_it_was_cleaned_is_outdated(store: SqliteStore) -> None:
    store.save([fact("fact_1", "one")])
    note_rules(store, OLD)
    assert is_outdated(store, OLD)
    store.save((), checkpoints={SOURCE: "not json"})
    assert is_outdated(store, OLD)


def test_an_interrupted_run_is_gone_on_with(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save([fact(f"fact_{n:03}", f"number {n} has {BADGE}") for n in range(100)])
    store.save([fact(f"fact_{n:03}", f"number {n} has {BADGE}") for n in range(100, 130)])
    save, saves = SqliteStore.save, []

    def full(self: SqliteStore, records: Any, **given: Any) -> Any:
        saves.append(len(records))
        if saves.count(50) == 2:
            raise StoreFull("The disk is full.", "Free some space.")
        return save(self, records, **given)

    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "save", full)
        with pytest.raises(StoreFull):
            rescan(store, NEW, 1.0)
    assert is_outdated(store, NEW)
    steps: list[int] = []
    report = rescan(store, NEW, 1.0, lambda done, total: steps.append(done))
    assert (report.seen, report.changed, steps) == (80, 80, [50, 80])
    assert not is_outdated(store, NEW)


def test_other_rules_than_those_of_an_interrupted_run_start_anew(store: SqliteStore) -> None:
    store.save([fact("fact_1", BADGE), fact("fact_2", "two")])
    state = {"rules": "x", "under": OLD.rules, "after": "fact_1"}
    store.save((), checkpoints={SOURCE: json.dumps(state)})
    assert rescan(store, NEW, 1.0).seen == 2


@pytest.mark.parametrize("name", [LEASE, SESSIONS])
def test_one_process_does_it_and_none_while_sessions_are_imported(
    store: SqliteStore, tmp_path: Path, name: str
) -> None:
    store.save([fact("fact_1", BADGE)])
    with closing(SqliteStore(tmp_path / "memory.db", ANALYZER)) as other, other.lease(name, 60.0):
        assert rescan(store, NEW, 1.0).busy
    assert rescan(store, NEW, 1.0).changed == 1


def test_what_cannot_be_checked_stays_is_counted_and_leaves_the_store_outdated(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save([fact("fact_1", f"bad {BADGE}"), fact("fact_2", f"good {BADGE}")])
    clean = Redactor.clean

    def failing(self: Redactor, text: str) -> Any:
        if text.startswith("bad"):
            raise RedactionError("A text could not be checked.", "Report it.")
        return clean(self, text)

    monkeypatch.setattr(Redactor, "clean", failing)
    report = rescan(store, NEW, 1.0)
    assert (report.changed, report.unchecked) == (1, 1)
    assert store.item("fact_1")[0].body == f"bad {BADGE}"
    assert is_outdated(store, NEW)


def test_a_reader_that_holds_on_to_the_old_text_is_reported(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grounded_mcp.stores.sqlite.SCRUB_SECONDS", 0.05)
    store.save([fact("fact_1", BADGE)])
    reader = apsw.Connection(str(tmp_path / "memory.db"))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM item").fetchall()
    assert not rescan(store, NEW, 1.0).scrubbed
    reader.close()
    assert rescan(store, NEW, 1.0).scrubbed
    assert BADGE.lower().encode() not in written(tmp_path)


# --- through the command line -----------------------------------------------------------------------------


def test_a_new_pattern_is_reported_by_doctor_and_its_matches_are_gone_after_a_rescan(
    command: Command, project: Path, tmp_path: Path
) -> None:
    (project / "gate.md").write_text(f"# Gate\n\nThe badge {BADGE} opens it. The key hangs in the shed.\n", "utf-8")
    command.json("sync", "--documents")
    command.json("remember", f"Ask {BADGE} about the quay", "--topic", f"who {BADGE}")
    assert command("doctor").stdout.strip() == "sound"
    patterns = {"GROUNDED_REDACTION__EXTRA_PATTERNS": '["EMP-\\\\d{4}"]'}
    told = command("doctor", env=patterns)
    assert told.returncode == 1
    assert "Text was redacted under older rules: run `grounded-mcp doctor --rescan`." in told.stdout
    assert "--repair" not in told.stdout
    done = command.json("doctor", "--rescan", env=patterns)
    assert (done["seen"], done["changed"], done["copies"], done["scrubbed"]) == (2, 2, [], True)
    assert done["redactions"] == {"custom": 3}
    assert command("doctor", env=patterns).stdout.strip() == "sound"
    assert b"4711" not in written(tmp_path / "home")
    assert command.json("recall", "shed", env=patterns)["data"][0]["title"] == "Gate (gate.md)"
    assert BADGE not in command("recall", "quay", env=patterns).stdout


def test_a_person_is_told_what_was_changed_and_what_still_holds_it(command: Command) -> None:
    command("remember", f"Ask {BADGE} about the quay")
    (command.home / "memory.db.backup-v1-20260101").write_bytes(b"")
    patterns = {"GROUNDED_REDACTION__EXTRA_PATTERNS": '["EMP-\\\\d{4}"]'}
    told = command("doctor", "--rescan", env=patterns)
    assert told.returncode == 0
    first, second, third, copies, last = told.stdout.splitlines()
    assert first.startswith("read      1 item in ")
    assert second == "changed   1 item: 1 custom"
    assert third == "vectors   1 passage to embed again: `grounded-mcp sync` does it"
    assert copies == f"copies    these hold the text as it was: {command.home / 'memory.db.backup-v1-20260101'}"
    assert last == "Servers that are running keep the rules they were started with: restart them."
    again = command("doctor", "--rescan", env=patterns).stdout.splitlines()
    assert again[1] == "changed   0 items"
    assert len(again) == 3


# --- cutting ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "clean", "cut"),
    [
        (["a\n", "b\n"], "A\nB\n", ["A\n", "B\n"]),
        (["a\nb", "c\nd"], "a\nbc\nd", ["a\nb", "c\nd"]),
        (["see x", "yz\n"], "see [REDACTED:token:ab12]\n", ["see [REDACTED:token:ab12]", "\n"]),
        (["long words", " here\n"], "x\n", ["x", "\n"]),
        (["", "a", ""], "a", ["", "a", ""]),
        (["only"], "[REDACTED:x:0000]", ["[REDACTED:x:0000]"]),
        (["a\n", "b\n", "c\nd"], "a", ["a", "", ""]),
    ],
)
def test_a_cleaned_text_is_cut_where_it_was_cut_before(parts: list[str], clean: str, cut: list[str]) -> None:
    assert cut_alike(parts, clean) == cut


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.text(alphabet="ab \n", max_size=12) | st.sampled_from([BADGE, "EMP-", "4711\n", "x" * 30]), min_size=1)
)
def test_no_text_is_lost_by_cutting_and_lines_stay_where_they_were(parts: list[str]) -> None:
    whole = "".join(parts)
    clean = NEW.clean(whole).text
    cut = cut_alike(parts, clean)
    assert "".join(cut) == clean
    assert len(cut) == len(parts)
    assert not any(BADGE in part for part in cut)
    assert [part.count("\n") for part in cut] == [part.count("\n") for part in parts]
