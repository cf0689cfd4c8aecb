"""Embedders and rerankers behind one-verb contracts."""

import os

# ONNX Runtime since 1.29 reports every session to its vendor, and keeps a device id in ~/.cache, unless it is told
# not to before it is imported. Nothing here phones home (G4).
os.putenv("ORT_DISABLE_TELEMETRY", "1")
