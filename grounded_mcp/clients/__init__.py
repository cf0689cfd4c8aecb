"""Coding agents on this machine: where each keeps its settings, and how to enter and leave them without a trace."""
