"""When a pack has anything to stand on: how near the nearest is, and which of the task's words it holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grounded_mcp.pack.settled import SettledOptions, settled
from grounded_mcp.packing import PackItem
from grounded_mcp.text import Analyzer
from grounded_mcp.values import Kind, Vote
from tests.candidates import candidate, recall

OPTIONS = SettledOptions(named=0.62, distinct=0.5, unnamed=0.72, unknown=0.4)
INDEX = Analyzer().index
WORDS = st.lists(st.sampled_from(["berth", "tide", "ship", "quay", "pilot"]), max_size=5).map(" ".join)


def found(text: str, cosine: float | None, key: str = "notes.md", kind: Kind = "doc") -> PackItem:
    votes = () if cosine is None else (Vote("vector", 0, cosine, 0.5),)
    one = candidate(kind, "d1", tokens=" ".join(INDEX(text)), votes=votes, key=key)
    return PackItem(one, "committed_doc", "a rule", 0, 0, 0.5)


def enough(task: str, *items: PackItem, mode: Any = "hybrid") -> bool:
    words = tuple((word.surface, word.terms) for word in Analyzer().query_words(task))
    return settled(items, recall(words=words, mode=mode), OPTIONS, INDEX)


@pytest.mark.parametrize(
    ("cosine", "tokens", "bears"),
    [
        (0.72, "", True),
        (0.71, "", False),
        (0.51, "berth tide", True),
        (0.50, "berth tide", False),
        (0.22, "berth tide ship quay", True),
        (0.21, "berth tide ship quay", False),
        (None, "berth tide ship quay", False),
    ],
)
def test_a_passage_bears_on_a_task_by_its_cosine_and_half_its_share_of_the_words(
    cosine: float | None, tokens: str, bears: bool
) -> None:
    """Of four words, two that one passage has weigh ln(40.5 / 1.5 + 1) and two that none has ln(40.5 / 0.5 + 1)."""
    assert enough("berth tide ship quay", found(tokens, cosine)) is bears


def test_a_name_of_three_words_is_one_thing_so_that_less_is_enough_for_what_holds_it() -> None:
    """What holds the name holds its words, too: four of the task's six, by weight .60 of it."""
    task = "rename the setting vector_cache_mb"
    assert enough(task, found("vector_cache_mb = 64", 0.20))
    assert not enough(task, found("vector_cache_mb = 64", 0.19))
    assert not enough(task, found("a cache of vectors", 0.45), found("vector_cache_mb = 64", 0.05))
    assert not enough("rename the setting max_size", found("max_size = 64", 0.2))
    assert enough("rename the setting max_size", found("max_size = 64", 0.4))


def test_a_word_that_everything_holds_says_next_to_nothing_and_a_rare_one_much() -> None:
    """Of 40 passages, all hold "berth" and one holds "tide"."""
    others = [found("berth", 0.1)] * 39
    assert not enough("berth tide", *others, found("berth", 0.7))
    assert enough("berth tide", *others, found("berth tide", 0.23))


def test_what_was_not_found_counts_as_holding_none_of_the_words() -> None:
    """In a memory of two notes that are both about berths, "berth" is no common word."""
    assert enough("berth tide", found("berth", 0.54), found("berth", 0.1))


def test_a_word_in_a_files_own_path_counts_twice() -> None:
    task, held = "tide berth ship", "berth ship"
    assert not enough(task, found(held, 0.35, key="src/quay.py"))
    assert enough(task, found(held, 0.35, key="src/berth.py"))
    assert enough(task, found("ship", 0.35, key="src/berth.py"))
    assert not enough(task, found(held, 0.35, key="berth", kind="session"))


@pytest.mark.parametrize(
    ("cosine", "tokens", "bears"),
    [
        (0.62, "load_tides", True),
        (0.28, "load_tides", True),
        (0.27, "load_tides", False),
        (0.90, "pilot", False),
    ],
)
def test_a_task_that_names_a_thing_needs_it_to_be_there_and_then_less_of_the_rest(
    cosine: float, tokens: str, bears: bool
) -> None:
    assert enough("load_tides pilot", found(tokens, cosine)) is bears


@pytest.mark.parametrize(
    ("task", "tokens", "bears"),
    [
        ("berth tide ship", "berth tide ship", True),
        ("berth tide ship", "berth tide", False),
        ("load_tides ship quay pilot", "load_tides", False),
        ("load_tides ship quay", "load_tides", True),
        ("load_tides ship quay pilot", "load_tides ship", True),
    ],
)
def test_where_only_words_were_searched_the_cosine_counts_as_one_that_is_neither_near_nor_far(
    task: str, tokens: str, bears: bool
) -> None:
    assert enough(task, found(tokens, None), mode="lexical") is bears


@given(WORDS, WORDS, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
@settings(max_examples=60)
def test_what_is_nearer_never_bears_less(task: str, tokens: str, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert enough(task, found(tokens, low)) <= enough(task, found(tokens, high))


@given(WORDS, st.lists(WORDS, max_size=5))
@settings(max_examples=60)
def test_a_task_is_answered_by_one_that_is_the_same_text(task: str, others: list[str]) -> None:
    assert enough(task, found(task, 1.0), *(found(each, 0.2) for each in others))
