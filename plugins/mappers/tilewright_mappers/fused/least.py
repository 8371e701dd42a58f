"""Least costs of layers inside tiles, axes of loops that they may share, and windows that slide, for the search of loop trees."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from tilewright.mapspace.batch import Floats, Ints
from tilewright.schema.objective import Objective
from tilewright_mappers.fused.parts import FAR, HOME, FusedLayer, LayerTile, States, TileBounds
from tilewright_mappers.fused.solution import Axis, Shared, axis_within

OPEN = -2
"""State of a tensor that all its layers share, before it is known whether it is fused."""


class LeastCosts:
    """Least energy and cycles of layers inside tiles. Equal layers (`kinds`) are asked once."""

    def __init__(self, layers: Sequence[FusedLayer], objective: Objective) -> None:
        self.layers = layers
        self.kinds = [
            next(at for at, other in enumerate(layers) if other.signature == layer.signature) for layer in layers
        ]
        self.home_is_least = [layer.home_is_least(objective) for layer in layers]
        self._known: dict[tuple[int, LayerTile, tuple[int, ...], tuple[tuple[int, ...], ...], States], TileBounds] = {}

    def inside(
        self,
        number: int,
        tile: LayerTile,
        dimensions: tuple[int, ...],
        every: tuple[tuple[int, ...], ...],
        states: States,
    ) -> TileBounds:
        """Return a layer's tiles inside loops over some dimensions, with every choice of their sizes, and their bounds."""
        key = self.kinds[number], tile, dimensions, every, states
        if key not in self._known:
            inside = np.tile(np.array(tile, dtype=np.int64), (len(every), 1))
            inside[:, dimensions] = np.array(every, dtype=np.int64)
            least = self.of(number, inside, states)
            self._known[key] = TileBounds([tuple(row) for row in inside.tolist()], *least)
        return self._known[key]

    def closed(self, number: int, states: States) -> list[States]:
        """Return states without open tensors. The least costs are among theirs; at home suffices if the buffer is cheaper."""
        choices = (HOME,) if self.home_is_least[number] else (HOME, FAR)
        return list(itertools.product(*(choices if state == OPEN else (state,) for state in states)))

    def of(self, number: int, tiles: Ints, states: States) -> tuple[Floats, Floats]:
        """Return least energies and cycles of a layer inside tiles [n, dimension], wherever open tensors are."""
        least = [self.layers[number].least(tiles, closed) for closed in self.closed(number, states)]
        return np.min([energies for energies, _ in least], axis=0), np.min([cycles for _, cycles in least], axis=0)


class SharedAxes:
    """Axes of the loops that layers may share. `axes`: sets of dimensions (layer, dimension) that one loop may step."""

    def __init__(self, layers: Sequence[FusedLayer], axes: Sequence[frozenset[tuple[int, int]]]) -> None:
        self.layers, self.axes = layers, axes
        self._known: dict[tuple[int, int, tuple[str, ...]], list[Axis]] = {}

    def between(self, first: int, last: int, linking: Sequence[Shared]) -> list[Axis]:
        """Return the axes over which some layers can share a loop.

        Each layer has one dimension there, and every linking tensor is stepped alike by all its layers.
        """
        key = first, last, tuple(tensor.name for tensor in linking)
        if key not in self._known:
            joined = {
                (at, d): frozenset({(at, d)})
                for at in range(first, last + 1)
                for d in range(len(self.layers[at].whole))
            }
            for tensor in linking:
                for steps in tensor.steps:
                    pairs = [pair for pair in steps.items() if first <= pair[0] <= last]
                    together = frozenset[tuple[int, int]]().union(*(joined[pair] for pair in pairs))
                    joined |= dict.fromkeys(together, together)
            axes: list[Axis] = []
            for every in dict.fromkeys((*joined.values(), *self.axes)):
                axis = axis_within(every, first, last)
                if axis is not None and axis not in axes:
                    axes += [axis] if all(tensor.stepped(first, axis) is not None for tensor in linking) else []
            self._known[key] = axes
        return self._known[key]


def slidable(
    layers: Sequence[FusedLayer],
    first: int,
    outer: tuple[LayerTile, ...],
    inner: tuple[LayerTile, ...],
    states: tuple[States, ...],
    axis: Axis,
) -> Iterator[tuple[int, int]]:
    """Yield the windows that the last loop slides, if no other dimension of the window has loops."""
    for at, dimension in enumerate(axis):
        layer = layers[first + at]
        for tensor, state in enumerate(states[at]):
            windows = [window for window in layer.windows[tensor] if dimension in window]
            if state == FAR and any(sum(inner[at][d] < layer.whole[d] for d in window) == 1 for window in windows):
                yield first + at, tensor
