"""An agent's life with the memory, over days: learn, verify, change, contradict, correct, recall, report, read on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.asking import Clock, asker

DAY = 86_400.0


def found(ask: Any, query: str, **arguments: Any) -> dict[str, dict[str, Any]]:
    """The learnings that a search finds, by id."""
    items = ask("get_project_memory", query=query, intent="repair", **arguments)["items"]
    return {card["id"]: card for card in items}


def scripts(ask: Any) -> list[tuple[str, str]]:
    return [(card["state"], card["files"][0]) for card in ask("get_project_memory")["scripts"]]


def test_p1_p3_p5_a_life_of_five_days_with_one_claim(tmp_path: Path, project: Path) -> None:
    home = tmp_path / "home"
    clock = Clock()
    script = project / "scripts" / "migrate.sh"
    script.parent.mkdir()
    script.write_text("alembic upgrade head\n", encoding="utf-8")
    claim = "Migrations run with scripts/migrate.sh before the tests."

    with asker(home, project, clock=clock) as ask:
        # Monday: something is learnt, and seen to hold.
        learnt = ask("record_learning", claim=claim, outcome="verified", script="scripts/migrate.sh")
        assert learnt["outcome"] == "stored"
        monday = found(ask, "how do migrations run")[learnt["id"]]["confidence"]
        assert (monday["evidence_score"], monday["support_count"], monday["freshness"]["state"]) == (0.5, 1, "active")
        assert scripts(ask) == [("verified", "scripts/migrate.sh")]

    clock.now += DAY
    with asker(home, project, clock=clock) as ask:
        # Tuesday, another session: it holds again, and counts for more.
        again = ask("record_learning", claim=claim, outcome="verified", script="scripts/migrate.sh")
        assert (again["outcome"], again["id"]) == ("merged", learnt["id"])
        tuesday = found(ask, "how do migrations run")[learnt["id"]]["confidence"]
        assert (round(tuesday["evidence_score"], 3), tuesday["support_count"]) == (0.667, 2)

    clock.now += DAY
    script.write_text("alembic upgrade head --sql\n", encoding="utf-8")
    with asker(home, project, clock=clock) as ask:
        # Wednesday: the script is another one, and nobody has run it.
        wednesday = found(ask, "how do migrations run")[learnt["id"]]["confidence"]
        assert wednesday["freshness"]["state"] == "stale"
        assert scripts(ask) == [("stale", "scripts/migrate.sh")]
        assert wednesday["rank_rationale"]["script_staleness_penalty"] < 1.0
        assert wednesday["rank_rationale"]["final_score"] < tuesday["rank_rationale"]["final_score"]

    clock.now += DAY
    with asker(home, project, clock=clock) as ask:
        # Thursday: it failed. Two say it held, one that it does not, and that is the newest.
        seen = ask("record_learning", claim=claim, outcome="failed", note="prints SQL and changes nothing")
        assert seen["id"] == learnt["id"]
        thursday = found(ask, "how do migrations run")[learnt["id"]]["confidence"]
        assert (thursday["contradiction_count"], thursday["freshness"]["state"]) == (1, "contradicted")

    clock.now += DAY
    with asker(home, project, clock=clock) as ask:
        # Friday: what holds now takes its place; both stay readable.
        right = "Migrations run with make migrate before the tests, not with scripts/migrate.sh."
        corrected = ask("record_learning", claim=right, outcome="verified", contradicts=[learnt["id"]])
        assert corrected["outcome"] == "stored"
        assert corrected["retired"] == [learnt["id"]]
        assert list(found(ask, "how do migrations run")) == [corrected["id"]]
        opened = ask("open_memory", id=corrected["id"])
        assert [each["id"] for each in opened["history"]] == [learnt["id"]]
        assert claim in ask("open_memory", id=learnt["id"])["text"]

        # It was used, which is said with the next call.
        told = ask("get_project_memory", query="how do migrations run", intent="inspect", downstream_reuse=True)
        assert told["meta"]["reuse"].startswith("noted for ")

    with asker(home, project, clock=clock) as ask:
        # Whoever asks later can read that off: of six sessions, this one among them, five called for the memory, and
        # one of those used it.
        usage = ask("memory_status")["usage"]
        assert (usage["recalls"], usage["sessions"], usage["called"], usage["reused"]) == (8, 6, 5, 1)
        assert usage["reuseRate"] == 0.167
        reuse = ask.memory.stats().reuse
        assert (reuse.rate, reuse.called_rate, reuse.reused_given_called) == (1 / 6, 5 / 6, 1 / 5)
