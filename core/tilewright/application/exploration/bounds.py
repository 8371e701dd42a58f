"""Lower bounds on the energy and cycles of all mappings of a problem on a machine, from the cost model's relaxation."""

from __future__ import annotations

import math

import numpy as np

from tilewright.application.run.configuration import RunConfiguration
from tilewright.application.run.network import LayerSearch, bound
from tilewright.errors import TilewrightError
from tilewright.mapspace.counting import used_words
from tilewright.mapspace.factoring.cuts import divisors
from tilewright.mapspace.skeleton import Slot
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Evaluator, Relaxable, Relaxation
from tilewright.plugin.guard.models import guarded_evaluator
from tilewright.prices import port_time
from tilewright.schema.architecture import Architecture
from tilewright.schema.workload import Workload

Least = tuple[float, float]
"""Energy in pJ and cycles."""


def least(search: LayerSearch) -> Least:
    """Return lower bounds for all mappings of the space; zeros if the model offers no relaxation or the search cannot start."""
    try:
        space, _, evaluator = bound(search.distinct, search.configuration)
        return least_of(space, evaluator)
    except TilewrightError:  # the search raises the same error and reports it
        return 0.0, 0.0


def least_of_workload(architecture: Architecture, workload: Workload, configuration: RunConfiguration) -> Least:
    """Return lower bounds on the total energy in pJ and the total cycles of all layers."""
    here = configuration.on_architecture(architecture)
    bounds = [(layer.count, *least(LayerSearch(layer, here))) for layer in workload.distinct()]
    return math.fsum(count * energy for count, energy, _ in bounds), math.fsum(
        count * cycles for count, _, cycles in bounds
    )


def least_of(space: MapSpace, evaluator: Evaluator) -> Least:
    """Return lower bounds on energy and cycles; leakage and networks count as zero.

    Energy counts all operations, and each used word once at the outermost memory and at each memory that always keeps it.
    The innermost of these memories delivers one word per operation, divided by the fanouts below that may share it.
    Cycles are the larger of operations per usable unit and of those words over the bandwidth of the outermost memories.

    Raises:
        PluginError: the relaxation is invalid.
    """
    guarded = guarded_evaluator(evaluator, space.problem, space.architecture)
    relaxation = guarded.relaxation(space.skeleton, space.keeps) if isinstance(guarded, Relaxable) else None
    if relaxation is None:
        return 0.0, 0.0
    problem = space.problem
    energy = relaxation.compute_pj
    # forwarding over unequal tiles is averaged, so that a word may count less than once
    averaged = relaxation.neighbours and space.factors == "ragged"
    read, written = (np.zeros(len(relaxation.read_pj)) for _ in range(2))
    for number, tensor in enumerate(problem.tensors):
        values = 0 if averaged else used_words(problem, tensor)
        for entry, memory in _keeping(space, relaxation, number).items():
            width = space.architecture.memories[memory].words_of(tensor)
            once = values * width
            moved = 1.0 if relaxation.moved is None else relaxation.moved[memory, number]
            taken = max(once, _for_operations(space, relaxation, number, entry) * width)
            if tensor.is_output:
                energy += taken * relaxation.update_pj[memory, number]
                written[memory] += once * moved
            else:
                energy += taken * relaxation.read_pj[memory, number]
                energy += once * relaxation.fill_pj[memory, number] if entry else 0.0
                read[memory] += once * moved
    cycles = problem.macs * relaxation.cycles_per_operation / usable_units(space)
    outermost = sorted({int(memory) for memory in relaxation.memory[0] if memory >= 0})
    waiting = port_time(relaxation, read, written)[outermost]
    return float(energy), float(max(cycles, *waiting))


def usable_units(space: MapSpace) -> int:
    """Return an upper bound on the compute units that a mapping can use: the product over all fanouts.

    With perfect tiles, 14 columns can use at most 8 iterations of a dimension of 64.
    """
    return math.prod(_usable(space, space.slots[index]) for index in space.spatial_slots)


def _usable(space: MapSpace, slot: Slot) -> int:
    """Return the maximum number of sub-clusters that the unrolling of a slot can use."""
    most = slot.most or 1
    products = {1}
    for number, size in enumerate(space.problem.sizes):
        highest = slot.highest[number]
        if space.factors == "perfect":
            trips = [divisor for divisor in divisors(size) if divisor <= min(highest, most)]
            products = {one * other for one in products for other in trips if one * other <= most}
        else:
            products = {min(most, max(products) * min(highest, size))}
    return max(products)


def _keeping(space: MapSpace, relaxation: Relaxation, number: int) -> dict[int, int]:
    """Return {entry: memory} for the entries at which all mappings keep the tensor; each memory only at its innermost entry."""
    always, _ = space.keeps
    innermost: dict[int, int] = {}
    for entry in range(len(always)):
        memory = int(relaxation.memory[entry, number])
        if memory >= 0 and (entry == 0 or always[entry, number]):
            innermost[memory] = entry if innermost.get(memory) != 0 else 0
    return {entry: memory for memory, entry in innermost.items()}


def _for_operations(space: MapSpace, relaxation: Relaxation, number: int, entry: int) -> float:
    """Return a lower bound on the words that operations read from the memory of `entry`; 0 if an inner memory may keep the tensor."""
    always, free = space.keeps
    if (always | free)[entry + 1 :, number].any():
        return 0.0
    fanouts = [space.architecture.cluster(inner.target).fanout.size for inner in space.skeleton.entries[entry:]]
    if relaxation.neighbours and math.prod(fanouts) > 1:
        return 0.0
    shared = relaxation.shared[entry:, number]
    return space.problem.macs / math.prod(size for size, one in zip(fanouts, shared, strict=True) if one)
