"""What a weekly digest says: sentences of the conversations as they stand there, with where they stand."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grounded_mcp.ingest.digests import MAX_TOKENS, Run, Told, monday, week_of, weekly
from grounded_mcp.ingest.excerpts import Excerpts, Quote, excerpts
from grounded_mcp.ingest.phrases import decides
from grounded_mcp.text import estimate_tokens
from grounded_mcp.values import Clean, Evidence, Item, Passage, Record

WEEK = "2026-W05"
THURSDAY = datetime(2026, 1, 29, 12, 0, tzinfo=UTC).timestamp()
SCOPE = "project:quayside"


def said(*bodies: str, turns: int = 1) -> tuple[Passage, ...]:
    """One exchange of several passages."""
    return tuple(Passage(seq, Clean(body), "", turns, turns + 1) for seq, body in enumerate(bodies))


def session(id: str = "ses_1", **attrs: str) -> Item:
    given = {"agent": "claude-code", "quality": "high", "cwd": "/home/me/quayside", **attrs}
    title = given.pop("title", "Why does the ferry skip Sundays?")
    return Item(id=id, kind="session", scope=SCOPE, title=Clean(title), updated_at=THURSDAY, attrs=given)


def attempt(outcome: str, title: str = "Print the ferry timetable in blue", **attrs: str) -> Item:
    held = {"outcome": outcome, "files": "timetable/days.py", **attrs}
    return Item(id="epi_1", kind="episode", scope=SCOPE, title=Clean(title), attrs=held)


def ran(command: str, *, supports: bool = True, kind: Any = "verified outcome", place: int = 1) -> Run:
    return Run(f"scr_{len(command)}", command, Evidence("ses_1", place, supports, kind, THURSDAY, Clean("")))


def digest(*told: Told, runs: tuple[Run, ...] = (), lines: int = 30) -> Record:
    return weekly(WEEK, SCOPE, told, runs, lines=lines, content_hash="h")


def section(record: Record, name: str) -> str:
    return "".join(passage.body for passage in record.passages if passage.heading == name)


# --- decisions --------------------------------------------------------------------------------------------

AGENT_DECIDES = [
    "I decided to keep the timetable in one file for now.",
    "We will use SQLite for the timetable and nothing else.",
    "Going with two tables, one for each direction of the ferry.",
    "Let's go with the smaller of the two lighthouse lamps.",
    "The reason is that the harbour closes the gate at nine.",
    "Changed `load()` to read the days from TOML instead of JSON.",
    "**Storage** - Keep the days in memory rather than on disk.",
    "The loader now uses `tomllib` instead of a parser of its own.",
    "I put the lamp in its own module because the pier imports it.",
    "I switched to the official image since the other one is gone.",
    "Option 2 was chosen for its smaller footprint on the quay.",
]
AGENT_DOES_NOT = [
    "We could use SQLite for the timetable instead of JSON files.",
    "Should we go with the smaller of the two lighthouse lamps?",
    "Option B: use one table instead of two for the ferry times.",
    "The loader returns an empty list instead of an error here.",
    "Consider a queue instead of a lock for the harbour gate.",
    "Updated the test to expect blue instead of green for ferries.",
    "The bug is that it now uses local time instead of UTC there.",
    "Let me check the loader instead of guessing what it does now.",
    "I chose blue.",
    "I'll use the harbour skill to look at the pier before anything.",
    "If the gate is closed, we will use the side entrance instead.",
]
PERSON_DECIDES = [
    "let's drop the '-' before each departure in the timetable",
    "let's use true/false and not on/off for the night boats",
    "from now on every timetable is printed in blue, not green",
    "no, we don't want a queue there, a lock will do for now",
    "I'd go with option 4 now as a simple improvement for ferries",
    "please write the plan into docs/ instead of the repository root",
    "never commit the generated timetable, it belongs to the build",
]
PERSON_DOES_NOT = [
    "can we rename the timetable to departures everywhere please?",
    "we need to fix the merge conflicts from our parent branch now",
    "should we go with option 4 or with option 2 for the ferries",
    "I wonder if we should use a queue instead of a lock there",
    "the ferry is printed on Mondays, why did you go with Sundays",
    "please run all the checks again and tell me what comes out",
]


@pytest.mark.parametrize("sentence", AGENT_DECIDES)
def test_an_agent_decides_where_it_says_so(sentence: str) -> None:
    assert decides(sentence, by_person=False)


@pytest.mark.parametrize("sentence", AGENT_DOES_NOT)
def test_weighing_asking_and_reporting_is_not_deciding(sentence: str) -> None:
    assert not decides(sentence, by_person=False)


@pytest.mark.parametrize("sentence", PERSON_DECIDES)
def test_a_person_decides_by_picking_ruling_out_or_keeping(sentence: str) -> None:
    assert decides(sentence, by_person=True)


@pytest.mark.parametrize("sentence", PERSON_DOES_NOT)
def test_a_request_or_a_question_of_a_person_is_not_a_decision(sentence: str) -> None:
    assert not decides(sentence, by_person=True)


def test_a_question_that_a_person_answered_is_quoted_with_the_answer() -> None:
    line = 'User has answered your questions: "Where should the diagram go?"="docs/generated/". You can now continue.\n'
    (quote,) = excerpts(said("Asked: Draw the harbour, please\n", line)).decisions
    assert quote == Quote('"Where should the diagram go?"="docs/generated/"', 1, by_person=True)


@pytest.mark.parametrize(
    "answered",
    [
        '"Plan ready. What would you like to do next?"="Run the review"',
        '"Which of the two piers is meant?"="what piers?"',
    ],
)
def test_an_answer_about_procedure_or_with_a_question_is_no_decision(answered: str) -> None:
    assert (
        excerpts(said("Asked: Draw the harbour\n", f"User has answered your questions: {answered}.\n")).decisions == ()
    )


def test_a_decision_said_twice_is_quoted_once_and_the_persons_first() -> None:
    found = excerpts(
        said(
            "Asked: let's drop the green and print the ferry timetable in blue\n",
            "Changed the loader to read TOML instead of JSON.\n",
            "I changed the loader to read TOML instead of JSON now.\n",
        )
    )
    assert [quote.by_person for quote in found.decisions] == [True, False]


@pytest.mark.parametrize(
    "other",
    ["I decided to paint the bollard blue this summer.", "I decided not to paint the anchor blue this summer at all."],
)
def test_decisions_that_differ_in_a_word_or_a_negation_are_two(other: str) -> None:
    told = f"I decided to paint the anchor blue this summer.\n{other}\n"
    assert len(excerpts(said("Asked: paint\n", told)).decisions) == 2


def test_of_a_chatty_conversation_at_most_four_decisions_are_quoted() -> None:
    names = ("anchor", "bollard", "cleat", "davit", "fender", "gangway")
    told = "".join(f"I decided to paint the {name} of {name} blue before {name}.\n" for name in names)
    assert len(excerpts(said("Asked: paint\n", told)).decisions) == 4


# --- what is quoted ---------------------------------------------------------------------------------------


def test_calls_code_tables_and_lines_that_lost_their_middle_are_never_quoted() -> None:
    found = excerpts(
        said(
            "Asked: Implement the following plan: [commit message removed]\n",
            "Ran: git log --grep 'we decided to use blue instead of green' -> ok\n",
            "Grep: we will use blue instead of green, everywhere here\n",
            "| We will use blue | instead of green in all of it |\n",
            "```\nWe will use blue instead of green in this code block.\n```\n",
            "We will use blue instead of [... 900 characters cut ...] green there.\n",
        )
    )
    assert found == Excerpts()


def test_a_line_that_was_wrapped_is_one_sentence() -> None:
    (quote,) = excerpts(
        said("Asked: x\n", "We will use the smaller lamp\nfor the lighthouse from spring on.\n")
    ).decisions
    assert quote.text == "We will use the smaller lamp for the lighthouse from spring on."


def test_a_quote_points_at_the_passage_that_it_begins_in() -> None:
    found = excerpts(said("Asked: x\nFine. ", "I decided to paint ", "the whole pier blue in June. "))
    assert [quote.seq for quote in found.decisions] == [1]


def test_the_conclusion_is_a_statement_after_the_last_call_and_not_that_checks_passed() -> None:
    found = excerpts(
        said(
            "Asked: Fix the ferry\n",
            "The ferry timetable has a hole on Sundays, which is strange.\n",
            "Ran: make check -> ok\n",
            "Done! All tests pass and lint is clean now.\n",
            "Sundays were in SKIPPED by mistake and are printed again.\n",
        )
    )
    assert found.conclusion is not None
    assert found.conclusion.text == "Sundays were in SKIPPED by mistake and are printed again."


def test_what_is_quoted_as_a_decision_is_not_quoted_again_as_the_conclusion() -> None:
    found = excerpts(said("Asked: x\n", "I decided to paint the whole pier blue in June.\n"))
    assert (len(found.decisions), found.conclusion) == (1, None)


def test_a_last_exchange_that_says_nothing_leaves_the_conclusion_to_the_one_before() -> None:
    first = said("Asked: Fix it\n", "Sundays were in SKIPPED by mistake and are printed again.\n")
    last = (Passage(2, Clean("Asked: push\nRan: git push -> ok\nPushed.\n"), "", 9, 10),)
    found = excerpts((*first, *last)).conclusion
    assert found is not None
    assert found.seq == 1


@pytest.mark.parametrize(
    ("end", "open_ends"),
    [
        ("The night boats are not implemented yet.", ["The night boats are not implemented yet."]),
        (
            "Should I print the night boats on a page of their own as well?",
            ["Should I print the night boats on a page of their own as well?"],
        ),
        ("Would you like me to commit all of these changes now?", []),
        ("There are no remaining issues with the ferry timetable.", []),
    ],
)
def test_what_stays_open_is_what_is_to_do_and_what_was_asked_but_no_mere_offer(end: str, open_ends: list[str]) -> None:
    found = excerpts(said("Asked: Fix the ferry\n", f"Sundays are printed again, as they should be.\n{end}\n"))
    assert [quote.text for quote in found.open] == open_ends


# --- the digest -------------------------------------------------------------------------------------------


def test_weeks_are_iso_weeks_in_utc_also_across_the_year() -> None:
    assert week_of(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) == "2026-W01"
    assert week_of(datetime(2027, 1, 3, 23, 59, tzinfo=UTC).timestamp()) == "2026-W53"
    assert week_of(datetime(2027, 1, 4, tzinfo=UTC).timestamp()) == "2027-W01"
    assert monday("2026-W01") == datetime(2025, 12, 29, tzinfo=UTC)
    assert week_of(float("nan")) == "1970-W01"


def test_a_digest_is_named_and_dated_by_its_week_and_names_its_sessions() -> None:
    item = digest(Told(session("ses_1")), Told(session("ses_2", agent="codex", quality="low"))).item
    assert (item.kind, item.scope, item.key, item.title) == ("digest", SCOPE, WEEK, "Week 2026-W05: 2 sessions")
    assert item.attrs["session"] == "ses_1\nses_2"
    assert (item.attrs["agents"], item.attrs["high"], item.attrs["low"]) == ("claude-code\ncodex", "1", "1")
    assert (item.created_at, item.updated_at) == (monday(WEEK).timestamp(), THURSDAY)
    assert item.id == digest(Told(session("ses_9"))).item.id


def test_a_digest_tells_decisions_work_files_commands_and_open_ends() -> None:
    told = Told(
        session(files="/home/me/quayside/timetable/days.py\n/etc/hosts", branch="fix/sundays"),
        Excerpts(
            decisions=(Quote("I decided to print Sundays.", 3), Quote("let's drop the green", 0, by_person=True)),
            conclusion=Quote("Sundays are printed again.", 7),
            open=(Quote("Night boats are not done yet.", 8),),
        ),
        attempt("failed"),
    )
    runs = (
        ran("make check"),
        ran("make check", place=2),
        ran("make check", supports=False, kind="diagnostic episode", place=3),
        ran("make deploy", supports=False),
    )
    record = digest(told, runs=runs)
    assert "".join(passage.body for passage in record.passages) == (
        "Overview:\n"
        "2026-01-26 to 2026-02-01: 1 session (claude-code 1), by quality 1 high.\n"
        "Branches: fix/sundays.\n\n"
        "Decisions:\n"
        "- 2026-01-29 I decided to print Sundays. (ses_1#3)\n"
        "- 2026-01-29 a person: let's drop the green (ses_1)\n\n"
        "What was done:\n"
        "- 2026-01-29 Why does the ferry skip Sundays? [failed]: Sundays are printed again. (ses_1#7)\n\n"
        "Files:\n"
        "- timetable/days.py: edited in 1 session\n\n"
        "Verified commands:\n"
        "- `make check`: worked 2, found fault 1 (scr_10)\n\n"
        "Open ends:\n"
        "- 2026-01-29 failed: Print the ferry timetable in blue (epi_1)\n"
        "- 2026-01-29 Night boats are not done yet. (ses_1#8)\n"
    )


def test_a_quote_with_a_time_of_its_own_is_dated_by_it() -> None:
    monday_noon = datetime(2026, 1, 26, 12, 0, tzinfo=UTC).timestamp()
    told = Told(session(), Excerpts(decisions=(Quote("I decided to print Sundays.", 3, at=monday_noon),)))
    assert "- 2026-01-26 I decided" in section(digest(told), "Decisions")


def test_a_session_of_low_quality_is_counted_and_not_quoted() -> None:
    low = Told(session(quality="low", files="a.py"), Excerpts(decisions=(Quote("I decided nothing.", 1),)))
    record = digest(low)
    assert [passage.heading for passage in record.passages] == ["Overview"]
    assert "1 session (claude-code 1), by quality 1 low." in section(record, "Overview")


@pytest.mark.parametrize(
    ("last", "shown"),
    [
        (attempt("abandoned"), ["abandoned: Print the ferry timetable in blue"]),
        (attempt("unknown"), ["not verified: Print the ferry timetable in blue"]),
        (attempt("unknown", files=""), []),
        (attempt("failed", title="push"), []),
        (attempt("reached"), []),
    ],
)
def test_a_last_attempt_is_open_unless_it_was_reached_or_says_nothing(last: Item, shown: list[str]) -> None:
    text = section(digest(Told(session(), attempt=last)), "Open ends")
    assert re.findall(r"(?m)^- \S+ (.*) \(epi_1\)$", text) == shown


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("Implement the following plan: # Night boats ## Goal Print them", "Night boats"),
        ("Implement the following plan: [commit message removed] ## Context Print…", "Context Print…"),
        ("[commit message removed]", "untitled"),
    ],
)
def test_a_title_is_shown_without_what_stands_before_every_plan(title: str, shown: str) -> None:
    assert f"- 2026-01-29 {shown} (ses_1)" in section(digest(Told(session(title=title))), "What was done")


def test_a_long_section_ends_with_how_much_was_left_out() -> None:
    names = ("anchor", "bollard", "cleat", "davit", "fender")
    files = "\n".join(f"{name}.py" for name in names)
    told = [Told(session(f"ses_{name}", files=files, title=f"Paint the {name}")) for name in names]
    record = digest(*told, lines=3)
    assert section(record, "What was done").splitlines()[-2:] == ["- and 2 more conversations", ""]
    assert section(record, "Files").splitlines()[1:] == ["- anchor.py: edited in 5 sessions", "- and 4 more files"]


def test_where_decisions_are_too_many_peoples_are_kept() -> None:
    names = ("anchor", "bollard", "cleat", "davit")
    told = [
        Told(session(f"ses_{at}"), Excerpts(decisions=(Quote(f"paint {name} {name}s first", at, by_person=at == 3),)))
        for at, name in enumerate(names)
    ]
    text = section(digest(*told, lines=2), "Decisions")
    assert re.findall(r"paint (\w+)", text) == ["anchor", "davit"]


def test_passages_are_short_enough_for_the_model_and_stand_under_their_section() -> None:
    told = [
        Told(session(f"ses_{n}", title=f"Paint pier number {n} of the harbour"), attempt=attempt("failed"))
        for n in range(25)
    ]
    record = digest(*told)
    assert max(estimate_tokens(passage.body) for passage in record.passages) <= MAX_TOKENS
    assert [passage.seq for passage in record.passages] == list(range(len(record.passages)))
    assert {passage.heading for passage in record.passages} == {"Overview", "What was done", "Open ends"}


def test_the_order_in_which_sessions_are_given_changes_nothing() -> None:
    told = [Told(session(f"ses_{n}", title=f"Paint pier {n}")) for n in range(5)]
    assert digest(*told) == digest(*reversed(told))


_LINES = st.sampled_from(
    (
        *AGENT_DECIDES,
        *AGENT_DOES_NOT,
        *(f"Asked: {each}" for each in PERSON_DECIDES),
        "Ran: make check -> ok",
        "```",
        "- **Next**: the night boats are not implemented yet. And more of it!",
        "| a | b |",
        "",
    )
)
_TEXTS = st.lists(_LINES | st.text(max_size=40), max_size=12).map("\n".join)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(_TEXTS, st.integers(1, 3)), max_size=5))
def test_every_quote_stands_in_the_conversation_where_it_points(exchanges: list[tuple[str, int]]) -> None:
    passages = [Passage(seq, Clean(body), "", turn, turn) for seq, (body, turn) in enumerate(exchanges)]
    found = excerpts(passages)
    for quote in (*found.decisions, *found.open, *((found.conclusion,) if found.conclusion else ())):
        rest = "".join(passage.body for passage in passages[quote.seq :]).replace("\n", " ")
        assert quote.text.replace("\n", " ") in rest
        assert rest.index(quote.text) < len(passages[quote.seq].body)
