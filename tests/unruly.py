"""Transcripts as no client writes them: a real record with something else in one place, a file cut off, any bytes."""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from turning import outline, read

from grounded_mcp.ingest.transcripts.turns import Reader, Tally, Transcript, Turn

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "text", "content"]), inner),
    max_leaves=4,
)


@st.composite
def spoiled(draw: st.DrawFn, sample: Any) -> Any:
    """The sample with any value in any one place."""
    found = copy.deepcopy(sample)
    node = found
    while True:
        key = draw(st.sampled_from(list(node) if isinstance(node, dict) else range(len(node))))
        if node[key] and isinstance(node[key], dict | list) and draw(st.booleans()):
            node = node[key]
            continue
        node[key] = draw(VALUES)
        return found


def lines(*records: Any) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def unharmed(reader: Reader, name: str, content: bytes) -> Tally:
    """Read a file of these bytes; every record of it must be counted as kept or skipped."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        events, tally = read(reader, Transcript(reader.agent, path, ""))
    outline(events)
    assert tally.kept + tally.skipped.total() - tally.skipped["unfinished last line"] == tally.seen
    assert tally.kept == 0 or any(isinstance(event, Turn) for event in events)
    return tally
