"""Which files of a project are documents, judged by name alone, and what kind of document each is. Pure.

A file that is refused here is never opened. Knows nothing about file systems, git or contents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

from grounded_mcp.ingest.chunks import ChunkOptions, Form

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

Role = Literal["guidance", "live", "tracker"]
"""What a document is for: prose that explains, files that run or configure, or the state of the work."""

Reason = Literal[
    "ignored",
    "secret name",
    "vendored",
    "code",
    "data",
    "binary",
    "too large",
    "minified",
    "link",
    "outside the project",
    "nested repository",
    "hidden folder",
    "not a regular file",
    "unreadable",
    "undecodable",
    "redaction failed",
    "forgotten",
    "over the file limit",
]
"""Why a file is not a document. The first five follow from its name and the options, so it was never wanted."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


UNWANTED: frozenset[Reason] = frozenset(
    {"ignored", "secret name", "vendored", "code", "data", "nested repository", "hidden folder"}
)
"""Reasons that a person or a rule decided: what such a file left in the store is deleted."""


@dataclass(frozen=True, slots=True)
class DocumentOptions:
    """[sync]. Name lists are patterns in the syntax of .gitignore, matched in any case unless said otherwise."""

    max_bytes: int = 1_048_576
    """Of one file."""
    max_data_bytes: int = 65_536
    """Of a file in ``data_suffixes_over_limit``: small JSON and YAML configure, large ones are data."""
    max_files: int = 20_000
    """Files looked at in one sync; a home folder or a disk is not a project."""
    code: bool = True
    """Whether files that are not prose are documents too."""
    ignore: tuple[str, ...] = ()
    """Left out, like the lines of a ``.groundedignore`` (matched as written)."""
    secret_names: tuple[str, ...] = _words(
        ".env* *.env *.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk *.asc *.gpg *.pgp id_* !id_*.* !id_*/"
        " id_rsa* id_dsa* id_ecdsa* id_ed25519* .netrc _netrc .npmrc .pypirc .pgpass .my.cnf .htpasswd .git-credentials"
        " .dockercfg .vault-token .ssh/ .gnupg/ .aws/ .kube/ credentials.json client_secret*.json"
        " service-account*.json *.tfstate* *.tfvars secret.* secrets.* !secret*.md !secret*.rst !secret*.py"
        " !secret*.go !secret*.rs !secret*.ts !secret*.js !secret*.java"
    )
    """Never opened."""
    vendored: tuple[str, ...] = _words(
        "node_modules/ bower_components/ jspm_packages/ vendor/ third_party/ third-party/ 3rdparty/ site-packages/"
        " dist-packages/ .venv/ venv/ __pycache__/ .tox/ .nox/ .eggs/ *.egg-info/ .mypy_cache/ .pytest_cache/"
        " .ruff_cache/ .gradle/ .terraform/ .next/ .nuxt/ .svelte-kit/ .yarn/ .pnpm-store/ Pods/ Carthage/"
        " DerivedData/ dist/ htmlcov/ *.min.js *.min.mjs *.min.css *.bundle.js *.map *.lock *.lockb go.sum"
        " .DS_Store package-lock.json npm-shrinkwrap.json pnpm-lock.yaml"
    )
    """Other people's files, and what tools made."""
    built: tuple[str, ...] = ("build/", "target/", "out/", "obj/")
    """Like ``vendored``, except for what git tracks: some projects keep sources there."""
    binary_suffixes: tuple[str, ...] = _words(
        "png jpg jpeg gif bmp ico webp avif tif tiff psd pdf doc docx xls xlsx ppt pptx odt ods odp zip gz tgz bz2 xz"
        " zst 7z rar tar jar war whl egg so dll dylib exe bin dat o a lib obj class pyc pyo wasm woff woff2 ttf otf"
        " eot mp3 mp4 m4a wav ogg flac avi mov mkv webm db sqlite sqlite3 parquet arrow feather npy npz pkl pickle"
        " pt pth onnx safetensors gguf h5 hdf5 tflite model iso img dmg deb rpm apk msi swp"
    )
    """Never opened. Others are recognised by their content."""
    data_suffixes: tuple[str, ...] = _words(
        "csv tsv jsonl ndjson log svg ipynb geojson snap har po pot diff patch srt vtt"
    )
    """Text, but neither prose nor program."""
    data_suffixes_over_limit: tuple[str, ...] = ("json", "yaml", "yml", "xml", "html", "htm")
    guidance: tuple[str, ...] = _words(
        "*.md *.mdx *.markdown *.rst *.txt *.adoc *.asciidoc *.org README* LICENSE* COPYING* NOTICE* AUTHORS*"
        " CHANGELOG* CHANGES* CONTRIBUTING* !requirements*.txt !constraints*.txt !CMakeLists.txt !robots.txt"
        " !*.py !*.js !*.ts !*.go !*.rs !*.java !*.rb !*.sh !*.html"
    )
    tracker: tuple[str, ...] = _words(
        "TODO TODO.* TODOS.* TODO-*.md TODO_*.md ROADMAP ROADMAP.* ROADMAP[-_]*.md PROJECT_STATE* BACKLOG.* STATUS.md"
        " *.todo [12][0-9][0-9][0-9]-[0-1][0-9]-[0-3][0-9]*.md !*.py !*.js !*.ts !*.tsx !*.go !*.rs !*.java"
        " !*.rb !*.sh !*.html"
    )
    """The state of the work: lists of what is to do, and notes that begin with a date."""
    archive: tuple[str, ...] = _words("archive/ archives/ archived/ _archive/ attic/ deprecated/ superseded/")
    """Prose in these folders is kept as ``archived``. Code is not: such a folder may well be about archives."""
    chunks: ChunkOptions = field(default_factory=ChunkOptions)


_MARKUP_FORMS: Mapping[str, Form] = {
    "md": "markdown",
    "mdx": "markdown",
    "markdown": "markdown",
    "rst": "rst",
    "adoc": "asciidoc",
    "asciidoc": "asciidoc",
}


@dataclass(frozen=True, slots=True)
class Selection:
    """The options, compiled. Paths are relative to the project, with ``/`` between segments."""

    options: DocumentOptions
    secret: GitIgnoreSpec
    vendored: GitIgnoreSpec
    built: GitIgnoreSpec
    ignored: GitIgnoreSpec
    own: GitIgnoreSpec
    """The project's own ``.groundedignore``: it leaves out more, and brings nothing back."""
    guidance: GitIgnoreSpec
    tracker: GitIgnoreSpec
    archive: GitIgnoreSpec

    def refusal(self, path: str, *, tracked: bool) -> Reason | None:
        """Why a file, or a folder when ``path`` ends in a slash, is left out by its name."""
        folded = path.casefold()
        if self.ignored.match_file(path) or self.own.match_file(path):
            return "ignored"
        if self.secret.match_file(folded):
            return "secret name"
        if self.vendored.match_file(folded) or (not tracked and self.built.match_file(folded)):
            return "vendored"
        if path.endswith("/"):
            return None
        suffix = suffix_of(path)
        if suffix in self.options.binary_suffixes:
            return "binary"
        if suffix in self.options.data_suffixes:
            return "data"
        return "code" if not self.options.code and self.role(path) == "live" else None

    def size_limit(self, path: str) -> int:
        """The most bytes a file of this name may have."""
        data = suffix_of(path) in self.options.data_suffixes_over_limit
        return self.options.max_data_bytes if data else self.options.max_bytes

    def role(self, path: str) -> Role:
        folded = path.casefold()
        if self.tracker.match_file(folded):
            return "tracker"
        return "guidance" if self.guidance.match_file(folded) else "live"

    def form(self, path: str) -> Form:
        """How a file of this name is cut into chunks."""
        markup = _MARKUP_FORMS.get(suffix_of(path))
        return markup or ("code" if self.role(path) == "live" else "prose")

    def is_archived(self, path: str) -> bool:
        return self.role(path) != "live" and self.archive.match_file(path.casefold())


def select(options: DocumentOptions, own_lines: Iterable[str] = ()) -> Selection:
    """The selection of a project; ``own_lines`` are those of its ``.groundedignore``."""
    folded = partial(map, str.casefold)
    return Selection(
        options,
        secret=spec(folded(options.secret_names)),
        vendored=spec(folded(options.vendored)),
        built=spec(folded(options.built)),
        ignored=spec(options.ignore),
        own=spec(own_lines),
        guidance=spec(folded(options.guidance)),
        tracker=spec(folded(options.tracker)),
        archive=spec(folded(options.archive)),
    )


def spec(lines: Iterable[str]) -> GitIgnoreSpec:
    """Patterns in the syntax of .gitignore; a line that is none is left out, as git does."""
    from pathspec import GitIgnoreSpec  # 60 ms that only a sync needs

    return GitIgnoreSpec.from_lines([line for line in lines if _is_pattern(line)], backend="simple")


def suffix_of(path: str) -> str:
    """The last suffix in lower case, without its dot; empty for ``Makefile`` and ``.bashrc``."""
    name = path.rpartition("/")[2].casefold()
    return name.rpartition(".")[2] if "." in name.lstrip(".") else ""


def _is_pattern(line: str) -> bool:
    text = line.rstrip()
    return text not in ("", "!", "/", "!/") and not re.search(r"(?<!\\)(?:\\\\)*\\$", text)
