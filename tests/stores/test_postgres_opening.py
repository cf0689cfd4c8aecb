"""Opening a Postgres store: made once, recognised, brought up to date or refused; and what is told of it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import postgres_server
import psycopg
import pytest
from storing import EVERYTHING, Worker, embed, fact, found, near, unit

from grounded_mcp.assemble import open_store
from grounded_mcp.config import load
from grounded_mcp.errors import ConfigError, StoreError, StoreForeign, StoreNewer, StoreUnreachable
from grounded_mcp.settings import settings
from grounded_mcp.stores.options import PostgresOptions, StoreOptions
from grounded_mcp.stores.postgres import PostgresStore
from grounded_mcp.stores.postgres_connection import place_of
from grounded_mcp.stores.postgres_schema import shipped
from grounded_mcp.stores.schema import Migration
from grounded_mcp.stores.sqlite_schema import shipped as shipped_for_sqlite
from grounded_mcp.text import Analyzer

pytestmark = postgres_server.NEEDED
Open = Callable[..., Any]


def ask(schema: str, statement: str) -> list[Any]:
    """Rows of a statement in a store's schema, asked past the store."""
    with psycopg.connect(postgres_server.url(), autocommit=True) as db:
        db.execute(f'SET search_path = "{schema}", public')
        cursor = db.execute(statement)
        return cursor.fetchall() if cursor.description else []


def test_g3_migrations_are_numbered_and_named_as_those_of_the_other_engine() -> None:
    named = [(each.number, each.name) for each in shipped()]
    assert named == [(each.number, each.name) for each in shipped_for_sqlite()]
    assert [number for number, _ in named] == list(range(1, len(named) + 1))


def test_a_store_that_is_not_there_is_made_only_where_it_may_be(postgres: Open, schema: str) -> None:
    with pytest.raises(StoreError, match="There is no store"):
        postgres(create=False)
    assert schema not in [name for (name,) in ask(schema, "SELECT nspname FROM pg_namespace")]
    assert postgres().info().schema == shipped()[-1].number
    assert postgres(create=False).ids(limit=5) == ()


def test_case_21_many_that_open_a_missing_store_at_once_get_one(schema: str) -> None:
    opened: list[Any] = []
    threads = [threading.Thread(target=lambda: opened.append(postgres_server.open_store(schema))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    opened[0].save([fact("f1", "lever")])
    assert [found(store, "lever") for store in opened] == [["f1"]] * 8
    for store in opened:
        store.close()


def test_case_28_a_newer_schema_is_refused_and_left_as_it_is(postgres: Open, schema: str) -> None:
    store = postgres()
    store.save([fact("f1", "lever")])
    ask(schema, "UPDATE meta SET value = '99' WHERE name = 'schema'")
    ask(schema, "UPDATE meta SET value = '9.9' WHERE name = 'written_by'")
    with pytest.raises(StoreNewer, match=r"by version 9\.9 with schema 99"):
        postgres()
    with pytest.raises(StoreNewer):  # one that was open meanwhile
        store.save([fact("f2", "knob")])
    assert ask(schema, "SELECT id FROM item") == [("f1",)]


@pytest.mark.parametrize("version", range(1, len(shipped())))
def test_case_28_every_older_schema_is_brought_up_to_date_and_keeps_its_rows(schema: str, version: int) -> None:
    with closing(postgres_server.open_store(schema, migrations=shipped()[:version])):
        ask(schema, "INSERT INTO project VALUES ('k', 'n', 'r', '/', NULL, NULL, 1.0)")
    with closing(postgres_server.open_store(schema)) as store:
        assert [project.key for project in store.projects()] == ["k"]
        store.save([fact("f1", "lever")])
        assert (found(store, "lever"), store.check()) == (["f1"], ())


def test_case_31_a_migration_that_fails_leaves_the_store_as_it_was(schema: str) -> None:
    with closing(postgres_server.open_store(schema)) as store:
        store.save([fact("f1", "lever")])
    number = shipped()[-1].number + 1
    broken = (*shipped(), Migration(number, "broken", "CREATE TABLE extra (a text); SELECT * FROM nowhere"))
    with pytest.raises(StoreError, match="does not exist"):
        postgres_server.open_store(schema, migrations=broken)
    with closing(postgres_server.open_store(schema)) as store:
        assert found(store, "lever") == ["f1"]
    assert ask(schema, "SELECT to_regclass('extra')") == [(None,)]


def test_tables_of_something_else_are_left_alone(postgres: Open, schema: str) -> None:
    ask(schema, f'CREATE SCHEMA "{schema}"; CREATE TABLE "{schema}".item (id text)')
    with pytest.raises(StoreForeign, match="tables of something else"):
        postgres()
    assert ask(schema, "SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace") == [(1,)]


def test_two_schemas_of_one_database_know_nothing_of_each_other(schema: str) -> None:
    with (
        postgres_server.schema() as other,
        closing(postgres_server.open_store(schema)) as one,
        closing(postgres_server.open_store(other)) as two,
    ):
        one.save([fact("f1", "lever")])
        assert (found(one, "lever"), found(two, "lever")) == (["f1"], [])
        with one.lease("sync", 60) as mine, two.lease("sync", 60) as theirs:
            assert (mine, theirs) == (True, True)


@pytest.mark.parametrize("name", ["", "Upper", 'a"; DROP SCHEMA public', "1a", "a" * 64, "a-b"])
def test_a_schema_with_a_name_that_could_be_anything_else_is_refused(name: str) -> None:
    options = StoreOptions(postgres=PostgresOptions(schema=name))
    with pytest.raises(StoreError, match="cannot be the name"):
        PostgresStore(postgres_server.url(), Analyzer(), options)


# --- what is told -----------------------------------------------------------------------------------------


def test_case_59_a_password_is_told_nowhere(schema: str) -> None:
    assert place_of("postgresql://me:hunter2@db.example:5433/team", "s") == (
        "postgresql://me@db.example:5433/team (schema s)"
    )
    with pytest.raises(StoreUnreachable) as raised:
        PostgresStore("postgresql://me:hunter2@127.0.0.1:1/team?connect_timeout=2", Analyzer())
    assert "hunter2" not in str(raised.value)
    with closing(postgres_server.open_store(schema)) as store:
        assert ":@" not in store.info().location


def test_a_server_that_is_not_there_and_a_url_that_is_none_are_told_with_what_to_do() -> None:
    with pytest.raises(StoreUnreachable, match="Check that the server runs"):
        PostgresStore("postgresql://me@127.0.0.1:1/team", Analyzer())
    with pytest.raises(StoreError, match="postgresql://USER:PASSWORD@HOST"):
        PostgresStore("postgresql://%zz", Analyzer())


def test_case_59_an_error_does_not_quote_what_is_stored(postgres: Open) -> None:
    store = postgres()
    with pytest.raises(StoreError) as raised:
        store.save([fact("f1", "the lever", created_at="not a time, but a secret")])
    assert "secret" not in str(raised.value)


def test_without_the_driver_the_line_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in sys.modules if name.startswith("grounded_mcp.stores.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    env = {"GROUNDED_HOME": str(tmp_path), "GROUNDED_STORE": "postgresql://me@127.0.0.1:1/team"}
    with pytest.raises(ConfigError, match=r"pip install 'grounded-memory-mcp\[postgres\]'"):
        open_store(settings(load(folder=tmp_path, env=env)))


def test_g3_a_url_in_the_settings_opens_a_postgres_store(schema: str, tmp_path: Path) -> None:
    env = {
        "GROUNDED_HOME": str(tmp_path),
        "GROUNDED_STORE": postgres_server.url(),
        "GROUNDED_STORE__POSTGRES__SCHEMA": schema,
    }
    with closing(open_store(settings(load(folder=tmp_path, env=env)))) as store:
        info = store.info()
    assert (info.engine, set(info.versions)) == ("postgres", {"Postgres", "pgvector"})
    assert list(tmp_path.iterdir()) == []


# --- care -------------------------------------------------------------------------------------------------

DAMAGES = {
    "DELETE FROM posting WHERE passage = (SELECT min(id) FROM passage)": "the full-text index does not match 1",
    "UPDATE posting SET times = times + 1": "the full-text index does not match 3 passages",
    "INSERT INTO posting VALUES (1, 1, 9999, 1, 1)": "1 entries of the full-text index belong to no passage",
    "UPDATE term SET passages = passages + 1": "the counts of 7 terms",
    "UPDATE corpus SET tokens = 0": "3 passages of 0 tokens are counted, and there are 3 of",
    "DELETE FROM embedded": "1 passages and their vectors do not agree",
    "DELETE FROM mention": "the entities of 1 passages are not those of their text",
    "UPDATE passage SET tokens = 'other' WHERE id = (SELECT min(id) FROM passage)": "does not match 1 passages",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_case_35_what_is_derived_is_checked_and_built_anew(postgres: Open, schema: str, damage: str) -> None:
    store = postgres()
    store.save([fact("f1", "green lever"), fact("f2", "red KB-4156"), fact("f3", "red knob")])
    embed(store, "f1", unit(1, 0, 0, 0))
    before = [store.lexical([term], EVERYTHING, 9) for term in ("red", "lever", "kb-4156")]
    ask(schema, damage)
    assert DAMAGES[damage] in " ".join(store.check())
    report = store.repair()
    assert (report.left, bool(report.found), report.kept) == ((), True, None)
    assert [store.lexical([term], EVERYTHING, 9) for term in ("red", "lever", "kb-4156")] == before
    if damage == "DELETE FROM embedded":
        assert store.waiting() == 3
        embed(store, "f1", unit(1, 0, 0, 0))
    assert near(store, unit(1, 0, 0, 0)) == ["f1"]


def test_case_35_a_text_that_is_not_what_was_stored_is_told_and_stays(postgres: Open, schema: str) -> None:
    store = postgres()
    store.save([fact("f1", "lever")])
    ask(schema, "UPDATE passage SET body = 'other'")
    assert store.check() == ("the text of passage 1 is not what was stored",)
    assert store.repair().left == store.check()


def test_maintenance_and_a_scrub_change_no_answer(postgres: Open) -> None:
    store = postgres()
    store.save([fact("f1", "lever"), fact("f2", "lever knob")])
    before = store.lexical(["lever"], EVERYTHING, 9)
    store.maintain()
    assert store.scrub()
    assert store.lexical(["lever"], EVERYTHING, 9) == before


def test_case_21_processes_that_open_a_missing_store_at_once_get_one(worker: Callable[[], Worker], schema: str) -> None:
    workers = [worker() for _ in range(4)]
    for each in workers:
        each.tell("open", path=f"{postgres_server.url()} {schema}")
    assert [each.hear() for each in workers] == ["open"] * 4
