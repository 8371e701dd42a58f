"""Timeloop's counting, taken literally: visit the loop nest, compare tiles, count words. Slow on purpose.

It is the reference for the closed forms of the cost model, and does not use them. Every temporal loop is visited at
iterations 0 and 1 only; iteration 1 represents all later ones. At each visit the tile of every child is compared with the
tile of its previous visit, and the new words are counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product

from tilewright.reports import Delivery, LevelReport, NetworkReport, Report, TensorCounts
from tilewright.schema.architecture import Architecture, Cluster, Memory
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor

Vector = tuple[int, ...]


@dataclass(frozen=True)
class Temporal:
    dimension: str
    trips: int
    step: int


@dataclass(frozen=True)
class Spatial:
    dimension: str
    trips: int
    step: int
    cluster: Cluster
    unicast: tuple[str, ...]

    def shares(self, tensor: Tensor) -> bool:
        """Whether one access may serve several sub-clusters."""
        fanout = self.cluster.fanout
        return tensor.name not in self.unicast and (fanout.reduction if tensor.is_output else fanout.multicast)


@dataclass
class StorageLevel:
    """A holding entry and the loops down to the next one."""

    cluster: Cluster
    position: int
    keep: tuple[str, ...]
    tile: dict[str, int]
    temporal: list[Temporal] = field(default_factory=list)
    along_y: list[Spatial] = field(default_factory=list)
    along_x: list[Spatial] = field(default_factory=list)
    physical: tuple[int, int] = (1, 1)
    """Fanout to the next level along X and Y."""
    has_fanout: bool = True
    """The next level is of another cluster, so words pass the fanout of this one."""
    unlinked: set[str] = field(default_factory=set)
    """Tensors, by name or role, that neighbours below do not forward."""

    @property
    def spatial(self) -> list[Spatial]:
        return self.along_y + self.along_x

    @property
    def children(self) -> int:
        return math.prod(loop.trips for loop in self.spatial)


@dataclass
class Flow:
    """Words between a level and the next, per instance of the level: (group size, number of such groups) -> figure."""

    accesses: dict[tuple[int, int], float] = field(default_factory=dict)
    hops: dict[tuple[int, int], float] = field(default_factory=dict)
    links: float = 0.0
    share: float = 0.0

    @property
    def content(self) -> float:
        return sum(self.accesses.values())

    @property
    def delivered(self) -> float:
        return sum(size * words for (size, _), words in self.accesses.items())


@dataclass(frozen=True)
class Piece:
    """Words of the box [low, high), except those of the box `corner` if there is one."""

    low: Vector
    high: Vector
    corner: tuple[Vector, Vector] | None = None

    @property
    def words(self) -> int:
        return volume(self.low, self.high) - (volume(*self.corner) if self.corner else 0)

    def moved(self, by: Vector) -> Piece:
        corner = self.corner and (plus(self.corner[0], by), plus(self.corner[1], by))
        return Piece(plus(self.low, by), plus(self.high, by), corner)


def plus(a: Vector, b: Vector) -> Vector:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def minus(a: Vector, b: Vector) -> Vector:
    return tuple(x - y for x, y in zip(a, b, strict=True))


def volume(low: Vector, high: Vector) -> int:
    return math.prod(max(0, h - lo) for lo, h in zip(low, high, strict=True))


def rounded(value: float) -> int:
    """Halves away from zero."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def whole_box(low: Vector, size: Vector) -> Piece:
    return Piece(low, plus(low, size))


def without(now: Vector, before: Vector, size: Vector) -> Piece:
    """The box at `now` minus the equal box at `before`; equal sets give equal pieces."""
    high = plus(now, size)
    cut_low = tuple(map(max, now, before))
    cut_high = tuple(map(min, high, plus(before, size)))
    if not volume(cut_low, cut_high):
        return whole_box(now, size)
    differing = [axis for axis in range(len(now)) if now[axis] != before[axis]]
    if len(differing) > 1:
        return Piece(now, high, (cut_low, cut_high))
    axis = differing[0]  # the rest is a box: say it as a box
    low, top = list(now), list(high)
    if now[axis] > before[axis]:
        low[axis] = cut_high[axis]
    else:
        top[axis] = cut_low[axis]
    return Piece(tuple(low), tuple(top))


def levels_of(mapping: Mapping, architecture: Architecture) -> list[StorageLevel]:
    levels: list[StorageLevel] = []
    incoming = mapping.entries[0].temporal_tile_sizes
    for entry in mapping.entries:
        position = architecture.cluster_index[entry.target]
        cluster = architecture.clusters[position]
        for name in entry.temporal_order:
            trips = -(-incoming[name] // entry.temporal_tile_sizes[name])
            if trips > 1:
                levels[-1].temporal.append(Temporal(name, trips, entry.temporal_tile_sizes[name]))
        if entry.keep is not None:
            levels.append(StorageLevel(cluster, position, entry.keep, dict(entry.temporal_tile_sizes)))
        for name in entry.spatial_order or tuple(entry.spatial_tile_sizes):
            trips = -(-entry.temporal_tile_sizes[name] // entry.spatial_tile_sizes[name])
            if trips > 1:
                loop = Spatial(name, trips, entry.spatial_tile_sizes[name], cluster, entry.unicast)
                (levels[-1].along_y if cluster.fanout.axis == "Y" else levels[-1].along_x).append(loop)
        incoming = entry.spatial_tile_sizes
    for level, end in zip(levels, [*(level.position for level in levels[1:]), len(architecture.clusters)], strict=True):
        level.has_fanout = level.position != end
        fanouts = [cluster.fanout for cluster in architecture.clusters[level.position : end]]
        level.unlinked = {name for fanout in fanouts for name in fanout.unlinked}
        level.physical = (
            math.prod(fanout.size for fanout in fanouts if fanout.axis != "Y"),
            math.prod(fanout.size for fanout in fanouts if fanout.axis == "Y"),
        )
    return levels


class Walker:
    """Counts for one tensor."""

    def __init__(self, problem: Problem, tensor: Tensor, levels: list[StorageLevel], link_transfers: bool) -> None:
        self.problem, self.tensor, self.levels, self.link_transfers = problem, tensor, levels, link_transfers

    def vector(self, dimension: str, step: int) -> Vector:
        return tuple(rank.terms.get(dimension, 0) * step for rank in self.tensor.projection)

    def box(self, extents: dict[str, int]) -> Vector:
        return tuple(
            1 + sum(c * (extents[name] - 1) for name, c in rank.terms.items()) for rank in self.tensor.projection
        )

    def flow(self, index: int) -> Flow:
        """Between level `index` and the next, before bypassing."""
        level = self.levels[index]
        fanout = Children(self, level)
        flow = Flow()
        loops = [loop for outer in self.levels[: index + 1] for loop in outer.temporal]
        before: Piece | None = None
        linked = self.link_transfers and not level.unlinked & {self.tensor.name, self.tensor.role}
        if index == len(self.levels) - 1:  # compute has no register: every operation fetches its words, moved or not
            size, links = self.box(dict.fromkeys(self.problem.dimensions, 1)), linked
            pieces: Iterator[tuple[int, Piece | None]] = (
                (weight, whole_box(low, size)) for weight, low in self.visits(loops)
            )
        else:
            size = self.box(self.levels[index + 1].tile)
            # A loop with nothing inside that leaves the tile where it is brings no words; but as the visit before
            # every other visit then brought none, no neighbour has anything to pass on.
            links = linked
            while loops and not any(self.vector(loops[-1].dimension, loops[-1].step)):
                loops.pop()
                links = False
            pieces = self.pieces(loops, size)
        for weight, piece in pieces:
            if piece is not None:
                fanout.deliver(flow, weight, piece, before if links else None)
            before = piece
        flow.share = flow.delivered / level.children
        return flow

    def visits(self, loops: list[Temporal]) -> Iterator[tuple[int, Vector]]:
        """(weight, position), iterations 0 and 1 of every loop, the innermost fastest."""

        def visit(depth: int, weight: int, low: Vector) -> Iterator[tuple[int, Vector]]:
            if depth == len(loops):
                yield weight, low
                return
            loop = loops[depth]
            yield from visit(depth + 1, weight, low)
            yield from visit(depth + 1, weight * (loop.trips - 1), plus(low, steps[depth]))

        steps = [self.vector(loop.dimension, loop.step) for loop in loops]
        return visit(0, 1, self.vector("", 0))

    def pieces(self, loops: list[Temporal], size: Vector) -> Iterator[tuple[int, Piece | None]]:
        """(weight, words that are new; None if none) of every visit."""
        last: Vector | None = None
        stride: Vector | None = None
        for weight, low in self.visits(loops):
            if last is None:
                yield weight, whole_box(low, size)
            elif low == last:
                yield weight, None
            else:
                move = minus(low, last)
                if stride is None or stride == move:
                    stride = move
                    yield weight, without(low, last, size)
                else:
                    stride = None
                    yield weight, whole_box(low, size)
            last = low


@dataclass(frozen=True)
class Child:
    x: int
    y: int
    offset: Vector
    group: Vector
    """Children with equal offset and group can be served at once."""


class Children:
    """The children of one instance of a level, at their places in the array."""

    def __init__(self, walker: Walker, level: StorageLevel) -> None:
        width = max(level.physical[0], math.prod(loop.trips for loop in level.along_x))
        height = max(level.physical[1], math.prod(loop.trips for loop in level.along_y))
        self.centre = (height - 1) / 2
        self.unrolls = bool(level.spatial)
        self.children: list[Child] = []
        for number, at in enumerate(product(*(range(loop.trips) for loop in level.spatial))):
            offset, group = walker.vector("", 0), []
            for loop, i in zip(level.spatial, at, strict=True):
                offset = plus(offset, walker.vector(loop.dimension, i * loop.step))
                group.append(0 if loop.shares(walker.tensor) else i)
            self.children.append(Child(number % width, number // width, offset, tuple(group)))
        self.places = {(child.x, child.y): child for child in self.children}
        self.all_groups = self.groups(self.children)
        self.by_shift: dict[Vector, tuple[dict[int, list[float]], int]] = {}

    def groups(self, children: list[Child]) -> dict[int, list[float]]:
        """Group size -> the hops to each group of that size."""
        members: dict[tuple[Vector, Vector], list[Child]] = {}
        for child in children:
            members.setdefault((child.offset, child.group), []).append(child)
        result: dict[int, list[float]] = {}
        for group in members.values():
            result.setdefault(len(group), []).append(self.hops(group))
        return result

    def hops(self, group: list[Child]) -> float:
        if not self.unrolls:
            return 0.0
        total = float(max(child.x for child in group))
        for column in {child.x for child in group}:
            rows = [child.y for child in group if child.x == column]
            total += max(0.0, self.centre - min(rows)) + max(0.0, max(rows) - self.centre)
        return total

    def deliver(self, flow: Flow, weight: int, piece: Piece, before: Piece | None) -> None:
        """Count one visit: `piece` to every child, moved by its offset; `before`: that of the visit before."""
        groups, linked = self.all_groups, 0
        if before is not None and len(self.children) > 1:
            shift = minus(piece.low, before.low)
            if piece == before.moved(shift):
                groups, linked = self.passing(shift)
        for size, hops in groups.items():
            key = (size, len(hops))
            words = weight * piece.words * len(hops)
            flow.accesses[key] = flow.accesses.get(key, 0) + words
            flow.hops[key] = flow.hops.get(key, 0.0) + words * sum(hops) / len(hops)
        flow.links += weight * piece.words * linked

    def passing(self, shift: Vector) -> tuple[dict[int, list[float]], int]:
        """Return the groups that the parent still serves, and the number of children that a neighbour serves.

        The words of every child are those of its previous visit, moved by `shift`.
        """
        if shift not in self.by_shift:
            rest = [child for child in self.children if not self.neighbour_has(child, shift)]
            groups = self.groups(rest)
            fewer = sum(map(len, groups.values())) < sum(map(len, self.all_groups.values()))
            self.by_shift[shift] = (groups, len(self.children) - len(rest)) if fewer else (self.all_groups, 0)
        return self.by_shift[shift]

    def neighbour_has(self, child: Child, shift: Vector) -> bool:
        wanted = plus(child.offset, shift)
        around = ((child.x + dx, child.y + dy) for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)))
        return any(place in self.places and self.places[place].offset == wanted for place in around)


@dataclass
class Row:
    """A kept tensor at a level."""

    tensor: Tensor
    level: StorageLevel
    memory: Memory
    counts: TensorCounts


def walk(
    problem: Problem,
    architecture: Architecture,
    mapping: Mapping,
    link_transfers: bool = True,
    by: type[Walker] = Walker,
) -> Report:
    """The full account of a legal mapping with perfect factors."""
    levels = levels_of(mapping, architecture)
    utilized = [1]
    for level in levels:
        utilized.append(utilized[-1] * level.children)
    rows: list[Row] = []
    networks: list[NetworkReport] = []
    for tensor in problem.tensors:
        walker = by(problem, tensor, levels, link_transfers)
        flows = [walker.flow(index) for index in range(len(levels))]
        peers = [0.0, *(flow.links / count for flow, count in zip(flows, utilized[1:-1], strict=False))]
        shares = [0.0, *(flow.share for flow in flows[:-1])]
        parts = partitions(walker)
        fold_bypassed(tensor, levels, flows)
        backing = next(index for index, level in enumerate(levels) if tensor.name in level.keep)
        shares[backing] = peers[backing] = 0.0  # nothing fills the outermost level that keeps the tensor
        for flow in flows[:backing]:
            flow.accesses, flow.links = {}, 0.0
        for index, level in enumerate(levels):
            networks.append(network(tensor, level, flows[index], parts[index], utilized[index]))
            memory = level.cluster.memory_for(tensor)
            if tensor.name in level.keep and memory is not None:
                moved = movements(tensor, flows[index].content, shares[index], peers[index], parts[index])
                tile = problem.tile_words(tensor, level.tile)
                existing = architecture.instances[level.position]
                energy = access_energy(memory, tensor, moved) * min(
                    utilized[index], existing // memory.instances_per_macro
                )
                rows.append(Row(tensor, level, memory, counts(moved, utilized[index], tile, parts[index], energy)))
    return report(problem, architecture, levels, rows, networks, dict(zip(map(id, levels), utilized, strict=False)))


def fold_bypassed(tensor: Tensor, levels: list[StorageLevel], flows: list[Flow]) -> None:
    for index in reversed(range(1, len(levels))):
        if tensor.name not in levels[index].keep:
            outer = flows[index - 1]
            factor = flows[index].content * levels[index - 1].children / outer.delivered
            outer.accesses = {key: words * factor for key, words in outer.accesses.items()}
            outer.links = 0.0


def partitions(walker: Walker) -> list[int]:
    """Words of the tensor that one instance of each level answers for."""
    result = [volume(walker.vector("", 0), walker.box(dict(walker.problem.dimensions)))]
    for level, child in zip(walker.levels[:-1], walker.levels[1:], strict=True):
        around = dict(child.tile)
        for loop in level.spatial:
            around[loop.dimension] *= loop.trips
        tile, union = (math.prod(walker.box(extents)) for extents in (child.tile, around))
        result.append(result[-1] * tile // union)
    return result


def movements(tensor: Tensor, content: float, share: float, peer: float, part: int) -> tuple[int, int, int]:
    """Reads, fills, updates of one instance. The first partial sum of a word needs no read."""
    if not tensor.is_output:
        return rounded(content + peer), math.trunc(share + peer), 0
    back = max(0, rounded(content + peer - part))
    down = max(0, rounded(share + peer - part))
    return back, down, rounded(content)


def words_of(memory: Memory, tensor: Tensor, values: int) -> Fraction:
    """Of as many bits as the values have."""
    bits = memory.bits_per_value.get(tensor.name) or memory.bits_per_value.get(tensor.role) or memory.word_bits
    return Fraction(values * bits, memory.word_bits)


def access_energy(memory: Memory, tensor: Tensor, moved: tuple[int, int, int]) -> float:
    energies = (memory.read_energy_pj, memory.write_energy_pj, memory.accumulation_energy_pj)
    return sum(
        math.ceil(words_of(memory, tensor, values) / memory.block_words) * energy
        for values, energy in zip(moved, energies, strict=True)
    )


def counts(moved: tuple[int, int, int], instances: int, tile: int, part: int, energy: float) -> TensorCounts:
    return TensorCounts(
        reads=moved[0],
        fills=moved[1],
        updates=moved[2],
        instances=instances,
        tile_words=tile,
        partition_words=part,
        energy_pj=energy,
    )


def network(tensor: Tensor, level: StorageLevel, flow: Flow, part: int, utilized: int) -> NetworkReport:
    network = level.cluster.fanout.network
    accesses = {key: rounded(words) for key, words in flow.accesses.items()}
    if tensor.is_output and any(memory.technology == "dram" for memory in level.cluster.memories):
        kept = tensor.name in level.keep  # DRAM cannot add: what is there comes up first and is written back
        accesses = {key: words + max(0, words - part) if kept else 0 for key, words in accesses.items()}
    accesses = {key: words for key, words in accesses.items() if words}
    hops = sum(flow.hops[key] for key in accesses)
    routers = sum(math.trunc((1 + flow.hops[key] // words) * words) for key, words in accesses.items())
    energy = hops * network.energy_per_hop_pj + routers * network.energy_per_router_pj
    energy += sum(accesses.values()) * network.energy_per_ingress_pj
    energy += flow.links * (network.energy_per_hop_pj + 2 * network.energy_per_router_pj)
    energy *= level.has_fanout
    ingresses = sum(accesses.values())
    return NetworkReport(
        name=level.cluster.name,
        tensor=tensor.name,
        ingresses=ingresses,
        deliveries=tuple(
            Delivery(multicast=size, scatter=groups, accesses=words, hops=flow.hops[size, groups] / words)
            for (size, groups), words in accesses.items()
        ),
        link_transfers=rounded(flow.links),
        spatial_reductions=sum((size - 1) * words for (size, _), words in accesses.items()) if tensor.is_output else 0,
        hops=hops / ingresses if ingresses else 0.0,
        energy_pj=energy * utilized,
    )


def report(
    problem: Problem,
    architecture: Architecture,
    levels: list[StorageLevel],
    rows: list[Row],
    networks: list[NetworkReport],
    utilized: dict[int, int],
) -> Report:
    operations = math.prod(loop.trips for level in levels for loop in level.temporal)
    cycles = operations * architecture.compute.cycles_per_operation
    throttling = [
        throttled(memory, [row for row in rows if row.memory is memory], cycles) for memory in architecture.memories
    ]
    total = max(cycles, *throttling)
    tables = []
    for cluster in architecture.clusters:
        here = [level for level in levels if level.cluster == cluster]
        for memory in cluster.memories if here else ():
            mine = {row.tensor.name: row.counts for row in rows if row.memory is memory}
            leaked = memory.leakage_pj_per_cycle * total * leaking(memory, architecture, rows)
            tables.append(
                LevelReport(
                    name=memory.name,
                    instances=utilized[id(here[0])],
                    cycles=throttled(memory, [row for row in rows if row.memory is memory], cycles),
                    energy_pj=sum(row.energy_pj for row in mine.values()) + leaked,
                    leakage_pj=leaked,
                    tensors=FrozenDict(mine),
                )
            )
    compute_energy = problem.macs * architecture.compute.energy_per_operation_pj
    energy = compute_energy + sum(table.energy_pj for table in tables) + sum(row.energy_pj for row in networks)
    return Report(
        model="walk",
        problem=problem.name,
        valid=True,
        macs=problem.macs,
        cycles=total,
        energy_pj=energy,
        edp=energy * total,
        utilization=problem.macs / (architecture.compute_instances * total),
        compute_energy_pj=compute_energy,
        levels=tuple(tables),
        networks=tuple(networks),
    )


def leaking(memory: Memory, architecture: Architecture, rows: list[Row]) -> float:
    """Instances that leak: those in use, or all that are switched on with those of another memory in use."""

    def in_use(name: str) -> int:
        return max((row.counts.instances for row in rows if row.memory.name == name), default=1)

    def exist(name: str) -> int:
        return architecture.instances[architecture.cluster_index[architecture.cluster_of(name).name]]

    switch = memory.power_gated_at or memory.name
    switched = exist(memory.name) / exist(switch)
    return in_use(memory.name) if switched <= 1 else switched * in_use(switch)


def throttled(memory: Memory, rows: list[Row], cycles: int) -> int:
    """Cycles that the bandwidth makes of `cycles`."""
    read = written = 0.0
    for row in rows:  # one after another: `sum` rounds otherwise since Python 3.12
        read += float(words_of(memory, row.tensor, row.counts.reads)) / cycles
        written += float(words_of(memory, row.tensor, row.counts.fills + row.counts.updates)) / cycles
    slowdown = 1.0
    for need, limit in (
        (read, memory.read_bandwidth_words_per_cycle),
        (written, memory.write_bandwidth_words_per_cycle),
        (read + written, memory.shared_bandwidth_words_per_cycle),
    ):
        if limit is not None and need:
            slowdown = min(slowdown, limit / need)
    return math.ceil(cycles / slowdown)
