"""The protocol's conformance suite, for both revisions: every scenario passes but those that are listed, with why.

A scenario that is listed and passes fails the run, too, so that the lists only shrink.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.conftest import Ground
from tests.clients.packages import Packages

HERE = Path(__file__).parent


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_f1_f2_the_conformance_suite_passes(
    tools: Packages, ground: Ground, address: str, revision: str, tmp_path: Path
) -> None:
    known = HERE / f"conformance-{revision}.yml"
    asked = ("server", "--url", f"{address}/mcp", "--requirements", revision, "--expected-failures", str(known))
    done = tools.run("conformance", *asked, env=ground.environment, cwd=tmp_path, seconds=110)
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
    assert "✓ tools-list" in done.stdout
