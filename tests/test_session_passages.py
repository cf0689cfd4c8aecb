"""An exchange as passages that stand alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grounded_mcp.ingest.transcripts.exchanges import Action, Exchange, Step
from grounded_mcp.ingest.transcripts.passages import headline, passages, relative, topic_after
from grounded_mcp.text import estimate_tokens

CWD = "/home/me/app"


def exchange(asked: str, *steps: Step, turns: tuple[int, int] = (1, 9), interrupted: bool = False) -> Exchange:
    return Exchange(1, 1, "u1", 0, 1.0, 2.0, asked, steps, "opus", interrupted, turns)


def ran(command: str, ok: bool | None = True, output: str = "", code: int | None = None) -> Action:
    return Action("command", "Bash", command, ok=ok, exit_code=code, output=output)


def edited(*files: str, ok: bool | None = True) -> Action:
    return Action("edit", "Edit", files=files, ok=ok)


def looked(*files: str) -> Action:
    return Action("read", "Read", files=files, ok=True)


def told(given: Exchange) -> str:
    return "".join(piece.body for piece in passages(given, cwd=CWD))


def test_an_exchange_is_told_in_order_and_compactly() -> None:
    given = exchange(
        "why does the login test fail?",
        "Let me look.",
        looked(f"{CWD}/auth.py"),
        looked(f"{CWD}/tests/test_auth.py"),
        Action("other", "Grep", subject="def login", ok=True),
        Action("other", "Grep", subject="expires", ok=True),
        ran("pytest tests/test_auth.py -q", ok=False, code=1, output="E   KeyError: 'exp'"),
        edited(f"{CWD}/auth.py"),
        edited(f"{CWD}/auth.py"),
        ran(f"cd {CWD} && pytest -q 2>&1", output="14 passed"),
        "The token had no expiry.",
    )
    assert told(given).splitlines() == [
        "Asked: why does the login test fail?",
        "Edited: auth.py",
        "Let me look.",
        "Read: auth.py, tests/test_auth.py",
        "Grep: def login, expires",
        "Ran: pytest tests/test_auth.py -q -> failed (1)",
        "E   KeyError: 'exp'",
        "Ran: pytest -q -> ok",
        "14 passed",
        "The token had no expiry.",
        "",
    ]


def test_every_piece_but_the_first_repeats_the_question_as_its_heading() -> None:
    given = exchange("rename the module and its imports everywhere", *(f"Step {at} of it. " * 30 for at in range(9)))
    first, *others = passages(given, cwd=CWD, seq=7)
    assert (first.seq, first.heading) == (7, "")
    assert [each.seq for each in others] == list(range(8, 8 + len(others)))
    assert {each.heading for each in others} == {"rename the module and its imports everywhere"}
    assert all(estimate_tokens(each.body) <= 220 for each in (first, *others))


def test_the_lines_of_a_piece_are_the_turns_of_its_exchange() -> None:
    (piece,) = passages(exchange("what is it", "A server.", turns=(12, 15)), cwd=CWD)
    assert (piece.start_line, piece.end_line) == (12, 15)


def test_a_short_question_is_shown_with_what_was_asked_before() -> None:
    topic = topic_after("", exchange("move the cache into its own module", "Shall I?"))
    topic = topic_after(topic, exchange("yes", "Done. Commit?"))
    (piece,) = passages(exchange("yes please", edited("cache.py")), cwd=CWD, topic=topic)
    assert piece.heading == "move the cache into its own module > yes please"


def test_a_later_part_says_which_one_it_is() -> None:
    given = replace(exchange("do it all", "Going on."), part=2)
    (piece,) = passages(given, cwd=CWD)
    assert (piece.heading, piece.body.strip()) == ("do it all (part 2)", "Going on.")


def test_what_failed_or_was_refused_was_not_edited() -> None:
    refused = Action("edit", "Edit", files=("b.py",), refused=True, output="not this one!")
    assert told(exchange("go", edited("a.py", ok=False), refused, edited("c.py"))).splitlines() == [
        "Asked: go",
        "Edited: c.py",
        "Edit refused: b.py",
        "not this one!",
        "",
    ]


def test_a_failed_call_is_told_with_its_error() -> None:
    failed = Action("other", "WebFetch", subject="https://example.org", ok=False, output="404 not found")
    assert "WebFetch failed: https://example.org\n404 not found\n" in told(exchange("look it up", failed))


def test_t27_a_call_of_this_memory_is_not_told() -> None:
    assert told(exchange("where?", Action("memory", "ground_recall", ok=True), "There.")) == "Asked: where?\nThere.\n\n"


def test_an_interruption_is_told() -> None:
    assert told(exchange("go", "Deleting", interrupted=True)).splitlines()[-2:] == ["Interrupted by the person.", ""]


def test_a_long_command_is_cut_after_a_word() -> None:
    line = told(exchange("go", ran("make " + "target " * 100))).splitlines()[1]
    assert line.startswith("Ran: make target")
    assert line.endswith("target… -> ok")
    assert len(line) < 260


def test_an_exchange_of_nothing_has_no_passage() -> None:
    assert passages(exchange(""), cwd=CWD) == ()


@pytest.mark.parametrize(
    ("path", "cwd", "shown"),
    [
        ("/home/me/app/src/a.py", "/home/me/app", "src/a.py"),
        ("/home/me/app2/a.py", "/home/me/app", "/home/me/app2/a.py"),
        ("src/a.py", "/home/me/app", "src/a.py"),
        ("/a.py", None, "/a.py"),
        ("C:\\app\\src\\a.py", "C:\\app", "src/a.py"),
        ("/home/me/app", "/home/me/app/", "/home/me/app"),
    ],
)
def test_a_path_is_told_relative_to_the_folder_of_the_session(path: str, cwd: str | None, shown: str) -> None:
    assert relative(path, cwd) == shown


def test_a_headline_ends_with_a_word() -> None:
    assert headline("one two,\nthree four", 12) == "one two…"
    assert headline("short", 12) == "short"
    assert headline("x" * 30, 12) == "x" * 11 + "…"


ACTIONS = st.builds(
    Action,
    st.sampled_from(("command", "edit", "read", "memory", "other")),
    st.text(max_size=9),
    st.text(max_size=60),
    st.lists(st.text(max_size=20), max_size=3).map(tuple),
    st.text(max_size=30),
    st.sampled_from((True, False, None)),
    st.sampled_from((None, 0, 1)),
    st.text(max_size=60),
    st.booleans(),
)


@given(st.text(max_size=80), st.lists(st.one_of(st.text(max_size=400), ACTIONS), max_size=12))
@settings(max_examples=120, deadline=None)
def test_any_exchange_has_pieces_that_fit_the_model(asked: str, steps: list[Step]) -> None:
    pieces = passages(exchange(asked, *steps), cwd=CWD)
    assert all(estimate_tokens(piece.body) <= 220 for piece in pieces)
    assert [piece.seq for piece in pieces] == list(range(len(pieces)))
