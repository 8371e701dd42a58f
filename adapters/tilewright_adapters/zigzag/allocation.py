"""Which loops a memory keeps: ZigZag's own rule (its memory allocator), as its files say an order of loops only.

Every operand goes through its memories from the innermost on, and each takes as many of the remaining loops as make the
fewest accesses to the next one while everything fits; the outermost takes the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

Loop = tuple[str, int | float]
"""Dimension and trips; unrollings that do not divide have fractions, as in ZigZag."""
Term = tuple[str, int, str, int]
"""A coordinate that is a sum: dimension, coefficient, dimension, coefficient."""


@dataclass(frozen=True)
class Store:
    """A memory as the rule sees it: `operands` of the layer in the file's order.

    Attributes:
        served: dimensions of the array along which it is shared.
        widths: operand -> bits per cycle that it hands inwards, or takes from there of the result.
    """

    name: str
    bits: int
    operands: tuple[str, ...]
    served: frozenset[str]
    double: bool = False
    widths: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Stored:
    """What the rule knows of an operand.

    Attributes:
        dimensions: those that index it by themselves.
        sums: its other coordinates, with the largest number of values of each.
        bits: of an element; of a partial sum for the result.
        final_bits: of a finished one.
    """

    dimensions: tuple[str, ...]
    sums: tuple[tuple[Term, int], ...]
    bits: int
    final_bits: int

    def size(self, loops: Sequence[Loop]) -> float:
        """Elements that these loops touch."""
        trips: dict[str, int | float] = {}
        for dimension, count in loops:
            trips[dimension] = trips.get(dimension, 1) * count
        size: float = math.prod(trips.get(dimension, 1) for dimension in self.dimensions)
        for (first, a, second, b), most in self.sums:
            values = distinct(a, int(trips.get(first, 1)), b, int(trips.get(second, 1)))
            size *= min(most, values)
        return size

    @property
    def indices(self) -> tuple[str, ...]:
        """Dimensions that index it, alone or in sums."""
        return (*self.dimensions, *(name for term, _ in self.sums for name in (term[0], term[2])))

    def indexed_by(self, dimension: str) -> bool:
        return dimension in self.indices


class DoesNotFitError(Exception):
    """A memory is too small for what it must keep."""


def distinct(a: int, count_a: int, b: int, count_b: int) -> int:
    """Values of a*i + b*j, as ZigZag counts them."""
    common = math.gcd(a, b)
    return count_a * count_b - max(0, count_b - a // common) * (count_a - b // common)


def reach(stores: Sequence[Store], stored: Mapping[str, Stored]) -> dict[tuple[str, str], tuple[int, str]]:
    """(Dimension of the array, of the layer) -> how often ZigZag unrolls it there at most, and the memory that says so.

    It unrolls a dimension no further than an innermost memory can move words at once.
    """
    found: dict[tuple[str, str], tuple[int, str]] = {}
    for index, store in enumerate(stores):
        if any(set(store.operands) & set(other.operands) for other in stores[:index]):
            continue  # not the innermost of all its operands
        for operand in store.operands:
            if operand not in store.widths or not stored[operand].bits:
                continue
            most = store.widths[operand] // stored[operand].bits
            for name in stored[operand].indices:
                for axis in store.served:
                    found[axis, name] = min(found.get((axis, name), (most, store.name)), (most, store.name))
    return found


def allocated(
    stores: Sequence[Store],
    stored: Mapping[str, Stored],
    ordering: Sequence[tuple[str, int]],
    spatial: Mapping[str, Sequence[Loop]],
) -> dict[str, list[int]]:
    """Operand -> per memory of it, innermost first, how many loops it takes.

    Args:
        stores: innermost first.
        stored: operand of the layer -> what is known of it.
        ordering: loops in time, innermost first.
        spatial: dimension of the array -> its loops.

    Raises:
        DoesNotFitError: no memory could keep what the loops in space alone demand, or the outermost not all.
    """
    levels = {operand: [store for store in stores if operand in store.operands] for operand in stored}
    between = {operand: _attached(found, spatial) for operand, found in levels.items()}
    inside: dict[str, list[Loop]] = {operand: list(between[operand][0]) for operand in stored}
    left: dict[str, list[tuple[str, int]]] = {operand: list(ordering) for operand in stored}
    taken: dict[str, list[int]] = {operand: [] for operand in stored}
    for store in stores:
        here = [operand for operand in store.operands if operand in stored]
        options = {}
        for operand in here:
            last = levels[operand][-1] is store
            beyond = [loop for each in between[operand][len(taken[operand]) + 1 :] for loop in each]
            sizes = _sizes(store, stored[operand], inside[operand], left[operand], beyond)
            if last and len(sizes) <= len(left[operand]):
                raise DoesNotFitError(f"{store.name} is too small for all of {operand}, and there is none beyond it")
            counts = [len(left[operand])] if last else range(len(sizes))
            options[operand] = [
                (count, sizes[count], 0 if last else sizes[count] * math.prod(n for _, n in left[operand][count:]))
                for count in counts
            ]
        for operand, count in zip(here, _best(store, list(options.values())), strict=True):
            taken[operand].append(count)
            inside[operand] += [*left[operand][:count], *between[operand][len(taken[operand])]]
            del left[operand][:count]
    return taken


def summing(
    stores: Sequence[Store],
    result: Stored,
    ordering: Sequence[tuple[str, int]],
    spatial: Mapping[str, Sequence[Loop]],
    taken: Sequence[int],
) -> frozenset[str]:
    """Memories to which partial sums come from inside, for loops of these or further out add to them.

    Args:
        taken: loops that each memory of the result takes, innermost first, as `allocated` gives them.
    """
    levels = [store for store in stores if "O" in store.operands]
    between = _attached(levels, spatial)
    return frozenset(
        store.name
        for level, store in enumerate(levels)
        if any(
            not result.indexed_by(name) and trips > 1
            for name, trips in (
                *ordering[sum(taken[:level]) :],
                *(loop for each in between[level + 1 :] for loop in each),
            )
        )
    )


def _attached(levels: Sequence[Store], spatial: Mapping[str, Sequence[Loop]]) -> list[list[Loop]]:
    """Loops in space below each memory, innermost first, and at last those above all."""
    remaining = dict(spatial)
    found = []
    for store in levels:
        found.append([loop for name in list(remaining) if name in store.served for loop in remaining.pop(name)])
    return [*found, [loop for loops in remaining.values() for loop in loops]]


def _sizes(
    store: Store,
    operand: Stored,
    inside: Sequence[Loop],
    left: Sequence[tuple[str, int]],
    beyond: Sequence[Loop],
) -> list[float]:
    """Bits that it takes to keep 0, 1, 2, ... more loops, as far as that fits by itself."""
    summed = any(not operand.indexed_by(dimension) for dimension, _ in (*beyond, *left))
    bits = operand.bits if summed else operand.final_bits
    whole = operand.size([*inside, *left]) * bits
    sizes = []
    for count in range(len(left) + 1):
        size = operand.size([*inside, *left[:count]]) * bits
        if store.double and count < len(left) and size < whole:
            size *= 2
        if size > store.bits:
            if not count:
                raise DoesNotFitError(f"{store.name} holds {store.bits} bits, and the loops inside need {size:g}")
            break
        sizes.append(size)
    return sizes


def _best(store: Store, options: Sequence[Sequence[tuple[int, float, float]]]) -> list[int]:
    """The combination with the fewest accesses beyond that fits; of equal ones the last."""
    best, fewest = None, math.inf
    for choice in product(*options):
        accesses = sum(each[2] for each in choice)
        if sum(each[1] for each in choice) <= store.bits and accesses <= fewest:
            best, fewest = [each[0] for each in choice], accesses
    if best is None:
        raise DoesNotFitError(f"{store.name} is too small for what all operands must keep there")
    return best
