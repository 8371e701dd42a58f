"""A mapping of ours as directives.

Loops outside the tile that L1 holds become levels: the loops in time before a split and the split itself are one
level, each dimension once. What a PE does inside its L1 tile is no directive: MAESTRO only counts its operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.directives import WINDOWS, DirectiveHardware, DirectiveLayer, Map
from tilewright.mapping import Loop, Mapping
from tilewright.problem import Problem
from tilewright_costmodels.maestro.hardware import Plan
from tilewright_costmodels.maestro.roles import Roles, refusal


@dataclass
class _Draft:
    """A level while it is built: letters in loop order, and tiles that leave the level, in outputs for Y and X."""

    order: list[str] = field(default_factory=list)
    tiles: dict[str, int] = field(default_factory=dict)
    split: str | None = None
    clusters: int = 1


def directives_of(
    problem: Problem, mapping: Mapping, roles: Roles, plan: Plan
) -> tuple[DirectiveLayer, DirectiveHardware]:
    """The layer and the part of the hardware that the mapping uses. The mapping is legal.

    Raises:
        NotConformableError: bypassed or unevenly held tensors, a filter cut outside L1, a dimension that would need
            two loops in one level.
    """
    first, last = _held_in_l1(problem, mapping, plan)
    outside: list[Loop] = []
    lanes = 1
    for loop in mapping.loops():
        if loop.entry < last or (loop.entry == last and not loop.spatial):
            outside.append(loop)
        elif loop.spatial:
            lanes *= loop.trips
    if any(first < loop.entry <= last for loop in outside):
        raise refusal("uneven", plan.l1.name, "holds tiles of different entries; MAESTRO has one tile per PE")
    drafts = _drafts(outside, roles)
    levels, sizes = [], {roles.letters[name]: size for name, size in problem.dimensions.items()}
    for draft in drafts:
        levels.append(_maps(draft, roles, sizes, problem))
        sizes |= draft.tiles
    clusters = [draft.clusters for draft in drafts]
    layer = DirectiveLayer.model_validate(
        {
            "name": problem.name,
            "type": roles.type,
            "dimensions": roles.sizes(problem),
            "strides": dict(roles.strides),
            "levels": tuple(levels),
            "cluster_sizes": tuple(clusters[1:]),
        }
    )
    hardware = DirectiveHardware(
        num_pes=math.prod(clusters),
        noc_bandwidth=plan.noc_bandwidth,
        noc_latency=plan.noc_latency,
        offchip_bandwidth=plan.offchip_bandwidth,
        simd_lanes=lanes,
    )
    return layer, hardware


def _held_in_l1(problem: Problem, mapping: Mapping, plan: Plan) -> tuple[int, int]:
    """First and last entry that holds something in L1. All tensors must go through both buffers."""
    for cluster in (plan.l2, plan.l1):
        kept = {name for entry in mapping.entries if entry.target == cluster.name for name in entry.keep or ()}
        missing = [name for name in problem.tensor_names if name not in kept]
        if missing:
            message = f"{', '.join(missing)} bypasses it; in MAESTRO every tensor goes through L2 and L1"
            raise refusal("bypass", cluster.name, message)
    holding = [index for index, entry in enumerate(mapping.entries) if entry.target == plan.l1.name and entry.keep]
    return holding[0], holding[-1]


def _drafts(loops: Sequence[Loop], roles: Roles) -> list[_Draft]:
    drafts = [_Draft()]
    tiles: dict[str, int] = {}
    for index, loop in enumerate(loops):
        letter, draft = roles.letters[loop.dimension], drafts[-1]
        if letter in WINDOWS.values() and roles.type != "GEMM":
            message = "is cut outside L1; MAESTRO wants filters whole there (a split one needs a diagonal)"
            raise refusal("window", f"dimension {loop.dimension}", message)
        more_splits = any(later.spatial for later in loops[index:])
        inside = draft.split is not None and (more_splits or letter in draft.order or letter == draft.split)
        if inside:
            draft = _Draft()
            drafts.append(draft)
        if loop.spatial:
            if letter in draft.order and tiles[letter] != loop.tile * loop.trips:
                message = f"steps by {tiles[letter]} and is split in {loop.trips} times {loop.tile} in one level"
                raise refusal("fold", f"dimension {loop.dimension}", message)
            draft.split, draft.clusters = letter, loop.trips
        elif letter not in draft.order:
            draft.order.append(letter)
        elif draft.order[-1] != letter:
            message = "would need two loops in one level; MAESTRO has one per dimension"
            raise refusal("repeated", f"dimension {loop.dimension}", message)
        tiles[letter] = draft.tiles[letter] = loop.tile
    return drafts


def _maps(draft: _Draft, roles: Roles, sizes: dict[str, int], problem: Problem) -> tuple[Map, ...]:
    """The directives of a level; dimensions that stay whole are filled in by MAESTRO's own rules."""
    order = list(draft.order)
    split = draft.split
    if split is None:  # a level needs a SpatialMap: with one sub-cluster it is a loop like any other
        split = next((letter for letter in ("R", "M", "N", "K") if letter in sizes and letter not in order), None)
        split = split or next((letter for letter in order if letter not in WINDOWS), None) or "C"
    if split not in order:
        order.append(split)
    return tuple(_map(letter, letter == split, draft.tiles.get(letter, sizes.get(letter, 1)), roles, problem)
                 for letter in order)  # fmt: skip


def _map(letter: str, spatial: bool, tile: int, roles: Roles, problem: Problem) -> Map:
    if roles.type == "GEMM" or letter not in WINDOWS:
        return Map(spatial=spatial, size=tile, offset=tile, dimension=letter)
    window = roles.sizes(problem)[WINDOWS[letter]]
    offset = tile * roles.strides.get(letter, 1)
    return Map(spatial=spatial, size=roles.inputs(letter, tile, window), offset=offset, dimension=letter)
