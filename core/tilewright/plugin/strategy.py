"""Interface of strategies: generators that propose points of a space of architectures, and receive their results."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from tilewright.schema.architecture import Architecture
from tilewright.schema.objective import Objective
from tilewright.schema.workload import Workload


@dataclass(frozen=True)
class PointProposal:
    """Point of a space to try; `needless` is the reason why its layers need no search.

    Points of a group that are `together` differ in the sizes and prices of memories only, cheapest first. They are
    searched as one: each mapping is evaluated on the first of them that holds its tiles. If the mapper cannot do that,
    they are searched separately.

    Example:
        >>> from tilewright.plugin import PointProposal
        >>> PointProposal(3, needless="too large").needless
        'too large'
    """

    index: int
    needless: str | None = None
    together: bool = False


@dataclass(frozen=True)
class PointResult:
    """Totals of a proposed point over the workload.

    Energy and cycles are inf without a valid architecture, a search, or a mapping of every layer. An unknown area is 0.

    Example:
        >>> from tilewright.plugin import Objective, PointResult
        >>> PointResult(3, 10.0, 20.0, 0.0).costs
        (10.0, 20.0, 0.0)
    """

    index: int
    energy_pj: float
    cycles: float
    area_um2: float

    @property
    def costs(self) -> tuple[float, float, float]:
        """Energy, cycles and area."""
        return self.energy_pj, self.cycles, self.area_um2

    def of(self, objective: Objective) -> float:
        """Return the value of the objective; EDP is total energy x total cycles."""
        return objective.value(self.energy_pj, self.cycles)


PointProposals = Generator[Sequence[PointProposal], Sequence[PointResult], None]
"""Generator that yields groups of points, which are searched together, and receives one result for each."""


@dataclass(frozen=True)
class ExplorationTask:
    """Space of architectures with the workload that is mapped onto its points.

    Attributes:
        choices: Name -> values. A point has one value of each; the last choice varies fastest.
        points: Maximum number of points to propose.
        seed: Equal seeds give equal proposals.
        architecture: Index of a point -> its architecture, or None if the point is not valid.
        bounds: Index of a valid point -> lower bounds on its energy in pJ and its cycles, 0 if
            unknown. None: the user wants all points searched.
        report: Callback with a text for the current step, such as `bounds of 12 points`.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import ExplorationTask, Objective
        >>> network, choices = tw.load("squeezenet", "workload", batch=1), {"size": (1.0, 2.0), "rows": (4.0, 8.0)}
        >>> task = ExplorationTask(choices, network, Objective.named("edp"), 4, 0, lambda index: None, None, print)
        >>> task.size, task.index([1, 0]), list(task.drawn())
        (4, 2, [0, 1, 2, 3])
    """

    choices: Mapping[str, tuple[float | str, ...]]
    workload: Workload
    objective: Objective
    points: int
    seed: int
    architecture: Callable[[int], Architecture | None]
    bounds: Callable[[int], tuple[float, float]] | None
    report: Callable[[str], None]

    @property
    def size(self) -> int:
        """Number of points of the space, invalid ones included."""
        return math.prod(len(values) for values in self.choices.values())

    def index(self, places: Sequence[int]) -> int:
        """Return the index of the point whose choices have the values at `places`."""
        number = 0
        for values, place in zip(self.choices.values(), places, strict=True):
            number = number * len(values) + place
        return number

    def drawn(self) -> Sequence[int]:
        """Return all points in order or, if fewer are wanted, `points` of them drawn by the seed."""
        return drawn(self.size, self.points, self.seed)


def drawn(size: int, points: int, seed: int) -> Sequence[int]:
    """Return the first `size` integers or, if fewer are wanted, `points` of them drawn by the seed."""
    if points >= size:
        return range(size)
    return [int(index) for index in np.random.default_rng(seed).choice(size, points, replace=False)]


@runtime_checkable
class Strategy(Protocol):
    """Product of a strategy's factory.

    Example:
        >>> from tilewright.plugin import Strategy, StrategySpec, installed
        >>> isinstance(installed().make(StrategySpec, "grid"), Strategy)
        True
    """

    def explore(self, task: ExplorationTask) -> PointProposals:
        """Yield groups of points to try, each point once.

        Raises:
            InputError: The strategy does not suit the space or the workload.
        """
        ...
