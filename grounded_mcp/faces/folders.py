"""Which folder a person may have synced by naming a path. Reads what a path is, and nothing in it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from grounded_mcp.errors import InputError

if TYPE_CHECKING:
    from grounded_mcp.settings import Settings


def to_sync(args: argparse.Namespace, settings_of: Callable[[Path], Settings]) -> Path:
    """The folder that ``sync`` was given. ``settings_of``: those in force in a folder.

    Raises: InputError for what is no folder, and for a home folder that nobody said is meant: what is in it is private,
    and belongs to many projects.
    """
    from grounded_mcp.assemble import find_project

    named = Path(args.path).expanduser()
    if not named.is_dir():
        raise InputError("path", f"{args.path[:400]!r} is not a folder.", "Give a folder: its whole project is synced.")
    if args.sessions or args.whole_home:
        return named
    settings = settings_of(named)
    project = find_project(settings, settings.project_dir)
    root, home = Path(project.worktree or project.root), settings.places.user
    if is_home(root, home):
        told = f"{str(root)!r} is {'your home folder' if root == home.resolve() else 'above your home folder'}."
        raise InputError("path", told, "Name a project's folder; or add --whole-home to index all that is in it.")
    return named


def is_home(root: Path, home: Path) -> bool:
    """Whether a folder is a person's home or above it, and nobody made a repository of it."""
    return home.resolve().is_relative_to(root.resolve()) and not (root / ".git").exists()
