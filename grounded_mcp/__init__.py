"""A local-first memory server for coding agents."""

__version__ = "0.1.0"
