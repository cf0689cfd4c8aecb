"""Tool arguments as tables: one row gives both the JSON schema that is published and the check of what arrives.

By hand, because an agent acts on what the message says: which argument, what was wrong, what to send instead.
Knows nothing about MCP or about what the arguments mean to the memory.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from grounded_mcp.errors import InputError

Type = Literal["string", "integer", "number", "boolean", "strings"]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool. ``keyword`` is its name in Python where the wire's name is not one of ours."""

    name: str
    type: Type
    about: str
    required: bool = False
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    keyword: str = ""

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema (2020-12), in the subset every client's model API accepts: no unions, no references."""
        bounds = {"minimum": self.minimum, "maximum": self.maximum}
        found = {name: bound for name, bound in bounds.items() if bound is not None}
        if self.type == "strings":
            items = {"type": "string"} | ({"enum": list(self.choices)} if self.choices else {})
            return {"type": "array", "items": items, "description": self.about}
        choices = {"enum": list(self.choices)} if self.choices else {}
        return {"type": self.type, **choices, **found, "description": self.about}


def input_schema(table: Sequence[Argument]) -> dict[str, Any]:
    """The schema of a tool's arguments; unknown ones are an error, and it says so."""
    required = [argument.name for argument in table if argument.required]
    return {
        "type": "object",
        "properties": {argument.name: argument.schema for argument in table},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def check(tool: str, table: Sequence[Argument], given: Mapping[str, object]) -> dict[str, Any]:
    """The arguments by Python keyword, only those that were given; null counts as not given.

    Numbers, booleans and lists may come as their text, as some models and clients send them.

    Raises: InputError naming the argument, for the first one that is unknown, missing or unusable.
    """
    known = {argument.name: argument for argument in table}
    for name in given:
        if name not in known:
            raise _unknown(tool, name, list(known))
    values = {}
    for argument in table:
        value = given.get(argument.name)
        if value is not None:
            values[argument.keyword or argument.name] = _READERS[argument.type](argument, value)
        elif argument.required:
            raise InputError(argument.name, "is missing.", f"Give {_wanted(argument)}: {argument.about}")
    return values


_HABITS = {
    "k": "limit", "n": "limit", "count": "limit", "top_k": "limit", "topk": "limit", "max_results": "limit",
    "q": "query", "search": "query", "prompt": "query", "kinds": "sources", "types": "sources",
    "scopes": "factScopes", "threshold": "minScore", "budget": "maxTokens", "from": "since", "after": "since",
    "to": "until", "before": "until", "explain": "trace", "content": "text", "fact": "text", "memory": "text",
    "key": "topic_key", "topic": "topic_key", "priority": "importance", "pin": "pinned", "supersedes": "replaces",
    "memory_id": "id", "item_id": "id", "pointer": "id", "uri": "id", "page": "offset", "start": "offset",
}  # fmt: skip
"""What agents send from other servers' habits -> our name for it. Only used to word an error."""


def nearest(name: str, known: Sequence[str]) -> str | None:
    """The known name that was probably meant."""
    folded = {_folded(candidate): candidate for candidate in known}
    habit = _HABITS.get(name.lower())
    if habit in known:
        return habit
    close = difflib.get_close_matches(_folded(name[:64]), list(folded), n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def _folded(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _unknown(tool: str, name: str, known: Sequence[str]) -> InputError:
    close = nearest(name, known)
    takes = f"{tool} takes {', '.join(known)}." if known else f"{tool} takes no arguments."
    return InputError(name[:64], "is not an argument.", f"Did you mean {close}? {takes}" if close else takes)


_NUMERAL = re.compile(r"-?\d{1,18}(\.\d{1,18})?")


def _string(argument: Argument, value: object) -> str:
    if not isinstance(value, str):
        raise _unusable(argument, value)
    if argument.choices and value not in argument.choices:
        raise _unusable(argument, value)
    return value


def _strings(argument: Argument, value: object) -> tuple[str, ...]:
    found = _parsed(value) if isinstance(value, str) and value.lstrip().startswith("[") else value
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise _unusable(argument, value)
    for item in found:
        if argument.choices and item not in argument.choices:
            raise _unusable(argument, item)
    return tuple(found)


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _number(argument: Argument, given: object) -> float:
    value = _parsed(given) if isinstance(given, str) and _NUMERAL.fullmatch(given.strip()) else given
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        raise _unusable(argument, given)
    if argument.minimum is not None and value < argument.minimum:
        raise _unusable(argument, given)
    if argument.maximum is not None and value > argument.maximum:
        raise _unusable(argument, given)
    return float(value) if argument.type == "number" else value


def _is_finite(value: float) -> bool:
    # math.isfinite raises for whole numbers beyond the range of a float.
    return value.bit_length() < 1_000 if isinstance(value, int) else math.isfinite(value)


def _integer(argument: Argument, given: object) -> int:
    number = _number(argument, given)
    if number != int(number):
        raise _unusable(argument, given)
    return int(number)


def _boolean(argument: Argument, given: object) -> bool:
    if isinstance(given, str) and given.strip().lower() in ("true", "false"):
        return given.strip().lower() == "true"
    if not isinstance(given, bool):
        raise _unusable(argument, given)
    return given


_READERS: dict[Type, Callable[[Argument, object], Any]] = {
    "string": _string,
    "strings": _strings,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
}

_NOUNS: dict[Type, str] = {
    "string": "a text",
    "strings": "a list of texts",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}


def _unusable(argument: Argument, value: object) -> InputError:
    return InputError(argument.name, f"{_shown(value)} is not usable.", f"Give {_wanted(argument)}.")


def _wanted(argument: Argument) -> str:
    if argument.choices:
        among = ", ".join(argument.choices)
        return f"a list of any of {among}" if argument.type == "strings" else f"one of {among}"
    noun = _NOUNS[argument.type]
    low, high = argument.minimum, argument.maximum
    if low is not None and high is not None:
        noun = f"{noun} from {low:g} to {high:g}"
    elif low is not None:
        noun = f"{noun} of at least {low:g}"
    return noun


def _shown(value: object) -> str:
    text = json.dumps(value[:60] if isinstance(value, str) else value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
