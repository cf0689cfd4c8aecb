"""The fence: imports point down, heavy things stay in their rooms, functions and files stay small."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "grounded_mcp"
FILES = sorted(ROOT.rglob("*.py"))
PACKAGE = "grounded_mcp"

# Lowest first. A module may import from its own layer only within its own room, and from any layer below.
LAYERS: tuple[tuple[str, ...], ...] = (
    # The server's knobs are plain data that config collects; the last four are what a hook imports.
    ("errors", "trust", "faces.options", "folding", "measure", "foreground", "home", "stopping"),
    ("values", "tokens", "when", "inert", "git"),
    ("wordshapes",),
    ("concrete",),
    ("text", "entities", "project", "reading", "accounts", "outcomes", "dossier", "packing", "events", "background"),
    ("stores.base", "models.base"),
    ("stores", "models"),
    ("ingest", "recall", "render", "listeners", "clients"),
    ("knowledge", "upkeep", "transfer"),
    ("pack", "brief"),
    ("memory",),
    ("config",),
    ("settings",),
    ("assemble",),
    ("evaluation",),  # fills stores and asks as a face would, so it stands on everything that one stands on
    ("faces",),
    ("__main__",),
)
PURE = (
    *("trust", "accounts", "outcomes", "dossier", "packing"),
    *("pack.intent", "pack.levels", "pack.decisions", "pack.disagree", "pack.pointing", "pack.settled", "pack.asking"),
    *("errors", "values", "tokens", "text", "inert", "when", "reading", "render", "ingest.chunks", "faces.terminal"),
    *("transfer.lines", "folding", "measure", "foreground", "concrete", "brief"),
    *("stores.rules", "stores.timing", "stores.indexing"),
    *("entities", "wordshapes", "evaluation.metrics", "recall.graph"),
    *("recall.ask", "recall.fusion", "recall.gist", "recall.pressure", "recall.scope", "recall.shape"),
    *("recall.adapt", "recall.blend", "recall.overlap", "recall.periods", "recall.rerank", "recall.temporal"),
    *("ingest.transcripts.calls", "ingest.transcripts.exchanges", "ingest.transcripts.passages"),
    *("ingest.transcripts.quality", "ingest.transcripts.mining", "ingest.transcripts.outputs"),
    *("ingest.transcripts.shell", "ingest.transcripts.strip", "ingest.digests", "ingest.excerpts", "ingest.phrases"),
    *("clients.splicing", "clients.jsonc", "clients.toml", "clients.yaml", "clients.merging"),
    *("ingest.conversation", "knowledge.confidence", "knowledge.conflicts", "knowledge.reuse", "faces.figures"),
)
IMPURE_IMPORTS = {"os", "sys", "io", "pathlib", "time", "logging", "subprocess", "socket", "random", "threading"}
ONLY_IN: dict[str, tuple[str, ...]] = {
    "apsw": ("stores.sqlite",),
    "sqlite_vec": ("stores.sqlite",),
    "fastembed": ("models.onnx",),
    "onnxruntime": ("models.onnx",),
    "psycopg": ("stores.postgres",),
    "psycopg_pool": ("stores.postgres",),
    "numpy": ("models.onnx", "stores.sqlite", "stores.postgres", "stores.cosine", "evaluation.intervals"),
    "mcp": ("faces",),
    "mcp_types": ("faces",),
    "anyio": ("faces",),
    "starlette": ("faces",),
    "uvicorn": ("faces",),
    "pathspec": ("ingest",),
    "re2": ("ingest",),
}
# Function or file -> why it may be longer. This list only shrinks.
LONG_FUNCTIONS: dict[str, str] = {}
LONG_FILES: dict[str, str] = {}


def module(path: Path) -> str:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__")


def imports(path: Path, *, at_import: bool = False) -> Iterator[str]:
    """Every imported module; with ``at_import`` only what the module's own import loads."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body if at_import else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            submodules = [f"{node.module}.{alias.name}" for alias in node.names]
            ours = [name for name in submodules if _is_module(name)]
            yield from ours or [node.module]


def _is_module(name: str) -> bool:
    path = ROOT.parent.joinpath(*name.split("."))
    return name.startswith(PACKAGE) and (path.with_suffix(".py").exists() or (path / "__init__.py").exists())


def within(name: str, room: str) -> bool:
    return name == room or name.startswith((room + ".", room + "_"))


def layer(name: str) -> int:
    best = max(
        ((len(room), at) for at, rooms in enumerate(LAYERS) for room in rooms if within(name, room)), default=None
    )
    assert best is not None, f"{name} is in no layer: add its room to LAYERS"
    return best[1]


@pytest.mark.parametrize("path", FILES, ids=module)
def test_imports_point_down_and_never_sideways(path: Path) -> None:
    here = module(path)
    if here == "":
        return
    for name in imports(path):
        if not name.startswith(PACKAGE + "."):
            continue
        there = name.removeprefix(PACKAGE + ".")
        same_room = here.split(".")[0] == there.split(".")[0]
        assert layer(there) < layer(here) or same_room, f"{here} imports {there}"


def test_no_two_modules_import_each_other_in_a_circle() -> None:
    graph = {
        module(path): {n.removeprefix(PACKAGE + ".") for n in imports(path, at_import=True) if n.startswith(PACKAGE)}
        for path in FILES
    }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail[trail.index(name) :], name))
        if name in done or name not in graph:
            return
        for there in graph[name] - {name}:
            visit(there, (*trail, name))
        done.add(name)

    for name in graph:
        visit(name, ())


@pytest.mark.parametrize("path", [p for p in FILES if any(within(module(p), room) for room in PURE)], ids=module)
def test_pure_rooms_import_no_io_clock_or_logging(path: Path) -> None:
    assert {name.split(".")[0] for name in imports(path)} & IMPURE_IMPORTS == set()


@pytest.mark.parametrize("path", FILES, ids=module)
def test_heavy_libraries_stay_in_their_rooms(path: Path) -> None:
    here = module(path)
    for name in {name.split(".")[0] for name in imports(path)} & ONLY_IN.keys():
        assert any(within(here, room) for room in ONLY_IN[name]), f"{here} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=module)
def test_only_config_reads_the_environment_and_only_the_command_line_prints(path: Path) -> None:
    here = module(path)
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    reads = {node.attr for node in nodes if isinstance(node, ast.Attribute)} & {"environ", "getenv", "environb"}
    assert not reads or here in ("config", "home")
    calls = [node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    assert "print" not in calls or here in ("faces.cli", "faces.quickstart", "faces.verbs")


@pytest.mark.parametrize("path", FILES, ids=module)
def test_functions_stay_within_40_lines_and_files_within_400(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 400 or module(path) in LONG_FILES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lines = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
            assert lines <= 40 or f"{module(path)}.{node.name}" in LONG_FUNCTIONS, f"{node.name} has {lines} lines"


def test_no_room_is_named_for_what_does_not_fit_elsewhere() -> None:
    assert {path.stem for path in FILES} & {"utils", "util", "helpers", "common", "misc"} == set()
