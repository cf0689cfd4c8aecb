"""Measurements, each against a named baseline in the same run. ``python -m bench --help``."""
