"""Interface of group mappers: searches for the best way to fuse the layers of a group."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from tilewright.reports import Limit, Report
from tilewright.schema.architecture import Memory
from tilewright.schema.group import GroupMapping
from tilewright.schema.objective import ENERGY, Objective
from tilewright.schema.problem import Problem


@dataclass(frozen=True)
class BranchCase:
    """One visit of a layer inside shared loops.

    Attributes:
        problem: The layer, with the sizes that the shared loops leave.
        at_home: Its tensors whose tiles are in the home. The visit starts with operands there, and leaves its result there.
        reserved_bits: Room of the home that tiles of the shared part take, theirs included.
        layer: The whole layer, if `problem` is a tile of it. Rules for layers of its sizes hold for its tiles.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import BranchCase
        >>> case = BranchCase(tw.load("nk,km->nm; n=2 k=3 m=4", "problem"), at_home=frozenset({"A"}))
        >>> sorted(case.at_home)
        ['A']
    """

    problem: Problem
    at_home: frozenset[str] = frozenset()
    reserved_bits: int = 0
    layer: Problem | None = None


@dataclass(frozen=True)
class BranchCost:
    """Best mapping of a visit.

    Attributes:
        energy_pj, cycles: Its costs; inf if there is none.
        bound: Lower bound on the objective of all mappings of the visit.
        used_bits: Room of the home that tiles of the visit itself take.
        entries: Entries of the layer's part of the tree, inside the home's shared tiles.
        limits: What bounds the visit's speed. Words that fill tiles of the shared part use the same ports.

    Example:
        >>> from tilewright.plugin import BranchCost
        >>> BranchCost(energy_pj=3.0, cycles=4.0).used_bits
        0
    """

    energy_pj: float = math.inf
    cycles: float = math.inf
    bound: float = math.inf
    used_bits: int = 0
    entries: tuple[dict[str, Any], ...] = ()
    limits: tuple[Limit, ...] = ()


@runtime_checkable
class BranchMapper(Protocol):
    """Maps layers inside shared loops: the host's search of one layer, with the memories outside the home masked.

    So a group mapper needs no search of one layer, and covers any hierarchy inside the home.
    """

    @property
    def home(self) -> Memory | None:
        """The outermost single on-chip memory that may hold operands and results; None if there is none."""
        ...

    @property
    def is_free(self) -> bool:
        """Whether no rule restricts the loops outside the home, so that loops outside a visit may be loops of one mapping."""
        ...

    def home_is_least(self, objective: Objective) -> bool:
        """Return whether a tensor costs no more if it starts at the home instead of the outermost memories."""
        ...

    def branches(self, cases: Sequence[BranchCase], objective: Objective) -> list[BranchCost]:
        """Return the best mapping of each visit. After an interrupt, the list is shorter."""
        ...


@dataclass(frozen=True)
class GroupTask:
    """Layers and edges of a group on an architecture, with the objective of a search.

    Attributes:
        group: Its layers, edges, padding and architecture are given. Its tree is one mapping, which a search may ignore.
        evaluate: Returns the report of the user's cost model on a group mapping; one that is not legal has its reasons.
        objective: Metric of all layers together.
        seconds: Time limit; None: no limit. A search returns its best mapping when the time is over, and when the user
            interrupts (`tilewright.interrupts`).
        branches: Maps single layers inside shared loops; None: the host offers none.
        apart: Pairs of layers that exchange words which no edge states. No shared loop may have both inside.
        rows: Dimensions of layers that no shared loop may step, because an operator between layers needs their values together.
        stays: Results, by the group's names, that are whole on chip in a known mapping. A search may start there.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import GroupTask
        >>> layer = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False).layers[0]
        >>> group = tw.GroupMapping.of(layer.mapping.problem, layer.mapping.architecture, layer.mapping)
        >>> task = GroupTask(group, evaluate=lambda group: tw.evaluate(group, models="timeloop").reports[0])
        >>> task.objective.name
        'energy'
    """

    group: GroupMapping
    evaluate: Callable[[GroupMapping], Report]
    objective: Objective = ENERGY
    seconds: float | None = None
    branches: BranchMapper | None = None
    apart: frozenset[tuple[str, str]] = frozenset()
    rows: frozenset[tuple[str, str]] = frozenset()
    stays: frozenset[str] = frozenset()


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
        space: The mappings that the bound covers; empty: those that the spec names.
        by_branches: The bound is a sum of those of `GroupTask.branches`, so it covers words that neighbours forward.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import GroupResult
        >>> layer = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False).layers[0]
        >>> group = tw.GroupMapping.of(layer.mapping.problem, layer.mapping.architecture, layer.mapping)
        >>> GroupResult(group, 10.0, 20.0, group, bound=8.0, proved=False, unfused_proved=False).bound
        8.0
    """

    group: GroupMapping
    energy_pj: float
    cycles: float
    unfused: GroupMapping
    bound: float
    proved: bool
    unfused_proved: bool
    space: str = ""
    by_branches: bool = False

    def of(self, objective: Objective) -> float:
        """Return the value of an objective, in its unit."""
        return objective.value(self.energy_pj, self.cycles)


@runtime_checkable
class GroupMapper(Protocol):
    """Product of a group mapper's factory. It contains options only; a search does not change it.

    Example:
        >>> from tilewright.plugin import GroupMapper, GroupMapperSpec, installed
        >>> isinstance(installed().make(GroupMapperSpec, "loop_trees"), GroupMapper)
        True
    """

    def search_group(self, task: GroupTask) -> GroupResult:
        """Return the best mapping of the layers of a group, in the group's order.

        Raises:
            NotConformableError: The architecture or a layer is not searched, or nothing fits.
        """
        ...
