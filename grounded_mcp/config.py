"""Settings as flat values: config.toml < user file < project file < environment < flags.

The only module that reads the environment. The shipped config.toml is the schema: a key it does not hold is
refused, and a value must have its type. Knows nothing about what the options do.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

import platformdirs

from grounded_mcp import git
from grounded_mcp.errors import ConfigError
from grounded_mcp.values import Kind

APP = "grounded-mcp"
PROJECT_FILE = ".grounded.toml"
ENV_PREFIX = "GROUNDED_"
MAX_NUMBER = 1e15
"""Beyond it whole numbers and floats part ways, and no setting means anything."""

# A project's own file can tune ranking, and leave out more files than the user does; it never widens access (G1).
# Stemming decides what is in the index, which the projects share; a model is a program, and its time the user's.
_PROJECT_SECTION, _PROJECT_ADDS = "recall.", frozenset({"sync.ignore"})
_SHARED = frozenset({"recall.lexical.stemming", "recall.rerank.model", "recall.rerank.timeout_s"})
_CHOICES = {
    "embedding.provider": ("fastembed", "hashing", "none"),
    "recall.mode": ("hybrid", "lexical", "vector"),
    "recall.lexical.scorer": ("auto", "bm25", "overlap", "overlap_idf"),
    "recall.fusion.mode": ("rrf", "normalized", "hybrid", "blend"),
    "recall.fusion.normalization": ("zscore", "min_max"),
    "project_memory.fusion.mode": ("rrf", "normalized", "hybrid", "blend"),
    "project_memory.fusion.normalization": ("zscore", "min_max"),
    "pack.fusion.mode": ("rrf", "normalized", "hybrid", "blend"),
    "pack.fusion.normalization": ("zscore", "min_max"),
    "recall.tie_break_order": get_args(Kind),
    "redaction.engine": ("auto", "re2", "re"),
    "redaction.scanner": ("none", "kingfisher"),
    "server.log_level": ("debug", "info", "warning", "error"),
}
# Numbers are at least 0 and finite; these are bounded further: a zero would divide by itself or answer nothing.
_BOUNDS: Mapping[str, tuple[float, float]] = {
    "chunks.max_tokens": (32, math.inf),
    "store.postgres.pool_size": (1, 1_000),
    "store.postgres.pool_timeout_s": (0.05, 600),
    "store.postgres.connect_timeout_s": (2, 600),
    "store.postgres.statement_timeout_s": (0.001, 86_400),
    "store.postgres.ef_search": (1, 1_000),
    "store.postgres.index_memory_mb": (1, 1_000_000),
    "embedding.batch_size": (1, 4_096),
    "embedding.query_timeout_s": (0.001, math.inf),
    "recall.limit": (1, math.inf),
    "recall.max_limit": (1, math.inf),
    "recall.max_query_chars": (1, math.inf),
    "recall.candidate_factor": (1, math.inf),
    "recall.candidate_minimum": (1, math.inf),
    "recall.lexical.max_terms": (1, 64),
    "recall.fusion.k": (1, math.inf),
    "recall.blend.freshness_days": (0.01, math.inf),
    "recall.graph.common": (1, 4_096),
    "recall.graph.seeds": (0, 100),
    "recall.boosts.session_half_life_days": (0.01, math.inf),
    "recall.rerank.timeout_s": (0.001, math.inf),
    "render.pack_bytes": (2_304, 65_536),
    "render.pack_byte_cap": (2_304, 65_536),
    "pack.max_per_bucket": (1, 100),
    "pack.bucket_cap": (1, 100),
    "pack.pool": (1, 200),
    "pack.fusion.k": (1, math.inf),
    "project_memory.limit": (1, math.inf),
    "project_memory.max_limit": (1, math.inf),
    "project_memory.fusion.k": (1, math.inf),
    "confidence.recency_half_life_days": (0.01, math.inf),
    "facts.importance": (0, 1),
    "facts.max_chars": (1, math.inf),
    "facts.max_topic_chars": (1, math.inf),
    "learnings.max_chars": (1, math.inf),
    "learnings.max_note_chars": (1, math.inf),
    "learnings.max_links": (1, math.inf),
    "render.snippet_chars": (40, math.inf),
    "render.max_chars": (2_000, math.inf),
    "render.page_chars": (100, math.inf),
    "sessions.digest_lines": (3, math.inf),
    "brief.max_chars": (2_000, math.inf),
    "brief.max_tokens": (600, math.inf),
    "brief.pinned_share": (0, 0.85),
    "brief.facts_share": (0, 0.85),
    "brief.sessions_share": (0, 0.85),
    "brief.scripts_share": (0, 0.85),
    "brief.facts": (1, 4_096),
    "brief.sessions": (0, 4_096),
    "brief.scripts": (0, 4_096),
    "brief.learnings": (0, 4_096),
    "brief.names": (0, 1_000),
    "brief.mentions": (0, 100),
    "brief.fact_chars": (40, math.inf),
    "brief.title_chars": (20, math.inf),
    "brief.name_chars": (10, math.inf),
    "hooks.deadline_s": (0.05, 60),
    "server.port": (0, 65_535),
    "server.max_line_bytes": (1_024, math.inf),
    "server.max_body_bytes": (1_024, math.inf),
    "server.max_reply_bytes": (1_024, math.inf),
    "server.grace_seconds": (0.001, math.inf),
    "server.max_sessions": (1, math.inf),
    "server.session_idle_seconds": (0.001, math.inf),
    "server.max_connections": (1, math.inf),
    "server.request_seconds": (0.001, math.inf),
    "server.requests_per_minute": (1, math.inf),
    "server.requests_at_once": (1, math.inf),
}
# Numbers that may be left to be found out: "auto".
_AUTOMATIC = {"recall.vector.floor"}
# Tables whose keys are the user's own.
_OPEN = ("project.folders", "sessions.folders")

_AGENTS_VARIABLES = (
    *("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "COPILOT_HOME", "QWEN_HOME", "CLINE_DIR", "CLINE_DATA_DIR"),
    *("CONTINUE_GLOBAL_DIR", "CURSOR_CONFIG_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "APPDATA", "LOCALAPPDATA"),
)

Flat = dict[str, Any]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Places:
    """Where things are kept, and which files the settings came from."""

    home: Path
    store: str
    sources: tuple[str, ...]
    environment: Mapping[str, str] | None = None
    """For child processes: our variables without those by which a running git hook would redirect git."""
    user: Path = Path()
    """The user's home, under which agents keep their sessions."""
    agents: Mapping[str, str] = field(default_factory=dict)
    """The variables by which agents are told to keep them elsewhere."""


@dataclass(frozen=True, slots=True)
class Values:
    """All settings, flat, by dotted name. ``pick`` builds a stage's Options from a section."""

    flat: Mapping[str, Any]
    places: Places
    project_dir: Path

    def __getitem__(self, name: str) -> Any:
        return self.flat[name]

    def pick(self, options: type[_T], section: str, **given: object) -> _T:
        """``options`` filled from ``section`` by field name; ``given`` overrides or adds fields."""
        names = [each.name for each in fields(cast(Any, options))]
        values = {name: self.flat[f"{section}.{name}"] for name in names if name not in given}
        frozen = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
        return options(**frozen, **given)

    def table(self, section: str) -> dict[str, Any]:
        """An open table such as [project.folders]."""
        prefix = section + "."
        return {name[len(prefix) :]: value for name, value in self.flat.items() if name.startswith(prefix)}


def load(
    *,
    folder: Path | None = None,
    cwd: Path | None = None,
    flags: Mapping[str, object] | None = None,
    env: Mapping[str, str] | None = None,
) -> Values:
    """Settings for a project: the named ``folder``, or the one a client names, or the working directory.

    ``flags`` are dotted names given on the command line, the last word.

    Raises: ConfigError naming the file or variable, the key, and what it may be.
    """
    env = os.environ if env is None else env
    home = _folder(env, "GROUNDED_HOME") or platformdirs.user_data_path(APP, appauthor=False)
    named = _folder(env, "GROUNDED_CONFIG")
    user_file = named or home / "config.toml"
    if named and not named.is_file():
        raise ConfigError(f"GROUNDED_CONFIG names {named}, which is not a file.", "Correct or unset it.")
    project_dir = folder or _folder(env, "CLAUDE_PROJECT_DIR") or cwd or _here()
    project_file = _project_file(project_dir)
    values, sources = dict(defaults()), ["defaults"]
    for source, layer, adding in (
        (str(user_file), _read(user_file), frozenset[str]()),
        (*_project_layer(project_file), _PROJECT_ADDS),
    ):
        if layer:
            _overlay(values, layer, source, adding)
        if layer or source.endswith(")"):  # a file that was ignored is named, too
            sources.append(source)
    variables = tuple(_environment(env))
    for variable, name, value in variables:
        _overlay(values, {name: value}, variable)
    _overlay(values, flags or {}, "flags")
    sources += [source for source, given in (("environment", variables), ("flags", flags)) if given]
    named_store = (flags or {}).get("store.location") or env.get("GROUNDED_STORE") or values["store.location"]
    store = str(named_store or home / "memory.db")
    user = Path(env.get("HOME") or env.get("USERPROFILE") or Path.home())
    agents = {name: env[name] for name in _AGENTS_VARIABLES if env.get(name)}
    places = Places(home, store, tuple(sources), git.environment(env), user, agents)
    return Values(values, places, project_dir)


@cache
def defaults() -> Mapping[str, Any]:
    """The shipped config.toml, flat."""
    packaged = Path(__file__).with_name("config.toml")
    path = packaged if packaged.is_file() else Path(__file__).parent.parent / "config.toml"
    return dict(flatten(tomllib.loads(path.read_text(encoding="utf-8"))))


def _project_file(folder: Path) -> Path:
    """The project's own settings: in the folder, or above it as far as the top of its git checkout.

    Outside of one only the folder itself is asked: anybody may put a file into /tmp, or into a shared folder.
    """
    folder = folder.resolve()
    way = (folder, *folder.parents)
    top = next((at for at, each in enumerate(way, 1) if (each / ".git").exists()), 1)
    return next((each / PROJECT_FILE for each in way[:top] if (each / PROJECT_FILE).is_file()), folder / PROJECT_FILE)


def _folder(env: Mapping[str, str], variable: str) -> Path | None:
    try:
        return Path(env[variable]).expanduser() if env.get(variable) else None
    except RuntimeError as error:
        raise ConfigError(f"{variable} names {env[variable]}: {error}", "Correct or unset it.") from error


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise ConfigError(f"The working directory cannot be read: {error}.", "Change to one that exists.") from error


def _read(path: Path) -> Flat:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.", "Correct or remove it.") from error
    try:
        return dict(flatten(tomllib.loads(text)))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.", "Correct the line it names.") from error


def _project_layer(path: Path) -> tuple[str, Flat]:
    """A project's file and its values. One that cannot be used is left out whole, and its name says why.

    It is not an error: a cloned repository must not be able to switch the memory off.
    """
    try:
        layer = _read(path)
        for name, value in layer.items():
            if name in _SHARED or not (name.startswith(_PROJECT_SECTION) or name in _PROJECT_ADDS):
                allowed = "[recall.*] and sync.ignore, and neither stemming nor the reranker's model and time"
                raise ConfigError(f"it sets {name} and may set only {allowed}", "-")
            _check(name, value, str(path))
    except ConfigError as error:
        return f"{path} (ignored: {error.message})", {}
    return str(path), layer


def _environment(env: Mapping[str, str]) -> Iterator[tuple[str, str, Any]]:
    """Variable, setting and value of every variable that sets one."""
    for variable, text in env.items():
        if variable.startswith(ENV_PREFIX) and "__" in variable:
            name = variable.removeprefix(ENV_PREFIX).lower().replace("__", ".")
            yield variable, name, _parse(name, text)


def _parse(name: str, text: str) -> Any:
    """A variable's text as its setting's type: texts as they are, everything else as TOML."""
    if isinstance(defaults().get(name), str) and name not in _AUTOMATIC:
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by dotted name, in snake_case, from a table as TOML has it."""
    for key, value in table.items():
        name = prefix + (key if prefix.removesuffix(".") in _OPEN else _snake(key))
        if isinstance(value, dict):
            yield from flatten(value, name + ".")
        else:
            yield name, value


def _snake(key: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda m: "_" + m[1].lower(), key)


def _overlay(values: Flat, layer: Mapping[str, object], source: str, adding: frozenset[str] = frozenset()) -> None:
    """Checked values of a layer replace those below; lists named in ``adding`` go in front of them.

    In front, because the last pattern that matches decides: "!private/" brings back nothing that is left out below.
    """
    for name, value in layer.items():
        if not name.startswith(tuple(section + "." for section in _OPEN)):
            _check(name, value, source)
        elif not isinstance(value, str):
            raise ConfigError(f"{source}: {name} = {value!r} has the wrong type.", "Give a text.")
        values[name] = [*cast("list[str]", value), *values[name]] if name in adding else value


def _check(name: str, value: object, source: str) -> None:
    known = defaults()
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]}?" if near else "config.toml lists every setting."
        raise ConfigError(f"{source}: there is no setting {name}.", hint)
    allowed = _CHOICES.get(name) or (("auto",) if name in _AUTOMATIC and isinstance(value, str) else ())
    if allowed and not all(each in allowed for each in (value if isinstance(value, list) else [value])):
        raise ConfigError(f"{source}: {name} = {value!r} is unknown.", f"Choose from {', '.join(allowed)}.")
    if not (_same_type(known[name], value) or (name in _AUTOMATIC and _same_type(0.0, value))):
        raise ConfigError(f"{source}: {name} = {value!r} has the wrong type.", f"The default is {known[name]!r}.")
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = _BOUNDS.get(name, (0, math.inf))
        if not low <= value <= min(high, MAX_NUMBER):
            among = f"from {low:g} to {high:g}" if high < math.inf else f"of at least {low:g}"
            raise ConfigError(f"{source}: {name} = {value} is out of range.", f"Give a number {among}.")


def _same_type(default: object, value: object) -> bool:
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, float):
        return isinstance(value, int | float)
    if isinstance(default, list):
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    return isinstance(value, type(default))
