"""Paraphrases say the same thing; texts that differ in one telling word do not (R10, T28)."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grounded_mcp.recall.gist import gist

EXTRA = 2


def same(one: str, other: str, extra: int = EXTRA) -> bool:
    return gist(one).same_as(gist(other), extra)


SAID = "tests run with `make check`"


@pytest.mark.parametrize(
    "other",
    [
        "run the tests with `make check`",
        "Tests are run with make check.",
        "Use `make check` to run the tests",
        "`make check` runs the test suite",
        "the test command is `make check`",
        "To test, run `make check`.",
        "Always run all tests through make check!",
        "Make sure to run our tests with make check",
        "testing is done with make check",
        "We execute the tests via 'make check'",
        "make check — runs the project's tests",
        "Unit tests run with make check",
    ],
)
def test_t28_a_paraphrase_says_the_same(other: str) -> None:
    assert same(SAID, other)
    assert same(other, SAID)


@pytest.mark.parametrize(
    ("difference", "one", "other"),
    [
        ("a number", "port is 8090", "port is 8091"),
        ("a number with a unit", "the request timeout is 30s", "the request timeout is 60s"),
        ("a version", "v2.3 breaks the login page", "v2.30 breaks the login page"),
        ("a number more", "retry failed uploads with backoff", "retry failed uploads with backoff 3 times"),
        ("a negation", SAID, "tests do not run with `make check`"),
        ("a contraction", "push to the main branch directly", "don't push to the main branch directly"),
        ("never", "deploys happen on Friday evenings", "deploys never happen on Friday evenings"),
        ("without", "build images with cache enabled", "build images without cache enabled"),
        ("a negation in another language", "tests laufen mit make check", "tests laufen nicht mit make check"),
        ("what is negated", "Use pnpm, not npm", "Use npm, not pnpm"),
        ("a capital", "Plan A costs five euros", "Plan B costs five euros"),
        ("a capital at the beginning", "A costs five euros a month", "B costs five euros a month"),
        ("a capital more", "the plan costs five euros a month", "the plan C costs five euros a month"),
        ("a small letter", "drive option b costs five euros", "drive option a costs five euros"),
        ("a digit", "writer 1 stores fact number 3", "writer 2 stores fact number 3"),
        ("a country", "the EU bucket is in the first region", "the US bucket is in the first region"),
        ("an identifier", "getUserById returns null for guests", "getUserByName returns null for guests"),
        ("the spelling of an identifier", "the user_id column is indexed", "the userId column is indexed"),
        ("a host", "deploy to web1.example.com over ssh", "deploy to web2.example.com over ssh"),
        ("a flag", "run pytest quietly with -q set", "run pytest quietly with -x set"),
        ("a language", "C breaks the linker step", "C++ breaks the linker step"),
        ("an environment", "log level is debug in staging", "log level is debug in production"),
        ("an environment more", SAID, "tests run with `make check` on CI"),
        ("a test place", "the test database runs on alpha", "the database runs on alpha"),
        ("a restriction", "merge after review by owners", "merge only after review by owners"),
        ("a doubt", "use the v1 endpoint for exports", "deprecated: use the v1 endpoint for exports"),
        ("a word exchanged", "billing backups go to Frankfurt nightly", "orders backups go to Frankfurt nightly"),
        ("who needs whom", "alpha depends on beta builds", "beta depends on alpha builds"),
        ("who reviews whom", "Ana reviews the code of Bo", "Bo reviews the code of Ana"),
        ("the direction", "migrate data from mysql to postgres", "migrate data from postgres to mysql"),
        ("which port is which", "host port 8090 maps to container port 80", "host port 80 maps to container port 8090"),
        ("a short text longer", "cache is redis", "cache is a redis cluster"),
        ("more than two words more", SAID, "tests run with `make check` inside the builder container image"),
        ("the only word", "use tabs", "use spaces"),
        ("no words at all", "…", "!!"),
    ],
)  # fmt: skip
def test_t28_texts_that_differ_in_a_telling_word_do_not_say_the_same(difference: str, one: str, other: str) -> None:
    assert not same(one, other), difference
    assert not same(other, one), difference


def test_the_same_negation_in_other_words_says_the_same() -> None:
    assert same("never push to the main branch", "don't push to the main branch")
    assert same("you can't push to the main branch", "You cannot push to the main branch.")


def test_an_article_says_nothing_wherever_a_sentence_begins() -> None:
    assert same("A failing build blocks every merge", "a failing build blocks every merge")
    assert same("Merges wait. A failing build blocks them", "Merges wait: failing build blocks them", 0)
    assert same("What I say is what the build does", "what i say is what the build does")


def test_words_more_are_allowed_up_to_a_number() -> None:
    assert same(SAID, "slow integration tests run with make check", 2)
    assert not same(SAID, "slow integration tests run with make check", 1)
    assert same(SAID, "make check runs tests", 0)


TELLING = (
    "tests",
    "run",
    "with",
    "make",
    "check",
    "on",
    "port",
    "8090",
    "8091",
    "not",
    "CI",
    "the",
    "staging",
    "user_id",
)
SENTENCES = st.lists(st.sampled_from(TELLING), max_size=9).map(" ".join)


@given(SENTENCES, SENTENCES)
def test_saying_the_same_is_mutual(one: str, other: str) -> None:
    assert same(one, other) == same(other, one)
    assert not same(one, other) or gist(one).marks == gist(other).marks


@given(st.text(max_size=60))
def test_any_text_has_a_gist_and_says_the_same_as_itself_if_anything(text: str) -> None:
    said = gist(text)
    assert said.same_as(said, EXTRA) == (said.told != ())
    assert said.marks <= set(said.told)


def test_a_long_text_takes_linear_time() -> None:
    started = time.process_time()
    gist("make sure a-b_c 'x.y' " * 20_000)
    gist("-" * 200_000 + "a:" * 100_000)
    assert time.process_time() - started < 2.0
