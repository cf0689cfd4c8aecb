"""Entries in settings files, as text: whatever the document, ours come and go and the rest stays as it was."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from grounded_mcp.clients import jsonc
from grounded_mcp.clients.merging import FormatName, entered, left
from grounded_mcp.clients.splicing import Entry, Refused, rest

SERVER = {"command": "/opt/v/bin/grounded-mcp", "args": [], "env": {"GROUNDED_HOME": "/home/u/.grounded"}}


def hook(event: str) -> dict[str, Any]:
    line = f"/opt/v/bin/grounded-mcp hook {event} --client claude-code"
    return {"hooks": [{"type": "command", "command": line, "timeout": 5}]}


JSON = (
    Entry(("mcpServers", "grounded"), SERVER),
    Entry(("hooks", "SessionStart"), hook("SessionStart"), "item"),
    Entry(("hooks", "Stop"), hook("Stop"), "item"),
)
TOML = (Entry(("mcp_servers", "grounded"), {**SERVER, "required": True, "startup_timeout_sec": 20}),)
YAML = (Entry(("mcpServers",), {"name": "grounded", "type": "stdio", **SERVER}, "item"),)

# --- literal documents ------------------------------------------------------------------------------------

WITH_COMMENTS = """{
  // servers
  "mcpServers": {
    "other": {"command": "x"} // the last
  }
}
"""


def test_an_entry_follows_the_last_member_and_its_comment_in_the_style_of_the_document() -> None:
    text, _ = entered(WITH_COMMENTS, (Entry(("mcpServers", "grounded"), {"command": "grounded-mcp"}),), "json")
    assert text == (
        "{\n"
        "  // servers\n"
        '  "mcpServers": {\n'
        '    "other": {"command": "x"}, // the last\n'
        '    "grounded": {\n'
        '      "command": "grounded-mcp"\n'
        "    }\n"
        "  }\n"
        "}\n"
    )


def test_tabs_crlf_and_trailing_commas_are_taken_over() -> None:
    before = '{\r\n\t"mcpServers": {\r\n\t\t"other": {},\r\n\t},\r\n}'
    text, _ = entered(before, (Entry(("mcpServers", "grounded"), {"command": "grounded-mcp"}),), "json")
    assert text == (
        '{\r\n\t"mcpServers": {\r\n\t\t"other": {},\r\n'
        '\t\t"grounded": {\r\n\t\t\t"command": "grounded-mcp"\r\n\t\t},\r\n\t},\r\n}'
    )


def test_a_document_of_one_line_stays_one_line() -> None:
    text, _ = entered('{"a":1}', (Entry(("mcpServers", "grounded"), {"command": "grounded-mcp"}),), "json")
    assert text == '{"a":1, "mcpServers": {"grounded": {"command": "grounded-mcp"}}}'


def test_a_table_is_added_behind_the_last_line_of_a_toml_document() -> None:
    text, _ = entered('model = "m"', TOML, "toml")
    assert text == (
        'model = "m"\n\n'
        "[mcp_servers.grounded]\n"
        'command = "/opt/v/bin/grounded-mcp"\n'
        "args = []\n"
        'env = { GROUNDED_HOME = "/home/u/.grounded" }\n'
        "required = true\n"
        "startup_timeout_sec = 20\n"
    )


def test_an_item_follows_the_last_one_of_a_yaml_list_at_its_indentation() -> None:
    text, _ = entered("mcpServers:\n- name: other\n# end\nmodels: []\n", YAML, "yaml")
    assert text.startswith('mcpServers:\n- name: other\n- name: "grounded"\n  type: "stdio"\n')
    assert text.endswith("\n# end\nmodels: []\n")


LAYOUTS: list[tuple[FormatName, str]] = [
    *(("json", each) for each in ("", "\n", "{}", "{ }\n", "{\n}\n", "// only a comment", "// c\n{\n  // in\n}\n")),
    *(("json", each) for each in ('\ufeff{"a": 1}\r\n', WITH_COMMENTS, '{"mcpServers": {}, "hooks": {"Stop": []}}')),
    ("json", '{"hooks": {"Stop": [{"hooks": [{"command": "mine"}]} /* end */ ]}, /* x */ "a": [1, 2]}'),
    *(("toml", each) for each in ("", "a = 1", "# c\r\n[x]\r\ny = 1\r\n", 'a = """\n[mcp_servers.grounded]\n"""\n')),
    ("toml", "[mcp_servers]\n\n[[list]]\nk = [\n  [1],\n]\n# end"),
    *(("yaml", each) for each in ("", "name: a", "name: a\r\nmcpServers: [] # none\r\n", "mcpServers:\nz: |\n  t\n")),
    ("yaml", "mcpServers:\n    - name: a\n      args:\n        - 1\n\n\n# next\nz: 1\n"),
]
ENTRIES = {"json": JSON, "toml": TOML, "yaml": YAML}


@pytest.mark.parametrize(("format", "before"), LAYOUTS)
def test_case_64_what_is_put_in_comes_out_and_leaves_every_byte(format: FormatName, before: str) -> None:
    entries = ENTRIES[format]
    after, splices = entered(before, entries, format)
    assert after != before
    assert entered(after, entries, format) == (after, ())  # twice is once
    assert left(after, entries, splices, format) == before


def test_another_programs_later_lines_stay_where_they_are() -> None:
    after, splices = entered(WITH_COMMENTS, JSON, "json")
    edited = after.replace("{\n", '{\n  "theme": "dark",\n', 1)
    assert left(edited, JSON, splices, "json") == WITH_COMMENTS.replace("{\n", '{\n  "theme": "dark",\n', 1)


def test_a_client_that_writes_its_whole_file_anew_still_loses_only_our_entries() -> None:
    before = {"numStartups": 3, "mcpServers": {"other": {"command": "x"}}}
    after, splices = entered(json.dumps(before), JSON, "json")
    grown = json.loads(after)
    grown["numStartups"] = 4
    grown["mcpServers"]["later"] = {"command": "y"}
    text = left(json.dumps(grown, indent=2), JSON, splices, "json")
    assert json.loads(text) == {"numStartups": 4, "mcpServers": {"other": {"command": "x"}, "later": {"command": "y"}}}
    assert "hooks" not in text


def test_a_server_added_to_the_table_that_we_made_keeps_the_table() -> None:
    after, splices = entered("{}", JSON[:1], "json")
    data = json.loads(after)
    data["mcpServers"]["later"] = {"command": "y"}
    assert json.loads(left(json.dumps(data), JSON[:1], splices, "json")) == {"mcpServers": {"later": {"command": "y"}}}


def test_a_hook_of_somebody_else_in_our_group_stays() -> None:
    after, splices = entered("{}", JSON[1:2], "json")
    data = json.loads(after)
    data["hooks"]["SessionStart"][0]["hooks"].append({"type": "command", "command": "mine"})
    kept = json.loads(left(json.dumps(data), JSON[1:2], splices, "json"))
    assert kept == {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "mine"}]}]}}


def test_a_line_comment_in_front_of_what_goes_keeps_its_line_end() -> None:
    after = '{"a": 1, // c, }\n"mcpServers": {"grounded": {"command": "grounded-mcp"}}}'
    assert left(after, JSON[:1], (), "json") == '{"a": 1 // c, }\n}'


def test_an_entry_that_was_there_before_us_comes_back() -> None:
    by_hand = '{"mcpServers": {"grounded": {"command": "/old/grounded-mcp"}}}\n'
    after, splices = entered(by_hand, JSON[:1], "json")
    assert json.loads(after) == {"mcpServers": {"grounded": SERVER}}
    assert left(after, JSON[:1], splices, "json") == by_hand


def test_codexs_own_way_of_writing_the_table_is_replaced_with_its_tables_inside() -> None:
    by_codex = (
        '[mcp_servers.grounded]\ncommand = "grounded-mcp"\n\n[mcp_servers.grounded.env]\nA = "b"\n\n[tui]\nx = 1\n'
    )
    after, splices = entered(by_codex, TOML, "toml")
    assert tomllib.loads(after) == {"mcp_servers": {"grounded": TOML[0].value}, "tui": {"x": 1}}
    assert left(after, TOML, splices, "toml") == by_codex


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("json", '{"mcpServers": []}'),
        ("json", '{"hooks": {"Stop": {}}}'),
        ("json", '{"mcpServers": {"grounded": {"command": "another"}}}'),
        ("json", "[]"),
        ("toml", "mcp_servers = { other = {} }"),
        ("toml", "[mcp_servers]\ngrounded = { command = 'grounded-mcp' }\n"),
        ("yaml", "{name: a}"),
        ("yaml", "mcpServers: [{name: other}]\n"),
        ("yaml", "- 1\n"),
    ],
)
def test_a_layout_that_cannot_take_the_entry_is_refused(format: FormatName, text: str) -> None:
    with pytest.raises(Refused):
        entered(text, ENTRIES[format], format)


@pytest.mark.parametrize(
    ("format", "text", "line"),
    [
        ("json", '{\n  "a": 1\n  "b": 2\n}', "line 3"),
        ("json", "{'a': 1}", "line 1"),
        ("json", '{"a": 1} {', "line 1"),
        ("json", '{"a": /* open', "line 1"),
        ("json", '{"a": ' + "[" * 300, "200 deep"),
        ("toml", "a = 1\nb\n", "line 2"),
        ("yaml", "a: 1\n b: 2\n", "line 2"),
    ],
)
def test_a_document_that_is_broken_is_named_by_its_line(format: FormatName, text: str, line: str) -> None:
    with pytest.raises(ValueError, match=line):
        entered(text, ENTRIES[format], format)


# --- every document ---------------------------------------------------------------------------------------

_KEYS = st.sampled_from(["a", "b", "mcpServers", "hooks", "Stop", "other", 'q"\\', "é{}[],//#"])
_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.sampled_from(["", "x", "/*", "// y", '"', "{,}", "ü"])
)


@st.composite
def documents(draw: st.DrawFn, *, comments: bool) -> str:
    """JSON objects, laid out at random; with comments and trailing commas if wanted."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    pieces = ["", "", " ", newline, f"{newline}  ", f"{newline}\t"]
    pieces += [f" // c, }}{newline}", "/* { */", f"/* a{newline} b */ "] if comments else []
    gaps = st.sampled_from(pieces)

    def gap() -> str:
        return draw(gaps)

    def value(depth: int) -> str:
        kind = draw(st.sampled_from(["scalar", "scalar", "object", "array"])) if depth else "scalar"
        if kind == "scalar":
            return json.dumps(draw(_SCALARS), ensure_ascii=False)
        return box(depth - 1, "{}" if kind == "object" else "[]")

    def box(depth: int, brackets: str) -> str:
        parts = []
        for key in draw(st.lists(_KEYS, max_size=4, unique=True)):
            name = f"{json.dumps(key, ensure_ascii=False)}{gap()}:{gap()}" if brackets == "{}" else ""
            parts.append(f"{gap()}{name}{value(depth)}{gap()}")
        trailing = "," + gap() if parts and comments and draw(st.booleans()) else ""
        return f"{brackets[0]}{','.join(parts)}{trailing or ('' if parts else gap())}{brackets[1]}"

    return f"{gap()}{box(3, '{}')}{gap()}"


@st.composite
def tables(draw: st.DrawFn) -> str:
    """TOML documents: keys, tables, arrays of tables, long texts, comments, each sort of line end."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    values = [
        "1",
        '"#x"',
        "'[a]'",
        '"""\n[mcp_servers.x]\n"""',
        "[\n  [1], # ]\n]",
        "{ k = [1] }",
        "'''\n'''",
        '"é\\""',
    ]
    names = draw(
        st.lists(
            st.sampled_from(["a", "b.c", "mcp_servers.other", "'q.[x]'", "mcp_servers", "z"]), max_size=4, unique=True
        )
    )
    lines = []
    for head in ("", *names):
        lines += [f"[{head}] # t" if draw(st.booleans()) else f"[{head}]"] if head else []
        for at in range(draw(st.integers(0, 2))):
            lines.append(f"k{at} = {draw(st.sampled_from(values))}")
        lines += draw(st.lists(st.sampled_from(["", "# c [x]", "  "]), max_size=2))
    lines += draw(st.sampled_from([[], ["[[list]]", "k = 1"], ["[[list]]", "[[list]]"]]))
    return "\n".join(lines).replace("\n", newline) + draw(st.sampled_from(["", newline, newline * 2]))


def _taken(text: str, entries: tuple[Entry, ...], format: FormatName) -> tuple[str, Any]:
    try:
        return entered(text, entries, format)
    except Refused:
        assume(False)
        raise


@settings(max_examples=200, deadline=None)
@given(documents(comments=True))
def test_case_64_any_json_with_comments_is_byte_identical_after_connect_and_disconnect(before: str) -> None:
    after, splices = _taken(before, JSON, "json")
    data = jsonc.load(after)
    assert data["mcpServers"]["grounded"] == SERVER
    assert rest(data, JSON) == rest(jsonc.load(before), JSON)
    assert left(after, JSON, splices, "json") == before
    assert rest(jsonc.load(left(after, JSON, (), "json")), JSON) == rest(jsonc.load(before), JSON)


@settings(max_examples=100, deadline=None)
@given(documents(comments=False))
def test_plain_json_stays_plain_json_and_reads_as_the_standard_library_reads_it(before: str) -> None:
    root = jsonc.parse(before)
    assert root is not None
    assert jsonc.plain(root) == json.loads(before)
    after, splices = _taken(before, JSON, "json")
    assert jsonc.load(after) == json.loads(after)
    assert left(after, JSON, splices, "json") == before
    json.loads(left(after, JSON, (), "json"))


@settings(max_examples=100, deadline=None)
@given(documents(comments=True), st.sampled_from(["first", "last"]))
def test_an_edit_elsewhere_and_disconnect_is_the_edit_alone(before: str, place: str) -> None:
    def edit(text: str) -> str:
        at = text.index("{", len(text) - len(text.lstrip())) if not text.lstrip().startswith("/") else -1
        assume(at >= 0)
        return text[: at + 1] + ' "edited": 1,' + text[at + 1 :] if place == "first" else text + "\n// edited\n"

    assume(place == "last" or jsonc.load(before))  # a comma needs somebody behind it
    after, splices = _taken(before, JSON, "json")
    assert left(edit(after), JSON, splices, "json") == edit(before)


@settings(max_examples=150, deadline=None)
@given(tables())
def test_case_64_any_toml_is_byte_identical_after_connect_and_disconnect(before: str) -> None:
    try:
        data = tomllib.loads(before.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError:
        assume(False)
    after, splices = _taken(before, TOML, "toml")
    found = tomllib.loads(after.replace("\r\n", "\n"))
    assert found["mcp_servers"]["grounded"] == TOML[0].value
    assert rest(found, TOML) == rest(data, TOML)
    assert left(after, TOML, splices, "toml") == before
    later = after + "[later]\nx = 1\n"
    assert left(later, TOML, splices, "toml").endswith("[later]\nx = 1\n")
