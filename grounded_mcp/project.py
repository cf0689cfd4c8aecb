"""Which project is this? One answer for every face: an argument, the configuration, git, or the real path.

Also the canonical spelling of a scope. Reads the file system and asks git; creates nothing and knows nothing
about stores or about what a project's memory holds.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from grounded_mcp import git
from grounded_mcp.errors import InputError
from grounded_mcp.foreground import ELSEWHERE
from grounded_mcp.values import GLOBAL_SCOPE, Project

MAX_NAME = 1000
"""Longest project argument, in characters: a deep path fits, a pasted document does not."""

_DRIVE = re.compile(r"(?:(?P<win>[a-z]):|[\\/]mnt[\\/](?P<wsl>[a-z])|[\\/](?P<msys>[a-z]))(?=[\\/]|$)", re.I)
_URL = re.compile(r"(?:[a-z][a-z0-9+.-]*::)?(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<rest>.*)", re.I | re.S)
_SCP = re.compile(r"(?:[^/]*@)?(?P<host>\[[^]]+]|[^/:@]{2,}):(?P<path>.+)", re.S)
_AUTHORITY = re.compile(r"(?:[^/]*@)?(?P<host>\[[^]]+]|[^/:@]+)(?::\d*)?(?:/(?P<path>.*))?", re.S)
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")

# Hosts that name one repository differently over ssh and https, each as its vendor documents it.
_ALIASES = (
    (re.compile(r"^ssh\.dev\.azure\.com/v3/"), "dev.azure.com/"),
    (re.compile(r"^(dev\.azure\.com/.+)/_git/"), r"\1/"),
    (re.compile(r"^ssh\.github\.com/"), "github.com/"),
    (re.compile(r"^altssh\.(gitlab\.com|bitbucket\.org)/"), r"\1/"),
)


def identify(
    path: Path,
    *,
    explicit: str | None = None,
    configured: str | None = None,
    env: git.Environment | None = None,
) -> Project:
    """The project a folder or file belongs to, and why.

    ``explicit`` and ``configured`` are a folder, a remote URL, a key or a plain name; they rename the project
    that ``path`` belongs to, unless they are a folder: then that folder is asked instead. Without them the
    key is ``host/owner/repo`` from the remote, ``git:<common directory>`` or ``path:<real path>``. A path that
    is gone is asked through its nearest folder that is left. In a linked worktree ``root`` is the main checkout
    and ``worktree`` the folder of the worktree. ``env`` goes to git.

    Raises: InputError when a name or path cannot be one.
    """
    for value, reason in ((explicit, "explicit argument"), (configured, "configuration")):
        if value is not None and value.strip():
            return _named(_checked(value.strip()), path, reason, env)
    return _discovered(path, env)


def identify_configured(
    path: Path,
    folders: Mapping[str, str],
    configured: str,
    env: git.Environment | None = None,
    explicit: str | None = None,
) -> Project:
    """``identify``, with what is configured: the key of the innermost of ``folders`` that ``path`` is in, else
    ``configured``, which may be empty. Raises: InputError."""
    here = canonical_path(str(path.expanduser().resolve()))
    by_folder = {canonical_path(folder): key for folder, key in folders.items()}
    inside = [folder for folder in by_folder if here == folder or here.startswith(folder.rstrip("/") + "/")]
    named = by_folder[max(inside, key=len)] if inside else configured
    return identify(path, explicit=explicit, configured=named or None, env=env)


def elsewhere(value: str) -> Project:
    """A project by what a caller calls it, without a look at any folder of this machine. Raises: InputError."""
    key = canonical_key(_checked(value))
    if not key:
        raise InputError("project", f"{value!r} names nothing.", "Give a key or a name.")
    return Project(key, _last_segment(key), "explicit argument", ELSEWHERE)


def remote_key(url: str, root: Path) -> str | None:
    """``host/owner/repo`` of a remote URL in any spelling, without user, password, port, case or ``.git``.

    A remote that is a folder becomes ``file:<path>``, relative ones taken from ``root``. None when the URL names
    no repository.
    """
    found = _URL.fullmatch(url.strip())
    if found and found["scheme"].lower() != "file":
        parts = _AUTHORITY.fullmatch(re.split(r"[?#]", found["rest"], maxsplit=1)[0])
    elif found is None and not _DRIVE.match(url):
        parts = _SCP.fullmatch(url.strip())
    else:
        parts = None
    if parts is not None:
        return _host_key(parts["host"], parts["path"] or "")
    local = re.sub(r"^/(?=[a-z]:)", "", found["rest"], flags=re.I) if found else url.strip()
    where = Path(local) if _DRIVE.match(local) else root / local
    return f"file:{_path_key(where).removesuffix('.git')}" if local else None


def canonical_path(text: str) -> str:
    """One spelling of a Windows path: ``C:\\Repo``, ``c:/repo``, ``/mnt/c/repo`` and ``/c/repo`` give ``c:/repo``.

    ``\\\\Server\\Share`` gives ``//server/share``; other paths come back unchanged. Windows file names ignore case.
    """
    if text.startswith("\\\\"):
        return text.replace("\\", "/").casefold()
    drive = _DRIVE.match(text)
    if drive is None:
        return text
    letter = next(group for group in drive.groups() if group)
    rest = re.split(r"[\\/]+", text[drive.end() :])
    return "/".join([f"{letter}:", *filter(None, rest)]).casefold()


def known_project(value: str, known: Sequence[Project]) -> Project | None:
    """The known project with this key or root, or else the only one with this name (in any case).

    Raises: InputError when several projects share the name.
    """
    key = canonical_key(value)
    for project in known:
        if key == project.key or value == project.root:
            return project
    same = {project.key: project for project in known if project.name.casefold() == key.casefold()}
    if len(same) > 1:
        raise InputError(
            "project",
            f"{len(same)} projects are called {value!r}.",
            f"Name one by its key: {', '.join(sorted(same))}.",
        )
    return next(iter(same.values()), None)


def canonical_key(value: str) -> str:
    """The key that a person's spelling of a project means: URLs, ``host/owner/repo`` and absolute paths."""
    text = value.strip().removeprefix("project:").strip()
    if text.startswith(("git:", "path:", "file:")):
        return one_line(text)
    if text.startswith("/") or _DRIVE.match(text):
        return f"path:{one_line(canonical_path(text))}"
    if _URL.fullmatch(text) or re.match(r"[^/@:]+@[^/@:]+:", text):
        return remote_key(text, Path("/")) or one_line(text)
    host, slash, path = text.partition("/")
    return _host_key(host, path) or text if slash and "." in host.strip(".") else one_line(text)


def one_line(text: str) -> str:
    r"""One line that every store and terminal can hold: control characters and undecodable bytes are escaped.

    Escaped (``\n``, ``\udcff``) rather than dropped, so that two odd folder names stay two projects.
    """
    return _UNPRINTABLE.sub(_escape, text)


def canonical_scope(text: str, project: Project, known: Sequence[Project], hostname: str) -> str:
    """A scope as it is stored: ``global``, ``project:<key>``, ``machine:<host>`` or ``agent:<name>``.

    Bare ``project`` is the current project and bare ``machine`` is ``hostname``. A project may be named by its
    key or by a name that only one known project has; an unknown one is kept as written.

    Raises: InputError for any other form, and for a name that several projects share.
    """
    form, colon, rest = text.strip().partition(":")
    form, rest = form.strip().casefold(), one_line(rest.strip())
    bare = {"global": GLOBAL_SCOPE, "project": project.scope, "machine": f"machine:{hostname.casefold()}"}
    if not colon and form in bare:
        return bare[form]
    if rest and form in ("machine", "agent"):
        return f"{form}:{rest.casefold()}"
    if rest and form == "project":
        try:
            found = known_project(rest, (project, *known))
        except InputError as error:
            raise InputError("scope", error.message.removeprefix("project: "), error.remedy) from None
        return found.scope if found else f"project:{canonical_key(rest)}"
    raise InputError(
        "scope",
        f"{text!r} is not a scope.",
        "Use global, project (or project:<name>), machine (or machine:<host>), or agent:<name>.",
    )


def _named(value: str, path: Path, reason: str, env: git.Environment | None) -> Project:
    folder = _as_folder(value, path)
    if folder is not None:
        found = _discovered(folder, env)
        return replace(found, reason=f"{reason}, {found.reason}")
    key = canonical_key(value)
    if not key:
        raise InputError("project", f"{value!r} names nothing.", "Give a folder, a key or a name.")
    return replace(_discovered(path, env), key=key, name=_last_segment(key), reason=reason)


def _discovered(path: Path, env: git.Environment | None) -> Project:
    real = _real(path)
    folder = real.parent if stat.S_ISREG(_mode(real)) else real
    here = _nearest_folder(folder)
    found = git.locate(here, env) if here else git.Answer(None)
    if isinstance(found, git.Repository):
        return _in_repository(found, env)
    reason = "real path"
    if found.refused:
        reason += ", as git refuses a repository of another user (see git's safe.directory)"
    elif here and found.code is None:
        reason += f", as {found.error}"
    key = _path_key(folder)
    return Project(f"path:{key}", _last_segment(key), reason, _storable(str(folder)))


def _in_repository(found: git.Repository, env: git.Environment | None) -> Project:
    url = git.origin(found.root, env)
    key = remote_key(url, found.root) if url else None
    reason = "git remote origin" if key else "git common directory"
    key = key or f"git:{_path_key(found.common)}"
    branch = one_line(found.branch) if found.branch else None
    worktree = _storable(str(found.root)) if found.worktree else None
    return Project(key, _last_segment(key), reason, _storable(str(found.main)), branch, worktree)


def _as_folder(value: str, base: Path) -> Path | None:
    """The folder a name stands for, if it is written like a path. A bare word is always a name."""
    if value.startswith(("/", "\\", "~")) or _DRIVE.match(value):
        return Path(value)
    if value.split("/")[0] in (".", ".."):
        return base / value
    inside = base / value
    return inside if "/" in value and "://" not in value and _is_folder(inside) else None


def _checked(value: str) -> str:
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        raise InputError("project", "it is not valid text.", "Give a folder, a key or a name.") from None
    if "\0" in value or len(value) > MAX_NAME:
        raise InputError(
            "project",
            "it is too long or contains a NUL character.",
            f"Give a folder, a key or a name of at most {MAX_NAME} characters.",
        )
    return value


def _real(path: Path) -> Path:
    """The absolute path without links; a Windows spelling becomes the local folder it stands for, if any."""
    text = _checked(str(path))
    drive = _DRIVE.match(text)
    if drive is None or _is_folder(path):
        return Path(os.path.realpath(path.expanduser()))
    letter = next(group for group in drive.groups() if group)
    rest = text[drive.end() :].replace("\\", "/")
    spellings = [f"{letter}:{rest or '/'}"] if os.name == "nt" else []
    spellings += [f"/mnt/{letter.lower()}{rest}", f"/{letter.lower()}{rest}"]
    local = next((Path(spelling) for spelling in spellings if _is_folder(Path(spelling))), None)
    return Path(os.path.realpath(local)) if local else Path(f"{letter}:{rest}")


def _path_key(path: Path) -> str:
    """A path as part of a key. Case is folded only where the file system ignores it.

    ``/c/repo`` is a Windows spelling unless this machine has a folder ``/c``.
    """
    text = str(path)
    drive = _DRIVE.match(text)
    if drive and not (drive["msys"] and _is_folder(Path(drive[0]))):
        return one_line(canonical_path(text))
    real = os.path.realpath(text)
    return one_line(real.casefold() if _ignores_case(Path(real)) else real)


def _ignores_case(path: Path) -> bool:
    """Whether another spelling of the last segment leads to the same folder (macOS, Windows)."""
    other = path.with_name(path.name.swapcase()) if path.name else path
    if other == path:
        return False
    try:
        return os.path.samestat(path.lstat(), other.lstat())
    except OSError:
        return False


def _nearest_folder(path: Path) -> Path | None:
    if not path.is_absolute():
        return None
    return next((folder for folder in (path, *path.parents) if _is_folder(folder)), None)


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(_mode(path))


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except OSError:  # gone, or a name longer than the file system allows
        return 0


def _host_key(host: str, path: str) -> str | None:
    segments = [segment for segment in path.casefold().split("/") if segment]
    if not segments:
        return None
    key = "/".join([host.casefold().rstrip("."), *segments]).removesuffix(".git")
    for pattern, replacement in _ALIASES:
        key = pattern.sub(replacement, key)
    return one_line(key)


def _last_segment(key: str) -> str:
    """``repo`` for ``github.com/owner/repo``, ``git:/home/me/repo/.git`` and ``path:c:/repo``."""
    segments = [part for part in re.split(r"[/:]", key.removesuffix("/.git").removesuffix(".git")) if part]
    return segments[-1] if segments else key


def _storable(path: str) -> str:
    """A path that every store can hold; it still opens unless its name is not valid text."""
    return _SURROGATE.sub(_escape, path)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
