"""What a person sees while a sync works: counts on a terminal, of any width, and nothing anywhere else."""

from __future__ import annotations

import os
import re
import struct
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Command

if os.name == "nt":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)

import fcntl
import pty
import termios


def on_terminal(command: Command, columns: int, *args: str) -> str:
    """All that a command writes to a terminal that says it is so wide; 0 says nothing."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24 if columns else 0, columns, 0, 0))
    env = command.environment(GROUNDED_EMBEDDING__PROVIDER="fastembed", GROUNDED_EMBEDDING__BATCH_SIZE="16")
    said = b""
    with subprocess.Popen(command.argv(*args), cwd=command.cwd, env=env, stdin=theirs, stdout=theirs, stderr=theirs):
        os.close(theirs)
        try:
            while read := os.read(ours, 65_536):
                said += read
        except OSError:  # how Linux ends a terminal whose other side is closed
            pass
        finally:
            os.close(ours)
    return said.decode()


def filled(project: Path) -> None:
    for n in range(20):
        (project / f"note{n}.md").write_text(
            f"# Lever {n}\n\n" + f"The green lever {n} opens the lock at high tide. " * 20, encoding="utf-8"
        )


@pytest.mark.parametrize("columns", [0, 80])
def test_a_sync_on_a_terminal_counts_files_and_passages_also_where_no_width_is_told(
    command: Command, project: Path, columns: int
) -> None:
    filled(project)
    said = on_terminal(command, columns, "sync", "--documents")
    assert re.search(r"\r[^\r\n]*0 files", said)
    assert re.search(r"\r[^\r\n]* [1-9][0-9]*/40 [^\r\n]*passages/s", said)
    assert "20 added" in said
    assert "files" not in said.rpartition("\r")[2], "the bar is gone when the work is done"
    for line in re.split(r"[\r\n]+", said.partition("paths seen")[0]):
        assert len(line) <= 80


def test_a_sync_into_a_pipe_shows_no_bar(command: Command, project: Path) -> None:
    filled(project)
    done = command("sync", "--documents", env={"GROUNDED_EMBEDDING__PROVIDER": "hashing"})
    assert done.returncode == 0
    assert done.stderr == ""
    assert "\r" not in done.stdout
