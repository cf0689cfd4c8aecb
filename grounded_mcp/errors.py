"""Every error this package raises on purpose, in one tree; each carries its remedy.

::

    GroundedError
    |-- InputError            the caller's mistake: names the field
    |   `-- NotFound          an id or name that is not in the store
    |-- NotAllowed            what a token of a team's server gives no right to
    |-- ConfigError           a setting that cannot be used
    |-- ClientError           a client's settings file that cannot be changed: it is as it was
    |-- StoreError            the store cannot do what was asked
    |   |-- StoreBusy         another process holds the write lock: nothing was stored
    |   |-- StoreReadOnly     the file or its folder cannot be written
    |   |-- StoreFull         the disk is full: nothing was stored
    |   |-- StoreDamaged      the file is corrupt or its derived indexes are
    |   |-- StoreForeign      the file is empty or belongs to something else
    |   |-- StoreNewer        the file was written by a newer version
    |   |-- StoreMismatch     the index holds vectors of another model
    |   |-- StoreMoved        the file was moved, replaced or deleted while open
    |   `-- StoreUnreachable  the server that keeps the store does not answer
    |-- ModelError            the embedder cannot answer: recall goes on without it
    `-- RedactionError        a text could not be checked for secrets: it was not stored

Knows nothing about who catches them. Faces turn them into a readable answer; anything else that reaches a
face is our bug and is logged once with its traceback.
"""

from __future__ import annotations

from typing import Literal

ModelFault = Literal["loading", "missing", "failed", "slow", "mismatch", "invalid"]


class GroundedError(Exception):
    """The root. ``message`` says what is wrong, ``remedy`` what to do about it (never empty)."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}"


class InputError(GroundedError):
    """A value that the caller gave and can correct. ``field`` is the argument's name on the wire."""

    def __init__(self, field: str, message: str, remedy: str) -> None:
        super().__init__(f"{field}: {message}", remedy)
        self.field = field


class NotFound(InputError):
    """An id, project or topic that the store does not hold."""


class NotAllowed(GroundedError):
    """The caller may see this or knows of it, and may not change it. What it may not see is not found."""


class ConfigError(GroundedError):
    """A setting, file or environment variable that cannot be used."""


class ClientError(GroundedError):
    """A client's settings file, or our record of it, that cannot be read or written. It is left as it was."""


class StoreError(GroundedError):
    """The store cannot do what was asked."""


class StoreBusy(StoreError):
    """Another process held the write lock for longer than we wait. Nothing was stored."""


class StoreStopped(StoreError):
    """Nobody waits for the answer any more: the search was called off."""


class StoreReadOnly(StoreError):
    """The store's file or folder cannot be written."""


class StoreFull(StoreError):
    """No space left. Nothing was stored; reading still works."""


class StoreDamaged(StoreError):
    """The file is corrupt, or an index derived from it disagrees with it."""


class StoreForeign(StoreError):
    """The file is empty or is not one of our stores. It is never replaced silently."""


class StoreNewer(StoreError):
    """The file was written by a newer version of this package. It is left untouched."""


class StoreMismatch(StoreError):
    """The index holds vectors of another model. Vectors of two models never meet in one search."""


class StoreMoved(StoreError):
    """The file was deleted, replaced or moved while it was open. Nothing was acknowledged."""


class StoreUnreachable(StoreError):
    """The server that keeps the store cannot be reached or refuses. It is asked again at the next call."""


class ModelError(GroundedError):
    """The embedder is missing, loading, failing, too slow, or does not fit the index. ``code`` says which."""

    def __init__(self, code: ModelFault, message: str, remedy: str) -> None:
        super().__init__(message, remedy)
        self.code: ModelFault = code


class RedactionError(GroundedError):
    """A text could not be checked for secrets, so it was not stored (fails closed)."""
