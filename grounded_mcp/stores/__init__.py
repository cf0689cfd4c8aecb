"""Engines behind the store contract."""
