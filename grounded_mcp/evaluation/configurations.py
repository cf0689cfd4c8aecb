"""Configurations that are compared, and what two of them may share.

Knows nothing about data sets; how settings come to be is ``config``'s and ``settings``'s business.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from grounded_mcp.config import flatten, load
from grounded_mcp.errors import InputError
from grounded_mcp.settings import Settings, settings

CONFIGURED = "as configured"

_ASKING = frozenset({"ask", "recall", "render", "server", "places", "project_dir", "project_key", "project_folders"})
"""Settings that decide nothing about what is stored. Any other, known or not, gets a store of its own."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A named way to run the memory. ``changes``: its settings that differ from the first one's, by dotted name."""

    name: str
    settings: Settings
    changes: Mapping[str, object]


def configurations(files: Sequence[str], sets: Sequence[str], folder: Path | None = None) -> tuple[Configuration, ...]:
    """What is configured here, and after it each of ``files`` (NAME=PATH) and ``sets`` ([NAME:]KEY=VALUE[,...]).

    Each is laid over what is configured.
    Raises: InputError for what has not that form, or a name that comes twice; ConfigError for a setting.
    """
    wanted: list[tuple[str, Mapping[str, object]]] = [(CONFIGURED, {})]
    wanted += [_from_file(each) for each in files]
    wanted += [_from_words(each) for each in sets]
    names = [name for name, _ in wanted]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError("config", f"two configurations are called {twice!r}.", "Give them different names.")
    return tuple(Configuration(name, settings(load(folder=folder, flags=flags)), flags) for name, flags in wanted)


def _from_file(text: str) -> tuple[str, Mapping[str, object]]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise InputError("config", f"{text!r} is not NAME=PATH.", "For example: mine=./tuned.toml.")
    try:
        table = tomllib.loads(Path(path).expanduser().read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise InputError("config", f"{path!r} cannot be read: {error}.", "Name a TOML file of settings.") from error
    return name, dict(flatten(table))


_SETTING = re.compile(r"(?:^|,)\s*([a-z][a-z0-9_.]*)=")
_NAMED = re.compile(r"([^=,:]+):(?=[a-z][a-z0-9_.]*=)")


def _from_words(text: str) -> tuple[str, Mapping[str, object]]:
    """One configuration: settings joined by commas; a comma inside of a value does not begin a setting."""
    named = _NAMED.match(text)
    rest = text[named.end() :] if named else text
    parts = _SETTING.split(rest)
    if len(parts) < 3 or parts[0].strip():
        raise InputError("set", f"{text!r} is not KEY=VALUE.", "For example: recall.fusion.mode=rrf.")
    flags = {key: _value(value) for key, value in zip(parts[1::2], parts[2::2], strict=True)}
    return named[1].strip() if named else rest, flags


def _value(text: str) -> object:
    """TOML where it is some, else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


def stored_alike(settings: Settings) -> str:
    """Equal for two settings under which a store comes to hold the same."""
    analyzer = replace(settings.analyzer, max_terms=0, max_query_chars=0)
    embedding = replace(settings.embedding, query_timeout_s=0.0, retry_after_s=0.0, threads=0, batch_size=0)
    plain = replace(settings, analyzer=analyzer, embedding=embedding)
    return repr([(each.name, getattr(plain, each.name)) for each in fields(plain) if each.name not in _ASKING])
