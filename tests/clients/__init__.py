"""Acceptance with real clients: the MCP Inspector, the conformance suite, the TypeScript SDKs, and coding agents.

They come from npm into a cache outside this repository, and are skipped, with the reason, where that cannot be done.
The agents are large (1.5 GB): they run with ``GROUNDED_CLIENTS=agents`` only, against a model that is a script.
"""
