"""Measurements, each against a named baseline in the same run. ``python -m bench --help``."""

import grounded_mcp.models  # noqa: F401 - turns the runtime's telemetry off, which only works before it is imported
