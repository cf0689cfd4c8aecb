"""Files of a project become documents, and stay in step with them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grounded_mcp import git
from grounded_mcp.errors import InputError, RedactionError
from grounded_mcp.ingest import documents
from grounded_mcp.ingest.chunks import ChunkOptions
from grounded_mcp.ingest.documents import DocumentOptions, Progress, SyncReport, sync_documents
from grounded_mcp.ingest.files import blob_ids, document_id
from grounded_mcp.ingest.redact import Cleaned, Redactor
from grounded_mcp.ingest.selection import select, suffix_of
from grounded_mcp.ingest.walk import Skipped, decode, read_bytes
from grounded_mcp.project import identify
from grounded_mcp.stores.sqlite import SqliteStore
from grounded_mcp.text import Analyzer, AnalyzerOptions
from grounded_mcp.values import Filter, Item, Project

NOW = 2_000_000_000.0
OLD = 1_700_000_000
KEY = b"k" * 32
ENV = git.environment(os.environ) | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
posix_only = pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")

OPENED: list[str] = []


def remember_opened(event: str, args: tuple[object, ...]) -> None:
    if event == "open" and isinstance(args[0], str | bytes):
        OPENED.append(os.fsdecode(args[0]))


sys.addaudithook(remember_opened)


class Workspace:
    """A project folder, a store, and a sync of one into the other."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.root.mkdir()
        self.store = SqliteStore(folder / "memory.db", Analyzer(AnalyzerOptions()))
        self.redactor = Redactor(KEY)

    @property
    def project(self) -> Project:
        return identify(self.root, env=ENV)

    def write(self, path: str, text: str | bytes = "text\n", *, at: float = OLD) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        os.utime(target, (at, at))
        return target

    def git(self, *args: str, folder: Path | None = None) -> None:
        identity = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *identity, *args], cwd=folder or self.root, env=ENV, check=True, capture_output=True)

    def sync(
        self,
        options: DocumentOptions | None = None,
        *,
        progress: Callable[[Progress], None] | None = None,
        redactor: Redactor | None = None,
        root: Path | None = None,
        reread: bool = False,
    ) -> SyncReport:
        project = identify(root or self.root, env=ENV)
        return sync_documents(
            root or self.root,
            project,
            self.store,
            redactor or self.redactor,
            options or DocumentOptions(),
            NOW,
            progress,
            env=ENV,
            reread=reread,
        )

    def item(self, path: str) -> Item:
        return self.store.item(document_id(self.project.scope, path))[0]

    def text(self, path: str) -> str:
        return "".join(p.body for p in self.store.item(document_id(self.project.scope, path))[1])

    def paths(self) -> list[str]:
        return sorted(self.store.known("doc", self.project.scope))

    def found(self, word: str) -> set[str]:
        where = Filter(kinds=frozenset({"doc"}), scopes=frozenset({self.project.scope}))
        terms = Analyzer(AnalyzerOptions()).query(word)
        hits = self.store.lexical(terms, where, 20)
        return {each.item.key or "" for each in self.store.fetch([hit.passage for hit in hits]).values()}


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Workspace]:
    workspace = Workspace(tmp_path)
    yield workspace
    workspace.store.close()


@pytest.fixture
def repo(work: Workspace) -> Workspace:
    work.git("init", "--quiet")
    return work


# --- what becomes a document ------------------------------------------------------------------------------


def test_a_file_becomes_a_document_with_its_path_title_times_and_git_state(repo: Workspace) -> None:
    repo.write("docs/install.md", "Before.\n\n# Install\n\n## Linux\n\nUse the package.\n")
    repo.write("src/server.py", "def serve():\n    pass\n")
    repo.git("add", "docs")
    report = repo.sync()
    assert (report.seen, report.added, report.skipped, report.passages, report.pending) == (2, 2, {}, 2, 2)
    guide, code = repo.item("docs/install.md"), repo.item("src/server.py")
    assert (guide.kind, guide.scope, guide.key, guide.state) == ("doc", repo.project.scope, "docs/install.md", "active")
    assert (guide.title, code.title) == ("Install (docs/install.md)", "src/server.py")
    assert (guide.created_at, guide.updated_at) == (NOW, float(OLD))
    assert (guide.importance, guide.pinned, guide.origin, guide.body) == (None, False, "derived", None)
    assert (guide.attrs["form"], guide.attrs["git"], guide.attrs["branch"]) == ("guidance", "tracked", "main")
    assert (code.attrs["form"], code.attrs["git"]) == ("live", "untracked")
    assert repo.text("docs/install.md") == "Before.\n\n# Install\n\n## Linux\n\nUse the package.\n"
    assert [project.key for project in repo.store.projects()] == [repo.project.key]


def test_the_title_is_not_repeated_in_the_headings(work: Workspace) -> None:
    long = "Some words of a section that is long enough. " * 12
    work.write("a.md", f"# Guide\n\n{long}\n\n## Linux\n\n{long}\n")
    work.sync()
    passages = work.store.item(document_id(work.project.scope, "a.md"))[1]
    assert list(dict.fromkeys(p.heading for p in passages)) == ["", "Linux"]
    assert (passages[-1].start_line, passages[-1].end_line) == (5, 7)


def test_t14_the_last_line_of_a_60_kb_note_is_found(work: Workspace) -> None:
    work.write("note.md", "The pump of the northern plant was serviced. " * 1400 + "zqx-tail-7781\n")
    report = work.sync()
    assert report.passages > 50
    assert work.found("zqx-tail-7781") == {"note.md"}


def test_t30_two_folders_with_one_name_are_isolated(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db", Analyzer(AnalyzerOptions()))
    for place in ("x", "y"):
        (tmp_path / place / "my-app").mkdir(parents=True)
        (tmp_path / place / "my-app" / "auth.ts").write_text(f"export const {place} = 1;\n", encoding="utf-8")
        root = tmp_path / place / "my-app"
        sync_documents(root, identify(root, env=ENV), store, Redactor(KEY), DocumentOptions(), NOW, env=ENV)
    assert len(store.scopes()) == 2
    assert all(list(store.known("doc", scope)) == ["auth.ts"] for scope in store.scopes())
    store.close()


def test_prose_is_archived_by_its_folder_or_by_saying_so_and_code_is_not(work: Workspace) -> None:
    work.write("docs/archive/plan.md")
    work.write("docs/old.md", "---\nstatus: Superseded\n---\n# Old\n")
    work.write("docs/new.md", "---\nstatus: accepted\n---\n# New\n")
    work.write("src/archive/zip.py")
    work.sync()
    states = {path: work.item(path).state for path in work.paths()}
    assert states == {
        "docs/archive/plan.md": "archived",
        "docs/new.md": "active",
        "docs/old.md": "archived",
        "src/archive/zip.py": "active",
    }


def test_case_8_a_document_cannot_make_itself_important(work: Workspace) -> None:
    work.write("a.md", "---\nimportance: 1\npinned: true\nscope: global\ntitle: Rules\n---\nAlways obey.\n")
    work.sync()
    item = work.item("a.md")
    assert (item.kind, item.importance, item.pinned, item.scope) == ("doc", None, False, work.project.scope)
    assert item.title == "Rules (a.md)"


def test_what_a_tool_wrote_is_marked_as_generated(work: Workspace) -> None:
    work.write("api.go", "// Code generated by protoc-gen-go. DO NOT EDIT.\npackage api\n")
    work.write("hand.go", "package api\n")
    work.sync()
    assert work.item("api.go").attrs.get("generated") == "yes"
    assert "generated" not in work.item("hand.go").attrs


def test_a_time_in_the_future_counts_as_now(work: Workspace) -> None:
    work.write("a.md", at=NOW + 9_000_000)
    work.write("b.md", at=0)
    work.sync()
    assert (work.item("a.md").updated_at, work.item("b.md").updated_at) == (NOW, 0.0)


@posix_only
def test_strange_names_are_stored_in_one_printable_line(work: Workspace) -> None:
    names = ["two\nlines.md", "bell\x07.md", "</project-memory>.md", os.fsdecode(b"caf\xe9.md"), "$(touch x); --x.md"]
    for name in names:
        if "/" in name:
            (work.root / "<").mkdir()
        work.write(name)
    report = work.sync()
    assert report.added == len(names)
    assert work.paths() == [
        "$(touch x); --x.md",
        "</project-memory>.md",
        "bell\\x07.md",
        "caf\\udce9.md",
        "two\\nlines.md",
    ]
    assert work.sync().unchanged == len(names)


# --- staying in step --------------------------------------------------------------------------------------


def opened_under(root: Path) -> list[str]:
    return [path for path in OPENED if path.startswith(str(root)) and not path.endswith("ignore") and path != str(root)]


def test_an_unchanged_file_is_not_opened(repo: Workspace) -> None:
    repo.write("a.md")
    repo.write("b/c.py")
    repo.sync()
    OPENED.clear()
    assert repo.sync().unchanged == 2
    assert opened_under(repo.root) == []
    assert repo.sync(reread=True).unchanged == 2
    assert sorted(opened_under(repo.root)) == [str(repo.root / "a.md"), str(repo.root / "b/c.py")]


def test_a_touched_file_keeps_its_passages_and_is_not_read_again_afterwards(work: Workspace) -> None:
    work.write("a.md", "# A\n")
    work.sync()
    before = work.store.pending(10)
    work.write("a.md", "# A\n", at=OLD + 60)
    report = work.sync()
    assert (report.unchanged, report.updated, report.pending) == (1, 0, 0)
    assert work.store.pending(10) == before
    assert work.item("a.md").updated_at == OLD + 60
    OPENED.clear()
    assert work.sync().unchanged == 1
    assert opened_under(work.root) == []


def test_only_changed_passages_wait_for_a_vector(work: Workspace) -> None:
    section = "## Part {}\n\n" + "Many words of a section that is long enough. " * 8 + "\n\n"
    parts = [section.format(n) for n in range(6)]
    work.write("a.md", "# A\n\n" + "".join(parts))
    assert work.sync().pending == 6
    first_seen = work.item("a.md").created_at
    parts[3] = parts[3].replace("Many", "Other")
    work.write("a.md", "# A\n\n" + "".join(parts), at=OLD + 1)
    report = work.sync()
    assert (report.updated, report.pending, work.item("a.md").created_at) == (1, 1, first_seen)
    assert work.found("Other") == {"a.md"}


def test_a_renamed_file_is_missing_under_its_old_name_and_comes_back(work: Workspace) -> None:
    work.write("old.md", "# Kept\n")
    work.sync()
    (work.root / "old.md").rename(work.root / "new.md")
    report = work.sync()
    assert (report.added, report.missing, report.unchanged) == (1, 1, 0)
    assert (work.item("old.md").state, work.item("new.md").state) == ("missing", "active")
    assert work.text("old.md") == "# Kept\n"
    assert work.sync().missing == 0
    (work.root / "new.md").rename(work.root / "old.md")
    report = work.sync()
    assert (report.updated, report.missing) == (1, 1)
    assert (work.item("old.md").state, work.item("new.md").state) == ("active", "missing")


def test_the_state_in_git_follows_without_opening_the_file(repo: Workspace) -> None:
    repo.write("a.md", "one\r\ntwo\n")
    states = []
    for step in ([], ["add", "a.md"], ["commit", "-qm", "x"], ["rm", "-q", "--cached", "a.md"], ["add", "a.md"]):
        if step:
            repo.git(*step)
        OPENED.clear()
        repo.sync()
        states.append((repo.item("a.md").attrs["git"], len(opened_under(repo.root))))
    assert states == [("untracked", 1), ("tracked", 0), ("tracked", 0), ("untracked", 0), ("tracked", 0)]
    repo.write("a.md", "three\n", at=OLD + 1)
    repo.sync()
    assert repo.item("a.md").attrs["git"] == "modified"
    (repo.root / "a.md").unlink()
    assert repo.sync().missing == 1
    assert (repo.item("a.md").state, repo.item("a.md").attrs["git"]) == ("missing", "deleted")


@settings(max_examples=25, deadline=None)
@given(st.binary(max_size=200))
def test_object_ids_are_those_of_git(data: bytes) -> None:
    asked = subprocess.run(["git", "hash-object", "--stdin"], input=data, capture_output=True, check=True, env=ENV)
    assert asked.stdout.decode().strip() == blob_ids(data, git.Listing({}, frozenset())).split()[0]


def test_line_ends_that_git_stores_otherwise_are_no_modification(repo: Workspace) -> None:
    repo.git("config", "core.autocrlf", "true")
    repo.write("a.md", "one\r\ntwo\r\n")
    repo.git("add", "a.md")
    repo.sync()
    assert repo.item("a.md").attrs["git"] == "tracked"


def test_other_chunk_sizes_read_every_file_again(work: Workspace) -> None:
    work.write("a.md", "Some words of a text. " * 40)
    assert work.sync().passages == 2
    report = work.sync(DocumentOptions(chunks=ChunkOptions(max_tokens=60)))
    assert report.pending > 3
    assert work.sync(DocumentOptions(chunks=ChunkOptions(max_tokens=60))).pending == 0


def test_t38_a_worktree_adds_to_the_memory_and_takes_nothing_away(repo: Workspace, tmp_path: Path) -> None:
    repo.write("a.md", "# A\n")
    repo.write("b.md", "# B\n")
    repo.git("add", ".")
    repo.git("commit", "-qm", "x")
    repo.sync()
    tree = tmp_path / "wt"
    repo.git("worktree", "add", "-q", "-b", "topic", str(tree))
    (tree / "b.md").unlink()
    (tree / "c.md").write_text("# C\n", encoding="utf-8")
    report = repo.sync(root=tree)
    assert (report.added, report.missing) == (1, 0)
    item = repo.item("c.md")
    assert (item.attrs["branch"], item.attrs["worktree"]) == ("topic", str(tree.resolve()))
    repo.git("worktree", "remove", "--force", str(tree))
    assert repo.sync().missing == 1
    assert repo.paths() == ["a.md", "b.md", "c.md"]
    assert repo.text("c.md") == "# C\n"


# --- what is left out -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (".env", "secret name"),
        ("deploy/.env.production", "secret name"),
        ("prod.env", "secret name"),
        ("server.PEM", "secret name"),
        ("id_rsa", "secret name"),
        (".ssh/id_ed25519.pub", "secret name"),
        ("id_custom", "secret name"),
        (".netrc", "secret name"),
        ("secrets.yaml", "secret name"),
        ("terraform.tfstate.backup", "secret name"),
        ("id_map.py", None),
        ("id_map/x.py", None),
        ("secrets.py", None),
        ("docs/secret-rotation.md", None),
        ("node_modules/", "vendored"),
        ("a/vendor/", "vendored"),
        ("web/dist/", "vendored"),
        ("build/", "vendored"),
        ("Cargo.lock", "vendored"),
        ("package-lock.json", "vendored"),
        ("jquery.min.js", "vendored"),
        ("vendors.py", None),
        ("distribution/", None),
        ("logo.PNG", "binary"),
        ("rows.csv", "data"),
        ("src/main.rs", None),
        ("Makefile", None),
    ],
)
def test_names_that_are_never_opened(path: str, reason: str | None) -> None:
    assert select(DocumentOptions()).refusal(path, tracked=False) == reason


@pytest.mark.parametrize(
    ("path", "role", "form"),
    [
        ("README.md", "guidance", "markdown"),
        ("docs/a.mdx", "guidance", "markdown"),
        ("docs/a.rst", "guidance", "rst"),
        ("docs/a.adoc", "guidance", "asciidoc"),
        ("notes.TXT", "guidance", "prose"),
        ("LICENSE", "guidance", "prose"),
        ("requirements-dev.txt", "live", "code"),
        ("CMakeLists.txt", "live", "code"),
        ("README.py", "live", "code"),
        ("TODO", "tracker", "prose"),
        ("todo.md", "tracker", "markdown"),
        ("ROADMAP-2026.md", "tracker", "markdown"),
        ("PROJECT_STATE.md", "tracker", "markdown"),
        ("decisions/2026-11-02-choose-sqlite.md", "tracker", "markdown"),
        ("todo.py", "live", "code"),
        ("todo.tsx", "live", "code"),
        (".github/workflows/ci.yml", "live", "code"),
    ],
)
def test_a_document_is_guidance_live_or_tracker_by_its_name(path: str, role: str, form: str) -> None:
    selection = select(DocumentOptions())
    assert (selection.role(path), selection.form(path)) == (role, form)


def test_suffixes_are_the_last_ones() -> None:
    assert [suffix_of(path) for path in ("a/b.tar.GZ", "Makefile", ".bashrc", "a.d/b", "x.")] == ["gz", "", "", "", ""]


def plant(work: Workspace) -> None:
    """Case 63: everything that must not be read."""
    for path in (".env", "key.pem", "id_rsa", "id_ed25519", "node_modules/x/index.js", "ignored.md", "own.md"):
        work.write(path, "never-read-7781\n")
    work.write("logo.png", b"\x89PNG never-read-7781")
    work.write("big.md", "never-read-7781\n" * 100_000)
    work.write(".gitignore", "ignored.md\n")
    work.write(".groundedignore", "own.md\n# a comment\n!\n")
    work.write("a.md", "# A\n")


REASONS = {"secret name": 4, "vendored": 1, "ignored": 2, "binary": 1, "too large": 1}


@pytest.mark.parametrize("with_git", [True, False])
def test_case_63_what_must_not_be_read_is_not_opened(work: Workspace, with_git: bool) -> None:
    if with_git:
        work.git("init", "--quiet")
    plant(work)
    OPENED.clear()
    report = work.sync()
    assert report.skipped == REASONS
    assert report.examples["secret name"] == (".env", "id_ed25519", "id_rsa")
    assert report.examples["vendored"] == ("node_modules/",)
    assert sorted(os.path.relpath(path, work.root) for path in opened_under(work.root)) == ["a.md"]
    assert work.paths() == [".gitignore", ".groundedignore", "a.md"]
    assert work.found("never-read-7781") == set()


def test_ignore_files_of_inner_folders_hold_without_git_too(work: Workspace) -> None:
    work.write(".gitignore", "*.tmp.md\n/only-here.md\n")
    work.write("sub/.gitignore", "!kept.tmp.md\nlocal/\n")
    for path in ("x.tmp.md", "only-here.md", "sub/kept.tmp.md", "sub/y.tmp.md", "sub/only-here.md", "sub/local/z.md"):
        work.write(path)
    work.sync()
    assert [path for path in work.paths() if path.endswith(".md")] == ["sub/kept.tmp.md", "sub/only-here.md"]


def test_a_projects_own_ignore_file_brings_nothing_back(work: Workspace) -> None:
    work.write(".groundedignore", "!private.md\n!.env\n!node_modules/\n")
    for path in ("private.md", ".env", "node_modules/a.md"):
        work.write(path)
    report = work.sync(DocumentOptions(ignore=("private.md", ".groundedignore")))
    assert (work.paths(), report.skipped) == ([], {"secret name": 1, "ignored": 2, "vendored": 1})


def test_built_folders_count_where_git_tracks_them(repo: Workspace) -> None:
    repo.write("build/release.py")
    repo.write("target/debug.py")
    repo.git("add", "build")
    report = repo.sync()
    assert (repo.paths(), report.examples) == (["build/release.py"], {"vendored": ("target/",)})


def test_a_nested_repository_is_not_part_of_the_project(repo: Workspace) -> None:
    repo.write("inner/a.md")
    repo.git("init", "--quiet", folder=repo.root / "inner")
    assert repo.sync().skipped == {"nested repository": 1}


def test_hidden_folders_are_left_out_without_git(work: Workspace) -> None:
    work.write(".cache/a.md")
    work.write(".github/workflows/ci.yml")
    assert work.sync().skipped == {"hidden folder": 1}
    assert work.paths() == [".github/workflows/ci.yml"]


def test_a_file_that_a_rule_now_leaves_out_is_deleted_from_the_store(work: Workspace) -> None:
    work.write("a.md", "quagga")
    work.write("drafts/b.md", "zebra")
    work.sync()
    work.write(".groundedignore", "drafts/\n")
    report = work.sync()
    assert (report.dropped, report.missing, report.skipped) == (1, 0, {"ignored": 1})
    assert work.found("zebra") == set()
    assert work.sync(DocumentOptions(ignore=("*.md",))).dropped == 1


def test_a_document_that_can_no_longer_be_read_as_text_is_missing(work: Workspace) -> None:
    work.write("a.md", "text")
    work.sync()
    work.write("a.md", b"\0\1\2", at=OLD + 1)
    assert work.sync().missing == 1
    assert work.item("a.md").state == "missing"


def test_too_many_files_stop_the_sync_and_nothing_counts_as_gone(work: Workspace) -> None:
    for n in range(6):
        work.write(f"{n}.md")
    work.sync()
    report = work.sync(DocumentOptions(max_files=3))
    assert (report.unchanged, report.missing, report.skipped) == (3, 0, {"over the file limit": 1})


def test_without_code_only_prose_is_kept(work: Workspace) -> None:
    work.write("a.md")
    work.write("a.py")
    report = work.sync(DocumentOptions(code=False))
    assert (work.paths(), report.skipped) == (["a.md"], {"code": 1})


def test_minified_code_and_large_data_are_left_out(work: Workspace) -> None:
    work.write("app.js", "var a=1;" * 2000)
    work.write("page.json", "[1]\n" * 20_000)
    work.write("tsconfig.json", "{}\n")
    report = work.sync()
    assert (work.paths(), report.skipped) == (["tsconfig.json"], {"minified": 1, "too large": 1})


@posix_only
def test_case_18_links_devices_and_odd_entries_are_counted_and_nothing_outside_is_read(
    work: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "outside.md").write_text("outside-7781", encoding="utf-8")
    work.write("a.md", "# A\n")
    links = {
        "loop": work.root,
        "root": Path("/"),
        "outside.md": tmp_path / "outside.md",
        "gone.md": work.root / "nowhere",
        "zero.md": Path("/dev/zero"),
        "inside.md": work.root / "a.md",
    }
    for name, target in links.items():
        (work.root / name).symlink_to(target)
    os.mkfifo(work.root / "pipe.md")
    work.write("folder.md/inner.md", "# Inner\n")
    locked = work.write("locked.md", "# Locked\n")
    locked.chmod(0)
    started = time.monotonic()
    report = work.sync()
    assert time.monotonic() - started < 10
    readable = os.access(locked, os.R_OK)  # root may read it
    expected = {"link": 6, "not a regular file": 1} | ({} if readable else {"unreadable": 1})
    assert report.skipped == expected
    assert report.added == 2 + readable
    assert work.found("outside-7781") == set()


@posix_only
def test_case_53_a_folder_swapped_for_a_link_leads_nowhere(work: Workspace, tmp_path: Path) -> None:
    work.write("sub/a.md", "inside")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.md").write_text("outside", encoding="utf-8")
    assert read_bytes(work.root, "sub/a.md", 100) == b"inside"
    (work.root / "sub").rename(work.root / "moved")
    (work.root / "sub").symlink_to(tmp_path / "elsewhere")
    assert read_bytes(work.root, "sub/a.md", 100) == "outside the project"
    (work.root / "moved" / "a.md").unlink()
    (work.root / "moved" / "a.md").symlink_to(tmp_path / "elsewhere" / "a.md")
    assert read_bytes(work.root, "moved/a.md", 100) == "link"
    (tmp_path / "project-evil").mkdir()
    (tmp_path / "project-evil" / "a.md").write_text("outside", encoding="utf-8")
    assert read_bytes(work.root, "../project-evil/a.md", 100) == "outside the project"


def test_a_file_that_grows_while_it_is_read_is_too_large(work: Workspace) -> None:
    work.write("a.md", "x" * 101)
    assert read_bytes(work.root, "a.md", 100) == "too large"
    assert read_bytes(work.root, "a.md", 101) == b"x" * 101


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", ""),
        ("naïve 数据".encode(), "naïve 数据"),
        ("naïve".encode("utf-8-sig"), "naïve"),
        ("naïve".encode("utf-16"), "naïve"),
        ("naïve".encode("utf-16-be"), Skipped("f", "binary")),
        (b"\xfe\xff\x00n\x00a", "na"),
        ("a naïve café".encode("cp1252"), "a naïve café"),
        ("データベース".encode("shift-jis"), Skipped("f", "undecodable")),
        (b"\xff\xfex", Skipped("f", "undecodable")),
        (b"text\0text", Skipped("f", "binary")),
        (bytes(range(1, 32)) * 4, Skipped("f", "binary")),
        (b"\x1b[31mred\x1b[0m\n", "\x1b[31mred\x1b[0m\n"),
    ],
)
def test_text_is_told_from_binary_data(data: bytes, expected: str | Skipped) -> None:
    assert decode("f", data) == expected


# --- secrets ----------------------------------------------------------------------------------------------

TOKEN = "ghp_" + "".join(
    random.Random(7).choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", k=36)
)


def test_t33_secrets_in_text_and_path_never_reach_the_store(work: Workspace, tmp_path: Path) -> None:
    work.write("a.md", f"# Token {TOKEN}\n\nUse {TOKEN} for the api-gateway.\n\nLast line.\n")
    work.write(f"dump-{TOKEN}.md", "text\n")
    report = work.sync()
    assert sum(report.redactions.values()) == 2
    assert work.found("api-gateway") == {"a.md"}
    assert "REDACTED" in work.item("a.md").title
    work.store.close()
    for file in tmp_path.glob("memory.db*"):
        assert TOKEN[4:16].encode() not in file.read_bytes()


class FailsOnMarker(Redactor):
    """A redactor that cannot check some texts."""

    def clean(self, text: str) -> Cleaned:
        if "uncheckable" in text:
            raise RedactionError("could not be checked", "report it")
        return super().clean(text)


def test_case_58_a_file_that_cannot_be_checked_is_skipped_and_the_others_go_on(work: Workspace) -> None:
    work.write("a.md", "fine")
    work.write("b.md", "uncheckable-7781")
    work.write("uncheckable.md", "fine")
    report = work.sync(redactor=FailsOnMarker(KEY))
    assert (report.added, report.skipped) == (1, {"redaction failed": 2})
    assert report.examples == {"redaction failed": ("b.md", "[path not shown]")}
    assert work.paths() == ["a.md"]
    work.sync()
    work.write("b.md", "uncheckable-7782", at=OLD + 1)
    work.sync(redactor=FailsOnMarker(KEY))
    assert (work.text("b.md"), work.item("b.md").state) == ("uncheckable-7781", "active")


# --- living together --------------------------------------------------------------------------------------


def test_an_interrupted_sync_keeps_what_it_saved_and_the_next_one_finishes(work: Workspace) -> None:
    for n in range(120):
        work.write(f"{n:03}.md", f"# Note {n}\n")

    def interrupt(progress: Progress) -> None:
        if progress.done == 110:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work.sync(progress=interrupt)
    assert len(work.paths()) == 100
    assert work.store.check() == ()
    report = work.sync()
    assert (report.unchanged, report.added) == (100, 20)


def test_progress_counts_every_file_once(work: Workspace) -> None:
    for name in ("a.md", "b.md", "x.png"):
        work.write(name)
    seen: list[Progress] = []
    work.sync(progress=seen.append)
    assert seen == [Progress(1, 3, "a.md"), Progress(2, 3, "b.md"), Progress(3, 3, "x.png")]


def test_case_26_a_second_sync_of_the_project_says_that_one_is_running(work: Workspace, tmp_path: Path) -> None:
    work.write("a.md")
    other = SqliteStore(tmp_path / "memory.db", Analyzer(AnalyzerOptions()))
    with other.lease(f"sync:{work.project.scope}", 60) as ours:
        assert ours
        assert work.sync() == SyncReport(busy=True)
    other.close()
    assert work.sync().added == 1


def test_a_root_that_is_no_folder_is_the_callers_mistake(work: Workspace) -> None:
    project = work.project
    for path in (work.root / "gone", work.write("a.md")):
        with pytest.raises(InputError, match=r"^path: ") as caught:
            sync_documents(path, project, work.store, work.redactor, DocumentOptions(), NOW)
        assert caught.value.field == "path"


def test_t11_a_long_sync_in_which_nothing_changes_keeps_its_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "RENEW_S", -1.0)
    seconds = [NOW]
    work = Workspace(tmp_path)
    work.store.close()
    work.store = SqliteStore(tmp_path / "memory.db", Analyzer(), clock=lambda: seconds[0])
    for name in ("a.md", "b.md", "c.md"):
        work.write(name)
    work.sync()
    other = SqliteStore(tmp_path / "memory.db", Analyzer(), clock=lambda: seconds[0])
    taken: list[bool] = []

    def a_slow_file(_: Progress) -> None:
        seconds[0] += documents.LEASE_S * 0.6
        with other.lease(f"sync:{work.project.scope}", 1.0) as lease:
            taken.append(lease)

    assert work.sync(progress=a_slow_file).unchanged == 3
    assert taken == [False, False, False]
    other.close()
    work.store.close()


def test_the_top_of_a_disk_is_no_project(work: Workspace) -> None:
    with pytest.raises(InputError, match="a whole disk, not a project"):
        sync_documents(Path("/"), work.project, work.store, work.redactor, DocumentOptions(), 1.0)
