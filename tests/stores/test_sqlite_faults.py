"""A statement that fails, and a disk that is full: before or after, never between, and the store goes on."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import pytest
from storing import SPACE, doc, embed, fact, found, unit

from grounded_mcp.errors import StoreError, StoreFull, StoreReadOnly
from grounded_mcp.stores.sqlite import SqliteStore
from grounded_mcp.stores.sqlite_errors import translated

Open = Callable[..., Any]


@dataclass
class Faults:
    """Raises at the n-th statement that any connection runs from now on; 0: never."""

    left: int = 0
    connections: list[apsw.Connection] = field(default_factory=list)

    def hook(self, db: apsw.Connection) -> None:
        self.connections.append(db)
        db.exec_trace = self.trace

    def open(self) -> list[apsw.Connection]:
        """The connections that a store keeps."""
        return [db for db in self.connections if "closed" not in str(db)]

    def trace(self, cursor: apsw.Cursor, sql: str, bindings: object) -> bool:
        if self.left:
            self.left -= 1
            if not self.left:
                raise apsw.IOError("injected")
        return True


@pytest.fixture
def faults() -> Iterator[Faults]:
    armed = Faults()
    apsw.connection_hooks.append(armed.hook)
    yield armed
    apsw.connection_hooks.remove(armed.hook)


def contents(path: Path) -> dict[str, list[Any]]:
    with closing(apsw.Connection(str(path))) as db:
        return {
            table: list(db.execute(f"SELECT * FROM {table} ORDER BY 1, 2"))  # noqa: S608
            for table in ("item", "passage", "vector", "sketch", "bucket", "meta", "project")
        }


def _vectors(store: SqliteStore) -> object:
    return store.set_vectors(SPACE, {passage.id: unit(0, 1, 0, 0) for passage in store.pending(10)})


OPERATIONS: dict[str, Callable[[SqliteStore], object]] = {
    "remember": lambda store: store.save([fact("new", "a knob", "project:new")]),
    "import batch": lambda store: store.save([doc(f"{n}.md", "one", "two", scope="project:b") for n in range(4)]),
    "update": lambda store: store.save([doc("a.md", "alpha", "changed", "charlie", updated_at=5.0)]),
    "supersede": lambda store: store.save([fact("new", "port 8091", key="port")], supersede={"doc_a.md": "new"}),
    "move": lambda store: store.save([fact("f1", "port 8090", "project:b", key="port")]),
    "mark": lambda store: store.mark(["f1", "doc_a.md"], "superseded", 2.0),
    "forget": lambda store: store.delete(["f1", "doc_a.md"]),
    "vectors": _vectors,
    "reset": lambda store: store.reset_vectors(),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_case_30_a_fault_at_any_statement_leaves_the_store_as_it_was(
    sqlite: Open, path: Path, faults: Faults, operation: str
) -> None:
    store = sqlite(clock=lambda: 1.0)
    store.save([fact("f1", "port 8090", key="port"), doc("a.md", "alpha", "bravo")])
    embed(store, "f1", unit(1, 0, 0, 0))
    before, failed = contents(path), 0
    while True:
        faults.left = failed + 1
        try:
            OPERATIONS[operation](store)
            break
        except StoreError:
            failed += 1
        faults.left = 0
        after = contents(path)
        assert store.check() == ()
        if after != before:  # the fault came after the commit: only the acknowledgement is missing
            assert operation == "forget"
            break
    faults.left = 0
    assert failed > 3
    assert contents(path) != before
    assert store.check() == ()


def test_case_30_a_connection_that_cannot_even_roll_back_is_given_up(sqlite: Open, faults: Faults) -> None:
    store = sqlite()
    (db,) = (store.scopes(), faults.open())[1]
    db.exec_trace = lambda cursor, sql, bindings: not sql.startswith(("UPDATE", "ROLLBACK"))
    store.save([fact("f1", "lever")])
    with pytest.raises(StoreError):
        store.save([fact("f1", "lever", pinned=True)])
    store.save([fact("f2", "knob")])
    assert (store.item("f1")[0].pinned, found(store, "knob")) == (False, ["f2"])


@pytest.mark.parametrize(
    ("number", "error"), [(errno.ENOSPC, StoreFull), (errno.EROFS, StoreReadOnly), (errno.EIO, StoreError)]
)
def test_what_the_system_refuses_is_a_store_error_too(number: int, error: type[StoreError]) -> None:
    with pytest.raises(error) as raised, translated(Path("memory.db")):
        raise OSError(number, "refused")
    assert type(raised.value) is error


def test_case_30_a_fault_in_a_search_is_a_store_error_and_the_next_search_works(sqlite: Open, faults: Faults) -> None:
    store = sqlite()
    store.save([fact("f1", "lever")])
    for statement in range(1, 5):
        faults.left = statement
        with pytest.raises(StoreError):
            found(store, "lever")
        faults.left = 0
        assert found(store, "lever") == ["f1"]


def test_case_32_a_full_store_says_so_reads_on_and_writes_again_when_there_is_space(
    sqlite: Open, faults: Faults
) -> None:
    store = sqlite()
    store.save([fact("f1", "lever")])
    (db,) = faults.open()
    db.execute("PRAGMA max_page_count = 1")  # SQLite lowers it to the pages there are
    stored = fill_up(store)
    assert found(store, "lever") == ["f1"]
    assert store.check() == ()
    assert store.info().items == {"fact": 1 + stored}
    db.execute("PRAGMA max_page_count = 1000000")
    store.save([fact("after", "knob")])
    assert found(store, "knob") == ["after"]


def fill_up(store: SqliteStore) -> int:
    """Save until there is no space; returns how many were stored."""
    for number in range(10_000):
        try:
            store.save([fact(f"big{number}", f"word{number} " * 2000)])
        except StoreFull:
            return number
    raise AssertionError("never full")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB of this test's own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, timeout=30)
    except FileNotFoundError:
        pytest.skip("no mount command: not run on a really full disk")
    if done.returncode:
        pytest.skip(f"not run on a really full disk: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True, timeout=30)


def test_case_32_on_a_really_full_disk_nothing_is_half_stored(sqlite: Open, small_disk: Path) -> None:
    path = small_disk / "memory.db"
    store = sqlite(path)
    store.save([fact("f1", "lever")])
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(512 * 1024))
    stored = fill_up(store)
    assert stored
    assert found(store, "lever") == ["f1"]
    ballast.unlink()
    store.save([fact("after", "knob")])
    store.close()
    again = sqlite(path)
    assert again.check() == ()
    assert again.info().items == {"fact": 2 + stored}
    again.close()


def test_case_33_on_a_read_only_mount_a_store_is_read(sqlite: Open, small_disk: Path) -> None:
    path = small_disk / "memory.db"
    writer = sqlite(path)
    writer.save([fact("f1", "lever")])
    writer.close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True, timeout=30)
    store = sqlite(path)
    assert found(store, "lever") == ["f1"]
    with pytest.raises(StoreReadOnly):
        store.save([fact("f2", "knob")])
    store.close()


def test_case_32_a_store_cannot_be_made_on_a_full_disk(sqlite: Open, small_disk: Path) -> None:
    with pytest.raises(OSError, match="space"):
        (small_disk / "ballast").write_bytes(bytes(4 * 1024 * 1024))
    with pytest.raises(StoreFull):
        sqlite(small_disk / "memory.db")
    assert [each.name for each in small_disk.iterdir()] == ["ballast"]
