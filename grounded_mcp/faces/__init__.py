"""Translation only: the MCP server and the command line."""
