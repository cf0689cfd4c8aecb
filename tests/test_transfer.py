"""Export, import, backup, migrate: a memory moves whole, and nothing that was forgotten or secret moves with it."""

from __future__ import annotations

import base64
import json
import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import postgres_server
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from talking import Talk

from grounded_mcp.errors import InputError
from grounded_mcp.faces.tools import TOOLS
from grounded_mcp.stores.portable import Carried
from grounded_mcp.stores.sqlite import SqliteStore
from grounded_mcp.text import Analyzer
from grounded_mcp.transfer import lines, paths
from grounded_mcp.transfer.importing import check
from grounded_mcp.values import Clean, Evidence, Item, Passage, Record, Space, Vector
from tests.conftest import REPOSITORY, Command

SECRET = "ghp_R7x2Lq9Zt4Vw8Kc3Bn6Mj1Hd5Gf0SaPyEuTo"


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """A memory with documents, a session and what was mined from it, facts with history, a conflict, learnings."""
    home = tmp_path_factory.mktemp("furnished")
    project = home / "quayside"
    project.mkdir()
    command = Command(home / "home", project)
    (project / "guide.md").write_text("# Pumps\n\nThe pump is primed by hand.\n\n## Valves\n\nTurn left.\n", "utf-8")
    (project / "gone.md").write_text("# Gone\n\nThis page is about to be forgotten.\n", "utf-8")
    (project / "deploy.sh").write_text("echo deploy\n", "utf-8")
    talk = Talk(str(project)).ask("How do I deploy the kestrel?").run("bash deploy.sh", "done").say("It is deployed.")
    talk.ask("And the osprey?").say("The same way, with the other name.").write(home)
    command("sync")
    command("remember", "The deploy host is kestrel.", "--topic", "host")
    command("remember", "The deploy host is osprey.", "--topic", "host", "--pin")
    command("remember", "The gateway port is 8443.")
    command("remember", "The gateway port is 9443.")
    command("learn", "Priming twice makes the pump hold.", "--note", "seen at night")
    command("forget", command.json("remember", "Nobody may know of the heron.")["id"])
    command("forget", command.json("recall", "about to be forgotten", "--source", "doc")["data"][0]["id"])
    return command


@pytest.fixture
def full(furnished: Command, tmp_path: Path) -> Command:
    """The same, of this test's own."""
    (tmp_path / "home").mkdir(mode=0o700)
    with opened(furnished.home / "memory.db") as store:
        store.backup(tmp_path / "home" / "memory.db")
    user = dict.fromkeys(("HOME", "USERPROFILE"), str(furnished.home.parent))
    return Command(tmp_path / "home", furnished.cwd, user)


def at(command: Command, store: Path | str) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command over another store."""
    return lambda *args: command(*args, env={"GROUNDED_STORE": str(store)})


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


def contents(path: Path) -> list[dict[str, Any]]:
    """All that an export says of the memory itself."""
    return [row for row in rows(path) if row["type"] not in (lines.HEADER, "end")]


def sealed(*made: dict[str, Any], header: dict[str, Any] | None = None) -> bytes:
    """A file as ``export`` would end it."""
    first = {"type": lines.HEADER, "version": 1, "space": None, **(header or {})}
    body = b"".join(map(lines.encode, (first, *made)))
    return body + lines.encode({"type": "end", "lines": len(made) + 1, "sha256": sha256(body).hexdigest()})


def fact_row(item_id: str, text: str, **fields: Any) -> dict[str, Any]:
    item = Item(item_id, "fact", "global", Clean(text), body=Clean(text), updated_at=1.0)
    return {**lines.item_row(Carried(Record(item, (Passage(0, Clean(text)),)))), **fields}


def opened(path: Path | str) -> Any:
    return closing(SqliteStore(Path(path), Analyzer()))


# --- out and in -------------------------------------------------------------------------------------------


def test_f4_what_is_imported_is_what_was_exported(full: Command, tmp_path: Path) -> None:
    assert full("export", str(tmp_path / "one.jsonl")).returncode == 0
    there = at(full, tmp_path / "new.db")
    done = there("import", str(tmp_path / "one.jsonl"))
    assert done.returncode == 0, done.stderr
    assert there("export", str(tmp_path / "two.jsonl")).returncode == 0
    assert contents(tmp_path / "two.jsonl") == contents(tmp_path / "one.jsonl")
    kinds = {row["kind"] for row in contents(tmp_path / "one.jsonl") if row["type"] == "item"}
    assert kinds >= {"fact", "doc", "session", "learning", "script"}
    assert there("doctor").stdout.strip() == "sound"
    for query in ("kestrel", "gateway port", "pump", "deploy"):
        assert _ids(there, query) == _ids(full, query) != []


def _ids(run: Callable[..., Any], query: str) -> list[str]:
    return [card["id"] for card in json.loads(run("recall", query, "--json").stdout)["data"]]


def test_history_and_conflicts_are_imported(full: Command, tmp_path: Path) -> None:
    full("export", str(tmp_path / "a.jsonl"))
    there = at(full, tmp_path / "new.db")
    there("import", str(tmp_path / "a.jsonl"))
    by_text = {row.get("body"): row["id"] for row in contents(tmp_path / "a.jsonl") if row["type"] == "item"}
    for run in (full, there):
        osprey = json.loads(run("open", by_text["The deploy host is osprey."], "--json").stdout)
        assert "kestrel" in json.dumps(osprey["history"])
        gateway = json.loads(run("open", by_text["The gateway port is 9443."], "--json").stdout)
        assert "8443" in json.dumps(gateway)


def test_case_61_what_was_forgotten_is_in_no_export_and_does_not_come_back(full: Command, tmp_path: Path) -> None:
    full("export", str(tmp_path / "a.jsonl"), "--vectors", "--telemetry")
    held = (tmp_path / "a.jsonl").read_text(encoding="ascii")
    assert "heron" not in held
    assert "about to be forgotten" not in held
    there = at(full, tmp_path / "new.db")
    there("import", str(tmp_path / "a.jsonl"))
    there("sync", "--reread")  # the file is still in the project, unchanged
    assert (full.cwd / "gone.md").exists()
    assert _ids(there, "page about to be forgotten") == _ids(full, "page about to be forgotten")
    assert "about to be forgotten" not in there("recall", "page about to be forgotten", "--source", "doc").stdout
    counts = [json.loads(run("status", "--json").stdout)["store"]["items"] for run in (full, there)]
    assert counts[0] == counts[1]


def test_case_61_both_stores_forgotten_things_stay_forgotten_after_a_merge(full: Command, tmp_path: Path) -> None:
    full("export", str(tmp_path / "a.jsonl"))
    other = at(full, tmp_path / "other.db")
    other("remember", "The otter sleeps.")
    other("forget", _ids(other, "otter")[0])
    merged = other("import", str(tmp_path / "a.jsonl"), "--merge")
    assert merged.returncode == 0, merged.stderr
    other("sync", "--reread")
    assert "about to be forgotten" not in other("recall", "page about to be forgotten", "--source", "doc").stdout
    other("export", str(tmp_path / "b.jsonl"))
    assert sum(row["type"] == "key" for row in rows(tmp_path / "b.jsonl")) == 2


def test_an_import_into_a_store_that_holds_something_has_to_be_asked_for(full: Command, tmp_path: Path) -> None:
    full("export", str(tmp_path / "a.jsonl"))
    refused = full("import", str(tmp_path / "a.jsonl"))
    assert refused.returncode == 1
    assert "Add --merge" in refused.stderr
    again = full.json("import", str(tmp_path / "a.jsonl"), "--merge")
    assert (again["added"], again["updated"]) == (0, 0)
    assert again["unchanged"] > 5


def test_a_merge_keeps_the_newer_version_and_what_was_deleted_here_deleted(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(sealed(fact_row("f1", "old words"), fact_row("f2", "two"), fact_row("k1", "old", key="k")))
    command("import", str(file))
    with opened(command.home / "memory.db") as store:
        newer = Item("f1", "fact", "global", Clean("new words"), body=Clean("new words"), updated_at=5.0)
        rival = Item("k2", "fact", "global", Clean("new"), "k", Clean("new"), updated_at=5.0)
        store.save([Record(newer, (Passage(0, Clean("new words")),)), Record(rival, (Passage(0, Clean("new")),))])
        store.delete(["k1"])
    command("forget", "f2")
    report = command.json("import", str(file), "--merge")
    assert (report["older"], report["forgotten"], report["added"]) == (1, 1, 1)
    with opened(command.home / "memory.db") as store:
        assert store.item("f1")[0].body == "new words"
        assert store.find("fact", "global", "k").id == "k2"
        assert [item.id for item in store.history("k2", 5)] == ["k1"]
    assert command.json("import", str(file), "--merge", "--forgotten")["added"] == 1


def test_vectors_and_telemetry_travel_only_when_asked_for(full: Command, tmp_path: Path) -> None:
    space = Space("model-a", 2)
    with opened(full.home / "memory.db") as store:
        one = store.pending(1)[0].id
        store.set_vectors(space, {one: Vector(b"\0\0\x80?\0\0\0\0")})
    full("export", str(tmp_path / "bare.jsonl"))
    full("export", str(tmp_path / "all.jsonl"), "--vectors", "--telemetry")
    bare = (tmp_path / "bare.jsonl").read_text(encoding="ascii")
    assert '"vector"' not in bare
    assert not {"session", "recall"} & {row["type"] for row in rows(tmp_path / "bare.jsonl")}
    there = at(full, tmp_path / "new.db")
    there("import", str(tmp_path / "all.jsonl"))
    with opened(tmp_path / "new.db") as new, opened(full.home / "memory.db") as old:
        assert new.space() == space
        assert new.info().vectors == old.info().vectors
        noted = [store.noted(0.0, top=50) for store in (old, new)]
        assert [r._replace(results=0) for r in noted[0].recalls] == [r._replace(results=0) for r in noted[1].recalls]
        assert noted[0].sessions == noted[1].sessions


def test_case_60_a_projects_export_holds_its_own_and_what_is_global(command: Command, tmp_path: Path) -> None:
    for scope, text in (
        ("project:acme/a", "mine is amber"),
        ("project:acme/b", "theirs is jet"),
        ("global", "all of us"),
    ):
        command("remember", text, "--scope", scope)
    command("forget", command.json("remember", "secretly gone", "--scope", "project:acme/b")["id"])
    command("export", str(tmp_path / "a.jsonl"), "--project", "acme/a")
    found = contents(tmp_path / "a.jsonl")
    assert {row["body"] for row in found} == {"mine is amber", "all of us"}
    assert "acme/b" not in (tmp_path / "a.jsonl").read_text(encoding="ascii")


# --- files that are no exports ----------------------------------------------------------------------------

GOOD = fact_row("f1", "good")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "cut off"),
        (b"\xff\xfe\n", "line 1 is no JSON object"),
        (b"[1]\n", "line 1 is no JSON object"),
        (b'{"type":"item"}\n', "no export of grounded-mcp"),
        (sealed(GOOD, header={"version": 2}), "its version 2 is newer"),
        (sealed(GOOD, header={"version": True}), "version"),
        (sealed(GOOD)[:-40], "no JSON object"),
        (sealed(GOOD).rsplit(b"\n", 2)[0] + b"\n", "cut off"),
        (sealed(GOOD).replace(b"good", b"evil"), "was changed after it was written"),
        (sealed(GOOD) + sealed(GOOD), "was changed"),
        (sealed({**GOOD, "kind": "program"}), "line 2: kind: it has to be one of"),
        (sealed({**GOOD, "pinned": 1}), "line 2: pinned: it has to be true or false"),
        (sealed({**GOOD, "importance": 2}), "line 2: importance"),
        (sealed({**GOOD, "updated_at": 1e300}), "line 2: updated_at"),
        (sealed({**GOOD, "id": ""}), "line 2: id"),
        (sealed({**GOOD, "body": "\ud800"}), "line 2: body"),
        (sealed({**GOOD, "body": "a\0b"}), "line 2: body"),
        (sealed({**GOOD, "attrs": {"a": 1}}), "line 2: a: it has to be a text"),
        (sealed({**GOOD, "passages": [{"seq": 1, "body": "x", "heading": ""}]}), "line 2: seq"),
        (sealed({**GOOD, "state": "superseded"}), "line 2: passages"),
        (sealed({"type": "program", "run": "rm"}), "'program' is none of this version"),
        (sealed({"type": "key", "value": "zz"}), "line 2: value"),
        (
            sealed(
                {**GOOD, "passages": [{"seq": 0, "body": "x", "heading": "", "vector": "AAAA"}]},
                header={"space": {"model": "m", "dimensions": 2}},
            ),
            "line 2: vector: it is no vector of 2 dimensions",
        ),
        (
            sealed(
                {
                    **GOOD,
                    "passages": [
                        {"seq": 0, "body": "x", "heading": "", "vector": base64.b64encode(b"\0" * 8).decode()}
                    ],
                },
                header={"space": {"model": "m", "dimensions": 2}},
            ),
            "line 2:",
        ),
    ],
)
def test_a_file_that_is_no_sound_export_is_refused_before_anything_is_stored(
    command: Command, tmp_path: Path, data: bytes, told: str
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(data)
    with file.open("rb") as read, pytest.raises(InputError) as error:
        check(read)
    assert told in str(error.value)


def test_nothing_of_a_refused_file_is_stored(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(sealed(GOOD, {**GOOD, "id": "f2", "kind": "program"}))
    done = command("import", str(file))
    assert done.returncode == 1
    assert "line 3: kind" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (command.home / "memory.db").exists()


def test_case_57_secrets_in_an_imported_file_are_not_stored(command: Command, tmp_path: Path) -> None:
    said = f"export DEPLOY_TOKEN={SECRET}"
    proof = {"session": "s", "place": 1, "supports": True, "kind": "stated", "at": 1.0, "note": said}
    dirty = {**fact_row("f1", said), "attrs": {"command": said}, "evidence": [proof], "key": said}
    dirty["passages"][0]["heading"] = said
    named = {**fact_row("f2", "named"), "id": f"fact_{SECRET}"}
    root = {"type": "project", "key": f"p-{SECRET}", "name": "p", "reason": "", "root": f"/srv/{SECRET}"}
    file = tmp_path / "a.jsonl"
    file.write_bytes(sealed(root, dirty, named, {"type": "checkpoint", "source": "s", "state": said}))
    done = command("import", str(file), "--json")
    assert done.returncode == 1  # one item could not be kept
    report = json.loads(done.stdout)
    assert (report["added"], report["unchecked"]) == (1, 1)
    held = b"".join(path.read_bytes() for path in command.home.rglob("*") if path.is_file())
    assert SECRET[4:16].encode() not in held
    assert b"[REDACTED:" in held


# --- where files may be -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["file:///etc/passwd", "https://evil.example/a", "\\\\host\\share\\a", "//host/a", "", "a\0b"]
)
def test_case_53_a_url_or_a_share_is_no_file(name: str) -> None:
    with pytest.raises(InputError):
        paths.named(name)


def test_case_53_a_name_is_taken_as_it_stands_in_the_real_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert paths.named(str(tmp_path / "link" / "a.jsonl")) == tmp_path / "real" / "a.jsonl"
    monkeypatch.chdir(tmp_path)
    assert paths.named("%2e%2e").name == "%2e%2e"
    for name in ("..", "real/..", "nowhere/a.jsonl"):
        with pytest.raises(InputError):
            paths.named(name)


def test_an_export_without_a_name_goes_into_the_data_directory_and_not_into_the_repository(
    full: Command, project: Path
) -> None:
    before = sorted(project.rglob("*"))
    done = full.json("export")
    target = Path(done["file"])
    assert target.parent == (full.home / "exports").resolve()
    assert (target.stat().st_mode & 0o777, target.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert sorted(project.rglob("*")) == before
    assert str(target.parent) in full("export", "--force").stdout


@pytest.mark.parametrize("verb", ["export", "backup"])
def test_case_53_nothing_is_written_through_a_link_or_over_a_file(full: Command, tmp_path: Path, verb: str) -> None:
    kept, link = tmp_path / "kept.txt", tmp_path / "link"
    kept.write_text("keep me", "utf-8")
    link.symlink_to(kept)
    for target in (kept, link, tmp_path / "dangling"):
        if target.name == "dangling":
            target.symlink_to(tmp_path / "not-there")
        done = full(verb, str(target))
        assert done.returncode == 1
        assert "exists already" in done.stderr
    assert full(verb, str(tmp_path), "--force").returncode == 1
    assert full(verb, str(link), "--force").returncode == 0
    assert not link.is_symlink()
    assert kept.read_text("utf-8") == "keep me"
    assert not [path for path in tmp_path.iterdir() if path.suffix in (".new", ".part")]


def test_case_53_what_is_read_is_a_file_itself(command: Command, tmp_path: Path) -> None:
    good = tmp_path / "good.jsonl"
    good.write_bytes(sealed(GOOD))
    (tmp_path / "link.jsonl").symlink_to(good)
    os.mkfifo(tmp_path / "pipe.jsonl")
    for name in ("link.jsonl", "pipe.jsonl", "missing.jsonl"):
        assert command("import", str(tmp_path / name)).returncode == 1
    assert command("import", str(tmp_path)).returncode == 1
    assert command("import", str(good)).returncode == 0


def test_case_53_no_tool_names_a_file_of_the_server() -> None:
    names = {argument.name for tool in TOOLS for argument in tool.arguments}
    assert names.isdisjoint({"file", "path", "store", "location", "target", "url", "to", "from"})


@pytest.mark.skipif(os.name != "posix", reason="modes")
@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_case_62_exports_and_backups_are_for_this_user_alone(full: Command, tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        full("export", str(tmp_path / "a.jsonl"))
        full("backup", str(tmp_path / "b.db"))
        at(full, tmp_path / "c" / "c.db")("import", str(tmp_path / "a.jsonl"))
        full("migrate", str(full.home / "memory.db"), str(tmp_path / "d.db"))
    finally:
        os.umask(before)
    for name in ("a.jsonl", "b.db", "c/c.db", "d.db"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600, name


# --- backup -----------------------------------------------------------------------------------------------


def test_case_38_a_backup_made_while_others_write_is_one_sound_moment(tmp_path: Path) -> None:
    """A writer keeps two facts equal, in one transaction each time: so are they in every copy."""
    stop = threading.Event()
    with opened(tmp_path / "memory.db") as store:

        def write() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                text = Clean(f"version {number}")
                pair = [Item(name, "fact", "global", text, body=text, updated_at=1.0) for name in ("left", "right")]
                store.save([Record(item, (Passage(0, text),)) for item in pair])

        writer = threading.Thread(target=write)
        writer.start()
        try:
            seen = set()
            for at_ in range(5):
                copy = tmp_path / f"copy-{at_}.db"
                store.backup(copy)
                with opened(copy) as restored:
                    assert restored.check() == ()
                    bodies = {restored.item(name)[0].body for name in restored.ids(limit=5)}
                    assert len(bodies) <= 1
                    seen |= bodies
        finally:
            stop.set()
            writer.join(30)
    assert len(seen) > 1


def test_case_38_a_backup_is_used_by_naming_it_as_the_store(full: Command, tmp_path: Path) -> None:
    done = full("backup", str(tmp_path / "b.db"))
    assert "sound" in done.stdout
    there = at(full, tmp_path / "b.db")
    assert there("doctor").stdout.strip() == "sound"
    assert _ids(there, "osprey") == _ids(full, "osprey") != []
    assert full("backup", str(tmp_path / "b.db")).returncode == 1
    assert full("backup", str(tmp_path / "b.db"), "--force").returncode == 0


def test_case_38_nothing_copies_a_store_as_a_plain_file() -> None:
    for path in (REPOSITORY / "grounded_mcp").rglob("*.py"):
        found = re.findall(r"shutil\.(?:copy|copy2|copyfile|copyfileobj|move)\b", path.read_text(encoding="utf-8"))
        assert not found, path


# --- migrate ----------------------------------------------------------------------------------------------


@pytest.fixture
def postgres() -> Iterator[str]:
    """The URL of an empty store on the tests' server."""
    if postgres_server.missing():
        pytest.skip(postgres_server.missing())
    with postgres_server.schema() as name:
        yield name


def test_g3_a_store_moves_to_postgres_and_back_unchanged(full: Command, postgres: str, tmp_path: Path) -> None:
    env = {"GROUNDED_STORE__POSTGRES__SCHEMA": postgres}
    full("token", "create", "alice", "--project", "acme/a")
    there = full("migrate", str(full.home / "memory.db"), postgres_server.url(), "--json", env=env)
    assert there.returncode == 0, there.stderr + there.stdout
    back = full("migrate", postgres_server.url(), str(tmp_path / "back.db"), "--json", env=env)
    assert back.returncode == 0, back.stderr + back.stdout
    for run in (there, back):
        report = json.loads(run.stdout)
        assert report["same"]
        assert report["searches"][0] == report["searches"][1] > 0
    assert json.loads(there.stdout)["seal"] == json.loads(back.stdout)["seal"]
    full("export", str(tmp_path / "one.jsonl"), "--vectors")
    at(full, tmp_path / "back.db")("export", str(tmp_path / "two.jsonl"), "--vectors")
    assert contents(tmp_path / "one.jsonl") == contents(tmp_path / "two.jsonl")
    assert "alice (valid)" in at(full, tmp_path / "back.db")("token", "list").stdout


KILLED = """
import os, sys
from grounded_mcp.stores.postgres import PostgresStore
from grounded_mcp.stores.sqlite import SqliteStore
left = [3]
for store in (SqliteStore, PostgresStore):
    def adopt(self, carried, was=store.adopt, **more):
        left[0] -= bool(carried)
        if not left[0]:
            os._exit(9)
        return was(self, carried, **more)
    store.adopt = adopt
from grounded_mcp.faces.cli import main
sys.exit(main())
"""
"""The program that ends without a word before it stores the third batch."""


def five_hundred(store: Any) -> None:
    for page in range(5):
        texts = [(f"f{page}{n:03}", Clean(f"fact {n} of page {page}")) for n in range(100)]
        store.save([Record(Item(i, "fact", "global", t, body=t, updated_at=1.0), (Passage(0, t),)) for i, t in texts])


def killed(command: Command, *args: str, env: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *args],
        env={**command.environment(), **env},
        cwd=command.cwd,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 9, done.stderr


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_f4_a_migration_that_was_killed_half_way_goes_on_where_it_was(
    command: Command, postgres: str, tmp_path: Path, engine: str
) -> None:
    with opened(command.home / "memory.db") as store:
        five_hundred(store)
    env = {"GROUNDED_STORE__POSTGRES__SCHEMA": postgres}
    target = str(tmp_path / "new.db") if engine == "sqlite" else postgres_server.url()
    args = ["migrate", str(command.home / "memory.db"), target]
    killed(command, *args, env=env)
    with opened(target) if engine == "sqlite" else closing(postgres_server.open_store(postgres)) as half:
        assert len(half.ids(limit=1_000)) == 200
        text = Clean("not from there")
        half.save([Record(Item("zzz", "fact", "global", text, body=text), (Passage(0, text),))])
    report = json.loads(command(*args, "--json", env=env).stdout)
    assert (report["before"], report["moved"], report["same"]) == (200, 300, True)  # what was too much is gone
    refused = command("migrate", target, str(command.home / "memory.db"), env=env)
    assert refused.returncode == 1
    assert "holds something already" in refused.stderr


def test_f4_an_import_that_was_killed_half_way_is_run_again(command: Command, tmp_path: Path) -> None:
    with opened(command.home / "memory.db") as store:
        five_hundred(store)
    assert command("export", str(tmp_path / "all.jsonl")).returncode == 0
    env = {"GROUNDED_STORE": str(tmp_path / "new.db")}
    killed(command, "import", str(tmp_path / "all.jsonl"), env=env)
    again = command("import", str(tmp_path / "all.jsonl"), env=env)
    assert again.returncode == 1
    assert "Add --merge" in again.stderr
    merged = command("import", str(tmp_path / "all.jsonl"), "--merge", env=env)
    assert merged.stdout.startswith("300 items added, 0 updated, 200 as they were")


def test_a_backup_of_a_store_on_a_server_says_what_to_do(command: Command, postgres: str, tmp_path: Path) -> None:
    env = {"GROUNDED_STORE": postgres_server.url(), "GROUNDED_STORE__POSTGRES__SCHEMA": postgres}
    assert "There is no store" in command("backup", str(tmp_path / "copy.db"), env=env).stderr
    command("remember", "The pump hums.", env=env)
    done = command("backup", str(tmp_path / "copy.db"), env=env)
    assert done.returncode == 1
    assert "pg_dump, or `grounded-mcp migrate` into a file" in done.stderr
    assert not (tmp_path / "copy.db").exists()


def test_a_migration_that_was_finished_undoes_nothing_that_was_done_in_the_new_store(
    full: Command, postgres: str, tmp_path: Path
) -> None:
    for target in (str(tmp_path / "new.db"), postgres_server.url()):
        env = {"GROUNDED_STORE__POSTGRES__SCHEMA": postgres}
        args = ("migrate", str(full.home / "memory.db"), target)
        assert full(*args, env=env).returncode == 0
        again = full(*args, env=env)
        assert again.returncode == 0
        assert again.stdout.startswith("0 items moved")
        there = lambda *words: full(*words, env={**env, "GROUNDED_STORE": target})  # noqa: B023, E731 - used at once
        assert there("remember", "The new pump hums.").returncode == 0
        refused = full(*args, env=env)
        assert refused.returncode == 1
        assert "the two have changed since; nothing was done" in refused.stderr
        assert "The new pump hums." in there("recall", "pump hums").stdout
    same = full("migrate", str(full.home / "memory.db"), str(full.home / "memory.db"))
    assert same.returncode == 1
    assert "it is the same store" in same.stderr


# --- lines ------------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
NAMES = TEXTS.filter(bool)
TIMES = st.floats(0, 1e12)
PROOFS = st.builds(
    Evidence, NAMES, st.integers(0, 9), st.booleans(), st.sampled_from(lines.PROOFS), TIMES, TEXTS.map(Clean)
)


@st.composite
def carried(draw: st.DrawFn) -> Carried:
    passages = tuple(
        Passage(
            seq, Clean(draw(TEXTS)), draw(TEXTS), draw(st.none() | st.integers(0, 9)), None, draw(st.none() | TIMES)
        )
        for seq in range(draw(st.integers(0, 3)))
    )
    state = draw(st.sampled_from(lines.STATES))
    item = Item(
        draw(NAMES),
        draw(st.sampled_from(lines.KINDS)),
        draw(NAMES),
        Clean(draw(TEXTS)),
        draw(st.none() | NAMES),
        draw(st.none() | TEXTS.map(Clean)),
        state,
        draw(st.sampled_from(lines.ORIGINS)),
        draw(st.none() | st.floats(0, 1)),
        draw(st.booleans()),
        draw(TIMES),
        draw(TIMES),
        draw(TEXTS),
        draw(st.dictionaries(NAMES, TEXTS, max_size=2)),
    )
    record = Record(item, () if state == "superseded" else passages, tuple(draw(st.lists(PROOFS, max_size=2))))
    vectors = {each.seq: draw(st.none() | st.just(Vector(b"\0\0\x80?\0\0\0\0"))) for each in record.passages}
    links = tuple(sorted(draw(st.sets(NAMES, max_size=2))))
    return Carried(record, draw(st.none() | TIMES), draw(st.none() | NAMES), links, vectors)


@settings(max_examples=60, deadline=None)
@given(carried())
def test_a_line_gives_back_the_item_that_it_was_made_from(item: Carried) -> None:
    line = lines.encode(lines.item_row(item))
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert lines.read_item(json.loads(line), Space("m", 2)) == item
