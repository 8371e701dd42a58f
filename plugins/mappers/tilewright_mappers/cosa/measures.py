"""Logarithms that CoSA's objective consists of: loop products, tile words and passes of one mapping."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Generic, Protocol, TypeVar

import numpy as np

from tilewright.errors import NotConformableError, Reason
from tilewright.mapspace.batch import Bools, Ints, MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.space import MapSpace
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.unmatched import ROLES
from tilewright_mappers import CosaOptions
from tilewright_mappers.cosa.program import Linear

Value = TypeVar("Value", float, Linear)
Value_co = TypeVar("Value_co", float, Linear, covariant=True)


class Measures(Protocol[Value_co]):
    """Measures of one mapping (numbers), or of the mappings of a program (linear expressions).

    All are natural logarithms.
    """

    @property
    def space(self) -> MapSpace: ...

    @property
    def keep(self) -> Bools:
        """Kept tensors, bool [entry, tensor]."""
        ...

    def product(self, slot: int) -> Value_co:
        """Return the sub-clusters that a spatial slot uses, or the steps of a temporal slot's loops."""
        ...

    def words(self, entry: int, tensor: int) -> Value_co:
        """Return the values of a tensor that an entry holds at a time."""
        ...

    def passes(self, entry: int, tensor: int) -> Value_co:
        """Return how often one instance of an entry receives a tile."""
        ...


@dataclass(frozen=True)
class MappingMeasures:
    """Measures of one mapping. `trips` are those of its loops, int64 [slot, dimension]."""

    space: MapSpace
    keep: Bools
    trips: Ints
    orders: dict[int, list[int]]
    """Temporal slot -> dimensions, outermost first."""

    @classmethod
    def of(cls, space: MapSpace, mapping: Mapping) -> MappingMeasures:
        """Return the measures of a mapping of the space."""
        rows = Candidates.of(space, MappingBatch.pack(space.problem, [mapping]))
        orders = dict(zip(space.temporal_slots, rows.orders[0].tolist(), strict=True))
        return cls(space, rows.keeps[0], rows.trips[0], orders)

    def product(self, slot: int) -> float:
        return math.log(math.prod(self.trips[slot].tolist()))

    def words(self, entry: int, tensor: int) -> float:
        slots = enumerate(self.space.slots)
        inside = [s for s, slot in slots if slot.entry > entry or (slot.entry == entry and slot.spatial)]
        problem, tile = self.space.problem, self.trips[inside].prod(axis=0).tolist()
        extents = dict(zip(problem.dimension_names, tile, strict=True))
        return math.log(problem.tile_words(problem.tensors[tensor], extents))

    def passes(self, entry: int, tensor: int) -> float:
        problem, count, has_moved = self.space.problem, 1, False
        for slot in reversed([slot for slot in self.space.temporal_slots if self.space.slots[slot].entry <= entry]):
            for dim in reversed(self.orders[slot]):
                trips = int(self.trips[slot, dim])
                has_moved |= trips > 1 and problem.dimension_names[dim] in problem.tensors[tensor].dimensions
                count *= trips if has_moved else 1
        return math.log(count)


@dataclass(frozen=True)
class Terms(Generic[Value]):
    """Weighted terms of CoSA's objective; those of tensors are by name."""

    utilization_of: dict[str, Value]
    compute: Value
    traffic_of: dict[str, Value]

    @classmethod
    def of(cls, measures: Measures[Value], options: CosaOptions) -> Terms[Value]:
        """Return the terms of `measures` (section III-C).

        Utilization covers all bounded memories. Traffic counts words of each tensor into the outermost fanout.
        """
        space, tensors = measures.space, measures.space.problem.tensors
        bounded = [memory.name for memory in space.architecture.memories if memory.usable_words is not None]
        filled: dict[Tensor, list[Value]] = {}
        for entry, tensor in (pair for name in bounded for pair in held(space, measures.keep, name)):
            filled.setdefault(tensors[tensor], []).append(measures.words(entry, tensor))
        used, sent = options.utilization_weight, options.traffic_weight
        return cls(
            {t.name: reduce(add, words) * used * _factor(options.utilization_of, t) for t, words in filled.items()},
            steps(measures) * options.compute_weight,
            {t.name: _sent(measures, n) * sent * _factor(options.traffic_of, t) for n, t in enumerate(tensors)},
        )

    @property
    def traffic(self) -> Value:
        whole: Value = reduce(add, self.traffic_of.values())
        return whole

    @property
    def utilization(self) -> Value:
        whole: Value = reduce(add, self.utilization_of.values(), self.compute * 0.0)
        return whole

    @property
    def total(self) -> Value:
        """Return the sum to minimise: compute + traffic - utilization."""
        return self.compute + self.traffic + self.utilization * -1.0


def _factor(factors: FrozenDict[str, float], tensor: Tensor) -> float:
    return factors.get(tensor.name, factors.get(tensor.role, 1.0))


def check_tensors(problem: Problem, options: CosaOptions) -> None:
    """Refuse factors of unknown tensors.

    Raises:
        NotConformableError: A name is neither a tensor nor a role.
    """
    known = (*problem.tensor_names, *ROLES)
    for name in {**options.utilization_of, **options.traffic_of}:
        if name not in known:
            message = f"is no tensor of {problem.name}; expected {', '.join(known)}"
            raise NotConformableError("mapper cosa", (Reason(code="tensor", where=name, message=message),))


def breakdown(terms: Terms[float], is_balanced: bool) -> dict[str, float]:
    """Return the breakdown of the objective. `is_balanced`: the total is |traffic - compute|."""
    return {
        "utilization": terms.utilization,
        "compute": terms.compute,
        "traffic": terms.traffic,
        "total": abs(terms.traffic - terms.compute) if is_balanced else terms.total,
        **{f"utilization[{name}]": value for name, value in terms.utilization_of.items()},
        **{f"traffic[{name}]": value for name, value in terms.traffic_of.items()},
    }


def steps(measures: Measures[Value]) -> Value:
    """Return the logarithm of the steps of all loops: the cycles without waiting for memories."""
    whole: Value = reduce(add, [measures.product(slot) for slot in measures.space.temporal_slots])
    return whole


def held(space: MapSpace, keep: Bools, memory: str) -> list[tuple[int, int]]:
    """Return the (entry, tensor) pairs that a memory keeps."""
    pairs = []
    for entry, tensor in np.argwhere(keep):
        cluster = space.architecture.cluster(space.skeleton.entries[entry].target)
        holder = cluster.memory_for(space.problem.tensors[tensor])
        if holder is not None and holder.name == memory:
            pairs.append((int(entry), int(tensor)))
    return pairs


def _fanouts(space: MapSpace) -> list[int]:
    """Return the spatial slots of the outermost fanout; a two-dimensional one has two."""
    entries, index = space.skeleton.entries, space.architecture.cluster_index
    slots = [slot for slot in space.spatial_slots if (space.slots[slot].most or 1) > 1]
    names = [entries[space.slots[slot].entry].target for slot in slots]
    spanned = {cluster.name for cluster in space.architecture.mesh_clusters(index[names[0]])} if names else set()
    return [slot for slot, name in zip(slots, names, strict=True) if name in spanned]


def border_of(space: MapSpace) -> int:
    """Return the last entry of the outermost fanout, or 0."""
    fanouts = _fanouts(space)
    return space.slots[fanouts[-1]].entry if fanouts else 0


def _sent(measures: Measures[Value], tensor: int) -> Value:
    """Return the words of a tensor through the outermost fanout."""
    space = measures.space
    border = border_of(space)
    inner = [entry for entry in range(border + 1, len(space.skeleton)) if measures.keep[entry, tensor]]
    words = measures.passes(inner[0], tensor) + measures.words(inner[0], tensor) if inner else steps(measures)
    return reduce(add, [measures.product(slot) for slot in _fanouts(space)], words)
