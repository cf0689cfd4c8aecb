"""The prompts, as a client lists and picks them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from grounded_mcp.inert import OPEN
from tests.asking import Asker, asker


@pytest.fixture
def ask(tmp_path: Path, project: Path) -> Iterator[Asker]:
    (project / "berths.py").write_text("BERTH_LIMIT = 12  # ships at the quay at once\n", encoding="utf-8")
    with asker(tmp_path / "home", project) as ask:
        ask.memory.sync_documents()
        yield ask


def over(ask: Asker, mode: Any, talk: Callable[[Client], Any]) -> Any:
    async def main() -> Any:
        with anyio.fail_after(30):
            async with Client(ask.server, mode=mode) as client:
                return await talk(client)

    return anyio.run(main)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_f1_c1_a_context_pack_is_a_prompt_that_puts_the_task_before_what_is_known(ask: Asker, mode: str) -> None:
    brief, listed = over(ask, mode, lambda client: client.list_prompts()).prompts
    assert (brief.name, brief.arguments) == ("startup_brief", [])
    assert (listed.name, [(each.name, each.required) for each in listed.arguments]) == (
        "context_pack",
        [("task", True), ("intent", False), ("project", False)],
    )
    task = "raise the limit of ships at the quay"
    (message,) = over(ask, mode, lambda client: client.get_prompt("context_pack", {"task": task})).messages
    assert (message.role, message.content.text.splitlines()[0]) == ("user", task)
    assert "berths.py:1" in message.content.text
    assert OPEN in message.content.text


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("context_pack", {}, "task"),
        ("context_pack", {"task": "x", "intent": "guess"}, "current_truth"),
        ("startup", {"task": "x"}, "There is no prompt startup. The prompts are: startup_brief, context_pack."),
    ],
)
def test_f1_a_prompt_that_cannot_be_made_says_why(ask: Asker, name: str, arguments: Any, told: str) -> None:
    async def refused(client: Client) -> str:
        with pytest.raises(MCPError) as wrong:
            await client.get_prompt(name, arguments)
        return str(wrong.value)

    assert told in over(ask, "legacy", refused)
