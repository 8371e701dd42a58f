"""Relaxation: what a cost model says of itself, as plain data from which lower bounds follow, for mappers that prove.

It says how words that move become energy and cycles. How many move at least follows from a mapping's tiles and loops, by one
rule for all models (docs/optimal.md): a tile that stays where it is, or slides, is not brought again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.skeleton import Skeleton


@dataclass(frozen=True, eq=False)
class Relaxation:
    """A cost model bound to a problem and an architecture, for mappings over one skeleton. Shapes: E entries, T tensors,
    M memories, all in their own order.

    Attributes:
        memory: [E, T] number of the memory that keeps the tensor there; -1: none may.
        read_pj, fill_pj, update_pj: [M] least energy of one word: that leaves towards the units; that is written from
            outside; of an output, that is added from inside.
        read_bandwidth, write_bandwidth: [M] words per cycle and instance; inf: no limit.
        shared: [E, T] whether one word may serve several sub-clusters of the entry's cluster, or be summed on the way.
        neighbours: sub-clusters may have words from one another, which no memory then reads for them.
        leakage_pj: [M] energy per cycle for each instance in use of the memory `gate` [M].
        compute_pj: of all operations.
        cycles_per_operation: of one compute unit.
        exact: nothing else costs anything, so that fewer words never cost more.
    """

    memory: Ints
    read_pj: Floats
    fill_pj: Floats
    update_pj: Floats
    read_bandwidth: Floats
    write_bandwidth: Floats
    shared: Bools
    neighbours: bool
    leakage_pj: Floats
    gate: Ints
    compute_pj: float
    cycles_per_operation: float
    exact: bool


@runtime_checkable
class Relaxable(Protocol):
    """An evaluator that offers a relaxation. Mappers find it in `Run.relaxable`."""

    def relaxation(self, skeleton: Skeleton) -> Relaxation | None:
        """None where no mapping over the skeleton can be valid."""
        ...
