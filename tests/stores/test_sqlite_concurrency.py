"""Many processes on one file: nothing is lost, nobody waits for ever, a dead process leaves nothing behind."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from storing import EVERYTHING, Worker, fact, found

from grounded_mcp.errors import NotFound, StoreBusy, StoreMoved
from grounded_mcp.stores.options import StoreOptions
from grounded_mcp.stores.sqlite_lease import birth

Open = Callable[..., Any]
Start = Callable[[], Worker]
HASTY = StoreOptions(busy_timeout_ms=100, max_batch_wait_ms=300)


def test_t10_case_22_eight_writers_and_two_readers_lose_nothing(worker: Start, sqlite: Open, path: Path) -> None:
    workers = [worker() for _ in range(10)]
    for each in workers:
        each.tell("open", path=str(path))
    assert [each.hear() for each in workers] == ["open"] * 10
    for number, each in enumerate(workers[:8]):
        each.tell("save", name=f"w{number}", count=50)
    for each in workers[8:]:
        each.tell("read", count=200)
    answers = [each.hear() for each in workers]
    assert answers[8:] == [200, 200]
    assert [answer["saved"] for answer in answers[:8]] == [50] * 8
    assert max(answer["slowest"] for answer in answers[:8]) < 5.0
    store = sqlite()
    assert store.info().items == {"fact": 400}
    assert sorted(found(store, "note", k=500)) == sorted(f"w{w}-{n}" for w in range(8) for n in range(50))
    assert store.check() == ()


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="processes cannot be stopped here")
def test_case_23_a_stopped_writer_blocks_no_reader_and_a_write_says_it_was_not_stored(
    worker: Start, sqlite: Open, path: Path
) -> None:
    store = sqlite(options=HASTY)
    store.save([fact("f1", "lever")])
    stopped = worker()
    pid = stopped.ask("hold_write_lock", path=str(path))
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(StoreBusy, match="nothing was stored"):
            store.save([fact("f2", "knob")])
        assert found(store, "lever") == ["f1"]
    finally:
        os.kill(pid, signal.SIGCONT)
    stopped.kill()
    store.save([fact("f2", "knob")])
    assert found(store, "knob") == ["f2"]


def test_case_23_a_write_gives_up_within_fifteen_seconds() -> None:
    assert StoreOptions().max_batch_wait_ms < 15_000


def test_case_29_a_killed_writer_loses_nothing_that_it_acknowledged(worker: Start, sqlite: Open, path: Path) -> None:
    source = random.Random(29)
    for turn in range(4):
        writers = [worker(), worker()]
        for number, each in enumerate(writers):
            each.tell("churn", path=str(path), name=f"t{turn}w{number}")
        acknowledged = [each.hear() for _ in range(source.randint(3, 40)) for each in writers]
        for each in writers:
            each.process.send_signal(signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
        for each in writers:
            acknowledged += iter(each.hear, None)
        store = sqlite()
        last = {item_id: (what, text) for what, item_id, text in acknowledged}
        for number in range(2):  # the very last write of each may have happened without its acknowledgement
            mine = [item_id for item_id in last if item_id.startswith(f"t{turn}w{number}-")]
            last.pop(max(mine, key=lambda item_id: int(item_id.rpartition("-")[2])))
        for item_id, (what, text) in last.items():
            if what == "saved":
                assert store.item(item_id)[0].body == text
            else:
                with pytest.raises(NotFound):
                    store.item(item_id)
        assert store.check() == ()
        store.close()


# --- leases between processes -----------------------------------------------------------------------------


def test_case_26_a_lease_of_another_process_is_respected_and_a_dead_one_is_taken_over(
    worker: Start, sqlite: Open, path: Path
) -> None:
    store, other = sqlite(), worker()
    assert other.ask("hold_lease", path=str(path), name="sync", seconds=3600) is True
    with store.lease("sync", 60) as mine:
        assert not mine
    other.kill()
    with store.lease("sync", 60) as mine:
        assert mine


def test_a_lease_whose_process_id_was_given_to_another_process_is_taken_over(sqlite: Open) -> None:
    store = sqlite()
    with store.lease("sync", 3600):
        store._database.write(lambda db: db.execute("UPDATE lease SET born = 'earlier', holder = 'someone'"))
        with sqlite().lease("sync", 60) as other:
            assert other


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="processes cannot be watched here")
def test_a_process_that_ended_holds_nothing_even_before_its_parent_has_noticed(worker: Start) -> None:
    process = worker().process
    assert birth(process.pid)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert birth(process.pid) == ""


def test_a_lease_of_another_host_waits_for_its_time(sqlite: Open) -> None:
    store = sqlite()
    with store.lease("sync", 3600):
        store._database.write(lambda db: db.execute("UPDATE lease SET host = 'elsewhere', pid = 1, born = 'x'"))
        with sqlite().lease("sync", 60) as other:
            assert not other


# --- the file goes away (case 37) -------------------------------------------------------------------------

GONE: dict[str, Callable[[Path], object]] = {
    "deleted": lambda path: path.unlink(),
    "moved": lambda path: path.rename(path.with_name("elsewhere.db")),
    "replaced": lambda path: path.with_name("other").write_bytes(b"x") and path.with_name("other").replace(path),
    "folder moved": lambda path: path.parent.rename(path.parent.with_name("away")),
}


@pytest.mark.parametrize("what", GONE)
def test_case_37_a_store_whose_file_is_gone_acknowledges_and_answers_nothing(
    sqlite: Open, path: Path, what: str
) -> None:
    store = sqlite()
    store.save([fact("f1", "lever")])
    GONE[what](path)
    with pytest.raises(StoreMoved):
        store.save([fact("f2", "knob")])
    with pytest.raises(StoreMoved):
        store.lexical(["lever"], EVERYTHING, 5)
    assert path.exists() == (what == "replaced")


def test_case_37_a_file_that_goes_during_a_write_is_noticed_before_it_is_acknowledged(sqlite: Open, path: Path) -> None:
    def clock() -> float:  # asked inside the write's transaction
        path.unlink()
        return 1.0

    store = sqlite(clock=clock)
    with pytest.raises(StoreMoved):
        store.save([fact("f1", "lever")])


def test_a_store_that_is_put_back_works_again(sqlite: Open, path: Path) -> None:
    store = sqlite()
    store.save([fact("f1", "lever")])
    path.rename(path.with_name("aside"))
    with pytest.raises(StoreMoved):
        store.scopes()
    path.with_name("aside").rename(path)
    assert found(store, "lever") == ["f1"]
