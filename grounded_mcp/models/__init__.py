"""Embedders and rerankers behind one-verb contracts."""
