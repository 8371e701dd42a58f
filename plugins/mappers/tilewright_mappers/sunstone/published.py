"""The published principles as published, with what they lose: unrolling sets, frozen dimensions, maximal tiles.

Where text and the authors' program differ, the program is followed (docs/sunstone.md lists the places).
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace

import numpy as np

from tilewright.mapspace.batch import Bools, Floats, Ints, MappingBatch, Positions
from tilewright.mapspace.constructive.placement import Spreading
from tilewright.mapspace.constructive.tiling import leaves, tile_tree
from tilewright.mapspace.looporders import Prefix, ordering_trie, promising
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Costs
from tilewright.plugin.mapper import Run, Task
from tilewright.schema.problem import Problem
from tilewright_mappers.sunstone.levels import Inter, Intra, Level, levels_of
from tilewright_mappers.sunstone.points import Points, priced, stepping

Steps = Generator[MappingBatch, Costs, None]
PARENTS = 64
"""Candidates that the last level is decided for at once."""


@dataclass(frozen=True)
class Theme:
    """What is tried together: dimensions that may be unrolled while one tensor stays, and those that its tiles leave
    alone as long as any other can grow. `order` is set where orders are decided first."""

    unroll: tuple[tuple[int, ...], ...]
    frozen: tuple[frozenset[int], ...]
    order: tuple[int, ...] | None = None


class Reuse:
    """Which dimensions let a tensor stay (`full`) or slide (`part`), per tensor, and the promising prefixes."""

    def __init__(self, problem: Problem) -> None:
        names = problem.dimension_names
        self.dims = range(len(names))
        self.full = [{d for d in self.dims if names[d] not in tensor.dimensions} for tensor in problem.tensors]
        self.part = [
            {names.index(d) for rank in tensor.projection if len(rank.terms) > 1 for d in rank.terms}
            for tensor in problem.tensors
        ]
        self.prefixes = promising(ordering_trie(problem)) or [Prefix((), frozenset())]

    def unrolled(self, tensor: int) -> tuple[tuple[int, ...], ...]:
        """Sets of dimensions that let two of the other tensors be shared, but not this one."""
        others = [each for each in range(len(self.full)) if each != tensor]
        pairs = list(itertools.combinations(others, 2)) or [(each, each) for each in others]
        sets = {tuple(sorted((self.full[j] | self.full[k]) - self.full[tensor])) for j, k in pairs}
        return tuple(sorted(dims for dims in sets if dims))

    def frozen(self, prefix: Prefix) -> frozenset[int]:
        """Loops of an order that reuse every tensor they could: growing the tile along them saves nothing."""
        able = {d: {t for t in range(len(self.full)) if d in self.full[t] | self.part[t]} for d in prefix.loops}
        return frozenset(d for d in prefix.loops if {(t, d) for t in able[d]} <= prefix.reuse)

    def kept(self, prefix: Prefix) -> set[int]:
        """Tensors all of whose dimensions of reuse are in the order: the authors' program asks no more."""
        return {t for t, dims in enumerate(self.full) if dims and dims <= set(prefix.loops)}

    def themes(self, intra: Intra) -> list[Theme]:
        if intra == "ordering_tiling_unrolling":
            return [
                Theme(self.unrolled(tensor), (self.frozen(prefix),), self.whole(prefix))
                for prefix in self.prefixes
                for tensor in sorted(self.kept(prefix))
            ]
        themes = []
        for tensor in range(len(self.full)):
            mine = {self.frozen(prefix) for prefix in self.prefixes if tensor in self.kept(prefix)}
            themes.append(Theme(self.unrolled(tensor), tuple(sorted(mine, key=sorted)) or (frozenset(),)))
        return themes

    def whole(self, prefix: Prefix) -> tuple[int, ...]:
        return (*(d for d in self.dims if d not in prefix.loops), *reversed(prefix.loops))


@dataclass(frozen=True)
class Group:
    """Levels that the paper takes for one, a buffer in parts: their loops, innermost first, and the splits around."""

    loops: tuple[int, ...]
    splits: tuple[int, ...]


def groups(space: MapSpace) -> list[Group]:
    """Innermost first; siblings of one cluster with no split between them are one buffer in parts."""
    homes = {memory.name: cluster.name for cluster in space.architecture.clusters for memory in cluster.memories}

    def cluster(level: Level) -> str | None:
        inside = None if level.loops is None else space.skeleton.entries[space.slots[level.loops].entry].inside
        return homes.get(inside or "")

    found: list[Group] = []
    before: Level | None = None
    for level in levels_of(space):
        loops = () if level.loops is None else (level.loops,)
        if before is not None and not before.splits and cluster(before) and cluster(before) == cluster(level):
            found[-1] = Group((*found[-1].loops, *loops), level.splits)
        else:
            found.append(Group(loops, level.splits))
        before = level
    return found


class Published:
    """One task's search."""

    def __init__(self, task: Task, run: Run, orders: list[Positions], intra: Intra, inter: Inter) -> None:
        self.task, self.run, self.space = task, run, task.space
        self.orders, self.intra, self.inter = orders, intra, inter
        self.alone: dict[tuple[str, ...], MapSpace] = {}
        self.reuse = Reuse(task.problem)

    def search(self, keep: Bools) -> Steps:
        """All tilings level by level; the last candidates, best first by their completions, get every order."""
        start = Spreading.of(self.space, self.run.rng, keep)
        dims = len(start.home)
        plain = np.tile(np.arange(dims, dtype=np.int8), (1, len(self.space.skeleton), 1))
        points = Points(start.start, plain, keep[None])
        levels = groups(self.space)
        around = [level.loops[0] for level in levels[1:]]
        plan = list(zip(levels[:-1], around, strict=True))
        if self.inter == "top_down":
            plan.reverse()
        for level, source in plan[:-1]:
            yield from priced(self.space, points, self.task.objective, self.run)  # something, if time runs out
            points = self._grown(points, level, self._homes(start.home, source))
        if not plan:
            yield from self._ordered(points)
            return
        level, source = plan[-1]
        values = yield from priced(self.space, points, self.task.objective, self.run)
        points = points.take(np.argsort(values, kind="stable"))
        for begin in range(0, len(points), PARENTS):
            if self.run.exhausted:
                return
            parents = points.take(slice(begin, begin + PARENTS))
            yield from self._ordered(self._grown(parents, level, self._homes(start.home, source)))

    def _homes(self, home: Ints, source: int | None) -> Ints:
        """Where a level takes its factors: from outside, or, top-down, from the loops around it."""
        return home if self.inter == "bottom_up" or source is None else np.full_like(home, source)

    def _grown(self, points: Points, level: Group, homes: Ints) -> Points:
        parts = [points.take(slice(0, 0))]
        for index in range(len(points)):
            if self.run.exhausted:
                break
            row, keep = points.trips[index : index + 1], points.keep[index]
            for trips, order in self._children(row, level, homes, keep):
                orders = np.repeat(points.order[index : index + 1], len(trips), axis=0)
                if order is not None and level.loops:
                    outer = max(
                        (slot for slot in range(level.loops[-1]) if not self.space.slots[slot].spatial), default=0
                    )
                    orders[:, self.space.slots[outer].entry] = order
                kept = np.broadcast_to(keep, (len(trips), *keep.shape))
                parts.append(Points(trips, orders, kept))
        return _unique(Points.join(parts))

    def _children(
        self, row: Ints, level: Group, homes: Ints, keep: Bools
    ) -> Iterator[tuple[Ints, tuple[int, ...] | None]]:
        every = tuple(self.reuse.dims)
        if not level.splits:
            tiles = self._tiled(row, level, homes, keep, (frozenset(),))
            yield np.concatenate([row, tiles]), None
            return
        themes = self.reuse.themes(self.intra)
        relaxed = not self._fits_exactly(row, level, homes, keep, themes)
        for theme in themes:
            for dims in theme.unroll or (every,):
                if self.intra == "unrolling_tiling_ordering":
                    spread = self._unrolled(row, level, homes, keep, dims, relaxed)
                    yield self._tiled(spread, level, homes, keep, theme.frozen), theme.order
                else:
                    tiles = self._tiled(row, level, homes, keep, theme.frozen)
                    yield self._unrolled(tiles, level, homes, keep, dims, relaxed), theme.order

    def _fits_exactly(self, row: Ints, level: Group, homes: Ints, keep: Bools, themes: list[Theme]) -> bool:
        return any(
            len(self._unrolled(row, level, homes, keep, dims, False)) for theme in themes for dims in theme.unroll
        )

    def _unrolled(
        self, rows: Ints, level: Group, homes: Ints, keep: Bools, dims: tuple[int, ...], relaxed: bool
    ) -> Ints:
        """Splits that use a fanout exactly; where there is none for the first, nothing, or, if relaxed, the fullest."""
        for number, slot in enumerate(reversed(level.splits)):
            parts = [rows[:0]]
            for index in range(len(rows)):
                tree = self._tree(rows[index : index + 1], slot, homes, keep, dims)
                exact = tree[tree[:, slot].prod(axis=1) == (self.space.slots[slot].most or 1)]
                if len(exact) or (number == 0 and not relaxed):
                    parts.append(exact)
                    continue
                parts.append(self._leaves(rows[index : index + 1], slot, homes, keep, dims))
                if number == 0:
                    parts.append(self._mixed(rows[index : index + 1], slot, homes, keep, dims))
            rows = np.concatenate(parts)
        return _first_of_each(rows, level.splits)

    def _mixed(self, row: Ints, slot: int, homes: Ints, keep: Bools, dims: tuple[int, ...]) -> Ints:
        """Exact splits over all dimensions in which the allowed ones prevail."""
        tree = self._tree(row, slot, homes, keep, tuple(self.reuse.dims))
        mine = tree[:, slot][:, list(dims)].prod(axis=1)
        whole = tree[:, slot].prod(axis=1)
        return np.asarray(tree[(whole == (self.space.slots[slot].most or 1)) & (mine * mine >= whole)])

    def _tiled(self, rows: Ints, level: Group, homes: Ints, keep: Bools, frozen: tuple[frozenset[int], ...]) -> Ints:
        """Tiles grown as far as they fit, frozen dimensions last."""
        if not level.loops:
            return rows
        parts = [rows[:0]]
        for still in frozen:
            grown = rows
            for dims in (tuple(d for d in self.reuse.dims if d not in still), tuple(self.reuse.dims)):
                for slot in level.loops:  # all into the innermost part, as the authors, if the rules let it
                    grown = self._leaves(grown, slot, homes, keep, dims)
            parts.append(grown)
        return np.unique(np.concatenate(parts), axis=0)

    def _tree(self, rows: Ints, slot: int, homes: Ints, keep: Bools, dims: tuple[int, ...]) -> Ints:
        for source in sorted({int(homes[d]) for d in dims} - {-1, slot}):
            rows = tile_tree(self._alone(slot, keep), rows, source, slot, [d for d in dims if homes[d] == source], keep)
        return rows

    def _leaves(self, rows: Ints, slot: int, homes: Ints, keep: Bools, dims: tuple[int, ...]) -> Ints:
        for source in sorted({int(homes[d]) for d in dims} - {-1, slot}):
            rows = leaves(self._alone(slot, keep), rows, source, slot, [d for d in dims if homes[d] == source], keep)
        return rows

    def _alone(self, slot: int, keep: Bools) -> MapSpace:
        """The space in which only the memory right around a slot's loops has an end: a tile has to fit the respective
        memory, and nothing is asked of those further out. (Where that memory does not keep every tensor, the next ones
        that keep the others belong to it.)"""
        if self.space.slots[slot].spatial:
            return self.space
        limited = self._around(slot, keep)
        if limited not in self.alone:
            clusters = []
            for cluster in self.space.architecture.clusters:
                memories = tuple(
                    each if each.name in limited else each.model_copy(update={"capacity_words": None})
                    for each in cluster.memories
                )
                clusters.append(cluster.model_copy(update={"memories": memories}))
            architecture = self.space.architecture.model_copy(update={"clusters": tuple(clusters)})
            self.alone[limited] = replace(self.space, architecture=architecture)
        return self.alone[limited]

    def _around(self, slot: int, keep: Bools) -> tuple[str, ...]:
        """The memories, from a slot outwards, that keep every tensor together."""
        architecture, entries = self.space.architecture, self.space.skeleton.entries
        names: list[str] = []
        covered = np.zeros(keep.shape[1], dtype=np.bool_)
        for entry in range(self.space.slots[slot].entry - 1, -1, -1):
            if covered.all():
                break
            if keep[entry].any():
                cluster = architecture.clusters[architecture.cluster_index[entries[entry].target]]
                names += entries[entry].memories or [memory.name for memory in cluster.memories]
                covered |= keep[entry]
        return tuple(names)

    def _ordered(self, points: Points) -> Generator[MappingBatch, Costs, Floats]:
        """Every promising order of one block after another, from inside: each row goes on with its best."""
        best = np.full(len(points), np.inf)
        fixed = self.intra == "ordering_tiling_unrolling"
        for number, ((_, entry), orders) in reversed(
            list(enumerate(zip(stepping(self.space), self.orders, strict=True)))
        ):
            choices = orders if number == 0 or not fixed else orders[:0]
            for order in choices:
                changed = points.order.copy()
                changed[:, entry] = order
                tried = Points(points.trips, changed, points.keep)
                values = yield from priced(self.space, tried, self.task.objective, self.run)
                better = (values < best)[:, None, None]
                best = np.minimum(best, values)
                points = Points(points.trips, np.where(better, changed, points.order), points.keep)
        return best


def _unique(points: Points) -> Points:
    if not len(points):
        return points
    flat = np.concatenate([points.trips.reshape(len(points), -1), points.order.reshape(len(points), -1)], axis=1)
    _, first = np.unique(flat, axis=0, return_index=True)
    return points.take(np.sort(first))


def _first_of_each(rows: Ints, splits: tuple[int, ...]) -> Ints:
    """Of rows that unroll the same in all, over whichever axis, the first."""
    if not len(rows):
        return rows
    rest = np.delete(rows, list(splits), axis=1).reshape(len(rows), -1)
    key = np.concatenate([rest, rows[:, list(splits)].prod(axis=1)], axis=1)
    _, first = np.unique(key, axis=0, return_index=True)
    return rows[np.sort(first)]
