"""Sunstone as published, with its losses: unrolling sets, frozen dimensions, maximal tiles.

If the paper and the authors' program differ, this module follows the program (see benchmarks/sunstone.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace

import numpy as np

from tilewright.mapspace.batch import Bools, Floats, Ints, Positions
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.placement import Placement
from tilewright.mapspace.constructive.tiling import leaves, tile_tree
from tilewright.mapspace.looporders import Prefix, ordering_trie, reuse_maximal
from tilewright.mapspace.space import MapSpace
from tilewright.plugin import Costs, Run, Task, objectives
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem
from tilewright_mappers.sunstone.levels import Inter, Intra, MemorySlots, levels_of

Steps = Generator[Candidates, Costs, None]
Grow = Callable[[Candidates, int, int, list[int]], Candidates]
PARENTS = 64
"""Candidates for which the last level is decided together."""


@dataclass(frozen=True)
class ReuseChoice:
    """Choice of reuse: dimensions to unroll while one tensor is stationary, and frozen dimensions.

    Tiles grow along frozen dimensions last. `order` is set if orders are decided first.
    """

    unroll: tuple[tuple[int, ...], ...]
    frozen: tuple[frozenset[int], ...]
    order: tuple[int, ...] | None = None


class Reuse:
    """Dimensions of full reuse and of sliding reuse per tensor, and the reuse-maximal prefixes."""

    def __init__(self, problem: Problem) -> None:
        names = problem.dimension_names
        self.dims = range(len(names))
        self.full = [{d for d in self.dims if names[d] not in tensor.dimensions} for tensor in problem.tensors]
        self.part = [
            {names.index(d) for rank in tensor.projection if len(rank.terms) > 1 for d in rank.terms}
            for tensor in problem.tensors
        ]
        self.prefixes = reuse_maximal(ordering_trie(problem)) or [Prefix((), frozenset())]

    def unrolled(self, tensor: int) -> tuple[tuple[int, ...], ...]:
        """Return sets of dimensions that let two other tensors be multicast, but not this one."""
        others = [other for other in range(len(self.full)) if other != tensor]
        pairs = list(itertools.combinations(others, 2)) or [(other, other) for other in others]
        sets = {tuple(sorted((self.full[j] | self.full[k]) - self.full[tensor])) for j, k in pairs}
        return tuple(sorted(dims for dims in sets if dims))

    def frozen(self, prefix: Prefix) -> frozenset[int]:
        """Return loops of an order that reuse every possible tensor; larger tiles save nothing there."""
        able = {d: {t for t in range(len(self.full)) if d in self.full[t] | self.part[t]} for d in prefix.loops}
        return frozenset(d for d in prefix.loops if {(t, d) for t in able[d]} <= prefix.reuse)

    def reused(self, prefix: Prefix) -> set[int]:
        """Return tensors whose reuse dimensions are all in the order, as in the authors' program."""
        return {t for t, dims in enumerate(self.full) if dims and dims <= set(prefix.loops)}

    def choices(self, intra: Intra) -> list[ReuseChoice]:
        if intra == "ordering_tiling_unrolling":
            return [
                ReuseChoice(self.unrolled(tensor), (self.frozen(prefix),), self.full_order(prefix))
                for prefix in self.prefixes
                for tensor in sorted(self.reused(prefix))
            ]
        choices = []
        for tensor in range(len(self.full)):
            prefixes = {self.frozen(prefix) for prefix in self.prefixes if tensor in self.reused(prefix)}
            choices.append(ReuseChoice(self.unrolled(tensor), tuple(sorted(prefixes, key=sorted)) or (frozenset(),)))
        return choices

    def full_order(self, prefix: Prefix) -> tuple[int, ...]:
        return (*(d for d in self.dims if d not in prefix.loops), *reversed(prefix.loops))


@dataclass(frozen=True)
class PartitionedBuffer:
    """Levels that form one partitioned buffer: loops, innermost first, and spatial slots."""

    loops: tuple[int, ...]
    spatial: tuple[int, ...]


def partitioned_buffers(space: MapSpace) -> list[PartitionedBuffer]:
    """Return the groups, innermost first.

    Memories of one cluster with no spatial slot between them are one partitioned buffer.
    """
    homes = {memory.name: cluster.name for cluster in space.architecture.clusters for memory in cluster.memories}

    def cluster(level: MemorySlots) -> str | None:
        inside = None if level.loops is None else space.skeleton.entries[space.slots[level.loops].entry].inside
        return homes.get(inside or "")

    buffers: list[PartitionedBuffer] = []
    before: MemorySlots | None = None
    for level in levels_of(space):
        loops = () if level.loops is None else (level.loops,)
        if before is not None and not before.spatial and cluster(before) and cluster(before) == cluster(level):
            buffers[-1] = PartitionedBuffer((*buffers[-1].loops, *loops), level.spatial)
        else:
            buffers.append(PartitionedBuffer(loops, level.spatial))
        before = level
    return buffers


class Published:
    """Search of one task."""

    def __init__(self, task: Task, run: Run, orders: list[Positions], intra: Intra, inter: Inter) -> None:
        self.task, self.run, self.space = task, run, task.space
        self.orders, self.intra, self.inter = orders, intra, inter
        self.limited_spaces: dict[tuple[str, ...], MapSpace] = {}
        self.reuse = Reuse(task.problem)

    def search(self, placement: Placement) -> Steps:
        """Decide all tilings level by level; the last candidates are evaluated with every order."""
        rows, source_slot = placement.start, placement.source_slot
        levels = partitioned_buffers(self.space)
        around = [level.loops[0] for level in levels[1:]]
        plan = list(zip(levels[:-1], around, strict=True))
        if self.inter == "top_down":
            plan.reverse()
        for level, source in plan[:-1]:
            yield from objectives(rows, self.task, self.run)  # so that an interrupted search has a mapping
            rows = self._grown(rows, level, self._source_slots(source_slot, source))
        if not plan:
            yield from self._ordered(rows)
            return
        level, source = plan[-1]
        values = yield from objectives(rows, self.task, self.run)
        rows = rows.take(np.argsort(values, kind="stable"))
        for begin in range(0, len(rows), PARENTS):
            if self.run.exhausted:
                return
            parents = rows.take(slice(begin, begin + PARENTS))
            yield from self._ordered(self._grown(parents, level, self._source_slots(source_slot, source)))

    def _source_slots(self, source_slot: Ints, source: int | None) -> Ints:
        """Return the slots from which a level takes factors: top-down, the surrounding loops."""
        return source_slot if self.inter == "bottom_up" or source is None else np.full_like(source_slot, source)

    def _grown(self, rows: Candidates, level: PartitionedBuffer, homes: Ints) -> Candidates:
        parts = [rows.take(slice(0, 0))]
        for index in range(len(rows)):
            if self.run.exhausted:
                break
            for children, order in self._children(rows.take(slice(index, index + 1)), level, homes):
                outer = [block for block, slot in enumerate(self.space.temporal_slots) if slot < (0, *level.loops)[-1]]
                if order is not None and outer:
                    orders = children.orders.copy()
                    orders[:, outer[-1]] = order
                    children = replace(children, order=self.space.lawful(orders))
                parts.append(children)
        return _unique(Candidates.join(parts))

    def _children(
        self, row: Candidates, level: PartitionedBuffer, homes: Ints
    ) -> Iterator[tuple[Candidates, tuple[int, ...] | None]]:
        every = tuple(self.reuse.dims)
        if not level.spatial:
            tiles = self._tiled(row, level, homes, (frozenset(),))
            yield Candidates.join([row, tiles]), None
            return
        choices, unroll_first = self.reuse.choices(self.intra), self.intra == "unrolling_tiling_ordering"
        given = [row if unroll_first else self._tiled(row, level, homes, choice.frozen) for choice in choices]
        relaxed = not any(
            len(self.unrolled(rows, level, homes, dims, False))
            for choice, rows in zip(choices, given, strict=True)
            for dims in choice.unroll
        )
        for choice, rows in zip(choices, given, strict=True):
            for dims in choice.unroll or (every,):
                unrolled = self.unrolled(rows, level, homes, dims, relaxed)
                tiled = self._tiled(unrolled, level, homes, choice.frozen) if unroll_first else unrolled
                yield tiled, choice.order

    def unrolled(
        self, rows: Candidates, level: PartitionedBuffer, homes: Ints, dims: tuple[int, ...], relaxed: bool
    ) -> Candidates:
        """Return unrollings that use a fanout exactly.

        If the first fanout has none, the result is empty, or, if `relaxed`, the fullest unrollings.
        """
        for number, slot in enumerate(reversed(level.spatial)):
            parts = [rows.take(slice(0, 0))]
            for index in range(len(rows)):
                row = rows.take(slice(index, index + 1))
                tree = self._tree(row, slot, homes, dims)
                exact = tree.take(tree.trips[:, slot].prod(axis=1) == (self.space.slots[slot].most or 1))
                if len(exact) or (number == 0 and not relaxed):
                    parts.append(exact)
                    continue
                parts += [self._leaves(row, slot, homes, dims), self._mixed(row, slot, homes, dims)]
            rows = Candidates.join(parts)
        return _first_of_each(rows, level.spatial)

    def _mixed(self, row: Candidates, slot: int, homes: Ints, dims: tuple[int, ...]) -> Candidates:
        """Return exact unrollings over all dimensions in which the allowed ones prevail."""
        tree = self._tree(row, slot, homes, tuple(self.reuse.dims))
        trips = tree.trips[:, slot][:, list(dims)].prod(axis=1)
        whole = tree.trips[:, slot].prod(axis=1)
        return tree.take((whole == (self.space.slots[slot].most or 1)) & (trips * trips >= whole))

    def _tiled(
        self, rows: Candidates, level: PartitionedBuffer, homes: Ints, frozen: tuple[frozenset[int], ...]
    ) -> Candidates:
        """Return tiles grown as far as they fit, frozen dimensions last."""
        if not level.loops:
            return rows
        parts = [rows.take(slice(0, 0))]
        home = {
            d: next((slot for slot in level.loops if self.space.slots[slot].highest[d] > 1), -1)
            for d in self.reuse.dims
        }
        for dims_last in frozen:
            grown = rows
            for dims in (tuple(d for d in self.reuse.dims if d not in dims_last), tuple(self.reuse.dims)):
                # the parts hold one tile: each loop is in the innermost part that may have it
                for slot in level.loops:
                    grown = self._leaves(grown, slot, homes, tuple(d for d in dims if home[d] == slot))
            parts.append(grown)
        joined = Candidates.join(parts)
        _, first = np.unique(joined.trips, axis=0, return_index=True)
        return joined.take(first)

    def _tree(self, rows: Candidates, slot: int, homes: Ints, dims: tuple[int, ...]) -> Candidates:
        return self._followed(tile_tree, rows, slot, homes, dims)

    def _leaves(self, rows: Candidates, slot: int, homes: Ints, dims: tuple[int, ...]) -> Candidates:
        return self._followed(leaves, rows, slot, homes, dims)

    def _followed(self, grow: Grow, rows: Candidates, slot: int, homes: Ints, dims: tuple[int, ...]) -> Candidates:
        """Grow from each slot that gives factors; only the memories around `slot` have a capacity."""
        if not len(rows):
            return rows
        rows = replace(rows, space=self._alone(slot, rows.keeps[0]))
        for source in sorted({int(homes[d]) for d in dims} - {-1, slot}):
            rows = grow(rows, source, slot, [d for d in dims if homes[d] == source])
        return replace(rows, space=self.space)

    def _alone(self, slot: int, keep: Bools) -> MapSpace:
        """Return the space in which only the memories around a slot's loops have a capacity.

        Outer memories are not checked. If the nearest memory does not keep every tensor, the next
        ones that keep the others belong to it.
        """
        if self.space.slots[slot].spatial:
            return self.space
        limited = self._around(slot, keep)
        if limited not in self.limited_spaces:
            machines = tuple(_limited(machine, limited) for machine in self.space.machines)
            architecture = _limited(self.space.architecture, limited)
            self.limited_spaces[limited] = replace(self.space, architecture=architecture, machines=machines)
        return self.limited_spaces[limited]

    def _around(self, slot: int, keep: Bools) -> tuple[str, ...]:
        """Return the memories, from a slot outwards, that keep every tensor together."""
        architecture, entries = self.space.architecture, self.space.skeleton.entries
        names: list[str] = []
        covered = np.zeros(keep.shape[1], dtype=np.bool_)
        for entry in range(self.space.slots[slot].entry - 1, -1, -1):
            if covered.all():
                break
            if keep[entry].any():
                cluster = architecture.cluster(entries[entry].target)
                names += entries[entry].memories or [memory.name for memory in cluster.memories]
                covered |= keep[entry]
        return tuple(names)

    def _ordered(self, rows: Candidates) -> Generator[Candidates, Costs, Floats]:
        """Try every reuse-maximal order of each block, innermost first; each row keeps its best."""
        best = np.full(len(rows), np.inf)
        fixed = self.intra == "ordering_tiling_unrolling"
        for block, orders in reversed(list(enumerate(self.orders))):
            able = orders if block == 0 or not fixed else orders[:0]
            for order in able:
                changed = rows.orders.copy()
                changed[:, block] = order
                values = yield from objectives(replace(rows, order=changed), self.task, self.run)
                better = (values < best)[:, None, None]
                best = np.minimum(best, values)
                rows = replace(rows, order=np.where(better, changed, rows.orders))
        return best


def _limited(machine: Architecture, names: tuple[str, ...]) -> Architecture:
    """Return the machine on which only the named memories have a capacity."""
    clusters = []
    for cluster in machine.clusters:
        memories = tuple(
            memory if memory.name in names else memory.model_copy(update={"capacity_words": None})
            for memory in cluster.memories
        )
        clusters.append(cluster.model_copy(update={"memories": memories}))
    return machine.model_copy(update={"clusters": tuple(clusters)})


def _unique(rows: Candidates) -> Candidates:
    if not len(rows):
        return rows
    flat = np.concatenate([rows.trips.reshape(len(rows), -1), rows.orders.reshape(len(rows), -1)], axis=1)
    _, first = np.unique(flat, axis=0, return_index=True)
    return rows.take(np.sort(first))


def _first_of_each(rows: Candidates, spatial: tuple[int, ...]) -> Candidates:
    """Return the first of the rows whose unrollings are equal, regardless of the axis."""
    if not len(rows):
        return rows
    rest = np.delete(rows.trips, list(spatial), axis=1).reshape(len(rows), -1)
    key = np.concatenate([rest, rows.trips[:, list(spatial)].prod(axis=1)], axis=1)
    _, first = np.unique(key, axis=0, return_index=True)
    return rows.take(np.sort(first))
