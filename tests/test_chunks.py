"""How texts are cut into passages that stand alone."""

from __future__ import annotations

import time
from itertools import pairwise
from textwrap import dedent

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from grounded_mcp.ingest.chunks import Chunk, ChunkOptions, Form, heading, split
from grounded_mcp.ingest.outline import first_heading, front_matter, outline
from grounded_mcp.text import estimate_tokens

FORMS: tuple[Form, ...] = ("markdown", "rst", "asciidoc", "prose", "code")
OPTIONS = ChunkOptions()
APART = ChunkOptions(min_tokens=0)
"""Nothing is joined, so that every section is seen."""


def text(block: str) -> str:
    return dedent(block).lstrip("\n")


def headings(block: str, form: Form) -> list[str]:
    return [chunk.heading for chunk in split(text(block), form, APART)]


def trails(block: str, form: Form = "code") -> list[tuple[int, str]]:
    lines = text(block).splitlines(keepends=True)
    return [(section.start + 1, " > ".join(section.trail)) for section in outline(lines, form)]


# --- every text --------------------------------------------------------------------------------------------

LINE = st.sampled_from(
    (
        *(
            "# A",
            "## B ##",
            "Title",
            "=====",
            "-----",
            "```py",
            "~~~",
            "",
            "  ",
            "- item",
            "    code",
            "def f(x):",
            "}",
        ),
        *("class C {", "@dec(", "/*", "*/", '"""', "key: v", "[sec]", "|a|b|", "== T", "----", "\ttab", "\r", "---"),
        *(
            "one. two! three? " * 40,
            "word " * 300,
            "数据" * 200,
            "x" * 900,
            "\ud800",
            "\x0b\x0c\x85\u2028",
            "\ufeff---",
        ),
    )
)
ANY_TEXT = st.one_of(st.text(max_size=400), st.lists(LINE, max_size=30).map("\n".join))


@settings(max_examples=150, deadline=None)
@given(ANY_TEXT, st.sampled_from(FORMS), st.integers(4, 60), st.integers(0, 30))
@example("\r\n\r\n", "markdown", 4, 0)
@example("---\nstatus: x", "markdown", 4, 0)
def test_the_bodies_joined_are_the_text_and_none_is_too_long(block: str, form: Form, most: int, least: int) -> None:
    chunks = split(block, form, ChunkOptions(max_tokens=most, min_tokens=least))
    assert "".join(chunk.body for chunk in chunks) == block
    assert all(chunk.body for chunk in chunks)
    assert all(estimate_tokens(chunk.body) <= most for chunk in chunks)
    for chunk in chunks:
        assert 1 <= chunk.start_line <= chunk.end_line
    for before, after in pairwise(chunks):
        assert before.end_line <= after.start_line <= before.end_line + 1
    assert not chunks or chunks[-1].end_line == len(block.split("\n")) - block.endswith("\n")


@settings(max_examples=60, deadline=None)
@given(ANY_TEXT, st.sampled_from(FORMS))
def test_line_numbers_point_at_the_body(block: str, form: Form) -> None:
    lines = block.split("\n")
    for chunk in split(block, form, OPTIONS):
        first_line = chunk.body.split("\n")[0]
        assert first_line in lines[chunk.start_line - 1]


@pytest.mark.parametrize("form", FORMS)
def test_an_empty_text_has_no_chunk(form: Form) -> None:
    assert split("", form, OPTIONS) == ()


@pytest.mark.parametrize("form", FORMS)
def test_a_short_text_is_one_chunk(form: Form) -> None:
    assert split("one line\n", form, OPTIONS) == (Chunk("one line\n", "", 1, 1),)


def test_t14_a_60_kb_paragraph_is_split_to_its_last_word() -> None:
    note = "The pump of the northern plant was serviced again. " * 1200 + "zqx-tail-7781"
    chunks = split(note, "markdown", OPTIONS)
    assert len(note) > 60_000
    assert len(chunks) > 50
    assert "zqx-tail-7781" in chunks[-1].body
    assert all(chunk.body.startswith("The pump") for chunk in chunks)
    assert {(chunk.start_line, chunk.end_line) for chunk in chunks} == {(1, 1)}


def test_pieces_of_one_section_are_of_about_equal_size() -> None:
    sizes = [estimate_tokens(chunk.body) for chunk in split("one two six. " * 60, "prose", OPTIONS)]
    assert sum(sizes) == 240
    assert sizes == [120, 120]


HOSTILE = {
    "one endless word": "a" * 200_000,
    "spaces": " " * 200_000,
    "a heading of spaces": "# " + " " * 200_000,
    "brackets": "![" * 100_000,
    "parentheses": ("(" * 290 + "\n") * 700,
    "headings": "# a\n" * 15_000,
    "fences": "```\n" * 15_000,
    "quotes": '"""\n' * 15_000,
    "underlines": "x\n---\n" * 10_000,
    "sentences": "." * 200_000,
    "words on a line": ("a " * 149 + "\n") * 700,
    "nesting": "\n".join(" " * (i % 90) + f"def f{i}(x):" for i in range(5_000)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_take_linear_time(name: str) -> None:
    started = time.process_time()
    for form in FORMS:
        assert sum(len(chunk.body) for chunk in split(HOSTILE[name], form, OPTIONS)) == len(HOSTILE[name])
    assert time.process_time() - started < 8


# --- Markdown -----------------------------------------------------------------------------------------------


def test_markdown_is_cut_at_headings_of_both_kinds_and_named_by_their_trail() -> None:
    block = """
        # The `grounded` [guide](https://example.org) #

        Intro.

        ## Install

        ### Linux

        Use the package.

        Usage
        -----

        Run it.

        Appendix
        ========
        """
    assert headings(block, "markdown") == [
        "The grounded guide",
        "The grounded guide > Install",
        "The grounded guide > Install > Linux",
        "The grounded guide > Usage",
        "Appendix",
    ]


def test_what_looks_like_a_heading_is_none_in_code_tables_lists_and_tags() -> None:
    block = """
        # Real

        ````sh
        # a comment
        ```
        ## still inside, the fence has four ticks
        ````

        ~~~
        ```
        # inside tildes
        ~~~

            # indented code

        #hashtag

        | a | b |
        |---|---|

        - item
        ---

        > quoted
        ---

        `# inline`
        """
    assert headings(block, "markdown") == ["Real"]


def test_an_item_of_a_list_may_open_a_fence() -> None:
    block = """
        # A

        1. Run
           ```
           # not a heading
           ```

        # B
        """
    assert headings(block, "markdown") == ["A", "B"]


def test_front_matter_stays_with_the_first_chunk_and_is_no_heading() -> None:
    block = text(
        """
        ---
        title: "The: guide"
        Status: Archived
        nested:
          importance: 1
        ---

        # First

        # Second
        """
    )
    first, second = split(block, "markdown", APART)
    assert (first.heading, first.start_line, second.heading) == ("First", 1, "Second")
    assert front_matter(block) == {"title": "The: guide", "status": "Archived", "nested": ""}
    assert front_matter("no front matter\nstatus: archived\n") == {}
    assert front_matter("---\nstatus: archived\nnever closed\n") == {}


def test_a_section_of_one_line_is_joined_with_its_nearest_relative() -> None:
    long = "Some words of a long section. " * 10
    two = "## Two\n\nShort, one line.\n\n### Detail\n\nAlso short, one line.\n\n"
    block = f"# Top\n\n## One\n\n{long}\n\n{two}## Three\n\n{long}\n"
    chunks = split(block, "markdown", OPTIONS)
    assert [chunk.heading for chunk in chunks] == ["Top > One", "Top > Two", "Top > Three"]
    assert chunks[1].body == two


def test_tiny_sections_are_joined_only_until_they_are_large_enough() -> None:
    block = "# FAQ\n\n" + "".join(
        f"## Question {n}\n\n" + "Answer with quite a few short words in it. " * 2 + "\n\n" for n in range(8)
    )
    chunks = split(block, "markdown", OPTIONS)
    sizes = [estimate_tokens(chunk.body) for chunk in chunks]
    assert {chunk.heading for chunk in chunks} == {"FAQ"}
    assert len(chunks) >= 3
    assert all(60 <= size <= 110 for size in sizes)


def test_a_long_section_is_cut_between_paragraphs_rather_than_inside() -> None:
    paragraph = "This paragraph is of a moderate length and has\ntwo lines, the second is here.\n\n"
    chunks = split("# Long\n\n" + paragraph * 30, "markdown", OPTIONS)
    assert len(chunks) > 2
    assert all(chunk.body.startswith(("# Long", "This paragraph")) for chunk in chunks)
    assert all(chunk.body.endswith("here.\n\n") for chunk in chunks)
    assert {chunk.heading for chunk in chunks} == {"Long"}


def test_a_long_list_is_cut_between_items() -> None:
    items = "".join(f"- item {n} is about something\n  that goes on\n" for n in range(60))
    chunks = split(items, "markdown", OPTIONS)
    assert len(chunks) > 2
    assert all(chunk.body.startswith("- item") for chunk in chunks)


def test_a_trail_that_is_too_long_loses_its_outer_headings_first() -> None:
    assert heading(["Install", "Linux"], 120) == "Install > Linux"
    assert heading(["a" * 60, "b" * 50, "c" * 50], 120) == f"… > {'b' * 50} > {'c' * 50}"
    assert heading(["a" * 10, "b" * 200], 120) == "… > " + "b" * 115 + "…"
    assert heading([], 120) == ""


# --- other prose --------------------------------------------------------------------------------------------


def test_restructured_text_is_cut_at_underlined_titles() -> None:
    block = """
        =====
        Title
        =====

        Section
        -------

        === ===
        a   b
        === ===

        Sub
        ~~~

        ..  code::

            Not
            ---

        Other
        -----
        """
    assert headings(block, "rst") == ["Title", "Title > Section", "Title > Section > Sub", "Title > Other"]
    assert first_heading(text(block), "rst") == "Title"


def test_asciidoc_is_cut_at_its_titles_outside_blocks() -> None:
    block = """
        = Title

        == Install

        ----
        == not a title
        ----

        === Linux
        """
    assert headings(block, "asciidoc") == ["Title", "Title > Install", "Title > Install > Linux"]


# --- programs -----------------------------------------------------------------------------------------------


def test_python_is_cut_by_definition_with_decorators_and_comments() -> None:
    block = '''
        """Module."""

        import os

        LIMIT: int = 3
        """Documented."""


        # About the class.
        @dataclass(
            frozen=True,
        )
        class Server(Base):
            """
        def not_code(): pass
            """

            port = 1

            # Starts.
            @property
            def start(
                self,
            ) -> None:
                async def inner():
                    pass
                return inner

            async def stop(self): ...


        def main() -> None:
            try:
                pass
            except ValueError:
                pass

        if __name__ == "__main__":
            main()
        '''
    assert trails(block) == [
        (1, ""),
        (5, "LIMIT"),
        (9, "Server"),
        (20, "Server > start"),
        (25, "Server > start > inner"),
        (27, "Server > start"),
        (29, "Server > stop"),
        (32, "main"),
        (38, ""),
    ]


def test_typescript_is_cut_by_definition() -> None:
    block = """
        import {
          type Foo,
        } from "./foo";

        export interface User {
          id: string;
        }

        /** Loads a user. */
        export const loadUser = async (id: string): Promise<User> => {
          if (!id) {
            throw new Error("missing");
          }
        };

        @Injectable()
        export class UserService {
          private cache = new Map<string, User>();

          // Gets one.
          async getUserById(id: string, opts: { fresh?: boolean } = {}): Promise<User | null> {
            for (const x of this.things) {
              this.call(x, function () {
                return 1;
              });
            }
          }
        }

        describe("UserService", () => {
          it("finds users", async () => {});
        });

        app.get("/x", (req, res) => {
          res.send("x");
        });
        """
    assert trails(block) == [
        (1, ""),
        (5, "User"),
        (9, "loadUser"),
        (16, "UserService"),
        (20, "UserService > getUserById"),
        (30, "UserService"),
        (31, "UserService > finds users"),
        (34, ""),
    ]


def test_go_rust_c_and_java_are_cut_by_definition() -> None:
    go = """
        package main

        // Server serves.
        type Server struct {
        \tport int
        }

        func (s *Server) Start(ctx context.Context) error {
        retry:
        \treturn nil
        }

        func main() {
        }
        """
    rust = """
        use crate::{a, b};

        /// A pair.
        #[derive(Debug)]
        pub struct Pair<A, B> {
            a: A,
        }

        impl<A> Show for Pair<A, A>
        where
            A: Debug,
        {
            pub(crate) fn show(&self) -> String {
                String::new()
            }
        }
        """
    c = """
        #include <stdio.h>

        /*
         * Adds.
         */
        static int add(int a, int b)
        {
            if (a) {
                goto out;
            }
        out:
            return a + b;
        }

        struct point {
            int x;
        };
        """
    java = """
        package x;

        /** Checks. */
        public class Checker {
            @Override
            public static Future<String> check(
                Executor executor) throws IOException {
                std(x, y -> {
                });
            }
        }
        """
    assert trails(go) == [(1, ""), (3, "Server"), (8, "Server.Start"), (13, "main")]
    assert trails(rust) == [
        (1, ""),
        (3, "Pair"),
        (9, "impl Show for Pair"),
        (13, "impl Show for Pair > show"),
    ]
    assert trails(c) == [(1, ""), (3, "add"), (15, "point")]
    assert trails(java) == [(1, ""), (3, "Checker"), (5, "Checker > check")]


def test_scripts_and_configuration_are_cut_by_their_own_structure() -> None:
    assert trails("# Deploys.\ndeploy() {\n  if x; then\n    y\n  fi\n}\ndeploy\n") == [(1, "deploy"), (7, "")]
    assert trails("[project]\nname = 1\n\n[[tool.x]]\na = 2\n") == [(1, "project"), (4, "tool.x")]
    assert trails("name: CI\njobs:\n  test:\n    steps:\n  build:\n") == [
        (1, "name"),
        (2, "jobs"),
        (3, "jobs > test"),
        (4, "jobs > test > steps"),
        (5, "jobs > build"),
    ]
    assert trails('{\n  "scripts": {\n    "a": 1\n  },\n  "b": {\n  }\n}\n') == [(1, ""), (2, "scripts"), (5, "b")]
    assert trails("all: test\n\ntest:\n\tpytest\n") == [(1, "all"), (3, "test")]
    assert trails("-- Users.\nCREATE TABLE IF NOT EXISTS users (\n  id int\n);\n") == [(1, "users")]
    assert trails("FROM a AS base\nRUN x\nFROM base\n") == [(1, "a AS base"), (3, "base")]
    assert trails('resource "aws_s3_bucket" "b" {\n  x = 1\n}\n') == [(1, "resource aws_s3_bucket b")]
    assert trails("module Foo\n  class Bar < Baz\n    def hi(x)\n    end\n  end\nend\n") == [
        (1, "Foo"),
        (2, "Foo > Bar"),
        (3, "Foo > Bar > hi"),
    ]


def test_a_long_function_is_cut_at_blank_lines_and_never_before_a_closing_brace() -> None:
    step = "    total += compute(value, index);\n    if (total > limit) {\n        report(total);\n    }\n\n"
    chunks = split("int run(int value) {\n" + step * 20 + "}\n", "code", OPTIONS)
    assert len(chunks) > 2
    assert {chunk.heading for chunk in chunks} == {"run"}
    assert all(chunk.body.startswith(("int run", "    total")) for chunk in chunks)


def test_short_functions_are_joined_and_long_ones_stand_alone() -> None:
    short = "def {}(x):\n    return x\n\n\n"
    long = "def long(x):\n" + "    y = compute(x, y, z)\n" * 12 + "\n\n"
    chunks = split(short.format("a") + short.format("b") + long + short.format("c"), "code", OPTIONS)
    assert [(chunk.heading, chunk.start_line) for chunk in chunks] == [("", 1), ("long", 9)]
    assert chunks[0].body == short.format("a") + short.format("b")
