"""Padding in the search of fused groups: windows over words of a tensor that do not exist.

A window is a coordinate that is a sum of two dimensions. Words outside the tensor are neither moved nor held. How
many others there are depends on where a tile starts, so they are added up over all starts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.errors import Reason
from tilewright.mapspace.batch import Ints
from tilewright.mapspace.group_padding import MAX_STEPS, existing_words, padded_use
from tilewright.schema.group import GroupMapping
from tilewright.schema.problem import Problem, Tensor


@dataclass(frozen=True)
class PaddedWindow:
    """A window over coordinates; only those from `first` to `last` exist. `sizes` are those of its two dimensions."""

    sizes: tuple[int, int]
    first: int
    last: int

    @property
    def used(self) -> int:
        """Pairs of both dimensions whose coordinate exists: operations that read a word."""
        return self.filling((1, 1))

    def held(self, tile: tuple[int, int]) -> int:
        """Return the words of the largest tile that exist."""
        return self._summed(tile)[1]

    def filling(self, tile: tuple[int, int]) -> int:
        """Return the words of all tiles together that exist."""
        return self._summed(tile)[0]

    def slid(self, tile: tuple[int, int], last: int, outer: int) -> int:
        """Return the words of all tiles that are new, if the loop over one dimension slides the window.

        Args:
            last: number of that dimension, 0 or 1.
            outer: its tile outside the loop.
        """
        step = tile[last]
        side, begins = sum(tile) - 1, (outer, tile[1]) if last == 0 else (tile[0], outer)
        new = min(side, step)
        first, every = self._starts(begins), self._starts(tile)  # the first step of each loop, and all steps
        counts = self._existing(first, side).sum() + self._existing(every + side - new, new).sum()
        return int(counts - self._existing(first + side - new, new).sum())

    def _summed(self, tile: tuple[int, int]) -> tuple[int, int]:
        """Return the words of all tiles together, and of the largest one."""
        if tile not in self._known:
            words = self._existing(self._starts(tile), sum(tile) - 1)
            self._known[tile] = int(words.sum()), int(words.max())
        return self._known[tile]

    @cached_property
    def _known(self) -> dict[tuple[int, int], tuple[int, int]]:
        return {}

    def _starts(self, tile: tuple[int, int]) -> Ints:
        one, other = (np.arange(0, size, step) for size, step in zip(self.sizes, tile, strict=True))
        return (one[:, None] + other).ravel()

    def _existing(self, starts: Ints, side: int) -> Ints:
        """Return how many of some coordinates from each start on exist."""
        overlaps: Ints = np.maximum(np.minimum(starts + side - 1, self.last) - np.maximum(starts, self.first) + 1, 0)
        return overlaps


def uncovered(group: GroupMapping) -> Iterator[Reason]:
    """Yield the reasons why offsets, sizes and padding of a group's tensors are not searched."""
    problems = {problem.name: problem for problem in group.layers}
    for edge in group.edges:
        maker, text = group.maker(edge.tensor), ""
        exist = existing_words(group, edge.tensor)
        for layer, name in group.users[edge.tensor].items():
            sizes, ranks = problems[layer].dimensions, problems[layer].tensor(name).projection
            for number, (rank, offset) in enumerate(
                zip(ranks, edge.offsets.get(layer) or (0,) * len(ranks), strict=True)
            ):
                end = sum(sizes[at] - 1 for at in rank.terms)
                first, last = exist[number] if exist else (-offset, end - offset)
                if layer == maker and (offset or first or last < end):
                    text = "its maker has an offset, or makes words that do not exist"
                elif len(rank.terms) == 1 and (offset or last < end):
                    text = f"{layer} has an offset or padding along a coordinate that is one dimension"
                elif offset and end == last - first:
                    text = f"{layer} reads a window that is shifted against all words"
                elif (offset or first or last < end) and math.prod(sizes[at] for at in rank.terms) > MAX_STEPS:
                    text = f"{layer} reads a window with more than {MAX_STEPS:,} pairs of coordinates"
        if text:
            yield Reason(code="padding", where=f"tensor {edge.tensor}", message=f"{text}; that is not searched")


def padding(group: GroupMapping, layer: str) -> tuple[tuple[tuple[int, PaddedWindow], ...], ...]:
    """Return the padded windows of each tensor of a layer, with their numbers among the tensor's windows."""
    problem = next(candidate for candidate in group.layers if candidate.name == layer)
    return tuple(tuple(_padded(group, problem, tensor)) for tensor in problem.tensors)


def _padded(group: GroupMapping, problem: Problem, tensor: Tensor) -> Iterator[tuple[int, PaddedWindow]]:
    name = next(candidate for candidate, users in group.users.items() if users.get(problem.name) == tensor.name)
    use, order = padded_use(group, name, problem.name), list(problem.dimensions)
    if use is None:
        return
    windows = [at for at, rank in enumerate(tensor.projection) if len(rank.terms) == 2]
    for number, at in enumerate(windows):
        if at in use.padded:
            one, other = (problem.dimensions[d] for d in sorted(tensor.projection[at].terms, key=order.index))
            yield number, PaddedWindow((one, other), *use.exist[at])
