"""npm packages for these tests: exact versions, installed once into a cache outside this repository, and reused.

The only network that these tests use is npm's registry, here. Node.js itself comes from npm where it is too old.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "grounded-mcp-clients")
NODE = (22, 19)
"""The oldest Node.js that the Inspector runs on; npm installs older packages, without a word, on an older one."""

TOOLS = (
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/client@2.4.0",
)
AGENTS = (
    "@anthropic-ai/claude-code@2.1.332",
    "@anthropic-ai/mcpb@2.1.2",
    "@openai/codex@0.171.0",
    "@google/gemini-cli@0.61.0",
    "opencode-ai@1.18.33",
)

PATIENCE = {"npm_config_fetch_retries": "1", "npm_config_fetch_retry_mintimeout": "500"}
"""Without a network npm would go on trying for minutes."""


class Unavailable(Exception):
    """These packages cannot be had here; the message says why."""


@dataclass(frozen=True)
class Packages:
    """An installed set. ``path``: what the PATH has to begin with."""

    folder: Path
    path: str

    def program(self, name: str) -> str:
        return str(self.folder / "node_modules" / ".bin" / name)

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        return {**base, "PATH": f"{self.path}{os.pathsep}{base.get('PATH', os.defpath)}"}

    def run(
        self, name: str, *args: str, env: Mapping[str, str], cwd: Path, seconds: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """One of the programs, with nothing on its stdin."""
        return subprocess.run(
            [self.program(name), *args],
            env=self.environment(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            check=False,
        )


@cache
def packages(*specs: str) -> Packages | Unavailable:
    """The packages, from the cache or from npm; what stands in the way is found once."""
    if sys.platform == "win32":
        return Unavailable("the clients are run by shell scripts")
    if shutil.which("npm") is None:
        return Unavailable("npm is not installed")
    try:
        node = _node()
        return Packages(_installed(specs, node), node)
    except Unavailable as reason:
        return reason


def _node() -> str:
    """A folder with a Node.js that is new enough, or an empty path where the system's is."""
    try:
        told = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        told = ""
    version = re.match(r"v(\d+)\.(\d+)", told)
    if version and (int(version[1]), int(version[2])) >= NODE:
        return str(Path(shutil.which("node") or "").parent)
    return str(_installed(("node@22",), "") / "node_modules" / ".bin")


def _installed(specs: tuple[str, ...], node: str) -> Path:
    """A folder that holds the packages; made beside its place and moved there, so that it is whole or not there."""
    place = CACHE / hashlib.sha256(" ".join(specs).encode()).hexdigest()[:16]
    if place.is_dir():
        return place
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        made = Path(scratch, "made")
        made.mkdir()
        (made / "package.json").write_text('{"private": true}\n', encoding="utf-8")
        env = {
            **os.environ,
            **PATIENCE,
            "PATH": f"{node}{os.pathsep}{os.environ['PATH']}" if node else os.environ["PATH"],
        }
        command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *specs]
        try:
            done = subprocess.run(command, cwd=made, env=env, capture_output=True, text=True, timeout=900, check=False)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"npm did not install {specs[0]} within 15 minutes") from None
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            raise Unavailable(f"npm could not install {specs[0]}: {lines[0] if lines else done.returncode}")
        try:
            made.rename(place)
        except OSError:
            if not place.is_dir():  # else another run was faster
                raise
    return place
