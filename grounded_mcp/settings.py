"""Every stage's Options, collected from flat values. Knows nothing about where the values come from.

What stages state as defaults of their own is what config.toml says, field by field; a test holds them together.
Apart from ``config``, because importing all stages takes longer than a server may take to answer ``initialize``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from grounded_mcp.brief import BriefOptions
from grounded_mcp.config import Places, Values
from grounded_mcp.faces.options import ServerOptions
from grounded_mcp.ingest.chunks import ChunkOptions
from grounded_mcp.ingest.compact import CompactOptions
from grounded_mcp.ingest.documents import DocumentOptions
from grounded_mcp.ingest.facts import FactOptions
from grounded_mcp.ingest.redact import RedactOptions
from grounded_mcp.ingest.sessions import SessionOptions
from grounded_mcp.knowledge.confidence import ConfidenceOptions
from grounded_mcp.knowledge.learnings import LearningOptions
from grounded_mcp.knowledge.project_memory import ProjectMemoryOptions
from grounded_mcp.listeners.telemetry import TelemetryOptions
from grounded_mcp.models.catalog import EmbeddingOptions
from grounded_mcp.models.reranking import RerankerOptions
from grounded_mcp.pack.levels import TrustOptions
from grounded_mcp.pack.making import PackOptions
from grounded_mcp.pack.settled import SettledOptions
from grounded_mcp.recall.adapt import AdaptOptions
from grounded_mcp.recall.ask import AskOptions
from grounded_mcp.recall.blend import BlendOptions
from grounded_mcp.recall.fusion import FusionOptions
from grounded_mcp.recall.gather import LaneOptions
from grounded_mcp.recall.graph import GraphOptions
from grounded_mcp.recall.lanes import GatherOptions
from grounded_mcp.recall.pipeline import RecallOptions
from grounded_mcp.recall.pressure import BoostOptions
from grounded_mcp.recall.rerank import RerankOptions
from grounded_mcp.recall.shape import ShapeOptions
from grounded_mcp.recall.temporal import TemporalOptions
from grounded_mcp.render import RenderOptions
from grounded_mcp.stores.options import PostgresOptions, StoreOptions
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
    reranker: RerankerOptions
    analyzer: AnalyzerOptions
    chunks: ChunkOptions
    documents: DocumentOptions
    sessions: SessionOptions
    compact: CompactOptions
    redaction: RedactOptions
    facts: FactOptions
    learnings: LearningOptions
    ask: AskOptions
    project_memory: ProjectMemoryOptions
    pack: PackOptions
    brief: BriefOptions
    confidence: ConfidenceOptions
    recall: RecallOptions
    render: RenderOptions
    telemetry: TelemetryOptions
    server: ServerOptions


def settings(values: Values) -> Settings:
    """The stages' Options from flat values, which ``config`` has checked."""
    cache_dir = values["embedding.cache_dir"] or str(values.places.home / "models")
    shared = {name: values[f"embedding.{name}"] for name in ("allow_download", "retry_after_s", "threads")}
    chunks = values.pick(ChunkOptions, "chunks")
    shares = {f"{kind}_share": values[f"recall.lane_share.{kind}"] for kind in ("fact", "session", "doc")}
    return Settings(
        places=values.places,
        project_dir=values.project_dir,
        project_key=values["project.key"],
        project_folders=values.table("project.folders"),
        store=values.pick(StoreOptions, "store", postgres=values.pick(PostgresOptions, "store.postgres")),
        embedding=values.pick(EmbeddingOptions, "embedding", cache_dir=cache_dir),
        reranker=values.pick(RerankerOptions, "recall.rerank", cache_dir=cache_dir, **shared),
        analyzer=values.pick(AnalyzerOptions, "recall.lexical", max_query_chars=values["recall.max_query_chars"]),
        chunks=chunks,
        documents=values.pick(DocumentOptions, "sync", chunks=chunks),
        sessions=values.pick(SessionOptions, "sessions", folders=values.table("sessions.folders")),
        compact=values.pick(CompactOptions, "sessions"),
        redaction=values.pick(RedactOptions, "redaction"),
        facts=values.pick(FactOptions, "facts"),
        learnings=values.pick(LearningOptions, "learnings"),
        ask=values.pick(AskOptions, "recall"),
        project_memory=values.pick(ProjectMemoryOptions, "project_memory", fusion=_fusion(values, "project_memory")),
        pack=_pack(values),
        brief=BriefOptions(**{name: values[f"brief.{name}"] for name in BriefOptions._fields}),
        confidence=values.pick(ConfidenceOptions, "confidence"),
        recall=RecallOptions(
            lanes=_lanes(values),
            boosts=values.pick(BoostOptions, "recall.boosts"),
            temporal=values.pick(TemporalOptions, "recall.temporal"),
            blend=values.pick(BlendOptions, "recall.blend"),
            rerank=values.pick(RerankOptions, "recall.rerank"),
            shape=values.pick(ShapeOptions, "recall", **shares),
        ),
        render=values.pick(RenderOptions, "render"),
        telemetry=values.pick(TelemetryOptions, "telemetry"),
        server=values.pick(ServerOptions, "server"),
    )


def _pack(values: Values) -> PackOptions:
    trust, settled = values.pick(TrustOptions, "pack.trust"), values.pick(SettledOptions, "pack.settled")
    return values.pick(PackOptions, "pack", fusion=_fusion(values, "pack"), trust=trust, settled=settled)


def _lanes(values: Values) -> LaneOptions:
    floor = values["recall.vector.floor"]
    return LaneOptions(
        gather=values.pick(GatherOptions, "recall"),
        fusion=_fusion(values, "recall"),
        adapt=values.pick(AdaptOptions, "recall.fusion.adapt"),
        graph=values.pick(GraphOptions, "recall.graph"),
        floor=None if floor == "auto" else floor,
        min_coverage=values["recall.vector.min_coverage"],
        scorer=values["recall.lexical.scorer"],
        short_terms=values["recall.lexical.short_terms"],
    )


def _fusion(values: Values, section: str) -> FusionOptions:
    return values.pick(FusionOptions, f"{section}.fusion", weights=values.table("recall.fusion.weights"))
