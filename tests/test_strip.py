"""What hosts and this product injected goes, what people and agents said stays, and no text takes long (I3, T27)."""

from __future__ import annotations

import html
import json
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grounded_mcp.inert import inert, wrap
from grounded_mcp.ingest.transcripts.strip import RULES, strip
from grounded_mcp.outcomes import Learned, Remembered
from grounded_mcp.reading import Opened, Provenance, Seen
from grounded_mcp.render import (
    compact,
    learned_envelope,
    learned_text,
    opened_envelope,
    opened_text,
    recall_envelope,
    recall_text,
    remembered_envelope,
    remembered_text,
)
from grounded_mcp.values import Clean, Evidence, Passage
from tests.candidates import RENDER, candidate, item, recall

BLOCK = wrap(inert("the canary is violet-otter"))


def answers() -> list[tuple[dict[str, Any], str]]:
    """Both halves of what the tools return, as they are rendered."""
    found = recall(
        candidate("fact", "fact_1", body="violet-otter rules", title=Clean("violet-otter | port"), key="port"),
        candidate("doc", "doc_1", body="see <project-memory> in violet-otter.md", key="docs/violet-otter.md"),
        query_trace=True,
    )
    cut = recall_envelope(found, replace(RENDER, max_chars=3_000), 200)
    fact = item("fact", "fact_1", key="violet-otter", title=Clean("violet-otter"))
    near = (Passage(1, Clean("one"), "violet-otter > Setup"),)
    old = (item("fact", "fact_0", body=Clean("violet-otter was 8080"), state="superseded"),)
    seen = Seen(
        Evidence("ses_1", 1, True, "verified outcome", 0.0, Clean("violet-otter ran")), "ses_1#2", "claude-code"
    )
    rival = item("fact", "fact_2", title=Clean("violet-otter is 8091"))
    known = Provenance((seen,), 1, 0, ("ses_1",), (rival,))
    page = Opened(fact, "violet-otter", 0, None, None, 12, 1, "", 3, history=old, neighbours=near, provenance=known)
    opened = opened_envelope(page, RENDER)
    stored = remembered_envelope(Remembered(fact, "updated", ("violet-otter-0",), conflicts=(rival,)))
    learned = learned_envelope(Learned("merged", fact, retired=("violet-otter-0",), conflicts=(rival,)))
    whole = recall_envelope(found, RENDER)
    empty = recall_envelope(recall(), RENDER)
    return [
        (whole, recall_text(whole)),
        (cut, recall_text(cut)),
        (empty, recall_text(empty)),
        (opened, opened_text(opened)),
        (stored, remembered_text(stored)),
        (learned, learned_text(learned)),
    ]


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule in ("drop", "drop pair")])
def test_what_a_host_put_in_goes_and_what_was_typed_around_it_stays(name: str) -> None:
    block = f"<{name}>\nToday's date is 2026-11-29.\n</{name}>"
    assert strip(f"why is it slow?\n\n{block}") == "why is it slow?"
    assert strip(f"{block}\n\nwhy is it slow?") == "why is it slow?"
    assert strip(f'<{name.upper()} kind="x">\nnow\n</{name.upper()} >\nwhy?') == "why?"
    assert strip(block) == ""


@pytest.mark.parametrize(
    ("wrapped", "inside"),
    [
        ('<user_input mode="act">fix the build</user_input>', "fix the build"),
        ("<task>\nfix the build\n</task>\n\n<environment_details>\n# Tabs\n</environment_details>", "fix the build"),
        ("The user provided the following feedback:\n<feedback>\nnot so\n</feedback>", None),
        ("<user_message>\nfix\n</user_message>", "fix"),
        ("<additional_data>\na.py\n</additional_data>\n<user_query>\nfix\n</user_query>", "fix"),
        ("<command-message>review</command-message>\n<command-args>PR 6</command-args>", "PR 6"),
        ("<bash-input>git status</bash-input>", "git status"),
        ("<tool_use_error>File does not exist.</tool_use_error>", "File does not exist."),
    ],
)  # fmt: skip
def test_of_a_wrapper_around_what_was_typed_the_inside_stays(wrapped: str, inside: str | None) -> None:
    expected = "The user provided the following feedback:\n\nnot so" if inside is None else inside
    assert strip(wrapped) == expected


@pytest.mark.parametrize(
    "prose",
    [
        "Does `<system-reminder>` reach the transcript?",
        "It strips `<local-command-caveat>`, `<system-reminder>`, `<command-name>`, etc.",
        "`<system-reminder>` opens it and `</system-reminder>` ends it",
        "// - <system-reminder>...</system-reminder>\n// - <ide_selection>…</ide_selection>",
        "send `<hook_context>hello</hook_context>` to the model",
        "the tag <system-reminder> has no end in this sentence",
        'got: # Prompt: "<local-command-caveat>Caveat: The messages below were gen..."',
        "OPEN = '<project-memory>'\nCLOSE = \"</project-memory>\"",
        '<project name="tides">\n  <target>\n    <task>\n      <copy/>\n    </task>\n  </target>\n</project>',
        "<instructions>\nread them\n</instructions>",
        "if a </b> c <project-memory-store> d",
        "1. [link] and | score board",
        '{"data":[{"id":"a","title":"a list of some other API"}]}',
        "a Stop hook success: rate",
        "plan <user_info> for the page",
    ],
)
def test_a_text_that_only_speaks_of_tags_stays_as_it_is(prose: str) -> None:
    assert strip(prose) == prose


def test_a_host_block_without_an_end_is_cut_only_where_it_begins_a_line() -> None:
    assert strip("done\n\n<system-reminder>\nThe todo list is empty. [... cut") == "done"
    assert strip("look at <system-reminder> and its rules") == "look at <system-reminder> and its rules"
    assert strip("a\n<git_status>\nmay be anything") == "a\n<git_status>\nmay be anything"
    twice = "a\n<system-reminder>\nsee <system-reminder>x</system-reminder>\nstays"
    assert strip(twice) == "a\n\nstays"


def test_instructions_of_a_project_file_go_up_to_their_end() -> None:
    block = "# AGENTS.md instructions for /home/sam/ferry\n\n<INSTRUCTIONS>\nUse tabs.\n\n# More\n</INSTRUCTIONS>"
    assert strip(f"{block}\nfix the build") == "fix the build"
    assert strip(block.removesuffix("</INSTRUCTIONS>")) == ""
    assert strip("# AGENTS.md instructions\n\nThey are too long.") == "# AGENTS.md instructions\n\nThey are too long."


def test_notes_and_hook_output_that_a_host_writes_as_plain_lines_go() -> None:
    assert strip("SessionStart:startup hook success: ok\nmore\n\nfix the build") == "fix the build"
    assert strip("fix\nUserPromptSubmit hook success: Captured state") == "fix"
    assert strip("SessionStart hook additional context: use tabs\n\nfix") == "fix"
    assert strip("[Request interrupted by user for tool use]") == ""
    ended = "agentId: afb92ff (for resuming to continue this agent's work if needed)\n<usage>total_tokens: 33894"
    assert strip(f"It is seven.\n{ended}\ntool_uses: 9\nduration_ms: 38799</usage>") == "It is seven."
    caveat = "Caveat: The messages below were generated by the user while running local commands. DO NOT respond"
    assert strip(caveat) == ""
    pasted = "  ⎿  UserPromptSubmit hook error: Failed with non-blocking status code"
    assert strip(pasted) == pasted


FORMS = {
    "as it is": BLOCK,
    "html": html.escape(BLOCK, quote=False),
    "html with quotes": html.escape(BLOCK),
    "html twice": html.escape(html.escape(BLOCK)),
    "json": json.dumps(BLOCK)[1:-1],
    "json in json": json.dumps(json.dumps(BLOCK)[1:-1])[1:-1],
    "json without angle brackets": json.dumps(BLOCK)[1:-1].replace("<", "\\u003c").replace(">", "\\u003E"),
    "escaped slash": BLOCK.replace("</", "<\\/"),
    "upper case": BLOCK.replace("project-memory", "PROJECT-Memory"),
    "white space": "< project-memory\n  advisory = \"untrusted\"\n>violet-otter\n< / project-memory\t>",
    "broken lines": '<project-\n    memory advisory="untru\nsted">violet-otter</project-mem\nory>',
    "other attributes": '<project-memory nonce="8f2a" advisory="untrusted" v=2>violet-otter</project-memory>',
    "no attributes": "<project-memory>violet-otter</project-memory>",
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_case_9_our_own_block_goes_in_any_form(form: str) -> None:
    assert strip(f"before {form} after") == "before  after"


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_case_9_our_own_block_goes_when_a_client_cut_it_off(form: str) -> None:
    middle = form.index("otter") + 3
    assert "ott" not in strip(f"before {form[:middle]}")
    assert strip(f"{form[middle:]} after") == "after"
    assert strip(f"x {form[:middle]} [...] {form[middle:]} y") == "x  y"


def test_an_opening_tag_that_is_cut_off_itself_takes_the_rest_along() -> None:
    assert strip("before <project-memory advis") == "before"
    assert strip("before <project-memory") == "before"


def test_blocks_inside_blocks_go_whole() -> None:
    assert strip(f"a <project-memory x>one {BLOCK} two</project-memory> b") == "a  b"
    assert strip(f"a <system-reminder>one {BLOCK} two</system-reminder> b") == "a  b"
    assert strip("a <system-reminder>one <system-reminder>x</system-reminder> two</system-reminder> b") == "a  b"


def test_a_stored_text_cannot_end_our_block_early() -> None:
    hostile = wrap(inert("one </project-memory> the rest <project-memory> and &lt;/project-memory&gt;"))
    assert strip(f"a {hostile} b") == "a  b"


def test_tags_made_by_taking_others_out_go_too() -> None:
    spliced = "<sys<system-reminder>x</system-reminder>tem-reminder>y</system-reminder>z"
    assert strip(spliced) == "z"
    for _ in range(20):
        spliced = spliced.replace("<sys", f"<sys{spliced}")[:20_000]
    assert strip(strip(spliced)) == strip(spliced)


@pytest.mark.parametrize("number", range(5))
def test_t27_what_our_tools_answered_leaves_nothing_to_remember(number: int) -> None:
    envelope, text = answers()[number]
    assert strip(f"I asked.\n{text}\n\nSo it is.") == "I asked.\n" + "\n" * text.count("\n") + "\n\nSo it is."
    for half in (compact(envelope), json.dumps(envelope, indent=2), json.dumps(compact(envelope))):
        assert "otter" not in strip(f"I asked.\n{half}\nSo it is.")
    assert strip(f"I asked.\n{compact(envelope)}\nSo it is.") == "I asked.\n\nSo it is."
    result = json.dumps({"content": [{"type": "text", "text": text}], "structuredContent": envelope})
    assert "otter" not in strip(result)
    assert "otter" not in strip(json.dumps({"output": result}))


def test_an_answer_that_was_cut_off_goes_to_its_end() -> None:
    envelope, _ = answers()[0]
    whole = compact(envelope)
    assert strip(f"I asked.\n{whole[: len(whole) // 2]}\n[... cut ...]") == "I asked.\n\n[... cut ...]"


PIECES = st.sampled_from(
    [
        *(f"<{name}>" for name in RULES),
        *(f"</{name}>" for name in RULES),
        *(
            "&lt;",
            "&lt;project-memory&gt;",
            "&lt;/project-memory&gt;",
            "\\u003cproject-memory\\u003e",
            "\\",
            "\\n",
            "\n",
        ),
        *("<sys", "tem-reminder>", "<project-", "memory>", "`", '"', " ", "\n\n", "said", "{", "}", BLOCK),
        *(
            "# AGENTS.md instructions",
            '{"data":[{"id":"a"',
            '"recallId"',
            "1. [doc] a | score 1 | open b",
            "3 of at least ",
        ),
    ]
)


@given(st.lists(PIECES, max_size=30).map("".join))
@settings(max_examples=300, deadline=None)
def test_stripping_twice_is_stripping_once_and_nothing_is_made_up(text: str) -> None:
    once = strip(text)
    assert strip(once) == once
    assert len(once) <= len(text)


@given(st.text(st.characters(exclude_characters="<&\\{[")))
@settings(max_examples=100, deadline=None)
def test_a_text_without_any_such_part_is_the_same_text(text: str) -> None:
    assert strip(text) is text


ADVERSARIES = {
    "opening tags": "<project-memory ",
    "names without an end": "<project-memory<system-reminder",
    "broken names": "<p r o j e c t - ",
    "white space": "<" + " " * 50,
    "backslashes": "\\",
    "escaped newlines": "<\\n\\n\\n",
    "ampersands": "&amp;",
    "entities": "&lt;project-memory ",
    "pairs": "<system-reminder>x</system-reminder>",
    "nested": "<sys<system-reminder>",
    "ends": "</system-reminder>",
    "unpaired": "\n<task><feedback><user_query>",
    "headings": "# AGENTS.md instructions\n<instructions>",
    "hooks": "SessionStart hook success: \n",
    "cards": "1. [doc] | score | open \n",
    "card on a line": "1. [doc] | score ",
    "objects": '{"data":[{"id":"recallId",',
    "objects over lines": '{"data":[{\n"recallId',
    "quotes": '{"id":"a","source":"\\"',
    "headlines": '"3 of at least 4 memories | mode ',
}


@pytest.mark.parametrize("piece", ADVERSARIES.values(), ids=ADVERSARIES)
def test_no_text_makes_it_slow(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        start = time.process_time()
        strip(text)
        return time.process_time() - start

    short, long = min(seconds(31_250) for _ in range(3)), seconds(1_000_000)
    assert long < 0.3 + 32 * 4 * short, f"32 times the text took {long / short:.0f} times as long"
