"""A pointer leads to the text it names, page by page, nothing twice and nothing left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grounded_mcp.errors import InputError
from grounded_mcp.reading import page, pointer
from grounded_mcp.values import Clean, Passage
from tests.candidates import item

BODIES = ("# Setup\n", "Run make.\n", "# Use\n", "Call it.")
PASSAGES = tuple(
    Passage(seq, Clean(body), heading, 10 * seq + 1)
    for seq, (body, heading) in enumerate(zip(BODIES, ("Setup", "Setup", "Use", "Use"), strict=True))
)
DOC = item("doc", "doc_1")


@pytest.mark.parametrize(
    ("text", "found"), [("doc_1", ("doc_1", 0)), ("doc_1#3", ("doc_1", 3)), (" doc_1#0 \n", ("doc_1", 0))]
)
def test_a_pointer_is_an_id_and_perhaps_a_passage(text: str, found: tuple[str, int]) -> None:
    assert pointer(text) == found


@pytest.mark.parametrize("text", ["", " ", "#1", "a#", "a#x", "a#-1", "a#1#2", "a#1.5", "a#²", "a#99999999"])
def test_what_is_no_pointer_is_refused_by_name(text: str) -> None:
    with pytest.raises(InputError, match="Give the `open` value of a recalled card"):
        pointer(text)


def test_a_passage_opens_where_it_begins() -> None:
    opened = page(DOC, PASSAGES, seq=2, offset=None, chars=6)
    assert (opened.text, opened.offset, opened.next_offset) == ("# Use\n", 18, 24)
    assert (opened.heading, opened.start_line, opened.size, opened.passages) == ("Use", 21, 32, 4)


def test_a_page_knows_the_page_before_and_the_passages_around_it() -> None:
    opened = page(DOC, PASSAGES, seq=2, offset=None, chars=6)
    assert (opened.prev_offset, [near.seq for near in opened.neighbours]) == (12, [1, 3])
    first = page(DOC, PASSAGES, seq=0, offset=None, chars=20)
    assert (first.prev_offset, [near.seq for near in first.neighbours]) == (None, [1])
    assert page(DOC, PASSAGES, seq=0, offset=3, chars=6).prev_offset == 0


def test_an_offset_goes_before_a_passage() -> None:
    assert page(DOC, PASSAGES, seq=2, offset=8, chars=4).text == "Run "


def test_a_fact_is_read_from_its_own_text() -> None:
    fact = item("fact", "fact_1", body=Clean("one two"))
    opened = page(fact, (Passage(0, Clean("one two")),), seq=0, offset=4, chars=10)
    assert (opened.text, opened.next_offset, opened.size) == ("two", None, 7)


def test_a_superseded_fact_without_passages_still_opens() -> None:
    opened = page(item("fact", "fact_1", body=Clean("old"), state="superseded"), (), seq=0, offset=None, chars=10)
    assert (opened.text, opened.heading, opened.start_line) == ("old", "", None)


@pytest.mark.parametrize(
    ("seq", "offset", "field"), [(4, None, "id"), (0, -1, "offset"), (0, 32, "offset"), (0, 10**9, "offset")]
)
def test_what_is_outside_the_text_is_refused_by_name(seq: int, offset: int | None, field: str) -> None:
    with pytest.raises(InputError) as refused:
        page(DOC, PASSAGES, seq=seq, offset=offset, chars=10)
    assert refused.value.field == field


def test_an_empty_text_is_one_empty_page() -> None:
    opened = page(DOC, (), seq=0, offset=0, chars=10)
    assert (opened.text, opened.next_offset, opened.size) == ("", None, 0)


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6), st.integers(1, 9))
def test_pages_joined_are_the_text(bodies: list[str], chars: int) -> None:
    passages = tuple(Passage(seq, Clean(body)) for seq, body in enumerate(bodies))
    offset: int | None = 0
    read = []
    while offset is not None:
        opened = page(DOC, passages, seq=0, offset=offset, chars=chars)
        read.append(opened.text)
        offset = opened.next_offset
    assert "".join(read) == "".join(bodies)
    assert all(read)
