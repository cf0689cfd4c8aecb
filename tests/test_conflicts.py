"""Two statements that cannot both hold are found; in doubt nothing is said (T28)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grounded_mcp.knowledge.conflicts import clash
from tests.asking import Asker, asker


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("port is 8090", "port is 8091"),
        ("The API port is 8090.", "The API port is 8091."),
        ("The API listens on port 8090", "API port is 8091"),
        ("The API listens on 8090", "The API listens on port 8091"),
        ("8090 is the port", "port is 8091"),
        ("PORT=8090", "port: 8091"),
        ("The port number is 8090", "The port is 8091"),
        ("request timeout is 30s", "The request timeout is 60 seconds"),
        ("Sessions expire after 30 minutes", "Sessions expire after 2 hours"),
        ("Requires Python 3.11", "Requires Python 3.12"),
        ("The project uses npm", "The project uses pnpm"),
        ("Use tabs", "Use spaces"),
        ("Use 2 spaces for indentation", "Use 4 spaces for indentation"),
        ("The default branch is main", "The default branch is develop"),
        ("The owner of the billing service is Ann Lee", "The owner of the billing service is Bob Ray"),
        ("The staging API is at api.example.com", "The staging API is at api2.example.org"),
        ("The docs live in site/docs", "The docs live in manual/en"),
        ("The config file is config.toml", "The config file is settings.toml"),
        ("The deploy command is `make ship`", "The deploy command is `make release`"),
        ("push to the main branch directly", "don't push to the main branch directly"),
        ("deploys happen on Friday evenings", "deploys never happen on Friday evenings"),
        ("Tests run with `make check`", "Tests do not run with `make check`"),
        ("We use Redis for sessions", "We no longer use Redis for sessions"),
        ("Force pushes are allowed", "Force pushes are forbidden"),
        ("The response cache is enabled", "The response cache is disabled"),
        ("Code review is required", "Code review is optional"),
        ("Avoid mocks in tests", "Use mocks in tests"),
        ("The API does not support pagination", "The API supports pagination"),
        ("CI runs on port 8090 in staging", "CI runs on port 8091 in staging"),
        ("The database host is db-1", "The database host is db-2"),
        ("Max retries: 3", "Max retries: 5"),
        ("The cluster has 3 replicas", "The cluster has 5 replicas"),
        ("The package manager is uv", "The package manager is poetry"),
        ("Setup notes. The API port is 8090.", "The API port is 8091."),
        ("The API uses Postgres", "The API uses MySQL"),
        ("The build takes 5 minutes", "The build takes 10 minutes"),
        ("The release date is 2026-10-01", "The release date is 2026-10-08"),
        ("The Node version is 20.1", "The Node version is 22.3"),
        ("Standup is at 10:00", "Standup is at 11:00"),
        ("API base URL is https://a.example.com/v1", "The API base URL is https://b.example.com/v1"),
        ("Migrations run automatically on deploy", "Migrations do not run automatically on deploy"),
        ("Stop using Redis for sessions", "Use Redis for sessions"),
        ("The upload limit is 10 MB", "The upload limit is 25 MB"),
        ("Nunca usar la rama main", "usar la rama main"),
    ],
)
def test_t28_statements_that_cannot_both_hold_clash(one: str, other: str) -> None:
    assert clash(one, other) is not None
    assert clash(other, one) == clash(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("port is 8090", "the port is 8090"),
        ("The API port is 8090", "The admin port is 8091"),
        ("The staging port is 8090", "The production port is 8091"),
        ("Service 1 listens on port 8010", "Service 2 listens on port 8020"),
        ("Service 1 listens on port 8010", "Service 2 listens on port 8010"),
        ("tests run with `make check`", "do not use make check on CI"),
        ("timeout is 60 seconds", "timeout is 1 minute"),
        ("Requires Python 3.11", "Requires Python 3.11.4"),
        ("Docs live in docs/", "Docs live in docs/en"),
        ("The project uses pytest", "The project uses ruff"),
        ("The API is fast", "The API is written in Go"),
        ("The API is fast", "The API is stateless"),
        ("The deploy script is slow", "The deploy script is fragile"),
        ("The owner is on vacation", "The owner is Ann"),
        ("Issue 5 is fixed", "Issue 6 is fixed"),
        ("The crash is in issue 5", "The crash is in issue 6"),
        ("v2.3 breaks the login page", "v2.30 breaks the login page"),
        ("Ticket KB-4156 is fixed", "Ticket KB-4157 is fixed"),
        ("The pool has at least 3 workers", "The pool has at least 5 workers"),
        ("Startup takes more than 30 seconds", "Startup takes more than 60 seconds"),
        ("Tests are in tests/unit", "Tests are in tests/integration"),
        ("The parser is in src/parser.py", "The lexer is in src/lexer.py"),
        ("The API uses Postgres", "The API uses Redis"),
        ("Gateway settings. The port is 8090.", "Worker settings. The port is 8091."),
        ("port is not 8090", "port is not 8091"),
        ("port is not 8090", "port is 8091"),
        ("The port is 8090 for the API", "The port is 8091 for the worker"),
        ("Is the port 8090?", "The port is 8091"),
        ("The API needs Redis", "Redis does not need the API"),
        ("Python 3.11 is supported", "Python 3.12 is supported"),
        ("CI uses Docker", "CI is not required"),
        ("Use make check", "Use make lint"),
        ("The port is configurable", "The port is 8090"),
        ("Deploys go through Heron", "Deploys go through Falcon"),
        ("The database is Postgres 16", "The database is slow"),
        ("The host is db.example.com", "The host is db.example.com:5432"),
        ("v2.3", "2.3"),
        ("The version is v2.3", "The version is 2.3"),
        ("The host is localhost", "The host is 127.0.0.1"),
        ("Run the tests before pushing", "Run the linter before pushing"),
        ("The build is green", "The build is fast"),
        ("Step 1 builds the image", "Step 2 builds the image"),
        ("Reviews are optional", "Reviews are not required"),
        ("Alice owns billing", "Bob owns search"),
        ("The team has 3 members in Berlin", "The team has 5 members in Paris"),
        ("Tests need Docker", "Tests do not need the network"),
        ("The frontend talks to Auth", "The frontend talks to Billing"),
        ("The cache is Redis", "The cache is shared"),
        ("User 1 likes topic 3", "User 2 likes topic 5"),
        ("Supports Python 3.11", "Supports Python 3.12"),
        ("The commit is in branch fix-1", "The commit is in branch fix-2"),
        ("The meeting is on Monday", "The meeting is in Berlin"),
    ],
)
def test_t28_statements_that_may_both_hold_do_not_clash(one: str, other: str) -> None:
    assert clash(one, other) is None
    assert clash(other, one) is None


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("port is 8090", "port is 8091", "value"),
        ("port is 8090", "port is not 8090", "negation"),
        ("The response cache is enabled", "The response cache is disabled", "negation"),
    ],
)
def test_a_clash_says_what_kind_it_is(one: str, other: str, kind: str) -> None:
    assert clash(one, other) == kind


VOCABULARY = "the port api is 8090 8091 not in docs/ v2.3 uses npm main branch, 30s: ; = `make`"
WORDS = st.lists(st.sampled_from(VOCABULARY.split())).map(" ".join)


@settings(max_examples=200)
@given(WORDS, WORDS)
def test_a_clash_is_mutual_and_no_sentence_clashes_with_itself(one: str, other: str) -> None:
    assert clash(one, other) == clash(other, one)
    assert ";" in one or clash(one, one) is None


@settings(max_examples=100)
@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_can_be_compared(one: str, other: str) -> None:
    assert clash(one, other) in (None, "value", "negation")


@pytest.mark.parametrize("unit", ["port is 8090. ", "not is = : ", "a", "8 s ", "is the ", "\n- "])
def test_comparing_takes_time_linear_in_the_texts(unit: str) -> None:
    clash(unit, unit)
    began = time.perf_counter()
    clash(unit * (20_000 // len(unit)), "port is 8091. " * 1_400)
    assert time.perf_counter() - began < 2.0


# --- through the tools ------------------------------------------------------------------------------------


@pytest.fixture
def ask(tmp_path: Path, project: Path) -> Iterator[Asker]:
    with asker(tmp_path / "home", project) as ask:
        yield ask


PARAPHRASES = (
    "tests run with `make check`",
    "run the tests with `make check`",
    "Tests are run with make check.",
    "Use `make check` to run the tests",
    "`make check` runs the test suite",
    "the test command is `make check`",
    "To test, run `make check`.",
    "Always run all tests through make check!",
    "testing is done with make check",
)


def test_t28_paraphrases_collapse_ports_are_kept_as_a_conflict_and_the_negation_is_not_merged(ask: Asker) -> None:
    said = {text: ask("remember_fact", text=text)["id"] for text in PARAPHRASES}
    negation = ask("remember_fact", text="do not use make check on CI")
    first = ask("remember_fact", text="port is 8090")
    second = ask("remember_fact", text="port is 8091")
    assert "conflicts" not in negation
    assert "conflicts" not in first
    assert second["conflicts"] == [{"open": first["id"], "title": "port is 8090"}]
    tests = ask("ground_recall", query="how do tests run: make check", limit=5, sources=["fact"])["data"]
    ids = [card["id"] for card in tests]
    assert 1 <= len(set(ids) & set(said.values())) <= 2
    assert negation["id"] in ids
    ports = {card["id"]: card for card in ask("ground_recall", query="which port", limit=5, sources=["fact"])["data"]}
    assert ports[first["id"]]["conflicts"] == [{"open": second["id"], "title": "port is 8091"}]
    assert ports[second["id"]]["conflicts"] == [{"open": first["id"], "title": "port is 8090"}]
    assert all("conflicts" not in card for card in tests)


def test_t28_a_learning_that_contradicts_a_fact_is_told_on_both_and_on_opening(ask: Asker) -> None:
    fact = ask("remember_fact", text="The package manager is npm.")["id"]
    learnt, text = ask.both("record_learning", claim="The package manager is pnpm.", outcome="verified")
    assert learnt["conflicts"] == [{"open": fact, "title": "The package manager is npm."}]
    assert f"conflicts with {fact} The package manager is npm." in text
    page, text = ask.both("open_memory", id=learnt["id"])
    assert page["conflicts"] == learnt["conflicts"]
    assert f"conflicts with {fact} The package manager is npm." in text
    (card,) = ask("ground_recall", query="package manager")["data"]
    assert card["conflicts"] == [{"open": learnt["id"], "title": "The package manager is pnpm."}]


@pytest.mark.parametrize("action", ["delete", "retire"])
def test_a_conflict_ends_with_either_side(ask: Asker, action: str) -> None:
    first = ask("remember_fact", text="port is 8090")["id"]
    second = ask("remember_fact", text="port is 8091")["id"]
    ask("forget_memory", id=second, action=action)
    (card,) = ask("ground_recall", query="port")["data"]
    assert card["id"] == first
    assert "conflicts" not in card


def test_a_conflict_ends_when_one_side_is_replaced_and_the_copies_of_it_go_along(ask: Asker) -> None:
    wrong = [ask("remember_fact", text=text)["id"] for text in ("The API port is 8090.", "API port: 8090")]
    right = ask("remember_fact", text="The API port is 8091.", replaces=wrong[0])
    assert sorted(right["superseded"]) == sorted(wrong)
    assert "conflicts" not in right
    (card,) = ask("ground_recall", query="API port")["data"]
    assert card["id"] == right["id"]
    history = ask("open_memory", id=right["id"])["history"]
    assert {old["id"] for old in history} == set(wrong)


def test_a_conflict_stays_within_a_scope(ask: Asker) -> None:
    ask("remember_fact", text="port is 8090", scope="global")
    assert "conflicts" not in ask("remember_fact", text="port is 8091")


def test_a_copy_under_a_topic_key_of_its_own_is_not_replaced(ask: Asker) -> None:
    api = ask("remember_fact", text="port is 8090", topic_key="api port")["id"]
    other = ask("remember_fact", text="the port: 8090", topic_key="admin port")["id"]
    assert ask("remember_fact", text="port is 8091", topic_key="api port")["superseded"] == [api]
    assert ask("open_memory", id=other)["state"] == "active"
