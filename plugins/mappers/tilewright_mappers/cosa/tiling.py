"""Which prime factors go where: variables for every slot of a map space, its rules, and tiles that fit the memories."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np

from tilewright.mapspace.batch import Bools, Floats
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.counting import prime_powers
from tilewright.mapspace.factoring.cuts import divisors
from tilewright.mapspace.space import MapSpace
from tilewright.schema.architecture import Memory
from tilewright.schema.problem import Rank, Tensor
from tilewright_mappers.cosa.measures import held
from tilewright_mappers.cosa.program import Linear, Program, total

SHAPES = 256
"""A window of more different shapes of tile than this is taken as if it had no overlap."""
SLACK = 1e-7
"""Logarithms of whole numbers up to a million differ by more."""


@dataclass
class Tiling:
    """The part of a program that says how large tiles are; all sizes are natural logarithms.

    Attributes:
        keep: [entry, tensor], whether the entry keeps the tensor.
        exponents: (slot, dimension) -> (prime, how many of it), whole-number variables.
        exact: whether no tile is taken for larger than it is.
    """

    space: MapSpace
    keep: Bools
    program: Program = field(default_factory=Program)
    exponents: dict[tuple[int, int], list[tuple[int, Linear]]] = field(default_factory=dict)
    exact: bool = True
    _extents: dict[tuple[int, str], tuple[Linear, Linear]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._factors()
        self._rules()
        self._memories()

    def _factors(self) -> None:
        space = self.space
        for dim, size in enumerate(space.problem.sizes):
            for prime, count in prime_powers(size):
                if prime == 1:
                    continue
                able = [s for s, slot in enumerate(space.slots) if slot.highest[dim] >= prime]
                placed = [self.program.variable(0, count) for _ in able]
                for slot, exponent in zip(able, placed, strict=True):
                    self.exponents.setdefault((slot, dim), []).append((prime, exponent))
                self.program.require(total(placed), count, count)

    def _rules(self) -> None:
        for index, slot in enumerate(self.space.slots):
            for dim, size in enumerate(self.space.problem.sizes):
                trips, low, high = self.trips(index, dim), slot.lowest[dim], slot.highest[dim]
                if low > 1:
                    self.program.require(trips, lower=math.log(low) - SLACK)
                if high < size and trips.terms:
                    self.program.require(trips, upper=math.log(high) + SLACK)
            if slot.spatial:
                used = self.product(index)
                self.program.require(used, math.log(slot.least) - SLACK, math.log(slot.most or 1) + SLACK)
        if self.space.max_unrolled_loops is not None:
            self.program.require(self._unrolled_loops(), upper=self.space.max_unrolled_loops)

    def _unrolled_loops(self) -> Linear:
        """At least as many as are unrolled outside the innermost storage level."""
        loops = []
        for slot, dim in itertools.product(self.space.unrolled_slots, range(len(self.space.problem.sizes))):
            if (slot, dim) in self.exponents:
                unrolled = self.program.variable()
                for _, exponent in self.exponents[slot, dim]:
                    (variable,) = exponent.terms
                    self.program.require(exponent - unrolled * self.program.upper[variable], upper=0.0)
                loops.append(unrolled * self.space.loop_weights[dim])
        return total(loops)

    def trips(self, slot: int, dim: int) -> Linear:
        """Return the logarithm of the trip count of a dimension's loop in a slot."""
        return total(exponent * math.log(prime) for prime, exponent in self.exponents.get((slot, dim), []))

    def product(self, slot: int) -> Linear:
        """Return the logarithm of the sub-clusters that a spatial slot uses, or of the steps of a temporal slot's loops."""
        return total(self.trips(slot, dim) for dim in range(len(self.space.problem.sizes)))

    # -- tiles -----------------------------------------------------------------------------------------------

    def tile(self, entry: int, dim: int) -> Linear:
        """Iterations of a dimension that an entry holds at a time."""
        slots = self.space.slots
        inside = [s for s, slot in enumerate(slots) if slot.entry > entry or (slot.entry == entry and slot.spatial)]
        return total(self.trips(slot, dim) for slot in inside)

    def words(self, entry: int, tensor: int) -> Linear:
        """Values of a tensor that an entry holds at a time."""
        return total(self._extents_of(entry, rank)[0] for rank in self.space.problem.tensors[tensor].projection)

    def _extents_of(self, entry: int, rank: Rank) -> tuple[Linear, Linear]:
        """How far the tile of an entry reaches along one coordinate, and how many values it has there."""
        if (entry, str(rank)) not in self._extents:
            self._extents[entry, str(rank)] = self._measured(entry, rank)
        return self._extents[entry, str(rank)]

    def _measured(self, entry: int, rank: Rank) -> tuple[Linear, Linear]:
        dims = [self.space.problem.dimension_names.index(name) for name in rank.terms]
        coefficients = list(rank.terms.values())
        if coefficients == [1]:
            return self.tile(entry, dims[0]), self.tile(entry, dims[0])
        sizes = [self.space.problem.sizes[dim] for dim in dims]
        shapes = list(itertools.product(*(divisors(size) for size in sizes)))
        if len(shapes) > SHAPES:
            return (self._without_overlap(entry, dims, coefficients, sizes),) * 2
        chosen = self.program.one_of(len(shapes))
        for place, dim in enumerate(dims):
            size = total(one * math.log(shape[place]) for one, shape in zip(chosen, shapes, strict=True))
            self.program.require(self.tile(entry, dim) - size, 0.0, 0.0)
        along = Tensor(name="T", role="input", projection=(rank,))
        tiles = [dict(zip(rank.terms, shape, strict=True)) for shape in shapes]
        problem = self.space.problem
        box, distinct = (
            total(one * math.log(count(along, tile)) for one, tile in zip(chosen, tiles, strict=True))
            for count in (problem.tile_words, problem.distinct_words)
        )
        return box, distinct

    def _without_overlap(self, entry: int, dims: list[int], coefficients: list[int], sizes: list[int]) -> Linear:
        """Never less than the extent: the sum of coefficient x size, a convex function of the logarithms."""
        parts = [self.tile(entry, dim) + math.log(c) for dim, c in zip(dims, coefficients, strict=True)]
        most = math.log(sum(c * n for c, n in zip(coefficients, sizes, strict=True)))
        extent = self.program.variable(0.0, most, whole=False)
        self.exact = False
        self._at_most(parts, extent)
        return extent

    # -- memories --------------------------------------------------------------------------------------------

    def _memories(self) -> None:
        for memory in self.space.architecture.memories:
            usable = self.space.usable_words(memory)
            if usable is None:
                continue
            places = held(self.space, self.keep, memory.name)
            words = [self._held_words(memory, entry, tensor) for entry, tensor in places]
            room = Linear(constant=math.log(usable) if usable else -1.0)
            for linear in words:
                self.program.require(linear - room, upper=SLACK)
            if len(words) > 1:
                self._at_most(words, room)

    def _held_words(self, memory: Memory, entry: int, tensor: int) -> Linear:
        """Words of the memory that the values take."""
        distinct = memory.footprint == "distinct"
        values = total(self._extents_of(entry, rank)[distinct] for rank in self.space.held[tensor].projection)
        return values + math.log(memory.words_of(self.space.problem.tensors[tensor]))

    def _at_most(self, parts: list[Linear], most: Linear) -> None:
        """exp(parts) sum to at most exp(most), seen from outside: the tangents of a convex function, in many places."""
        steps = [2.0**-k for k in (0, 1, 2, 3, 4, 6, 9)]
        for shares in itertools.product(steps, repeat=len(parts)):
            if max(shares) == 1.0:
                self.program.require(tangent(parts, [math.log(share) for share in shares]) - most, upper=SLACK)

    def cut(self, program: Program, values: Floats) -> bool:
        """Cut off a solution whose tiles do not fit together, by the tangent at its point; return whether one was added."""
        broken = False
        for memory in self.space.architecture.memories:
            words = [
                self._held_words(memory, entry, tensor) for entry, tensor in held(self.space, self.keep, memory.name)
            ]
            usable = self.space.usable_words(memory)
            if usable is None or len(words) < 2:
                continue
            here = [linear.at(values) for linear in words]
            if sum(math.exp(logarithm) for logarithm in here) > usable * (1 + SLACK):
                program.require(tangent(words, here), upper=math.log(usable))
                broken = True
        return broken

    # -- points ----------------------------------------------------------------------------------------------

    def read(self, points: Floats) -> Candidates:
        """Trip counts and keeps of solutions [n, variable], their loops in the plain order."""
        trips = np.ones((len(points), len(self.space.slots), len(self.space.problem.sizes)), dtype=np.int64)
        for (slot, dim), parts in self.exponents.items():
            for prime, exponent in parts:
                (variable,) = exponent.terms
                trips[:, slot, dim] *= prime ** np.rint(points[:, variable]).astype(np.int64)
        return Candidates(self.space, trips).keeping(self.keep)

    def values(self, row: Candidates) -> dict[int, float]:
        """The exponents of one mapping as values of variables."""
        values = {}
        for (slot, dim), parts in self.exponents.items():
            for prime, exponent in parts:
                (variable,), rest, count = exponent.terms, int(row.trips[0, slot, dim]), 0
                while rest % prime == 0:
                    rest, count = rest // prime, count + 1
                values[variable] = float(count)
        return values

    def sound(self, rows: Candidates) -> Bools:
        """Whether trip counts are of the space and fit, bool [n]."""
        trips = rows.trips
        good = (trips.prod(axis=1) == np.array(self.space.problem.sizes)).all(axis=1)
        for slot, dim in itertools.product(range(trips.shape[1]), range(trips.shape[2])):
            good &= self.space.allowed(trips, slot, dim)
        return np.asarray(good & rows.fits(), dtype=np.bool_)


def tangent(parts: list[Linear], at: list[float]) -> Linear:
    """The plane that touches log(sum of exp(part)) from below where the parts have these values."""
    top = max(at)
    weights = [math.exp(coordinate - top) for coordinate in at]
    value = top + math.log(sum(weights))
    slopes = [weight / sum(weights) for weight in weights]
    plane = total(part * slope for part, slope in zip(parts, slopes, strict=True))
    return plane + (value - sum(slope * coordinate for slope, coordinate in zip(slopes, at, strict=True)))
