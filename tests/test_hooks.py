"""Hooks as their clients run them: a process, an event on stdin, an answer in the client's own words, always exit 0."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client, StdioServerParameters

from grounded_mcp.assemble import open_memory
from grounded_mcp.clients.program import HOOK_TOOL
from grounded_mcp.config import load
from grounded_mcp.faces.hooks import files
from grounded_mcp.faces.hooks.dialects import DIALECTS
from grounded_mcp.faces.hooks.importing import drain, drain_in_background
from grounded_mcp.faces.hooks.program import respond
from grounded_mcp.measure import estimate_tokens
from grounded_mcp.memory import Memory
from grounded_mcp.settings import settings as stages
from tests.conftest import REPOSITORY, Command
from tests.talking import Talk

Json = dict[str, Any]
HEAVY = {"mcp", "mcp_types", "pydantic", "numpy", "fastembed", "onnxruntime", "anyio", "starlette", "uvicorn"}


@dataclass(frozen=True)
class Agent:
    """A client that runs hooks, in a project of its own."""

    home: Path
    project: Path
    env: Mapping[str, str] = field(default_factory=dict)

    def environment(self, **more: str) -> dict[str, str]:
        dropped = ("GROUNDED_", "CLAUDE_", "CURSOR_", "GEMINI_", "PYTHON")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        return {**kept, "PYTHONPATH": str(REPOSITORY), **self.env, **more}

    def run(self, event: str, client: str, sent: bytes, cwd: Path | None = None, **env: str) -> str:
        """What the hook writes; it has to succeed, and to write nothing on stderr."""
        done = subprocess.run(
            [sys.executable, "-m", "grounded_mcp", "hook", event, "--client", client, "--home", str(self.home)],
            cwd=cwd or self.project,
            env=self.environment(**env),
            input=sent,
            capture_output=True,
            timeout=30,
            check=True,
        )
        assert done.stderr == b""
        return done.stdout.decode()

    def says(self, event: str, client: str = "claude-code", cwd: Path | None = None, **sent: object) -> str:
        payload = {"session_id": "s-1", "cwd": str(cwd or self.project), "hook_event_name": event, **sent}
        return self.run(event, client, json.dumps(payload).encode(), cwd)

    def told(self, event: str, **sent: Any) -> str:
        """The context in Claude Code's answer."""
        answer = self.says(event, **sent)
        return str(json.loads(answer)["hookSpecificOutput"]["additionalContext"]) if answer else ""

    def memory(self, folder: Path | None = None) -> Memory:
        env = {**self.environment(), "GROUNDED_HOME": str(self.home), "GROUNDED_EMBEDDING__PROVIDER": "none"}
        env |= {"HOME": str(self.home.parent), "USERPROFILE": str(self.home.parent)}
        values = load(folder=folder or self.project, env=env)
        return open_memory(stages(values), cwd=values.project_dir)


@pytest.fixture
def agent(tmp_path: Path, project: Path) -> Agent:
    """With a store that holds one pinned fact, and one about a ticket."""
    made = Agent(tmp_path / "home", project)
    memory = made.memory()
    memory.remember("Never deploy on a Friday.", pinned=True)
    memory.remember("KB-41 was caused by the tide table in src/tide/table.py.")
    memory.close()
    return made


# --- every client in its own words ------------------------------------------------------------------------

START = {"source": "startup", "transcript_path": "/t.jsonl"}
BRIEFED, BROUGHT = "Never deploy on a Friday.", "KB-41 was caused by the tide table"


def nested(event: str) -> Callable[[str], Json]:
    return lambda text: {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


ANSWERS: tuple[tuple[str, str, Json, str, Callable[[str], Json]], ...] = (
    ("claude-code", "SessionStart", START, BRIEFED, nested("SessionStart")),
    ("claude-code", "UserPromptSubmit", {"prompt": "KB-41?", "source": "user"}, BROUGHT, nested("UserPromptSubmit")),
    ("codex", "SessionStart", {**START, "model": "m", "turn_id": "t"}, BRIEFED, nested("SessionStart")),
    ("codex", "UserPromptSubmit", {"prompt": "KB-41?", "turn_id": "t"}, BROUGHT, nested("UserPromptSubmit")),
    ("gemini", "SessionStart", {**START, "timestamp": "2026-11-29T10:00:00Z"}, BRIEFED, nested("SessionStart")),
    ("gemini", "BeforeAgent", {"prompt": "KB-41?"}, BROUGHT, nested("BeforeAgent")),
    ("qwen", "SessionStart", START, BRIEFED, nested("SessionStart")),
    ("qwen", "UserPromptSubmit", {"prompt": "KB-41?"}, BROUGHT, nested("UserPromptSubmit")),
    ("copilot", "sessionStart", {"source": "new", "initialPrompt": "hi"}, BRIEFED, lambda t: {"additionalContext": t}),
    ("copilot", "userPromptSubmitted", {"prompt": "KB-41?"}, BROUGHT, lambda text: {"additionalContext": text}),
    ("cursor", "sessionStart", {}, BRIEFED, lambda text: {"additional_context": text}),
    (
        "cursor",
        "beforeSubmitPrompt",
        {"prompt": "KB-41?", "attachments": []},
        BROUGHT,
        lambda text: {"continue": True, "additional_context": text},
    ),
    ("vscode", "SessionStart", {"source": "new"}, BRIEFED, nested("SessionStart")),
)
SPELLED: Mapping[str, Callable[[Path], Json]] = {
    "copilot": lambda cwd: {"sessionId": "s-1", "timestamp": 1_796_000_000_000, "cwd": str(cwd)},
    "cursor": lambda cwd: {"conversation_id": "s-1", "workspace_roots": [str(cwd)], "cursor_version": "3.12"},
    "vscode": lambda cwd: {"sessionId": "s-1", "cwd": str(cwd)},
}
NAMED = {"cursor": "hook_event_name", "vscode": "hookEventName"}


def payload(client: str, event: str, sent: Mapping[str, object], cwd: Path) -> bytes:
    base = SPELLED[client](cwd) if client in SPELLED else {"session_id": "s-1", "cwd": str(cwd)}
    named = {} if client == "copilot" else {NAMED.get(client, "hook_event_name"): event}
    return json.dumps({**base, **named, **sent}).encode()


@pytest.mark.parametrize(
    ("client", "event", "sent", "holds", "shape"), ANSWERS, ids=[f"{each[0]}-{each[1]}" for each in ANSWERS]
)
def test_f5_every_client_is_told_in_its_own_words_and_no_other_key(
    agent: Agent, client: str, event: str, sent: Json, holds: str, shape: Callable[[str], Json]
) -> None:
    answer = json.loads(agent.run(event, client, payload(client, event, sent, agent.project), cwd=agent.home.parent))
    text = answer.get("additionalContext") or answer.get("additional_context")
    text = text or answer["hookSpecificOutput"]["additionalContext"]
    assert holds in text
    assert answer == shape(text)
    assert len(text) <= 9_500
    assert estimate_tokens(text) <= 2_500


@pytest.mark.parametrize(
    ("client", "event", "silence"),
    [
        ("claude-code", "UserPromptSubmit", ""),
        ("codex", "UserPromptSubmit", ""),
        ("gemini", "BeforeAgent", "{}"),
        ("qwen", "UserPromptSubmit", ""),
        ("copilot", "userPromptSubmitted", ""),
        ("cursor", "beforeSubmitPrompt", '{"continue":true}'),
    ],
)
def test_a_message_that_names_nothing_known_gets_the_clients_silence(
    agent: Agent, client: str, event: str, silence: str
) -> None:
    sent = payload(client, event, {"prompt": "Why is the deployment on Friday slow?"}, agent.project)
    assert agent.run(event, client, sent) == silence


def test_vs_code_takes_no_context_with_a_message(agent: Agent) -> None:
    assert agent.run("UserPromptSubmit", "vscode", payload("vscode", "x", {"prompt": "KB-41"}, agent.project)) == ""


@pytest.mark.parametrize("host", ["cursor", "vscode"])
def test_a_hook_that_was_connected_for_claude_code_answers_the_client_that_runs_it(agent: Agent, host: str) -> None:
    sent = payload(host, "SessionStart", {"source": "new"}, agent.project)
    answer = json.loads(agent.run("SessionStart", "claude-code", sent))
    assert BRIEFED in answer["hookSpecificOutput"]["additionalContext"]
    assert ("additional_context" in answer) == (host == "cursor")


def test_an_event_that_fires_twice_is_answered_once(agent: Agent) -> None:
    first = agent.run("SessionStart", "claude-code", payload("cursor", "SessionStart", {}, agent.project))
    assert BRIEFED in first
    assert agent.run("sessionStart", "cursor", payload("cursor", "sessionStart", {}, agent.project)) == ""
    assert BROUGHT in agent.told("UserPromptSubmit", prompt="KB-41?", session_id="s-2")
    assert agent.says("UserPromptSubmit", prompt="KB-41?", session_id="s-2") == ""


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "Notification", "NoSuchEvent", ""])
def test_an_event_that_is_none_of_ours_gets_nothing(agent: Agent, event: str) -> None:
    assert agent.run(event, "claude-code", b"{}") == ""


# --- what a session has in view ---------------------------------------------------------------------------


def test_a_memory_is_brought_once_a_session(agent: Agent) -> None:
    assert BROUGHT in agent.told("UserPromptSubmit", prompt="what is KB-41?")
    assert agent.says("UserPromptSubmit", prompt="and KB-41 again") == ""
    assert BROUGHT in agent.told("UserPromptSubmit", prompt="what is KB-41?", session_id="s-2")


def test_what_the_brief_showed_is_not_brought_again(agent: Agent) -> None:
    assert BROUGHT in agent.told("SessionStart", source="startup")
    assert agent.says("UserPromptSubmit", prompt="what is KB-41?") == ""


def test_after_a_compaction_the_brief_comes_again(agent: Agent) -> None:
    assert BRIEFED in agent.told("SessionStart", source="startup")
    assert agent.says("PreCompact", trigger="auto") == ""
    assert BRIEFED in agent.told("SessionStart", source="compact")


def test_after_a_compaction_that_is_not_told_of_again_it_comes_with_the_next_message(agent: Agent) -> None:
    agent.run("sessionStart", "copilot", payload("copilot", "", {}, agent.project))
    agent.run("preCompact", "copilot", payload("copilot", "", {}, agent.project))
    sent = payload("copilot", "", {"prompt": "go on with KB-41"}, agent.project)
    told = json.loads(agent.run("userPromptSubmitted", "copilot", sent))["additionalContext"]
    assert BRIEFED in told
    assert told.count(BROUGHT) == 1
    sent = payload("copilot", "", {"prompt": "and on"}, agent.project)
    assert agent.run("userPromptSubmitted", "copilot", sent) == ""


def test_a_compaction_that_gemini_announces_before_every_message_is_none(agent: Agent) -> None:
    def asked(prompt: str) -> str:
        return agent.run("BeforeAgent", "gemini", payload("gemini", "BeforeAgent", {"prompt": prompt}, agent.project))

    agent.run("SessionStart", "gemini", payload("gemini", "SessionStart", START, agent.project))
    for trigger, told in (("auto", False), ("manual", True)):
        sent = payload("gemini", "PreCompress", {"trigger": trigger}, agent.project)
        assert agent.run("PreCompress", "gemini", sent) == "{}"
        assert (BRIEFED in asked(f"go on, {trigger}")) == told


def test_a_session_that_is_taken_up_again_keeps_its_brief(agent: Agent) -> None:
    assert BRIEFED in agent.told("SessionStart", source="resume")
    held = agent.home / "hooks" / "fired"
    shutil.rmtree(held)  # as if it were later
    assert agent.says("SessionStart", source="resume") == ""


# --- transcripts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", ["Stop", "SessionEnd"])
def test_the_end_of_a_turn_queues_the_transcript_and_a_later_process_imports_it(
    agent: Agent, tmp_path: Path, event: str
) -> None:
    talk = Talk(str(agent.project)).ask("Why does the ferry skip Sundays?").say("SKIPPED held it by mistake.")
    path = talk.write(tmp_path / "elsewhere")
    assert agent.says(event, transcript_path=str(path)) == ""
    assert agent.says(event, transcript_path=str(path)) == ""
    assert len(list(files.names(str(agent.home), "queue"))) == 1
    memory = agent.memory()
    assert drain(memory, str(agent.home)) == 1
    found = memory.recall("ferry Sundays").candidates[0].found
    assert found is not None
    assert found.item.kind == "session"
    assert drain(memory, str(agent.home)) == 0
    memory.close()


def test_a_server_that_runs_on_imports_what_is_queued_later_once_it_is_quiet(agent: Agent, tmp_path: Path) -> None:
    memory = agent.memory()
    drain_in_background(memory, str(agent.home), quiet_s=0.05)
    talk = Talk(str(agent.project)).ask("Why does the ferry skip Sundays?").say("SKIPPED held it by mistake.")
    agent.says("Stop", transcript_path=str(talk.write(tmp_path / "elsewhere")))
    until = time.monotonic() + 20
    while list(files.names(str(agent.home), "queue")) and time.monotonic() < until:
        time.sleep(0.02)
    found = memory.recall("ferry Sundays").candidates[0].found
    assert found is not None
    assert found.item.kind == "session"
    memory.close()


def test_a_session_that_goes_on_waits_in_the_queue_of_a_server_that_runs(agent: Agent, tmp_path: Path) -> None:
    talk = Talk(str(agent.project)).ask("Why does the ferry skip Sundays?").say("SKIPPED held it by mistake.")
    agent.says("Stop", transcript_path=str(talk.write(tmp_path / "elsewhere")))
    memory = agent.memory()
    assert drain(memory, str(agent.home), before=time.time() - 60) == 0
    assert len(list(files.names(str(agent.home), "queue"))) == 1
    assert drain(memory, str(agent.home), before=time.time() + 1) == 1
    memory.close()


def test_a_sync_imports_what_is_queued(agent: Agent, tmp_path: Path) -> None:
    talk = Talk(str(agent.project)).ask("Why does the ferry skip Sundays?").say("SKIPPED held it by mistake.")
    agent.says("Stop", transcript_path=str(talk.write(tmp_path / "elsewhere")))
    command = Command(agent.home, agent.project)
    command.json("sync", "--sessions", "--no-vectors")
    (card,) = command.json("recall", "ferry Sundays", "--source", "session")["data"]
    assert "ferry" in card["text"]
    assert list(files.names(str(agent.home), "queue")) == []


@pytest.mark.parametrize(
    "entry", [None, [], {}, {"agent": "nobody", "path": "/x"}, {"agent": "codex", "path": "/nowhere/x.jsonl"}]
)
def test_what_cannot_be_imported_leaves_the_queue(agent: Agent, entry: object) -> None:
    files.write(str(agent.home), "queue", "x", value=entry)
    memory = agent.memory()
    drain(memory, str(agent.home))
    memory.close()
    assert list(files.names(str(agent.home), "queue")) == []


def test_what_another_client_calls_a_transcript_and_what_is_no_path_is_not_queued(agent: Agent) -> None:
    agent.says("Stop", transcript_path="relative.jsonl")
    agent.says("Stop", transcript_path=7)
    agent.run("Stop", "vscode", payload("vscode", "Stop", {"transcript_path": "/x.jsonl"}, agent.project))
    assert list(files.names(str(agent.home), "queue")) == []


# --- never in the way -------------------------------------------------------------------------------------


def test_t43_hooks_stay_silent_and_do_not_make_a_deleted_data_directory_again(agent: Agent) -> None:
    assert agent.says("SessionStart", source="startup")
    shutil.rmtree(agent.home)
    for event in ("SessionStart", "UserPromptSubmit", "PreCompact", "Stop", "SessionEnd"):
        assert agent.says(event, prompt="KB-41", transcript_path="/t.jsonl", session_id="s-9") == ""
    assert not agent.home.exists()


def test_a_hook_makes_no_store_in_a_data_directory_without_one(agent: Agent) -> None:
    shutil.rmtree(agent.home)
    agent.home.mkdir()
    assert agent.says("SessionStart", source="startup") == ""
    assert list(agent.home.iterdir()) == []


def test_t8_a_store_behind_a_listener_that_never_answers_costs_less_than_a_second(agent: Agent) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        started = time.monotonic()
        url = f"postgresql://127.0.0.1:{port}/x"
        assert agent.run("SessionStart", "claude-code", b"{}", GROUNDED_STORE=url) == ""
        assert time.monotonic() - started < 1


def test_a_client_that_never_ends_its_message_gets_exit_0_in_time(agent: Agent) -> None:
    command = [sys.executable, "-m", "grounded_mcp", "hook", "SessionStart", "--client", "codex"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=agent.environment(), cwd=agent.project
    ) as hook:
        started = time.monotonic()
        assert hook.wait(10) == 0
        assert time.monotonic() - started < 4
        assert hook.stdout
        assert hook.stdout.read() == b""


def test_a_store_that_is_locked_damaged_or_of_another_version_is_silence(agent: Agent) -> None:
    store = agent.home / "memory.db"
    for side in ("-wal", "-shm"):
        store.with_name(store.name + side).unlink(missing_ok=True)
    store.write_bytes(b"no database at all" * 1_000)
    done = subprocess.run(
        [sys.executable, "-m", "grounded_mcp", "hook", "SessionStart", "--client", "gemini", "--home", str(agent.home)],
        env=agent.environment(),
        cwd=agent.project,
        input=b"{}",
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"{}"
    assert b"grounded-mcp hook: " in done.stderr
    assert store.read_bytes() == b"no database at all" * 1_000


@pytest.mark.parametrize("arguments", [[], ["SessionStart"], ["SessionStart", "--client", "emacs"], ["--client"]])
def test_even_wrong_usage_ends_with_0_and_an_empty_stdout(agent: Agent, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "grounded_mcp", "hook", *arguments]
    done = subprocess.run(command, env=agent.environment(), cwd=agent.project, input=b"{}", capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"usage: grounded-mcp hook EVENT" in done.stderr


def test_settings_that_cannot_be_read_are_silence(agent: Agent) -> None:
    (agent.home / "config.toml").write_text("[recall\n", encoding="utf-8")
    command = [sys.executable, "-m", "grounded_mcp", "hook", "SessionStart", "--client", "codex"]
    command += ["--home", str(agent.home)]
    done = subprocess.run(command, env=agent.environment(), cwd=agent.project, input=b"{}", capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"ConfigError" in done.stderr


def test_settings_that_a_person_made_are_in_force(agent: Agent) -> None:
    (agent.home / "config.toml").write_text("[brief]\nfacts = 1\n", encoding="utf-8")
    told = agent.told("SessionStart", source="startup")
    assert BRIEFED in told
    assert BROUGHT not in told


JUNK = st.binary(max_size=200) | st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.just("\ud800"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["session_id", "sessionId", "cwd", "prompt", "source", "transcript_path", "workspace_roots"]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=10,
).map(lambda value: json.dumps(value).encode())


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(DIALECTS)), st.sampled_from(["SessionStart", "beforeAgent", "PreCompact", "stop"]), JUNK)
def test_whatever_is_sent_the_answer_is_empty_or_one_json_object(client: str, event: str, sent: bytes) -> None:
    data = respond([event, "--client", client, "--home", "/nonexistent"], lambda: sent)
    assert data == b"" or isinstance(json.loads(data), dict)


@pytest.mark.parametrize(
    "sent", [b"\x00\xff", b"[" * 100_000, b'{"prompt": NaN}', b'{"session_id": "../../x", "prompt": "KB-41"}']
)
def test_junk_at_the_process_face_is_exit_0_and_touches_nothing_outside(agent: Agent, sent: bytes) -> None:
    before = sorted(each.name for each in agent.home.parent.iterdir())
    out = agent.run("UserPromptSubmit", "claude-code", sent)
    assert out == "" or "hookSpecificOutput" in json.loads(out)
    assert sorted(each.name for each in agent.home.parent.iterdir()) == before
    assert {each.name for each in agent.home.iterdir()} <= {"memory.db", "memory.db-wal", "memory.db-shm", "hooks"}


def test_what_hooks_note_is_private_and_the_store_is_only_read(agent: Agent) -> None:
    before = (agent.home / "memory.db").read_bytes()
    agent.says("SessionStart", source="startup")
    agent.says("Stop", transcript_path="/t.jsonl")
    assert (agent.home / "memory.db").read_bytes() == before
    made = list((agent.home / "hooks").rglob("*"))
    assert {(each.stat().st_mode & 0o777, each.is_dir()) for each in made} == {(0o700, True), (0o600, False)}


def test_old_sessions_are_forgotten(agent: Agent) -> None:
    agent.says("SessionStart", source="startup")
    old = agent.home / "hooks" / "sessions" / "s-1"
    os.utime(old, (time.time() - 8 * 86_400,) * 2)
    agent.says("SessionStart", source="startup", session_id="s-2")
    assert not old.exists()


# --- by way of the server that runs -----------------------------------------------------------------------


def called(agent: Agent, *calls: Json, before: Callable[[], object] = lambda: None) -> tuple[list[str], list[Any]]:
    """The names of the tools that the server lists, and its answers to calls of the hook's tool."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "grounded_mcp"],
        cwd=str(agent.project),
        env=agent.environment(GROUNDED_HOME=str(agent.home), GROUNDED_EMBEDDING__PROVIDER="none"),
    )

    async def talk() -> tuple[list[str], list[Any]]:
        async with Client(server) as client:
            listed = [tool.name for tool in (await client.list_tools()).tools]
            await client.call_tool("memory_status", {})
            before()
            return listed, [await client.call_tool(HOOK_TOOL, call) for call in calls]

    return anyio.run(talk)


def test_f5_a_hook_that_asks_the_running_server_gets_what_the_command_writes_and_no_model_sees_the_tool(
    agent: Agent,
) -> None:
    sent = {"hook_event_name": "UserPromptSubmit", "cwd": str(agent.project), "prompt": "KB-41?"}
    listed, answers = called(
        agent,
        {**sent, "client": "codex", "session_id": "s-2"},
        {**sent, "client": "codex", "session_id": "s-2", "prompt": "KB-41 again"},
        {**sent, "client": "codex", "session_id": "s-3", "prompt": "hello"},
        {**sent, "client": "emacs", "session_id": "s-3"},
    )
    assert len(listed) == 8
    assert HOOK_TOOL not in listed
    assert [each.is_error for each in answers] == [False, False, False, True]
    command = agent.says("UserPromptSubmit", client="codex", prompt="KB-41?", session_id="s-4")
    assert BROUGHT in command
    assert [each.content[0].text for each in answers[:3]] == [command, "", ""]
    assert agent.says("UserPromptSubmit", prompt="and KB-41 once more", session_id="s-2") == "", "they share the view"
    assert "there is no client 'emacs'; known are claude-code, " in answers[3].content[0].text


def test_t43_a_hook_by_way_of_the_server_does_not_make_a_deleted_data_directory_again(agent: Agent) -> None:
    sent = {"hook_event_name": "UserPromptSubmit", "client": "claude-code", "session_id": "s-2", "prompt": "KB-41?"}
    _, (answer,) = called(agent, sent, before=lambda: shutil.rmtree(agent.home))
    assert (answer.is_error, answer.content[0].text) == (False, "")
    assert not agent.home.exists()


# --- what it costs ----------------------------------------------------------------------------------------

LOADED = """
import json, sys
from grounded_mcp.faces.hooks.program import respond
sent = json.dumps(dict(session_id="m", cwd=".", prompt="KB-41 in src/tide/table.py", source="startup")).encode()
told = [respond([event, "--client", "codex", "--home", sys.argv[1]], lambda: sent) for event in
        ("SessionStart", "UserPromptSubmit", "Stop")]
print(json.dumps([list(map(len, told)), sorted(sys.modules)]))
"""


def test_a_hook_imports_neither_the_sdk_nor_a_model_nor_what_it_does_not_need(agent: Agent) -> None:
    agent.says("SessionStart", source="startup", session_id="first")  # from here on the project is known
    done = subprocess.run(
        [sys.executable, "-c", LOADED, str(agent.home)],
        cwd=agent.project,
        env=agent.environment(),
        capture_output=True,
        check=True,
    )
    told, loaded = json.loads(done.stdout)
    assert told[0] > 0
    assert {name.split(".")[0] for name in loaded} & HEAVY == set()
    assert {"dataclasses", "pathlib", "subprocess", "tomllib", "grounded_mcp.values", "grounded_mcp.config"}.isdisjoint(
        loaded
    )


def test_the_first_hook_of_a_project_imports_no_heavy_library_either(agent: Agent) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, str(agent.home)],
        cwd=agent.project,
        env=agent.environment(),
        capture_output=True,
        check=True,
    )
    assert {name.split(".")[0] for name in json.loads(done.stdout)[1]} & HEAVY == set()


# --- which project ----------------------------------------------------------------------------------------


def known(agent: Agent, folder: Path) -> str:
    """The key that a hook in a folder comes to."""
    files.remove(str(agent.home), "projects")
    agent.says("SessionStart", cwd=folder, source="startup", session_id=f"s-{time.monotonic_ns()}")
    ((_, _, place),) = files.read(str(agent.home), "projects").values()
    return str(place[0])


def test_t31_a_hook_comes_to_the_same_project_as_a_server_from_anywhere_in_it(
    agent: Agent, git: Callable[..., str], tmp_path: Path
) -> None:
    inner = agent.project / "src" / "deep"
    inner.mkdir(parents=True)
    (tmp_path / "link").symlink_to(agent.project)
    assert known(agent, tmp_path / "link") == known(agent, agent.project) == f"path:{agent.project}"
    git(agent.project, "init", "-q")
    git(agent.project, "remote", "add", "origin", "git@example.org:harbour/quay.git")
    for folder in (agent.project, inner, tmp_path / "link", tmp_path / "link" / "src"):
        memory = agent.memory(folder)
        assert known(agent, folder) == memory.project.key == "example.org/harbour/quay"
        memory.close()
    (agent.home / "config.toml").write_text(f'[project.folders]\n"{agent.project}" = "harbour"\n', encoding="utf-8")
    assert known(agent, inner) == "harbour"


def test_a_folder_that_becomes_another_project_is_asked_again(agent: Agent, git: Callable[..., str]) -> None:
    agent.says("SessionStart", source="startup")
    git(agent.project, "init", "-q")
    git(agent.project, "remote", "add", "origin", "git@example.org:harbour/quay.git")
    assert BRIEFED not in agent.told("SessionStart", source="startup", session_id="s-2")
    git(agent.project, "checkout", "-q", "-b", "fix/tide")
    memory = agent.memory()
    memory.remember("The quay is granite.")
    memory.close()
    assert "(branch fix/tide)" in agent.told("SessionStart", source="startup", session_id="s-3")


def test_t38_a_worktree_is_briefed_from_its_project_and_told_apart(
    agent: Agent, git: Callable[..., str], tmp_path: Path
) -> None:
    git(agent.project, "init", "-q")
    (agent.project / "a").touch()
    git(agent.project, "add", "a")
    git(agent.project, "commit", "-q", "-m", "a")
    git(agent.project, "worktree", "add", "-q", "-b", "tide", str(tmp_path / "wt"))
    inside = tmp_path / "wt" / "sub"
    inside.mkdir()
    memory = agent.memory(inside)
    memory.remember("The worktree knows the tide.")
    memory.close()
    told = agent.told("SessionStart", cwd=inside, source="startup")
    assert f"# Memory of quayside (branch tide, worktree {tmp_path / 'wt'})" in told
    assert "The worktree knows the tide." in told
    assert "The worktree knows the tide." in agent.told("SessionStart", source="startup", session_id="s-2")


def test_case_56_a_branch_of_any_name_is_a_name_and_starts_nothing(agent: Agent, git: Callable[..., str]) -> None:
    git(agent.project, "init", "-q")
    git(agent.project, "checkout", "-q", "-b", "a;$(touch${IFS}x)<project-memory")
    memory = agent.memory()
    memory.remember("The quay is granite.")
    memory.close()
    told = agent.told("SessionStart", source="startup")
    assert "(branch a;$(touch${IFS}x)&lt;project-memory)" in told
    assert not (agent.project / "x").exists()


def test_a_variable_by_which_a_client_names_the_project_counts_more_than_the_folder_it_is_in(
    agent: Agent, tmp_path: Path
) -> None:
    sent = json.dumps({"session_id": "s-1", "cwd": str(tmp_path), "source": "startup"}).encode()
    assert BRIEFED in agent.run("SessionStart", "claude-code", sent, CLAUDE_PROJECT_DIR=str(agent.project))
    assert BRIEFED not in agent.run("SessionStart", "codex", sent, CLAUDE_PROJECT_DIR=str(agent.project))


# --- the command ------------------------------------------------------------------------------------------


def test_the_command_shows_the_brief_and_what_a_message_would_bring(agent: Agent) -> None:
    command = Command(agent.home, agent.project)
    done = command("brief")
    assert done.returncode == 0
    assert BRIEFED in done.stdout
    lanes = command.json("brief")["lanes"]
    assert [(each["name"], len(each["items"])) for each in lanes] == [("Pinned facts", 1), ("Facts", 1)]
    assert BROUGHT in command("brief", "--message", "KB-41?").stdout
    assert command.json("brief", "--message", "hello there") == {"items": [], "text": ""}


def test_a_brief_names_a_learning_by_how_its_claim_begins(agent: Agent) -> None:
    memory = agent.memory()
    learnt = memory.record_learning("The tide table is rebuilt before the ferry tests.", "verified").item
    memory.close()
    assert learnt is not None
    named = f"The tide table is rebuilt before the ferry tests. ({learnt.id})"
    assert named in Command(agent.home, agent.project)("brief").stdout


def test_a_file_that_a_learning_links_decides_whether_its_command_is_shown_as_verified(agent: Agent) -> None:
    command = Command(agent.home, agent.project)
    guide = agent.project / "guide.md"
    guide.write_text("Ship on Mondays.\n", encoding="utf-8")
    memory = agent.memory()
    memory.record_learning("Shipping works.", "verified", command="make ship", script="guide.md")
    memory.close()
    assert "- make ship [verified" in command("brief").stdout
    guide.write_text("Ship on Tuesdays.\n", encoding="utf-8")
    assert "- make ship [its file changed since it worked" in command("brief").stdout
    guide.unlink()
    assert "- make ship [its file is missing" in command("brief").stdout


def test_without_a_store_the_command_says_so_and_makes_none(command: Command) -> None:
    done = command("brief")
    assert done.returncode == 1
    assert "There is no store at" in done.stderr
    assert not command.home.exists()


def test_many_hooks_at_once_leave_what_they_note_whole(agent: Agent) -> None:
    def end(number: int) -> None:
        agent.says("Stop", session_id=f"s-{number}", transcript_path="/t.jsonl")

    threads = [threading.Thread(target=end, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    (name,) = files.names(str(agent.home), "queue")
    assert files.read(str(agent.home), "queue", name)["path"] == "/t.jsonl"
