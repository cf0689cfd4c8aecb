"""Recalled and opened documents whose file is no longer as it was indexed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from grounded_mcp.pack.disk import GLANCE_BYTES
from tests.asking import Asker, asker
from tests.conftest import Command

QUERY = "granite berth"


@pytest.fixture
def ask(tmp_path: Path, project: Path) -> Iterator[Asker]:
    with asker(tmp_path / "home", project) as ask:
        yield ask


def written(project: Path, text: str, name: str = "berths.md") -> Path:
    path = project / name
    path.write_text(text, encoding="utf-8")
    return path


def said(ask: Asker) -> str | None:
    """What a recall says of the file of its first card, which is also what the page behind it says."""
    found, text = ask.both("ground_recall", query=QUERY)
    card = found["data"][0]
    page, opened = ask.both("open_memory", id=card["id"])
    disk: str | None = card.get("on_disk")
    assert page.get("on_disk") == disk
    assert (f"on disk {disk}" in text, f"on_disk {disk}" in opened) == (disk is not None, disk is not None)
    return disk


def test_a_card_and_its_page_say_that_a_file_changed_or_went_until_the_next_sync(ask: Asker, project: Path) -> None:
    path = written(project, "# Berths\n\nThe granite berth is number 7.\n")
    ask.memory.sync_documents()
    assert said(ask) is None
    os.utime(path, ns=(1, 1))  # touched, and still the same
    assert said(ask) is None
    written(project, "# Berths\n\nThe granite berth is number 8.\n")
    assert said(ask) == "changed"
    ask.memory.sync_documents()
    assert said(ask) is None
    path.unlink()
    assert said(ask) == "missing"


def test_a_large_file_is_not_read_beside_a_recall(ask: Asker, project: Path) -> None:
    text = "# Berths\n\nThe granite berth is number 7.\n\n" + "Ferries moor at the quay.\n" * (GLANCE_BYTES // 20)
    path = written(project, text)
    ask.memory.sync_documents()
    os.utime(path, ns=(1, 1))
    assert said(ask) is None  # not known
    written(project, text + "One more line.\n")
    assert said(ask) == "changed"


def test_nothing_is_said_of_the_files_of_other_projects(ask: Asker, project: Path, tmp_path: Path) -> None:
    path = written(project, "# Berths\n\nThe granite berth is number 7.\n")
    ask.memory.sync_documents()
    path.unlink()
    (tmp_path / "other").mkdir()
    with asker(tmp_path / "home", tmp_path / "other") as elsewhere:
        (card,) = elsewhere("ground_recall", query=QUERY, project="*")["data"]
        assert card["path"] == "berths.md"
        assert "on_disk" not in card
        assert "on_disk" not in elsewhere("open_memory", id=card["id"])


def test_the_command_line_says_so_too(command: Command, project: Path) -> None:
    path = written(project, "# Berths\n\nThe granite berth is number 7.\n")
    assert command("sync", ".").returncode == 0
    path.unlink()
    assert "on disk missing" in command("recall", QUERY).stdout
    (card,) = command.json("recall", QUERY)["data"]
    assert card["on_disk"] == "missing"
    assert "missing" in command("open", card["id"]).stdout
