"""Every stage's Options, collected from flat values. Knows nothing about where the values come from.

What stages state as defaults of their own is what config.toml says, field by field; a test holds them together.
Apart from ``config``, because importing all stages takes longer than a server may take to answer ``initialize``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from grounded_mcp.config import Places, Values
from grounded_mcp.faces.options import ServerOptions
from grounded_mcp.ingest.chunks import ChunkOptions
from grounded_mcp.ingest.documents import DocumentOptions
from grounded_mcp.ingest.facts import FactOptions
from grounded_mcp.ingest.redact import RedactOptions
from grounded_mcp.models.catalog import EmbeddingOptions
from grounded_mcp.recall.ask import AskOptions
from grounded_mcp.recall.fusion import FusionOptions
from grounded_mcp.recall.lanes import GatherOptions
from grounded_mcp.recall.pipeline import RecallOptions
from grounded_mcp.recall.pressure import BoostOptions
from grounded_mcp.recall.shape import ShapeOptions
from grounded_mcp.render import RenderOptions
from grounded_mcp.stores.options import StoreOptions
from grounded_mcp.text import AnalyzerOptions


@dataclass(frozen=True, slots=True)
class Settings:
    """Every stage's Options, and where things are kept."""

    places: Places
    project_dir: Path
    project_key: str
    project_folders: Mapping[str, str]
    store: StoreOptions
    embedding: EmbeddingOptions
    analyzer: AnalyzerOptions
    chunks: ChunkOptions
    documents: DocumentOptions
    redaction: RedactOptions
    facts: FactOptions
    ask: AskOptions
    recall: RecallOptions
    render: RenderOptions
    server: ServerOptions


def settings(values: Values) -> Settings:
    """The stages' Options from flat values, which ``config`` has checked."""
    cache_dir = values["embedding.cache_dir"] or str(values.places.home / "models")
    floor = values["recall.vector.floor"]
    chunks = values.pick(ChunkOptions, "chunks")
    weights = {f"{lane}_weight": values[f"recall.fusion.weights.{lane}"] for lane in ("lexical", "vector")}
    shares = {f"{kind}_share": values[f"recall.lane_share.{kind}"] for kind in ("fact", "session", "doc")}
    return Settings(
        places=values.places,
        project_dir=values.project_dir,
        project_key=values["project.key"],
        project_folders=values.table("project.folders"),
        store=values.pick(StoreOptions, "store"),
        embedding=values.pick(EmbeddingOptions, "embedding", cache_dir=cache_dir),
        analyzer=values.pick(AnalyzerOptions, "recall.lexical", max_query_chars=values["recall.max_query_chars"]),
        chunks=chunks,
        documents=values.pick(DocumentOptions, "sync", chunks=chunks),
        redaction=values.pick(RedactOptions, "redaction"),
        facts=values.pick(FactOptions, "facts"),
        ask=values.pick(AskOptions, "recall"),
        recall=RecallOptions(
            gather=values.pick(GatherOptions, "recall"),
            fusion=values.pick(FusionOptions, "recall.fusion", **weights),
            boosts=values.pick(BoostOptions, "recall.boosts"),
            shape=values.pick(ShapeOptions, "recall", **shares),
            floor=None if floor == "auto" else floor,
            min_coverage=values["recall.vector.min_coverage"],
        ),
        render=values.pick(RenderOptions, "render"),
        server=values.pick(ServerOptions, "server"),
    )
