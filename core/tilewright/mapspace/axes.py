"""Map spaces in which no dimension is unrolled along two axes of one memory level.

A level is a storage entry with the unrollings up to the next one. Timeloop unrolls a dimension along X or along Y there.
Such mappings are the union of spaces: each gives every dimension that both axes may unroll to one of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from tilewright.errors import InputError
from tilewright.mapspace.skeleton import Slot
from tilewright.mapspace.space import MapSpace
from tilewright.schema.constraints import SpatialRule

MAX_PARTS = 256
"""Maximum number of spaces in a union."""


def on_one_axis(space: MapSpace) -> tuple[MapSpace, ...]:
    """Return the map spaces whose union has the mappings without a dimension along two axes of one level.

    >>> from tilewright import space
    >>> whole = space("nk,km->nm; n=4 k=2 m=2", "eyeriss", constraints="none")
    >>> whole.size, [part.size for part in on_one_axis(whole)][:2], len(on_one_axis(whole))
    (2090, [1300, 1301], 8)

    Raises:
        InputError: There are more than `MAX_PARTS`.
    """
    shared = [(level, dim) for level in _levels(space) for dim in _shared(space, level)]
    if 2 ** len(shared) > MAX_PARTS:
        text = f"{len(shared)} dimensions of {space.problem.name} may be unrolled along several axes; at most 8 are searched"
        raise InputError(text, hint="limit the dimensions of a fanout in the constraints (`spatial`, `only`)")
    axes = [sorted({_axis(space, slot) for slot in level}) for level, _ in shared]
    parts = [_part(space, shared, choice) for choice in itertools.product(*axes)]
    return tuple(part for part in parts if part.factorizations) or tuple(parts[:1])


def _levels(space: MapSpace) -> Iterator[list[Slot]]:
    """Yield the spatial slots of each level."""
    level: list[Slot] = []
    for number, entry in enumerate(space.skeleton.entries):
        if entry.holds:
            yield level
            level = []
        level += [slot for slot in space.slots if slot.spatial and slot.entry == number]
    yield level


def _axis(space: MapSpace, slot: Slot) -> str:
    return space.architecture.cluster(space.skeleton.entries[slot.entry].target).fanout.axis


def _shared(space: MapSpace, level: list[Slot]) -> list[int]:
    """Return the dimensions that may be unrolled along several axes of a level."""
    dims = range(len(space.problem.dimensions))
    able = {dim: {_axis(space, slot) for slot in level if slot.highest[dim] > 1} for dim in dims}
    return [dim for dim, size in enumerate(space.problem.sizes) if size > 1 and len(able[dim]) > 1]


def _part(space: MapSpace, shared: list[tuple[list[Slot], int]], choice: tuple[str, ...]) -> MapSpace:
    """Return the space in which each shared dimension is unrolled along its axis only."""
    barred = dict[str, set[str]]()
    names = space.problem.dimension_names
    for (level, dim), axis in zip(shared, choice, strict=True):
        for slot in level:
            if _axis(space, slot) != axis:
                barred.setdefault(space.skeleton.entries[slot.entry].target, set()).add(names[dim])
    rules = tuple(
        SpatialRule(cluster=cluster, only=tuple(name for name in names if name not in without))
        for cluster, without in barred.items()
    )
    return replace(space, rules=space.rules.model_copy(update={"spatial": (*space.rules.spatial, *rules)}))
