"""Gating and skipping: which share of a tensor's accesses falls on empty tiles of its conditions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilewright.schema.problem import Tensor
from tilewright.schema.sparse import Saving
from tilewright_costmodels.timeloop.sparse.densities import Distribution
from tilewright_costmodels.timeloop.sparse.nest import COMPUTE, Extents, Loop, Nest, words


@dataclass(frozen=True)
class Saved:
    """Share of the accesses of one tensor at one level that an action saves."""

    share: float
    gates: bool
    in_space: bool = False


@dataclass(frozen=True, eq=False)
class Reach:
    """Tiles on which an action decides.

    Attributes:
        mold: iterations that the condition must be empty for.
        target: the loop whose steps it decides on.
        words: words of the tensor in one of its tiles there.
        loops: `target` and the outer loops whose iterations are in `mold`, innermost first;
            empty if it decides on single values.
    """

    mold: Extents
    target: Loop
    words: int
    loops: tuple[Loop, ...]


def savings(
    nest: Nest, densities: Mapping[str, Distribution], expected: Mapping[tuple[int, str], float]
) -> dict[tuple[int, str], Saved]:
    """Return what is saved, by level and tensor. Of several actions, the one that saves most counts.

    Args:
        expected: see `_best`.
    """
    shares: dict[tuple[int, str], Saved] = {}
    for gates in (True, False):
        for level in range(len(nest.levels)):
            for saving in actions(nest, level):
                if saving.kind == ("gate" if gates else "skip"):
                    at, name, share = _best(nest, densities, expected, level, saving)
                    if (at, name) not in shares or share > shares[at, name].share:
                        shares[at, name] = Saved(share, gates)
    return shares


def actions(nest: Nest, level: int) -> Iterator[Saving]:
    """Yield the actions of the memories of a level."""
    cluster = nest.architecture.clusters[nest.levels[level].cluster]
    for memory in cluster.memories:
        if memory.sparse is not None:
            yield from memory.sparse.actions_on(nest.problem.tensors)


def _best(
    nest: Nest,
    densities: Mapping[str, Distribution],
    expected: Mapping[tuple[int, str], float],
    level: int,
    saving: Saving,
) -> tuple[int, str, float]:
    """Return (level, tensor, share) of the alternative that saves most energy; the last of equals.

    Args:
        expected: words and pieces of metadata that one access of a tile moves, by level and tensor.
    """
    best: tuple[float, int, str, float] | None = None
    for option in saving.options:
        tensor = nest.problem.tensor(option.tensor)
        at = nest.kept_from(tensor, level)
        assert at is not None, "the model has refused other mappings"
        share = share_of(nest, densities, tensor, at, [nest.problem.tensor(name) for name in option.when_empty])
        memory = nest.memory(tensor, at)
        worth = memory.read_energy_pj / memory.block_words * expected[at, tensor.name] * share
        if best is None or worth >= best[0]:
            best = worth, at, tensor.name, share
    assert best is not None
    return best[1:]


def share_of(
    nest: Nest, densities: Mapping[str, Distribution], tensor: Tensor, level: int, conditions: list[Tensor]
) -> float:
    """Return the share of a tensor's accesses at a level for which some condition's tile is empty."""
    reach = reach_of(nest, tensor, level)
    kept = 1.0
    for condition in conditions:
        mold = _seen(nest, reach, tensor, level, condition)
        if mold is not None:
            kept *= 1 - densities[condition.name].empty(nest.box(condition, mold))
    return 1 - kept


def reach_of(nest: Nest, tensor: Tensor, level: int) -> Reach:
    """Return the tiles on which an action of a level decides."""
    child = nest.child(tensor, level)
    loops = nest.loops(child + 1, level)
    indexes = [loop.dimension in tensor.dimensions for loop in loops]
    several = [loop.trips > 1 for loop in loops]
    if child != COMPUTE:
        at = next((i for i in range(len(loops)) if indexes[i] and several[i]), len(loops) - 1)
    else:
        at = next(
            i
            for i in range(len(loops))
            if i + 1 == len(loops) or not loops[i + 1].spatial or (indexes[i] and several[i])
        )
    target, single = loops[at], child == COMPUTE and not loops[at].spatial
    mold = dict(nest.unit if single else target.mold)
    size, taken = words(nest.box(tensor, mold)), [] if single else [target]
    passing = target.spatial and child != COMPUTE
    for i in range(at + 1, len(loops)):
        loop = loops[i]
        if not loop.spatial and indexes[i] and several[i]:
            passing = False
        if (loop.spatial or passing) and several[i]:
            mold[loop.dimension] *= loop.trips
            if not single:
                taken.append(loop)
    return Reach(mold, target, size, tuple(taken))


def _seen(nest: Nest, reach: Reach, tensor: Tensor, level: int, condition: Tensor) -> Extents | None:
    """Return the iterations for which a condition must be empty; None if the condition has no effect.

    Of loops that step both tensors, only what one step covers counts.
    """
    trips: Extents = {}
    for loop in reach.loops:
        if loop.dimension in condition.dimensions:
            if reach.target.spatial and trips:
                return None
            if loop.dimension in tensor.dimensions:
                trips[loop.dimension] = trips.get(loop.dimension, 1) * loop.trips
    needed: float = math.ceil(nest.memory(tensor, level).block_words / (reach.words / math.prod(trips.values())))
    mold = dict(reach.mold)
    for name in nest.problem.dimensions:
        if name in trips:
            single, mold[name] = math.ceil(mold[name] / trips[name]), math.ceil(mold[name] / (trips[name] / needed))
            if mold[name] < single:
                nest.note("second_coiteration", tensor, level)
            needed /= trips[name]
    if needed > 1:
        mold[reach.target.dimension] = int(mold[reach.target.dimension] * needed)
    return mold
