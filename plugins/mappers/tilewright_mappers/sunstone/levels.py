"""Levels: a memory's loops and the spatial slots around them, and in which order they are decided (Sunstone, Table VI)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilewright.mapspace.space import MapSpace

Inter = Literal["bottom_up", "top_down"]
Intra = Literal["unrolling_tiling_ordering", "tiling_unrolling_ordering", "ordering_tiling_unrolling"]


@dataclass(frozen=True)
class MemorySlots:
    """Slots of one memory: `loops` inside it (None: its fanout stands right inside), whose trips are its tile, and
    `spatial` ones outside of it, innermost first, up to the next loops."""

    loops: int | None
    spatial: tuple[int, ...]


@dataclass(frozen=True)
class Decision:
    """Decide one slot by moving factors there from the loops of slot `source` (None: the outermost, home)."""

    slot: int
    source: int | None = None


def levels_of(space: MapSpace) -> list[MemorySlots]:
    """Innermost first; the last one's loops are the outermost and take what is left."""
    found: list[MemorySlots] = []
    loops: int | None = None
    spatial: list[int] = []
    for index in range(len(space.slots) - 1, -1, -1):
        slot = space.slots[index]
        if slot.spatial:
            if (slot.most or 1) > 1:
                spatial.append(index)
            continue
        if loops is not None or spatial:
            found.append(MemorySlots(loops, tuple(spatial)))
        loops, spatial = index, []
    found.append(MemorySlots(loops, tuple(spatial)))
    return found


def decisions(space: MapSpace, inter: Inter, intra: Intra) -> list[Decision]:
    """The slots in the order in which they are decided.

    Bottom-up every level takes its factors from the outermost loops; top-down from the loops around it, which then hold
    the tile of the memory around it.
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
    """All spatial slots before all tiles, each from inside: for sizes whose few factors the array needs most."""
    levels = levels_of(space)
    spatial = [Decision(slot) for level in levels for slot in level.spatial]
    return spatial + [Decision(level.loops) for level in levels if level.loops is not None]
