"""Coding agents, connected as a person connects them, each through one whole loop with a model that is a script.

Large, so only with ``GROUNDED_CLIENTS=agents``. What counts is what the model was sent: the brief before it said
anything, the recalled text after it called the tool.
"""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sysconfig
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clients.conftest import needed
from tests.clients.model import SAID, Model, model
from tests.clients.packages import AGENTS, Packages
from tests.conftest import REPOSITORY

pytestmark = [
    pytest.mark.skipif(os.environ.get("GROUNDED_CLIENTS") != "agents", reason="agents: set GROUNDED_CLIENTS=agents"),
    pytest.mark.timeout(1_200),
]

PINNED = "Never push on a Friday."
KNOWN = "Builds run with ninja since cmake was dropped."
QUESTION = "What does the build use?"
CONFIGURED = {
    "codex": (
        ".codex/config.toml",
        'model = "script"\nmodel_provider = "script"\n\n'
        '[model_providers.script]\nname = "script"\nbase_url = "{url}/v1"\nwire_api = "responses"\n',
    ),
    "gemini": (".gemini/settings.json", '{{"security": {{"auth": {{"selectedType": "gemini-api-key"}}}}}}\n'),
    "opencode": (
        ".config/opencode/opencode.json",
        '{{"model": "script/script", "provider": {{"script": {{"npm": "@ai-sdk/openai-compatible", "name": "script",'
        ' "options": {{"baseURL": "{url}/v1", "apiKey": "none"}}, "models": {{"script": {{}}}}}}}}}}\n',
    ),
}
"""What a person would have in the client's settings before: where its model is."""

RUNS: Mapping[str, tuple[str, ...]] = {
    "claude-code": ("claude", "-p", QUESTION, "--allowedTools", "mcp__grounded__ground_recall"),
    "codex": ("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", QUESTION),
    "gemini": ("gemini", "-p", QUESTION, "--yolo", "--skip-trust", "-m", "gemini-2.5-pro"),
    "opencode": ("opencode", "run", QUESTION),
}
HOOKED = ("claude-code", "codex", "gemini")
"""Clients whose hooks bring the brief. opencode has none that run a command."""


@pytest.fixture(scope="module")
def agents() -> Packages:
    return needed(*AGENTS)


@dataclass(frozen=True)
class Person:
    """A home, a project with one document and one pinned fact, and ``grounded-mcp`` as it is installed here."""

    home: Path
    project: Path
    env: Mapping[str, str]
    command: Path

    def grounded(self, *args: str) -> str:
        done = subprocess.run(
            [self.command, *args],
            cwd=self.project,
            env=dict(self.env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of an environment of its own over this repository: clients pass on no PYTHONPATH."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, symlinks=True)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    around = "\n".join([str(REPOSITORY), *site.getsitepackages()])
    Path(paths["purelib"], "here.pth").write_text(f"{around}\n", encoding="utf-8")
    command = Path(paths["scripts"], "grounded-mcp")
    run = "from grounded_mcp.__main__ import main\nmain()\n"
    command.write_text(f"#!{paths['scripts']}/python\n{run}", encoding="utf-8")
    command.chmod(0o755)
    return command


@pytest.fixture
def person(tmp_path: Path, installed: Path) -> Person:
    home, project = tmp_path / "home", tmp_path / "quayside"
    (project / "docs").mkdir(parents=True)
    home.mkdir()
    (project / "README.md").write_text("# Quayside\n\nA harbour.\n", encoding="utf-8")
    (project / "docs/build.md").write_text(f"# Build\n\n{KNOWN}\n", encoding="utf-8")
    kept = ("PATH", "LANG", "TERM", "TMPDIR")
    env = {name: os.environ[name] for name in kept if name in os.environ} | {"HOME": str(home)}
    env |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "NO_COLOR": "1"}
    made = Person(home, project, env, installed)
    made.grounded("quickstart")
    made.grounded("remember", PINNED, "--pin")
    return made


def at(url: str) -> dict[str, str]:
    """Where each client looks for its model."""
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_API_KEY": "none",
    }


def configure(person: Person, client: str, url: str) -> Path | None:
    if client not in CONFIGURED:
        return None
    name, text = CONFIGURED[client]
    path = person.home / name
    path.parent.mkdir(parents=True)
    path.write_text(text.format(url=url), encoding="utf-8")
    return path


def loop(agents: Packages, person: Person, client: str, script: Model, question: str = QUESTION, *more: str) -> str:
    name, *args = (question if each == QUESTION else each for each in (*RUNS[client], *more))
    env = {**person.env, **at(script.url)}
    done = agents.run(name, *args, env=env, cwd=person.project, seconds=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("client", RUNS)
def test_f1_f5_an_agent_that_was_connected_is_briefed_and_recalls(
    agents: Packages, person: Person, client: str
) -> None:
    with model("ground_recall", query="ninja") as script:
        configure(person, client, script.url)
        person.grounded("connect", client, "--yes")
        assert SAID in loop(agents, person, client, script)
    (answered, *_), recalled = script.calls(), script.seen(KNOWN)
    assert recalled, "the recalled text reached the model"
    assert min(recalled) == answered, "and not before it called the tool"
    briefed = script.seen(PINNED)
    assert (min(briefed) < answered) if client in HOOKED else (min(briefed, default=answered) >= answered)
    told = script.seen("When a person states a rule, decision or lasting fact")
    assert min(told) < answered, "the server's instructions reached the model"

    if client in HOOKED:
        heard = person.grounded("recall", QUESTION, "--source", "session")
        assert QUESTION not in heard
        person.grounded("sync", "--sessions")
        assert QUESTION in person.grounded("recall", QUESTION, "--source", "session"), "the session was queued"
    person.grounded("disconnect", "--yes")
    mentions = [each for each in person.home.rglob("*") if each.suffix in (".json", ".toml") and ours(each)]
    assert mentions == [], "a client that rewrote its settings meanwhile is disconnected, too"


def ours(path: Path) -> bool:
    return path.is_file() and path.name in SETTINGS and b"grounded" in path.read_bytes()


SETTINGS = {"settings.json", ".claude.json", "config.toml", "hooks.json", "opencode.json"}

NAMING = "What was KB-41 about?"
LESSON = "KB-41 was caused by the tide table."


@pytest.mark.parametrize(
    ("client", "how"),
    [(client, ()) for client in HOOKED] + [(client, ("--tool-hooks",)) for client in ("claude-code", "codex")],
)
def test_f5_a_message_brings_a_real_agent_what_it_names(
    agents: Packages, person: Person, client: str, how: tuple[str, ...]
) -> None:
    person.grounded("learn", LESSON)
    with model("ground_recall", query="ninja") as script:
        configure(person, client, script.url)
        person.grounded("connect", client, "--yes", *how)
        loop(agents, person, client, script, NAMING)
    told = script.seen("Remembered about what this message names.")
    assert told, "the hook's answer reached the model"
    assert min(told) < script.calls()[0]


def test_f5_the_plugin_asks_its_own_server_at_a_message(agents: Packages, person: Person, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    shutil.copytree(REPOSITORY / "integrations/claude-code/plugins/grounded", plugin)
    entry = json.loads((plugin / ".mcp.json").read_text(encoding="utf-8"))
    entry["mcpServers"]["memory"] |= {"command": str(person.command), "args": []}  # this version is on no index yet
    (plugin / ".mcp.json").write_text(json.dumps(entry), encoding="utf-8")
    person.grounded("learn", LESSON)
    with model("ground_recall", query="ninja") as script:
        loop(agents, person, "claude-code", script, NAMING, "--plugin-dir", str(plugin))
    assert script.seen("Remembered about what this message names.")


def test_f5_claude_code_is_briefed_again_after_a_compaction(agents: Packages, person: Person) -> None:
    more = ("--output-format", "json")
    with model("ground_recall", query="ninja") as script:
        person.grounded("connect", "claude-code", "--yes")
        session = json.loads(loop(agents, person, "claude-code", script, QUESTION, *more))["session_id"]
        loop(agents, person, "claude-code", script, "/compact", "--resume", session)
        before = len(script.requests)
        loop(agents, person, "claude-code", script, "Go on.", "--resume", session)
    assert before in script.seen(PINNED), "the brief came again"
    assert before not in script.seen(QUESTION), "what was said before is gone"


@pytest.mark.parametrize("client", CONFIGURED)
def test_case_64_disconnect_leaves_a_clients_settings_as_they_were(person: Person, client: str) -> None:
    path = configure(person, client, "http://127.0.0.1:9")
    assert path is not None
    before = path.read_bytes()
    person.grounded("connect", client, "--yes")
    assert b"grounded" in path.read_bytes()
    person.grounded("disconnect", client, "--yes")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("client", "command", "told"),
    [
        ("claude-code", ("claude", "mcp", "list"), "✔ Connected"),
        ("gemini", ("gemini", "mcp", "list"), "Connected"),
        ("opencode", ("opencode", "mcp", "list"), "connected"),
    ],
)
def test_f1_an_agent_lists_the_server_as_connected(
    agents: Packages, person: Person, client: str, command: tuple[str, ...], told: str
) -> None:
    configure(person, client, "http://127.0.0.1:9")
    if client == "gemini":
        trusted = person.home / ".gemini/trustedFolders.json"
        trusted.write_text(json.dumps({str(person.project): "TRUST_FOLDER"}), encoding="utf-8")
    person.grounded("connect", client, "--yes")
    done = agents.run(command[0], *command[1:], env=person.env, cwd=person.project, seconds=120)
    listed = done.stdout + done.stderr
    assert "grounded" in listed
    assert told in listed
    assert "isconnected" not in listed


@pytest.mark.parametrize(
    ("program", "args"),
    [
        ("claude", ("plugin", "validate", "--strict", "integrations/claude-code")),
        ("claude", ("plugin", "validate", "--strict", "integrations/claude-code/plugins/grounded")),
        ("gemini", ("extensions", "validate", "integrations/gemini")),
        ("mcpb", ("validate", "integrations/mcpb/manifest.json")),
    ],
)
def test_the_integrations_are_valid_to_their_own_tools(
    agents: Packages, person: Person, program: str, args: tuple[str, ...]
) -> None:
    done = agents.run(program, *args, env=person.env, cwd=REPOSITORY, seconds=120)
    assert done.returncode == 0, done.stdout + done.stderr
