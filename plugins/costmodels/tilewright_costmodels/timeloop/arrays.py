"""The same figures for a whole batch, in arrays, with no Python object per mapping.

Arrays here are [..., mapping], so that every operation runs over contiguous mappings. Counts are float64, exact below
2**53 (the model refuses problems beyond). Rows that are not legal are dropped before any traffic is counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.mapspace.batch import Bools, Floats, MappingBatch
from tilewright.plugin.costmodel import Costs
from tilewright.schema.architecture import Architecture, Cluster, Memory
from tilewright.schema.problem import Problem
from tilewright_costmodels.timeloop.account import account
from tilewright_costmodels.timeloop.array import Array, SpatialLoop
from tilewright_costmodels.timeloop.moves import Flow, Indices, Moves, Nest
from tilewright_costmodels.timeloop.operand import LevelPlan, Operand, plan_levels

CHUNK = 4096
"""Mappings per pass: small enough for the working set to stay in cache."""


def wires_cost(cluster: Cluster) -> bool:
    """Whether the wires below a cluster take energy."""
    wires = cluster.fanout.network
    return any((wires.energy_per_hop_pj, wires.energy_per_router_pj, wires.energy_per_ingress_pj))


class ArrayPricer:
    """Prices batches for one problem and architecture."""

    def __init__(self, problem: Problem, architecture: Architecture, link_transfers: bool) -> None:
        self.problem = problem
        self.architecture = architecture
        self.link_transfers = link_transfers
        self.operands = [Operand(problem, tensor) for tensor in problem.tensors]
        self.wired = any(wires_cost(cluster) for cluster in architecture.clusters)
        self.singly = self.wired or not all(operand.exact for operand in self.operands if operand.sliding)
        """Price one mapping at a time: groups' hops are needed, or shifts are too long for the arrays."""
        self.sharings: dict[tuple[int, int, bytes], tuple[int, int]] = {}
        """Memo of `Array.sharing`: (level, tensor, configuration) -> deliveries, linked children."""

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"sharings": {}}

    def price(self, batch: MappingBatch) -> Costs:
        """Prices of all mappings; `inf` where the model would not take one."""
        count = len(batch)
        valid = np.zeros(count, dtype=np.bool_)
        energy = np.full(count, np.inf)
        cycles = np.full(count, np.inf)
        if all(entry.target in self.architecture.cluster_index for entry in batch.skeleton.entries):
            plans = plan_levels(batch.skeleton, self.architecture)
            for start in range(0, count, CHUNK):
                part = batch.take(slice(start, start + CHUNK))
                chunk = Chunk(self, part, plans)
                rows = start + chunk.rows
                valid[rows] = True
                energy[rows], cycles[rows] = chunk.price()
        return Costs(valid, energy, cycles)


@dataclass
class Splits:
    """The spatial loops of one level: (entry, dimension, trips [mapping])."""

    loops: list[tuple[int, int, Floats]]
    children: Floats


@dataclass
class Moved:
    """What one tensor moves, per level: `content` as Timeloop calls it, words that leave one instance; `shares` and
    `links` of the traffic to its children; `partitions`, words that one instance answers for."""

    shares: list[Floats]
    links: list[Floats | None]
    partitions: list[Floats]
    content: list[Floats] = field(default_factory=list)


@dataclass
class Chunk:
    """One pass over at most CHUNK mappings."""

    pricer: ArrayPricer
    batch: MappingBatch
    plans: tuple[LevelPlan, ...]
    rows: Indices = field(init=False)
    """The legal mappings."""

    def __post_init__(self) -> None:
        with np.errstate(divide="ignore", invalid="ignore"):
            self._tiles()
        self.rows = np.flatnonzero(self._legal())

    # -- tiles and legality, over all mappings ---------------------------------------------------------------

    def _tiles(self) -> None:
        batch = self.batch
        sizes = np.array(batch.problem.sizes, dtype=np.int64)
        self.temporal: dict[int, Floats] = {}
        """Entry -> trips [dim, mapping], for entries that step in some mapping."""
        self.spatial: dict[int, Floats] = {}
        self.tile: list[Floats] = []
        """Entry -> temporal tile [dim, mapping]."""
        self.split_tile: list[Floats] = []
        self.sound = np.ones(len(batch), dtype=np.bool_)
        before: Floats = np.broadcast_to(sizes[:, None].astype(np.float64), (len(sizes), len(batch)))
        for entry in range(len(batch.skeleton)):
            after = self._step(entry, before, batch.temporal[:, entry], self.temporal)
            self.tile.append(after)
            before = self._step(entry, after, batch.spatial[:, entry], self.spatial)
            self.split_tile.append(before)
        if 0 in self.temporal:  # the outermost entry holds whole tensors
            self.sound &= (self.temporal.pop(0) == 1).all(axis=0)
        self.sound &= (before == 1).all(axis=0)

    def _step(self, entry: int, before: Floats, tiles: NDArray[np.int64], trips: dict[int, Floats]) -> Floats:
        after = np.ascontiguousarray(tiles.T, dtype=np.float64)
        if np.array_equal(after, before):
            return before
        ratio = before / after
        self.sound &= ((ratio == np.floor(ratio)) & (after >= 1) & (ratio >= 1)).all(axis=0)
        trips[entry] = ratio
        return after

    def _legal(self) -> Bools:
        legal = self.sound & self._keeps_legal() & self._fits_mesh()
        order = self.batch.order
        full = (1 << order.shape[2]) - 1
        for entry in self.temporal:
            legal &= np.bitwise_or.reduce(np.left_shift(1, order[:, entry].astype(np.int64)), axis=1) == full
        return legal & self._fits_memories()

    def _keeps_legal(self) -> Bools:
        batch, architecture = self.batch, self.pricer.architecture
        allowed = np.zeros(batch.keep.shape[1:], dtype=np.bool_)
        legal = np.ones(len(batch), dtype=np.bool_)
        by_cluster: dict[str, list[int]] = {}
        position = 0
        for index, slot in enumerate(batch.skeleton.entries):
            target = architecture.cluster_index[slot.target]
            cluster = architecture.clusters[target]
            last = all(later.target != slot.target for later in batch.skeleton.entries[index + 1 :])
            if target < position or (slot.holds and cluster.is_virtual) or (index in self.spatial and not last):
                legal &= False if index not in self.spatial or last else (self.spatial[index] == 1).all(axis=0)
            position = max(position, target)
            if slot.holds:
                allowed[index] = [cluster.memory_for(tensor) is not None for tensor in batch.problem.tensors]
                by_cluster.setdefault(slot.target, []).append(index)
        legal &= batch.keep[:, 0].all(axis=1)
        legal &= ~(batch.keep & ~allowed).any(axis=(1, 2))
        for entries in by_cluster.values():
            if len(entries) > 1:
                legal &= (batch.keep[:, entries].sum(axis=1) <= 1).all(axis=1)
        return legal

    def _fits_mesh(self) -> Bools:
        """Timeloop's check: instances in use, in total and along each axis, at every level and at compute."""
        architecture, skeleton = self.pricer.architecture, self.batch.skeleton
        legal = np.ones(len(self.batch), dtype=np.bool_)
        used = {"X": np.ones(len(self.batch)), "Y": np.ones(len(self.batch))}
        for number, plan in enumerate(self.plans):
            for entry in plan.splits:
                if entry in self.spatial:
                    axis = architecture.clusters[architecture.cluster_index[skeleton.entries[entry].target]].fanout.axis
                    key = "Y" if axis == "Y" else "X"
                    used[key] = used[key] * self.spatial[entry].prod(axis=0)
            inner = number == len(self.plans) - 1
            mesh = architecture.mesh(len(architecture.clusters) if inner else self.plans[number + 1].cluster_index)
            across = math.prod(n for axis, n in mesh.items() if axis != "Y")
            legal &= (used["X"] <= across) & (used["Y"] <= mesh.get("Y", 1))
        return legal

    def _fits_memories(self) -> Bools:
        need: dict[str, Floats] = {}
        usable: dict[str, int] = {}
        self.volumes: dict[tuple[int, int], Floats] = {}
        for plan in self.plans:
            cluster = self.pricer.architecture.clusters[plan.cluster_index]
            for operand in self.pricer.operands:
                memory = cluster.memory_for(operand.tensor)
                kept = self.batch.keep[:, plan.start, operand.index]
                if memory is None or memory.usable_words is None or not kept.any():
                    continue
                words = operand.words(self.tile[plan.start])
                self.volumes[plan.start, operand.index] = words
                need[memory.name] = need.get(memory.name, 0.0) + words * kept
                usable[memory.name] = memory.usable_words
        legal = np.ones(len(self.batch), dtype=np.bool_)
        for name, words in need.items():
            legal &= words <= usable[name]
        return legal

    # -- traffic and prices, over the legal mappings ---------------------------------------------------------

    def price(self) -> tuple[Floats, Floats]:
        """(energy_pj, cycles) of the legal mappings."""
        if not len(self.rows):
            return np.zeros(0), np.zeros(0)
        if self.pricer.singly:
            return self._price_singly()
        self._narrow()
        architecture = self.pricer.architecture
        compute_cycles = self.nest.iterations[-1] * architecture.compute.cycles_per_operation
        energy = np.full(len(self.rows), self.pricer.problem.macs * architecture.compute.energy_per_operation_pj)
        read: dict[str, Floats] = {}
        written: dict[str, Floats] = {}
        for operand in self.pricer.operands:
            for plan, level, reads, fills, updates in self._counts(operand):
                memory = architecture.clusters[plan.cluster_index].memory_for(operand.tensor)
                assert memory is not None
                built = architecture.instances[plan.cluster_index] // memory.instances_per_macro
                energy += access_energy(memory, reads, fills, updates) * np.minimum(self.utilized[level], built)
                read[memory.name] = read.get(memory.name, 0.0) + reads / compute_cycles
                written[memory.name] = written.get(memory.name, 0.0) + (fills + updates) / compute_cycles
        cycles = compute_cycles
        for memory in architecture.memories:
            if memory.name in read:
                slowdown = np.ones(len(self.rows))
                for rate, bandwidth in (
                    (read[memory.name], memory.read_bandwidth_words_per_cycle),
                    (written[memory.name], memory.write_bandwidth_words_per_cycle),
                ):
                    if bandwidth is not None:
                        slowdown = np.minimum(slowdown, bandwidth / np.maximum(rate, 1e-300))
                cycles = np.maximum(cycles, np.ceil(compute_cycles / slowdown))
        return energy, cycles

    def _price_singly(self) -> tuple[Floats, Floats]:
        """One mapping at a time, by the scalar form."""
        pricer = self.pricer
        accounts = [
            account(pricer.problem, pricer.architecture, self.batch[int(row)], pricer.link_transfers)
            for row in self.rows
        ]
        return (
            np.array([figures.energy_pj for figures in accounts]),
            np.array([float(figures.cycles) for figures in accounts]),
        )

    def _narrow(self) -> None:
        """Keep the legal mappings only, and lay out loops and splits by level."""
        rows = self.rows
        if len(rows) < len(self.batch):
            self.temporal = {entry: trips[:, rows] for entry, trips in self.temporal.items()}
            self.spatial = {entry: trips[:, rows] for entry, trips in self.spatial.items()}
            shared = {id(array): array[:, rows] for array in (*self.tile, *self.split_tile)}
            self.tile = [shared[id(array)] for array in self.tile]
            self.split_tile = [shared[id(array)] for array in self.split_tile]
            self.volumes = {key: words[rows] for key, words in self.volumes.items()}
        self.keep = self.batch.keep[rows]
        self.unicast = None if self.batch.unicast is None or not self.batch.unicast.any() else self.batch.unicast[rows]
        self.splits = [self._splits(plan) for plan in self.plans]
        self.utilized = [np.ones(len(rows))]
        for split in self.splits:
            self.utilized.append(self.utilized[-1] * split.children)
        self.nest = self._nest()
        self.ones = np.ones((len(self.pricer.problem.sizes), len(rows)))

    def _splits(self, plan: LevelPlan) -> Splits:
        children = np.ones(len(self.rows))
        loops = []
        for entry in plan.splits:
            if entry not in self.spatial:
                continue
            for dim, trips in enumerate(self.spatial[entry]):
                if (trips > 1).any():
                    loops.append((entry, dim, trips))
                    children = children * trips
        return Splits(loops, children)

    def _nest(self) -> Nest:
        count = len(self.rows)
        dims: list[Indices] = []
        trips: list[Floats] = []
        tiles: list[Floats] = []
        ends = []
        for plan in self.plans:
            for entry in plan.steps:
                if entry not in self.temporal:
                    continue
                able: Bools = np.any(self.temporal[entry] > 1, axis=1)
                order = self.batch.order[self.rows, entry].astype(np.intp)
                chosen = np.ascontiguousarray(order[able[order]].reshape(count, int(able.sum())).T)
                dims.append(chosen)
                trips.append(np.take_along_axis(self.temporal[entry], chosen, axis=0))
                tiles.append(np.take_along_axis(self.tile[entry], chosen, axis=0))
            ends.append(sum(len(block) for block in dims))
        empty = np.zeros((0, count))
        all_trips = np.concatenate([empty, *trips])
        products = np.cumprod(np.concatenate([np.ones((1, count)), all_trips]), axis=0)
        return Nest(
            dims=np.concatenate([empty.astype(np.intp), *dims]),
            trips=all_trips,
            tiles=np.concatenate([empty, *tiles]),
            outside=products[:-1],
            ends=ends,
            iterations=[products[end] for end in ends],
        )

    def _counts(self, operand: Operand) -> Iterator[tuple[LevelPlan, int, Floats, Floats, Floats]]:
        """(plan, level, reads, fills, updates) per instance wherever some mapping keeps the tensor; zeros elsewhere."""
        kept = [self.keep[:, plan.start, operand.index] for plan in self.plans]
        moved = self._moved(operand, kept)
        for level, plan in enumerate(self.plans):
            if not kept[level].any():
                continue
            reads, fills, updates = self._accesses(operand, moved, level)
            if not kept[level].all():
                reads, fills, updates = (np.where(kept[level], count, 0.0) for count in (reads, fills, updates))
            yield plan, level, reads, fills, updates

    def _moved(self, operand: Operand, kept: list[Bools]) -> Moved:
        """Traffic of one tensor below every level in `kept`, those that bypass it folded outward."""
        flows = self._flows(operand, kept)
        moved = Moved([flow.share for flow in flows], [flow.links for flow in flows], self._partitions(operand))
        for level in reversed(range(1, len(kept))):
            bypassed = ~kept[level]
            if bypassed.any():
                outer = flows[level - 1]
                factor = flows[level].content * self.splits[level - 1].children / outer.served
                outer.content = np.where(bypassed, outer.content * factor, outer.content)
        moved.content = [flow.content for flow in flows]
        return moved

    def _accesses(self, operand: Operand, moved: Moved, level: int) -> tuple[Floats, Floats, Floats]:
        """(reads, fills, updates) per instance of a level that keeps the tensor."""
        passed = moved.links[level - 1] if level else None
        peer: Floats | float = 0.0 if passed is None else passed / self.utilized[level]
        content, nothing = moved.content[level], np.zeros(len(self.rows))
        if not operand.tensor.is_output:
            fills = np.trunc(moved.shares[level - 1] + peer) if level else nothing
            return np.floor(content + peer + 0.5), fills, nothing
        part = moved.partitions[level]
        reads = np.maximum(0, np.floor(content + peer - part + 0.5))
        fills = np.maximum(0, np.floor(moved.shares[level - 1] + peer - part + 0.5)) if level else nothing
        return reads, fills, np.floor(content + 0.5)

    def _flows(self, operand: Operand, kept: list[Bools]) -> list[Flow]:
        flows = []
        moves = Moves(self, operand) if operand.sliding else None
        stationary = None if moves else self._stationary(operand)
        for level in range(len(self.plans)):
            children = self.splits[level].children
            deliveries = self._deliveries(operand, level)
            if level == len(self.plans) - 1:
                base = self.nest.iterations[-1]
                flows.append(Flow(base * deliveries, base * children, base, None))
                continue
            if moves:
                flows.append(moves.flow(level, deliveries))
                continue
            assert stationary is not None
            base = self.volume(operand, level + 1) * self.nest.iterations[level] / stationary[level]
            flows.append(Flow(base * deliveries, base * children, base, None))
        return flows

    def volume(self, operand: Operand, level: int) -> Floats:
        """Words of the tile held at a level."""
        key = (self.plans[level].start, operand.index)
        if key not in self.volumes:
            self.volumes[key] = operand.words(self.tile[key[0]])
        return self.volumes[key]

    def _stationary(self, operand: Operand) -> list[Floats]:
        """Per level: the trips of the loops inside the innermost one that moves the tensor's tile."""
        nest = self.nest
        moving = operand.relevant[nest.dims] & nest.turns
        last = np.zeros(len(self.rows), dtype=np.intp)
        result = []
        done = 0
        for level, end in enumerate(nest.ends):
            for row in range(done, end):
                last[moving[row]] = row + 1
            done = end
            products = np.concatenate([nest.outside[:end], nest.iterations[level][None]])
            result.append(nest.iterations[level] / products[last, np.arange(len(last))])
        return result

    def _partitions(self, operand: Operand) -> list[Floats]:
        """The part of the tensor, in words, that one instance of each level answers for (outputs only)."""
        problem = self.pricer.problem
        whole = problem.tensor_words(operand.tensor)
        parts = [np.full(len(self.rows), float(whole))]
        if not operand.tensor.is_output:
            return parts * len(self.plans)
        exact = float(whole) * float(whole) < 2**53
        for level, split in enumerate(self.splits[:-1]):
            loops = [loop for loop in split.loops if operand.relevant[loop[1]]]
            if not loops:
                parts.append(parts[-1])
                continue
            child = self.tile[self.plans[level + 1].start]
            spread = child.copy()
            for _, dim, trips in loops:
                spread[dim] = spread[dim] * trips
            tile, union = self.volume(operand, level + 1), operand.words(spread)
            if exact:
                parts.append(np.floor(parts[-1] * tile / union))
            else:
                big = [int(p) * int(t) // int(u) for p, t, u in zip(parts[-1], tile, union, strict=True)]
                parts.append(np.array(big, dtype=np.float64))
        return parts

    # -- sharing between children ----------------------------------------------------------------------------

    def _unshared(self, operand: Operand, entry: int) -> bool | Bools:
        """Whether children of an entry's split are each served separately."""
        architecture = self.pricer.architecture
        cluster = architecture.clusters[architecture.cluster_index[self.batch.skeleton.entries[entry].target]]
        fanout = cluster.fanout
        if not (fanout.reduction if operand.tensor.is_output else fanout.multicast):
            return True
        return False if self.unicast is None else self.unicast[:, entry, operand.index]

    def _deliveries(self, operand: Operand, level: int) -> Floats:
        """Different tiles among the children of one parent: deliveries per word and visit."""
        split = self.splits[level]
        different = np.ones(len(self.rows))
        if not split.loops:
            return different
        together: dict[int, list[tuple[Floats, Floats]]] = {}
        rank_of = {dim: rank for rank, terms in enumerate(operand.ranks) for dim, _ in terms}
        for entry, dim, trips in split.loops:
            apart = self._unshared(operand, entry)
            if apart is True or (operand.relevant[dim] and len(operand.ranks[rank_of[dim]]) == 1):
                different = different * trips
                continue
            if apart is not False:
                different = different * np.where(apart, trips, 1.0)
                trips = np.where(apart, 1.0, trips)
            if operand.relevant[dim]:
                step = self.split_tile[entry][dim] * operand.matrix[rank_of[dim], dim]
                together.setdefault(rank_of[dim], []).append((trips, step))
        odd = np.full(len(self.rows), not operand.separable)
        for progressions in together.values():
            distinct, unclear = _distinct_sums(progressions)
            different = different * distinct
            odd |= unclear
        if odd.any():
            rows = np.flatnonzero(odd)
            different[rows] = self.sharing(operand, level, rows, None)[0]
        return different

    def sharing(
        self, operand: Operand, level: int, rows: Indices, shift: NDArray[np.float64] | None
    ) -> tuple[Floats, Floats]:
        """(deliveries, linked children) of `Array.sharing` for some mappings, worked out once per configuration.

        `shift` is [rank, row].
        """
        plan, split = self.plans[level], self.splits[level]
        columns = [trips[rows] for _, _, trips in split.loops]
        columns += [self.split_tile[entry][dim, rows] * operand.relevant[dim] for entry, dim, _ in split.loops]
        entries = sorted({entry for entry, _, _ in split.loops})
        placed = self.batch.spatial_order
        if placed is not None:
            columns += [placed[self.rows[rows], entry, p] for entry in entries for p in range(placed.shape[2])]
        for entry in entries:
            columns.append(np.broadcast_to(self._unshared(operand, entry), len(self.rows))[rows])
        ranks = 0 if shift is None else len(shift)
        columns += [] if shift is None else list(shift)
        table = np.column_stack([np.asarray(column).astype(np.int64) for column in columns])
        unique, which = np.unique(table, axis=0, return_inverse=True)
        results = np.zeros((len(unique), 2))
        for number, row in enumerate(unique):
            key = (level, operand.index, plan.start.to_bytes(2) + bytes([ranks]) + row.tobytes())
            found = self.pricer.sharings.get(key)
            if found is None:
                found = self._share(operand, plan, split, entries, row.tolist(), ranks)
                if len(self.pricer.sharings) > 200_000:
                    self.pricer.sharings.clear()
                self.pricer.sharings[key] = found
            results[number] = found
        picked = results[which.reshape(-1)]
        return picked[:, 0], picked[:, 1]

    def _share(
        self, operand: Operand, plan: LevelPlan, split: Splits, entries: list[int], row: list[int], ranks: int
    ) -> tuple[int, int]:
        count = len(split.loops)
        dims = len(self.pricer.problem.sizes)
        orders = {}
        cursor = 2 * count
        for entry in entries:
            orders[entry] = list(range(dims))
            if self.batch.spatial_order is not None:
                orders[entry] = row[cursor : cursor + dims]
                cursor += dims
        apart = dict(zip(entries, row[cursor : cursor + len(entries)], strict=True))
        shift = tuple(row[cursor + len(entries) :]) if ranks else None
        architecture, skeleton = self.pricer.architecture, self.batch.skeleton
        loops = []
        for number in sorted(
            range(count), key=lambda i: (split.loops[i][0], orders[split.loops[i][0]].index(split.loops[i][1]))
        ):
            entry, dim, _ = split.loops[number]
            if row[number] > 1:
                cluster = architecture.clusters[architecture.cluster_index[skeleton.entries[entry].target]]
                loops.append(
                    SpatialLoop(
                        trips=row[number],
                        step=tuple(int(c) * row[count + number] for c in operand.matrix[:, dim]),
                        vertical=cluster.fanout.axis == "Y",
                        shared=not apart[entry],
                    )
                )
        array = Array(tuple(loops), plan.width, plan.height, len(operand.ranks))
        return array.service(shift)


def access_energy(memory: Memory, reads: Floats, fills: Floats, updates: Floats) -> Floats:
    """Energy of one instance, pJ: accesses are whole blocks."""
    if memory.block_words > 1:
        reads, fills, updates = (np.ceil(count / memory.block_words) for count in (reads, fills, updates))
    update = memory.write_energy_pj if memory.update_energy_pj is None else memory.update_energy_pj
    return reads * memory.read_energy_pj + fills * memory.write_energy_pj + updates * update


def _distinct_sums(progressions: list[tuple[Floats, Floats]]) -> tuple[Floats, Bools]:
    """How many different values sum(index x step) takes; and where three or more progressions leave it unclear.

    Two progressions of m and n steps a and b, divided by their common divisor, collide (m - b) x (n - a) times.
    """
    distinct = np.ones_like(progressions[0][0])
    longer = np.zeros(len(distinct), dtype=np.int64)
    for trips, _ in progressions:
        distinct = distinct * trips
        longer += trips > 1
    for i, (m, a) in enumerate(progressions):
        for n, b in progressions[i + 1 :]:
            common = np.gcd(a.astype(np.int64), b.astype(np.int64))
            distinct = distinct - np.maximum(0, m - b / common) * np.maximum(0, n - a / common)
    return distinct, longer > 2
