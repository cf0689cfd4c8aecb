"""Commands that were seen to work, attempts with their outcome, and how a command line is read."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from grounded_mcp.ingest.transcripts import shell
from grounded_mcp.ingest.transcripts.exchanges import Action, Exchange, Step
from grounded_mcp.ingest.transcripts.mining import ATTEMPTS, Episode, Pointer, Sighting, commands, episode
from grounded_mcp.ingest.transcripts.shell import Purpose, hides_exit, normal, parts, purpose, shows

ROOT = "/home/me/app"


def exchange(asked: str, *steps: Step, interrupted: bool = False) -> Exchange:
    return Exchange(3, 1, "u7", 0, 10.0, 20.0, asked, steps, None, interrupted, (5, 9))


def ran(command: str, ok: bool | None = True, output: str = "", code: int | None = None) -> Action:
    return Action("command", "Bash", command, ok=ok, exit_code=code, output=output)


def edited(*files: str, ok: bool | None = True) -> Action:
    return Action("edit", "Edit", files=files, ok=ok)


def mined(command: str, ok: bool | None = True, output: str = "", code: int | None = None) -> list[Sighting]:
    return list(commands(exchange("go", ran(command, ok, output, code)), session="s1", cwd=ROOT))


def seen(command: str, ok: bool | None = True, output: str = "", code: int | None = None) -> list[tuple[str, bool]]:
    return [(each.command, each.supports) for each in mined(command, ok, output, code)]


# --- commands worth remembering ----------------------------------------------------------------------------


def test_a_command_that_worked_is_remembered_with_where_it_was_seen() -> None:
    assert mined("pytest -q", output="12 passed") == [
        Sighting("pytest -q", "test", True, "verified outcome", (), "12 passed", Pointer("s1", 3, "u7", 20.0))
    ]


@pytest.mark.parametrize(
    ("run", "remembered"),
    [
        (f"cd {ROOT} && npm test", "npm test"),
        (f"cd {ROOT}/web && npm test", "cd web && npm test"),
        ("cd web/../api && make check", "cd api && make check"),
        ("CI=1 FORCE_COLOR=0 EMPTY= npm run build", "npm run build"),
        ("PYTHONPATH=src pytest", "PYTHONPATH=src pytest"),
        (f"pytest {ROOT}/tests/test_a.py", "pytest tests/test_a.py"),
        (f"{ROOT}/.venv/bin/pytest -q", ".venv/bin/pytest -q"),
        ("make lint > /dev/null 2>&1", "make lint"),
        ("timeout 120s cargo test", "cargo test"),
        ("time go build ./...", "go build ./..."),
        ("/usr/bin/make all", "make all"),
        ("uv run pytest -q", "uv run pytest -q"),
    ],
)
def test_the_same_command_is_one_however_it_was_run(run: str, remembered: str) -> None:
    assert seen(run, output="fine") == [(remembered, True)]


@pytest.mark.parametrize(
    "run",
    [
        *("ls -la", "cat a.py", "git status", "git push", "grep -rn main .", "echo done", "cd web", "sed -i s/a/b/ x"),
        *("python -c 'print(1)'", "node -e 1", "python - <<'EOF'\nprint(1)\nEOF", "make $(cat targets)", "npm test $X"),
        *("for f in *; do pytest $f; done", "make --help", "go version", "/tmp/built/tool run", "pytest ../other"),
        *("./app serve", "deploy.sh --key [REDACTED:token:ab12]", "cd /tmp && make", "cat x | python build.py && ls"),
        *("pytest ~/other", "(make test)", "pytest " + "tests/test_x.py " * 30),
    ],
)
def test_a_look_a_one_off_or_something_of_elsewhere_is_not_remembered(run: str) -> None:
    assert seen(run, output="fine") == []


def test_each_command_that_and_ties_together_has_worked_when_the_whole_has() -> None:
    assert seen("make fmt && make lint && make test") == [("make fmt", True), ("make lint", True), ("make test", True)]


def test_of_commands_one_after_another_only_the_last_is_known_to_have_worked() -> None:
    assert seen("make lint; make test") == [("make test", True)]
    assert seen("make lint || make test") == []


def test_a_failure_is_held_against_a_command_only_where_it_must_be_that_one() -> None:
    assert seen("cd web && make test", ok=False) == [("cd web && make test", False)]
    assert seen("make lint && make test", ok=False) == []
    assert seen("make lint; make test", ok=False) == []


def test_behind_a_pipe_a_success_counts_only_with_an_output_that_speaks_of_no_error() -> None:
    assert seen("make test 2>&1 | tail -5", output="12 passed") == [("make test", True)]
    assert seen("make test 2>&1 | tail -5", output="error: no such target") == []
    assert seen("make test 2>&1 | grep FAIL", output="") == []


def test_a_command_of_which_nobody_knows_how_it_ended_is_no_evidence() -> None:
    assert seen("make test", ok=None) == []
    assert seen("make test", ok=None, code=0) == [("make test", True)]
    assert seen("make test", ok=None, code=2) == [("make test", False)]


def test_a_refused_command_is_no_evidence() -> None:
    action = Action("command", "Bash", "make deploy", refused=True)
    assert commands(exchange("go", action), session="s", cwd=ROOT) == ()


@pytest.mark.parametrize(
    ("run", "output", "code", "kind"),
    [
        ("make test", "1 failed, 3 passed", 1, "diagnostic episode"),
        ("npm run lint", "3 problems", 1, "diagnostic episode"),
        ("make test", "make: *** No rule to make target 'test'.", 2, "verified outcome"),
        ("pytest", "pytest: command not found", 127, "verified outcome"),
        ("make deploy", "connection refused", 1, "verified outcome"),
    ],
)
def test_a_check_that_finds_something_says_little_against_the_check(
    run: str, output: str, code: int, kind: str
) -> None:
    (found,) = mined(run, ok=False, output=output, code=code)
    assert (found.supports, found.kind, found.note) == (False, kind, output)


@pytest.mark.parametrize(
    ("run", "scripts"),
    [
        ("./scripts/release.sh 1.2", ("scripts/release.sh",)),
        ("bash scripts/setup", ("scripts/setup",)),
        (f"python {ROOT}/tools/gen.py --all", ("tools/gen.py",)),
        ("cd web && node build.mjs", ("web/build.mjs",)),
        ("cd web && ./../scripts/test.sh", ("scripts/test.sh",)),
        ("./gradlew test", ("gradlew",)),
        ("python -m build", ()),
        ("make test", ()),
    ],
)
def test_the_script_that_a_command_runs_is_named_from_the_root(run: str, scripts: tuple[str, ...]) -> None:
    assert [each.scripts for each in mined(run)] == [scripts]


def test_a_session_in_a_folder_of_the_project_runs_its_commands_there() -> None:
    given = exchange("go", ran("make test"))
    (found,) = commands(given, session="s", cwd=f"{ROOT}/api", root=ROOT)
    assert found.command == "cd api && make test"
    assert commands(given, session="s", cwd="/elsewhere", root=ROOT) == ()


# --- episodes ----------------------------------------------------------------------------------------------


def tried(*steps: Step, asked: str = "fix the login test", interrupted: bool = False) -> Episode:
    found = episode(exchange(asked, *steps, interrupted=interrupted), session="s1", cwd=ROOT)
    assert found is not None
    return found


def test_an_episode_reads_like_a_short_report() -> None:
    found = tried(
        "Let me look.",
        ran("cat auth.py"),
        edited(f"{ROOT}/auth.py"),
        edited(f"{ROOT}/token.py"),
        ran("pytest -q", ok=False, output="collected 14\nE   KeyError: 'exp'\n1 failed"),
        edited(f"{ROOT}/auth.py"),
        ran("pytest -q", output="14 passed"),
        "The token had no expiry; it has one now.",
    )
    assert found.text.splitlines() == [
        "Goal: fix the login test",
        "Tried: edited auth.py, token.py; `pytest -q` failed: E   KeyError: 'exp'; edited auth.py; `pytest -q` ok.",
        "Outcome: reached.",
        "Concluded: The token had no expiry; it has one now.",
    ]
    assert (found.files, found.seen) == (("auth.py", "token.py"), Pointer("s1", 3, "u7", 20.0))


@pytest.mark.parametrize(
    "steps",
    [
        [],
        ["Because of the cache."],
        [ran("git log"), ran("cat a.py")],
        [Action("edit", "Edit", files=("a.py",), refused=True)],
    ],
)
def test_where_nothing_was_attempted_there_is_no_episode(steps: list[Step]) -> None:
    assert episode(exchange("why?", *steps), session="s", cwd=ROOT) is None


def test_what_nobody_asked_for_is_no_episode() -> None:
    assert episode(exchange("", edited("a.py")), session="s", cwd=ROOT) is None


@pytest.mark.parametrize(
    ("steps", "outcome"),
    [
        ([edited("a.py"), ran("git commit -m x")], "reached"),
        ([edited("a.py"), ran("pytest")], "reached"),
        ([ran("pytest")], "reached"),
        ([edited("a.py"), ran("pytest", ok=False)], "failed"),
        ([edited("a.py"), ran("git commit -m x", ok=False)], "failed"),
        ([edited("a.py", ok=False)], "failed"),
        ([edited("a.py")], "unknown"),
        ([ran("pytest"), edited("a.py")], "unknown"),
        ([edited("a.py"), ran("pytest", ok=None)], "unknown"),
        ([edited("a.py"), ran("pytest"), ran("git status")], "reached"),
        ([ran("pytest", ok=False), edited("a.py"), ran("pytest")], "reached"),
    ],
)
def test_the_outcome_is_what_the_last_check_after_the_last_edit_says(steps: list[Step], outcome: str) -> None:
    assert tried(*steps).outcome == outcome


def test_an_attempt_that_the_person_stopped_is_abandoned() -> None:
    assert tried(edited("a.py"), ran("pytest"), interrupted=True).outcome == "abandoned"


def test_of_many_attempts_the_first_and_the_last_are_told() -> None:
    found = tried(*(ran(f"make part{at}") for at in range(40)))
    assert len(found.attempts) == ATTEMPTS + 1
    assert found.attempts[0] == "`make part0` ok"
    assert found.attempts[6] == "28 more steps"
    assert found.attempts[-1] == "`make part39` ok"


def test_the_same_attempt_over_and_over_is_told_once() -> None:
    assert tried(*[ran("make", ok=False)] * 5).attempts == ("`make` failed",)


# --- reading a command line --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        ("a && b || c; d", ["a", "b", "c", "d"]),
        ("a | b | c", ["a | b | c"]),
        ("echo 'x && y' \"z; w\" && b", ["echo 'x && y' \"z; w\"", "b"]),
        ("a $(b && c) && d", ["a $(b && c)", "d"]),
        ("a 2>&1 && b &> out", ["a 2>&1", "b &> out"]),
        ("a <<'EOF'\nb && c\nEOF\nd", ["a <<'EOF'\nb && c\nEOF", "d"]),
        ("a \\&\\& b", ["a \\&\\& b"]),
        ("", []),
        (" ; ", []),
    ],
)
def test_a_command_line_falls_into_its_parts(line: str, texts: list[str]) -> None:
    assert [part.text for part in parts(line)] == texts


@pytest.mark.parametrize(
    ("stage", "what"),
    [
        ("pytest -q", "test"),
        ("python -m pytest", "test"),
        ("uv run --frozen pytest", "test"),
        ("mise run test:ci", "test"),
        ("yarn lint", "lint"),
        ("npx tsc --noEmit", "lint"),
        ("make fmt", "format"),
        ("cargo build --release", "build"),
        ("./scripts/deploy.sh", "deploy"),
        ("pip install -e .", "install"),
        ("npm run dev", "run"),
        ("python tools/seed.py", "run"),
        ("git commit -m 'x'", "commit"),
        ("git -C /x status", "look"),
        ("head -3 a", "look"),
        ("rm -rf build", "other"),
        ("python -c 'import x'", "other"),
        ("echo 'unclosed", "other"),
        ("", "other"),
    ],
)
def test_a_command_is_known_by_what_it_is_for(stage: str, what: Purpose) -> None:
    assert purpose(stage) == what


def test_a_line_that_only_looks_is_told_from_one_that_does() -> None:
    assert shows("cd web && cat a.js | head -5; git diff")
    assert not shows("cat a.js && make")


@pytest.mark.parametrize(
    ("line", "hides"), [("a && b", False), ("a | b", True), ("a; b", True), ("a || b", True), ("a", False), ("", False)]
)
def test_what_hides_an_exit_code(line: str, hides: bool) -> None:
    assert hides_exit(line) is hides


@given(st.text(st.sampled_from("ab '\"`$()<>|&;\\\n=-/.E"), max_size=60))
@settings(max_examples=300, deadline=None)
@example("a <<EOF")
@example("$(((")
def test_any_line_can_be_read(line: str) -> None:
    for part in parts(line):
        for stage in part.stages:
            purpose(stage)
            normal(stage, ROOT)
    episode(exchange("go", ran(line)), session="s", cwd=ROOT)
    assert all("\n" not in found.command for found in mined(line, output="x"))


def test_a_long_line_is_read_in_linear_time() -> None:
    assert len(parts("make test && " * 5_000 + "ls")) == 5_001
    assert len(parts("(" * 20_000 + "<<E " * 5_000)) == 1


def test_the_examples_hold() -> None:
    assert doctest.testmod(shell).failed == 0
