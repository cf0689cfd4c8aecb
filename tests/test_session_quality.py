"""How much a session is worth finding again: one test for each rule of the table."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from grounded_mcp.ingest.transcripts.exchanges import Action, Exchange, Step
from grounded_mcp.ingest.transcripts.quality import RULES, Tallied, judge

EDIT = Action("edit", "Edit", files=("a.py",), ok=True)
LOOK = Action("read", "Read", files=("a.py",), ok=True)
LONG = "The reason is this. " * 10


def ran(command: str, ok: bool | None = True) -> Action:
    return Action("command", "Bash", command, ok=ok)


def exchange(asked: str, *steps: Step, interrupted: bool = False) -> Exchange:
    return Exchange(1, 1, "u", 0, None, None, asked, steps, None, interrupted, (1, 2))


def judged(*exchanges: Exchange) -> tuple[str, str]:
    tallied = Tallied()
    for each in exchanges:
        tallied = tallied.plus(each)
    return judge(tallied)


def test_nothing_said_is_low() -> None:
    assert judged() == ("low", "nothing said")
    assert judged(exchange("is anybody there, and will they fix the build?")) == ("low", "nothing said")


def test_small_talk_is_low() -> None:
    assert judged(exchange("hi", "Hello! How can I help?")) == ("low", "small talk")


def test_an_answer_of_some_length_is_no_small_talk() -> None:
    assert judged(exchange("why is it slow?", LONG * 2)) == ("medium", "otherwise")


def test_a_last_question_without_answer_is_low() -> None:
    assert judged(exchange("look at it", LOOK, "Hm."), exchange("and now fix it")) == ("low", "unanswered")


def test_an_unanswered_question_after_a_commit_takes_nothing_away() -> None:
    done = exchange("fix it", EDIT, ran("git commit -am fix"))
    assert judged(done, exchange("and the next one")) == ("high", "reached")


def test_a_session_that_was_stopped_and_not_taken_up_is_low() -> None:
    assert judged(exchange("refactor it", EDIT, "Next I", interrupted=True)) == ("low", "abandoned")


def test_a_session_that_went_on_after_it_was_stopped_is_not_abandoned() -> None:
    stopped = exchange("refactor it", EDIT, interrupted=True)
    assert judged(stopped, exchange("no, like this", EDIT, "Done.")) == ("medium", "otherwise")


def test_a_session_in_which_most_fails_is_low() -> None:
    steps = [ran("make", False), ran("make", False), ran("make all", False), LOOK, "It does not build."]
    assert judged(exchange("build it", *steps)) == ("low", "mostly failing")
    assert judged(exchange("build it", *steps, LOOK, LOOK)) == ("medium", "otherwise")


def test_a_commit_is_an_outcome() -> None:
    assert judged(exchange("fix it", EDIT, ran("git add -A && git commit -m fix"), "Done.")) == ("high", "reached")
    assert judged(exchange("fix it", EDIT, ran("git commit -m fix", False), "Hm.")) == ("medium", "otherwise")


@pytest.mark.parametrize("command", ["pytest -q", "npm run lint", "go build ./..."])
def test_a_check_that_passes_after_the_last_edit_is_an_outcome(command: str) -> None:
    assert judged(exchange("fix it", EDIT, ran(command), "Done.")) == ("high", "reached")


def test_a_check_that_passed_before_the_last_edit_is_none() -> None:
    assert judged(exchange("fix it", EDIT, ran("pytest"), EDIT, "Done.")) == ("medium", "otherwise")
    assert judged(exchange("run the tests", ran("pytest"), "They pass.")) == ("medium", "otherwise")


def test_a_check_of_which_nobody_knows_how_it_ended_is_none() -> None:
    assert judged(exchange("fix it", EDIT, ran("pytest", None), "Done.")) == ("medium", "otherwise")


def test_a_conclusion_after_some_work_is_an_outcome() -> None:
    assert judged(exchange("why does it fail?", LOOK, LOOK, LOOK, LONG)) == ("high", "reached")
    assert judged(exchange("why does it fail?", LOOK, LONG)) == ("medium", "otherwise")
    assert judged(exchange("why does it fail?", LOOK, LOOK, LOOK, LONG, LOOK)) == ("medium", "otherwise")
    assert judged(exchange("why does it fail?", LOOK, LOOK, LOOK, LONG, interrupted=True)) == ("low", "abandoned")


def test_an_outcome_among_mostly_failing_actions_is_medium() -> None:
    steps = [ran("make", False), ran("make", False), ran("make x", False), ran("git commit -m x")]
    assert judged(exchange("fix it", *steps)) == ("medium", "otherwise")


def test_what_was_refused_has_not_failed() -> None:
    refused = replace(EDIT, ok=None, refused=True)
    assert judged(exchange("go", refused, refused, refused, refused, "Fine.")) == ("medium", "otherwise")


def test_a_refused_edit_leaves_the_proof_as_it_was() -> None:
    refused = replace(EDIT, ok=None, refused=True)
    assert judged(exchange("go", EDIT, ran("pytest"), refused, "Fine.")) == ("high", "reached")


def test_a_tally_survives_a_checkpoint() -> None:
    tallied = Tallied().plus(exchange("fix it", LOOK, EDIT, ran("pytest"), LONG))
    assert Tallied(**json.loads(json.dumps(asdict(tallied)))) == tallied
    assert (tallied.exchanges, tallied.asked, tallied.actions, tallied.edits, tallied.commands) == (1, 1, 3, 1, 1)


def test_a_later_part_of_an_exchange_is_not_another_question() -> None:
    first = replace(exchange("go on", EDIT), continues=True)
    second = replace(exchange("go on", "Done."), part=2)
    tallied = Tallied().plus(first).plus(second)
    assert (tallied.exchanges, tallied.asked, tallied.words) == (1, 1, 3)


def test_every_session_is_judged_by_a_rule_of_the_table() -> None:
    assert [name for name, _, _ in RULES][-1] == "otherwise"
    assert len({name for name, _, _ in RULES}) == len(RULES)
