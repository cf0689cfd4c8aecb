"""What is related to a question by the names it shares: one hop over entities, scored. Pure.

Two sentences that hold no word of each other may be about one thing: "Maria joined the Porto team", "the Porto team
meets in Lisbon". A passage scores by the entities it shares with the question itself, and with the passages that the
other searches put first, each damped by how many passages name it. Knows nothing about how entities are found.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass

from grounded_mcp.entities import EntityId
from grounded_mcp.values import Hit, PassageId


@dataclass(frozen=True, slots=True)
class GraphOptions:
    """[recall.graph]: the defaults are those of ``config.toml``."""

    seeds: int = 5
    """How many of the best hits the hop starts from."""
    hop: float = 0.2
    """What an entity of theirs is worth against one that the question names."""
    common: int = 100
    """An entity that more passages of a source name is not followed."""


def weight(mentions: int) -> float:
    """What sharing an entity is worth that so many passages name: 1 / (1 + ln n), so 1 for one, 0.18 for a hundred.

    An inverse document frequency that needs no count of the whole store: the same few passages score alike in a small
    store and in a large one.
    """
    return 1.0 / (1.0 + math.log(mentions))


def related(
    asked: Set[EntityId],
    seeds: Sequence[PassageId],
    named: Mapping[PassageId, Sequence[EntityId]],
    mentions: Mapping[EntityId, Sequence[PassageId]],
    found: Collection[PassageId],
    options: GraphOptions,
) -> dict[PassageId, float]:
    """Passages by what they share with the question and the seeds; higher is better, what shares nothing is left out.

    ``named`` gives the entities of the seeds and of what was ``found`` already, ``mentions`` the passages of each
    entity. An entity of more than ``options.common`` is not followed: it counts for the question alone, and only in
    passages that were found already. The seed of rank r counts 1 / (1 + r), all of them together 1, none for itself.
    """
    scores: dict[PassageId, float] = defaultdict(float)
    worth = {entity: weight(len(passages)) for entity, passages in mentions.items()}
    followed = {entity for entity, passages in mentions.items() if len(passages) <= options.common}
    for entity in asked & followed:
        for passage in mentions[entity]:
            scores[passage] += worth[entity]
    common = frozenset(asked & mentions.keys() - followed)
    for passage in found:
        for entity in common.intersection(named.get(passage, ())):
            scores[passage] += worth[entity]
    total = math.fsum(1.0 / (1 + rank) for rank in range(len(seeds)))
    for rank, seed in enumerate(seeds):
        share = options.hop / (1 + rank) / total
        for entity in followed.intersection(named.get(seed, ())) - asked:
            for passage in mentions[entity]:
                if passage != seed:
                    scores[passage] += share * worth[entity]
    return dict(scores)


def best(scores: Mapping[PassageId, float], found: Collection[PassageId], depth: int) -> tuple[Hit, ...]:
    """The ``depth`` best passages with all that tie with the last of them, and all that were ``found`` already, best
    first.

    Those that were found stay in: left out, they would count as the worst of the lane.
    """
    order = sorted((-round(score, 9), id_) for id_, score in scores.items())
    last = order[depth - 1][0] if len(order) > depth else 0.0
    return tuple([Hit(id_, -score) for score, id_ in order if score <= last or id_ in found])
