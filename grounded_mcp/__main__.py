"""``python -m grounded_mcp``, and the ``grounded-mcp`` command: to the command line, or past it to what has to be fast.

A hook runs at every message of somebody's session; parsing its arguments as the other commands' are would cost it as
much as its work.
"""

import sys


def main() -> int:
    """The exit code; a hook and a server end the process themselves."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["hook"] and not {"-h", "--help"} & set(arguments):
        from grounded_mcp.faces.hooks.program import main as hook

        hook(arguments[1:])
    if arguments in (["brief"], ["brief", "--json"]):
        from grounded_mcp.faces.hooks.showing import show

        return show(as_json="--json" in arguments)
    from grounded_mcp.faces.cli import main as command_line

    return command_line()


if __name__ == "__main__":
    sys.exit(main())
