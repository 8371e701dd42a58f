"""Memory levels, and the order of their decisions (Sunstone, Table VI)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilewright.mapspace.space import MapSpace

Inter = Literal["bottom_up", "top_down"]
Intra = Literal["unrolling_tiling_ordering", "tiling_unrolling_ordering", "ordering_tiling_unrolling"]


@dataclass(frozen=True)
class MemorySlots:
    """Slots of one memory.

    `loops` is the temporal slot inside the memory, whose trips are its tile; None if a fanout follows directly.
    `spatial` has the spatial slots outside it, innermost first, up to the next loops.
    """

    loops: int | None
    spatial: tuple[int, ...]


@dataclass(frozen=True)
class Decision:
    """Decision about one slot, which takes factors from slot `source` (None: the outermost loops)."""

    slot: int
    source: int | None = None


def levels_of(space: MapSpace) -> list[MemorySlots]:
    """Return the levels, innermost first; the last one has the outermost loops."""
    levels: list[MemorySlots] = []
    loops: int | None = None
    spatial: list[int] = []
    for index in range(len(space.slots) - 1, -1, -1):
        slot = space.slots[index]
        if slot.spatial:
            if (slot.most or 1) > 1:
                spatial.append(index)
            continue
        if loops is not None or spatial:
            levels.append(MemorySlots(loops, tuple(spatial)))
        loops, spatial = index, []
    levels.append(MemorySlots(loops, tuple(spatial)))
    return levels


def decisions(space: MapSpace, inter: Inter, intra: Intra) -> list[Decision]:
    """Return the slots in the order of their decisions.

    Bottom-up every level takes its factors from the outermost loops. Top-down it takes them from
    the surrounding loops, which then hold the tile of the memory around it.
    """
    levels = levels_of(space)
    if inter == "bottom_up":
        return [Decision(slot) for level in levels for slot in _within(level, intra)]
    around = [level.loops for level in levels[1:]] + [None]
    return [
        Decision(slot, source)
        for level, source in reversed(list(zip(levels, around, strict=True)))
        for slot in _within(level, intra)
    ]


def _within(level: MemorySlots, intra: Intra) -> list[int]:
    tile = [] if level.loops is None else [level.loops]
    return [*level.spatial, *tile] if intra == "unrolling_tiling_ordering" else [*tile, *level.spatial]


def array_first(space: MapSpace) -> list[Decision]:
    """Return all spatial slots, then all tiles: the array needs the few factors of a size most."""
    levels = levels_of(space)
    spatial = [Decision(slot) for level in levels for slot in level.spatial]
    return spatial + [Decision(level.loops) for level in levels if level.loops is not None]
