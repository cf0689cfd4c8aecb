"""The promises table, checked both ways: what it names exists, and what carries the id of a promise is named."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
TABLE = (TESTS.parent / "docs" / "promises.md").read_text(encoding="utf-8")
PROMISED, LATER = TABLE.split("## Left to later")
RELEASED = "R1-R17 P1-P5 C1-C6 I1-I6 F1-F5 G1-G6 T1-T6 T8-T19 T22-T28 T30-T34 T36 T38-T40 T42-T43 1-5 7-44 46-53 55-64"
"""The rules and cases that this release is to keep."""


def existing() -> Iterator[str]:
    for path in TESTS.rglob("test_*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield node.name


def ids_in(name: str) -> set[str]:
    """The rules and cases that a test's name carries: ``test_t10_case_21_22_...`` has T10, 21 and 22."""
    rules = {found.upper() for found in re.findall(r"(?<=_)[trpcifg]\d+(?=_)", name)}
    cases = {number for run in re.findall(r"_case_(\d+(?:_\d+)*)(?=_)", name) for number in run.split("_")}
    return rules | {str(int(number)) for number in cases}


def rows(section: str) -> list[list[str]]:
    """The cells of a section's tables, without their heads."""
    cells = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in cells if row[0].strip() not in ("promise", "rule or case")]


def spread(ids: str) -> set[str]:
    """``T1-T3, 7`` as T1, T2, T3 and 7."""
    found = set()
    for letter, first, last in re.findall(r"([A-Z]?)(\d+)(?:-[A-Z]?(\d+))?", ids):
        found |= {f"{letter}{number}" for number in range(int(first), int(last or first) + 1)}
    return found


NAMED = {id: set(re.findall(r"`(test_\w+)`", tests)) for _, id, tests in rows(PROMISED)}


def test_every_test_of_the_table_exists_and_every_promise_has_one() -> None:
    assert set().union(*NAMED.values()) - set(existing()) == set()
    assert [id for id, tests in NAMED.items() if not tests] == []


def test_every_test_that_carries_an_id_stands_in_its_row() -> None:
    missing = {name: id for name in existing() for id in ids_in(name) if name not in NAMED.get(id, set())}
    assert missing == {}, "add these to docs/promises.md"


def test_every_rule_and_case_of_this_release_is_promised_or_left_to_later_with_a_reason() -> None:
    later = {id for ids, _, reason in rows(LATER) if reason for id in spread(ids)}
    assert spread(RELEASED) - set(NAMED) - later == set()


def test_an_id_is_read_from_a_name() -> None:
    assert ids_in("test_case_36_t9_every_line") == {"36", "T9"}
    assert ids_in("test_case_1_2_nothing_and_case_05_none") == {"1", "2", "5"}
    assert ids_in("test_a_u_fffd_in_utf_8_is_20_bytes") == set()
    assert spread("T9-T11, 3") == {"T9", "T10", "T11", "3"}
