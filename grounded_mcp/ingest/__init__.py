"""Text in: clean, redact, split, store."""
