"""Skipping in space: how many units have work if empty tiles occupy none."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from tilewright.errors import Reason
from tilewright.schema.problem import Tensor
from tilewright_costmodels.sparse_refusals import RefusedError
from tilewright_costmodels.timeloop.sparse.densities import Banded, Distribution, Structured
from tilewright_costmodels.timeloop.sparse.formats import Stored
from tilewright_costmodels.timeloop.sparse.nest import COMPUTE, Extents, Loop, Nest, words
from tilewright_costmodels.timeloop.sparse.savings import Saved, actions


@dataclass
class Units:
    """Units inside one level with work of one tensor: at most `x` times `y`, and on average the share `part` of all."""

    x: int
    y: int
    part: float = 1.0


@dataclass(frozen=True)
class Spread:
    """Units with work, by level (`COMPUTE`: compute units) and tensor, and what their actions save."""

    units: dict[tuple[int, str], Units]
    saved: dict[tuple[int, str], Saved]


def dense_units(nest: Nest, level: int) -> Units:
    """Return the units inside a level that a mapping unrolls over."""
    units = Units(1, 1)
    for loop in nest.loops(level, len(nest.levels) - 1):
        if loop.spatial:
            units.x, units.y = (units.x, units.y * loop.trips) if loop.axis == "Y" else (units.x * loop.trips, units.y)
    return units


def spread(
    nest: Nest, stored: Mapping[tuple[int, str], Stored], densities: Mapping[str, Distribution]
) -> Spread | None:
    """Return the units with work; None if no action skips in space.

    Raises:
        RefusedError: no unit has work, or tiles of units do not divide what all units need.
    """
    found = [
        (level, saving)
        for level in range(len(nest.levels))
        for saving in actions(nest, level)
        if saving.kind == "skip_units"
    ]
    if not found:
        return None
    units, saved = dict[tuple[int, str], Units](), dict[tuple[int, str], Saved]()
    for tensor in nest.problem.tensors:
        dense = [dense_units(nest, level) for level in range(len(nest.levels))]
        mine = [replace(each) for each in dense]
        for level, each in enumerate(mine):
            _reduce(nest, stored, densities, level, tensor, tensor, each)
        _pass_on(tensor, mine, dense, {level for level, each in enumerate(mine) if each.part != 1})
        before = [replace(each) for each in mine]
        skips = set[int]()
        for level, saving in found:
            for option in saving.options:
                if option.tensor == tensor.name:
                    condition = nest.problem.tensor(option.when_empty[0])
                    mine[level].part = 1.0  # Timeloop forgets the share by the tensor's own format
                    _reduce(nest, stored, densities, level, tensor, condition, mine[level])
                    skips.add(level)
        _pass_on(tensor, mine, before, skips)
        for level in skips:
            at = nest.kept_from(tensor, level)
            assert at is not None, "checked by the caller"
            saved[at, tensor.name] = Saved(1 - mine[level].part, gates=False, in_space=True)
        units |= {(level - 1, tensor.name): each for level, each in enumerate(mine)}
    return Spread(units, saved)


def _pass_on(tensor: Tensor, units: list[Units], before: list[Units], stops: Collection[int]) -> None:
    """Reduce the units inside every level by what outer levels leave out; averages only up to one of `stops`.

    As in Timeloop, a reduction applies again at every level that it has reached.

    Raises:
        RefusedError: a level has no unit with work.
    """
    for level in range(len(units) - 1, 0, -1):
        along_x, along_y = units[level].x / before[level].x, units[level].y / before[level].y
        if (along_x, along_y) != (1, 1):
            for inner in range(level - 1, -1, -1):
                units[inner].x, units[inner].y = int(units[inner].x * along_x), int(units[inner].y * along_y)
                if not any(inner <= stop < level for stop in stops):
                    units[inner].part *= units[level].part
    if any(unit.x * unit.y == 0 for unit in units):
        raise RefusedError("no_units", tensor.name, "skipping in space leaves it no unit")


def _reduce(
    nest: Nest,
    stored: Mapping[tuple[int, str], Stored],
    densities: Mapping[str, Distribution],
    level: int,
    tensor: Tensor,
    condition: Tensor,
    units: Units,
) -> None:
    """Leave out units whose tile of a condition is empty, if its format tells which ones are."""
    kept = nest.kept_from(condition, level)
    if kept is None or not stored[kept, condition.name].has_metadata:
        return
    density, part = densities[condition.name], None
    inside = nest.levels[level - 1].loops[-1].mold if level else nest.unit
    for loop in nest.levels[level].loops:
        if loop.spatial and loop.trips > 1 and loop.dimension in condition.dimensions:
            mold = _covered(nest, tensor, condition, level, loop, inside)
            tile = nest.box(condition, mold)
            fiber = nest.box(condition, mold | {loop.dimension: mold[loop.dimension] * loop.trips})
            tiles, most = words(fiber) / words(tile), density.most(fiber)
            if words(fiber) % words(tile) and isinstance(density, Structured):
                text = f"{words(fiber)} words of {condition.name} are not whole tiles of {words(tile)} words per unit"
                raise RefusedError("spatial_tiles", nest.memory(condition, kept).name, text)
            if isinstance(density, Banded):
                busy: float = math.ceil(tiles * density.empty(tile, fiber, most))
            else:
                busy = min(tiles, most)
            if loop.axis == "Y":
                units.y = math.floor(units.y * busy / loop.trips)
            else:
                units.x = math.floor(units.x * busy / loop.trips)
            part = 1 - density.empty(tile) if part is None else part
        inside = loop.mold
    if part is not None:
        units.part = part


def _covered(nest: Nest, tensor: Tensor, condition: Tensor, level: int, loop: Loop, inside: Extents) -> Extents:
    """Return the iterations of the sub-tile that one unit needs to have work."""
    both = tensor is not condition and loop.dimension in tensor.dimensions
    if not both or nest.child(tensor, level) == COMPUTE:
        return inside
    mold = dict(inside)
    for outer in nest.loops(level, nest.kept_from(tensor, level) or level):
        if not outer.spatial and outer.trips > 1:
            if outer.dimension in tensor.dimensions:
                break
            mold[outer.dimension] *= outer.trips
    return mold


def crowded(nest: Nest, spreading: Spread) -> Iterator[Reason]:
    """Yield a reason for every fanout that is too small for the units with work."""
    clusters = nest.architecture.clusters
    ends = [len(clusters), *(level.cluster for level in nest.levels)]
    for at, level in enumerate(nest.levels):
        for axis, field in (("X", "x"), ("Y", "y")):
            fans = (cluster.fanout for cluster in clusters[level.cluster : ends[at]])
            exist = math.prod(fan.size for fan in fans if (fan.axis == "Y") == (axis == "Y"))
            used = max(
                getattr(spreading.units[at - 1, name], field)
                // (getattr(spreading.units[at, name], field) if at + 1 < len(nest.levels) else 1)
                for name in nest.problem.tensor_names
            )
            if used > exist:
                text = f"{used} sub-clusters with work along {axis}, {exist} exist"
                yield Reason(code="fanout", where=clusters[level.cluster].name, message=text)
