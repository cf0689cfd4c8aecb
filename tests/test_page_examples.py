"""What the pages that describe recall give as examples, word for word, as an agent meets it: through an MCP client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grounded_mcp.render import EMPTY
from tests.asking import Asker, asker

PARAPHRASES = (
    "deploy to staging with `make ship`",
    "Deploys to staging go with make ship.",
    "`make ship` deploys to staging",
    "To deploy to staging, use `make ship`.",
)


@pytest.fixture(params=["auto", "bm25", "overlap"])
def ask(request: pytest.FixtureRequest, tmp_path: Path, project: Path) -> Iterator[Asker]:
    """A memory without a model, whichever way words are scored."""
    with asker(tmp_path / "home", project, GROUNDED_RECALL__LEXICAL__SCORER=request.param) as ask:
        yield ask


def facts(ask: Asker, query: str, **arguments: Any) -> list[dict[str, Any]]:
    cards: list[dict[str, Any]] = ask("ground_recall", query=query, sources=["fact"], **arguments)["data"]
    return cards


def test_a_limit_of_8_is_eight_distinct_facts_and_not_eight_ways_of_saying_one(ask: Asker) -> None:
    said = {ask("remember_fact", text=text)["id"] for text in PARAPHRASES}
    for place in ["Aberdeen", "Bergen", "Cadiz", "Dover", "Esbjerg", "Faro", "Genoa", "Hull", "Izmir", "Jaffa"]:
        ask("remember_fact", text=f"We deploy {place} from its own quay.")
    found = [card["id"] for card in facts(ask, "where do we deploy", limit=8)]
    assert len(found) == len(set(found)) == 8
    everything = [card["id"] for card in facts(ask, "where do we deploy", limit=20)]
    assert len(everything) == 11
    assert len(said & set(everything)) == 1


def test_a_question_that_shares_no_word_with_a_memory_does_not_match_it(ask: Asker) -> None:
    ask("remember_fact", text="ZQ7X4M2K")
    envelope, text = ask.both("ground_recall", query="where does staging live")
    assert (envelope["data"], envelope["meta"]["empty"], envelope["meta"]["guidance"]) == ([], True, EMPTY)
    assert EMPTY in text
    assert [card["matchedTerms"] for card in facts(ask, "what is ZQ7X4M2K")] == [["ZQ7X4M2K"]]


def test_a_question_about_the_deploy_host_matches_on_the_word_deploy(ask: Asker) -> None:
    host = ask("remember_fact", text="deploy: internal-hbr-2291.pineapple.example")["id"]
    ask("remember_fact", text="Lunch is at noon.")
    (card,) = facts(ask, "what's our deploy host")
    assert (card["id"], card["matchedTerms"]) == (host, ["deploy"])


@pytest.mark.parametrize("exact", ["https://ci.example/job/77", "build-2031.4", "port 8090", "src/lib/io.py", "HB-412"])
def test_urls_build_ids_ports_paths_and_tickets_are_found_by_their_exact_tokens(ask: Asker, exact: str) -> None:
    wanted = ask("remember_fact", text=f"The nightly run is at {exact}")["id"]
    ask("remember_fact", text="The nightly run is at port 8091")
    assert facts(ask, f"what about {exact}?")[0]["id"] == wanted


def test_a_short_question_scores_sensibly_against_a_long_fact_and_a_long_one_against_a_short_fact(ask: Asker) -> None:
    long = (
        "The release train leaves on Tuesdays after the smoke tests, with the changelog signed, the quay cleared and "
        "the pilots told; whoever drives it keeps the key until the evening."
    )
    first = ask("remember_fact", text=long)["id"]
    second = ask("remember_fact", text="the lighthouse keeper is Ann")["id"]
    assert facts(ask, "release train")[0]["id"] == first
    question = "before we go on with all of this tonight I would like to hear who the lighthouse keeper is these days"
    assert facts(ask, question)[0]["id"] == second


def test_project_memory_searches_by_default_for_eight_in_both_lanes_and_keeps_the_words_without_a_model(
    tmp_path: Path, project: Path
) -> None:
    with asker(tmp_path / "home", project, "hashing") as ask:
        for number in range(10):
            ask("record_learning", claim=f"The harbour rule {number} holds for pier {number}.", outcome="verified")
        ask.memory.fill_vectors()
        assert ask.memory.wait_ready(30)
        found = ask("get_project_memory", query="harbour rule", intent="generate")
        assert (len(found["items"]), found["meta"]["mode"]) == (8, "hybrid")
    with asker(tmp_path / "home", project, "none") as ask:
        found = ask("get_project_memory", query="harbour rule", intent="generate")
        assert (len(found["items"]), found["meta"]["mode"]) == (8, "lexical")
