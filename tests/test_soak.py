"""A server that is used for long holds no more than at first (case 45). Shortened: every test run can afford it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import serving

RECALLS, WRITES = 600, 120
GROWTH_KB = 10 * 1024
"""A sixteenth of the case's recalls and writes, and a fifth of its growth."""


def held(pid: int) -> tuple[int, int, int]:
    """Resident memory in kB, open files and threads of a process."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    fields = {name: value.split()[0] for name, _, value in (line.partition(":") for line in lines) if value.split()}
    return int(fields["VmRSS"]), len(os.listdir(f"/proc/{pid}/fd")), int(fields["Threads"])  # noqa: PTH208


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_case_45_six_hundred_recalls_and_a_hundred_writes_leave_memory_files_and_threads_as_they_were(
    tmp_path: Path,
) -> None:
    with serving.stdio(tmp_path) as process:
        pid = process.process.pid

        def use(start: int, recalls: int) -> None:
            for number in range(start, start + recalls):
                if number % (RECALLS // WRITES) == 0:
                    stored = process.call("remember_fact", text=f"Quay {number} is dredged to {number} cm in May.")
                    assert not stored.get("isError")
                found = process.call("ground_recall", query=f"quay {number} dredged", limit=20)
                assert found["structuredContent"]["data"]

        use(0, 100)
        memory, files, threads = held(pid)
        use(100, RECALLS)
        later = held(pid)
        assert later[0] - memory < GROWTH_KB
        assert later[1] <= files + 2
        assert later[2] <= threads + 2
        assert Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split() == []
