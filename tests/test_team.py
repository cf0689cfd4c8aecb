"""A team's server: one store, a token for each, and nobody sees or changes what is not theirs. Over real HTTP."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import httpx2
import postgres_server
import pytest
import serving
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference
from wiring import wired

from grounded_mcp.assemble import open_store
from grounded_mcp.config import load
from grounded_mcp.errors import (
    ConfigError,
    NotFound,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreStopped,
    StoreUnreachable,
)
from grounded_mcp.faces.doorman import Doorman, digest, new_token
from grounded_mcp.faces.gate import access
from grounded_mcp.faces.limits import Limits
from grounded_mcp.faces.metrics import Meter
from grounded_mcp.faces.options import ServerOptions
from grounded_mcp.faces.resources import TEMPLATE
from grounded_mcp.faces.team import Team
from grounded_mcp.settings import settings
from grounded_mcp.stores.roster import Token
from grounded_mcp.transfer.lines import KINDS
from grounded_mcp.values import Clean, Evidence, Item, Passage, Project, Record
from tests.conftest import REPOSITORY, Command

RED, BLUE = "acme/red", "acme/blue"
MARKS = {RED: "vermilion", BLUE: "cerulean"}
"""A word that only the items of one team hold."""
OWNER = "owner-" + "x" * 40


@dataclass
class Place:
    """A running server, its store, and a token for each name."""

    port: int
    home: Path
    command: Command
    log: Path
    tokens: dict[str, str] = field(default_factory=dict)
    store: dict[str, str] = field(default_factory=dict)
    """Settings that name the store."""

    def token(self, name: str, *args: str) -> str:
        made = self.command.json("token", "create", name, *args)
        self.tokens[name] = made["token"]
        return str(made["token"])

    def status(self, path: str, token: str = "", method: str = "GET", body: bytes = b"", **headers: str) -> int:
        return self.answer(path, token, method, body, **headers)[0]

    def answer(
        self, path: str, token: str = "", method: str = "GET", body: bytes = b"", **headers: str
    ) -> tuple[int, str, dict[str, str]]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            named["Authorization"] = f"Bearer {token}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=serving.WAIT)
        with closing(connection):
            connection.request(method, path, body or None, named)
            got = connection.getresponse()
            return got.status, got.read().decode(), {name.lower(): value for name, value in got.getheaders()}

    def post(self, token: str, message: dict[str, Any], **headers: str) -> tuple[int, str, dict[str, str]]:
        wire = {"Accept": "application/json, text/event-stream", "Content_Type": "application/json"}
        return self.answer("/mcp", token, "POST", json.dumps(message).encode(), **{**wire, **headers})

    def talk(self, name: str, ask: Callable[[Client], Awaitable[Any]]) -> Any:
        """What a client with a token's name is answered."""

        async def talk() -> Any:
            with anyio.fail_after(serving.WAIT):
                async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {self.tokens[name]}"}) as web:
                    url = f"http://127.0.0.1:{self.port}/mcp"
                    async with Client(streamable_http_client(url, http_client=web)) as client:
                        return await ask(client)

        return anyio.run(talk)

    def call(self, name: str, tool: str, **arguments: Any) -> Any:
        """The whole result of a call with a token's name."""
        return self.talk(name, lambda client: client.call_tool(tool, arguments))

    def wire(self, name: str, tool: str, **arguments: Any) -> str:
        """Everything that a call brings back, as text."""
        return str(self.call(name, tool, **arguments).model_dump_json())


def seed(command: Command) -> None:
    """For each team one item of every kind, worded alike but for its mark."""
    env = {**command.environment(), "HOME": str(command.home)}
    with closing(open_store(settings(load(cwd=command.cwd, env=env)))) as store:
        for project, mark in MARKS.items():
            store.register(Project(project, project.split("/")[1], "test", f"/srv/{mark}"), 1.0)
            store.save([_record(kind, project, mark) for kind in KINDS])
        text = Clean("Everyone brings their own mug.")
        store.save([Record(Item("fact_shared", "fact", "global", text, body=text), (Passage(0, text),))])


def _record(kind: Any, project: str, mark: str) -> Record:
    text = Clean(f"The deploy gateway listens on port 8443 in the {mark} cluster.")
    session = f"session_{mark}"
    attrs = {"command": f"make {mark}", "session": session, "scripts": json.dumps({"deploy.sh": "0" * 64})}
    key = f"{mark}/{kind}.md" if kind in ("doc", "script") else None
    proof = Evidence(session, 1, True, "verified outcome", 5.0, Clean(f"seen in {mark}"))
    item = Item(f"{kind}_{mark}", kind, f"project:{project}", text, key, text, updated_at=2.0, attrs=attrs)
    return Record(item, (Passage(0, text),), (proof,) if kind in ("script", "learning") else ())


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    home = tmp_path_factory.mktemp("team")
    more = {}
    with ExitStack() as held:
        if request.param == "postgres":
            if postgres_server.missing():
                pytest.skip(postgres_server.missing())
            schema = held.enter_context(postgres_server.schema())
            more = {"store": postgres_server.url(), "store__postgres__schema": schema}
        command = Command(home, home, {f"GROUNDED_{name.upper()}": value for name, value in more.items()})
        seed(command)
        server = serving.http(home, server__token=OWNER, server__requests_per_minute=5_000, **more)
        _, port = held.enter_context(server)
        place = Place(port, home, command, home / "log", store=more or {"store": str(home / "memory.db")})
        for name, project in (("red", RED), ("blue", BLUE)):
            place.token(name, "--project", project)
        place.token("reader", "--project", RED, "--read-only")
        place.token("prometheus", "--metrics")
        place.tokens["owner"] = OWNER
        yield place


# --- what a token opens -----------------------------------------------------------------------------------

ASKS: list[tuple[str, dict[str, Any]]] = [
    ("ground_recall", {"query": "deploy gateway port 8443 cluster", "trace": True, "limit": 50}),
    ("ground_recall", {"query": "deploy gateway cluster", "project": "*", "trace": True}),
    ("ground_recall", {"query": "deploy gateway cluster", "project": BLUE, "trace": True}),
    ("ground_recall", {"query": "deploy gateway cluster", "project": "blue"}),
    ("ground_recall", {"query": "deploy gateway cluster", "factScopes": [f"project:{BLUE}"]}),
    ("ground_recall", {"query": "what happened in January 1970", "trace": True}),
    ("get_project_memory", {}),
    ("get_project_memory", {"project": BLUE}),
    ("get_project_memory", {"query": "deploy gateway cluster", "intent": "diagnose"}),
    ("get_project_memory", {"query": "deploy gateway", "intent": "repair", "project": BLUE}),
    ("context_pack", {"task": "Move the deploy gateway, port 8443", "detail": "full"}),
    ("context_pack", {"task": "Move the deploy gateway", "project": BLUE, "detail": "full"}),
    ("memory_status", {}),
]


@pytest.mark.parametrize(("tool", "arguments"), ASKS, ids=[f"{at}-{tool}" for at, (tool, _) in enumerate(ASKS)])
def test_case_60_no_tool_shows_a_team_what_is_another_teams(place: Place, tool: str, arguments: dict[str, Any]) -> None:
    for name in ("red", "reader"):
        assert "cerulean" not in place.wire(name, tool, **arguments)
    theirs = {"project": RED} if arguments.get("project") == BLUE else {}
    assert "vermilion" not in place.wire("blue", tool, **{**arguments, **theirs})


def test_case_60_each_team_finds_its_own_and_what_is_global(place: Place) -> None:
    for name, mark in (("red", "vermilion"), ("blue", "cerulean")):
        found = place.call(name, "ground_recall", query="deploy gateway port 8443").structured_content["data"]
        assert {card["id"] for card in found} == {f"{kind}_{mark}" for kind in ("fact", "session", "doc", "digest")}
        shared = place.call(name, "ground_recall", query="whose mug").structured_content["data"]
        assert [card["id"] for card in shared] == ["fact_shared"]


SHOWN: dict[str, Callable[[Client], Awaitable[Any]]] = {
    "brief": lambda client: client.read_resource("memory://brief"),
    "brief as a prompt": lambda client: client.get_prompt("startup_brief"),
    "pack": lambda client: client.get_prompt("context_pack", {"task": "Move the deploy gateway, port 8443"}),
    "ids": lambda client: client.complete(ResourceTemplateReference(uri=TEMPLATE), {"name": "id", "value": ""}),
}


@pytest.mark.parametrize("what", SHOWN)
def test_case_60_resources_prompts_and_completions_show_a_team_its_own(place: Place, what: str) -> None:
    for name, mine, other in (
        ("red", "vermilion", "cerulean"),
        ("reader", "vermilion", "cerulean"),
        ("blue", "cerulean", "vermilion"),
    ):
        told = place.talk(name, SHOWN[what]).model_dump_json()
        assert mine in told
        assert other not in told


@pytest.mark.parametrize("kind", KINDS)
def test_case_60_another_teams_items_are_no_resources(place: Place, kind: str) -> None:
    for pointer in ("cerulean", "cerulean%230", "cerulean?offset=1"):

        async def read(client: Client) -> Any:
            with pytest.raises(MCPError, match=f"there is no item {kind}_cerulean"):
                await client.read_resource(f"memory://item/{kind}_{pointer}")  # noqa: B023 - read at once

        place.talk("red", read)
    assert (
        "cerulean" in place.talk("blue", lambda c: c.read_resource(f"memory://item/{kind}_cerulean")).model_dump_json()
    )


def test_case_60_only_a_tokens_own_projects_are_offered_and_packed(place: Place) -> None:
    prompt = PromptReference(name="context_pack")
    for name, known in (("red", ["red"]), ("blue", ["blue"]), ("owner", ["blue", "red"])):
        offered = place.talk(name, lambda client: client.complete(prompt, {"name": "project", "value": ""}))
        assert sorted(offered.completion.values) == known
    task = {"task": "Move the deploy gateway, port 8443", "project": BLUE}
    told = place.talk("red", lambda client: client.get_prompt("context_pack", task)).model_dump_json()
    assert "cerulean" not in told


def test_case_60_the_owner_sees_every_team(place: Place) -> None:
    told = place.wire("owner", "ground_recall", query="deploy gateway", project="*")
    assert "vermilion" in told
    assert "cerulean" in told


@pytest.mark.parametrize("kind", KINDS)
def test_case_60_pointers_to_another_teams_items_lead_nowhere(place: Place, kind: str) -> None:
    theirs = f"{kind}_cerulean"
    for tool in ("open_memory", "forget_memory"):
        for pointer in (theirs, f"{theirs}#0"):
            result = place.call("red", tool, id=pointer)
            assert result.is_error
            assert result.content[0].text.startswith(f"id: there is no item {theirs}.")
    assert not place.call("blue", "open_memory", id=theirs).is_error


def test_case_60_nothing_can_be_hung_on_another_teams_items(place: Place) -> None:
    replaced = place.call("red", "remember_fact", text="The gateway moved.", replaces="fact_cerulean")
    assert replaced.is_error
    for how in ("supports", "contradicts"):
        said = place.call("red", "record_learning", claim="It holds.", outcome="verified", **{how: ["fact_cerulean"]})
        assert said.is_error
        assert "there is no item fact_cerulean" in said.content[0].text
    retired = place.call("red", "forget_memory", id="fact_cerulean", action="retire")
    assert retired.is_error
    assert not place.call("blue", "open_memory", id="fact_cerulean").is_error


@pytest.mark.parametrize("scope", ["global", f"project:{BLUE}", "agent:shared", "machine"])
def test_a_token_writes_only_where_it_may(place: Place, scope: str) -> None:
    result = place.call("red", "remember_fact", text="Anybody may read this.", scope=scope)
    assert result.is_error
    assert "This token may not change anything in" in result.content[0].text


def test_a_token_with_a_scope_of_its_own_writes_there(place: Place) -> None:
    place.token("global-writer", "--project", RED, "--scope", "global", "--scope", "agent:painter")
    for scope in ("global", "agent:painter"):
        said = place.call("global-writer", "remember_fact", text=f"Primer dries in an hour, {scope}.", scope=scope)
        assert said.structured_content["scope"] == scope
    assert "Primer dries" in place.wire("blue", "ground_recall", query="primer dries")
    assert "agent:painter" not in place.wire("blue", "ground_recall", query="primer dries")


def test_a_read_only_token_changes_nothing(place: Place) -> None:
    for tool, arguments in (
        ("remember_fact", {"text": "Readers may write."}),
        ("record_learning", {"claim": "Readers may write.", "outcome": "verified"}),
        ("forget_memory", {"id": "fact_vermilion"}),
    ):
        result = place.call("reader", tool, **arguments)
        assert result.is_error
        assert "This token may not" in result.content[0].text
    assert "Readers may write" not in place.wire("red", "ground_recall", query="readers may write")
    assert not place.call("reader", "open_memory", id="fact_vermilion").is_error


def test_what_a_team_stores_and_forgets_is_its_own(place: Place) -> None:
    said = place.call("red", "remember_fact", text="The kiln fires at noon.").structured_content
    assert said["scope"] == f"project:{RED}"
    assert "kiln" not in place.wire("blue", "ground_recall", query="kiln noon").replace("kiln noon", "")
    assert not place.call("red", "forget_memory", id=said["id"]).is_error
    assert place.call("red", "open_memory", id=said["id"]).is_error


def test_case_60_the_status_counts_what_may_be_read_and_names_no_place_of_the_server(place: Place) -> None:
    told = place.wire("blue", "memory_status")
    assert str(place.home) not in told
    for name, docs in (("blue", 1), ("red", 1), ("owner", 2)):
        assert place.call(name, "memory_status").structured_content["store"]["items"]["doc"] == docs


def test_a_token_reads_in_its_status_what_is_its_own_and_nothing_of_what_it_is_not_told(place: Place) -> None:
    result = place.call("blue", "memory_status")
    told, text = result.structured_content, result.content[0].text
    assert told["here"]["doc"] == 1
    assert "here: items " in text
    assert {"root", "branch"}.isdisjoint(told)
    assert {"location", "bytes"}.isdisjoint(told["store"])
    for never in ("/dev/null", "location", "bytes"):
        assert never not in text
    assert place.call("owner", "memory_status").structured_content["store"]["bytes"] > 0


def test_a_token_is_told_no_name_but_its_own_and_nothing_to_run(place: Place) -> None:
    for name, wrong in (("blue", RED), ("blue", "nosuch"), ("red", "nosuch")):
        note = place.call(name, "ground_recall", query="xylophone", project=wrong).structured_content["meta"]["note"]
        theirs, own = (BLUE, RED) if name == "red" else (RED, BLUE)
        assert note.startswith(f"No project {wrong} is known here. Known: ")
        assert own.rpartition("/")[2] in note
        assert theirs.rpartition("/")[2] not in note.replace(wrong, "")
        assert "sync" not in note


def test_case_60_no_recall_of_another_team_can_be_reported_on(place: Place) -> None:
    theirs = place.call("blue", "ground_recall", query="gateway").structured_content["meta"]["recallId"]
    for name, wrong in (("red", True), ("blue", False)):
        result = place.call(name, "get_project_memory", downstream_reuse=True, recall_id=theirs)
        assert result.is_error is wrong


def test_no_folder_of_the_server_is_looked_at_for_a_token(place: Place) -> None:
    """A script counts as stale, as nobody has seen it, and never as missing, whether or not there is such a file."""
    (place.home / "deploy.sh").write_text("echo hi\n", encoding="utf-8")
    for name in (str(place.home), "/nowhere-at-all"):
        found = place.call("red", "get_project_memory", project=name).structured_content
        assert (found["scripts"], found["meta"]["project"]) == ([], f"path:{name}")
    scripts = place.call("red", "get_project_memory").structured_content["scripts"]
    assert [(each["id"], each["state"]) for each in scripts] == [("script_vermilion", "stale")]
    learnt = place.call("red", "record_learning", claim="It deploys.", outcome="verified", script="no-such-file.sh")
    assert not learnt.is_error


@pytest.mark.parametrize("endpoint", ["mcp", "sse"])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_case_60_either_transport_in_either_era_is_bounded(place: Place, endpoint: str, mode: Any) -> None:
    async def talk() -> str:
        headers = {"Authorization": f"Bearer {place.tokens['red']}"}
        url = f"http://127.0.0.1:{place.port}/{endpoint}"
        with anyio.fail_after(serving.WAIT):
            async with httpx2.AsyncClient(headers=headers) as web:
                way = streamable_http_client(url, http_client=web) if endpoint == "mcp" else sse_client(url, headers)
                async with Client(way, mode=mode) as client:
                    found = await client.call_tool("ground_recall", {"query": "deploy gateway", "project": "*"})
                    return str(found.model_dump_json())

    told = anyio.run(talk)
    assert "vermilion" in told
    assert "cerulean" not in told


# --- who is let in ----------------------------------------------------------------------------------------


def test_case_50_a_token_that_is_wrong_revoked_or_over_is_refused_at_once(place: Place) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    leaver = place.token("leaver", "--project", RED)
    assert place.post(leaver, ping)[0] != 401
    assert place.command("token", "revoke", "leaver").returncode == 0
    for wrong in (leaver, new_token(), "", "gmcp_", leaver + "x"):
        assert place.post(wrong, ping)[0] == 401
        assert place.status("/metrics", wrong) == 401
        assert place.status("/sse", wrong) == 401
    assert place.status(f"/mcp?token={place.tokens['red']}") == 401
    again = place.command("token", "create", "leaver", "--project", RED)
    assert again.returncode == 1
    assert "a name is given once" in again.stderr


def test_case_50_a_token_is_kept_as_a_digest_shown_once_and_in_no_log(place: Place) -> None:
    held = b"".join(path.read_bytes() for path in place.home.rglob("*") if path.is_file())
    in_a_file = (place.home / "memory.db").exists()
    for name in ("red", "blue", "reader"):
        assert place.tokens[name].encode() not in held
        assert (digest(place.tokens[name]).encode() in held) is in_a_file
    listed = place.command("token", "list")
    assert "red (valid) reads and writes acme/red" in listed.stdout
    assert "prometheus (valid) reads /metrics" in listed.stdout
    assert "gmcp_" not in listed.stdout


def test_a_token_is_valid_until_it_expires() -> None:
    given = new_token()
    token = Token("t", digest(given), ("p",), expires_at=100.0)
    for now, admitted in ((99.0, True), (100.0, False)):
        bearer = Doorman("", lambda: [token], lambda now=now: now).admit(given)
        assert (bearer is not None) is admitted


def test_where_no_token_was_ever_made_a_server_on_loopback_is_its_owners() -> None:
    given = new_token()
    assert Doorman("", list).admit("").may_ask  # type: ignore[union-attr]
    revoked = Token("t", digest(given), ("p",), revoked_at=1.0)
    for brought in ("", given, "other"):
        assert Doorman("", lambda: [revoked]).admit(brought) is None


def test_case_49_named_tokens_guard_an_address_that_others_can_reach() -> None:
    options = ServerOptions(allowed_hosts=("memory.example",))
    assert access("0.0.0.0", 8765, options, guarded=lambda: True).hosts == {"memory.example:8765"}
    with pytest.raises(ConfigError, match="grounded-mcp token create"):
        access("0.0.0.0", 8765, options, guarded=lambda: False)


def test_case_52_a_session_is_its_tokens_only(place: Place) -> None:
    start = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": serving.INITIALIZE}
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    code, _, headers = place.post(place.tokens["red"], start)
    assert code == 200
    session = headers["mcp-session-id"]
    assert len(session) == 32  # 128 bits in hexadecimal
    for name, expected in (("blue", 404), ("reader", 404), ("owner", 404), ("red", 200)):
        assert place.post(place.tokens[name], ping, Mcp_Session_Id=session)[0] == expected
    assert place.status("/mcp", place.tokens["blue"], "DELETE", Mcp_Session_Id=session) == 404
    assert place.status("/mcp", place.tokens["red"], "DELETE", Mcp_Session_Id=session) == 200
    assert place.post(place.tokens["red"], ping, Mcp_Session_Id=session)[0] == 404


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("a b", "--project", "x"), "cannot be one"),
        (("nothing",), "it would open nothing"),
        (("late", "--project", "x", "--expires", "2020-01-01"), "is over"),
        (("odd", "--project", "x", "--scope", "everything"), "is not a scope"),
    ],
)
def test_a_token_that_makes_no_sense_is_not_made(command: Command, args: tuple[str, ...], told: str) -> None:
    done = command("token", "create", *args)
    assert done.returncode == 1
    assert told.replace("it would", "the token would") in done.stderr
    assert command("token", "revoke", args[0]).returncode == 1


def test_two_servers_on_one_store_share_what_is_stored_and_who_is_let_in(place: Place, tmp_path: Path) -> None:
    visitor = place.token("visitor", "--project", RED)
    with serving.http(tmp_path, server__token=OWNER, **place.store) as (_, port):
        other = replace(place, port=port)
        told = place.call("visitor", "remember_fact", text="The second furnace is cold.").structured_content["id"]
        found = other.call("visitor", "ground_recall", query="second furnace").structured_content["data"]
        assert [card["id"] for card in found] == [told]
        assert not other.call("visitor", "forget_memory", id=told).is_error
        assert place.call("visitor", "open_memory", id=told).is_error
        assert place.command("token", "revoke", "visitor").returncode == 0
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert [each.post(visitor, ping)[0] for each in (place, other)] == [401, 401]


@pytest.mark.parametrize("name", ["owner", "member"])
@pytest.mark.parametrize(
    "error", [StoreBusy, StoreFull, StoreStopped, StoreUnreachable, StoreError], ids=lambda error: error.__name__
)
def test_case_60_where_the_store_lies_is_told_to_its_owner_only(name: str, error: type[StoreError]) -> None:
    def broken() -> Any:
        raise AssertionError

    team = Team(broken, broken, broken)
    token = None if name == "owner" else Token("member", "0" * 64, (RED,))
    told = team.opening(token).words(error("/srv/secret/memory.db is not to be named.", "Look at it."))
    assert ("/srv/secret" in told) is (name == "owner")
    assert told.endswith(".")
    assert team.opening(token).words(NotFound("id", "there is no item x.", "Use another.")).startswith("id: ")


@postgres_server.NEEDED
def test_a_server_whose_database_is_lost_says_so_lets_nobody_in_unseen_and_goes_on_when_it_is_back(
    tmp_path: Path,
) -> None:
    command, quick = Command(tmp_path, tmp_path), {"store__postgres__pool_timeout_s": 1.0}
    with postgres_server.schema() as schema, wired() as wire:
        store = {"store": wire.url, "store__postgres__schema": schema, **quick}
        with serving.http(tmp_path, server__token=OWNER, **store) as (_, port):
            named = {f"GROUNDED_{name.upper()}": str(value) for name, value in store.items()}
            place = Place(port, tmp_path, replace(command, env=named), tmp_path / "log", {"owner": OWNER})
            member = place.token("member", "--project", RED)
            assert not place.call("member", "remember_fact", text="The furnace is cold.").is_error
            wire.cut()
            lost = place.call("owner", "ground_recall", query="furnace")
            assert lost.is_error
            assert "cannot be reached" in lost.content[0].text
            assert wire.url in lost.content[0].text
            assert place.status("/healthz") == 503
            assert place.status("/mcp", member, "POST", b"{}") == 503
            assert "grounded_mcp_store_up 0" in place.answer("/metrics", OWNER)[1]
            wire.whole = True
            assert 200 in (place.status("/healthz") for _ in range(30))  # each waits a second for the pool
            found = place.call("member", "ground_recall", query="furnace").structured_content["data"]
            assert [card["title"] for card in found] == ["The furnace is cold."]


# --- limits, figures, the end -----------------------------------------------------------------------------


def test_a_name_may_ask_so_much_a_minute_and_at_once() -> None:
    now = [0.0]
    limits = Limits(per_minute=60, at_once=2, clock=lambda: now[0])
    assert [limits.enter("a"), limits.enter("a"), limits.enter("a")] == [0, 0, 1]
    limits.leave("a")
    assert limits.enter("a") == 0
    assert limits.enter("b") == 0  # another's limit is another's
    few = Limits(per_minute=2, at_once=9, clock=lambda: now[0])
    assert [few.enter("a"), few.enter("a"), few.enter("a")] == [0, 0, 30]
    now[0] = 30.0
    assert few.enter("a") == 0


def test_case_47_a_token_that_asks_for_too_much_is_told_when_to_come_back(tmp_path: Path) -> None:
    command = Command(tmp_path, tmp_path)
    with serving.http(tmp_path, server__requests_per_minute=3) as (_, port):
        place = Place(port, tmp_path, command, tmp_path / "log")
        eager, other = (place.token(name, "--project", RED) for name in ("eager", "other"))
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        answers = [place.post(eager, ping) for _ in range(5)]
        assert [code == 429 for code, _, _ in answers] == [False, False, False, True, True]
        assert 1 <= int(answers[-1][2]["retry-after"]) <= 20
        assert place.post(other, ping)[0] != 429
        assert place.status("/healthz") == 200


def test_the_figures_are_for_those_who_may_read_them_and_name_nobody(place: Place) -> None:
    place.call("red", "ground_recall", query="gateway")
    for name, expected in (("prometheus", 200), ("owner", 200), ("red", 403)):
        assert place.status("/metrics", place.tokens[name]) == expected
    assert place.post(place.tokens["prometheus"], {"jsonrpc": "2.0", "id": 1, "method": "ping"})[0] == 403
    _, page, headers = place.answer("/metrics", place.tokens["prometheus"])
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'grounded_mcp_tool_calls_total{tool="ground_recall",outcome="ok"}' in page
    assert "grounded_mcp_store_up 1" in page
    assert not {"acme", "red", "blue"} & set(page.replace('"', " ").split())
    assert place.status("/metrics", place.tokens["prometheus"], Host="evil.example") == 421
    assert place.status("/metrics", place.tokens["prometheus"], Origin="http://evil.example") == 403


def test_a_page_of_figures_adds_up() -> None:
    meter = Meter()
    for seconds in (0.004, 0.3, 99.0):
        meter.called("open_memory", seconds, ok=seconds < 1)
    meter.begin()
    meter.end(200)
    lines = meter.text({"store_up": 1}).splitlines()
    assert 'grounded_mcp_tool_seconds_bucket{tool="open_memory",le="0.005"} 1' in lines
    assert 'grounded_mcp_tool_seconds_bucket{tool="open_memory",le="10.0"} 2' in lines
    assert 'grounded_mcp_tool_seconds_bucket{tool="open_memory",le="+Inf"} 3' in lines
    assert 'grounded_mcp_tool_calls_total{tool="open_memory",outcome="error"} 1' in lines
    assert 'grounded_mcp_http_requests_total{status="200"} 1' in lines
    assert "grounded_mcp_requests_running 0" in lines


STATUS = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
        "name": "memory_status",
        "arguments": {},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    },
}
MODERN = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": "tools/call", "Mcp_Name": "memory_status"}
SLOW = (
    "import time; from grounded_mcp.memory import Memory; was = Memory.status; "
    "Memory.status = lambda self: (print('asked', flush=True), time.sleep(1.5), was(self))[2]; " + serving.HTTP
)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_f3_what_is_in_flight_at_a_signal_is_answered_before_the_server_ends(tmp_path: Path) -> None:
    env = serving.environment(tmp_path, server__port=0, server__grace_seconds=10)
    log = (tmp_path / "log").open("wb")
    process = subprocess.Popen([sys.executable, "-c", SLOW], stderr=log, stdout=subprocess.PIPE, env=env, cwd=tmp_path)
    try:
        port = serving._announced_port(process, tmp_path / "log")
        place = Place(port, tmp_path, Command(tmp_path, tmp_path), tmp_path / "log", {"owner": "none"})
        answers: list[Any] = []
        asking = threading.Thread(target=lambda: answers.append(place.post("", STATUS, **MODERN)))
        asking.start()
        assert process.stdout is not None
        assert process.stdout.readline() == b"asked\n"
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        asking.join(serving.WAIT)
        assert answers[0][0] == 200
        assert '"projectReason"' in answers[0][1]
        assert process.wait(serving.WAIT) == 0
        assert time.monotonic() - began < 8
        with pytest.raises(ConnectionRefusedError):
            place.status("/healthz")
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait(serving.WAIT)
        assert process.stdout is not None
        process.stdout.close()
        log.close()


def test_f4_the_store_is_named_on_the_command_line(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "team.db"
    env = serving.environment(tmp_path, server__port=0, store=tmp_path / "not-this.db")
    argv = [sys.executable, "-m", "grounded_mcp", "serve", "--transport", "http", "--store", str(elsewhere)]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(argv, stderr=log, env=env, cwd=tmp_path)
    try:
        place = Place(
            serving._announced_port(process, tmp_path / "log"), tmp_path, Command(tmp_path, tmp_path), tmp_path
        )
        assert place.status("/healthz") == 200
        assert elsewhere.is_file()
        assert not (tmp_path / "not-this.db").exists()
    finally:
        process.kill()
        process.wait(serving.WAIT)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_the_example_runs_against_the_real_server(tmp_path: Path, engine: str) -> None:
    if engine == "postgres" and postgres_server.missing():
        pytest.skip(postgres_server.missing())
    with ExitStack() as held:
        env, store = serving.environment(tmp_path), str(tmp_path / "team.db")
        if engine == "postgres":
            env["GROUNDED_STORE__POSTGRES__SCHEMA"] = held.enter_context(postgres_server.schema())
            store = postgres_server.url()
        argv = [sys.executable, str(REPOSITORY / "examples" / "a-team-server-over-http" / "run.py"), store]
        done = subprocess.run(
            argv, env=env, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=60, check=False
        )
    assert done.returncode == 0, done.stderr
    assert "app recalls      nothing" in done.stdout
    assert "app opens it     id: there is no item fact_" in done.stdout
    assert "web, revoked     HTTP 401" in done.stdout
