"""Where the memory is kept, and whether anybody configured anything: what a hook needs before it needs ``config``.

It reads the environment as ``config`` does, by the same names, in a twentieth of the time: where nothing is set, the
defaults of the options are those of config.toml, and nothing has to be parsed. Knows nothing about settings.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

APP = "grounded-mcp"
ENV_PREFIX = "GROUNDED_"


class Home(NamedTuple):
    """The data directory and the store, as a path or URL."""

    folder: str
    store: str
    env: Mapping[str, str]
    marks: tuple[str, ...]
    """What settings depend on besides config.toml as it is shipped: empty where nobody set anything."""

    @property
    def plain(self) -> bool:
        return not self.marks


def find(folder: str | None = None, env: Mapping[str, str] | None = None) -> Home:
    """``folder`` stands for ``GROUNDED_HOME``: clients withhold variables from the programs they run."""
    env = dict(os.environ if env is None else env)
    if folder:
        env["GROUNDED_HOME"] = folder
    home = os.path.expanduser(env.get("GROUNDED_HOME") or _usual())  # noqa: PTH111 - pathlib costs a third of a start
    named = env.get("GROUNDED_CONFIG")
    settings = os.path.expanduser(named or os.path.join(home, "config.toml"))  # noqa: PTH111, PTH118
    set_here = (
        f"{name}={value}" for name, value in sorted(env.items()) if name.startswith(ENV_PREFIX) and "__" in name
    )
    store = env.get("GROUNDED_STORE") or os.path.join(home, "memory.db")  # noqa: PTH118
    return Home(home, os.path.expanduser(store), env, (*_changed(settings), *set_here))  # noqa: PTH111


def _changed(settings: str) -> tuple[str, ...]:
    try:
        return (f"{settings} {os.stat(settings).st_mtime_ns}",)  # noqa: PTH116
    except OSError:
        return ()


def _usual() -> str:
    import platformdirs  # not needed where the directory is named, as `connect` names it

    return platformdirs.user_data_dir(APP, appauthor=False)
