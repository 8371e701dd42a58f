"""What the rules of legality read of a problem, an architecture and a skeleton, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import Index, Records, for_kernel, inlined, integer, structure, table
from tilewright.mapspace.batch import Floats, Ints
from tilewright.mapspace.skeleton import Skeleton, Slot
from tilewright.schema.architecture import Architecture, Cluster
from tilewright.schema.problem import Problem, Tensor

Codes = NDArray[np.int8]
Orders = NDArray[np.uint8]
"""`Positions` as compiled functions read them."""

LEGAL, WHOLE, REST, TEMPORAL, SPATIAL, FANOUT, UNROLL, HOME, TWICE, BACKING, CAPACITY, ORDER = map(integer, range(12))
"""Codes of faults. WHOLE, REST: coverage outside and inside; TEMPORAL, SPATIAL: nesting; HOME: a tensor kept where no
single memory may hold it; ORDER: not every dimension once."""
NONE = integer(0)


@structure
class Terms(NamedTuple):
    """The coordinates of tensors. Shapes: T tensors, P terms of all of them."""

    start: NDArray[np.uint32]
    """[T + 1]: the terms of tensor t are those from start[t] to start[t + 1] - 1."""
    term: Records
    """[P]: its dimension and coefficient; whether it is the last of its coordinate."""


@structure
class Rules(NamedTuple):
    """What the rules read. Shapes: E entries, T tensors, D dimensions, M memories."""

    sizes: Ints
    """[D]."""
    entry: Records
    """[E]: sub-clusters of its cluster; whether it is the last entry there, the only one that may unroll; the first entry
    there."""
    memory: Ints
    """[E, T]: number of the only memory of the entry's cluster that may hold the tensor, if the entry holds; else -1."""
    usable: Floats
    """[M], slices (see `Memory.slices_per_word`); inf: unlimited."""
    slices: Floats
    """[M, T]: of one value."""
    terms: Terms


def rules_of(problem: Problem, architecture: Architecture, skeleton: Skeleton) -> Rules:
    """The rules for mappings over a skeleton whose targets exist."""
    targets = [entry.target for entry in skeleton.entries]
    clusters = [architecture.cluster(target) for target in targets]
    numbers = {memory.name: number for number, memory in enumerate(architecture.memories)}

    def home(cluster: Cluster, tensor: Tensor) -> int:
        able = [numbers[memory.name] for memory in cluster.memories if memory.may_hold(tensor)]
        return able[0] if len(able) == 1 else -1

    entries = [
        (cluster.fanout.size, target not in targets[number + 1 :], targets.index(target))
        for number, (target, cluster) in enumerate(zip(targets, clusters, strict=True))
    ]
    usable = [memory.usable_slices for memory in architecture.memories]
    slices = [[memory.slices_of(tensor) for tensor in problem.tensors] for memory in architecture.memories]
    return Rules(
        sizes=_ints(problem.sizes),
        entry=table(entries, sub_clusters=int, unrolls=bool, first_alike=int),
        memory=_ints(
            [
                [home(cluster, tensor) if entry.holds else -1 for tensor in problem.tensors]
                for entry, cluster in zip(skeleton.entries, clusters, strict=True)
            ]
        ),
        usable=for_kernel(np.array(usable, dtype=np.float64)),
        slices=for_kernel(np.array(slices, dtype=np.float64)),
        terms=terms_of(problem),
    )


def terms_of(problem: Problem) -> Terms:
    """The coordinates of a problem's tensors."""
    ranks = [[list(rank.terms.items()) for rank in tensor.projection] for tensor in problem.tensors]
    terms = [
        (problem.dimension_names.index(name), coefficient, number == len(rank) - 1)
        for tensor in ranks
        for rank in tensor
        for number, (name, coefficient) in enumerate(rank)
    ]
    start = np.cumsum([0, *(sum(map(len, tensor)) for tensor in ranks)])
    return Terms(start=for_kernel(start.astype(Index)), term=table(terms, dimension=Index, coefficient=int, last=bool))


def slots_of_entries(slots: Sequence[Slot], entries: int) -> Ints:
    """Numbers of the temporal and the spatial slot of every entry, [E, 2]; -1: it has none."""
    numbers = {(slot.entry, slot.spatial): number for number, slot in enumerate(slots)}
    return _ints([[numbers.get((entry, spatial), -1) for spatial in (False, True)] for entry in range(entries)])


def _ints(values: object) -> Ints:
    return for_kernel(np.array(values, dtype=np.int64))


@inlined
def tile_words(terms: Terms, tensor: int, tiles: Floats | Ints, row: int) -> float:
    """Words of the bounding box that the tile in a row of `tiles` [row, D] spans (as `Problem.tile_words`).

    Exact below 2**53; a larger product is at least that large, and so larger than any memory.
    """
    volume = side = 1.0
    for p in range(terms.start[tensor], terms.start[tensor + 1]):
        term = terms.term[p]
        side += term.coefficient * (tiles[row, term.dimension] - 1.0)
        if term.last:
            volume *= side
            side = 1.0
    return volume
