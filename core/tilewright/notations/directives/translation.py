"""A mapping of ours as directives.

Loops outside the tile that L1 holds become levels. What a PE does inside its L1 tile is no directive: MAESTRO only
counts its operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.mapspace.legality import place
from tilewright.notations.directives.plan import Plan
from tilewright.notations.directives.program import WINDOWS, DirectiveHardware, DirectiveLayer, Map
from tilewright.notations.directives.roles import Roles, refusal
from tilewright.notations.directives.shape import LevelShape, NestLoop, shape_of
from tilewright.schema.mapping import Loop, Mapping
from tilewright.schema.problem import Problem

MAX_LEVELS = 4
"""MAESTRO knows three Cluster directives."""


def directives_of(
    problem: Problem, mapping: Mapping, roles: Roles, plan: Plan
) -> tuple[DirectiveLayer, DirectiveHardware]:
    """The layer and the part of the hardware that the mapping uses. The mapping is legal.

    Raises:
        NotConformableError: tensors sent separately, bypassed or unevenly held; a filter cut in time outside L1, or in
            space under a stride or unequally; a dimension that would need two loops in one level; a fold that is not full.
    """
    _check_unicast(mapping)
    outside, lanes = _outside(problem, mapping, plan)
    shapes = shape_of([NestLoop(roles.letters[loop.dimension], loop.spatial) for loop in outside], roles)
    whole = roles.sizes(problem)
    sizes = {roles.letters[name]: size for name, size in problem.dimensions.items()}
    levels, clusters = [], []
    for shape in shapes:
        _check_fold(shape, outside)
        _check_diagonal(shape, outside, sizes)
        tiles = sizes | {letter: outside[index].tile for letter, index in shape.tiles.items()}
        levels.append(_maps(shape, tiles, roles))
        clusters.append(1 if shape.clusters is None else outside[shape.clusters].trips)
        sizes = tiles
    layer = DirectiveLayer.model_validate(
        {
            "name": problem.name,
            "type": roles.type,
            "dimensions": whole,
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


def _check_unicast(mapping: Mapping) -> None:
    for index, (entry, (_, spatial)) in enumerate(zip(mapping.entries, mapping.factors(), strict=True)):
        if entry.unicast and math.prod(spatial.values()) > 1:
            message = f"sends {', '.join(entry.unicast)} to each sub-cluster separately; MAESTRO always multicasts"
            raise refusal("unicast", place(mapping, index), message)


def _outside(problem: Problem, mapping: Mapping, plan: Plan) -> tuple[list[Loop], int]:
    """The loops outside the tiles of L1, and the MACs at once that loops in space inside them make."""
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
    return outside, lanes


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


def _check_fold(shape: LevelShape, loops: Sequence[Loop]) -> None:
    """A letter that steps and is split in one level: the steps are full folds of the split."""
    if shape.folded is None or shape.clusters is None:
        return
    steps, split = loops[shape.folded], loops[shape.clusters]
    if steps.tile != split.tile * split.trips:
        message = f"steps by {steps.tile} and is split in {split.trips} times {split.tile} in one level"
        raise refusal("fold", f"dimension {split.dimension}", message)


def _check_diagonal(shape: LevelShape, loops: Sequence[Loop], sizes: dict[str, int]) -> None:
    if shape.diagonal is None or shape.clusters is None:
        return
    loop = loops[shape.clusters]
    if sizes[shape.split] != loop.tile * loop.trips:
        message = f"{sizes[shape.split]} are split in {loop.trips} times {loop.tile}; a diagonal's pieces are equal"
        raise refusal("window", f"dimension {loop.dimension}", message)


def _maps(shape: LevelShape, tiles: dict[str, int], roles: Roles) -> tuple[Map, ...]:
    spatial = (shape.split, shape.diagonal)
    return tuple(
        Map(spatial=letter in spatial, size=size, offset=offset, dimension=letter)
        for letter in shape.order
        for size, offset in [_extent(letter, shape, tiles, roles)]
    )


def _extent(letter: str, shape: LevelShape, tiles: dict[str, int], roles: Roles) -> tuple[int, int]:
    """Size and offset of a directive, of inputs for Y and X, for tiles of outputs."""
    tile = tiles.get(letter, 1)
    if roles.type == "GEMM" or letter not in WINDOWS:
        return tile, tile
    window = tiles.get(WINDOWS[letter], 1)
    offset = window if letter == shape.diagonal else tile * roles.strides.get(letter, 1)
    return roles.inputs(letter, tile, window), offset
