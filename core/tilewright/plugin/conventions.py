"""Conventions: how cost models count what others count differently, by topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.plugin.route import Route
    from tilewright.plugin.specs import CostModelSpec


@dataclass(frozen=True)
class Topic:
    """Subject of conventions.

    Attributes:
        meaning: The question that a convention answers.
        concerns: Route of a count -> whether conventions of this topic may change the count; None: no count.
    """

    meaning: str
    concerns: Callable[[Route], bool] | None = None


TOPICS: Mapping[str, Topic] = {
    "partial sums": Topic("which accesses add to an output", lambda route: route.tensor.is_output),
    "multicast": Topic(
        "the cost of a word that several sub-clusters need", lambda route: bool(route.shared_unrollings)
    ),
    "halos": Topic("what overlapping tiles cost", lambda route: bool(route.neighbour_overlaps or route.time_overlaps)),
    "rounding": Topic("how tiles that do not divide are counted", lambda route: not route.mapping.is_perfect),
    "buffers": Topic("how many copies of a tile a memory holds"),
    "ports": Topic("which bandwidths of a memory limit the cycles"),
    "DRAM": Topic("what the outermost memory costs"),
    "overlap": Topic("what happens at the same time, and before and after"),
}
"""Topics that a cost model may declare, in the order in which they are printed."""


def conventions_of(spec: CostModelSpec) -> dict[str, str]:
    """Return the conventions of a cost model by topic: those that it declares, and what its capabilities state."""
    able = spec.capabilities
    copies = "one copy of each tile" if able.tile_copies == 1 else f"{able.tile_copies} copies of each tile"
    stated = {"buffers": f"{copies} below the outermost memory"}
    known = stated | dict(spec.conventions)
    return {topic: known[topic] for topic in TOPICS if topic in known}


def differing(conventions: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the topics on which models differ, or some declare nothing.

    Args:
        conventions: Model -> topic -> rule.
    """
    return [topic for topic in TOPICS if len({rules.get(topic) for rules in conventions.values()}) > 1]


def explaining(conventions: Mapping[str, Mapping[str, str]], route: Route) -> dict[str, dict[str, str]]:
    """Return topics that concern a count and on which the models declare different rules, with these rules by model.

    Args:
        conventions: Model -> topic -> rule.
    """
    rules = {}
    for topic in differing(conventions):
        concerns = TOPICS[topic].concerns
        told = {model: declared[topic] for model, declared in conventions.items() if topic in declared}
        if concerns is not None and len(told) == len(conventions) and concerns(route):
            rules[topic] = told
    return rules
