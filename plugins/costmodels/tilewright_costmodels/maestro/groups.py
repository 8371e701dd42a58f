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

from tilewright.batch import Bools, Ints
from tilewright.directives import OUTPUT
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
        return self.moved_split | self.stage.of_split(self.states.short)

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

    @cached_property
    def _results(self) -> Ints:
        """Tiles in results of the letters in time, 1 for the split [letter, n]."""
        full, part, _, _ = self.stage.results
        return np.where(self.stage.spatial, 1, np.where(self.at_edge, part, full))

    @cached_property
    def _first(self) -> Ints:
        """Results along the split of the first sub-cluster at work; alone at the edge MAESTRO takes the input's."""
        stage = self.stage
        full, part, _, _ = stage.results
        lone = np.where(self.moved_split, stage.of_split(stage.part), stage.of_split(part))
        return np.where(self._lone, lone, stage.of_split(full))

    @cached_property
    def critical(self) -> Ints:
        """Operations of the first sub-cluster [n]."""
        return product(self._results) * self._first

    @cached_property
    def macs(self) -> Ints:
        """Operations of all sub-clusters [n]."""
        _, part, _, fresh_part = self.stage.results
        last = np.where(self.moved_split, self.stage.of_split(fresh_part), self.stage.of_split(part))
        along = self._first * np.where(self._lone, 1, 1 + self.others) + np.where(self._last, last, 0)
        return product(self._results) * along

    @cached_property
    def egress(self) -> Ints:
        """Elements of the output sent up [n]."""
        stage, letters = self.stage, list(self.stage.letters.tensors[OUTPUT])
        full, _, fresh, fresh_part = (stage.of_split(values) for values in stage.results)
        other = np.where(fresh != 0, fresh, full)
        along = self._first + np.where(self._lone, 0, self.others * other) + np.where(self._last, fresh_part, 0)
        return product(self._results[letters]) * np.where(some(stage.spatial[letters]), along, 1)

    @cached_property
    def _down(self) -> Ints:
        """Tiles of inputs of the letters in time, unless they moved last; 1 for the split [letter, n]."""
        tiles = np.where(self.states.short, self.stage.part, self.stage.size)
        return np.where(self.stage.spatial, 1, tiles)

    def first_ingress(self, tensor: str) -> Ints:
        """Elements of an input sent down in the very first step [n]; only of use in the group without edges."""
        stage, letters = self.stage, list(self.stage.letters.tensors[tensor])
        full, part = stage.of_split(stage.size), stage.of_split(stage.part)
        along = np.where(self._lone, part, full + self.others * full + np.where(self._last, part, 0))
        return product(self._down[letters]) * np.where(some(stage.spatial[letters]), along, 1)

    def ingress(self, tensor: str, moved: int) -> Ints:
        """Elements of an input sent down where letter `moved`, one of the tensor's, moved last [n]."""
        stage, letters = self.stage, self.stage.letters.tensors[tensor]
        inside = stage.position > stage.position[moved]
        restarted = np.zeros(len(stage.split), dtype=np.bool_)
        others = np.ones(len(stage.split), dtype=np.int64)
        for letter in letters:
            if letter != moved:
                restarted |= inside[letter] & ~self.states.unrolled[letter]
                others = others * self._down[letter]
        own = np.where(restarted, stage.size[moved], np.maximum(stage.fresh[moved], 1))
        here = stage.spatial[moved]
        shared = np.where(here, ~restarted, stage.of_split(inside))
        along = np.where(some(stage.spatial[list(letters)]), self._along(shared), 1)
        return others * np.where(here, 1, own) * along

    def _along(self, shared: Bools) -> Ints:
        """Elements along the split [n]: `shared` where neighbours pass on what they have in common."""
        stage = self.stage
        full, part = stage.of_split(stage.size), stage.of_split(stage.part)
        other = np.where(shared, stage.of_split(stage.fresh), full)
        last = np.where(shared, stage.of_split(stage.fresh_part), part)
        lone = np.where(self.partial, part, full)
        return np.where(self._lone, lone, full + self.others * other + np.where(self._last, last, 0))

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

    def tile(self, short: Bools) -> Ints:
        """Sizes of the sub-problem [letter, n] of a sub-cluster with the short or the full tile of the split."""
        partial = self.at_edge & (short | ~self.stage.spatial)
        return np.where(partial, self.stage.part, self.stage.size)
