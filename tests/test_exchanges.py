"""Turns become exchanges, and what of an output is kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grounded_mcp.ingest.redact import Redactor
from grounded_mcp.ingest.transcripts.calls import call
from grounded_mcp.ingest.transcripts.exchanges import Action, Exchange, Limits, exchanges
from grounded_mcp.ingest.transcripts.outputs import OUTPUT_CHARS, denies, ends, refused, sounds_failed, telling, window
from grounded_mcp.ingest.transcripts.turns import Call, Outcome, Turn


def as_it_is(text: str) -> str:
    return text


def user(text: str, place: int = 0, *, interrupted: bool = False) -> Turn:
    return Turn("s", f"u{place}", "user", place, text, at=1000.0 + place, interrupted=interrupted)


def agent(text: str = "", *calls: Call, place: int = 0) -> Turn:
    return Turn("s", f"a{place}", "agent", place, text, at=1000.0 + place, model="opus", calls=calls)


def back(id: str, text: str, ok: bool | None = True, code: int | None = None) -> Turn:
    return Turn("s", f"t-{id}", "tool", 0, outcomes=(Outcome(id, text, ok, code),))


def bash(id: str, command: str) -> Call:
    return call(id, "Bash", {"command": command})


def read(turns: list[Turn], **more: int) -> list[Exchange]:
    return list(exchanges(turns, as_it_is, **more))


def only(turns: list[Turn]) -> Exchange:
    (found,) = read(turns)
    return found


# --- where exchanges begin and end -------------------------------------------------------------------------


def test_a_question_and_all_that_follows_it_is_one_exchange() -> None:
    first, second = read(
        [
            user("fix the tests", 10),
            agent("Let me look.", bash("1", "pytest -q"), place=20),
            back("1", "12 passed"),
            agent("They pass.", place=40),
            user("thanks, commit", 50),
            agent("Done.", place=60),
        ]
    )
    assert (first.number, first.part, first.uid, first.place, first.turns) == (1, 1, "u10", 10, (1, 4))
    assert (first.asked, first.said, first.model) == ("fix the tests", ("Let me look.", "They pass."), "opus")
    assert (first.at, first.until) == (1010.0, 1040.0)
    assert first.actions == (Action("command", "Bash", "pytest -q", ok=True, output="12 passed"),)
    assert [type(step) for step in first.steps] == [str, Action, str]
    assert (second.number, second.asked, second.turns, second.said) == (2, "thanks, commit", (5, 6), ("Done.",))


def test_what_the_agent_says_before_the_first_question_is_an_exchange_too() -> None:
    first, second = read([agent("I am a subagent."), user("go on"), agent("Yes.")])
    assert (first.number, first.asked, first.said) == (1, "", ("I am a subagent.",))
    assert (second.number, second.asked) == (2, "go on")


def test_two_messages_in_a_row_are_one_question() -> None:
    assert only([user("fix it"), user("and test it", 5), agent("Done.")]).asked == "fix it\n\nand test it"


def test_a_message_after_an_interruption_is_a_new_question() -> None:
    first, second = read([user("delete it all"), user("", 5, interrupted=True), user("only the cache", 9), agent("ok")])
    assert (first.asked, first.interrupted, first.steps) == ("delete it all", True, ())
    assert (second.asked, second.interrupted) == ("only the cache", False)


def test_an_interruption_that_comes_with_the_next_question_belongs_to_the_one_before() -> None:
    first, second = read([user("a"), agent("Working."), user("no, b", 5, interrupted=True), agent("ok")])
    assert (first.interrupted, second.interrupted) == (True, False)


def test_a_message_of_nothing_but_host_text_asks_nothing() -> None:
    turns = [user("<system-reminder>x</system-reminder>"), user("hello", 3), agent("Hi.")]
    (found,) = exchanges(turns, lambda text: "" if text.startswith("<system") else text)
    assert (found.number, found.asked, found.turns, found.place) == (1, "hello", (2, 3), 3)


def test_a_session_without_a_word_has_no_exchange() -> None:
    assert read([]) == []
    assert read([user("  "), back("1", "late")]) == []


def test_a_later_import_goes_on_with_the_last_exchange() -> None:
    turns = [user("one", 1), agent("1", place=2), user("two", 3), agent("2", place=4), user("three", 5)]
    whole = read(turns)
    at = whole[1]
    assert read(turns[2:], number=at.number, turn=at.turns[0]) == whole[1:]


# --- calls and outcomes ------------------------------------------------------------------------------------


def test_an_outcome_that_comes_after_the_next_question_still_finds_its_call() -> None:
    first, second = read(
        [user("build"), agent("", bash("1", "make")), user("and?", 5), back("1", "built", ok=True), agent("It built.")]
    )
    assert [(act.command, act.ok, act.output) for act in first.actions] == [("make", True, "built")]
    assert (second.asked, second.said, second.actions) == ("and?", ("It built.",), ())


def test_an_exchange_waits_for_an_outcome_no_longer_than_the_next_one_lasts() -> None:
    turns: Iterator[Turn] = iter(
        [user("a"), agent("", bash("1", "make")), user("b", 2), agent("ok"), user("c", 3), back("1", "too late")]
    )
    found = list(exchanges(turns, as_it_is))
    assert [(each.asked, [act.ok for act in each.actions]) for each in found] == [("a", [None]), ("b", []), ("c", [])]


def test_an_outcome_without_a_call_is_left_out() -> None:
    assert only([user("a"), agent("b"), back("nobody", "text")]).steps == ("b",)


def test_t27_what_this_memory_answered_leaves_no_trace_in_the_exchange() -> None:
    recall = call("1", "mcp__grounded__ground_recall", {"query": "deploy host"})
    found = only([user("where do we deploy?"), agent("", recall), back("1", "to db.internal"), agent("To the cloud.")])
    assert found.actions == (Action("memory", "mcp__grounded__ground_recall", ok=True),)
    assert "db.internal" not in repr(found)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (call("1", "Read", {"file_path": "/app/a.py"}), ""),
        (call("1", "Grep", {"pattern": "def main"}), ""),
        (call("1", "Edit", {"file_path": "/app/a.py"}), ""),
        (bash("1", "cat a.py && git status"), ""),
        (bash("1", "make"), "one\ntwo\nthree"),
        (call("1", "Task", {"description": "look"}), "zero\none\ntwo\nthree"),
    ],
)
def test_of_what_was_only_looked_at_no_content_is_kept(given: Call, kept: str) -> None:
    assert only([user("a"), agent("", given), back("1", "zero\none\ntwo\nthree")]).actions[0].output == kept


def test_a_call_that_failed_keeps_what_it_said_whatever_the_tool() -> None:
    edit = call("1", "Edit", {"file_path": "/app/a.py"})
    found = only([user("a"), agent("", edit), back("1", "String to replace not found in file.", ok=False)])
    assert (found.actions[0].failed, found.actions[0].output) == (True, "String to replace not found in file.")


@pytest.mark.parametrize("ok", [False, None])
def test_a_call_that_the_person_refused_did_not_fail_and_keeps_their_remark(ok: bool | None) -> None:
    said = "The user doesn't want to proceed with this tool use. To tell you how, the user said:\nnot on main!"
    found = only([user("a"), agent("", bash("1", "git push")), back("1", said, ok=ok)])
    assert (found.actions[0].refused, found.actions[0].failed) == (True, False)
    assert found.actions[0].output == "not on main!"


def test_a_pipe_does_not_turn_a_failing_test_into_a_success() -> None:
    run = [user("a"), agent("", bash("1", "go test ./... 2>&1 | tail -5"))]
    failing = only([*run, back("1", "--- FAIL: TestX (0.00s)\nFAIL\nFAIL\tapp\t0.1s", ok=True)]).actions[0]
    assert (failing.ok, failing.failed) == (False, True)
    assert only([*run, back("1", "ok  \tapp\t0.1s", ok=True)]).actions[0].ok is True


# --- bounds ------------------------------------------------------------------------------------------------


def test_a_long_exchange_goes_on_in_parts_and_loses_nothing_that_was_said() -> None:
    turns = [user("do it all")]
    for at in range(500):
        turns += [agent(f"step {at}", bash(f"c{at}", f"make part{at}")), back(f"c{at}", "ok")]
    parts = list(exchanges(turns, as_it_is, limits=Limits(part_actions=200)))
    assert [(each.number, each.part, each.continues, each.asked) for each in parts] == [
        (1, 1, True, "do it all"),
        (1, 2, True, "do it all"),
        (1, 3, False, "do it all"),
    ]
    assert [text for each in parts for text in each.said] == [f"step {at}" for at in range(500)]
    assert all(act.ok for each in parts for act in each.actions)
    assert [each.turns for each in parts] == [(1, 401), (402, 801), (802, 1001)]


def test_a_part_ends_by_its_size_as_well() -> None:
    turns = [user("write"), *(agent("word " * 100) for _ in range(10))]
    parts = list(exchanges(turns, as_it_is, limits=Limits(part_text=1_000)))
    assert [len(each.said) for each in parts] == [3, 3, 3, 1]


def test_what_is_cut_from_a_long_text_is_counted() -> None:
    found = only([user("line of a log\n" * 10_000), agent("I see.")])
    assert len(found.asked) < 12_200
    assert 127_000 < found.cut < 129_000
    assert only([user("short"), agent("also short")]).cut == 0


def test_t39_a_huge_output_is_cut_before_it_is_cleaned() -> None:
    cleaned: list[int] = []

    def clean(text: str) -> str:
        cleaned.append(len(text))
        return text

    turns = [user("a"), agent("", bash("1", "make")), back("1", "noise\n" * 1_000_000 + "done")]
    (found,) = exchanges(turns, clean)
    assert found.actions[0].output.endswith("done")
    assert max(cleaned) < 10_000


@pytest.mark.parametrize("before", range(0, 60, 7))
def test_t33_a_key_at_the_cut_is_recognised_or_left_out_but_never_halved(before: int) -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    clean = Redactor(b"test").clean
    for line in (f"token {key} used\n", f"{key}\n"):
        for head in (line * 2_000, "x" * before + "\n" + line * 2_000):
            turns = [user(head), agent(head, bash("1", "make")), back("1", head, ok=False)]
            (found,) = exchanges(turns, lambda text: clean(text).text)
            assert "B2c3" not in repr(found)
            assert "R8" not in found.asked


def test_t33_a_private_block_that_the_cut_beheads_stays_out() -> None:
    text = "a\n" * 900 + "<private>\n" + "the plan\n" * 5_000 + "</private>\nafter it\n" + "end\n" * 10
    clean = Redactor(b"test").clean
    (found,) = exchanges([user("a"), agent("", bash("1", "make")), back("1", text)], lambda given: clean(given).text)
    assert "the plan" not in repr(found)
    assert found.actions[0].output.endswith("end")


# --- outputs -----------------------------------------------------------------------------------------------


def test_a_window_is_cut_at_line_borders_and_says_how_much_is_missing() -> None:
    assert window("a\n" * 10, 5, 5) == "a\na\n[… 13 characters …]\na\na\n"
    assert window("short", 5, 5) == "short"


def test_a_window_into_a_text_without_any_border_is_empty() -> None:
    assert window("x" * 100, 10, 10) == "\n[… 100 characters …]\n"


@given(text=st.text(st.sampled_from("ab \n<private>/"), max_size=300), head=st.integers(0, 40), tail=st.integers(0, 40))
@settings(max_examples=200, deadline=None)
def test_a_window_never_holds_more_than_the_two_ends(text: str, head: int, tail: int) -> None:
    cut = window(text, head, tail)
    assert cut == text if len(text) <= head + tail else len(cut) <= head + tail + 30


def test_a_failing_output_keeps_its_errors_and_its_last_lines() -> None:
    noise = [f"compiling {at}" for at in range(500)]
    text = "\n".join(
        [*noise, "main.go:3: undefined: Foo", *noise, "linking", "\x1b[31mexit status 1\x1b[0m", "==", "bye"]
    )
    assert telling(text, failed=True).splitlines() == [
        "main.go:3: undefined: Foo",
        "linking",
        "exit status 1",
        "bye",
    ]
    assert telling(text, failed=False).splitlines() == ["linking", "exit status 1", "bye"]


def test_what_a_shell_tool_says_about_itself_tells_nothing() -> None:
    about = "Error: (none)\nExit Code: 0\nSignal: 0\nBackground PIDs: (none)\nProcess Group PGID: 27212"
    output = f"Directory: (root)\nOutput: 2\n{about}"
    assert telling(output, failed=False) == "Output: 2"
    assert telling("3 passed\nShell cwd was reset to /home/me/app", failed=False) == "3 passed"


def test_an_output_stays_within_its_limit() -> None:
    assert len(
        telling("error in this line\n" * 3 + "".join(f"error {at} {'x' * 300}\n" for at in range(50)), True)
    ) <= (OUTPUT_CHARS)


def test_progress_that_overwrites_itself_is_kept_as_it_ended() -> None:
    assert telling("10%\r50%\r100% done\nok", failed=False) == "100% done\nok"


@pytest.mark.parametrize("text", ["0 errors", "no failures", "12 passed, 0 failed", "all good"])
def test_an_output_that_denies_errors_does_not_sound_failed(text: str) -> None:
    assert not sounds_failed(text)
    assert not denies(text)


@pytest.mark.parametrize("text", ["--- FAIL: TestX", "1 failed, 3 passed", "error: cannot find", "exit status 2"])
def test_an_output_that_names_a_failure_denies_success(text: str) -> None:
    assert denies(text)


def test_only_a_result_that_begins_with_a_refusal_was_refused() -> None:
    assert refused("Permission to use Bash has been denied.")
    assert not refused("docs: The user doesn't want to be asked twice")


def test_ends_keep_more_of_the_beginning() -> None:
    kept = ends("start " + "middle " * 1_000 + "stop", 400)
    assert kept.startswith("start middle")
    assert kept.endswith("middle stop")
    assert len(kept) < 440
