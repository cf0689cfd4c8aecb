"""Where the sections of a text begin: headings of a document, definitions of a program. Pure.

Works line by line with patterns, not with a parser: any text has an outline, and a wrong guess only moves the
border between two chunks. Knows nothing about chunk sizes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from grounded_mcp.ingest.definitions import Definition, definition

Form = Literal["markdown", "rst", "asciidoc", "prose", "code"]
Trail = tuple[str, ...]

TITLE_CHARS = 80
"""A longer heading is cut: it is a sentence, and the body holds it in full."""
LONGEST_HEADING = 1000
"""A longer line is text, whatever it begins with."""
MAX_DEPTH = 6
TAB = 4
_FRONT_MATTER_LINES = 200
_FRONT_MATTER_PAIR = re.compile(r"""(?P<name>\w+)\s*[:=]\s*["']?(?P<value>[^"'\n]*?)["']?\s*$""")
_HEAD_CHARS = 20_000
"""As far as a title is looked for."""


@dataclass(frozen=True, slots=True)
class Section:
    """A run of lines from index ``start`` to the next section, under the headings in ``trail``."""

    start: int
    trail: Trail


@dataclass(frozen=True, slots=True)
class _Mark:
    """A heading or definition: ``level`` orders nesting, smaller is further out."""

    start: int
    level: int
    title: str
    key: bool = False


def outline(lines: Sequence[str], form: Form) -> list[Section]:
    """Sections in order, the first at line 0; together they cover every line."""
    if form == "code":
        return _code(lines)
    marks = list(_MARKS[form](lines))
    sections = _nested(marks)
    body = front_matter_end(lines) if form == "markdown" else 0
    if sections and not any(line.strip() for line in lines[body : sections[0].start]):
        return [Section(0, sections[0].trail), *sections[1:]]
    return [Section(0, ()), *sections]


def first_heading(text: str, form: Form) -> str:
    """The heading a document goes by; empty for a program, and where the text begins without one."""
    lines = text[:_HEAD_CHARS].splitlines(keepends=True)
    if form == "code":
        return ""
    first = next(_MARKS[form](lines), None)
    return first.title if first else ""


def front_matter(text: str) -> dict[str, str]:
    """The plain ``name: value`` lines of a front matter block, names in lower case; nested ones are left out."""
    lines = text[:_HEAD_CHARS].splitlines()
    pairs = (_FRONT_MATTER_PAIR.match(line) for line in lines[1 : front_matter_end(lines)])
    return {pair["name"].lower(): pair["value"] for pair in pairs if pair}


def front_matter_end(lines: Sequence[str]) -> int:
    """Index of the first line after a YAML or TOML front matter block, or 0."""
    fence = lines[0].strip().removeprefix("\ufeff") if lines else ""
    if fence not in ("---", "+++"):
        return 0
    for index, line in enumerate(lines[1:_FRONT_MATTER_LINES], 1):
        if line.strip() in (fence, "..."):
            return index + 1
    return 0


def _nested(marks: Sequence[_Mark]) -> list[Section]:
    open_marks: list[_Mark] = []
    sections = []
    for mark in marks:
        while open_marks and open_marks[-1].level >= mark.level:
            open_marks.pop()
        open_marks.append(mark)
        sections.append(Section(mark.start, tuple(each.title for each in open_marks[:MAX_DEPTH])))
    return sections


# --- documents --------------------------------------------------------------------------------------------

_ATX = re.compile(r" {0,3}(?P<marks>#{1,6})(?:[ \t]+(?P<title>.*?))?(?:[ \t]+#+)?[ \t]*\r?\n?$")
_FENCE = re.compile(r"[ \t>]*(?:[-*+][ \t]+|\d+[.)][ \t]+)?(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)")
_SETEXT = re.compile(r" {0,3}(?P<mark>={2,}|-{3,})[ \t]*\r?\n?$")
_NOT_SETEXT = re.compile(r"\s*(?:$|[|>#<]|[-*+] |\d+[.)] |\s{4})")
_UNDERLINE = re.compile(r"""(?P<mark>[=\-~^"'`*+#:._<>])(?P=mark){2,}[ \t]*\r?\n?$""")
_ADOC_TITLE = re.compile(r"(?P<marks>={1,6})[ \t]+(?P<title>\S.*?)(?:[ \t]+=+)?[ \t]*\r?\n?$")
_ADOC_BLOCK = re.compile(r"(?P<fence>-{4,}|\.{4,}|\+{4,}|/{4,}|={4,}|\*{4,}|_{4,}|```)[ \t]*\r?\n?$")

_MARKUP = (
    (re.compile(r"!\[[^]]*]\([^)]*\)|<[^<>]{1,200}>|\{#[^}]*}"), ""),
    (re.compile(r"\[([^]]*)]\([^)]*\)"), r"\1"),
    (re.compile(r"[`*]+|\s+"), " "),
)


def plain_title(text: str) -> str:
    """A heading without markup, on one line, of at most ``TITLE_CHARS`` characters."""
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    text = " ".join(text.split())
    return text if len(text) <= TITLE_CHARS else text[: TITLE_CHARS - 1].rstrip() + "…"


def fenced(lines: Sequence[str]) -> Iterator[bool]:
    """For each line of Markdown: is it inside a fenced code block (its fence lines included)?"""
    fence = ""
    for line in lines:
        found = _FENCE.match(line)
        if not fence:
            # An info string with a backtick is inline code that happens to start a line.
            if found and not (found["fence"][0] == "`" and "`" in found["info"]):
                fence = found["fence"]
            yield bool(fence)
            continue
        yield True
        if found and found["fence"].startswith(fence) and not found["info"].strip():
            fence = ""


def _markdown(lines: Sequence[str]) -> Iterator[_Mark]:
    previous, blank_before = "", True
    skip = front_matter_end(lines)
    for index, (line, inside) in enumerate(zip(lines, fenced(lines), strict=True)):
        if inside or index < skip or len(line) > LONGEST_HEADING:
            previous, blank_before = "", True
            continue
        if (found := _ATX.match(line)) and found["title"]:
            yield _Mark(index, len(found["marks"]), plain_title(found["title"]))
            previous, blank_before = "", True
            continue
        if blank_before and previous and (under := _SETEXT.match(line)):
            yield _Mark(index - 1, 1 if under["mark"][0] == "=" else 2, plain_title(previous))
            previous, blank_before = "", True
            continue
        blank_before = not previous.strip()
        previous = "" if _NOT_SETEXT.match(line) else line


def _underlined(lines: Sequence[str]) -> Iterator[_Mark]:
    """reStructuredText titles: underlined, perhaps overlined; the order of first use gives the level."""
    levels: dict[tuple[str, bool], int] = {}
    for index in range(1, len(lines)):
        under = _UNDERLINE.match(lines[index])
        title = lines[index - 1].strip()
        if under is None or not 0 < len(title) <= LONGEST_HEADING or _UNDERLINE.match(lines[index - 1]):
            continue
        over = index > 1 and lines[index - 2].strip() == lines[index].strip()
        alone = over or index == 1 or not lines[index - 2].strip()
        if not alone or len(lines[index].strip()) < len(title) - 1 or (not over and lines[index - 1][0].isspace()):
            continue
        level = levels.setdefault((under["mark"], over), len(levels) + 1)
        yield _Mark(index - 2 if over else index - 1, level, plain_title(title))


def _asciidoc(lines: Sequence[str]) -> Iterator[_Mark]:
    block = ""
    for index, line in enumerate(lines):
        if found := _ADOC_BLOCK.match(line):
            block = "" if found["fence"] == block else block or found["fence"]
        elif not block and len(line) <= LONGEST_HEADING and (title := _ADOC_TITLE.match(line)):
            yield _Mark(index, len(title["marks"]), plain_title(title["title"]))


_MARKS: Mapping[str, Callable[[Sequence[str]], Iterator[_Mark]]] = {
    "markdown": _markdown,
    "rst": _underlined,
    "asciidoc": _asciidoc,
    "prose": _underlined,
}

# --- programs ---------------------------------------------------------------------------------------------

_LEAD = re.compile(r"\#|//|/\*|\*|--|;;|@\w|template\s*<")
_LEAD_OPEN = re.compile(r"@\w|\#\[")
_CONTINUES = re.compile(
    r"[}\])]|\{|[rbfuRBFU]{0,2}(?:\"\"\"|''')"
    r"|(?:end|else|elif|elsif|elseif|except|catch|finally|rescue|ensure|done|fi|esac|then|begin|where)\b"
    r"|(?:public|private|protected|signals|slots)\s*:|\w+\s*:$|\#\s*(?:if|else|elif|endif|ifdef|ifndef)\b"
)
_AT_THE_MARGIN = re.compile(r"(?:async )?(?:def|class) \w+.*:$")


@dataclass(slots=True)
class _Scan:
    """The state of one pass over a program's lines."""

    sections: list[Section]
    open_marks: list[_Mark]
    lead: int | None = None
    """Where the comments and decorators right above the current line begin, and how far in."""
    lead_indent: int = 0
    lead_open: bool = False
    quoted: bool = False
    """Inside a triple-quoted string."""
    comment: bool = False
    """Inside a block comment."""

    def begin(self, start: int, level: int, found: Definition | None) -> None:
        while self.open_marks and self.open_marks[-1].level >= level:
            self.open_marks.pop()
        title = plain_title(found.name) if found else ""
        if found and title and len(self.open_marks) < MAX_DEPTH:
            self.open_marks.append(_Mark(start, level, title, found.style == "key"))
        self.sections.append(Section(start, tuple(mark.title for mark in self.open_marks)))


def _code(lines: Sequence[str]) -> list[Section]:
    """Sections by definition, nested by indentation.

    Comments and decorators belong to the definition below them. A line that is no further in than the open
    definition, and does not close it, begins a section of what is around it.
    """
    scan = _Scan([Section(0, ())], [])
    for index, line in enumerate(lines):
        code = line.strip()
        if not code:
            scan.lead = scan.lead if scan.comment else None
            continue
        indent = indentation(line)
        if _in_text(scan, code, indent) or _is_lead(scan, index, code, indent):
            continue
        start = index if scan.lead is None or scan.lead_indent != indent else scan.lead
        scan.lead = None
        around = scan.open_marks[-1] if scan.open_marks else None
        following = lines[index + 1].strip() if index + 1 < len(lines) else ""
        found = definition(code, indent, following, among_keys=around is None or around.key)
        if found or (around and indent <= around.level and not _CONTINUES.match(code)):
            scan.begin(start, -1 if found and found.style == "header" else indent, found)
    # A section that begins where the first one does takes its place.
    return list({section.start: section for section in scan.sections}.values())


def _in_text(scan: _Scan, code: str, indent: int) -> bool:
    """Whether the line lies inside a triple-quoted string; a definition at the margin ends one that ran away."""
    was = scan.quoted and not (indent == 0 and _AT_THE_MARGIN.match(code))
    odd = (code.count('"""') + code.count("'''")) % 2
    scan.quoted = not was if odd else was
    return was


def _is_lead(scan: _Scan, index: int, code: str, indent: int) -> bool:
    """Whether the line is a comment or decorator that belongs to what follows."""
    if scan.comment:
        scan.comment = "*/" not in code
        return True
    if scan.lead is not None and scan.lead_open and (indent > scan.lead_indent or code[0] in ")]}"):
        return True
    if not _LEAD.match(code):
        return False
    if scan.lead is None or indent != scan.lead_indent:
        scan.lead, scan.lead_indent = index, indent
    scan.lead_open = bool(_LEAD_OPEN.match(code))
    scan.comment = code.startswith("/*") and "*/" not in code
    return True


def indentation(line: str) -> int:
    """How far in a line begins, in columns."""
    space = line[: len(line) - len(line.lstrip())]
    return len(space) + (TAB - 1) * space.count("\t")
