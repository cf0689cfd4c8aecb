"""Which names a line of a program or configuration file defines: one table of patterns for common languages. Pure.

No language is detected: the patterns are narrow enough to share one table, and a wrong guess only names or cuts a
chunk oddly. Knows nothing about nesting or chunks; ``outline`` does that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

LONGEST_LINE = 300
"""A longer line is data or minified code; no pattern is tried on it."""
_KEY_INDENT = 4
"""Keys of configuration files are cut no further in than this many columns."""

Style = Literal["block", "key", "header"]


@dataclass(frozen=True, slots=True)
class Definition:
    """What a line defines. ``header`` reigns until the next header (``[section]``), ``key`` is one of many beside
    each other (YAML, make), and ``block`` is all else."""

    name: str
    style: Style


_MODIFIERS = (
    r"(?:(?:export|default|declare|public|private|protected|internal|static|abstract|final|sealed|open|override"
    r"|virtual|async|unsafe|inline|const|constexpr|extern(?:\s+\"[^\"]*\")?|partial|data|case|readonly|suspend"
    r"|pub(?:\([\w: ]+\))?)\s+)"
)
_NOT_CONTROL = (
    r"(?!(?:if|else|elif|for|foreach|while|until|switch|match|case|when|select|try|catch|except|finally|with|using"
    r"|lock|synchronized|guard|defer|go|do|return|yield|await|throw|raise|new|import|export|from|require|include|use"
    r"|default|public|private|protected|loop|unless|rescue|ensure|assert|print)\b)"
)
# Prose in a comment may begin with "class" or "type" as well, but is not followed by one of these.
_AFTER_NAME = (
    r"\s*(?:[(<{:=\[;*&]|$|//|/\*|\#|(?:extends|implements|for|where|struct|interface|func|inherits|with|of|is|as"
    r"|do|then|if|from|on)\b)"
)

# Every pattern is tried at the first character that is not white space; its groups, joined by dots, are the name.
_ANYWHERE = (
    # A keyword and a name: most of C++, C#, Elixir, Go, Java, Kotlin, PHP, Python, Ruby, Rust, Swift, TypeScript.
    rf"{_MODIFIERS}*(?:def|class|struct|interface|enum|trait|module|mod|namespace|protocol|extension|object|record"
    rf"|function\s*\*?|fn|fun|func|sub|defmodule|defp|defmacro|macro|union|actor|contract|macro_rules!)\s+"
    rf"((?:self\.)?[\w$.:?!'~-]*[\w$?!]){_AFTER_NAME}",
    # Go methods.
    r"func\s+\(\s*\w*\s*\*?(\w+)[^)]*\)\s*(\w+)",
    # Rust implementations.
    rf"{_MODIFIERS}*(impl\b[^{{;]*)",
    # JavaScript functions held in a constant.
    rf"{_MODIFIERS}*(?:const|let|var|val)\s+([\w$]+)\b[^=]*=\s*(?:async\b\s*)?"
    r"(?:function\b|\($|\(.*=>|[\w$]+\s*=>|\(.*\(\s*$)",
    # Functions assigned to a name or member: JavaScript, Lua, R.
    r"([\w$.]+)\s*(?:<-|=|:)\s*(?:async\s+)?function\b",
    # Test blocks.
    r"(?:describe|it|test|context|suite)(?:\.\w+)*\(\s*[\"'`]([^\"'`]+)",
    # Functions and methods without a keyword that open a brace; not calls that pass a function.
    rf"{_NOT_CONTROL}(?:[\w<>\[\],.&*:~?$@]+\s+)*?([#~]?[\w$:.-]*[\w$])\s*(?:<[\w, ]*>)?"
    r"\((?!.*(?:\bfunction\b|]\s*\())[^;]*\)"
    r"(?:\s*(?::|->|throws|const|noexcept|override|where|async|[\w.*\[\]]+)[^,;(){}=]*)?\s*\{$",
    # Methods whose parameters begin on the next line.
    rf"{_MODIFIERS}+(?:[\w<>\[\],.&*?]+\s+)*?([\w$]+)\s*\([^;{{}}()=]*$",
)
_AT_THE_MARGIN = (
    rf"{_MODIFIERS}*type\s+(\w+)",
    r"(?i:create\s+(?:or\s+replace\s+)?(?:\w+\s+)?(?:table|view|index|function|procedure|trigger|type|schema)"
    r"\s+(?:if\s+not\s+exists\s+)?)([\w.\"`]+)",
    r"((?:resource|data|module|variable|output|provider)(?:\s+\"[^\"]+\")+)\s*\{",
    r"\((?:defn-?|def|defmacro|defmulti|defmethod|ns|define|defun|defvar)\s+\(?([^\s()]+)",
    rf"{_NOT_CONTROL}([.\#@:*\w][^{{}};=()]*?)\s*\{{$",
    r"<(script|template|style)\b",
)
_BLOCK = re.compile("|".join(_ANYWHERE))
_OUTER_BLOCK = re.compile("|".join((*_ANYWHERE, *_AT_THE_MARGIN)))
_BRACE_BELOW = re.compile(rf"{_NOT_CONTROL}[\w<>\[\],.&*:~?$\s]+?(~?[\w:]+)\s*\([^;{{}}=]*\)[\w\s]*$")
_HEADER = re.compile(r"\[\[?([\w.\"' :/@-]+)\]\]?$|FROM\s+(\S.*)")
_KEY = re.compile(rf"{_NOT_CONTROL}([\w./%-]*\w)\s*:(?:\s|$)")
_INNER_KEY = re.compile(rf"{_NOT_CONTROL}([\w./%-]*\w)\s*:$|\"([^\"]+)\"\s*:\s*[{{\[]$")


def definition(code: str, indent: int, following: str, *, among_keys: bool) -> Definition | None:
    """What a line, stripped and ``indent`` columns in, defines; ``following`` is the line below, stripped.

    Keys are looked for only ``among_keys``: inside a function, ``name:`` is a label.
    """
    if len(code) > LONGEST_LINE:
        return None
    header = None if indent else _HEADER.match(code)
    if header and not (code[0] == "[" and _OUTER_BLOCK.match(following)):  # a C# attribute looks like a section
        return _named(header, "header")
    block = (_BLOCK if indent else _OUTER_BLOCK).match(code)
    if block is None and following == "{":
        block = _BRACE_BELOW.match(code)
    if block:
        return _named(block, "block")
    pattern = _INNER_KEY if indent else _KEY
    key = pattern.match(code) if among_keys and indent <= _KEY_INDENT else None
    return _named(key, "key") if key else None


def _named(found: re.Match[str], style: Style) -> Definition:
    return Definition(".".join(name.replace('"', "").strip("`") for name in found.groups() if name), style)
