"""How well past sessions are found again: nDCG@10 and the rest, by kind of question, with 95 % intervals.

``--sessions`` names a folder with ``sessions/*.jsonl`` (Claude Code's records) and ``queries.dev.jsonl``: one JSON
object a line with ``query``, ``kind``, ``gold_sessions`` and, for graded answers, ``grades``; ``form`` "subject" marks
the commit questions that are reported apart. All sessions go into one scope, and each question is asked as it
stands. Sessions of weeks ago lose weight by default, which the labels know nothing of, so the
figures are given without that as well.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.timing import table
from grounded_mcp.assemble import open_memory, open_store
from grounded_mcp.config import load
from grounded_mcp.ingest.redact import Redactor
from grounded_mcp.ingest.transcripts.claude_code import READER
from grounded_mcp.ingest.transcripts.exchanges import exchanges
from grounded_mcp.ingest.transcripts.passages import headline, passages, topic_after
from grounded_mcp.ingest.transcripts.strip import strip
from grounded_mcp.ingest.transcripts.turns import FROM_THE_START, About, Tally, Transcript, Turn
from grounded_mcp.memory import Memory
from grounded_mcp.settings import Settings, settings
from grounded_mcp.values import Clean, Item, Passage, Record

VARIANTS: Mapping[str, Mapping[str, object]] = {
    "without recency": {"recall.boosts.session_decay": 1.0},
    "without recency, lexical": {"recall.boosts.session_decay": 1.0, "recall.mode": "lexical"},
    "without recency, vector": {"recall.boosts.session_decay": 1.0, "recall.mode": "vector"},
    "without recency, 100 candidates": {"recall.boosts.session_decay": 1.0, "recall.candidate_factor": 10},
    "as shipped": {},
}
PLACEHOLDER = "[commit message removed]"
"""What the data has in place of text that a question quotes; its words are in no real session."""
GROUPS = ("commit", "commit, subject only", "why", "file", "time")
CUTS = (1, 5, 10)
RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Score:
    """One question's figures. ``gold``: its (smallest) answer, which is what the bootstrap draws."""

    gold: str
    ndcg: float
    mrr: float
    recalls: tuple[float, ...]


def measure(args: argparse.Namespace) -> list[str]:
    folder: Path = args.sessions
    queries = [json.loads(line) for line in (folder / "queries.dev.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        sessions, pieces, now = index(home, folder / "sessions")
        for variant, flags in VARIANTS.items():
            scores = _scores(home, queries, flags, now)
            rows += [(group, variant, *_row(scores[group])) for group in GROUPS]
    head = ("kind", "system", *(f"recall@{cut}" for cut in CUTS), "mrr@10", "ndcg@10 [95 %]")
    told = f"{sessions} sessions, {pieces:,} passages; recency counts from the end of the last session."
    return ["### Sessions found again (dev questions)", "", told, "", *table(head, sorted(rows, key=_by_group))]


def _by_group(row: Sequence[object]) -> int:
    return GROUPS.index(str(row[0]))


# --- indexing: what an importer does ----------------------------------------------------------------------


def index(home: Path, folder: Path) -> tuple[int, int, float]:
    """Every session of a folder into a new store, with vectors: sessions, passages, and the end of the last one."""
    options = _settings(home, {})
    memory = open_memory(options, cwd=home)
    redactor = Redactor(b"bench")
    count = pieces = 0
    last = 0.0
    with closing(open_store(options)) as store:
        for transcript in READER.find(folder):
            record = _record(transcript, memory.project.scope, redactor)
            if record.passages:
                store.save([record])
                count, pieces, last = count + 1, pieces + len(record.passages), max(last, record.item.updated_at)
    memory.wait_ready(60)
    memory.fill_vectors()
    memory.close()
    return count, pieces, last


def _record(transcript: Transcript, scope: str, redactor: Redactor) -> Record:
    events = list(READER.read(transcript, FROM_THE_START, Tally()))
    about = [event for event in events if isinstance(event, About)]
    cwd = next((each.cwd for each in about if each.cwd), None)
    found: list[Passage] = []
    title, topic, until = "", "", 0.0
    for exchange in exchanges(_turns(events), lambda text: redactor.clean(strip(text.replace(PLACEHOLDER, ""))).text):
        title = title or headline(exchange.asked, 100)
        found += passages(exchange, cwd=cwd, seq=len(found), topic=topic)
        topic = topic_after(topic, exchange)
        until = exchange.until or until
    id_ = transcript.path.stem
    item = Item(id_, "session", scope, Clean(title), key=id_, updated_at=until)
    return Record(item, tuple(found))


def _turns(events: Iterable[object]) -> Iterator[Turn]:
    return (event for event in events if isinstance(event, Turn))


# --- asking -----------------------------------------------------------------------------------------------


def _settings(home: Path, flags: Mapping[str, object]) -> Settings:
    return settings(load(cwd=home, env={"GROUNDED_HOME": str(home / "home")}, flags=flags))


def _scores(
    home: Path, queries: Sequence[Mapping[str, Any]], flags: Mapping[str, object], now: float
) -> Mapping[str, list[Score]]:
    memory = _at(open_memory(_settings(home, flags), cwd=home), now)
    memory.wait_ready(60)
    groups: dict[str, list[Score]] = defaultdict(list)
    for query in queries:
        found = memory.recall(query["query"], limit=10, sources=["session"], project="*")
        score = _score([each.found.item.id for each in found.candidates if each.found], query)
        groups[query["kind"]].append(score)
        if query.get("form") == "subject":
            groups["commit, subject only"].append(score)
    memory.close()
    return groups


def _at(memory: Memory, now: float) -> Memory:
    """The same memory, asked right after the last session: years later, recency would be all that counts."""
    memory._clock = lambda: now
    return memory


def _score(ids: Sequence[str], query: Mapping[str, Any]) -> Score:
    gold: list[str] = query["gold_sessions"]
    gains = {id_: 2.0**grade - 1 for id_, grade in (query.get("grades") or dict.fromkeys(gold, 1)).items()}
    ideal = _dcg(sorted(gains.values(), reverse=True)[:10])
    first = next((rank for rank, id_ in enumerate(ids) if id_ in gains), None)
    return Score(
        min(gold),
        _dcg([gains.get(id_, 0.0) for id_ in ids]) / ideal,
        0.0 if first is None else 1.0 / (first + 1),
        tuple(len(gains.keys() & set(ids[:cut])) / len(gold) for cut in CUTS),
    )


def _dcg(gains: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains))


def _row(scores: Sequence[Score]) -> list[str]:
    low, high = _interval(scores)
    ndcg = f"{_mean([score.ndcg for score in scores]):.3f} [{low:.3f}, {high:.3f}]"
    recalls = [f"{_mean([score.recalls[at] for score in scores]):.3f}" for at in range(len(CUTS))]
    return [*recalls, f"{_mean([score.mrr for score in scores]):.3f}", ndcg]


def _interval(scores: Sequence[Score]) -> tuple[float, float]:
    """Drawn over gold sessions, not questions: one session answers up to 14 of them."""
    by_gold: dict[str, list[float]] = defaultdict(list)
    for score in scores:
        by_gold[score.gold].append(score.ndcg)
    clusters, rng = list(by_gold.values()), random.Random(0)
    means = sorted(
        _mean([value for cluster in rng.choices(clusters, k=len(clusters)) for value in cluster])
        for _ in range(RESAMPLES)
    )
    return means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES)]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
