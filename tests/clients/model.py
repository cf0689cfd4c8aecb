"""A model that is a script: the APIs of Anthropic, OpenAI (both) and Google on loopback, for whole runs of real agents.

The first request that offers the tool calls it once; everything else is answered ``SAID``. What the model would have
been sent is kept, request by request. Standard library only.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

SAID = "MOCK-DONE"
Body = Mapping[str, Any]
Event = tuple[str, Any]
"""A name, which may be empty, and what is sent as JSON; or as it is, where it is a text."""


class Offer(NamedTuple):
    """A tool as the client names it; Codex has names in namespaces."""

    name: str
    space: str = ""


class Api(NamedTuple):
    """One API. ``answered``: whether a tool's result is in the request. ``call`` and ``say`` make the answer."""

    path: re.Pattern[str]
    offers: Callable[[Body], Iterator[Offer]]
    answered: Callable[[Body], bool]
    call: Callable[[Body, Offer, Body], Sequence[Event]]
    say: Callable[[Body], Sequence[Event]]
    whole: Callable[[Sequence[Event]], Any]
    """The same answer where no stream was asked for."""


# --- Anthropic --------------------------------------------------------------------------------------------


def _anthropic(body: Body, block: Body, delta: Body, stop: str) -> list[Event]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model", ""), "content": []}
    message |= {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 1}}
    ended = {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 5}}
    return [
        (each["type"], each)
        for each in (
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", **ended},
            {"type": "message_stop"},
        )
    ]


def _anthropic_whole(events: Sequence[Event]) -> Any:
    message, block, delta = events[0][1]["message"], events[1][1]["content_block"], events[2][1]["delta"]
    content = {**block, "input": json.loads(delta["partial_json"])} if block["type"] == "tool_use" else delta["text"]
    block = content if isinstance(content, dict) else {"type": "text", "text": content}
    return {**message, "content": [block], "stop_reason": events[4][1]["delta"]["stop_reason"]}


ANTHROPIC = Api(
    re.compile(r"/v1/messages$"),
    lambda body: (Offer(tool.get("name", "")) for tool in body.get("tools") or ()),
    lambda body: '"tool_result"' in json.dumps(body["messages"]),
    lambda body, offer, given: _anthropic(
        body,
        {"type": "tool_use", "id": "toolu_01", "name": offer.name, "input": {}},
        {"type": "input_json_delta", "partial_json": json.dumps(given)},
        "tool_use",
    ),
    lambda body: _anthropic(body, {"type": "text", "text": ""}, {"type": "text_delta", "text": SAID}, "end_turn"),
    _anthropic_whole,
)


# --- OpenAI -----------------------------------------------------------------------------------------------


def _responses(item: Body) -> list[Event]:
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    response = {"id": "resp_1", "object": "response", "status": "in_progress", "output": []}
    done = {**response, "status": "completed", "output": [item], "usage": usage}
    return [
        (each["type"], each)
        for each in (
            {"type": "response.created", "response": response},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": done},
        )
    ]


def _responses_offers(body: Body) -> Iterator[Offer]:
    for tool in body.get("tools") or ():
        for each in tool.get("tools", ()):
            yield Offer(each.get("name", ""), tool.get("name", ""))
        yield Offer(tool.get("name", ""))


RESPONSES = Api(
    re.compile(r"/responses$"),
    _responses_offers,
    lambda body: any(str(each.get("type", "")).endswith("call_output") for each in body.get("input", ())),
    lambda _, offer, given: _responses(
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": offer.name,
            "status": "completed",
            **({"namespace": offer.space} if offer.space else {}),
            "arguments": json.dumps(given),
        }
    ),
    lambda _: _responses(
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": SAID, "annotations": []}],
        }
    ),
    lambda events: events[-1][1]["response"],
)


def _chat(body: Body, delta: Body, why: str) -> list[Event]:
    base = {"id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": body.get("model")}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    first = {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    last = {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": why}], "usage": usage}
    return [("", first), ("", last), ("", "[DONE]")]


def _chat_whole(events: Sequence[Event]) -> Any:
    first, last = events[0][1], events[1][1]
    choice = {"index": 0, "message": first["choices"][0]["delta"]}
    choice["finish_reason"] = last["choices"][0]["finish_reason"]
    return {**last, "object": "chat.completion", "choices": [choice]}


CHAT = Api(
    re.compile(r"/chat/completions$"),
    lambda body: (Offer(tool.get("function", {}).get("name", "")) for tool in body.get("tools") or ()),
    lambda body: any(each.get("role") == "tool" for each in body["messages"]),
    lambda body, offer, given: _chat(
        body,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "index": 0,
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": offer.name, "arguments": json.dumps(given)},
                }
            ],
        },
        "tool_calls",
    ),
    lambda body: _chat(body, {"role": "assistant", "content": SAID}, "stop"),
    _chat_whole,
)


# --- Google -----------------------------------------------------------------------------------------------


def _gemini(part: Body) -> list[Event]:
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    return [("", {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "script"})]


def _gemini_said(body: Body) -> str:
    """Gemini CLI asks who speaks next, and which model to use, as JSON."""
    wants_json = body.get("generationConfig", {}).get("responseMimeType") == "application/json"
    return json.dumps({"reasoning": "", "next_speaker": "user", "model_choice": "flash"}) if wants_json else SAID


GEMINI = Api(
    re.compile(r":(streamGenerateContent|generateContent)$"),
    lambda body: (
        Offer(each["name"]) for tool in body.get("tools") or () for each in tool.get("functionDeclarations", ())
    ),
    lambda body: '"functionResponse"' in json.dumps(body.get("contents", [])),
    lambda _, offer, given: _gemini({"functionCall": {"name": offer.name, "args": given}}),
    lambda body: _gemini({"text": _gemini_said(body)}),
    lambda events: events[0][1],
)

APIS = (ANTHROPIC, RESPONSES, CHAT, GEMINI)


# --- the server -------------------------------------------------------------------------------------------


@dataclass
class Model:
    """A running script. ``requests``: what was sent to the model, oldest first, without what only counts or lists."""

    tool: str
    given: Body
    requests: list[Body] = field(default_factory=list)
    url: str = ""

    def seen(self, words: str) -> list[int]:
        """Which requests held these words, by number; JSON's own escapes do not hide them."""
        return [n for n, body in enumerate(self.requests) if words in json.dumps(body, ensure_ascii=False)]

    def calls(self) -> list[int]:
        """Which requests held the tool's result."""
        return [n for n, body in enumerate(self.requests) for api in APIS if _answered(api, body)]

    def answer(self, path: str, body: Body) -> tuple[Api, Sequence[Event]] | None:
        api = next((each for each in APIS if each.path.search(path)), None)
        if api is None:
            return None
        self.requests.append(body)
        offer = next((each for each in api.offers(body) if each.name.endswith(self.tool)), None)
        if offer is None or api.answered(body):
            return api, api.say(body)
        return api, api.call(body, offer, self.given)


def _answered(api: Api, body: Body) -> bool:
    try:
        return api.answered(body)
    except KeyError:
        return False


@contextmanager
def model(tool: str, **given: Any) -> Iterator[Model]:
    """A model that calls the tool whose name ends so, once, with these arguments."""
    script = Model(tool, given)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(script))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    script.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def _handler(script: Model) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(b'{"object":"list","data":[{"id":"script","object":"model"}],"models":[]}')

        def do_HEAD(self) -> None:
            self._send(b"")

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers.get("content-length") or 0))
            path = self.path.partition("?")[0]
            try:
                body = json.loads(sent or b"{}")
            except ValueError:
                body = {}
            found = script.answer(path, body)
            if found is None:  # counting tokens, telemetry
                self._send(b'{"input_tokens":100,"totalTokens":100}')
                return
            api, events = found
            if body.get("stream") or path.endswith(":streamGenerateContent"):
                self._send(b"".join(map(_event, events)), "text/event-stream")
            else:
                self._send(json.dumps(api.whole(events)).encode())

        def _send(self, data: bytes, kind: str = "application/json") -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Not to the tests' own output."""

    return Handler


def _event(event: Event) -> bytes:
    name, data = event
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()
