"""What every model that runs through fastembed shares: how it is found offline, opened, and left at the process's end.

Knows nothing about what a model computes; ``onnx`` and ``onnx_reranking`` do.
"""

from __future__ import annotations

import atexit
import difflib
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import onnxruntime

from grounded_mcp.errors import ModelError

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
_EXIT_WAIT_S = 2.0

registering = threading.Lock()
"""Held around fastembed's registry of custom models, which has no lock of its own."""


class _Native:
    """Lets the interpreter end only between two native calls.

    A daemon thread that comes back from ONNX Runtime into a finalizing interpreter makes the process abort
    (SIGABRT), so the end waits for the call in flight, some ten milliseconds, and admits no further one.
    """

    def __init__(self) -> None:
        self._free = threading.Condition()
        self._running = 0
        self._ended = False

    def __enter__(self) -> None:
        with self._free:
            if self._ended:
                raise ModelError("failed", "The process is ending.", "Nothing to do.")
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._free:
            self._running -= 1
            self._free.notify_all()

    def end(self) -> None:
        until = time.monotonic() + _EXIT_WAIT_S
        with self._free:
            self._ended = True
            while self._running and (left := until - time.monotonic()) > 0:
                self._free.wait(left)


native = _Native()
"""Held around every native call."""
atexit.register(native.end)


def quieten() -> None:
    """No telemetry and no log lines but ours."""
    onnxruntime.disable_telemetry_events()  # where it is not the environment that decides (see this package's init)
    with suppress(ImportError):
        from loguru import logger

        logger.disable("fastembed")  # its lines would repeat what our errors say


def names_folder(model: str) -> bool:
    """Whether a setting names a folder, and not one of fastembed's models ("BAAI/bge-small-en-v1.5")."""
    return model.startswith(("./", "../", ".\\", "..\\", "~")) or Path(model).is_absolute()


def require(folder: Path, files: Sequence[str], remedy: str) -> None:
    """Raises: ModelError "missing" naming the files that the folder does not hold."""
    absent = [name for name in files if not (folder / name).is_file()]
    if absent:
        raise ModelError("missing", f"{folder} does not hold {', '.join(absent)}.", remedy)


def open_named(
    kind: Any, wanted: str, try_out: Callable[[Any], object], *, cache: Path, allow_download: bool, instead: str
) -> tuple[str, Any]:
    """A model that fastembed knows by name, in any case, with the name as fastembed spells it.

    ``kind`` is fastembed's class; ``instead`` the setting that needs no download. Nothing touches the network unless
    ``allow_download``. Raises: ModelError, "missing" for an unknown name and for what is not whole in ``cache``.
    """
    names = [each["model"] for each in kind.list_supported_models()]
    match = next((name for name in names if name.lower() == wanted.lower()), None)
    if match is None:
        near = difflib.get_close_matches(wanted, names, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]}?" if near else f"Set {instead}."
        raise ModelError("missing", f"fastembed knows no model named {wanted} of this kind.", hint)
    absent = ModelError(
        "missing",
        f"The model {match} is not in {cache}, or not whole, and downloads are off.",
        f"Set embedding.allow_download = true, or {instead}.",
    )
    if not allow_download and not cache.is_dir():
        raise absent
    try:
        return match, open_model(kind, match, try_out, cache_dir=str(cache), local_files_only=not allow_download)
    except ModelError as error:
        if not allow_download and isinstance(error.__cause__, ValueError):
            raise absent from error
        raise


def open_folder(kind: Any, name: str, folder: Path, try_out: Callable[[Any], object]) -> Any:
    """The model of a folder, registered with fastembed as ``name``. Raises: ModelError "failed"."""
    # fastembed creates its cache folder even when it is not needed: name one that exists.
    where = {"cache_dir": str(folder), "specific_model_path": str(folder)}
    return open_model(kind, name, try_out, local_files_only=True, **where)


def open_model(kind: Any, name: str, try_out: Callable[[Any], object], **where: Any) -> Any:
    """A fastembed model, untyped because its tokenizer and folder are not in fastembed's annotations.

    ``try_out`` is called with it: a graph of another shape shows only there. Raises: ModelError "failed" for whatever
    goes wrong.
    """
    try:
        with native:
            engine = kind(name, threads=1, **where)
        try_out(engine)
        return engine
    except ModelError:
        raise
    # onnxruntime and tokenizers raise bare subclasses of Exception, or Exception itself, for a damaged file.
    except Exception as error:
        label = name.removeprefix("grounded-mcp:")
        raise ModelError(
            "failed",
            f"The model {label} does not load ({type(error).__name__}).",
            "Fetch the model again, or name another one.",
        ) from error
