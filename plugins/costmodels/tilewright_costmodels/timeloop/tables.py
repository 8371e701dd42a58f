"""Tables of a problem and an architecture, as the kernels read them.

Loops are grouped by level, as in Timeloop. A storage entry opens a level; its loops are the slots
up to the next storage entry, including the temporal slot of that entry.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import Index, Records, for_kernel, passed_by_pointer, table
from tilewright.mapspace.batch import Bools, Floats, Ints, Positions
from tilewright.mapspace.rules.tables import Orders, Rules, rules_of, slots_of_entries, terms_of
from tilewright.mapspace.skeleton import Skeleton, Slot
from tilewright.prices import Price, operations_pj, price_table, prices_of
from tilewright.schema.architecture import Architecture, Network
from tilewright.schema.problem import Problem


@passed_by_pointer
class Tensors(NamedTuple):
    """Tables of the problem. Shapes: T tensors, D dimensions."""

    projection: Records
    """[T, D]: how the tensor depends on a dimension.

    `displacement`: shift of a tile per iteration, as one number; shifts that can be compared have
    different numbers. `windowed`: coordinates that the dimension shares with others, as bits; bit
    0: it moves several coordinates. `group`: 0 if the dimension is irrelevant, 1 if it has a
    coordinate of its own, else the window group that it belongs to. `coefficient`: sum of its coefficients.
    `one_coordinate`: the group has one coordinate. `ends_group`: it is the last of its group in `dims`."""
    dims: NDArray[np.uint32]
    """[T, D]: dimensions with more than one iteration: relevant ones group by group, then irrelevant ones."""
    info: Records
    """[T]: the tensor's words; iterations of its relevant dimensions; these dimensions as bits.

    `may_overlap`: tiles of different steps or sub-clusters may overlap. `plain`: each coordinate is
    one dimension with coefficient 1. `groups`: one more than the last group. `relevant_dims`,
    `iterated_dims`: how many of `dims` are relevant, and how many there are. `windowed_bits`:
    relevant dimensions that move several or shared coordinates, as bits."""
    dense: bool
    """Whether no tile has holes."""
    start: NDArray[np.uint32]
    term: Records
    """Coordinates, as in `Terms`."""


@passed_by_pointer
class Hardware(NamedTuple):
    """Tables of an architecture under a skeleton. Shapes: S slots, L levels, M memories, T tensors."""

    slot: Records
    """[S]: `entry`; `temporal`; `vertical`: it unrolls along Y. `ordered`: its loops have an order
    of their own, in row `order`."""
    may_share: Bools
    """[S, T]: whether the fanout can multicast an operand, or reduce an output."""
    may_link: Bools
    """[L, T]: whether neighbours below the level may forward the tensor."""
    level: Records
    """[L]: `start`, `stop`: its slots. `holds`: its storage entry. `across`, `down`: instances of the next level that
    exist along X and Y on the chip. `width`, `height`: physical fanout to the next level along X and Y. `hop_energy`,
    `router_energy`, `ingress_energy`: pJ of the network below. `in_dram`: DRAM, which cannot add."""
    memory_index: Ints
    """[L, T]: index of the memory that would hold the tensor (-1: none)."""
    slices: Floats
    """[L, T]: slices (see `Memory.slices_per_word`) of one value in that memory."""
    unthrottled_units: Floats
    """[L, T]: number of compute units below an instance up to which no bandwidth of that memory can
    bind. Each unit reads or writes at most two words of a tensor per step."""
    memory: Records
    """[M]: rows as `tilewright.prices.Price`."""
    compute_energy_pj: float
    """Energy of all operations."""
    cycles_per_operation: float
    first_fills: bool
    """Count first writes of outputs as fills."""


@passed_by_pointer
class Mappings(NamedTuple):
    """`n` mappings as trips. Arrays with one row hold for all mappings."""

    trips: Ints
    """[n, S, D]."""
    tiles: Ints
    """[n, S, D]: tile inside each slot. Empty if the tile is the product of the inner trips, at most the dimension."""
    order: Orders
    """[n, row, position]: dimensions, outermost first."""
    keep: Bools
    """[n, E, T]: whether the entry keeps the tensor."""
    unicast: Bools
    """[n, E, T]: whether the entry sends the tensor to each sub-cluster separately. Empty if no entry does."""


def mappings_of(trips: Ints, tiles: Ints, order: Positions, keep: Bools, unicast: Bools | None) -> Mappings:
    """Return mappings for the kernel; `unicast` is None if no entry sends a tensor separately."""
    unicast_rows = np.zeros((0, *keep.shape[1:]), np.bool_) if unicast is None else unicast
    return Mappings(
        for_kernel(trips),
        for_kernel(tiles),
        for_kernel(order.view(np.uint8)),
        for_kernel(keep),
        for_kernel(unicast_rows),
    )


def all_slots(skeleton: Skeleton) -> list[Slot]:
    """Return a temporal and a spatial slot for every entry.

    The first entry holds whole tensors and has a spatial slot only.
    """
    return [Slot(entry, spatial, (), ()) for entry in range(len(skeleton)) for spatial in (False, True)][1:]


@dataclass(frozen=True, eq=False)
class Tables:
    """Everything computed once for a skeleton.

    `max_subclusters`: maximum number of sub-clusters of one parent. `has_network_energy`: some
    network costs energy.
    """

    rules: Rules
    slots: Ints
    """Slots of each entry, as `slots_of_entries` returns them."""
    tensors: Tensors
    hardware: Hardware
    max_subclusters: int
    has_network_energy: bool

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of levels, tensors and dimensions."""
        return len(self.hardware.level), len(self.tensors.info), len(self.rules.sizes)


def distinct_shifts(problem: Problem, tensor: int) -> int:
    """Return how many numbers are needed so that different shifts of a tensor's tiles have different numbers."""
    return math.prod(1 + 3 * span for span in _spans(problem, tensor))


def _spans(problem: Problem, tensor: int) -> list[int]:
    """Return the maximum distance of two tiles per coordinate."""
    return [
        sum(c * (problem.dimensions[name] - 1) for name, c in rank.terms.items())
        for rank in problem.tensors[tensor].projection
    ]


def tensors_of(problem: Problem) -> Tensors:
    """Return the tables of the problem."""
    projection, dims, info, dense = [], [], [], True
    for number, tensor in enumerate(problem.tensors):
        matrix = problem.projection_matrix(tensor)
        displacement, windowed = np.zeros((2, len(problem.sizes)), np.int64)
        unit = 1
        for rank, (row, span) in enumerate(zip(matrix, _spans(problem, number), strict=True)):
            displacement += unit * row
            windowed |= ((row > 0) & ((row > 0).sum() > 1)) << rank + 1
            unit *= 1 + 3 * span  # leaves room for a sum of shifts, and for its difference from a shift
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
    """Return the group of every dimension (see `Tensors.projection`).

    Dimensions that share a coordinate are in one group, directly or through other dimensions.
    """
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
    problem: Problem,
    architecture: Architecture,
    skeleton: Skeleton,
    slots: Sequence[Slot],
    placed: bool,
    first_fills: bool,
) -> Tables | None:
    """Return the tables for mappings over a skeleton, or None if no mapping over it can be legal.

    Args:
        slots: where trips may exceed one.
        placed: mappings order their spatial loops, one row per entry after the rows of the temporal slots.
        first_fills: see `Hardware`.
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
    may_link: list[list[bool]] = []
    stop = 0
    for number, entry in enumerate(holds):
        # the temporal slot of the next storage entry belongs to this level
        end = holds[number + 1] if number + 1 < len(holds) else len(skeleton)
        level_slots = [
            slot
            for slot in slots
            if (slot.entry > entry or (slot.entry == entry and slot.spatial))
            and (slot.entry < end or (slot.entry == end and not slot.spatial))
        ]
        start, stop = stop, stop + len(level_slots)
        last = targets[end] if end < len(targets) else len(architecture.clusters)
        below = architecture.clusters[targets[entry] : last]
        may_link.append([all(cluster.fanout.links(tensor) for cluster in below) for tensor in problem.tensors])
        mesh, inner_mesh = meshes[number], meshes[number + 1]
        # words pass the fanout of a cluster once, inside its last entry
        is_last = targets[entry] not in [targets[hold] for hold in holds[number + 1 :]]
        network = clusters[entry].fanout.network if is_last else Network()
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
    visited = {clusters[entry].name for entry in holds}
    prices = prices_of(architecture)
    unthrottled = _unthrottled_units(problem, architecture, prices) if tensors.dense else np.zeros(len(prices))
    hardware = Hardware(
        slot=table(rows, entry=Index, ordered=bool, order=Index, temporal=bool, vertical=bool),
        may_share=for_kernel(np.array(may_share, np.bool_).reshape(len(slots), len(problem.tensors))),
        may_link=for_kernel(np.array(may_link, np.bool_)),
        level=table(
            levels,
            **dict.fromkeys(("start", "stop", "holds"), Index),
            **dict.fromkeys(("across", "down", "width", "height"), int),
            **dict.fromkeys(("hop_energy", "router_energy", "ingress_energy"), float),
            in_dram=bool,
        ),
        memory_index=memory_index,
        unthrottled_units=for_kernel(unthrottled[memory_index]),
        slices=for_kernel(np.take_along_axis(rules.slices, np.maximum(rules.memory[holds], 0), axis=0)),
        memory=_memories(architecture, prices, visited),
        compute_energy_pj=operations_pj(architecture.compute, problem.macs),
        cycles_per_operation=float(architecture.compute.cycles_per_operation),
        first_fills=first_fills,
    )
    return Tables(
        rules=rules,
        slots=slots_of_entries(slots, len(skeleton)),
        tensors=tensors,
        hardware=hardware,
        max_subclusters=max(math.prod(mesh.values()) for mesh in meshes),
        has_network_energy=any(hardware.level[f"{kind}_energy"].any() for kind in ("hop", "router", "ingress")),
    )


def _memories(architecture: Architecture, prices: Mapping[str, Price], visited: set[str]) -> Records:
    """Return `Hardware.memory`. Memories of clusters that no entry visits are off."""
    on = {memory.name for cluster in architecture.clusters if cluster.name in visited for memory in cluster.memories}
    return price_table(price if name in on else price._replace(leakage_pj=0.0) for name, price in prices.items())


def _unthrottled_units(problem: Problem, architecture: Architecture, prices: Mapping[str, Price]) -> Floats:
    """Return for each memory the compute units below an instance up to which none of its bandwidths can bind."""
    units = []
    for memory, price in zip(architecture.memories, prices.values(), strict=True):
        held = [memory.slices_of(tensor) for tensor in problem.tensors]
        most = sum(memory.may_hold(tensor) for tensor in problem.tensors) * max(held)
        least = min(price.read_bandwidth, price.write_bandwidth, price.shared_bandwidth / 2)
        units.append(least / (2 * max(most, 1)))
    return np.array(units)


def _mesh_x(mesh: dict[str, int]) -> int:
    """Return the instances along X; axes other than Y count as X."""
    return math.prod(n for axis, n in mesh.items() if axis != "Y")
