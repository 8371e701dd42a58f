"""Total cost of each alternative: its mapped steps plus data movement in the outermost memory."""

from __future__ import annotations

from collections.abc import Mapping as MappingOf
from dataclasses import dataclass

from tilewright.application.algorithms.expansion import Expansion, Offer
from tilewright.application.run.network import MappedLayer
from tilewright.prices import access_pj, port_cycles, price_of
from tilewright.schema.alternative import Movement
from tilewright.schema.architecture import Architecture
from tilewright.schema.objective import Objective
from tilewright.schema.problem import Problem


@dataclass(frozen=True)
class Cost:
    """Energy in pJ and cycles. Costs of steps that run in sequence add up."""

    energy_pj: float = 0.0
    cycles: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.energy_pj + other.energy_pj, self.cycles + other.cycles)

    def __mul__(self, times: int) -> Cost:
        return Cost(self.energy_pj * times, self.cycles * times)

    @property
    def edp(self) -> float:
        return self.energy_pj * self.cycles

    def of(self, objective: Objective) -> float:
        return objective.value(self.energy_pj, self.cycles)


@dataclass(frozen=True)
class Choice:
    """An offer with its costs for one occurrence of the layer.

    `steps` is the cost of all steps, or None if a step has no mapping. `moved` is the cost of its movements, zero if
    they are not counted. `is_best` marks the cheapest offer of the layer by the search objective.
    """

    offer: Offer
    steps: Cost | None
    moved: Cost
    is_best: bool = False

    @property
    def total(self) -> Cost | None:
        return None if self.steps is None else self.steps + self.moved


def choices(
    expansion: Expansion,
    layers: MappingOf[str, MappedLayer],
    architecture: Architecture,
    objective: Objective,
) -> tuple[Choice, ...]:
    """Return every offer of the expansion with its costs.

    The cheapest offer of each layer is marked as the best; on a tie, the first one.

    Args:
        expansion: the offers.
        layers: results by step name.
        architecture: the architecture the steps were mapped onto.
        objective: the metric that decides which offer is best.
    """
    chosen = []
    for distinct in expansion.network.distinct():
        rows = []
        for offer in expansion.offers:
            if offer.distinct.problem is distinct.problem:
                steps = _steps(offer, layers)
                counted = expansion.movements and steps is not None
                rows.append(Choice(offer, steps, _moved(offer, architecture) if counted else Cost()))
        able = [(total.of(objective), at) for at, choice in enumerate(rows) if (total := choice.total) is not None]
        best = min(able, default=(0.0, -1))[1]
        chosen += [Choice(choice.offer, choice.steps, choice.moved, at == best) for at, choice in enumerate(rows)]
    return tuple(chosen)


def _steps(offer: Offer, layers: MappingOf[str, MappedLayer]) -> Cost | None:
    """Return the cost of all steps in sequence; None if a step has no mapping."""
    if offer.alternative is None:
        return None
    total = Cost()
    for name, step in zip(offer.layers, offer.alternative.steps.layers, strict=True):
        layer = layers.get(name)
        if layer is None or layer.energy_pj is None or layer.cycles is None:
            return None
        total += Cost(layer.energy_pj, layer.cycles) * step.count
    return total


def _moved(offer: Offer, architecture: Architecture) -> Cost:
    """Return the cost of all movements in sequence."""
    total = Cost()
    for movement in offer.alternative.movements if offer.alternative else ():
        total += movement_cost(movement, offer.distinct.problem, architecture)
    return total


def movement_cost(movement: Movement, problem: Problem, architecture: Architecture) -> Cost:
    """Return the cost of a movement in the outermost memory that holds the tensor.

    Energy covers all accesses. Cycles are the larger of those for reading and for writing at the memory's bandwidths.

    Raises:
        ValueError: no memory of the outermost cluster holds the tensor.
    """
    memory = architecture.clusters[0].memory_for(problem.tensor(movement.tensor))
    if memory is None:
        raise ValueError(f"no memory of the outermost cluster of {architecture.name} may hold {movement.tensor}")
    price, width = price_of(memory), memory.slices_of(problem.tensor(movement.tensor))
    read, written = movement.words_read * width, movement.words_written * width
    return Cost(float(access_pj(price, read, written, 0)), int(port_cycles(price, read, written)))
