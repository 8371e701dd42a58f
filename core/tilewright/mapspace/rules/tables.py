"""Tables of problem, architecture and skeleton that the legality rules read.

Terms of a convolution with dimensions K, C, P, R. A row of `Terms.term` is a dimension in a coordinate of a tensor:

    tensor             row   dimension   coefficient   last   period
    A [C, 2 P + R]     0     1 (C)       1             yes    inf
                       1     2 (P)       2             no     1
                       2     3 (R)       1             yes    2
    B [K, C, R]        3     0 (K)       1             yes    inf
                       4     1 (C)       1             yes    inf
                       5     3 (R)       1             yes    inf
    Z [K, P]           6     0 (K)       1             yes    inf
                       7     2 (P)       1             yes    inf

`Terms.start` is 0, 3, 6, 8. Of C, P and R, let a tile have 2, 4 and 3.
Row 0 gives a side of 2 words, rows 1 and 2 one of 1 + 2 * 3 + 1 * 2 = 9. The tile of A has 2 * 9 = 18 words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import Index, Records, for_kernel, inlined, integer, passed_by_pointer, table
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.skeleton import Skeleton, Slot
from tilewright.schema.architecture import Architecture, Cluster
from tilewright.schema.problem import Problem, Tensor

Codes = NDArray[np.int8]
Orders = NDArray[np.uint8]
"""Loop orders (`Positions`) with the element type that compiled functions read."""

LEGAL, WHOLE, REST, TEMPORAL, SPATIAL, FANOUT, UNROLL, HOME, TWICE, BACKING, CAPACITY, ORDER = map(integer, range(12))
"""Codes of violations.

WHOLE and REST: coverage outside and inside. TEMPORAL and SPATIAL: nesting. HOME: no single memory
of the cluster may hold the tensor. ORDER: an order does not name every dimension once.
"""
NONE = integer(0)


@passed_by_pointer
class Terms(NamedTuple):
    """Coordinates of all tensors. Shapes: T tensors, P terms in total."""

    start: NDArray[np.uint32]
    """Index of each tensor's first term, [T + 1]; the last element is P."""
    term: Records
    """Dimension and coefficient of each term, and whether it is the last of its coordinate, [P].

    `period`: tile size of the dimension above which values of the coordinate repeat (`distinct_sums`).
    It is inf for the only dimension of a coordinate, and 0 if there are more than two.
    """


@passed_by_pointer
class Rules(NamedTuple):
    """Data of the legality rules. Shapes: E entries, T tensors, D dimensions, M memories."""

    sizes: Ints
    """Dimension sizes, [D]."""
    entry: Records
    """Record of each entry, [E].

    `sub_clusters` is their number in the entry's cluster. `unrolls` is set for the last entry of a
    cluster. `first_alike` is the index of the first entry of the cluster.
    """
    memory: Ints
    """Index of the only memory in the entry's cluster that may hold the tensor, [E, T].

    It is -1 if there is no such memory, or if the entry holds no tensors.
    """
    usable: Floats
    """Usable capacity, [M], slices (see `Memory.slices_per_word`); inf if unlimited."""
    slices: Floats
    """Slices per value, [M, T]."""
    distinct: Bools
    """Whether the memory stores distinct words only (`Memory.footprint`), [M]."""
    terms: Terms


def rules_of(problem: Problem, architecture: Architecture, skeleton: Skeleton) -> Rules:
    """Return the rules for mappings over a skeleton whose targets exist."""
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
        distinct=for_kernel(np.array([memory.footprint == "distinct" for memory in architecture.memories])),
        terms=terms_of(problem),
    )


def terms_of(problem: Problem) -> Terms:
    """Return the coordinates of a problem's tensors."""
    ranks = [[list(rank.terms.items()) for rank in tensor.projection] for tensor in problem.tensors]
    terms = [
        (problem.dimension_names.index(name), coefficient, number == len(rank) - 1, period(rank, number))
        for tensor in ranks
        for rank in tensor
        for number, (name, coefficient) in enumerate(rank)
    ]
    start = np.cumsum([0, *(sum(map(len, tensor)) for tensor in ranks)])
    return Terms(
        start=for_kernel(start.astype(Index)),
        term=table(terms, dimension=Index, coefficient=int, last=bool, period=float),
    )


def period(rank: Sequence[tuple[object, int]], number: int) -> float:
    """Return the period of one term (dimension, coefficient) of a coordinate (see `Terms.term`)."""
    if len(rank) != 2:
        return math.inf if len(rank) == 1 else 0.0
    other = rank[1 - number][1]
    return other // math.gcd(rank[number][1], other)


def slots_of_entries(slots: Sequence[Slot], entries: int) -> Ints:
    """Return the temporal and the spatial slot of every entry, [E, 2]; -1 if there is none."""
    numbers = {(slot.entry, slot.spatial): number for number, slot in enumerate(slots)}
    return _ints([[numbers.get((entry, spatial), -1) for spatial in (False, True)] for entry in range(entries)])


def _ints(values: object) -> Ints:
    return for_kernel(np.array(values, dtype=np.int64))


@inlined
def tile_words(terms: Terms, tensor: int, tiles: Floats | Ints, row: int) -> float:
    """Return the words in the bounding box of the tile in row `row` of `tiles` [row, D].

    This is the compiled `Problem.tile_words`. It is exact below 2**53. A larger product stays at
    least 2**53, which exceeds any memory.
    """
    volume = side = 1.0
    for p in range(terms.start[tensor], terms.start[tensor + 1]):
        term = terms.term[p]
        side += term.coefficient * (tiles[row, term.dimension] - 1.0)
        if term.last:
            volume *= side
            side = 1.0
    return volume
