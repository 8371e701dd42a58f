"""Solutions of the search of fused groups: loop trees with their costs, and the tensors that layers share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from tilewright.mapspace.sliding import Window
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.objective import Objective
from tilewright.schema.problem import Problem
from tilewright_mappers.fused.parts import Branch

Axis = tuple[int, ...]
"""The dimension of each layer, from the first of an interval to the last, that one shared loop steps."""


def axis_within(every: frozenset[tuple[int, int]], first: int, last: int) -> Axis | None:
    """Return the part of an axis, as pairs of layer and dimension, in an interval; None if some layer has no dimension on it."""
    pairs = sorted(pair for pair in every if first <= pair[0] <= last)
    return tuple(at for _, at in pairs) if [layer for layer, _ in pairs] == list(range(first, last + 1)) else None


class AxisNames:
    """The axes of a group mapping, by name; one is named when it is needed."""

    def __init__(self) -> None:
        self.axes: dict[str, dict[str, str]] = {}

    def of(self, problems: Sequence[Problem], axis: Axis) -> str:
        """Return the name of the axis that steps one dimension of each of the first layers."""
        stepped = {problem.name: list(problem.dimensions)[at] for problem, at in zip(problems, axis, strict=False)}
        known = next((name for name, dims in self.axes.items() if dims.items() >= stepped.items()), None)
        if known is None:
            base = next(iter(stepped.values()))
            known = next(n for n in (base, *(f"{base}{i}" for i in range(len(self.axes)))) if n not in self.axes)
            self.axes[known] = stepped
        return known


@dataclass(frozen=True, eq=False)
class Shared:
    """A tensor that several layers use.

    `users`: layer -> the layer's number of the tensor. `made`: the first one makes it. Otherwise it is an input of
    the group, and the first one fills it. For each coordinate, `sizes` has the whole size. `steps` has the dimension of
    each layer that steps it; empty: no loop is shared over it. `halos` has the rows of earlier steps that a window
    reads again. `width`: slices of a word in the buffer. `alike`: its readers use the same words, so it may be at home
    in the buffer; otherwise each keeps tiles of its own. `windows`: for each coordinate, how each reader's window slides.
    `offsets`: of each layer's coordinates, if words around those that are made exist. `added`: layers that add it to
    their result, which costs nothing; `steps` and `windows` have them, too.
    """

    name: str
    users: dict[int, int]
    made: bool
    sizes: tuple[int, ...]
    steps: tuple[dict[int, int], ...]
    halos: tuple[int, ...]
    width: int
    alike: bool = True
    windows: tuple[dict[int, Window], ...] = ()
    offsets: FrozenDict[int, tuple[int, ...]] = FrozenDict()
    added: frozenset[int] = frozenset()

    @cached_property
    def needs(self) -> frozenset[int]:
        return self.added.union(self.users)

    @cached_property
    def first(self) -> int:
        return min(self.users)

    @cached_property
    def last(self) -> int:
        return max(self.needs)

    @property
    def words(self) -> int:
        return math.prod(self.sizes)

    def stepped(self, first: int, axis: Axis) -> int | None:
        """Return the coordinate that an axis of layers from `first` on steps in all users among them, or None."""
        key = first, axis
        if key not in self._known_steps:
            coordinates = (
                number
                for number, steps in enumerate(self.steps)
                if steps
                and all(axis[layer - first] == steps[layer] for layer in self.needs if 0 <= layer - first < len(axis))
            )
            self._known_steps[key] = next(coordinates, None)
        return self._known_steps[key]

    def box(self, layer: int, problem: Problem, sizes: Mapping[str, int]) -> list[tuple[int, int]]:
        """Return first coordinate and extent of a layer's tile along every coordinate, at the first step."""
        ranks = problem.tensors[self.users[layer]].projection
        starts = self.offsets.get(layer) or (0,) * len(ranks)
        return [
            (-start, 1 + sum(c * (sizes[at] - 1) for at, c in rank.terms.items()))
            for start, rank in zip(starts, ranks, strict=True)
        ]

    @cached_property
    def _known_steps(self) -> dict[tuple[int, Axis], int | None]:
        return {}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A branch of one layer."""

    layer: int
    branch: Branch


@dataclass(frozen=True, slots=True)
class SharedLoops:
    """Shared loops of layers, outermost first, and the tensors kept right outside and right inside of them.

    Kept tensors are (layer, tensor), and homes are tensors of several layers.
    """

    first: int
    kept: tuple[tuple[int, int], ...]
    homes: tuple[str, ...]
    loops: tuple[tuple[Axis, int], ...]
    sliding: tuple[tuple[int, int], ...]
    halo_homes: tuple[str, ...]
    inside: SharedLoops | Sequenced


@dataclass(frozen=True, slots=True)
class Sequenced:
    """Branches in sequence, and the tensors at home right above them."""

    homes: tuple[str, ...]
    branches: tuple[Leaf | SharedLoops, ...]


Tree = Leaf | SharedLoops | Sequenced


@dataclass(frozen=True, slots=True)
class Solution:
    """A subtree with its costs, and the most slices that it keeps at one moment."""

    energy_pj: float
    cycles: float
    slices: int
    tree: Tree


@dataclass(frozen=True, slots=True)
class Row:
    """The first branches of a sequence."""

    energy_pj: float
    cycles: float
    slices: int
    branches: tuple[Leaf | SharedLoops, ...]
    homes: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """Outcome of a search: the best tree, a lower bound on the objective, and whether the search has ended.

    `plain`: the best sequence of layers that share nothing; None if the search was cut before. `interrupted`: by the user.
    """

    best: Solution
    bound: float
    proved: bool
    plain: Solution | None
    interrupted: bool


def in_sequence(one: Solution, other: Solution) -> Solution:
    """Return two groups that share nothing with each other, one after the other."""
    homes, branches = list[str](), list[Leaf | SharedLoops]()
    for part in (one.tree, other.tree):
        homes += part.homes if isinstance(part, Sequenced) else ()
        branches += part.branches if isinstance(part, Sequenced) else [part]
    tree = Sequenced(tuple(homes), tuple(branches))
    return Solution(one.energy_pj + other.energy_pj, one.cycles + other.cycles, 0, tree)


def ranked(objective: Objective, energy_pj: float, cycles: float) -> tuple[float, float]:
    """Return the value to 12 digits, then what decides between equal values: cycles at one energy, energy in equal cycles."""
    return float(f"{objective.value(energy_pj, cycles):.12g}"), energy_pj * cycles


def best_of(objective: Objective, solutions: Sequence[Solution]) -> Solution:
    """Return the first solution of least cost, and of least other cost among equal ones."""
    return min(solutions, key=lambda solution: ranked(objective, solution.energy_pj, solution.cycles))


Figures = TypeVar("Figures", Solution, Row)


def thinned(objective: Objective, check: Callable[[], None], solutions: list[Figures]) -> list[Figures]:
    """Return the solutions that no other one beats in all figures. `check` looks at the clock."""
    if len(solutions) < 2:
        return solutions
    a, b = map(bool, objective.powers)
    rows = sorted(
        (solution.energy_pj * a, solution.cycles * b, solution.slices, at) for at, solution in enumerate(solutions)
    )
    kept: list[Figures] = []
    front: list[tuple[float, int]] = []
    for _, cycles, slices, at in rows:
        check()
        if not any(other[0] <= cycles and other[1] <= slices for other in front):
            front = [other for other in front if not (cycles <= other[0] and slices <= other[1])]
            front.append((cycles, slices))
            kept.append(solutions[at])
    return kept
