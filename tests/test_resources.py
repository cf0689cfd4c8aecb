"""The brief and the items as resources, the prompts, and what is offered while a person types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from grounded_mcp.inert import CLOSE, OPEN
from tests.asking import Asker, asker
from tests.conftest import Command

TEMPLATE = "memory://item/{id}{?offset}"
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])


@pytest.fixture
def ask(tmp_path: Path, project: Path) -> Iterator[Asker]:
    with asker(tmp_path / "home", project) as ask:
        yield ask


def over(ask: Asker, mode: Any, talk: Callable[[Client], Any]) -> Any:
    async def main() -> Any:
        with anyio.fail_after(30):
            async with Client(ask.server, mode=mode) as client:
                return await talk(client)

    return anyio.run(main)


def read(ask: Asker, uri: str, mode: Any = "legacy") -> str:
    (content,) = over(ask, mode, lambda client: client.read_resource(uri)).contents
    assert content.uri == uri
    return str(content.text)


def refused(ask: Asker, talk: Callable[[Client], Any], mode: Any = "legacy") -> MCPError:
    async def main(client: Client) -> MCPError:
        with pytest.raises(MCPError) as wrong:
            await talk(client)
        return wrong.value

    return over(ask, mode, main)  # type: ignore[no-any-return]


# --- resources --------------------------------------------------------------------------------------------


@ERAS
def test_f1_the_brief_and_a_template_for_items_are_listed_without_opening_the_store(ask: Asker, mode: Any) -> None:
    (brief,) = over(ask, mode, lambda client: client.list_resources()).resources
    (item,) = over(ask, mode, lambda client: client.list_resource_templates()).resource_templates
    assert (brief.uri, brief.title, brief.mime_type) == ("memory://brief", "Startup brief", "text/markdown")
    assert (item.uri_template, item.mime_type) == (TEMPLATE, "text/plain")
    assert not list(ask.memory.names().ids)


@ERAS
def test_f1_f5_the_brief_is_one_text_as_resource_as_prompt_and_on_the_command_line(
    ask: Asker, mode: Any, command: Command
) -> None:
    ask("remember_fact", text="Never push on a Friday.", pinned=True)
    text = read(ask, "memory://brief", mode)
    (message,) = over(ask, mode, lambda client: client.get_prompt("startup_brief")).messages
    assert (message.role, message.content.text) == ("user", text)
    assert command("brief").stdout == text + "\n"
    assert "Never push on a Friday." in text.split(OPEN)[1].split(CLOSE)[0]


def test_f1_the_brief_of_an_empty_store_says_that_nothing_is_remembered(ask: Asker) -> None:
    assert read(ask, "memory://brief").endswith("Nothing is remembered of this project yet.")


@ERAS
def test_f1_an_item_is_read_as_open_memory_shows_it(ask: Asker, mode: Any) -> None:
    id = ask("remember_fact", text="Deploys go <b>through</b> Heron.")["id"]
    text = read(ask, f"memory://item/{id}", mode)
    assert text == ask.both("open_memory", id=id)[1]
    assert "Deploys go &lt;b>through&lt;/b> Heron." in text.split(OPEN)[1].split(CLOSE)[0]


def test_f1_a_long_item_is_read_page_by_page_and_from_a_passage(ask: Asker, project: Path) -> None:
    sections = "".join(f"# Berth {n}\n\n{f'quay {n} ' * 300}\n\n" for n in range(6))
    (project / "berths.md").write_text(sections, encoding="utf-8")
    ask.memory.sync_documents()
    (id,) = ask.memory.names().ids
    first = ask("open_memory", id=id)
    second = read(ask, f"memory://item/{id}?offset={first['nextOffset']}")
    assert second == ask.both("open_memory", id=id, offset=first["nextOffset"])[1]
    passage = ask.both("open_memory", id=f"{id}#3")[1]
    assert read(ask, f"memory://item/{id}%233") == read(ask, f"memory://item/{id}#3") == passage


def test_f1_reading_an_item_counts_as_opening_it(ask: Asker) -> None:
    id = ask("remember_fact", text="Deploys go through Heron.")["id"]
    ask("ground_recall", query="Heron")
    before = ask.memory.stats().reports.opened
    read(ask, f"memory://item/{id}")
    assert ask.memory.stats().reports.opened == before + 1


@ERAS
@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("memory://item/fact_0", "fact_0"),
        ("memory://item/", "There is no resource memory://item/. There are memory://brief and " + TEMPLATE),
        ("memory://brief/other", "There is no resource memory://brief/other."),
        ("memory://item/fact_0?page=2", "There is no resource"),
        ("memory://item/fact_0?offset=-1", "offset"),
        ("memory://item/fact_0?offset=x", 'offset: "x" is not usable. Give a whole number'),
        ("file:///etc/passwd", "There is no resource file:///etc/passwd."),
        ("memory://item/..%2F..%2Fetc", "../../etc"),
    ],
)
def test_f1_a_resource_that_is_not_there_is_an_error_that_says_so(ask: Asker, mode: Any, uri: str, told: str) -> None:
    wrong = refused(ask, lambda client: client.read_resource(uri), mode)
    assert wrong.error.code == -32602
    assert told in wrong.error.message
    assert wrong.error.data == {"uri": uri}


# --- completions ------------------------------------------------------------------------------------------


def offered(ask: Asker, ref: Any, argument: str, typed: str, mode: Any = "legacy") -> list[str]:
    given = {"name": argument, "value": typed}
    return list(over(ask, mode, lambda client: client.complete(ref, given)).completion.values)


@ERAS
def test_f1_intents_projects_and_ids_are_completed(ask: Asker, mode: Any) -> None:
    pack, item = PromptReference(name="context_pack"), ResourceTemplateReference(uri=TEMPLATE)
    ids = [ask("remember_fact", text=f"Gate {n} opens at {n}.")["id"] for n in (7, 9)]
    assert offered(ask, pack, "intent", "", mode) == ["current_truth", "reasoning_archive", "blended"]
    assert offered(ask, pack, "intent", "REA", mode) == ["reasoning_archive"]
    assert offered(ask, pack, "project", "quay", mode) == ["quayside"]
    assert offered(ask, pack, "project", "nowhere", mode) == []
    assert sorted(offered(ask, item, "id", "fact_", mode)) == sorted(ids)
    assert offered(ask, item, "id", ids[0][:-1], mode) == [ids[0]]


def test_f1_free_text_has_no_completions(ask: Asker) -> None:
    assert offered(ask, PromptReference(name="context_pack"), "task", "dep") == []
    assert offered(ask, ResourceTemplateReference(uri=TEMPLATE), "offset", "1") == []


def test_f1_ids_of_another_project_are_not_offered(ask: Asker, tmp_path: Path) -> None:
    theirs = ask("remember_fact", text="Cranes are red.", scope="project:elsewhere")["id"]
    ours = ask("remember_fact", text="Cranes are blue.")["id"]
    with asker(tmp_path / "home", _folder(tmp_path / "elsewhere")) as other:
        other("remember_fact", text="Cranes are green.")
    assert ours in offered(ask, ResourceTemplateReference(uri=TEMPLATE), "id", "")
    assert theirs not in offered(ask, ResourceTemplateReference(uri=TEMPLATE), "id", "")


def test_f1_at_most_a_hundred_completions_are_offered_and_the_rest_is_counted(ask: Asker) -> None:
    for n in range(103):
        ask.memory.remember(f"Buoy {n} blinks {n} times.")
    ref = ResourceTemplateReference(uri=TEMPLATE)
    found = over(ask, "legacy", lambda client: client.complete(ref, {"name": "id", "value": "fact"})).completion
    assert (len(found.values), found.total, found.has_more) == (100, 103, True)


@pytest.mark.parametrize("ref", [PromptReference(name="nope"), ResourceTemplateReference(uri="memory://nope/{id}")])
def test_f1_a_completion_of_what_is_not_there_says_what_is(ask: Asker, ref: Any) -> None:
    wrong = refused(ask, lambda client: client.complete(ref, {"name": "id", "value": ""}))
    assert wrong.error.code == -32602
    assert "There is" in wrong.error.message


def _folder(path: Path) -> Path:
    path.mkdir()
    return path
