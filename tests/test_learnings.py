"""Learnings: claims with evidence, what corrects them, and how facts and learnings are forgotten."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
import pytest

from grounded_mcp.assemble import open_store
from grounded_mcp.brief import brief_text
from grounded_mcp.config import load
from grounded_mcp.inert import OPEN
from grounded_mcp.settings import settings
from grounded_mcp.values import Clean, Evidence, Item, Passage, Record
from tests.asking import Asker, Clock, asker
from tests.conftest import Command
from tests.talking import Talk

TOKEN = "ghp_R7x2Lq9Zt4Vw8Kc3Bn6Mj1Hd5Gf0SaPyEuTo"
CLAIM = "The ferry tests pass once the tide table is rebuilt."

Json = dict[str, Any]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def ask(home: Path, project: Path) -> Iterator[Asker]:
    with asker(home, project) as ask:
        yield ask


def written(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.glob("memory.db*"))


def found(ask: Asker, query: str, **more: Any) -> list[str]:
    """Ids of what the memory's two searches return, best first."""
    learnt = ask("get_project_memory", query=query, intent="inspect", **more)["items"]
    return [card["id"] for card in (*ask("ground_recall", query=query, **more)["data"], *learnt)]


def evidence(ask: Asker, item_id: str) -> list[str]:
    return [each["says"] for each in ask("open_memory", id=item_id)["provenance"].get("evidence", [])]


# --- recording --------------------------------------------------------------------------------------------


def test_the_same_claim_again_adds_evidence_to_the_learning_that_is_there(ask: Asker) -> None:
    first = ask("record_learning", claim="Tests run with `make check`", outcome="verified")
    again, text = ask.both("record_learning", claim="Run the tests with make check.", outcome="diagnostic")
    assert (first["outcome"], again["outcome"]) == ("stored", "merged")
    assert again["id"] == first["id"]
    assert again["evidence"] == {"supports": 2, "contradicts": 0}
    assert text.startswith(f"merged: {first['id']} | scope ")
    assert "evidence: supports 2, contradicts 0" in text
    assert found(ask, "make check tests") == [first["id"]]
    other = ask("record_learning", claim="Tests do not run with `make check`", outcome="verified")
    assert other["id"] != first["id"]
    assert other["conflicts"] == [{"open": first["id"], "title": "Tests run with `make check`"}]


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        ("verified", "supports (verified outcome)"),
        ("failed", "contradicts (verified outcome)"),
        ("diagnostic", "supports (diagnostic episode)"),
    ],
)
def test_p3_an_outcome_is_evidence_of_its_kind(ask: Asker, outcome: str, says: str) -> None:
    learnt = ask("record_learning", claim=CLAIM, outcome=outcome, note="ran it on the pier")
    page, text = ask.both("open_memory", id=learnt["id"])
    (piece,) = page["provenance"]["evidence"]
    assert piece["says"] == says
    assert piece["note"] == f"{OPEN}ran it on the pier</project-memory>"
    assert says in text
    assert page["origin"] == "stated"


def test_p3_a_claim_that_failed_after_it_held_is_recalled_as_contradicted(ask: Asker) -> None:
    ask("record_learning", claim=CLAIM, outcome="verified")
    ask.clock.now += 60
    assert ask("record_learning", claim=CLAIM, outcome="failed")["evidence"] == {"supports": 1, "contradicts": 1}
    (card,) = ask("get_project_memory", query="ferry tide", intent="repair")["items"]
    assert card["confidence"]["freshness"]["state"] == "contradicted"


def test_p3_a_script_is_kept_with_its_hash_and_makes_the_learning_stale_when_it_changes(
    ask: Asker, project: Path
) -> None:
    script = project / "tools" / "tide.sh"
    script.parent.mkdir()
    script.write_text("echo tide\n", encoding="utf-8")
    learnt = ask("record_learning", claim=CLAIM, outcome="verified", script="tools/tide.sh", command="sh tools/tide.sh")

    def state() -> str:
        (card,) = ask("get_project_memory", query="ferry tide", intent="repair")["items"]
        return str(card["confidence"]["freshness"]["state"])

    attributes = ask("open_memory", id=learnt["id"])["attributes"]
    assert json.loads(attributes["scripts"]) == {"tools/tide.sh": sha256(b"echo tide\n").hexdigest()}
    assert attributes["command"] == "sh tools/tide.sh"
    assert state() == "active"
    script.write_text("echo the other tide\n", encoding="utf-8")
    assert state() == "stale"
    ask("record_learning", claim=CLAIM, outcome="diagnostic", script=str(script))
    assert state() == "stale"
    ask("record_learning", claim=CLAIM, outcome="verified", script=str(script))
    assert state() == "active"


def test_evidence_goes_to_the_claims_that_an_outcome_supports(ask: Asker) -> None:
    fact = ask("remember_fact", text="The tide table is rebuilt every night.")["id"]
    learnt = ask("record_learning", claim=CLAIM, outcome="failed", supports=[fact])
    assert learnt["supported"] == [fact]
    assert evidence(ask, fact) == ["supports (verified outcome)"]
    assert evidence(ask, learnt["id"]) == ["contradicts (verified outcome)"]


def test_a_verified_correction_retires_the_old_claim_and_its_copies_and_both_stay_readable(ask: Asker) -> None:
    fact = ask("remember_fact", text="Tests run with `make check`")["id"]
    copy = ask("record_learning", claim="run the tests with make check", outcome="diagnostic")["id"]
    other = ask("remember_fact", text="do not use make check on CI")["id"]
    new, text = ask.both("record_learning", claim="Tests run with `just test`", outcome="verified", contradicts=[fact])
    assert new["contradicted"] == [fact]
    assert new["retired"] == [fact, copy]
    assert f"retired {fact}, {copy}" in text
    assert "conflicts" not in new
    assert set(found(ask, "tests run with make check")) == {other, new["id"]}
    history = ask("open_memory", id=new["id"])["history"]
    assert {old["id"] for old in history} == {fact, copy}
    old = ask("open_memory", id=fact)
    assert (old["state"], "make check" in old["text"]) == ("superseded", True)
    assert evidence(ask, fact) == ["contradicts (verified outcome)"]
    assert evidence(ask, copy) == ["supports (diagnostic episode)"]


@pytest.mark.parametrize("outcome", ["failed", "diagnostic"])
def test_what_is_not_verified_retires_nothing_and_is_shown_as_a_conflict(ask: Asker, outcome: str) -> None:
    old = ask("record_learning", claim="The lock is held by the ferry.", outcome="verified")["id"]
    ask.clock.now += 60
    new = ask("record_learning", claim="A stray process keeps the lock.", outcome=outcome, contradicts=[old])
    assert "retired" not in new
    assert new["conflicts"] == [{"open": old, "title": "The lock is held by the ferry."}]
    assert ask("open_memory", id=old)["state"] == "active"
    assert evidence(ask, old)[0].startswith("contradicts")


def test_a_fact_that_replaces_a_learning_takes_its_place(ask: Asker) -> None:
    old = ask("record_learning", claim="The API port is 8090.", outcome="diagnostic")["id"]
    assert ask("remember_fact", text="The API port is 8091.", replaces=old)["superseded"] == [old]
    assert ask("open_memory", id=old)["state"] == "superseded"


def test_a_retired_claim_that_is_recorded_again_is_active_again_with_all_its_evidence(ask: Asker) -> None:
    learnt = ask("record_learning", claim=CLAIM, outcome="verified")["id"]
    ask("forget_memory", id=learnt, action="retire", reason="the pier closed")
    assert found(ask, "ferry tide") == []
    again = ask("record_learning", claim=CLAIM, outcome="verified")
    assert (again["id"], again["outcome"]) == (learnt, "stored")
    assert again["evidence"] == {"supports": 2, "contradicts": 0}
    assert found(ask, "ferry tide") == [learnt]
    assert "reason" not in ask("open_memory", id=learnt).get("attributes", {})


def test_two_processes_that_record_one_claim_meet_in_one_learning(home: Path, project: Path, ask: Asker) -> None:
    with asker(home, project) as other:
        ids = {each("record_learning", claim=CLAIM, outcome="verified")["id"] for each in (ask, other, ask, other)}
    (learnt,) = ids
    assert len(evidence(ask, learnt)) == 4


def test_i4_secrets_are_taken_out_of_claim_command_and_note(ask: Asker, home: Path) -> None:
    claim = f"The deploy works with the token {TOKEN} in place."
    learnt = ask("record_learning", claim=claim, outcome="verified", command=f"deploy --token {TOKEN}", note=TOKEN)
    assert sum(learnt["redacted"].values()) == 3
    ask("forget_memory", id=learnt["id"], action="retire", reason=f"see {TOKEN}")
    assert TOKEN.encode() not in written(home)
    assert "[REDACTED:" in ask("open_memory", id=learnt["id"])["attributes"]["reason"]


# --- what a claim was shown by ----------------------------------------------------------------------------


def test_p1_the_command_that_showed_a_claim_is_a_verified_script_until_its_file_changes(
    ask: Asker, project: Path
) -> None:
    (project / "scripts").mkdir()
    script = project / "scripts" / "tide.sh"
    script.write_text("echo tide\n", encoding="utf-8")
    command = "sh scripts/tide.sh && make check"
    learnt, text = ask.both("record_learning", claim=CLAIM, outcome="verified", command=command)
    assert f"scripts {', '.join(learnt['scripts'])}" in text
    cards = {card["text"][len(OPEN) : -len("</project-memory>")]: card for card in ask("get_project_memory")["scripts"]}
    assert {name: card["purpose"] for name, card in cards.items()} == {
        "sh scripts/tide.sh": "run",
        "make check": "test",
    }
    assert {card["id"] for card in cards.values()} == set(learnt["scripts"])
    rebuilt = cards["sh scripts/tide.sh"]
    assert (rebuilt["state"], rebuilt["files"]) == ("verified", ["scripts/tide.sh"])
    assert rebuilt["confidence"]["support_count"] == 1
    page = ask("open_memory", id=rebuilt["id"])  # why is that known? Because of the claim.
    assert page["provenance"]["why"] == "seen to run, first 2026-09-21T14:13:20Z, evidence: 1 for it, 0 against"
    assert [piece["open"] for piece in page["provenance"]["evidence"]] == [learnt["id"]]

    def states() -> list[str]:
        return sorted(card["state"] for card in ask("get_project_memory")["scripts"])

    script.write_text("echo the other tide\n", encoding="utf-8")
    assert states() == ["stale", "verified"]
    script.unlink()
    assert states() == ["missing", "verified"]
    script.write_text("echo the other tide\n", encoding="utf-8")
    ask("record_learning", claim=CLAIM, outcome="verified", command="sh scripts/tide.sh")
    assert states() == ["verified", "verified"]


@pytest.mark.parametrize(
    ("arguments", "verified"),
    [
        ({"outcome": "verified", "script": "tide.sh"}, ["tide.sh"]),
        ({"outcome": "verified", "script": "tide.sh", "command": "sh tide.sh"}, ["sh tide.sh"]),
        ({"outcome": "verified", "script": "tide.sh", "command": "cat /tmp/out"}, ["tide.sh"]),
        ({"outcome": "verified", "script": "tide.toml"}, []),  # nothing that can be run
        ({"outcome": "verified", "command": "git log --oneline"}, []),  # it only looks
        ({"outcome": "failed", "script": "tide.sh", "command": "sh tide.sh"}, []),
        ({"outcome": "diagnostic", "script": "tide.sh", "command": "sh tide.sh"}, []),
    ],
)
def test_p1_only_what_ran_and_showed_a_verified_claim_becomes_a_script(
    ask: Asker, project: Path, arguments: Json, verified: list[str]
) -> None:
    for name in ("tide.sh", "tide.toml"):
        (project / name).write_text("x = 1\n", encoding="utf-8")
    ask("record_learning", claim=CLAIM, **arguments)
    cards = ask("get_project_memory")["scripts"]
    assert [card["text"] for card in cards] == [f"{OPEN}{each}</project-memory>" for each in verified]


def test_p1_a_command_that_was_seen_and_said_to_work_is_one_script(ask: Asker, project: Path) -> None:
    Talk(str(project)).ask("Is it green?").run("make check", "12 passed").say("Yes.").write(project.parent)
    ask.memory.sync_sessions()
    learnt = ask("record_learning", claim=CLAIM, outcome="verified", command="make check")
    (card,) = ask("get_project_memory")["scripts"]
    assert [card["id"]] == learnt["scripts"]
    assert card["confidence"]["support_count"] == 2
    page = ask("open_memory", id=card["id"])
    assert page["createdAt"].startswith("2026-03-02")
    assert page["updatedAt"] == "2026-09-21T14:13:20Z"


def test_a_command_is_as_fresh_as_the_file_that_its_learning_links(ask: Asker, project: Path) -> None:
    guide = project / "guide.md"
    guide.write_text("Ship on Mondays.\n", encoding="utf-8")
    learnt = ask("record_learning", claim=CLAIM, outcome="verified", command="make ship", script="guide.md")

    def states() -> tuple[str, str, bool]:
        found = ask("get_project_memory", query="ferry tide", intent="repair")
        (item,), (script,) = found["items"], found["scripts"]
        assert ([script["id"]], script["files"]) == (learnt["scripts"], ["guide.md"])
        shown = brief_text(ask.memory.brief())
        return item["confidence"]["freshness"]["state"], script["state"], "make ship [verified" in shown

    assert states() == ("active", "verified", True)
    guide.write_text("Ship on Tuesdays.\n", encoding="utf-8")
    assert states() == ("stale", "stale", False)
    Talk(str(project)).ask("Ship it.").run("make ship", "done").write(project.parent)  # from before: it shows nothing
    ask.memory.sync_sessions()
    assert states() == ("stale", "stale", False)
    guide.unlink()
    assert states() == ("stale", "missing", False)
    guide.write_text("Ship on Tuesdays.\n", encoding="utf-8")
    ask("record_learning", claim=CLAIM, outcome="verified", command="make ship", script="guide.md")
    assert states() == ("active", "verified", True)


def test_a_later_run_that_worked_shows_that_a_linked_file_holds_as_it_is(ask: Asker, project: Path) -> None:
    guide = project / "guide.md"
    guide.write_text("Ship on Mondays.\n", encoding="utf-8")
    ask("record_learning", claim=CLAIM, outcome="verified", command="make ship", script="guide.md")
    guide.write_text("Ship on Tuesdays.\n", encoding="utf-8")
    os.utime(guide, (ask.clock.now, ask.clock.now))
    later = datetime.fromtimestamp(ask.clock.now + 3_600, UTC)
    Talk(str(project), began=later).ask("Ship it.").run("make ship", "done").write(project.parent)
    ask.memory.sync_sessions()
    (script,) = ask("get_project_memory")["scripts"]
    assert (script["state"], script["files"], "changed" in script) == ("verified", ["guide.md"], False)


def test_case_61_a_forgotten_script_does_not_come_back_with_a_claim_that_it_showed(ask: Asker) -> None:
    lesson = {"claim": CLAIM, "outcome": "verified", "command": "make check"}
    (script,) = ask("record_learning", **lesson)["scripts"]
    ask("forget_memory", id=script)
    assert "scripts" not in ask("record_learning", **lesson)
    assert ask("get_project_memory")["scripts"] == []


# --- refused ----------------------------------------------------------------------------------------------


def test_a_claim_of_nothing_but_a_secret_is_rejected(ask: Asker) -> None:
    told, text = ask.both("record_learning", claim=TOKEN, outcome="verified")
    assert told["outcome"] == "rejected"
    assert text.startswith("rejected: Nothing is left of the claim after secrets were removed.")
    assert ask("memory_status")["store"]["items"] == {}


def test_t27_case_9_a_session_that_quotes_a_learning_adds_neither_a_learning_nor_evidence(
    ask: Asker, project: Path
) -> None:
    learnt = ask("record_learning", claim=CLAIM, outcome="verified")["id"]
    answer, text = ask.both("get_project_memory", query="ferry tide", intent="repair")
    told = Talk(str(project)).ask(f"{text}\n\nWhy does the ferry fail?")
    told.use("mcp__grounded__get_project_memory", {"query": "ferry tide"}, json.dumps(answer))
    told.use("mcp__grounded__get_project_memory", {"query": "ferry tide"}, text.replace("<", "&lt;"))
    told.say(f"The memory says: {CLAIM} I will rebuild the table.").write(project.parent)
    stored = []
    for _ in range(2):
        ask.memory.sync_sessions(reread=True)
        status = ask("memory_status")["store"]
        stored.append((status["items"], status["passages"]))
        assert evidence(ask, learnt) == ["supports (verified outcome)"]
        found = ask("get_project_memory", query="ferry tide", intent="repair")
        assert [card["id"] for card in found["items"]] == [learnt]
    assert stored[0] == stored[1]
    assert stored[0][0] == {"learning": 1, "session": 1}


def test_t27_a_claim_that_quotes_what_the_memory_answered_is_rejected(ask: Asker) -> None:
    quoted = f"It said {OPEN}the tide is high</project-memory>"
    assert ask("record_learning", claim=quoted, outcome="verified")["outcome"] == "rejected"


@pytest.mark.parametrize("name", ["CLAUDE.md", "AGENTS.md", "README.md"])
def test_t27_a_learning_does_not_restate_a_guidance_document(ask: Asker, project: Path, name: str) -> None:
    guide = "# Ferry\n\nBuild with care.\n\n- Always run the tests with `make check`.\n- Keep the tide table small.\n"
    (project / name).write_text(guide, encoding="utf-8")
    (project / "check.py").write_text("# the linter runs before every merge\n", encoding="utf-8")
    ask.memory.sync_documents()
    told, text = ask.both("record_learning", claim="Tests run with make check", outcome="verified")
    assert (told["outcome"], told["reason"]) == ("rejected", "A document of the project says the same already.")
    assert "make check" in ask("open_memory", id=told["open"])["text"]
    assert f"open {told['open']}" in text
    assert ask("record_learning", claim="Tests run with make check", outcome="failed")["outcome"] == "stored"
    for claim in ("Tests run with just check", "The linter runs before every merge"):
        assert ask("record_learning", claim=claim, outcome="verified")["outcome"] == "stored"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"claim": "  "}, "claim: it is empty."),
        ({"claim": "x" * 2_001}, "claim: it has 2,001 characters. Give at most 2,000."),
        ({"note": "x" * 1_001}, "note: it has 1,001 characters. Give at most 1,000."),
        ({"outcome": "worked"}, 'outcome: "worked" is not usable. Give one of verified, failed, diagnostic.'),
        ({"script": "gone.sh"}, "script: there is no file 'gone.sh' in the project. Give a path inside"),
        ({"script": "/etc/passwd"}, "script: there is no file '/etc/passwd' in the project."),
        ({"script": "../outside.sh"}, "script: there is no file '../outside.sh' in the project."),
        ({"script": f"{TOKEN}.sh"}, "script: it holds what looks like a secret."),
        ({"supports": ["lrn_gone"]}, "supports: there is no item lrn_gone."),
        ({"contradicts": ["lrn_gone"]}, "contradicts: there is no item lrn_gone."),
        ({"supports": ["a"], "contradicts": ["a#0"]}, "contradicts: a is also in supports."),
        ({"supports": ["a"] * 21}, "supports, contradicts: too many ids are given. Give at most 20."),
    ],
)
def test_a_wrong_lesson_is_told_what_to_send_instead_and_stores_nothing(
    ask: Asker, project: Path, arguments: Json, text: str
) -> None:
    (project.parent / "outside.sh").write_text("echo\n", encoding="utf-8")
    assert ask.wrong("record_learning", **{"claim": CLAIM, "outcome": "verified", **arguments}).startswith(text)
    assert "learning" not in ask("memory_status")["store"]["items"]


def test_only_active_claims_can_be_supported_or_contradicted(ask: Asker, project: Path) -> None:
    learnt = ask("record_learning", claim=CLAIM, outcome="verified")["id"]
    assert "is the claim itself" in ask.wrong("record_learning", claim=CLAIM, outcome="failed", contradicts=[learnt])
    ask("forget_memory", id=learnt, action="retire")
    told = ask.wrong("record_learning", claim="The sea is calm.", outcome="failed", contradicts=[learnt])
    assert told.startswith(f"contradicts: {learnt} is already retired.")
    (project / "notes.md").write_text("The harbour is deep.\n", encoding="utf-8")
    ask.memory.sync_documents()
    (card,) = ask("ground_recall", query="harbour deep")["data"]
    told = ask.wrong("record_learning", claim="The sea is calm.", outcome="failed", supports=[card["id"]])
    assert told.startswith(f"supports: {card['id']} is a doc.")


# --- forgetting -------------------------------------------------------------------------------------------

Forget = Callable[[Asker, Command, tuple[str, ...], str], None]


def by_tool(ask: Asker, _command: Command, ids: tuple[str, ...], action: str) -> None:
    for each in ids:
        ask("forget_memory", id=each, action=action)


def by_command(_ask: Asker, command: Command, ids: tuple[str, ...], action: str) -> None:
    for each in ids:
        assert command.json("forget", each, *(["--retire"] if action == "retire" else []))["ids"] == [each]


def in_bulk(ask: Asker, _command: Command, ids: tuple[str, ...], action: str) -> None:
    assert ask("forget_memory", id=" ".join(ids), action=action)["ids"] == list(ids)


@pytest.mark.parametrize("action", ["delete", "retire"])
@pytest.mark.parametrize("forget", [by_tool, by_command, in_bulk])
def test_t42_what_is_forgotten_is_found_neither_by_word_nor_by_meaning_and_leaves_its_place_to_others(
    home: Path, project: Path, command: Command, forget: Forget, action: str
) -> None:
    facts = [f"Crane number{n} lifts crates at the winter berth." for n in range(12)]
    with asker(home, project, "hashing") as ask:
        facts_ids = [ask("remember_fact", text=text)["id"] for text in facts]
        learnt = ask("record_learning", claim="The winter berth floods when crates are wet.", outcome="verified")["id"]
        ask.memory.fill_vectors()
        assert ask.memory.wait_ready(30)
        gone = (*facts_ids[:6], learnt)
        forget(ask, command, gone, action)
    for _ in range(2):  # the second is after a restart
        with asker(home, project, "hashing") as ask:
            assert ask.memory.wait_ready(30)
            for mode in ("lexical", "vector", "hybrid"):
                asked = {"query": "crates at the winter berth", "limit": 6, "sources": ["fact"], "mode": mode}
                cards = ask("ground_recall", **asked)["data"]
                assert {card["id"] for card in cards} == set(facts_ids[6:]), mode
                about = ask("get_project_memory", query="winter berth floods", intent="inspect", mode=mode)
                assert about["items"] == []
            if action == "delete":
                assert all("there is no item" in ask.wrong("open_memory", id=each) for each in gone)
            else:
                assert all(ask("open_memory", id=each)["state"] == "superseded" for each in gone)
    assert (b"number3" in written(home), b"number8" in written(home)) == (action == "retire", True)


def test_t42_a_retired_claim_keeps_its_text_its_evidence_and_the_reason_and_takes_its_copies_along(ask: Asker) -> None:
    fact = ask("remember_fact", text="Tests run with `make check`")["id"]
    copy = ask("record_learning", claim="run the tests with make check", outcome="verified")["id"]
    told, text = ask.both("forget_memory", id=fact, action="retire", reason="the Makefile is gone")
    assert (told["action"], told["ids"], told["others"]) == ("retire", [fact], [copy])
    assert "open_memory still shows it" in text
    page = ask("open_memory", id=copy)
    assert page["attributes"]["reason"] == "the Makefile is gone"
    assert page["attributes"]["retired"] == "2026-09-21T14:13:20Z"
    assert "make check" in page["text"]
    assert evidence(ask, copy) == ["supports (verified outcome)"]
    assert ask("forget_memory", id=fact, action="retire")["unchanged"] == [fact]


def test_t42_a_deletion_takes_what_was_replaced_along_and_names_what_still_says_the_same(
    ask: Asker, home: Path
) -> None:
    first = ask("remember_fact", text="The watchword is kittiwake.", topic_key="watchword")["id"]
    second = ask("remember_fact", text="The watchword is guillemot.", topic_key="watchword")["id"]
    copy = ask("record_learning", claim="the watchword is guillemot", outcome="verified")["id"]
    told, text = ask.both("forget_memory", id=second)
    assert (told["action"], told["others"], told["alike"]) == ("delete", [first], [copy])
    assert f"still there, saying the same: {copy}" in text
    assert b"kittiwake" not in written(home)
    ask("forget_memory", id=copy)
    assert b"guillemot" not in written(home)


def test_t42_of_several_ids_one_that_is_wrong_forgets_none(ask: Asker, project: Path) -> None:
    fact = ask("remember_fact", text="The buoy is red.")["id"]
    (project / "notes.md").write_text("The harbour is deep.\n", encoding="utf-8")
    ask.memory.sync_documents()
    (card,) = ask("ground_recall", query="harbour deep")["data"]
    assert ask.wrong("forget_memory", id=f"{fact} fact_none").startswith("id: there is no item fact_none.")
    told = ask.wrong("forget_memory", id=f"{fact} {card['id']}", action="retire")
    assert told.startswith(f"action: {card['id']} is a doc: it says what its source says")
    assert ask.wrong("forget_memory", id=" ").startswith("id: 0 ids are given. Give 1 to 100.")
    assert ask.wrong("forget_memory", id=fact, action="hide").startswith('action: "hide" is not usable.')
    assert found(ask, "buoy red") == [fact]


def test_t42_case_61_a_forgotten_learning_leaves_no_byte_in_table_index_vectors_log_or_statistics(
    home: Path, project: Path
) -> None:
    with asker(home, project, "hashing", GROUNDED_TELEMETRY__LOG_QUERIES="true") as ask:
        assert ask.memory.wait_ready(30)
        other = ask("remember_fact", text="The pelican sleeps on the northern pier.")["id"]
        lesson = {"command": "make wimbrel", "note": "Sandpiper saw it", "supports": [other]}
        learnt = ask("record_learning", claim="The phalarope hut opens at noon.", outcome="verified", **lesson)["id"]
        ask.embed()
        with closing(apsw.Connection(str(home / "memory.db"))) as db:
            told = "SELECT embedding FROM vector JOIN passage ON passage.id = vector.passage WHERE body LIKE ?"
            ((vector,),) = db.execute(told, ("%phalarope%",))
        for query in ("when does the phalarope hut open", "pelican on the northern pier"):
            ask("get_project_memory", query=query, intent="inspect")
        assert ask("memory_status")["usage"]["recalls"] == 2
        traces = (b"phalarope", b"wimbrel", b"andpiper", bytes(vector), learnt.encode())
        assert all(trace in written(home) for trace in traces)
        assert evidence(ask, other) == ["supports (verified outcome)"]

        ask("forget_memory", id=learnt)
        left = written(home)  # the database, its write-ahead log and its index of that
        assert [trace for trace in traces if trace in left] == []
        assert b"The pelican sleeps" in left  # what nobody forgot
        assert evidence(ask, other) == []  # it goes with its source
        for mode in ("lexical", "vector", "hybrid"):
            found = ask("get_project_memory", query="phalarope hut", intent="inspect", mode=mode)
            assert (found["items"], found["scripts"]) == ([], [])
        assert ask.memory.stats("1h").recalls == 5


def test_what_a_claim_says_of_others_is_told_with_it_and_goes_with_it(ask: Asker) -> None:
    nightly = ask("remember_fact", text="The tide table is rebuilt every night.")["id"]
    locked = ask("remember_fact", text="Nobody edits the tide table.")["id"]
    said = {"supports": [nightly], "contradicts": [locked], "note": "watched it"}
    learnt = ask("record_learning", claim=CLAIM, outcome="diagnostic", **said)["id"]
    for each, says in ((nightly, "supports"), (locked, "contradicts")):
        (piece,) = ask("open_memory", id=each)["provenance"]["evidence"]
        assert (piece["says"], piece["open"]) == (f"{says} (diagnostic episode)", learnt)
        assert "watched it" in piece["note"]
    ask("record_learning", claim=CLAIM, outcome="verified", supports=[nightly])
    assert len(evidence(ask, nightly)) == 2
    ask("forget_memory", id=learnt)
    assert (evidence(ask, nightly), evidence(ask, locked)) == ([], [])


def work(project: Path, session: str = "5c0e0000-0000-4000-8000-000000000001") -> Talk:
    return (
        Talk(str(project), session)
        .ask("Why does the ferry timetable skip Sundays?")
        .run("make check", "AssertionError: sunday", ok=False)
        .edit(f"{project}/days.py")
        .run("make check", "12 passed")
        .say("Sundays were left out by mistake; make check passes again.")
    )


@pytest.mark.parametrize("retire", [(), ("--retire",)])
@pytest.mark.parametrize("kind", ["script", "episode"])
def test_case_61_a_forgotten_command_or_attempt_does_not_come_back_with_its_session(
    command: Command, project: Path, kind: str, retire: tuple[str, ...]
) -> None:
    work(project).write(command.home.parent)
    command.json("sync", "--sessions", "--no-vectors")
    store = open_store(settings(load(cwd=project, env={"GROUNDED_HOME": str(command.home)})))
    scope = next(iter(store.scopes()))
    (item,) = store.known(kind, scope).values()  # type: ignore[arg-type]
    command.json("forget", item.id, *retire)
    command.json("sync", "--sessions", "--no-vectors", "--reread")
    work(project, "5c0e0000-0000-4000-8000-000000000002").write(command.home.parent)
    command.json("sync", "--sessions", "--no-vectors")
    known = store.known(kind, scope)  # type: ignore[arg-type]
    assert item.id not in {each.id for each in known.values()}
    store.close()


# --- why is this known ------------------------------------------------------------------------------------


def test_a_mined_command_names_the_exchanges_that_it_was_seen_in_and_each_can_be_opened(
    command: Command, project: Path
) -> None:
    talk = work(project).ask("And is the whole ferry timetable checked on every push?").run("make check", "12 passed")
    talk.say("Yes, it is.").write(command.home.parent)
    command.json("sync", "--sessions", "--no-vectors")
    store = open_store(settings(load(cwd=project, env={"GROUNDED_HOME": str(command.home)})))
    (script,) = store.known("script", next(iter(store.scopes()))).values()
    (episode, *_) = store.known("episode", next(iter(store.scopes()))).values()
    store.close()
    page = command.json("open", script.id)
    pieces = page["provenance"]["evidence"]
    assert page["provenance"]["why"].startswith("seen to run, first 2026-03-02T")
    assert [piece["agent"] for piece in pieces] == ["claude-code"] * len(pieces)
    first = command.json("open", pieces[-1]["open"])
    last = command.json("open", pieces[0]["open"])
    assert first["text"].partition(">")[2].startswith("Edited: days.py") or "skip Sundays" in first["text"]
    assert "on every push" in last["text"].partition(">")[2][:200]
    (source,) = command.json("open", episode.id)["provenance"]["sources"]
    assert "skip Sundays" in command.json("open", source)["text"]


def test_every_kind_says_how_it_came_to_be_known(ask: Asker, project: Path, git: Callable[..., str]) -> None:
    git(project, "init", "--quiet")
    (project / "notes.md").write_text("The harbour is deep.\n", encoding="utf-8")
    git(project, "add", "notes.md")
    git(project, "commit", "--quiet", "-m", "x")
    ask.memory.sync_documents()
    fact = ask("open_memory", id=ask("remember_fact", text="The buoy is red.")["id"])
    assert fact["provenance"] == {"why": "stated 2026-09-21T14:13:20Z"}
    (card,) = ask("ground_recall", query="harbour deep")["data"]
    doc, text = ask.both("open_memory", id=card["open"])
    assert doc["provenance"]["why"] == "read from notes.md, on branch main"
    assert doc["attributes"]["git"] == "tracked"
    assert "why: read from notes.md, on branch main" in text
    learnt = ask("open_memory", id=ask("record_learning", claim=CLAIM, outcome="verified")["id"])
    why = "stated 2026-09-21T14:13:20Z, on branch main, evidence: 1 for it, 0 against"
    assert learnt["provenance"]["why"] == why
    assert "topic" not in learnt


def test_f1_much_evidence_with_long_notes_keeps_a_page_within_its_limits(ask: Asker) -> None:
    learnt = ask("record_learning", claim=CLAIM, outcome="verified", note="<&" * 400)["id"]
    for number in range(30):
        ask.clock.now += 60
        ask("record_learning", claim=CLAIM, outcome="failed", note=f"{number} " + "& <" * 300)
    page, text = ask.both("open_memory", id=learnt)
    assert len(json.dumps(page, ensure_ascii=False, separators=(",", ":"))) <= 10_000
    assert len(text) <= 10_000
    shown = page["provenance"]["evidence"]
    assert len(shown) + page["provenance"]["moreEvidence"] == 31
    assert 1 <= len(shown) <= 10
    assert page["provenance"]["why"].endswith("evidence: 1 for it, 30 against")
    assert shown[0]["note"].startswith(f"{OPEN}29 ")


def test_a_session_that_is_forgotten_takes_its_evidence_along(tmp_path: Path, ask: Asker, home: Path) -> None:
    learnt = ask("record_learning", claim=CLAIM, outcome="verified")["id"]
    store = open_store(settings(load(cwd=tmp_path, env={"GROUNDED_HOME": str(home)})))
    scope = ask.memory.project.scope
    session = Item("ses_1", "session", scope, Clean("s"), key="x:1", updated_at=5.0)
    seen = Evidence("ses_1", 1, False, "verified outcome", 5.0, Clean("it broke"))
    store.save([Record(session, (Passage(0, Clean("the pier broke"), "", 1, 2, 5.0),))])
    item, passages = store.item(learnt)
    store.save([Record(item, passages, (seen,))])
    store.close()
    assert ask("open_memory", id=learnt)["provenance"]["evidence"][1]["open"] == "ses_1"
    ask("forget_memory", id="ses_1")
    assert evidence(ask, learnt) == ["supports (verified outcome)"]


# --- the command line -------------------------------------------------------------------------------------


def test_f4_the_command_line_records_and_retires_as_the_tools_do(
    command: Command, project: Path, git: Callable[..., str]
) -> None:
    git(project, "init", "--quiet")
    (project / "tide.sh").write_text("echo tide\n", encoding="utf-8")
    old = command.json("remember", "Tests run with `make check`")["id"]
    arguments = ("--script", "tide.sh", "--command", "sh tide.sh", "--contradicts", old, "--note", "seen twice")
    (project / "pier").mkdir()
    learnt = command.json("learn", "Tests run with `just test`", *arguments)
    below = command.json("learn", "The tide is high", "--script", "../tide.sh", cwd=project / "pier")
    assert '"tide.sh"' in command.json("open", below["id"])["attributes"]["scripts"]
    assert (learnt["outcome"], learnt["retired"]) == ("stored", [old])
    assert command.json("open", learnt["id"])["attributes"]["command"] == "sh tide.sh"
    assert command.json("learn", "--diagnostic", "Run tests with just test")["outcome"] == "merged"
    said = command("learn", "--failed", "-", stdin="Tests run with `just test`")
    assert f"merged: {learnt['id']}" in said.stdout
    assert "evidence: 2 for it, 1 against" in said.stdout
    rejected = command("learn", TOKEN)
    assert (rejected.returncode, rejected.stdout.startswith("rejected: Nothing is left")) == (1, True)
    retired = command("forget", learnt["id"], "--retire", "--reason", "we went back")
    assert retired.stdout.startswith(f"retired: {learnt['id']} (learning, ")
    assert "we went back" in command("open", learnt["id"]).stdout
    assert command("forget", learnt["id"]).stdout.splitlines()[0].startswith(f"forgotten: {learnt['id']}")
    assert "there is no item" in command("open", learnt["id"]).stderr


def test_a_clock_that_is_set_back_changes_no_history(home: Path, project: Path) -> None:
    clock = Clock()
    with asker(home, project, clock=clock) as ask:
        old = ask("remember_fact", text="The API port is 8090.")["id"]
        clock.now -= 86_400
        new = ask("record_learning", claim="The API port is 8091.", outcome="verified", contradicts=[old])
        assert new["retired"] == [old]
        assert [each["id"] for each in ask("open_memory", id=new["id"])["history"]] == [old]
