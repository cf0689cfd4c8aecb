"""Embedders that run on this machine through fastembed: the bundled model, a folder, or a model by name.

Loading takes about a second and running is native code, so both happen on threads that ``guard`` owns. Knows nothing
about time bounds, retries or stores.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType

from grounded_mcp.errors import ModelError
from grounded_mcp.models.base import Purpose
from grounded_mcp.models.catalog import BUNDLED, EmbeddingOptions
from grounded_mcp.models.onnx_engine import (
    TOKENIZER_FILES,
    names_folder,
    native,
    open_folder,
    open_named,
    quieten,
    registering,
    require,
)
from grounded_mcp.models.recipes import Recipe, recipe
from grounded_mcp.models.windows import REST_WEIGHT, windows
from grounded_mcp.values import Vector

log = logging.getLogger(__name__)

PREPARATION = "prep1"
"""Names how text becomes model input (context lines in front, windows). A change here is a new vector space."""

BUNDLED_DIGEST = "63faa612a7e6c65c7f37c2ad69aec8d02f945a998be55e5c291b6b21d4f9213d"
"""SHA-256 over the bundled ``model.onnx``, ``tokenizer.json`` and ``tokenizer_config.json``, in that order."""

FOLDER_FILES = ("model.onnx", *TOKENIZER_FILES)

BUNDLED_FOLDER = Path(__file__).with_name(BUNDLED)

QUERY_CHARS = 2_000
"""Characters of a query that are embedded: two or three windows, so that any query stays far below its time bound."""

_RELATED = ("How do I restart the build server?", "The build machine is rebooted with `make reset`.")
_UNRELATED = "Our cat sleeps on the warm window sill."
_REINSTALL = 'Reinstall grounded-memory-mcp, or set embedding.provider = "none".'


@dataclass(frozen=True, slots=True)
class OnnxEmbedder:
    """A loaded model. Every text is embedded alone: dynamic int8 quantisation looks at the whole batch, so a text's
    vector would depend on its neighbours (cosine .992, down to .983), and batches are slower besides."""

    fingerprint: str
    dimensions: int
    recipe: Recipe
    _engine: Any
    _room: int | None
    """Word pieces that fit into one window; None for a model without a limit."""
    _threads: int
    """Passages embedded side by side, each by one thread. A query has one thread too: more threads spin on the other
    cores after each call, which made the vector search that follows 1.7 times slower."""

    @property
    def floor(self) -> float:
        return self.recipe.floor

    def embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        """One unit vector per text, in order. Raises: ModelError "invalid" for a vector that is not finite or zero."""
        if purpose == "query":
            return [self._one(text[:QUERY_CHARS], self.recipe.query) for text in texts]
        if self._threads == 1 or len(texts) == 1:
            return [self._one(text, self.recipe.passage) for text in texts]
        with ThreadPoolExecutor(self._threads, "grounded-passage") as pool:
            return list(pool.map(lambda text: self._one(text, self.recipe.passage), texts))

    def _one(self, text: str, prefix: str) -> Vector:
        readable = text.encode("utf-8", "replace").decode("utf-8")  # the tokenizer refuses lone surrogates
        first, *rest = [_raw(self._engine, prefix + piece) for piece in self._pieces(readable)]
        mixed = first + REST_WEIGHT * np.mean(rest, axis=0) if rest else first
        norm = float(np.linalg.norm(mixed))
        if not math.isfinite(norm) or norm == 0:
            raise ModelError("invalid", "The model gave a vector that is zero or not finite.", "Try other words.")
        return Vector((mixed / norm).astype("<f4").tobytes())

    def _pieces(self, text: str) -> list[str]:
        if self._room is None:
            return [text]
        with native:
            first = self._engine.model.tokenizer.encode(text)
        spans = [span for part in (first, *first.overflowing) for span in part.offsets if span[1] > span[0]]
        return windows(text, spans, self._room)


def load(options: EmbeddingOptions) -> OnnxEmbedder:
    """The model of ``options``, checked and tried out.

    Nothing touches the network unless ``options.allow_download``. Raises: ModelError, "missing" for a model that is not
    on this machine, "failed" for one that is damaged or does not load.
    """
    quieten()
    if options.model == BUNDLED:
        return _bundled(options)
    if names_folder(options.model):
        return _from_folder(Path(options.model).expanduser(), options, Recipe())
    return _by_name(options)


def _bundled(options: EmbeddingOptions) -> OnnxEmbedder:
    require(BUNDLED_FOLDER, FOLDER_FILES, _REINSTALL)
    if _digest(BUNDLED_FOLDER, FOLDER_FILES) != BUNDLED_DIGEST:
        raise ModelError("failed", f"The files of the bundled model are damaged ({BUNDLED_FOLDER}).", _REINSTALL)
    embedder = _from_folder(BUNDLED_FOLDER, options, recipe(BUNDLED))
    related, unrelated = _likeness(embedder)
    if related < unrelated + 0.4:  # 0.70 and -0.01 where this was measured
        raise ModelError("failed", "The bundled model computes wrong vectors on this machine.", _REINSTALL)
    return embedder


def _from_folder(folder: Path, options: EmbeddingOptions, known: Recipe) -> OnnxEmbedder:
    require(folder, FOLDER_FILES, "Point embedding.model at a folder that holds " + ", ".join(FOLDER_FILES) + ".")
    name = f"grounded-mcp:{folder}"
    pooling, dimensions = _shape(folder)
    with registering:
        if not any(each["model"] == name for each in TextEmbedding.list_supported_models()):
            TextEmbedding.add_custom_model(
                name,
                pooling=pooling,
                normalization=True,
                sources=ModelSource(hf="unused/unused"),
                dim=dimensions,
                model_file=FOLDER_FILES[0],
            )
    engine = open_folder(TextEmbedding, name, folder, _try_out)
    return _wrap(engine, folder.name, _digest(folder, FOLDER_FILES, known), known, options)


def _by_name(options: EmbeddingOptions) -> OnnxEmbedder:
    match, engine = open_named(
        TextEmbedding,
        options.model,
        _try_out,
        cache=Path(options.cache_dir),
        allow_download=options.allow_download,
        instead=f'embedding.model = "{BUNDLED}"',
    )
    description = engine.model.model_description
    files = (description.model_file, *description.additional_files, *FOLDER_FILES[1:])
    known = recipe(match)
    return _wrap(engine, match, _digest(engine.model._model_dir, files, known), known, options)


def _try_out(engine: Any) -> object:
    return _raw(engine, _RELATED[0])


def _wrap(engine: Any, name: str, digest: str, known: Recipe, options: EmbeddingOptions) -> OnnxEmbedder:
    dimensions = len(_raw(engine, _RELATED[0]))
    fingerprint = f"{name}@{digest[:12]}/{dimensions}/{PREPARATION}"
    threads = options.threads or min(2, os.cpu_count() or 1)
    embedder = OnnxEmbedder(fingerprint, dimensions, known, engine, _room(engine), threads)
    _likeness(embedder)  # raises for vectors that are not finite
    return embedder


def _raw(engine: Any, text: str) -> Any:
    with native:
        return next(iter(engine.embed([text], batch_size=1)))


def _room(engine: Any) -> int | None:
    tokenizer = getattr(engine.model, "tokenizer", None)
    if tokenizer is None or tokenizer.truncation is None:
        return None
    return int(tokenizer.truncation["max_length"] - tokenizer.num_special_tokens_to_add(False))


def _likeness(embedder: OnnxEmbedder) -> tuple[float, float]:
    """Cosine of a question to its answer, and to a sentence about something else."""
    texts = [*_RELATED, _UNRELATED]
    one, two, three = (np.frombuffer(v, "<f4") for v in embedder.embed(texts, "passage"))
    return float(one @ two), float(one @ three)


def _digest(folder: Path, files: Sequence[str], known: Recipe | None = None) -> str:
    """SHA-256 over everything that decides a passage's vector: the files and the prefix."""
    total = hashlib.sha256()
    for name in files:
        with suppress(FileNotFoundError), (folder / name).open("rb") as file:
            while block := file.read(1 << 20):
                total.update(block)
    total.update(known.passage.encode() if known else b"")
    return total.hexdigest()


def _shape(folder: Path) -> tuple[PoolingType, int]:
    """How a folder's model pools (sentence-transformers' own note, else the mean), and its width."""
    pooling, config = _json(folder / "1_Pooling" / "config.json"), _json(folder / "config.json")
    kind = PoolingType.CLS if pooling.get("pooling_mode_cls_token") else PoolingType.MEAN
    return kind, int(config.get("hidden_size", 1))


def _json(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}
