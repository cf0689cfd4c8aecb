"""Which project a folder belongs to, and how scopes are spelled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grounded_mcp import git
from grounded_mcp.errors import InputError
from grounded_mcp.project import (
    canonical_key,
    canonical_path,
    canonical_scope,
    identify,
    known_project,
    remote_key,
)
from grounded_mcp.values import Project

ENV = git.environment(os.environ) | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
posix_only = pytest.mark.skipif(os.name == "nt", reason="needs POSIX file names")


def run_git(folder: Path, *args: str) -> None:
    identity = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *args], cwd=folder, env=ENV, check=True, capture_output=True)


def repository(folder: Path, remote: str | None = None) -> Path:
    folder.mkdir(parents=True)
    run_git(folder, "init", "--quiet")
    if remote is not None:
        run_git(folder, "config", "remote.origin.url", remote)
    return folder.resolve()


def committed(folder: Path) -> Path:
    (repository(folder) / "a.md").write_text("# A\n", encoding="utf-8")
    run_git(folder, "add", "a.md")
    run_git(folder, "commit", "--quiet", "-m", "first")
    return folder.resolve()


# --- the key and why it was chosen ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "git@github.com:Owner/Repo.git",
        "github.com:owner/repo",
        "ssh://git@github.com:22/owner/repo",
        "ssh://git@ssh.github.com:443/owner/repo.git",
        "git+ssh://git@github.com/owner/repo.git",
        "git://github.com/owner/repo.git",
        "https://github.com/owner/repo",
        "https://github.com/owner/REPO.git/",
        "https://GitHub.com:443//owner/repo.git",
        "https://me:p@ss@github.com/owner/repo.git",
        "https://github.com/owner/repo?access_token=s3cret#x",
    ],
)
def test_t30_every_spelling_of_a_remote_is_one_project(url: str) -> None:
    assert remote_key(url, Path("/x")) == "github.com/owner/repo"


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("git@host.example:/srv/git/r.git", "host.example/srv/git/r"),
        ("ssh://[::1]:2222/x/y.git", "[::1]/x/y"),
        ("git@ssh.dev.azure.com:v3/org/proj/repo", "dev.azure.com/org/proj/repo"),
        ("https://org@dev.azure.com/org/proj/_git/repo", "dev.azure.com/org/proj/repo"),
        ("git@altssh.gitlab.com:443/group/sub/repo.git", "gitlab.com/443/group/sub/repo"),
        ("https://gitlab.example/group/sub/repo.git", "gitlab.example/group/sub/repo"),
        ("https://github.com", None),
        ("", None),
        ("C:\\Repos\\x.git", "file:c:/repos/x"),
        ("file:///C:/Repos/x.git", "file:c:/repos/x"),
    ],
)
def test_other_remotes_keep_host_and_path(url: str, key: str | None) -> None:
    assert remote_key(url, Path("/x")) == key


def test_a_remote_that_is_a_folder_is_the_same_project_for_every_clone(tmp_path: Path) -> None:
    base = tmp_path.resolve()
    spellings = ("../origin.git", str(base / "origin.git"), (base / "origin.git").as_uri())
    assert {remote_key(url, base / "clone") for url in spellings} == {f"file:{base / 'origin'}"}


def test_the_remote_decides_and_its_password_is_nowhere(tmp_path: Path) -> None:
    root = repository(tmp_path / "Repo", "https://me:hunter2secret@github.com/Owner/Repo.git")
    found = identify(root, env=ENV)
    assert found == Project("github.com/owner/repo", "repo", "git remote origin", str(root), "main", None)
    assert found.scope == "project:github.com/owner/repo"


def test_t30_one_repository_cloned_twice_over_ssh_and_https_is_one_project(tmp_path: Path) -> None:
    one = repository(tmp_path / "Repo", "git@github.com:Owner/Repo.git")
    two = repository(tmp_path / "elsewhere" / "repo", "https://github.com/owner/repo")
    assert identify(one, env=ENV).key == identify(two, env=ENV).key


def test_t30_two_folders_with_one_name_and_no_remote_are_two_projects(tmp_path: Path) -> None:
    plain = [tmp_path / "x" / "my-app", tmp_path / "y" / "my-app"]
    for folder in plain:
        folder.mkdir(parents=True)
    in_git = [repository(tmp_path / "v" / "my-app"), repository(tmp_path / "w" / "my-app")]
    found = [identify(folder, env=ENV) for folder in (*plain, *in_git)]
    assert len({project.key for project in found}) == 4
    assert {project.name for project in found} == {"my-app"}
    assert found[0].reason == "real path"
    assert found[2].reason == "git common directory"


def test_t31_every_way_to_reach_a_repository_gives_one_id(tmp_path: Path) -> None:
    root = committed(tmp_path / "repo")
    (root / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(root, target_is_directory=True)
    ways = (
        root,
        root / "sub" / "deep",
        root / "a.md",
        root / "sub" / ".." / "sub",
        tmp_path / "link",
        tmp_path / "link" / "sub",
        root / ".git",
        root / "sub" / "gone" / "too",
    )
    assert {identify(way, env=ENV).key for way in ways} == {f"git:{root / '.git'}"}
    assert {identify(way, env=ENV).root for way in ways} == {str(root)}
    assert identify(tmp_path, explicit=str(root), env=ENV).key == f"git:{root / '.git'}"
    assert identify(tmp_path, explicit="repo/sub", env=ENV).key == f"git:{root / '.git'}"


def test_t31_a_folder_without_git_is_its_real_path(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "link").symlink_to(home, target_is_directory=True)
    expected = Project(f"path:{home.resolve()}", "home", "real path", str(home.resolve()))
    assert identify(home, env=ENV) == expected
    assert identify(tmp_path / "link", env=ENV) == expected


def test_t31_a_configured_name_wins_over_git_and_an_argument_over_both(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", "git@github.com:owner/repo.git")
    configured = identify(root, configured="Our App", env=ENV)
    assert configured == Project("Our App", "Our App", "configuration", str(root), "main", None)
    assert identify(root, explicit="other", configured="Our App", env=ENV).key == "other"
    assert identify(root, explicit="  ", configured="", env=ENV).reason == "git remote origin"


def test_an_argument_may_be_a_remote_url_or_a_key_in_any_case(tmp_path: Path) -> None:
    for spelling in ("git@github.com:Owner/Repo.git", "GitHub.com/Owner/Repo", "project:github.com/owner/repo/"):
        assert identify(tmp_path, explicit=spelling, env=ENV).key == "github.com/owner/repo"


def test_a_folder_given_as_argument_says_how_it_was_recognised(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", "git@github.com:owner/repo.git")
    found = identify(tmp_path, explicit=str(root), env=ENV)
    assert found.reason == "explicit argument, git remote origin"


@pytest.mark.parametrize("value", ["a\0b", "x" * 1001, "lone \ud800 surrogate"])
def test_a_project_argument_that_cannot_be_one_is_named(value: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^project: ") as caught:
        identify(tmp_path, explicit=value)
    assert caught.value.field == "project"


def test_a_path_with_a_nul_or_an_endless_name_is_no_crash(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        identify(Path("a\0b"))
    long = tmp_path / ("n" * 500)
    assert identify(long, env=ENV).key == f"path:{long.resolve()}"


# --- git ---------------------------------------------------------------------------------------------------


def test_a_repository_without_a_commit_has_a_branch(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    run_git(root, "symbolic-ref", "HEAD", "refs/heads/feature/x")
    assert identify(root, env=ENV).branch == "feature/x"


def test_a_detached_head_has_no_branch(tmp_path: Path) -> None:
    root = committed(tmp_path / "repo")
    run_git(root, "checkout", "--quiet", "--detach")
    assert identify(root, env=ENV).branch is None


@pytest.mark.parametrize("place", ["../wt", "wt-inside"])
def test_t38_a_linked_worktree_shares_the_project_and_is_recorded(tmp_path: Path, place: str) -> None:
    root = committed(tmp_path / "repo")
    tree = (root / place).resolve()
    run_git(root, "worktree", "add", "--quiet", "-b", "topic", str(tree))
    (tree / "sub").mkdir()
    for folder in (tree, tree / "sub"):
        found = identify(folder, env=ENV)
        assert found == Project(f"git:{root / '.git'}", "repo", "git common directory", str(root), "topic", str(tree))
    run_git(root, "worktree", "remove", "--force", str(tree))
    after = identify(root, env=ENV)
    assert (after.key, after.branch, after.worktree) == (f"git:{root / '.git'}", "main", None)


def test_a_submodule_is_its_own_project_and_no_worktree(tmp_path: Path) -> None:
    library, root = committed(tmp_path / "library"), committed(tmp_path / "repo")
    run_git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib")
    found = identify(root / "lib", env=ENV)
    assert (found.key, found.worktree) == (f"file:{library}", None)


def test_a_bare_repository_is_a_project(tmp_path: Path) -> None:
    (tmp_path / "repo.git").mkdir()
    run_git(tmp_path / "repo.git", "init", "--quiet", "--bare")
    bare = (tmp_path / "repo.git").resolve()
    found = identify(bare, env=ENV)
    assert (found.key, found.name, found.root) == (f"git:{bare}", "repo", str(bare))


def test_a_repository_of_another_user_is_a_plain_folder_and_the_reason_says_so(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", "git@github.com:owner/repo.git")
    found = identify(root, env=ENV | {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"})
    assert found.key == f"path:{root}"
    assert "git refuses a repository of another user" in found.reason


def test_without_git_installed_the_real_path_is_used(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    found = identify(root, env={"PATH": str(tmp_path)})
    assert (found.key, found.reason) == (f"path:{root}", "real path, as git is not installed")


@posix_only
def test_a_program_called_git_in_the_project_is_never_started(tmp_path: Path) -> None:
    trap = repository(tmp_path / "repo") / "git"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n", encoding="utf-8")
    trap.chmod(0o755)
    assert identify(trap.parent, env={**ENV, "PATH": f".{os.pathsep}{ENV['PATH']}"}).branch == "main"
    assert not (tmp_path / "started").exists()


def test_variables_of_a_running_git_hook_do_not_redirect_us(tmp_path: Path) -> None:
    root, other = repository(tmp_path / "repo"), repository(tmp_path / "other")
    hooked = git.environment({**ENV, "GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other)})
    assert identify(root, env=hooked).root == str(root)


@posix_only
@pytest.mark.parametrize(
    "name", ["with space", "$(touch x)", "a;touch x", "two\nlines", "--upload-pack=touch x", "-c", "x\n../"]
)
def test_case_56_hostile_folder_names_are_data(tmp_path: Path, name: str) -> None:
    root = committed(tmp_path / name)
    (root / "sub").mkdir()
    found = identify(root / "sub", env=ENV)
    shown = str(root).replace("\n", "\\n")
    assert (found.key, found.root, found.branch) == (f"git:{shown}/.git", str(root), "main")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [name.split("/")[0]]
    assert not (root / "x").exists()


@posix_only
@pytest.mark.parametrize(
    ("remote", "key"),
    [
        ("--upload-pack=touch x", "file:{root}/--upload-pack=touch x"),
        ("ext::sh -c touch% x", "ext/:sh -c touch% x"),
        ("https://h.example/$(touch x)/a b", "h.example/$(touch x)/a b"),
        ("https://h.example/a\nb", "h.example/a\\nb"),
    ],
)
def test_case_56_hostile_remotes_are_data(tmp_path: Path, remote: str, key: str) -> None:
    root = repository(tmp_path / "repo", remote)
    assert identify(root, env=ENV).key == key.format(root=root)
    assert sorted(entry.name for entry in root.iterdir()) == [".git"]


@posix_only
def test_case_56_hooks_monitors_and_filters_of_the_repository_do_not_run(tmp_path: Path) -> None:
    root = committed(tmp_path / "repo")
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\ncat\n", encoding="utf-8")
    trap.chmod(0o755)
    run_git(root, "config", "core.fsmonitor", str(trap))
    run_git(root, "config", "filter.trap.clean", str(trap))
    run_git(root, "config", "core.hooksPath", str(tmp_path))
    (root / ".gitattributes").write_text("* filter=trap\n", encoding="utf-8")
    (root / "a.md").write_text("# B\n", encoding="utf-8")
    identify(root, env=ENV)
    assert git.listing(root, ENV) is not None
    assert not (tmp_path / "started").exists()


@posix_only
def test_an_undecodable_folder_name_gives_a_key_every_store_can_hold(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    folder.mkdir()
    found = identify(folder, env=ENV)
    assert found.name == "caf\\udce9"
    found.key.encode("utf-8")
    found.root.encode("utf-8")


def test_only_the_name_without_its_folder_decides_nothing_on_a_case_blind_disk(tmp_path: Path) -> None:
    (tmp_path / "Repo").mkdir()
    blind = (tmp_path / "rEPO").exists()
    same = identify(tmp_path / "Repo", env=ENV).key == identify(tmp_path / "rEPO", env=ENV).key
    assert same == blind


def test_git_lists_what_it_tracks_and_what_it_ignores(tmp_path: Path) -> None:
    root = committed(tmp_path / "repo")
    (root / ".gitignore").write_text("*.log\nbuilt/\n", encoding="utf-8")
    (root / "built").mkdir()
    for name in ("x.log", "built/a", "built/b", "new.md"):
        (root / name).write_text("x", encoding="utf-8")
    found = git.listing(root, ENV)
    assert found == git.Listing({"a.md": "7f3b95d297183eca8f6cf38ceaa253bee8c2d7cd"}, frozenset({"x.log", "built/"}))


def test_git_has_nothing_to_list_outside_a_repository(tmp_path: Path) -> None:
    assert git.listing(tmp_path, ENV) is None


# --- Windows spellings ------------------------------------------------------------------------------------

SPELLINGS = ["C:\\repo", "C:/repo", "c:/Repo", "/mnt/c/repo", "/c/repo", "c:\\repo\\"]


def test_t36_every_spelling_of_a_windows_folder_is_one_path() -> None:
    assert {canonical_path(text) for text in SPELLINGS} == {"c:/repo"}
    assert {canonical_path(text) for text in ("C:\\", "c:/", "/mnt/c", "/c")} == {"c:"}


def test_a_network_folder_has_one_spelling() -> None:
    assert canonical_path("\\\\Server\\Share\\Repo") == "//server/share/repo"


@pytest.mark.parametrize("text", ["/home/c/repo", "/mnt/cc/repo", "/mnt", "c", "repo/c:", "cc:/x", "//c/x"])
def test_other_paths_are_left_alone(text: str) -> None:
    assert canonical_path(text) == text


@pytest.mark.skipif(Path("/c").exists() or Path("/mnt/c").exists(), reason="this machine has such a folder")
@posix_only
def test_t36_every_spelling_of_a_windows_folder_is_one_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert {identify(Path(text), env=ENV).key for text in SPELLINGS} == {"path:c:/repo"}
    assert {identify(tmp_path, explicit=text, env=ENV).key for text in SPELLINGS} == {"path:c:/repo"}
    assert {identify(Path(text), env=ENV).name for text in SPELLINGS} == {"repo"}
    assert list(tmp_path.iterdir()) == []


# --- names and scopes -------------------------------------------------------------------------------------

HERE = Project("github.com/me/app", "app", "git remote origin", "/home/me/app")
API = Project("github.com/me/api", "api", "git remote origin", "/home/me/api")
OTHER_API = Project("path:/w/api", "api", "real path", "/w/api")
KNOWN = (HERE, API)


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("global", "global"),
        (" Global ", "global"),
        ("project", "project:github.com/me/app"),
        ("project:app", "project:github.com/me/app"),
        ("project:API", "project:github.com/me/api"),
        ("Project: github.com/me/api", "project:github.com/me/api"),
        ("project:git@github.com:me/api.git", "project:github.com/me/api"),
        ("project:https://user@GitHub.com/Me/Api.git", "project:github.com/me/api"),
        ("project:/home/me/api", "project:github.com/me/api"),
        ("project:unknown", "project:unknown"),
        ("project:C:\\Repo", "project:path:c:/repo"),
        ("machine", "machine:box"),
        ("machine:Other", "machine:other"),
        ("agent:Codex", "agent:codex"),
        ("agent:a:b", "agent:a:b"),
    ],
)
def test_a_scope_has_one_canonical_spelling(text: str, scope: str) -> None:
    assert canonical_scope(text, HERE, KNOWN, "Box") == scope


@pytest.mark.parametrize("text", ["", "everything", "agent", "agent:", "project:", "machine: ", "global:x", "user:me"])
def test_anything_else_is_refused_with_the_four_forms(text: str) -> None:
    with pytest.raises(InputError, match=r"global, project .* machine .* agent:<name>") as caught:
        canonical_scope(text, HERE, KNOWN, "box")
    assert caught.value.field == "scope"


def test_a_name_that_two_projects_share_is_refused_with_their_keys() -> None:
    with pytest.raises(InputError, match=r"^scope: 2 projects are called 'api'\. .*me/api, path:/w/api") as caught:
        canonical_scope("project:api", HERE, (*KNOWN, OTHER_API), "box")
    assert caught.value.field == "scope"
    assert canonical_scope("project:path:/w/api", HERE, (*KNOWN, OTHER_API), "box") == OTHER_API.scope


def test_the_current_project_need_not_be_known_yet() -> None:
    assert canonical_scope("project:app", HERE, (), "box") == HERE.scope


def test_a_known_project_is_found_by_key_before_name_and_a_stranger_is_none() -> None:
    odd = Project("api", "something", "configuration", "/x")
    assert known_project("api", (API, OTHER_API, odd)) is odd
    assert known_project("nobody", KNOWN) is None


@settings(max_examples=60)
@given(st.text(max_size=40))
def test_a_canonical_scope_stays_what_it_is(text: str) -> None:
    try:
        once = canonical_scope(f"project:{text}", HERE, KNOWN, "box")
    except InputError:
        return
    once.encode("utf-8")
    assert canonical_scope(once, HERE, KNOWN, "box") == once


@settings(max_examples=60)
@given(st.text(max_size=60))
def test_any_remote_is_a_key_that_keys_to_itself_or_none(url: str) -> None:
    key = remote_key(f"https://u:p@h.example/{url}", Path("/x"))
    assert key is None or (key.startswith("h.example") and canonical_key(key) == key)


def test_importing_the_room_starts_nothing_heavy() -> None:
    probe = "import grounded_mcp.project, sys; print(*({'subprocess', 'pathspec', 'pydantic'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-S", "-c", probe], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == []
