"""What the server counts of itself, in the text format that Prometheus reads (version 0.0.4).

Counts of the whole process: no name of a token, a project or a person is in them. Knows nothing about who looks.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from grounded_mcp import __version__

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets, in seconds: Prometheus's usual ones."""
_P = "grounded_mcp"


class Meter:
    """Safe to call from any thread."""

    def __init__(self) -> None:
        self._requests: Counter[int] = Counter()
        self._calls: Counter[tuple[str, str]] = Counter()
        self._times: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BOUNDS) + 1))
        self._seconds: dict[str, float] = defaultdict(float)
        self._running = 0
        self._lock = threading.Lock()

    def begin(self) -> None:
        with self._lock:
            self._running += 1

    def end(self, status: int) -> None:
        """A request is over. ``status``: of its answer, 0 where the client left before there was one."""
        with self._lock:
            self._running -= 1
            self._requests[status] += 1

    def called(self, tool: str, seconds: float, *, ok: bool) -> None:
        with self._lock:
            self._calls[tool, "ok" if ok else "error"] += 1
            self._times[tool][bisect_left(BOUNDS, seconds)] += 1
            self._seconds[tool] += seconds

    def text(self, gauges: Mapping[str, float]) -> str:
        """The whole page. ``gauges``: further figures by name (with labels), without the prefix."""
        with self._lock:
            lines = [*self._counters(), *self._histogram()]
            lines += _about("requests_running", "gauge", "Requests in flight.", [("", self._running)])
        lines += _about("build_info", "gauge", "The version that runs.", [(f'{{version="{__version__}"}}', 1)])
        lines += [f"{_P}_{name} {value:g}" for name, value in gauges.items()]
        return "\n".join(lines) + "\n"

    def _counters(self) -> Iterator[str]:
        requests = [(f'{{status="{status}"}}', count) for status, count in sorted(self._requests.items())]
        yield from _about("http_requests_total", "counter", "Requests by the status of their answer.", requests)
        calls = [(f'{{tool="{tool}",outcome="{how}"}}', count) for (tool, how), count in sorted(self._calls.items())]
        yield from _about("tool_calls_total", "counter", "Calls of tools by outcome.", calls)

    def _histogram(self) -> Iterator[str]:
        rows: list[tuple[str, float]] = []
        for tool, counts in sorted(self._times.items()):
            total = 0
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), counts, strict=True):
                total += count
                rows.append((f'_bucket{{tool="{tool}",le="{bound}"}}', total))
            rows.append((f'_sum{{tool="{tool}"}}', self._seconds[tool]))
            rows.append((f'_count{{tool="{tool}"}}', total))
        yield from _about("tool_seconds", "histogram", "Time that a tool took.", rows)


def _about(name: str, kind: str, told: str, rows: Sequence[tuple[str, float]]) -> Iterator[str]:
    yield f"# HELP {_P}_{name} {told}"
    yield f"# TYPE {_P}_{name} {kind}"
    yield from (f"{_P}_{name}{label} {value:.9g}" for label, value in rows)
