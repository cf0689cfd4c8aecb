"""What a caller asks becomes a bounded query, or is refused by the name of the argument (cases 20, 41, 42)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grounded_mcp.errors import InputError
from grounded_mcp.recall.ask import Ask, AskOptions, read
from grounded_mcp.recall.scope import everything
from grounded_mcp.values import Query

NOW = 1_790_000_000.0
OPTIONS = AskOptions(limit=20, max_limit=100, mode="hybrid", max_query_chars=2_000)


def asked(query: Any = "ports", **given: Any) -> Query:
    return read(Ask(query, **given), everything(), NOW, OPTIONS)


def refused(**given: Any) -> InputError:
    with pytest.raises(InputError) as error:
        asked(**given)
    return error.value


def test_what_is_not_said_is_as_configured() -> None:
    assert asked("  which port?\n") == Query(
        text="which port?",
        kinds=("fact", "session", "doc"),
        mode="hybrid",
        limit=20,
        now=NOW,
        scope=everything(),
    )


@pytest.mark.parametrize(
    ("limit", "read_as"),
    [
        (None, 20),
        (1, 1),
        (20, 20),
        (7.0, 7),
        ("10", 10),
        (" 10 ", 10),
        (101, 100),
        (10**9, 100),
        (10**5000, 100),
        (1e300, 100),
    ],
    ids=lambda value: str(value)[:12] if not isinstance(value, int) or value < 10**9 else "huge",
)
def test_case_42_a_limit_is_a_count_up_to_the_maximum(limit: object, read_as: int) -> None:
    assert asked(limit=limit).limit == read_as


@pytest.mark.parametrize(
    "limit",
    [0, -1, 2.5, "2.5", "ten", "", "0", True, [], {}, float("nan"), float("inf"), "nan", "1e999", "9" * 100_000],
)
def test_case_42_what_is_no_count_is_refused(limit: object) -> None:
    error = refused(limit=limit)
    assert error.field == "limit"
    assert error.remedy == "Give a whole number of at least 1."
    assert len(str(error)) < 200


def test_case_42_an_error_shows_the_value() -> None:
    assert str(refused(limit=-1)) == "limit: -1 is not a count. Give a whole number of at least 1."
    assert str(refused(limit="ten")) == "limit: 'ten' is not a count. Give a whole number of at least 1."
    assert str(refused(limit=-(10**5000))) == "limit: this int is not a count. Give a whole number of at least 1."


@pytest.mark.parametrize(("given", "read_as"), [(0, 0.0), (0.25, 0.25), ("0.25", 0.25), (None, None)])
def test_a_minimum_score_is_a_number_of_at_least_0(given: object, read_as: float | None) -> None:
    assert asked(min_score=given).min_score == read_as


@pytest.mark.parametrize("given", [-0.1, "high", float("nan"), True, []])
def test_what_is_no_score_is_refused(given: object) -> None:
    assert refused(min_score=given).field == "minScore"


def test_sources_are_searched_once_each_in_the_order_given() -> None:
    assert asked(sources=["doc", "fact", "doc"]).kinds == ("doc", "fact")
    assert asked(sources=("session",)).kinds == ("session",)


@pytest.mark.parametrize(
    "sources",
    [[], "fact", ["facts"], ["fact", "web"], [None], [["fact"]], 5, {"fact": 1}, [10**5000]],
    ids=lambda _: "",
)
def test_an_unknown_source_is_refused_with_the_known_ones(sources: Any) -> None:
    error = refused(sources=sources)
    assert (error.field, error.remedy) == ("sources", "Choose from fact, session, doc.")


def test_a_mode_is_one_of_three() -> None:
    assert [asked(mode=mode).mode for mode in ("hybrid", "lexical", "vector")] == ["hybrid", "lexical", "vector"]
    error = refused(mode="semantic")
    assert str(error) == "mode: 'semantic' is unknown. Choose from hybrid, lexical, vector."


def test_case_20_since_with_an_offset_is_converted_not_relabelled() -> None:
    assert asked(since="2026-09-22T04:13:20+14:00").since == NOW
    assert asked(since="7d", until=NOW * 1000).since == NOW - 7 * 86_400.0
    assert asked(since="7d", until=NOW * 1000).until == NOW


def test_until_a_date_includes_that_day() -> None:
    day = asked(since="2026-09-21", until="2026-09-21")
    assert (day.since, day.until) == (1_789_948_800.0, 1_790_035_199.999999)


@pytest.mark.parametrize("name", ["since", "until"])
def test_what_is_no_time_is_refused_under_its_own_name(name: str) -> None:
    assert refused(**{name: "soon"}).field == name


def test_a_window_that_ends_before_it_begins_is_refused() -> None:
    assert str(refused(since="1h", until="2h")) == "since: it lies after until. Swap the two, or leave one out."


@pytest.mark.parametrize("query", [None, 5, ["ports"], b"ports"])
def test_a_query_is_a_text(query: Any) -> None:
    assert refused(query=query).field == "query"


def test_t15_an_empty_query_is_a_query_of_no_words() -> None:
    assert asked("   \n").text == ""


def test_case_41_a_long_query_is_cut_and_case_13_a_lone_surrogate_replaced() -> None:
    assert len(asked("word " * 200_000).text) == 2_000
    assert asked("po\ud800rt").text == "po\ufffdrt"


ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.lists(st.text(max_size=4), max_size=2)
)


@given(ANYTHING, ANYTHING, ANYTHING, ANYTHING, ANYTHING, ANYTHING)
def test_any_arguments_give_a_bounded_query_or_an_error_with_a_remedy(
    limit: Any, sources: Any, mode: Any, score: Any, since: Any, until: Any
) -> None:
    given = {"limit": limit, "sources": sources, "mode": mode, "min_score": score, "since": since, "until": until}
    query, error = tried(given)
    if query is None:
        assert error.field in ("limit", "sources", "mode", "minScore", "since", "until")
        assert error.remedy
    else:
        assert 1 <= query.limit <= 100
        assert query.kinds


def tried(given: dict[str, Any]) -> tuple[Query | None, Any]:
    try:
        return asked(**given), None
    except InputError as error:
        return None, error
