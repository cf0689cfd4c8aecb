"""Hooks over a store on a server: told as over a file, never in the way, and nothing is made. Real processes."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import postgres_server
import psycopg
import pytest

from grounded_mcp.faces.hooks import events, files
from grounded_mcp.stores import postgres_light, postgres_schema
from tests.conftest import Command
from tests.test_hooks import BRIEFED, BROUGHT, HEAVY, LOADED, Agent

pytestmark = postgres_server.NEEDED


@pytest.fixture
def schema() -> Iterator[str]:
    with postgres_server.schema() as name:
        yield name


@pytest.fixture
def empty(tmp_path: Path, project: Path, schema: str) -> Agent:
    """With a data directory, and nothing on the server."""
    (tmp_path / "home").mkdir()
    env = {"GROUNDED_STORE": postgres_server.url(), "GROUNDED_STORE__POSTGRES__SCHEMA": schema}
    return Agent(tmp_path / "home", project, env)


@pytest.fixture
def agent(empty: Agent) -> Agent:
    fill(empty)
    return empty


def fill(agent: Agent) -> None:
    memory = agent.memory()
    memory.remember("Never deploy on a Friday.", pinned=True)
    memory.remember("KB-41 was caused by the tide table in src/tide/table.py.")
    memory.close()


def schemas() -> set[str]:
    with psycopg.connect(postgres_server.url()) as db:
        return {name for (name,) in db.execute("SELECT nspname FROM pg_namespace")}


def test_f5_g3_hooks_and_the_brief_tell_the_same_of_a_store_on_a_server(agent: Agent, tmp_path: Path) -> None:
    on_file = replace(agent, home=tmp_path / "other", env={})
    fill(on_file)
    for event, sent, holds in (
        ("SessionStart", {"source": "startup", "session_id": "a"}, BRIEFED),
        ("UserPromptSubmit", {"prompt": "KB-41?", "session_id": "b"}, BROUGHT),
        ("UserPromptSubmit", {"prompt": "KB-41 again", "session_id": "b"}, ""),
    ):
        told = agent.told(event, **sent)
        assert holds in told
        assert bool(told) is bool(holds)
        assert len(told) == len(on_file.told(event, **sent))  # ids differ in nothing but their letters
    command = Command(agent.home, agent.project, agent.env)
    assert BRIEFED in command("brief").stdout
    assert BROUGHT in command("brief", "--message", "KB-41?").stdout


def test_a_hook_that_asks_a_server_imports_its_driver_and_nothing_heavy(agent: Agent) -> None:
    for _ in range(2):  # the first one of a project, and the next
        done = subprocess.run(
            [sys.executable, "-c", LOADED, str(agent.home)],
            cwd=agent.project,
            env=agent.environment(),
            capture_output=True,
            check=True,
        )
        told, loaded = json.loads(done.stdout)
        assert told[0] > 0
        assert "psycopg" in loaded
        assert {name.split(".")[0] for name in loaded} & HEAVY == set()
        for path in (agent.home / "hooks" / "sessions", agent.home / "hooks" / "fired"):
            for each in path.iterdir():
                each.unlink()


def test_a_message_that_names_nothing_asks_no_server(agent: Agent) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.01)
        url = f"postgresql://127.0.0.1:{listener.getsockname()[1]}/x"
        sent = json.dumps({"session_id": "s", "cwd": str(agent.project), "prompt": "go on"}).encode()
        assert agent.run("UserPromptSubmit", "claude-code", sent, GROUNDED_STORE=url) == ""
        with pytest.raises(TimeoutError):
            listener.accept()


def test_t8_a_server_that_gives_no_answer_is_waited_for_once_and_not_at_every_message(empty: Agent) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.01)
        url = f"postgresql://127.0.0.1:{listener.getsockname()[1]}/x"
        started = time.monotonic()
        for number, asked in ((1, True), (2, False)):
            sent = json.dumps({"session_id": "s", "cwd": str(empty.project), "prompt": f"KB-{number}?"}).encode()
            assert empty.run("UserPromptSubmit", "claude-code", sent, GROUNDED_STORE=url) == ""
            if asked:
                listener.accept()[0].close()
            else:
                with pytest.raises(TimeoutError):
                    listener.accept()
        assert time.monotonic() - started < 2


def test_after_a_while_a_server_is_asked_again(agent: Agent) -> None:
    assert files.write(str(agent.home), "asked", value=time.time() - 5)
    assert agent.told("SessionStart", source="startup", session_id="a") == ""
    assert files.write(str(agent.home), "asked", value=time.time() - events.AWAY_S - 1)
    assert BRIEFED in agent.told("SessionStart", source="startup", session_id="b")
    assert files.read(str(agent.home), "asked") is None


def test_t8_a_closed_port_is_exit_0_and_silence_and_the_command_says_what_to_do(empty: Agent) -> None:
    away = replace(empty, env={"GROUNDED_STORE": "postgresql://me:hunter2@127.0.0.1:9/x"})
    done = hook(away)
    assert done.stdout == b"{}"
    assert b"grounded-mcp hook: StoreUnreachable" in done.stderr
    told = Command(away.home, away.project, away.env)("brief")
    assert told.returncode == 1
    assert "cannot be reached" in told.stderr
    assert "hunter2" not in told.stderr + done.stderr.decode()


def test_a_hook_makes_no_store_on_a_server_and_says_nothing(empty: Agent, schema: str) -> None:
    done = hook(empty)
    assert (done.returncode, done.stdout) == (0, b"{}")
    assert b"There is no store" in done.stderr
    assert schema not in schemas()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("UPDATE meta SET value = '99' WHERE name = 'schema'", b"schema 99"),
        ("UPDATE meta SET value = '4' WHERE name = 'schema'", b"an older version"),
        ("UPDATE meta SET value = 'other' WHERE name = 'application'", b"something else"),
        ("DROP TABLE conflict CASCADE", b"Postgres refused"),
    ],
)
def test_case_28_a_store_of_another_version_or_program_is_silence(
    agent: Agent, schema: str, change: str, told: bytes
) -> None:
    with psycopg.connect(postgres_server.url(), autocommit=True) as db:
        db.execute(f'SET search_path = "{schema}"')
        db.execute(change)
    done = hook(agent)
    assert (done.returncode, done.stdout) == (0, b"{}")
    assert told in done.stderr


def test_case_59_a_stores_password_is_in_no_file_of_a_hook(agent: Agent) -> None:
    url = postgres_server.url()
    given = url + ("&" if "?" in url else "?") + "password=hunter2hunter2"
    env = {**agent.env, "GROUNDED_STORE": given, "GROUNDED_SERVER__TOKEN": "swordfish" * 4}
    spelled = replace(agent, env=env)
    assert BRIEFED in spelled.told("SessionStart", source="startup")
    held = b"".join(path.read_bytes() for path in agent.home.rglob("*") if path.is_file())
    assert agent.project.name.encode() in held  # the project was noted
    for secret in (b"hunter2", b"swordfish"):
        assert secret not in held


def test_the_end_of_a_turn_is_queued_without_asking_the_server(empty: Agent) -> None:
    away = replace(empty, env={"GROUNDED_STORE": "postgresql://127.0.0.1:9/x"})
    away.says("Stop", transcript_path="/t.jsonl")
    (name,) = files.names(str(away.home), "queue")
    assert files.read(str(away.home), "queue", name)["path"] == "/t.jsonl"


def test_a_hook_knows_a_store_by_the_marks_that_the_store_gives_itself() -> None:
    assert postgres_light.APPLICATION == postgres_schema.APPLICATION
    assert postgres_light.newest() == postgres_schema.shipped()[-1].number


def hook(agent: Agent) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "grounded_mcp", "hook", "SessionStart", "--client", "gemini", "--home", str(agent.home)],
        env=agent.environment(),
        cwd=agent.project,
        input=b"{}",
        capture_output=True,
        check=True,
    )
