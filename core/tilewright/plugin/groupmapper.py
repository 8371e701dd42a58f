"""Interface of group mappers: searches for the best way to fuse the layers of a group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tilewright.reports import Report
from tilewright.schema.group import GroupMapping
from tilewright.schema.objective import ENERGY, Objective


@dataclass(frozen=True)
class GroupTask:
    """Layers and edges of a group on an architecture, with the objective of a search.

    Attributes:
        group: Its layers, edges, padding and architecture are given. Its tree is one mapping, which a search may ignore.
        evaluate: Returns the report of the user's cost model on a group mapping; one that is not legal has its reasons.
        objective: Metric of all layers together.
        seconds: Time limit; None: no limit. A search returns its best mapping when the time is over, and when the user
            interrupts (`tilewright.interrupts`).
    """

    group: GroupMapping
    evaluate: Callable[[GroupMapping], Report]
    objective: Objective = ENERGY
    seconds: float | None = None


@dataclass(frozen=True)
class GroupResult:
    """Best group mapping of a search, with the costs by which the search compared it.

    The host evaluates both mappings by the user's cost model. Where the costs differ, it believes no claim.

    Attributes:
        group: The best mapping.
        energy_pj, cycles: Its costs.
        unfused: The best mapping without fusion.
        bound: Lower bound on the objective of all mappings in the space that the spec names.
        proved: `group` has the least cost in this space.
        unfused_proved: `unfused` has the least cost of its mappings without fusion.
    """

    group: GroupMapping
    energy_pj: float
    cycles: float
    unfused: GroupMapping
    bound: float
    proved: bool
    unfused_proved: bool

    def of(self, objective: Objective) -> float:
        """Return the value of an objective, in its unit."""
        return objective.value(self.energy_pj, self.cycles)


@runtime_checkable
class GroupMapper(Protocol):
    """Product of a group mapper's factory. It contains options only; a search does not change it."""

    def search_group(self, task: GroupTask) -> GroupResult:
        """Return the best mapping of the layers of a group, in the group's order.

        Raises:
            NotConformableError: The architecture or a layer is not searched, or nothing fits.
        """
        ...
