"""What the kernels read of a problem and of an architecture, as arrays.

Loops are taken in levels, as Timeloop has them: an entry that holds is a storage level, and the slots between it and the
next one that holds are its loops, temporal and spatial.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tilewright.compiled import for_kernel
from tilewright.mapspace.batch import Bools, Floats, Ints, Positions
from tilewright.mapspace.rules import Rules, rules_of, slots_of_entries
from tilewright.mapspace.skeleton import Skeleton, Slot
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.problem import Problem

ENTRY, ORDER, VERTICAL, SHARED = range(4)
"""Columns of `Hardware.slot`: the entry; the row of its order (-1: the problem's); 1 if it unrolls along Y, 0 along X, -1 if
it steps in time; from here on, by tensor, whether sub-clusters may share a delivery, or be added up on the way."""
START, STOP, HOLDS, ACROSS, DOWN, WIDTH, HEIGHT, HOME = range(8)
"""Columns of `Hardware.level`: its first slot and the one after its last; the entry that holds; instances of the next
level that exist along X and along Y over the whole chip; the physical fanout to the next level along X and along Y; from
here on, by tensor, the number of the memory that would hold it (-1: none)."""
BUILT, READ_ENERGY, WRITE_ENERGY, UPDATE_ENERGY, BLOCK_WORDS, READ_BANDWIDTH, WRITE_BANDWIDTH, LEAKAGE, GATE = range(9)
"""Columns of `Hardware.memory`: macros that exist; pJ per access; words per access; words per cycle; pJ per cycle that leak
for each instance in use of the memory of number GATE, which switches this one."""
HOP_ENERGY, ROUTER_ENERGY, INGRESS_ENERGY, IN_DRAM = range(4)
"""Columns of `Hardware.noc`: pJ; whether the level is DRAM, which cannot add."""
DISPLACEMENT, TOGETHER = range(2)
"""Columns of `Tensors.by_dimension`: what one iteration shifts a tile by, as one number (all shifts that can be compared
have different ones); as bits, the coordinates that the dimension moves together with others; bit 0: it moves several."""
WORDS, SLIDING, OUTPUT = range(3)
"""Columns of `Tensors.whole`: words of the whole tensor; whether tiles may overlap, or children receive overlapping ones."""


class Tensors(NamedTuple):
    """The problem. Shapes: T tensors, D dimensions."""

    by_dimension: Ints
    """[T, D, 2]."""
    moving: Ints
    """[T]: the dimensions that move it, as bits."""
    whole: Floats
    """[T, 3]."""


class Hardware(NamedTuple):
    """An architecture as a skeleton uses it. Shapes: S slots, L levels, M memories, T tensors."""

    slot: Ints
    """[S, 3 + T]."""
    level: Ints
    """[L, 7 + T]."""
    memory: Floats
    """[M, 9]."""
    noc: Floats
    """[L, 4]: of the network below a level."""
    compute_energy_pj: float
    """Of all operations."""
    cycles_per_operation: float


class Mappings(NamedTuple):
    """`n` mappings as trip counts; arrays of one row say the same of all."""

    trips: Ints
    """[n, S, D]."""
    order: Positions
    """[n, row, position]: dimensions, outermost first."""
    keep: Bools
    """[n, E, T]: whether the entry keeps the tensor."""
    unicast: Bools
    """[n, E, T]: whether it sends it to each sub-cluster separately; of no mappings where none is."""


@dataclass(frozen=True, eq=False)
class Tables:
    """All that is worked out once for a skeleton. `children`: most sub-clusters of one parent; `noc_costs`: some network
    takes energy."""

    rules: Rules
    slots: Ints
    """As `slots_of_entries` gives them."""
    tensors: Tensors
    hardware: Hardware
    children: int
    noc_costs: bool

    @property
    def shape(self) -> tuple[int, int, int]:
        """Levels, tensors, dimensions."""
        return len(self.hardware.level), len(self.tensors.whole), len(self.rules.sizes)


def capacity(problem: Problem, tensor: int) -> int:
    """How many numbers the shifts of a tensor's tiles need, so that two that differ have different ones."""
    return math.prod(1 + 3 * span for span in _spans(problem, tensor))


def _spans(problem: Problem, tensor: int) -> list[int]:
    """The farthest that two tiles lie apart, per coordinate."""
    return [
        sum(c * (problem.dimensions[name] - 1) for name, c in rank.terms.items())
        for rank in problem.tensors[tensor].projection
    ]


def tensors_of(problem: Problem) -> Tensors:
    """The problem's table."""
    count, dims = len(problem.tensors), len(problem.sizes)
    by_dimension = np.zeros((count, dims, 2), dtype=np.int64)
    moving, whole = [], []
    for number, tensor in enumerate(problem.tensors):
        matrix = problem.projection_matrix(tensor)
        place = 1
        for rank, (row, span) in enumerate(zip(matrix, _spans(problem, number), strict=True)):
            by_dimension[number, :, DISPLACEMENT] += place * row
            by_dimension[number, :, TOGETHER] |= ((row > 0) & ((row > 0).sum() > 1)) << rank + 1
            place *= 1 + 3 * span  # a sum of shifts, and its difference from a shift, stay within
        by_dimension[number, :, TOGETHER] |= (matrix > 0).sum(axis=0) > 1
        moving.append(sum(1 << int(dim) for dim in np.flatnonzero(matrix.any(axis=0))))
        whole.append([problem.tensor_words(tensor), by_dimension[number, :, TOGETHER].any(), tensor.is_output])
    return Tensors(by_dimension=_ints(by_dimension), moving=_ints(moving), whole=_floats(whole))


def tables_of(
    problem: Problem, architecture: Architecture, skeleton: Skeleton, slots: Sequence[Slot], placed: bool
) -> Tables | None:
    """The tables for mappings over a skeleton whose factors stand in `slots`; None if none of them can be legal.

    Args:
        placed: unrolled loops have an order of their own, an entry each, after those of the temporal slots.
    """
    index = architecture.cluster_index
    if not skeleton.entries[0].holds or any(entry.target not in index for entry in skeleton.entries):
        return None
    targets = [index[entry.target] for entry in skeleton.entries]
    if targets != sorted(targets):
        return None
    holds = [number for number, entry in enumerate(skeleton.entries) if entry.holds]
    clusters = [architecture.clusters[target] for target in targets]
    if any(clusters[number].is_virtual for number in holds):
        return None
    rules = rules_of(problem, architecture, skeleton)
    places = [architecture.mesh(targets[number]) for number in holds] + [architecture.mesh(len(architecture.clusters))]
    levels: list[list[int]] = []
    for number, entry in enumerate(holds):
        # the temporal slot of the next entry that holds is still a loop of this level
        ends = [holds[number + 1] if number + 1 < len(holds) else len(skeleton)] * 2
        mine = [
            s
            for s, slot in enumerate(slots)
            if (slot.entry > entry or (slot.entry == entry and slot.spatial))
            and (slot.entry < ends[0] or (slot.entry == ends[0] and not slot.spatial))
        ]
        start = mine[0] if mine else (levels[-1][STOP] if levels else 0)
        outer, within = places[number], places[number + 1]
        levels.append(
            [
                start,
                start + len(mine),
                entry,
                _across(within),
                within.get("Y", 1),
                math.prod(n // outer.get(axis, 1) for axis, n in within.items() if axis != "Y"),
                within.get("Y", 1) // outer.get("Y", 1),
            ]
        )
    built = {
        memory.name: architecture.instances[number] // memory.instances_per_macro
        for number, cluster in enumerate(architecture.clusters)
        for memory in cluster.memories
    }
    leakage = _leakage(architecture, {clusters[entry].name for entry in holds})
    memories = zip(architecture.memories, leakage, strict=True)
    networks = [clusters[entry].fanout.network for entry in holds]
    noc = [
        [
            network.energy_per_hop_pj,
            network.energy_per_router_pj,
            network.energy_per_ingress_pj,
            any(memory.technology == "dram" for memory in clusters[entry].memories),
        ]
        for network, entry in zip(networks, holds, strict=True)
    ]
    blocks = np.cumsum([not slot.spatial for slot in slots]) - 1
    temporal = sum(not slot.spatial for slot in slots)
    rows = []
    for slot, block in zip(slots, blocks, strict=True):
        fanout = clusters[slot.entry].fanout
        order = (temporal + slot.entry if placed else -1) if slot.spatial else block
        shared = [fanout.reduction if tensor.is_output else fanout.multicast for tensor in problem.tensors]
        rows.append([slot.entry, order, int(fanout.axis == "Y") if slot.spatial else -1, *shared])
    hardware = Hardware(
        slot=_ints(rows).reshape(len(slots), -1),
        level=_ints([[*level, *rules.memory[entry]] for level, entry in zip(levels, holds, strict=True)]),
        memory=_floats([[*_memory(memory, built[memory.name]), *leaks] for memory, leaks in memories]),
        noc=_floats(noc),
        compute_energy_pj=problem.macs * architecture.compute.energy_per_operation_pj,
        cycles_per_operation=float(architecture.compute.cycles_per_operation),
    )
    return Tables(
        rules=rules,
        slots=slots_of_entries(slots, len(skeleton)),
        tensors=tensors_of(problem),
        hardware=hardware,
        children=max(math.prod(mesh.values()) for mesh in places),
        noc_costs=bool(hardware.noc[:, :IN_DRAM].any()),
    )


def _memory(memory: Memory, built: int) -> list[float]:
    update = memory.accumulation_energy_pj
    bandwidths = (memory.read_bandwidth_words_per_cycle, memory.write_bandwidth_words_per_cycle)
    return [
        built,
        memory.read_energy_pj,
        memory.write_energy_pj,
        update,
        memory.block_words,
        *(math.inf if bandwidth is None else bandwidth for bandwidth in bandwidths),
    ]


def _leakage(architecture: Architecture, visited: set[str]) -> Iterator[tuple[float, int]]:
    """LEAKAGE and GATE of every memory; those that no entry visits are off."""
    names = [memory.name for memory in architecture.memories]
    for cluster in architecture.clusters:
        for memory in cluster.memories:
            gate, shared = architecture.switch_of(memory.name)
            yield memory.leakage_pj_per_cycle * shared if cluster.name in visited else 0.0, names.index(gate)


def _across(mesh: dict[str, int]) -> int:
    return math.prod(n for axis, n in mesh.items() if axis != "Y")


def _ints(values: object) -> Ints:
    return for_kernel(np.array(values, dtype=np.int64))


def _floats(values: object) -> Floats:
    return for_kernel(np.array(values, dtype=np.float64))
