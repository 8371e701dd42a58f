"""What the kernels read of a problem and of an architecture, as arrays.

Loops are taken in levels, as Timeloop has them: an entry that holds is a storage level, and the slots between it and the
next one that holds are its loops, temporal and spatial.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import Index, Records, for_kernel, structure, table
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.rules.tables import Orders, Rules, rules_of, slots_of_entries, terms_of
from tilewright.mapspace.skeleton import Skeleton, Slot
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem


@structure
class Tensors(NamedTuple):
    """The problem. Shapes: T tensors, D dimensions."""

    projection: Records
    """[T, D]: what one iteration shifts a tile by, as one number (all shifts that can be compared have different ones); as
    bits, the coordinates that the dimension moves together with others (bit 0: it moves several). The number of its group, of
    dimensions that share coordinates (0: it does not move the tensor; 1: it has one for itself, with this coefficient); whether
    the group has one coordinate only (`one_coordinate`); whether it is the last one of its group in `dims`."""
    dims: NDArray[np.uint32]
    """[T, D]: of the dimensions that have several iterations, those that move the tensor, group by group, and then those that do not."""
    info: Records
    """[T]: words; iterations of the dimensions that move the tensor; these dimensions, as bits; whether tiles may overlap, or children receive
    overlapping ones; whether all coordinates are single dimensions (`plain`); the number after that of the last group of
    dimensions; how many of `dims` move it, and how many there are; those that move several coordinates, or one together with
    others, as bits."""
    dense: bool
    """No tile has holes."""
    start: NDArray[np.uint32]
    term: Records
    """The coordinates, as in `Terms`."""


@structure
class Hardware(NamedTuple):
    """An architecture as a skeleton uses it. Shapes: S slots, L levels, M memories, T tensors."""

    slot: Records
    """[S]: the entry; whether its loops have an order of their own, and its row; whether it steps in time, or unrolls along
    Y."""
    may_share: Bools
    """[S, T]: sub-clusters may share a delivery, or be added up on the way."""
    level: Records
    """[L]: its first slot and the one after its last; the entry that holds; instances of the next level that exist along X
    and along Y over the whole chip; the physical fanout to the next level along X and along Y; pJ of the network below;
    whether it is DRAM, which cannot add."""
    memory_index: Ints
    """[L, T]: the number of the memory that would hold the tensor (-1: none)."""
    slices: Floats
    """[L, T]: slices (see `Memory.slices_per_word`) of one value, in its home."""
    unthrottled_units: Floats
    """[L, T]: compute units below an instance with which no bandwidth of that memory can bind, as none of them reads or writes more
    than two words of a tensor in a step."""
    memory: Records
    """[M]: macros that exist; pJ per access; slices per access, per cycle, and of the widest value; pJ per cycle that leak for
    each instance in use of the memory of number `gate`, which switches this one; tensors that it may hold."""
    compute_energy_pj: float
    """Of all operations."""
    cycles_per_operation: float


@structure
class Mappings(NamedTuple):
    """`n` mappings as trip counts; arrays of one row say the same of all."""

    trips: Ints
    """[n, S, D]."""
    tiles: Ints
    """[n, S, D]: the tile inside each slot; of no mappings where the trips say it: their product, at most the dimension."""
    order: Orders
    """[n, row, position]: dimensions, outermost first."""
    keep: Bools
    """[n, E, T]: whether the entry keeps the tensor."""
    unicast: Bools
    """[n, E, T]: whether it sends it to each sub-cluster separately; of no mappings where none is."""


@dataclass(frozen=True, eq=False)
class Tables:
    """All that is worked out once for a skeleton. `max_subclusters`: most sub-clusters of one parent; `has_network_energy`: some network
    takes energy."""

    rules: Rules
    slots: Ints
    """As `slots_of_entries` gives them."""
    tensors: Tensors
    hardware: Hardware
    max_subclusters: int
    has_network_energy: bool

    @property
    def shape(self) -> tuple[int, int, int]:
        """Levels, tensors, dimensions."""
        return len(self.hardware.level), len(self.tensors.info), len(self.rules.sizes)


def distinct_shifts(problem: Problem, tensor: int) -> int:
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
    projection, dims, info, dense = [], [], [], True
    for number, tensor in enumerate(problem.tensors):
        matrix = problem.projection_matrix(tensor)
        displacement, windowed = np.zeros((2, len(problem.sizes)), np.int64)
        unit = 1
        for rank, (row, span) in enumerate(zip(matrix, _spans(problem, number), strict=True)):
            displacement += unit * row
            windowed |= ((row > 0) & ((row > 0).sum() > 1)) << rank + 1
            unit *= 1 + 3 * span  # a sum of shifts, and its difference from a shift, stay within
        windowed |= (matrix > 0).sum(axis=0) > 1
        groups = _window_groups(matrix, windowed)
        dense &= bool((matrix <= 1).all() and ((matrix > 0).sum(axis=0) <= 1).all())
        ranks = [matrix[:, [of == group for of in groups]].any(axis=1).sum() for group in groups]
        one_coordinate = [group == 1 or (group > 1 and count == 1) for group, count in zip(groups, ranks, strict=True)]
        iterated = [dim for dim, size in enumerate(problem.sizes) if size > 1]
        relevant = sorted((dim for dim in iterated if groups[dim]), key=lambda dim: groups[dim])
        irrelevant = [dim for dim in iterated if not groups[dim]]
        group_ends = {groups[dim]: dim for dim in relevant}
        ends_group = [group == 1 or (group > 1 and group_ends.get(group) == dim) for dim, group in enumerate(groups)]
        projection.append(
            list(zip(displacement, windowed, groups, matrix.sum(axis=0), one_coordinate, ends_group, strict=True))
        )
        dims.append([*relevant, *irrelevant] + [0] * (len(groups) - len(relevant) - len(irrelevant)))
        relevant_bits = sum(1 << dim for dim in relevant)
        windowed_bits = sum(1 << dim for dim in relevant if windowed[dim])
        counts = (
            max(groups, default=0) + 1,
            tensor.is_output,
            len(relevant),
            len(relevant) + len(irrelevant),
            windowed_bits,
        )
        plain = bool((matrix <= 1).all() and not windowed.any())
        iterations = math.prod(problem.sizes[dim] for dim in relevant)
        info.append((problem.tensor_words(tensor), iterations, relevant_bits, windowed.any(), plain, *counts))
    return Tensors(
        projection=table(
            projection,
            displacement=int,
            windowed=int,
            group=int,
            coefficient=float,
            one_coordinate=bool,
            ends_group=bool,
        ),
        dims=for_kernel(np.array(dims, Index).reshape(len(projection), len(problem.sizes))),
        info=table(
            info,
            words=float,
            iterations=float,
            relevant_bits=int,
            may_overlap=bool,
            plain=bool,
            groups=int,
            is_output=bool,
            relevant_dims=int,
            iterated_dims=int,
            windowed_bits=int,
        ),
        dense=dense,
        **terms_of(problem)._asdict(),
    )


def _window_groups(matrix: Ints, windowed: Ints) -> list[int]:
    """`Tensors.moves.group`: dimensions that share a coordinate, or of which a third one shares one with each, are one group."""
    groups = [int(any(column)) for column in matrix.T]
    for dim in np.flatnonzero(windowed):
        if groups[dim] == 1:
            reached, members = {int(dim)}, set[int]()
            while reached:
                members |= reached
                rows = matrix[:, sorted(members)].any(axis=1)
                reached = set(np.flatnonzero(matrix[rows].any(axis=0)).tolist()) - members
            number = max(1, *groups) + 1
            for member in members:
                groups[member] = number
    return groups


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
    rules, tensors = rules_of(problem, architecture, skeleton), tensors_of(problem)
    meshes = [architecture.mesh(targets[number]) for number in holds] + [architecture.mesh(len(architecture.clusters))]
    levels: list[tuple[float, ...]] = []
    stop = 0
    for number, entry in enumerate(holds):
        # the temporal slot of the next entry that holds is still a loop of this level
        end = holds[number + 1] if number + 1 < len(holds) else len(skeleton)
        level_slots = [
            slot
            for slot in slots
            if (slot.entry > entry or (slot.entry == entry and slot.spatial))
            and (slot.entry < end or (slot.entry == end and not slot.spatial))
        ]
        start, stop = stop, stop + len(level_slots)
        mesh, inner_mesh, network = meshes[number], meshes[number + 1], clusters[entry].fanout.network
        levels.append(
            (
                start,
                stop,
                entry,
                _mesh_x(inner_mesh),
                inner_mesh.get("Y", 1),
                math.prod(n // mesh.get(axis, 1) for axis, n in inner_mesh.items() if axis != "Y"),
                inner_mesh.get("Y", 1) // mesh.get("Y", 1),
                network.energy_per_hop_pj,
                network.energy_per_router_pj,
                network.energy_per_ingress_pj,
                any(memory.technology == "dram" for memory in clusters[entry].memories),
            )
        )
    blocks = np.cumsum([not slot.spatial for slot in slots]) - 1
    temporal = sum(not slot.spatial for slot in slots)
    rows, may_share = [], []
    for slot, block in zip(slots, blocks, strict=True):
        fanout = clusters[slot.entry].fanout
        order = temporal + slot.entry if slot.spatial else block
        rows.append((slot.entry, placed or not slot.spatial, order, not slot.spatial, fanout.axis == "Y"))
        may_share.append([fanout.reduction if tensor.is_output else fanout.multicast for tensor in problem.tensors])
    memory_index = for_kernel(rules.memory[holds])
    memory = _memories(problem, architecture, {clusters[entry].name for entry in holds})
    unthrottled = np.minimum(memory["read_bandwidth"], memory["write_bandwidth"]) / (
        2.0 * np.maximum(memory["tensors"], 1.0)
    )
    hardware = Hardware(
        slot=table(rows, entry=Index, ordered=bool, order=Index, temporal=bool, vertical=bool),
        may_share=for_kernel(np.array(may_share, np.bool_).reshape(len(slots), len(problem.tensors))),
        level=table(
            levels,
            **dict.fromkeys(("start", "stop", "holds"), Index),
            **dict.fromkeys(("across", "down", "width", "height"), int),
            **dict.fromkeys(("hop_energy", "router_energy", "ingress_energy"), float),
            in_dram=bool,
        ),
        memory_index=memory_index,
        unthrottled_units=for_kernel(unthrottled[memory_index] if tensors.dense else np.zeros(memory_index.shape)),
        slices=for_kernel(np.take_along_axis(rules.slices, np.maximum(rules.memory[holds], 0), axis=0)),
        memory=memory,
        compute_energy_pj=problem.macs * architecture.compute.energy_per_operation_pj,
        cycles_per_operation=float(architecture.compute.cycles_per_operation),
    )
    return Tables(
        rules=rules,
        slots=slots_of_entries(slots, len(skeleton)),
        tensors=tensors,
        hardware=hardware,
        max_subclusters=max(math.prod(mesh.values()) for mesh in meshes),
        has_network_energy=any(hardware.level[f"{kind}_energy"].any() for kind in ("hop", "router", "ingress")),
    )


def _memories(problem: Problem, architecture: Architecture, visited: set[str]) -> Records:
    """`Hardware.memory`; memories of clusters that no entry visits are off."""
    names = [memory.name for memory in architecture.memories]
    rows = []
    for cluster, instances in zip(architecture.clusters, architecture.instances, strict=False):
        for memory in cluster.memories:
            gate, leaking = architecture.switch_of(memory.name)
            energies = memory.read_energy_pj, memory.write_energy_pj, memory.accumulation_energy_pj
            bandwidths = memory.read_bandwidth_words_per_cycle, memory.write_bandwidth_words_per_cycle
            slices, widest = memory.slices_per_word, max(memory.slices_of(tensor) for tensor in problem.tensors)
            limits = [math.inf if bandwidth is None else bandwidth * slices for bandwidth in bandwidths]
            leakage = memory.leakage_pj_per_cycle * leaking if cluster.name in visited else 0.0
            built = instances // memory.instances_per_macro
            block = memory.block_words * slices
            tensors = sum(memory.may_hold(tensor) for tensor in problem.tensors)
            rows.append((built, *energies, block, *limits, widest, leakage, names.index(gate), tensors))
    fields = "built read_energy write_energy update_energy block read_bandwidth write_bandwidth widest leakage"
    return table(rows, **dict.fromkeys(fields.split(), float), gate=int, tensors=float)


def _mesh_x(mesh: dict[str, int]) -> int:
    return math.prod(n for axis, n in mesh.items() if axis != "Y")
