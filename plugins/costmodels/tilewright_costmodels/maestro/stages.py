"""Levels of many mappings at once: their directives and tile sizes as arrays, letters by rows (as `levels`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from tilewright.mapspace.batch import Bools, Ints

Values = TypeVar("Values", Ints, Bools)


def product(values: Ints) -> Ints:
    """Over letters: [letter, n] -> [n]."""
    return np.asarray(values.prod(axis=0))


def some(values: Bools) -> Bools:
    """Whether any letter: [letter, n] -> [n]."""
    return np.asarray(values.any(axis=0))


@dataclass(frozen=True)
class Letters:
    """What the letters of a layer are, as arrays over them.

    Attributes:
        names: the letters, in order.
        tensors: MAESTRO's tensor -> indices of its letters.
        windows: (index of Y or X, index of its filter letter, stride).
        sizes: of the layer, inputs for Y and X.
        whole: in outputs for Y and X.
    """

    names: tuple[str, ...]
    tensors: dict[str, tuple[int, ...]]
    windows: tuple[tuple[int, int, int], ...]
    sizes: Ints
    whole: Ints

    def widened(self, tiles: Ints, pair: Ints) -> tuple[Ints, Ints]:
        """Size and offset [letter, n] of the directives for tiles, of outputs for Y and X.

        `pair` [n]: the filter letter whose pieces lie on a diagonal with Y or X.
        """
        size, offset = tiles.copy(), tiles.copy()
        for letter, window, stride in self.windows:
            size[letter] = (tiles[letter] - 1) * stride + tiles[window]
            offset[letter] = np.where(pair == window, tiles[window], tiles[letter] * stride)
        return size, offset

    def strided(self, size: Ints, offset: Ints, inner: bool) -> None:
        """MAESTRO's rounding of tiles under a stride, in place."""
        for letter, window, stride in self.windows:
            width = int(self.sizes[window])
            if stride == 1:
                continue
            steps = (size[letter] + stride - width) // stride
            wide = size[letter] >= width
            offset[letter] = np.where(wide, steps * (min(stride, width) if inner else stride), offset[letter])
            size[letter] = np.where(wide, steps * min(stride, width) + max(width - stride, 0), size[letter])


@dataclass(frozen=True)
class Stage:
    """One level of `n` mappings.

    Attributes:
        size, offset, nominal: of the directives and their dimensions, [letter, n].
        position: place in the loop order, [letter, n].
        split: the letter of the first SpatialMap, [n].
        pair: that of a second one, or NOWHERE, [n].
        clusters: sub-clusters, [n].
    """

    letters: Letters
    size: Ints
    offset: Ints
    nominal: Ints
    position: Ints
    split: Ints
    pair: Ints
    clusters: Ints

    def take(self, rows: Ints) -> Stage:
        """The mappings that an index selects."""
        return Stage(
            self.letters,
            self.size[:, rows],
            self.offset[:, rows],
            self.nominal[:, rows],
            self.position[:, rows],
            self.split[rows],
            self.pair[rows],
            self.clusters[rows],
        )

    def of_split(self, values: Values) -> Values:
        """Of [letter, n] those of the letter in space, [n]."""
        return values[self.split, np.arange(len(self.split))]

    @cached_property
    def spatial(self) -> Bools:
        """[letter, n]"""
        letters = np.arange(len(self.size))[:, None]
        return np.asarray((letters == self.split) | (letters == self.pair))

    def along(self, values: Ints) -> Ints:
        """Of [letter, n] those of letters in space, else 1."""
        return np.where(self.spatial, values, 1)

    @cached_property
    def full_along(self) -> Ints:
        return self.along(self.size)

    @cached_property
    def part_along(self) -> Ints:
        return self.along(self.part)

    @cached_property
    def fresh_along(self) -> Ints:
        return self.along(self.fresh)

    @cached_property
    def fresh_part_along(self) -> Ints:
        return self.along(self.fresh_part)

    @cached_property
    def steps(self) -> Ints:
        return np.asarray(np.maximum(self.nominal - self.size, 0) // self.offset)

    @cached_property
    def rest(self) -> Ints:
        rest = self.nominal - (self.steps + 1) * self.offset
        return np.where(rest < 0, self.nominal, rest)

    @cached_property
    def part(self) -> Ints:
        ragged = (self.steps * self.offset + self.size < self.nominal) | (self.size > self.nominal)
        return np.where(ragged, self.rest, self.size)

    @cached_property
    def fresh(self) -> Ints:
        still = ~self.spatial & (self.nominal <= self.size)
        return np.where(still, 0, np.minimum(self.size, self.offset))

    @cached_property
    def fresh_part(self) -> Ints:
        return np.maximum(self.offset - (self.size - self.rest), 0)

    @cached_property
    def results(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Full, part, fresh and fresh part in results for Y and X; strides are not regarded."""
        if not self.letters.windows:
            return self.size, self.part, self.fresh, self.fresh_part
        full, part, fresh, fresh_part = (
            values.copy() for values in (self.size, self.part, self.fresh, self.fresh_part)
        )
        for letter, window, _ in self.letters.windows:
            full[letter] = self.size[letter] - self.size[window] + 1
            part[letter] = self.part[letter] - self.part[window] + 1
            fresh[letter] = np.minimum(self.size[letter], self.offset[letter])
            fresh_part[letter] = np.minimum(self.offset[letter], part[letter])
        return full, part, fresh, fresh_part

    @cached_property
    def edge_clusters(self) -> Ints:
        """Sub-clusters at work in the last, short fold [n]."""
        size, offset, nominal = self.of_split(self.size), self.of_split(self.offset), self.of_split(self.nominal)
        covered = size + offset * (self.clusters - 1)
        all_steps = (nominal - size) // offset + 1
        rest = nominal - (all_steps // self.clusters) * offset * self.clusters
        beyond = np.where(rest < size, 1, (rest - size) // offset + 1)
        within = all_steps + (offset * (all_steps - 1) + size < nominal)
        return np.where(nominal > covered, beyond, np.where(nominal <= size, 1, within))


@dataclass(frozen=True)
class States:
    """What the directives of a level do on sub-problems of actual sizes (as `phases`).

    Attributes:
        short: init is an edge, [letter, n].
        unrolled: one step covers everything, [letter, n].
        steady: occurrences of the steady state, [letter, n].
        edge: there is an edge state, [letter, n].
        partial: the last sub-cluster of an edge of the split has a short tile, [n]. Pairs have no edges.
        stuck: a loop moves that nominally does not, [n].
    """

    short: Bools
    unrolled: Bools
    steady: Ints
    edge: Bools
    partial: Bools
    stuck: Bools

    def take(self, rows: Ints) -> States:
        """The mappings that an index selects."""
        return States(
            self.short[:, rows],
            self.unrolled[:, rows],
            self.steady[:, rows],
            self.edge[:, rows],
            self.partial[rows],
            self.stuck[rows],
        )


def states_of(stage: Stage, actual: Ints) -> States:
    """The states on sub-problems of sizes [letter, n]."""
    steps = np.maximum(actual - stage.size, 0) // stage.offset
    short, unrolled = actual < stage.size, actual <= stage.size
    edge = (actual > stage.size) & (steps * stage.offset + stage.size < actual)
    stuck = some((actual > stage.size) & (stage.nominal <= stage.size) & ~stage.spatial)
    states = States(short, unrolled, steps.copy(), edge, np.zeros(len(stage.split), dtype=np.bool_), stuck)
    rows = np.arange(len(stage.split))
    _split(stage, actual, steps, states, stage.split, rows)
    paired = np.flatnonzero(stage.pair >= 0)
    if len(paired):
        _split(stage, actual, steps, states, stage.pair[paired], paired)
    return states


def _split(stage: Stage, actual: Ints, steps: Ints, states: States, letter: Ints, rows: Ints) -> None:
    """Puts the states of the letters in space of some rows in the place of those in time."""
    at, clusters = (letter, rows), stage.clusters[rows]
    size, offset, real = stage.size[at], stage.offset[at], actual[at]
    covered = size + offset * (clusters - 1)
    folds = np.maximum((steps[at] + 1) // clusters - 1, 0)
    more = real > covered
    rest = real - (folds + 1) * offset * clusters
    whole = np.where(rest < size, 1, (rest - size) // offset + 1)
    states.steady[at] = np.where(more, folds, 0)
    states.short[at] = real < covered
    states.unrolled[at] = ~more
    states.edge[at] = more & (covered + folds * offset * clusters != real)
    states.partial[rows] = (whole - 1) * offset + size < rest
