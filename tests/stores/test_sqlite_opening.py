"""Opening a SQLite store: made once, recognised, refused or read as far as it can be - and never replaced."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from storing import SPACE, Worker, embed, fact, found, near, unit

from grounded_mcp.errors import StoreDamaged, StoreError, StoreForeign, StoreNewer, StoreReadOnly
from grounded_mcp.stores import sqlite_files
from grounded_mcp.stores.sqlite_connection import _vector_functions, connect
from grounded_mcp.stores.sqlite_schema import APPLICATION_ID, shipped

Open = Callable[..., Any]
POSIX = pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def journal(path: Path) -> str:
    with closing(apsw.Connection(str(path))) as db:
        return str(db.pragma("journal_mode"))


def filled(sqlite: Open) -> Path:
    """A closed store with one fact that has a vector."""
    store = sqlite()
    store.save([fact("f1", "the lever is green")])
    embed(store, "f1", unit(1, 0, 0, 0))
    store.close()
    return Path(store.path)


# --- making and recognising -------------------------------------------------------------------------------


def test_importing_the_store_loads_no_numpy_and_no_model() -> None:
    code = "import sys, grounded_mcp.stores.sqlite; print({'numpy', 'onnxruntime', 'mcp'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True, timeout=60)
    assert done.stdout.strip() == "set()"


def test_a_new_store_is_complete_and_nothing_else_is_left_beside_it(sqlite: Open, path: Path) -> None:
    store = sqlite()
    assert store.check() == ()
    store.close()
    assert [each.name for each in path.parent.iterdir()] == ["memory.db"]
    assert journal(path) == "wal"


def test_a_missing_store_is_not_made_where_that_is_not_wanted(sqlite: Open, path: Path) -> None:
    with pytest.raises(StoreError, match="There is no store"):
        sqlite(create=False)
    assert not path.parent.exists()


def test_case_21_eight_processes_that_open_a_missing_store_at_once_all_get_the_same(
    worker: Callable[[], Worker], tmp_path: Path, sqlite: Open
) -> None:
    workers = [worker() for _ in range(8)]
    for number in range(20):
        path = tmp_path / f"round{number}" / "memory.db"
        for each in workers:
            each.tell("open", path=str(path))
        assert [each.hear() for each in workers] == ["open"] * 8
        for at, each in enumerate(workers):
            each.tell("save", name=str(at), count=1)
        assert [each.hear()["saved"] for each in workers] == [1] * 8
        store = sqlite(path)
        assert store.info().items == {"fact": 8}
        assert store.check() == ()
        assert not list(path.parent.glob("*.new*"))


def test_a_file_system_without_hard_links_still_gets_a_store(sqlite: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise PermissionError("no hard links here")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    assert sqlite().check() == ()
    assert sqlite().check() == ()


def test_a_link_to_the_store_and_the_store_are_one(sqlite: Open, path: Path, tmp_path: Path) -> None:
    sqlite().save([fact("f1", "lever")])
    (tmp_path / "link.db").symlink_to(path)
    linked = sqlite(tmp_path / "link.db")
    assert linked.path == path
    assert found(linked, "lever") == ["f1"]


# --- refusing ---------------------------------------------------------------------------------------------


def refused(sqlite: Open, path: Path, error: type[StoreError]) -> StoreError:
    """Opening is refused, and the file is byte for byte what it was."""
    before, before_mode = path.read_bytes(), mode(path)
    with pytest.raises(error) as raised:
        sqlite()
    assert (path.read_bytes(), mode(path)) == (before, before_mode)
    assert raised.value.remedy
    return raised.value


def test_case_35_an_empty_file_is_refused(sqlite: Open, path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    assert "an empty file" in refused(sqlite, path, StoreForeign).message


def test_case_35_a_database_of_something_else_is_refused(sqlite: Open, path: Path) -> None:
    path.parent.mkdir()
    with closing(apsw.Connection(str(path))) as db:
        db.execute("CREATE TABLE theirs (x); PRAGMA application_id = 7")
    path.chmod(0o644)
    refused(sqlite, path, StoreForeign)
    assert [each.name for each in path.parent.iterdir()] == ["memory.db"]


@pytest.mark.parametrize("content", [b"\x93garbage" * 4096, b"some notes\n"])
def test_case_35_a_file_with_a_destroyed_header_is_damaged(sqlite: Open, path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    assert refused(sqlite, path, StoreDamaged).remedy.startswith("Restore a copy of it")


def test_case_35_a_truncated_file_is_damaged(sqlite: Open) -> None:
    path = filled(sqlite)
    os.truncate(path, path.stat().st_size // 2)
    refused(sqlite, path, StoreDamaged)


def test_a_folder_under_the_name_is_refused(sqlite: Open, path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(StoreForeign, match="a folder"):
        sqlite()


@pytest.mark.parametrize("pending_log", [False, True])
def test_case_28_a_store_of_a_newer_version_is_refused_untouched(sqlite: Open, path: Path, pending_log: bool) -> None:
    filled(sqlite)
    newer = shipped()[-1].number + 1
    writer = connect(path)
    writer.execute("UPDATE meta SET value = '9.8.7' WHERE name = 'written_by'")
    writer.execute(f"PRAGMA user_version = {newer}")
    if pending_log:  # as a process of that version that was killed leaves it
        for side in ("", "-wal"):
            shutil.copy(f"{path}{side}", f"{path}.copy{side}")
        writer.close()
        for side in ("", "-wal"):
            Path(f"{path}.copy{side}").rename(f"{path}{side}")
        log = Path(f"{path}-wal").read_bytes()
        assert log
    else:
        writer.close()
    error = refused(sqlite, path, StoreNewer)
    assert "9.8.7" in error.remedy
    if pending_log:
        assert Path(f"{path}-wal").read_bytes() == log


def test_a_store_that_another_process_migrates_meanwhile_is_not_written(sqlite: Open, path: Path) -> None:
    store = sqlite()
    with closing(connect(path)) as other:
        other.execute(f"PRAGMA user_version = {shipped()[-1].number + 1}")
    for call in (lambda: store.save([fact("f1", "x")]), store.scopes):
        with pytest.raises(StoreNewer):
            call()


# --- file systems and rights ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "9p", "fuse.sshfs"])
def test_t12_on_a_network_file_system_there_is_no_log_and_a_warning(sqlite: Open, path: Path, kind: str) -> None:
    store = sqlite(filesystem=lambda _: kind)
    store.save([fact("f1", "lever")])
    assert found(store, "lever") == ["f1"]
    (warning,) = store.info().warnings
    assert kind in warning
    assert not Path(f"{path}-wal").exists()
    assert journal(path) == "delete"


def test_t12_a_store_that_moved_to_a_network_file_system_loses_its_log_and_gets_it_back(sqlite: Open) -> None:
    path = filled(sqlite)
    away = sqlite(filesystem=lambda _: "nfs")
    assert found(away, "lever") == ["f1"]
    away.close()
    assert journal(path) == "delete"
    home = sqlite(filesystem=lambda _: "ext4")
    assert near(home, unit(1, 0, 0, 0)) == ["f1"]
    home.close()
    assert journal(path) == "wal"


def test_the_file_system_is_that_of_the_deepest_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "30 21 0:40 / /mnt rw,relatime shared:1 - tmpfs tmpfs rw\n"
        "31 30 0:41 / /mnt/my\\040share rw master:2 - nfs4 server:/x rw\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(sqlite_files, "MOUNTS", mounts)
    assert sqlite_files.filesystem_of(Path("/mnt/my share/home/memory.db")) == "nfs4"
    assert sqlite_files.filesystem_of(Path("/mnt/mysterious")) == "tmpfs"
    assert sqlite_files.filesystem_of(Path("/mntx/memory.db")) == "ext4"
    monkeypatch.setattr(sqlite_files, "MOUNTS", tmp_path / "absent")
    assert sqlite_files.filesystem_of(Path("/mnt/my share/memory.db")) == ""


@pytest.mark.parametrize(
    ("kind", "network"),
    [("nfs", True), ("smb3", True), ("fuse.rclone", True), ("fuseblk", False), ("ext4", False), ("", False)],
)
def test_local_disks_are_told_from_network_ones(kind: str, network: bool) -> None:
    assert sqlite_files.is_network(kind) is network


@POSIX
@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_case_62_every_file_is_private_whatever_the_umask(sqlite: Open, path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        store = sqlite(path.parent / "deeper" / "memory.db")
        store.save([fact("f1", "lever")])
        store.backup(store.path.with_name("copy.db"))
    finally:
        os.umask(before)
    assert {each.name: mode(each) for each in store.path.parent.iterdir()} == {
        "memory.db": 0o600,
        "memory.db-wal": 0o600,
        "memory.db-shm": 0o600,
        "copy.db": 0o600,
    }
    assert (mode(path.parent), mode(store.path.parent)) == (0o700, 0o700)


@POSIX
def test_case_62_an_open_store_file_is_made_private(sqlite: Open) -> None:
    path = filled(sqlite)
    path.chmod(0o644)
    sqlite().save([fact("f2", "knob")])
    assert {mode(each) for each in path.parent.iterdir()} == {0o600}


@POSIX
def test_case_62_a_folder_that_everybody_may_write_is_reported(sqlite: Open, path: Path) -> None:
    path.parent.mkdir()
    path.parent.chmod(0o777)
    assert any("Every user may" in warning for warning in sqlite().info().warnings)


@contextmanager
def no_rights() -> Iterator[None]:
    """Run as a user whom file modes bind; root is not."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that any user can reach and that is this test's."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for each in (folder, *folder.rglob("*")):
        each.chmod(0o755)
    shutil.rmtree(folder)


def _give_away(path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(path.parent, 65534, 65534)
        os.chown(path, 65534, 65534)


@POSIX
@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o400, 0o500), (0o600, 0o500), (0o400, 0o700)])
def test_case_33_a_store_that_cannot_be_written_is_read(
    sqlite: Open, reachable: Path, file_mode: int, folder_mode: int
) -> None:
    path = reachable / "home" / "memory.db"
    writer = sqlite(path)
    writer.save([fact("f1", "lever")])
    embed(writer, "f1", unit(1, 0, 0, 0))
    writer.info()  # imports what the interpreter may keep out of reach for other users
    writer.close()
    _give_away(path)
    path.chmod(file_mode)
    path.parent.chmod(folder_mode)
    with no_rights():
        if not os.access(Path(_vector_functions()).parent, os.X_OK, effective_ids=True):
            pytest.skip("sqlite-vec is installed out of reach for other users")
        store = sqlite(path)
        assert (found(store, "lever"), near(store, unit(1, 0, 0, 0))) == (["f1"], ["f1"])
        assert any("read-only" in warning for warning in store.info().warnings)
        with pytest.raises(StoreReadOnly, match="reading works"):
            store.save([fact("f2", "knob")])
        with pytest.raises(StoreReadOnly):
            store.secret("new")
        store.close()
        assert [each.name for each in path.parent.iterdir()] == ["memory.db"]


@POSIX
def test_case_33_changes_that_cannot_be_read_are_not_passed_over(sqlite: Open, reachable: Path) -> None:
    path = reachable / "home" / "memory.db"
    writer = sqlite(path)
    writer.save([fact("f1", "lever")])
    log = Path(f"{path}-wal")
    kept = log.read_bytes()
    writer.close()
    log.write_bytes(kept)
    _give_away(path)
    log.chmod(0o444)
    path.chmod(0o444)
    path.parent.chmod(0o555)
    with no_rights(), pytest.raises(StoreReadOnly, match="-wal holds changes"):
        sqlite(path)


@POSIX
def test_case_33_a_store_cannot_be_made_in_a_read_only_folder(sqlite: Open, reachable: Path) -> None:
    reachable.chmod(0o555)
    with no_rights():
        if os.access(reachable, os.W_OK, effective_ids=True):
            pytest.skip("this user may write anywhere")
        with pytest.raises(StoreReadOnly):
            sqlite(reachable / "home" / "memory.db")


def test_the_header_carries_our_mark(sqlite: Open) -> None:
    header = filled(sqlite).read_bytes()[:100]
    assert int.from_bytes(header[68:72]) == APPLICATION_ID == int.from_bytes(b"GrMc")
    assert int.from_bytes(header[60:64]) == shipped()[-1].number
    assert SPACE.dimensions == 4
