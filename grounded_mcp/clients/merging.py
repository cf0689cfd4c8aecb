"""A settings file's text with our entries in it, or without them again. Pure; the formats are in a table.

Whatever an edit does is read back: the entries have to be there, and everything else has to say what it said. An
edit that fails this is refused, and the file stays as it is. Knows nothing about files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from grounded_mcp.clients import jsonc, jsonc_edit, toml_edit, yaml_edit
from grounded_mcp.clients.splicing import Entry, Refused, Splice, holds, is_ours, look, rest

FormatName = Literal["json", "toml", "yaml"]
BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Format:
    load: Callable[[str], Any]
    put: Callable[[str, Entry], Splice]
    cut: Callable[[str, Entry, int], str]
    is_strict: Callable[[str], bool]
    """Whether strict readers accept the text: an edit never takes that away."""


FORMATS: Mapping[FormatName, Format] = {
    "json": Format(jsonc.load, jsonc_edit.put, jsonc_edit.cut, jsonc.is_strict),
    "toml": Format(toml_edit.load, toml_edit.put, toml_edit.cut, lambda _: True),
    "yaml": Format(yaml_edit.load, yaml_edit.put, yaml_edit.cut, lambda _: True),
}


def entered(text: str, entries: Sequence[Entry], format: FormatName) -> tuple[str, tuple[Splice, ...]]:
    """The text with every entry in it, and the splices that made it, in order. A byte order mark stays in front.

    Raises: ValueError when the text is not in its format, Refused when it cannot take an entry.
    """
    how, mark, body = FORMATS[format], *_marked(text)
    before, splices = body, []
    data = how.load(body)
    for at, entry in enumerate(entries):
        found = look(data, entry.path)
        if entry.kind == "member" and found is not None and found != entry.value and not is_ours(found):
            raise Refused(f"{'.'.join(entry.path)} is there already and is something else")
        if not holds(data, entry):
            splices.append(replace(how.put(body, entry), entry=at))
            body = splices[-1].apply(body)
            data = _read_back(how, body)
    if not all(holds(data, entry) for entry in entries) or _changed_else(how, before, body, entries):
        raise Refused("it is laid out in a way that would not keep the rest of it as it is")
    return mark + body, tuple(splices)


def left(text: str, entries: Sequence[Entry], splices: Sequence[Splice], format: FormatName) -> str:
    """The text without the entries. What a splice put in is taken out as one piece where it still stands as written.

    Raises: ValueError when the text is not in its format, Refused when an entry cannot be taken out of it.
    """
    how, mark, body = FORMATS[format], *_marked(text)
    before = body
    how.load(body)
    for splice in reversed(splices):
        without = _unspliced(body, splice)
        if without is None or _changed_else(how, body, without, entries):
            without = how.cut(body, entries[splice.entry], splice.made)
        body = without
    if not splices:  # nothing is known of how they came here: what is empty without them was made for them
        for entry in reversed(entries):
            body = how.cut(body, entry, len(entry.path))
    if _changed_else(how, before, body, entries):
        raise Refused("it is laid out in a way that would not keep the rest of it as it is")
    return mark + body


def is_bare(text: str, entries: Sequence[Entry], format: FormatName) -> bool:
    """Whether a file holds nothing but what we once put around our entries."""
    how, _, body = FORMATS[format], *_marked(text)
    data = how.load(body)
    return not rest(data, entries) and "//" not in body and "#" not in body and "/*" not in body


def _unspliced(body: str, splice: Splice) -> str | None:
    """The text with a splice undone, if what it wrote stands in exactly one place."""
    at = body.find(splice.new)
    if at < 0 or body.find(splice.new, at + 1) >= 0:
        return None
    return body[:at] + splice.old + body[at + len(splice.new) :]


def _changed_else(how: Format, before: str, after: str, entries: Sequence[Entry]) -> bool:
    """Whether the texts differ in anything but our entries, or a strict reader would now stumble."""
    try:
        same = rest(how.load(before), entries) == rest(how.load(after), entries)
    except ValueError:
        return True
    return not same or (how.is_strict(before) and not how.is_strict(after))


def _read_back(how: Format, body: str) -> Any:
    try:
        return how.load(body)
    except ValueError as error:
        raise Refused("it is laid out in a way that cannot take an entry") from error


def _marked(text: str) -> tuple[str, str]:
    return (BOM, text.removeprefix(BOM)) if text.startswith(BOM) else ("", text)
