"""Cross-encoders that run on this machine through fastembed: a folder, or a model by name.

Running is native code, so it happens on a thread that ``reranking`` owns. Knows nothing about time bounds or retries,
nor about what a logit is used for.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastembed.common.model_description import ModelSource
from fastembed.rerank.cross_encoder import TextCrossEncoder

from grounded_mcp.errors import ModelError
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
from grounded_mcp.models.reranking import NONE, RerankerOptions

GRAPHS = ("model.onnx", "onnx/model.onnx")
"""Where a folder may keep its graph: beside the tokenizer, or as model repositories have it."""

_INSTEAD = f'recall.rerank.model = "{NONE}"'
_PAIR = ("How do I restart the build server?", "The build machine is rebooted with `make reset`.")


@dataclass(frozen=True, slots=True)
class OnnxReranker:
    """A loaded model. Every pair is scored alone, for the reasons that ``onnx.OnnxEmbedder`` embeds every text alone.

    The tokenizer cuts a pair that is longer than the model reads, taking from the longer of the two.
    """

    fingerprint: str
    _engine: Any
    _threads: int
    """Pairs scored side by side, each by one thread."""

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """One raw logit per text, in order; NaN where the model says so."""
        if self._threads == 1 or len(texts) == 1:
            return [_logit(self._engine, query, text) for text in texts]
        with ThreadPoolExecutor(self._threads, "grounded-pair") as pool:
            return list(pool.map(lambda text: _logit(self._engine, query, text), texts))


def load(options: RerankerOptions) -> OnnxReranker:
    """The model of ``options``, tried out.

    Nothing touches the network unless ``options.allow_download``. Raises: ModelError, "missing" for a model that is not
    on this machine, "failed" for one that is damaged, does not load, or is no reranker.
    """
    quieten()
    if names_folder(options.model):
        name, engine = _from_folder(Path(options.model).expanduser())
    else:
        name, engine = open_named(
            TextCrossEncoder,
            options.model,
            _try_out,
            cache=Path(options.cache_dir),
            allow_download=options.allow_download,
            instead=_INSTEAD,
        )
    return OnnxReranker(name, engine, options.threads or min(2, os.cpu_count() or 1))


def _from_folder(folder: Path) -> tuple[str, Any]:
    remedy = f"Point recall.rerank.model at a folder that holds {', '.join((GRAPHS[0], *TOKENIZER_FILES))}."
    graph = next((graph for graph in GRAPHS if (folder / graph).is_file()), GRAPHS[0])
    require(folder, (graph, *TOKENIZER_FILES), remedy)
    name = f"grounded-mcp:{folder / graph}"
    with registering:
        if not any(each["model"] == name for each in TextCrossEncoder.list_supported_models()):
            TextCrossEncoder.add_custom_model(name, sources=ModelSource(hf="unused/unused"), model_file=graph)
    return folder.name, open_folder(TextCrossEncoder, name, folder, _try_out)


def _try_out(engine: Any) -> None:
    """Raises: ModelError "failed" for a model that says anything but one finite number about a pair."""
    numbers = engine.model.model.get_outputs()[0].shape[-1]
    if isinstance(numbers, int) and numbers != 1:
        raise _no_reranker(f"it answers {numbers} numbers to a pair of texts")
    if not math.isfinite(_logit(engine, *_PAIR)):
        raise _no_reranker("it answers a number that is not finite")


def _no_reranker(why: str) -> ModelError:
    return ModelError("failed", f"The configured model is no reranker: {why}.", f"Name another one, or set {_INSTEAD}.")


def _logit(engine: Any, query: str, text: str) -> float:
    # The tokenizer refuses lone surrogates.
    query, text = (each.encode("utf-8", "replace").decode("utf-8") for each in (query, text))
    with native:
        return float(next(iter(engine.rerank(query, [text], batch_size=1))))
