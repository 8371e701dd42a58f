"""Phases of many mappings at once.

Phases of a level differ in which directives are at their edge and in which loop moved last. The first decides what is
computed and sent up, the second what is sent down; so phases are taken in groups with the same edges, and in such a
group there is one kind per loop, whatever the loops outside it do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.mapspace.batch import Bools, Ints
from tilewright.notations.directives import OUTPUT
from tilewright_costmodels.maestro.stages import Stage, States, product, some


def edges_present(edge: Bools) -> Iterator[tuple[tuple[int, ...], Ints | None]]:
    """(letters at their edge, which of the mappings have such phases; None: all). The first is without edges."""
    yield (), None
    if not edge.any():
        return
    bits = (edge << np.arange(len(edge))[:, None]).sum(axis=0)
    masks = {int(bits_) for bits_ in np.unique(bits)}
    found = sorted({sub for mask in masks for sub in _submasks(mask)})
    for mask in found:
        yield tuple(x for x in range(len(edge)) if mask >> x & 1), np.flatnonzero(bits & mask == mask)


def _submasks(mask: int) -> Iterator[int]:
    sub = mask
    while sub:
        yield sub
        sub = (sub - 1) & mask


@dataclass(frozen=True)
class Group:
    """The phases of a level in which the letters of `edges` are at their edge state, for mappings that have such."""

    stage: Stage
    states: States
    edges: tuple[int, ...]

    @cached_property
    def at_edge(self) -> Bools:
        """[letter, n]"""
        result = self.states.short.copy()
        result[list(self.edges)] = True
        return result

    @cached_property
    def moved_split(self) -> Bools:
        """The split is in its edge state, not at its first step [n]."""
        return np.isin(self.stage.split, self.edges)

    @cached_property
    def edge(self) -> Bools:
        """Not all sub-clusters have full tiles [n]."""
        return some(self.at_edge & self.stage.spatial)

    @cached_property
    def partial(self) -> Bools:
        """The last sub-cluster at work has a short tile [n]."""
        return self.edge & (~self.moved_split | self.states.partial)

    @cached_property
    def working(self) -> Ints:
        """Sub-clusters at work [n]."""
        return np.where(self.edge, self.stage.edge_clusters, self.stage.clusters)

    @cached_property
    def others(self) -> Ints:
        """Sub-clusters at work beside the first and a last one with a short tile [n]."""
        return np.where(self.edge, np.maximum(self.working - self.partial - 1, 0), self.working - 1)

    @cached_property
    def _lone(self) -> Bools:
        return np.asarray(self.edge & (self.working == 1))

    @cached_property
    def _last(self) -> Bools:
        return self.partial & (self.working > 1)

    def _sum(self, alone: Ints, first: Ints, other: Ints, last: Ints, letters: list[int]) -> Ints:
        """Over sub-clusters [n], of tiles along the letters in space [letter, n]; 1 copy where there are none."""
        total = product(first) + self.others * product(other) + np.where(self._last, product(last), 0)
        return np.where(some(self.stage.spatial[letters]), np.where(self._lone, product(alone), total), 1)

    @cached_property
    def _results(self) -> Ints:
        """Tiles in results of the letters in time, 1 for those in space [letter, n]."""
        full, part, _, _ = self.stage.results
        return np.where(self.stage.spatial, 1, np.where(self.at_edge, part, full))

    @cached_property
    def _results_along(self) -> tuple[Ints, Ints, Ints, Ints]:
        """The same for those in space, 1 for others: full, part, fresh and fresh part [letter, n]."""
        full, part, fresh, fresh_part = (self.stage.along(values) for values in self.stage.results)
        return full, part, np.where(fresh != 0, fresh, full), fresh_part

    @cached_property
    def _alone(self) -> Ints:
        """Results along the split if one sub-cluster is at work; at the edge MAESTRO takes the input's [letter, n]."""
        _, part, _, _ = self._results_along
        return np.where(self.moved_split, self.stage.part_along, part)

    @cached_property
    def critical(self) -> Ints:
        """Operations of the first sub-cluster [n]."""
        full, _, _, _ = self._results_along
        return product(self._results) * np.where(self._lone, product(self._alone), product(full))

    @cached_property
    def macs(self) -> Ints:
        """Operations of all sub-clusters [n]."""
        full, part, _, fresh_part = self._results_along
        last = np.where(self.moved_split, fresh_part, part)
        return product(self._results) * self._sum(self._alone, full, full, last, list(range(len(full))))

    @cached_property
    def egress(self) -> Ints:
        """Elements of the output sent up [n]."""
        letters = list(self.stage.letters.tensors[OUTPUT])
        full, _, fresh, fresh_part = (values[letters] for values in self._results_along)
        return product(self._results[letters]) * self._sum(self._alone[letters], full, fresh, fresh_part, letters)

    @cached_property
    def _down(self) -> Ints:
        """Tiles of inputs of the letters in time, unless they moved last; 1 for those in space [letter, n]."""
        tiles = np.where(self.states.short, self.stage.part, self.stage.size)
        return np.where(self.stage.spatial, 1, tiles)

    def first_ingress(self, tensor: str) -> Ints:
        """Elements of an input sent down in the very first step [n]; only of use in the group without edges."""
        letters = list(self.stage.letters.tensors[tensor])
        full = self.stage.full_along[letters]
        short = np.where(self.states.short[letters], self.stage.part_along[letters], full)
        return product(self._down[letters]) * self._sum(short, full, full, short, letters)

    def ingress(self, tensor: str, moved: int) -> Ints:
        """Elements of an input sent down where letter `moved`, one of the tensor's, moved last [n]."""
        stage, letters = self.stage, list(self.stage.letters.tensors[tensor])
        inside = stage.position[letters] > stage.position[moved]
        restarted = some(inside & ~self.states.unrolled[letters])
        tiles, at = self._down[letters], letters.index(moved)
        own = np.where(restarted, stage.size[moved], np.maximum(stage.fresh[moved], 1))
        tiles[at] = np.where(stage.spatial[moved], 1, own)
        inside[at] = ~restarted
        full, part = stage.full_along[letters], stage.part_along[letters]
        other = np.where(inside, stage.fresh_along[letters], full)
        last = np.where(inside, stage.fresh_part_along[letters], part)
        return product(tiles) * self._sum(np.where(self.partial, part, full), full, other, last, letters)

    @cached_property
    def _times(self) -> Ints:
        """States of each letter that belong to the group, by occurrences [letter, n]."""
        times = 1 + self.states.steady
        times[list(self.edges)] = 1
        return times

    @cached_property
    def occurrences(self) -> Ints:
        """Of all phases of the group [n]."""
        return product(self._times)

    @cached_property
    def most(self) -> Ints:
        """Occurrences of its most frequent phase [n]."""
        times = np.maximum(self.states.steady, 1)
        times[list(self.edges)] = 1
        return product(times)

    def occurrences_of(self, moved: int) -> Ints:
        """Of its phases in which a letter moved last [n]."""
        position = self.stage.position
        outside = product(np.where(position < position[moved], self._times, 1))
        if self.edges:
            last = position[list(self.edges)].max(axis=0)
            if moved in self.edges:
                return np.where(position[moved] == last, outside, 0)
            return np.where(position[moved] > last, outside * self.states.steady[moved], 0)
        return np.asarray(outside * self.states.steady[moved])

    @cached_property
    def uneven(self) -> Bools:
        """The sub-problem of the last sub-cluster is another than that of the others [n]."""
        stage = self.stage
        first = self.moved_split | stage.of_split(self.states.short)
        return np.asarray(first & self.partial & (self.working > 1))

    def tile(self, short: Bools) -> Ints:
        """Sizes of the sub-problem [letter, n] of a sub-cluster with the short or the full tile of the split."""
        partial = self.at_edge & (short | ~self.stage.spatial)
        return np.where(partial, self.stage.part, self.stage.size)
