"""What the array form works out once: the levels of a skeleton, and how each tensor depends on the dimensions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tilewright.mapspace.batch import Floats
from tilewright.mapspace.skeleton import Skeleton
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem, Tensor


@dataclass(frozen=True)
class LevelPlan:
    """A storage level of a skeleton: entry `start` holds; `steps` and `splits` are the entries of its loops."""

    start: int
    steps: tuple[int, ...]
    splits: tuple[int, ...]
    cluster_index: int
    width: int
    height: int


def plan_levels(skeleton: Skeleton, architecture: Architecture) -> tuple[LevelPlan, ...]:
    """The storage levels, outermost first (see `nest.levels_of`)."""
    holds = [index for index, entry in enumerate(skeleton.entries) if entry.holds]
    plans = []
    for number, start in enumerate(holds):
        inner = number == len(holds) - 1
        stop = len(skeleton) if inner else holds[number + 1]
        first = architecture.cluster_index[skeleton.entries[start].target]
        last = len(architecture.clusters) if inner else architecture.cluster_index[skeleton.entries[stop].target]
        outer, within = architecture.mesh(first), architecture.mesh(last)
        plans.append(
            LevelPlan(
                start=start,
                steps=tuple(range(start + 1, min(stop + 1, len(skeleton)))),
                splits=tuple(range(start, stop)),
                cluster_index=first,
                width=math.prod(n // outer.get(axis, 1) for axis, n in within.items() if axis != "Y"),
                height=within.get("Y", 1) // outer.get("Y", 1),
            )
        )
    return tuple(plans)


class Operand:
    """What the arrays need to know of one tensor."""

    def __init__(self, problem: Problem, tensor: Tensor) -> None:
        self.tensor = tensor
        self.index = problem.tensor_names.index(tensor.name)
        self.matrix = problem.projection_matrix(tensor)
        self.ranks = [[(dim, int(c)) for dim, c in enumerate(row) if c] for row in self.matrix]
        """Per rank (dimension, coefficient)."""
        self.relevant = (self.matrix != 0).any(axis=0)
        used = [dim for rank in self.ranks for dim, _ in rank]
        self.sliding = any(len(rank) > 1 for rank in self.ranks) or len(set(used)) < len(used)
        """Tiles may overlap, or children receive overlapping ones: the closed form needs every shift."""
        spans = [2 * sum(c * size for c, size in zip(row, problem.sizes, strict=True)) for row in self.matrix.tolist()]
        places = [math.prod(2 * span + 1 for span in spans[:rank]) for rank in range(len(spans))]
        self.radix = np.array(places, dtype=np.float64) @ self.matrix
        """Per dimension the number that a shift by one iteration makes, in a radix that no sum of shifts overflows."""
        self.capacity = math.prod(2 * span + 1 for span in spans)
        """Above every such number."""
        self.exact = self.capacity < 2**53
        """They are exact in double precision."""
        self.separable = len(set(used)) == len(used)
        """No dimension indexes two ranks."""

    def sides(self, tile: Floats) -> list[Floats]:
        """Bounding box of tiles [dim, mapping], one array per rank."""
        result = []
        for rank in self.ranks:
            side = None
            for dim, c in rank:
                part = tile[dim] if c == 1 else tile[dim] * c
                side = part if side is None else side + part
            assert side is not None
            result.append(side - (sum(c for _, c in rank) - 1) if rank != [(rank[0][0], 1)] else side)
        return result

    def words(self, tile: Floats) -> Floats:
        """Volume of the bounding box."""
        volume = np.ones(tile.shape[1])
        for side in self.sides(tile):
            volume = volume * side
        return volume
