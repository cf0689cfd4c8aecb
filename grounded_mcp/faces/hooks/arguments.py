"""What ``brief`` and ``hook`` take, for ``--help`` and for whoever calls them otherwise than a hook does."""

from __future__ import annotations

import argparse

from grounded_mcp.faces.hooks.dialects import NAMES

BRIEF = "show what an agent is told when it starts: pinned facts, important ones, recent sessions, verified scripts"
HOOK = "answer an event of a coding agent, as `connect` has it do; reads the event from standard input, exits with 0"


def brief_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--message", metavar="TEXT", help="instead: the memories that name what this message names")


def hook_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("event", help="the client's own name for it, such as SessionStart or beforeSubmitPrompt")
    verb.add_argument("--client", required=True, metavar="NAME", help=", ".join(NAMES))
    verb.add_argument(
        "--home", default="", metavar="DIR", help="the data directory (default: GROUNDED_HOME, or its own)"
    )
