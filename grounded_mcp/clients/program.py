"""This installation, as it is written into clients' settings: how it is started, and by what name. Data."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

NAME = "grounded"
"""What the server is called in every client."""

HOOK_TOOL = "grounded_mcp_hook"
"""The tool by which hooks reach a server that runs; it is not in its list."""


@dataclass(frozen=True, slots=True)
class Program:
    """How this installation is started: an absolute command, and the variables that it needs."""

    command: tuple[str, ...]
    env: Mapping[str, str]
    windows: bool = False
    tool_hooks: bool = False
    """Whether clients that can are to ask the running server at a message, rather than to start this program."""

    def hook(self, event: str, client: str) -> str:
        """The command line of a hook; it names the data directory, as clients may withhold variables."""
        words = (*self.command, "hook", event, "--client", client, "--home", self.env["GROUNDED_HOME"])
        return subprocess.list2cmdline(words) if self.windows else shlex.join(words)
