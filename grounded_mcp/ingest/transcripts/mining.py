"""What a session teaches without a model: commands that were seen to work, and attempts with their outcome (I5). Pure.

A command is worth remembering when it tests, checks, formats, builds, deploys, installs or runs something of the
project; looking around, version control and one-off scripts are not. Success supports it, failure contradicts it,
and a check that fails because of what it checked says little against the command.
Knows nothing about stores, formats or how evidence is weighed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from grounded_mcp.ingest.transcripts.exchanges import Action, Exchange
from grounded_mcp.ingest.transcripts.outputs import sounds_failed
from grounded_mcp.ingest.transcripts.passages import headline, relative
from grounded_mcp.ingest.transcripts.shell import (
    CHECKS,
    WORTHWHILE,
    Part,
    Purpose,
    bare,
    normal,
    parts,
    purpose,
    purposes,
    script_of,
    words,
)

EvidenceKind = Literal["verified outcome", "diagnostic episode"]
Ending = Literal["reached", "failed", "abandoned", "unknown"]

MAX_COMMAND = 200
ATTEMPTS = 12
GOAL_CHARS = 300
CONCLUSION_CHARS = 400

_CANNOT_RUN = re.compile(
    r"command not found|no such file|not recognized as|permission denied|unknown (?:command|task|option|flag|target)"
    r"|missing script|no rule to make|no tasks? |unrecognized (?:argument|option)"
    r"|^usage:|no module named|cannot find module",
    re.IGNORECASE | re.MULTILINE,
)
_ONE_OFF = re.compile(
    r"\$\(|`|<<|\n|\[REDACTED|[{}]|\$\w|(?:^|\s)~|\s--?(?:help|version|h|V)(?:\s|$)|^[(!]"
    r"|^(?:for|while|if|until|case|do|then|else|done|fi)\b"
)
_SYSTEM = re.compile(r"(?<!\S)(?:/usr(?:/local)?|/opt/homebrew)?/s?bin/(?=\w)")
_OUTSIDE = re.compile(r"(?:^|[\s='\":])(?:/(?!dev/null)|[A-Za-z]:[\\/]|\.\./)")


@dataclass(frozen=True, slots=True)
class Pointer:
    """Where something was seen: the exchange of a session, the turn that opened it, and when."""

    session: str
    exchange: int
    uid: str
    at: float | None


@dataclass(frozen=True, slots=True)
class Sighting:
    """One run of a command worth remembering. ``command`` is as it is run from the project's root.

    ``scripts``: files of the project that it runs, relative to the root. ``note``: a line of what it printed.
    """

    command: str
    purpose: Purpose
    supports: bool
    kind: EvidenceKind
    scripts: tuple[str, ...]
    note: str
    seen: Pointer


@dataclass(frozen=True, slots=True)
class Episode:
    """One attempt: what was wanted, what was tried in order, and how it ended. ``text`` says it in a paragraph."""

    goal: str
    attempts: tuple[str, ...]
    outcome: Ending
    files: tuple[str, ...]
    text: str
    seen: Pointer


# --- commands ---------------------------------------------------------------------------------------------


def commands(exchange: Exchange, *, session: str, cwd: str | None, root: str | None = None) -> tuple[Sighting, ...]:
    """Every run of a command worth remembering, in order. ``cwd`` is where the agent worked, ``root`` the project."""
    seen = _pointer(exchange, session)
    home = root or cwd or ""
    found: list[Sighting] = []
    for action in exchange.actions:
        if action.kind == "command" and not action.refused:
            found += _sightings(action, seen, cwd or home, home)
    return tuple(found)


def _sightings(action: Action, seen: Pointer, cwd: str, root: str) -> Iterator[Sighting]:
    chain = parts(action.command)
    verdicts = _verdicts(chain, action)
    folder: str | None = _inside(cwd, root)
    for part, worked in zip(chain, verdicts, strict=True):
        stage = part.stages[0]
        run = words(stage)
        if run[:1] in (["cd"], ["pushd"]):
            folder = _moved(folder, run, root)
        elif worked is not None and folder is not None:
            sighting = _sighting(stage, part, folder, worked, action, seen, root)
            if sighting is not None:
                yield sighting


def _sighting(
    stage: str, part: Part, folder: str, worked: bool, action: Action, seen: Pointer, root: str
) -> Sighting | None:
    what = purpose(stage)
    command = _SYSTEM.sub("", normal(stage, root))
    if what not in WORTHWHILE or part.heredoc or _ONE_OFF.search(command) or _OUTSIDE.search(command):
        return None
    if len(command) > MAX_COMMAND or not all(map(_is_filter, part.stages[1:])):
        return None
    script = script_of(bare(words(command)))
    path = _joined(folder, script) if script else None
    return Sighting(
        f"cd {folder} && {command}" if folder else command,
        what,
        worked,
        _kind(what, worked, action),
        (path,) if path else (),
        _note(action.output, worked),
        seen,
    )


def _kind(what: Purpose, worked: bool, action: Action) -> EvidenceKind:
    if worked or what not in CHECKS:
        return "verified outcome"
    broken = action.exit_code in (126, 127) or _CANNOT_RUN.search(action.output)
    return "verified outcome" if broken else "diagnostic episode"


def _verdicts(chain: Sequence[Part], action: Action) -> list[bool | None]:
    """Whether each part worked, as far as the outcome of the whole line tells.

    The exit code is that of the last pipeline, and of all those that ``&&`` ties to it. A filter behind a pipe hides
    it; there a success counts only where something was printed and none of it speaks of an error.
    """
    if action.ok is None and action.exit_code is None:
        return [None] * len(chain)
    tied = next((at for at in range(len(chain) - 1, -1, -1) if chain[at].joint != "&&"), 0)
    certain = not chain or chain[tied].joint in ("", ";")
    quiet = bool(action.output) and not sounds_failed(action.output)
    if action.failed:
        suspects = [at for at, part in enumerate(chain) if purpose(part.stages[0]) in WORTHWHILE]
        only = suspects[0] if len(suspects) == 1 and certain and suspects[0] >= tied else None
        return [False if at == only else None for at in range(len(chain))]
    return [
        True if certain and at >= tied and (len(part.stages) == 1 or quiet) else None for at, part in enumerate(chain)
    ]


def _is_filter(stage: str) -> bool:
    return purpose(stage) == "look" or stage.split(None, 1)[0] in ("tee", "cat")


def _note(output: str, worked: bool) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    chosen = lines[-1:] if worked else [line for line in lines if sounds_failed(line)][:1] or lines[-1:]
    return chosen[0] if chosen else ""


# --- folders ----------------------------------------------------------------------------------------------


def _inside(path: str, root: str) -> str | None:
    """``path`` relative to ``root``, "" for the root itself, None for what lies outside."""
    path, root = path.replace("\\", "/").rstrip("/"), root.replace("\\", "/").rstrip("/")
    if path == root:
        return ""
    return path[len(root) + 1 :] if root and path.startswith(root + "/") else None


def _moved(folder: str | None, run: Sequence[str], root: str) -> str | None:
    """The folder after ``cd``; None where it is outside of the project, or not known."""
    target = next((word for word in run[1:] if not word.startswith("-")), "")
    if not target or target.startswith(("~", "$")):
        return None
    if target.startswith("/") or target[1:2] == ":":
        return _inside(target, root)
    return None if folder is None else _joined(folder, target)


def _joined(folder: str, path: str) -> str | None:
    """A path within a folder, with ``.`` and ``..`` resolved; None where it leaves the project."""
    whole: list[str] = []
    for name in (*folder.split("/"), *path.split("/")):
        if name == ".." and not whole:
            return None
        if name == "..":
            whole.pop()
        elif name not in ("", "."):
            whole.append(name)
    return None if path.startswith("/") else "/".join(whole)


# --- episodes ---------------------------------------------------------------------------------------------


def episode(exchange: Exchange, *, session: str, cwd: str | None) -> Episode | None:
    """The exchange as an attempt; None where nothing was attempted, or nothing was asked for.

    =========  =====================================================================================
    outcome    when (the first that applies)
    =========  =====================================================================================
    abandoned  the person stopped the agent, and the exchange ended there
    reached    after the last edit something was committed, or the last check or run succeeded
    failed     the last check or run, or the last edit, failed
    unknown    nothing after the last edit shows whether it works
    =========  =====================================================================================
    """
    tried = [act for act in exchange.actions if not act.refused and _is_attempt(act)]
    if not tried or not exchange.asked:
        return None
    goal = headline(exchange.asked, GOAL_CHARS)
    attempts = tuple(_short(list(_attempts(tried, cwd))))
    outcome: Ending = "abandoned" if exchange.interrupted else _ending(tried)
    files = tuple(dict.fromkeys(relative(path, cwd) for act in tried if act.kind == "edit" for path in act.files))
    said = exchange.said[-1] if exchange.said and not exchange.continues else ""
    lines = [f"Goal: {goal}", f"Tried: {'; '.join(attempts)}.", f"Outcome: {outcome}."]
    lines += [f"Concluded: {headline(said, CONCLUSION_CHARS)}"] if said else []
    return Episode(goal, attempts, outcome, files, "\n".join(lines), _pointer(exchange, session))


def _is_attempt(action: Action) -> bool:
    if action.kind == "command":
        return bool(purposes(action.command) - {"look"})
    return action.kind == "edit"


def _ending(tried: Sequence[Action]) -> Ending:
    for action in reversed(tried):
        if action.kind == "edit":
            return "failed" if action.failed else "unknown"
        if "commit" in purposes(action.command) or not WORTHWHILE.isdisjoint(purposes(action.command)):
            if action.failed:
                return "failed"
            if action.ok is not None or action.exit_code == 0:
                return "reached"
    return "unknown"


def _attempts(tried: Sequence[Action], cwd: str | None) -> Iterator[str]:
    edited: dict[str, None] = {}
    for action in tried:
        if action.kind == "edit" and not action.failed:
            edited.update(dict.fromkeys(relative(path, cwd) for path in action.files))
            continue
        if edited:
            yield f"edited {', '.join(edited)}"
            edited = {}
        what = headline(normal(action.command, cwd or ""), 100) or f"{action.tool} {', '.join(action.files)}"
        note = f": {_note(action.output, worked=False)}" if action.failed and action.output else ""
        yield f"`{what}` {'failed' if action.failed else 'ok' if action.ok else 'ran'}{note}"
    if edited:
        yield f"edited {', '.join(edited)}"


def _short(attempts: Sequence[str]) -> list[str]:
    """At most ``ATTEMPTS``, the first and the last; what is left out between them is counted."""
    once = [each for at, each in enumerate(attempts) if at == 0 or each != attempts[at - 1]]
    if len(once) <= ATTEMPTS:
        return once
    half = ATTEMPTS // 2
    return [*once[:half], f"{len(once) - 2 * half} more steps", *once[-half:]]


def _pointer(exchange: Exchange, session: str) -> Pointer:
    return Pointer(session, exchange.number, exchange.uid, exchange.until or exchange.at)
