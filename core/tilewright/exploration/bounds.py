"""Bounds: what every mapping of a problem on a machine takes at least, from the cost model's relaxation, without a search."""

from __future__ import annotations

import math

import numpy as np

from tilewright.errors import TilewrightError
from tilewright.mapspace.factoring.cuts import divisors
from tilewright.mapspace.skeleton import Slot
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Evaluator, Relaxable, Relaxation
from tilewright.plugin.guard.models import guarded_evaluator
from tilewright.run.network import LayerSearch, bound
from tilewright.schema.problem import Problem, Tensor

Least = tuple[float, float]
"""Energy in pJ and cycles."""


def least(search: LayerSearch) -> Least:
    """At least, for every mapping of the space; zeros where the cost model offers no relaxation, or no search can start."""
    try:
        space, _, evaluator = bound(search.distinct, search.configuration)
        return least_of(space, evaluator)
    except TilewrightError:  # the search itself tells it
        return 0.0, 0.0


def least_of(space: MapSpace, evaluator: Evaluator) -> Least:
    """The operations; every word that is used, once at the outermost memory and at each that surely keeps it; and at the innermost of
    these a word for every operation, as far as the fanouts below cannot share it. Cycles: the operations over the units that unrollings
    can use, and those words over the outermost ports. Leakage and networks count as nothing.

    Raises:
        PluginError: the relaxation is none.
    """
    guarded = guarded_evaluator(evaluator, space.problem, space.architecture)
    relaxation = guarded.relaxation(space.skeleton) if isinstance(guarded, Relaxable) else None
    if relaxation is None:
        return 0.0, 0.0
    problem = space.problem
    energy = relaxation.compute_pj
    # what neighbours pass on of tiles that differ is an average: words may seem to come less than once
    averaged = relaxation.neighbours and space.factors == "ragged"
    read, written = (np.zeros(len(relaxation.read_pj)) for _ in range(2))
    for number, tensor in enumerate(problem.tensors):
        values = 0 if averaged else used_words(problem, tensor)
        for entry, memory in _keeping(space, relaxation, number).items():
            width = space.architecture.memories[memory].words_of(tensor)
            once = values * width
            taken = max(once, _for_operations(space, relaxation, number, entry) * width)
            if tensor.is_output:
                energy += taken * relaxation.update_pj[memory]
                written[memory] += once
            else:
                energy += taken * relaxation.read_pj[memory]
                energy += once * relaxation.fill_pj[memory] if entry else 0.0
                read[memory] += once
    cycles = problem.macs * relaxation.cycles_per_operation / usable_units(space)
    outermost = sorted({int(memory) for memory in relaxation.memory[0] if memory >= 0})
    for words_of, rate in ((read, relaxation.read_bandwidth), (written, relaxation.write_bandwidth)):
        cycles = max([cycles, *(words_of[memory] / rate[memory] for memory in outermost)])
    return float(energy), float(cycles)


def usable_units(space: MapSpace) -> int:
    """Compute units that a mapping can use, at most: every fanout by itself, by what the rules let be unrolled over it. Where tiles
    divide, 14 columns take 8 of a dimension of 64."""
    return math.prod(_usable(space, space.slots[index]) for index in space.spatial_slots)


def _usable(space: MapSpace, slot: Slot) -> int:
    """Sub-clusters that an unrolling can use, at most."""
    most = slot.most or 1
    products = {1}
    for number, size in enumerate(space.problem.sizes):
        highest = slot.highest[number]
        if space.factors == "perfect":
            trips = [each for each in divisors(size) if each <= min(highest, most)]
            products = {one * other for one in products for other in trips if one * other <= most}
        else:
            products = {min(most, max(products) * min(highest, size))}
    return max(products)


def used_words(problem: Problem, tensor: Tensor) -> int:
    """Words of a tensor that some operation uses, at least: of a window with strides not all that lie between; where ranks share a
    dimension, those of the longest rank."""
    lengths = []
    for rank in tensor.projection:
        places = np.zeros(1, dtype=np.int64)
        for name, step in rank.terms.items():
            places = np.unique(places[:, None] + step * np.arange(problem.dimensions[name])[None, :])
        lengths.append(len(places))
    names = [name for rank in tensor.projection for name in rank.terms]
    return math.prod(lengths) if len(set(names)) == len(names) else max(lengths)


def _keeping(space: MapSpace, relaxation: Relaxation, number: int) -> dict[int, int]:
    """Entries that keep the tensor in every mapping -> its memory there; each memory at its innermost entry alone."""
    always, _ = space.keeps
    innermost: dict[int, int] = {}
    for entry in range(len(always)):
        memory = int(relaxation.memory[entry, number])
        if memory >= 0 and (entry == 0 or always[entry, number]):
            innermost[memory] = entry if innermost.get(memory) != 0 else 0
    return {entry: memory for memory, entry in innermost.items()}


def _for_operations(space: MapSpace, relaxation: Relaxation, number: int, entry: int) -> float:
    """Words that operations take from the innermost memory that may keep the tensor; 0: it is not surely this one."""
    always, free = space.keeps
    if (always | free)[entry + 1 :, number].any():
        return 0.0
    fanouts = [space.architecture.cluster(each.target).fanout.size for each in space.skeleton.entries[entry:]]
    if relaxation.neighbours and math.prod(fanouts) > 1:
        return 0.0
    shared = relaxation.shared[entry:, number]
    return space.problem.macs / math.prod(size for size, one in zip(fanouts, shared, strict=True) if one)
