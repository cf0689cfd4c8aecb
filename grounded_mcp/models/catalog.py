"""Which embedders there are: provider names -> factories that are imported when they are used.

Holds the options of all of them ([embedding] in config.toml). Knows nothing about threads, time bounds or retries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from grounded_mcp.errors import ModelError
from grounded_mcp.models.base import Embedder

BUNDLED: Final = "all-MiniLM-L6-v2-int8"
"""The model inside this package: 384 dimensions, no download."""


@dataclass(frozen=True, slots=True)
class EmbeddingOptions:
    """[embedding]. ``model``: ``BUNDLED``, a name that fastembed knows, or the path of a folder with ``model.onnx`` and
    its tokenizer (absolute, or starting with ``./``, ``../`` or ``~``).

    Seconds everywhere; ``threads=0`` takes at most two of the cores; ``cache_dir`` holds the models known by name.
    """

    provider: str = "fastembed"
    model: str = BUNDLED
    cache_dir: str = ""
    allow_download: bool = False
    query_timeout_s: float = 1.5
    retry_after_s: float = 300.0
    threads: int = 0
    batch_size: int = 32


def _fastembed(options: EmbeddingOptions) -> Embedder:
    try:
        from grounded_mcp.models import onnx
    except ImportError as error:
        raise not_installed(error) from error
    return onnx.load(options)


def not_installed(error: ImportError) -> ModelError:
    """What stands for a model whose library cannot be imported."""
    return ModelError(
        "missing", f"fastembed cannot be imported: {error}.", 'Install it: pip install "fastembed>=0.9,<1".'
    )


def _hashing(options: EmbeddingOptions) -> Embedder:
    from grounded_mcp.models.hashing import HashingEmbedder

    return HashingEmbedder()


PROVIDERS: Mapping[str, Callable[[EmbeddingOptions], Embedder]] = {"fastembed": _fastembed, "hashing": _hashing}


def load(options: EmbeddingOptions) -> Embedder:
    """The configured embedder, loaded and tried out. Takes a second or more: not for a caller that waits.

    Raises: ModelError; for the provider "none" always.
    """
    if options.provider == "none":
        raise ModelError("missing", "Embeddings are turned off.", 'Set embedding.provider = "fastembed" to use them.')
    return PROVIDERS[options.provider](options)
