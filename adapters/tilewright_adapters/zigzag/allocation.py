"""ZigZag's allocation rule (its memory allocator), which determines the loops each memory keeps.

ZigZag's files specify only an order of loops. Every operand is allocated from the innermost memory
outwards. A memory keeps as many of the remaining loops as minimise accesses to the next memory,
while everything fits. The outermost memory keeps the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

ZigZagLoop = tuple[str, int | float]
"""Dimension and trips; trips of ragged unrollings are fractions, as in ZigZag."""
Term = tuple[str, int, str, int]
"""A coordinate that is a sum: dimension, coefficient, dimension, coefficient."""


@dataclass(frozen=True)
class Store:
    """A memory for the rule. `operands` are the layer's, in the file's order.

    Attributes:
        name: name of the memory.
        bits: capacity.
        operands: operands that it holds.
        served: dimensions of the array along which it is shared.
        double: whether it is double-buffered.
        widths: operand -> bits per cycle that it sends inwards; for the result, receives from
            inside.
    """

    name: str
    bits: int
    operands: tuple[str, ...]
    served: frozenset[str]
    double: bool = False
    widths: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Stored:
    """An operand for the rule.

    Attributes:
        dimensions: dimensions that index it alone.
        sums: its other coordinates, with the maximum number of values of each.
        bits: bits of an element; of a partial sum for the result.
        final_bits: bits of a finished element.
    """

    dimensions: tuple[str, ...]
    sums: tuple[tuple[Term, int], ...]
    bits: int
    final_bits: int

    def size(self, loops: Sequence[ZigZagLoop]) -> float:
        """Return the number of elements that these loops access."""
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
    """Error: a memory is too small for what it must keep."""


def distinct(a: int, count_a: int, b: int, count_b: int) -> int:
    """Return the number of values of a*i + b*j, by ZigZag's formula."""
    common = math.gcd(a, b)
    return count_a * count_b - max(0, count_b - a // common) * (count_a - b // common)


def reach(stores: Sequence[Store], stored: Mapping[str, Stored]) -> dict[tuple[str, str], tuple[int, str]]:
    """Return (array dimension, layer dimension) -> maximum unrolling, and the limiting memory.

    ZigZag unrolls a dimension no further than an innermost memory can move words in one cycle.
    """
    served: dict[tuple[str, str], tuple[int, str]] = {}
    for index, store in enumerate(stores):
        if any(set(store.operands) & set(other.operands) for other in stores[:index]):
            continue  # not the innermost memory of all its operands
        for operand in store.operands:
            if operand not in store.widths or not stored[operand].bits:
                continue
            most = store.widths[operand] // stored[operand].bits
            for name in stored[operand].indices:
                for axis in store.served:
                    served[axis, name] = min(served.get((axis, name), (most, store.name)), (most, store.name))
    return served


def allocated(
    stores: Sequence[Store],
    stored: Mapping[str, Stored],
    ordering: Sequence[tuple[str, int]],
    spatial: Mapping[str, Sequence[ZigZagLoop]],
) -> dict[str, list[int]]:
    """Return operand -> number of loops that each of its memories keeps, innermost first.

    Args:
        stores: memories, innermost first.
        stored: operand of the layer -> its properties.
        ordering: temporal loops, innermost first.
        spatial: dimension of the array -> its loops.

    Raises:
        DoesNotFitError: a memory cannot keep the tile of the spatial loops, or the outermost cannot
            keep the whole operand.
    """
    levels = {operand: [store for store in stores if operand in store.operands] for operand in stored}
    between = {operand: _attached(memories, spatial) for operand, memories in levels.items()}
    inside: dict[str, list[ZigZagLoop]] = {operand: list(between[operand][0]) for operand in stored}
    left: dict[str, list[tuple[str, int]]] = {operand: list(ordering) for operand in stored}
    taken: dict[str, list[int]] = {operand: [] for operand in stored}
    for store in stores:
        here = [operand for operand in store.operands if operand in stored]
        options = {}
        for operand in here:
            last = levels[operand][-1] is store
            beyond = [loop for loops in between[operand][len(taken[operand]) + 1 :] for loop in loops]
            sizes = _sizes(store, stored[operand], inside[operand], left[operand], beyond)
            if last and len(sizes) <= len(left[operand]):
                raise DoesNotFitError(f"{store.name} is too small for all of {operand}, and there is no outer memory")
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
    spatial: Mapping[str, Sequence[ZigZagLoop]],
    taken: Sequence[int],
) -> frozenset[str]:
    """Return the memories that receive partial sums from inside.

    They do if one of their own or outer loops reduces.

    Args:
        stores: memories, innermost first.
        result: the result's properties.
        ordering: temporal loops, innermost first.
        spatial: dimension of the array -> its loops.
        taken: number of loops that each memory of the result keeps, from `allocated`.
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
                *(loop for loops in between[level + 1 :] for loop in loops),
            )
        )
    )


def _attached(levels: Sequence[Store], spatial: Mapping[str, Sequence[ZigZagLoop]]) -> list[list[ZigZagLoop]]:
    """Return the spatial loops below each memory, innermost first, and finally those outside all."""
    remaining = dict(spatial)
    attached = []
    for store in levels:
        attached.append([loop for name in list(remaining) if name in store.served for loop in remaining.pop(name)])
    return [*attached, [loop for loops in remaining.values() for loop in loops]]


def _sizes(
    store: Store,
    operand: Stored,
    inside: Sequence[ZigZagLoop],
    left: Sequence[tuple[str, int]],
    beyond: Sequence[ZigZagLoop],
) -> list[float]:
    """Return the bits needed to keep 0, 1, 2, ... more loops, while they fit alone."""
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
                raise DoesNotFitError(f"{store.name} has {store.bits} bits, and the spatial loops need {size:g}")
            break
        sizes.append(size)
    return sizes


def _best(store: Store, options: Sequence[Sequence[tuple[int, float, float]]]) -> list[int]:
    """Return the fitting combination with the fewest accesses beyond; on a tie, the last."""
    best, fewest = None, math.inf
    for choice in product(*options):
        accesses = sum(option[2] for option in choice)
        if sum(option[1] for option in choice) <= store.bits and accesses <= fewest:
            best, fewest = [option[0] for option in choice], accesses
    if best is None:
        raise DoesNotFitError(f"{store.name} is too small for the tiles that all operands must keep there")
    return best
