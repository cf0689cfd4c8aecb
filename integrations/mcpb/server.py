"""The bundle's entry point: serves MCP over stdio."""

from grounded_mcp.__main__ import main

if __name__ == "__main__":
    raise SystemExit(main())
