"""Whether recall helps, in figures: the reuse rate and its parts, and how ``stats`` tells them."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grounded_mcp.events import Caller, Met, Recalled, Reported
from grounded_mcp.faces import figures
from grounded_mcp.knowledge.reuse import Latency, Reports, Reuse, memory_reuse, reused_part, stats, usage
from grounded_mcp.stores.base import Noted, NotedItem, NotedRecall, NotedSession
from grounded_mcp.stores.sqlite import SqliteStore
from grounded_mcp.text import Analyzer
from tests.asking import asker
from tests.conftest import Command
from tests.talking import Talk

MEMORY = "get_project_memory"
QUIET = NotedRecall("r", "s1", 100.0, MEMORY, "a", "", "hybrid", "hybrid", "", 2.0, 3.0, 0.0, 6.0, 4, 0, None)


def session(id: str, client: str = "agent") -> NotedSession:
    return NotedSession(id, client, 90.0, 110.0)


def recall(session: str, tool: str = MEMORY, *, reused: bool | None = None, **fields: Any) -> NotedRecall:
    return QUIET._replace(session=session, tool=tool, reused=reused, **fields)


SESSIONS = [session(f"s{n}") for n in range(5)]
RECALLS = [
    recall("s0", reused=True),
    recall("s0", reused=False),
    recall("s1", reused=False),
    recall("s2", "ground_recall", reused=True),
    recall("s2"),
    recall("s3", "ground_recall", reused=True),
]


def test_p5_the_rate_is_of_all_sessions_those_that_called_for_the_memory_and_reported_reuse() -> None:
    reuse = memory_reuse(SESSIONS, RECALLS)
    assert reuse == Reuse(sessions=5, called=3, reused=2)
    assert (reuse.rate, reuse.called_rate, reuse.reused_given_called) == (0.4, 0.6, 2 / 3)


def test_p5_the_rate_of_no_session_is_none_and_not_zero() -> None:
    reuse = memory_reuse([], [])
    assert (reuse.rate, reuse.called_rate, reuse.reused_given_called) == (None, None, None)
    assert memory_reuse(SESSIONS, []).rate == 0.0
    assert memory_reuse(SESSIONS, []).reused_given_called is None


reports = st.tuples(st.integers(0, 6), st.booleans(), st.sampled_from([None, True, False]))


@settings(max_examples=60)
@given(st.integers(0, 5), st.lists(reports, max_size=12))
def test_p5_the_two_parts_multiply_to_the_rate_which_lies_on_0_1(count: int, told: list[Any]) -> None:
    recalls = [recall(f"s{n}", MEMORY if memory else "ground_recall", reused=reused) for n, memory, reused in told]
    reuse = memory_reuse([session(f"s{n}") for n in range(count)], recalls)
    assert 0 <= reuse.reused <= reuse.called <= reuse.sessions == count
    if reuse.called:
        assert reuse.rate == pytest.approx((reuse.called_rate or 0) * (reuse.reused_given_called or 0))


def test_the_command_line_is_no_client_session_of_an_agent() -> None:
    noted = Noted((session("cli", "cli"), session("s1")), (recall("cli", reused=True), recall("s1")), (), 0)
    found = stats(noted, 0.0, 1.0)
    assert found.reuse == Reuse(sessions=1, called=1, reused=0)
    assert (found.recalls, found.clients) == (2, {"agent": 1})


def test_figures_are_counted_by_tool_mode_and_reason_most_frequent_first() -> None:
    recalls = (
        recall("s1", "ground_recall", mode="lexical", degraded="slow", results=0),
        recall("s1", "ground_recall", intent="repair", opened=2),
        recall("s1", intent="repair", asked="", mode="", results=8, total_ms=900.0),
    )
    found = stats(Noted((session("s1"),), recalls, (), 2), 0.0, 1.0, dropped=3)
    assert list(found.tools.items()) == [("ground_recall", 2), (MEMORY, 1)]
    assert found.modes == {"hybrid": 1, "lexical": 1, "none": 1}
    assert (found.lowered, found.degraded, found.intents) == ({"hybrid > lexical": 1}, {"slow": 1}, {"repair": 2})
    assert (found.results, found.empty, found.dropped) == (4.0, 1, 5)
    assert found.reports == Reports(used=0, unused=0, opened=1)


def test_times_are_of_the_recalls_in_which_that_part_ran() -> None:
    timed = [recall("s1", embed_ms=float(n % 2 * n), total_ms=float(n)) for n in range(1, 101)]
    found = stats(Noted((), (*timed, recall("s1", mode="", total_ms=0.0)), (), 0), 0.0, 1.0)
    assert found.latency == {
        "embedding": Latency(49.0, 95.0),
        "database": Latency(3.0, 3.0),
        "total": Latency(50.0, 95.0),
    }


def test_the_status_has_a_few_of_the_same_figures() -> None:
    found = usage(Noted(tuple(SESSIONS), tuple(RECALLS), (), 0), 7.0, dropped=1)
    assert (found.recalls, found.p50_ms, found.sessions, found.called, found.reused) == (6, 6.0, 5, 3, 2)
    assert (found.days, found.dropped) == (7.0, 1)


def test_the_part_of_recalls_that_were_reused_is_unknown_until_somebody_reports() -> None:
    assert reused_part([]) is None
    assert reused_part([recall("s1"), recall("s2")]) is None
    assert reused_part([recall("s1", reused=True), recall("s1"), recall("s2", reused=False), recall("s2")]) == 0.25


def test_a_table_shows_each_figure_and_a_dash_for_what_is_unknown() -> None:
    items = (NotedItem("fact_1", "fact", 1_200, 3, 2),)
    shown = figures.text(stats(Noted(tuple(SESSIONS), tuple(RECALLS), items, 1), 0.0, 86_400.0)).splitlines()
    assert shown[0] == "6 recalls from 1970-01-01T00:00:00Z to 1970-01-02T00:00:00Z"
    assert shown[3] == (
        "memory reuse rate 40.0%: of 5 client sessions 3 called for the project's memory (60.0%),"
        " 2 of them reported reuse (66.7%)"
    )
    assert "fact_1  fact  1,200     3       2" in shown
    assert shown[-1] == "1 event could not be stored and are not counted."
    nothing = figures.text(stats(Noted((), (), (), 0), 0.0, 86_400.0))
    assert "memory reuse rate -: of 0 client sessions" in nothing


# --- the command ------------------------------------------------------------------------------------------


@pytest.fixture
def used(command: Command) -> Command:
    """A store in which an agent and a person recalled, and the agent reported."""
    command.json("remember", "The lever is green")
    assert command.json("recall", "lever")["data"][0]["source"] == "fact"
    agent = Caller("s1", "agent\x1b[31m", MEMORY)
    with closing(SqliteStore(command.home / "memory.db", Analyzer())) as store:
        at, key = store.noted(0.0).recalls[0].at, store.noted(0.0).recalls[0].project
        (fact,) = store.ids(limit=2)
        recall = Recalled(at, agent, "r1", key, mode="lexical", items=(fact,))
        silent = Met(at, replace(agent, session="s2"), key)
        elsewhere = Recalled(at, replace(agent, session="s3"), "r2", "another project", mode="lexical", items=(fact,))
        store.note([recall, Reported(at, agent, "r1", True), silent, elsewhere], keep_from=0)
    return command


def test_p5_stats_tell_the_reuse_rate_with_its_parts_as_table_and_as_json(used: Command) -> None:
    shown = used("stats").stdout
    assert "2 recalls from" in shown
    assert "memory reuse rate 50.0%: of 2 client sessions 1 called" in shown
    assert "\x1b" not in shown
    data = used.json("stats")
    assert data["memory_reuse_rate"] == {"rate": 0.5, "called": 0.5, "reused_given_called": 1.0}
    assert data["reuse"] == {"sessions": 2, "called": 1, "reused": 1}
    assert data["tools"] == {MEMORY: 1, "recall": 1}
    assert data["items"][0]["recalled"] == 2


def test_case_60_stats_are_of_this_project_unless_all_are_asked_for(used: Command) -> None:
    here, all_ = used.json("stats"), used.json("stats", "--all-projects", "--graph")
    assert (here["recalls"], here["reuse"]["sessions"], here["items"][0]["recalled"]) == (2, 2, 2)
    assert (all_["recalls"], all_["reuse"]["sessions"], all_["items"][0]["recalled"]) == (3, 3, 3)
    assert [each["session"] for each in all_["graph"]["recalls"]] == ["cli", "s1", "s3"]


def test_stats_look_back_as_far_as_they_are_told(used: Command) -> None:
    assert used.json("stats", "--since", "1h")["recalls"] == 2
    assert used.json("stats", "--since", "2099-01-01")["recalls"] == 0
    done = used("stats", "--since", "whenever")
    assert (done.returncode, "since" in done.stderr) == (1, True)


def test_p5_the_graph_leads_from_sessions_over_recalls_to_items(used: Command) -> None:
    graph = used.json("stats", "--graph")["graph"]
    assert [each["id"] for each in graph["sessions"]] == ["cli", "s1"]
    assert [each["session"] for each in graph["recalls"]] == ["cli", "s1"]
    assert [each["rank"] for each in graph["items"]] == [1, 1]
    assert {each["item"] for each in graph["items"]} == {used.json("recall", "lever")["data"][0]["id"]}
    assert graph["evidence"] == []


def test_p5_the_graph_leads_on_to_the_evidence_and_from_there_to_its_source(command: Command) -> None:
    Talk(str(command.cwd)).ask("Is it green?").run("make check", "12 passed").say("Yes.").write(command.home.parent)
    command.json("sync", "--sessions", "--no-vectors")
    command.json("learn", "The lever is green", "--command", "make check", "--note", "looked at it")
    with asker(command.home, command.cwd) as ask:
        found = ask("get_project_memory", query="lever", intent="inspect", downstream_reuse=False)
        scripts = ask("get_project_memory")["scripts"]
        ask("get_project_memory", downstream_reuse=True)
        (learnt,) = (card["id"] for card in found["items"])
        (script,) = (card["id"] for card in scripts)
        graph = ask.memory.graph("30d")
        assert ask("memory_status")["usage"]["reuseRate"] == 1.0
    (session,) = graph.sessions
    assert {each.session for each in graph.recalls} == {session.id}
    recalled = {each.item: each.recall for each in reversed(graph.items)}
    assert recalled[learnt] == found["meta"]["recall_id"] == graph.recalls[0].id
    assert [each.supports for each in graph.evidence[learnt]] == [True]
    mined, said = graph.evidence[script]
    assert (mined.session[:4], said.session) == ("ses_", learnt)
    shown = command.json("stats", "--graph", "--since", "2026-01-01")
    assert shown["memory_reuse_rate"] == {"rate": 1.0, "called": 1.0, "reused_given_called": 1.0}
    assert {each["item"] for each in shown["graph"]["evidence"]} == {learnt, script}


def test_reading_statistics_makes_no_store(command: Command) -> None:
    done = command("stats")
    assert (done.returncode, done.stdout) == (1, "")
    assert not command.home.exists()


def test_p5_the_status_has_the_usage_of_the_last_days(used: Command) -> None:
    usage = used.json("status")["usage"]
    assert (usage["days"], usage["recalls"], usage["reuseRate"]) == (7.0, 2, 0.5)
    assert "1 of 2 agent sessions reported reuse" in used("status").stdout


def test_p5_the_evaluation_of_ones_own_store_tells_how_much_was_reused(used: Command) -> None:
    used.json("remember", "Deployments leave from the northern quay on Tuesday mornings at seven")
    assert used.json("eval", "--own")["reports"][0]["reuse"] == 0.5
    assert "reported reuse: 50.0% of the recalls" in used("eval", "--own").stdout
    assert json.loads(used("stats", "--json").stdout)["recalls"] == 2
