"""The only place that runs git: short, read-only questions about one folder, answered as bytes.

No shell, no prompt, no lock, and nothing that the asked repository's configuration could start: hooks and the
file-system monitor are off, and no command is used that would run content filters. Knows nothing about projects
or documents. A missing git, a timeout and a refusal are answers, not errors.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_S = 10.0
"""Listing a 500,000-file tree takes about 2 s; longer means a dead network mount."""

_SAFE = (
    "--no-optional-locks",
    "--literal-pathspecs",
    "-c",
    "core.fsmonitor=",
    "-c",
    f"core.hooksPath={os.devnull}",
    "-c",
    "core.quotePath=false",
)
_NAME = "git.exe" if sys.platform == "win32" else "git"
_NO_WINDOW = 0x08000000 if sys.platform == "win32" else 0
"""``subprocess.CREATE_NO_WINDOW``: a server without a console must not flash one."""

_REPOSITORY_VARIABLES = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_PARAMETERS",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    }
)
"""What ``git rev-parse --local-env-vars`` prints."""

Environment = Mapping[str, str]
"""Variables for git; ``None`` inherits ours. See ``environment``."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What git said. ``code`` is None when it could not be run or took too long."""

    code: int | None
    out: bytes = b""
    error: str = ""

    @property
    def refused(self) -> bool:
        """The repository belongs to another user, so git will not read its configuration."""
        return "safe.directory" in self.error


@dataclass(frozen=True, slots=True)
class Repository:
    """Where a folder sits in a repository. Paths are absolute and free of links.

    ``root`` is the checkout the folder is in, ``main`` the repository's first one: they differ in a linked
    ``worktree``. ``common`` is shared by all checkouts. ``branch`` is None on a detached HEAD.
    """

    root: Path
    main: Path
    common: Path
    branch: str | None
    worktree: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """Files by path under one folder, with ``/`` between segments.

    ``blobs``: tracked path -> object id of its content in the index. ``ignored``: untracked paths that git leaves
    out; a folder that is left out as a whole is one path ending in a slash.
    """

    blobs: Mapping[str, str]
    ignored: frozenset[str]


_VERSION = re.compile(r"\d[\w.+-]*")


def environment(variables: Environment) -> dict[str, str]:
    """The caller's variables without those that point git at another repository (set while a git hook runs)."""
    kept = {name: value for name, value in variables.items() if name not in _REPOSITORY_VARIABLES}
    return kept | {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


def ask(args: Sequence[str], folder: Path, env: Environment | None = None) -> Answer:
    """Run ``git <args>`` in a folder."""
    import subprocess  # 15 ms that a start without any question to git need not pay

    program = _executable(env)
    if program is None:
        return Answer(None, error="git is not installed")
    try:
        done = subprocess.run(
            [program, *_SAFE, *args],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            creationflags=_NO_WINDOW,
        )
    except subprocess.TimeoutExpired:
        return Answer(None, error=f"git took longer than {TIMEOUT_S:.0f} s")
    except OSError as error:
        return Answer(None, error=f"git could not be started: {error.strerror}")
    return Answer(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))


def locate(folder: Path, env: Environment | None = None) -> Repository | Answer:
    """The repository a folder belongs to, or the answer that says why there is none.

    Works before the first commit, in a subfolder, in a linked worktree, in a bare repository and for paths with
    line breaks in them.
    """
    answer = ask(["rev-parse", "--show-cdup", "--git-common-dir", "--abbrev-ref", "HEAD"], folder, env)
    # One line per question, but the middle one is a path and may itself hold line breaks; the way up to the top
    # is only ever "../" repeated, and is left out where there is no work tree. Without a commit git answers the
    # first two and then fails.
    lines = os.fsdecode(answer.out).removesuffix("\n").split("\n")
    if len(lines) < 2:
        return answer
    has_tree = len(lines) > 2 and not lines[0].replace("../", "")
    common = Path(os.path.realpath(folder / "\n".join(lines[has_tree:-1])))
    beside = common.parent if common.name == ".git" else common
    root = Path(os.path.realpath(folder / lines[0])) if has_tree else beside
    branch = lines[-1] if answer.code == 0 else _unborn(folder, env)
    linked = _is_linked(root)
    return Repository(root, beside if linked else root, common, None if branch == "HEAD" else branch, linked)


def origin(folder: Path, env: Environment | None = None) -> str | None:
    """The URL of the remote called ``origin``, as written in the configuration."""
    answer = ask(["config", "-z", "--get", "remote.origin.url"], folder, env)
    return os.fsdecode(answer.out.rstrip(b"\0")) or None if answer.code == 0 else None


def listing(root: Path, env: Environment | None = None) -> Listing | None:
    """What git knows about the files under a folder; None when it cannot say.

    The blob id of a tracked file tells an edited file from an untouched one without asking git to compare
    contents, which could run filter programs that the repository names.
    """
    index = ask(["ls-files", "-z", "--cached", "--stage"], root, env)
    ignored = ask(["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"], root, env)
    if index.code != 0 or ignored.code != 0:
        return None
    entries = (entry.split(b"\t", 1) for entry in index.out.split(b"\0") if entry)
    blobs = {os.fsdecode(path): head.split(b" ")[1].decode("ascii") for head, path in entries}
    return Listing(blobs, frozenset(os.fsdecode(path) for path in ignored.out.split(b"\0") if path))


def _unborn(folder: Path, env: Environment | None) -> str | None:
    answer = ask(["symbolic-ref", "--short", "--quiet", "HEAD"], folder, env)
    return os.fsdecode(answer.out).strip() or None


def _is_linked(root: Path) -> bool:
    """Whether ``.git`` is the pointer file of a linked worktree (a submodule has a pointer file too)."""
    pointer = root / ".git"
    try:
        target = pointer.read_text(encoding="utf-8", errors="replace") if pointer.is_file() else ""
    except OSError:
        return False
    return Path(target.strip()).parent.name == "worktrees"


def _executable(env: Environment | None) -> str | None:
    """The first git on an absolute PATH entry.

    Left to itself, Windows (and a PATH holding ``.``) would start a program called git from the asked folder.
    """
    for entry in os.get_exec_path(env):
        program = Path(entry) / _NAME
        if program.is_absolute() and os.access(program, os.X_OK) and program.is_file():
            return str(program)
    return None


def released(folder: Path, version: str, env: Environment | None = None) -> float | None:
    """When the tag of a version was made ("2.3" and "v2.3" are one); None where there is no such tag."""
    bare = version.removeprefix("v").removeprefix("V")
    if not _VERSION.fullmatch(bare):
        return None
    names = [f"refs/tags/{prefix}{bare}" for prefix in ("v", "", "release-")]
    answer = ask(["for-each-ref", "--count=1", "--format=%(creatordate:unix)", *names], folder, env)
    found = answer.out.strip()
    return float(found) if answer.code == 0 and found.isdigit() else None
