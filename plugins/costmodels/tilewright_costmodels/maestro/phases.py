"""Phases: kinds of steps of a level. MAESTRO does not walk the nest, it multiplies the states of the directives."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilewright.errors import NotConformableError, Reason
from tilewright.notations.directives import Map
from tilewright_costmodels.maestro.levels import Level, folds


@dataclass(frozen=True)
class State:
    """What one directive does in a phase; `times` it does so.

    Attributes:
        first: its first step; else it has moved.
        edge: its tile is the short last one.
        unrolled: one step covers everything.
        partial_last: the last sub-cluster at work gets a short tile.
    """

    times: int
    first: bool
    edge: bool = False
    unrolled: bool = False
    partial_last: bool = False


@dataclass(frozen=True)
class Phase:
    """One state per directive of the level, in its order."""

    states: tuple[State, ...]
    occurrences: int
    moved: int | None
    """The innermost directive that has moved; None in the very first step."""


def phases_of(level: Level, sizes: Mapping[str, int]) -> Iterator[Phase]:
    """All phases on a sub-problem of actual `sizes`, in MAESTRO's order (a few figures depend on it)."""
    choices = [_states(each, level, sizes[each.dimension]) for each in level.maps]
    count = math.prod(len(states) for states in choices)
    for number in range(count):
        inside = count
        states = []
        for each in choices:
            inside //= len(each)
            states.append(each[-(-number // inside) % len(each)])
        moved = [index for index, state in enumerate(states) if not state.first]
        yield Phase(tuple(states), math.prod(state.times for state in states), moved[-1] if moved else None)


def _states(each: Map, level: Level, size: int) -> list[State]:
    return _spatial(each, size, level.sub_clusters) if each.spatial else _temporal(each, size, level)


def _temporal(each: Map, size: int, level: Level) -> list[State]:
    states = [State(1, first=True, edge=size < each.size, unrolled=size <= each.size)]
    if each.size < size and level.sizes[each.dimension] <= each.size:
        message = f"{each} has {size} to cover here and moves, although nominally one step covers everything"
        reason = Reason(code="moving", where=f"dimension {each.dimension}", message=message)
        raise NotConformableError("cost model maestro", [reason])
    steps = (size - each.size) // each.offset if each.size < size else 0
    if steps > 0:
        states.append(State(steps, first=False))
    if size >= each.size and steps * each.offset + each.size < size:
        states.append(State(1, first=False, edge=True))
    return states


def _spatial(each: Map, size: int, clusters: int) -> list[State]:
    covered = each.size + each.offset * (clusters - 1)
    short = size < covered
    states = [State(1, first=True, edge=short, unrolled=size <= covered, partial_last=short)]
    if covered >= size:
        return states
    steps = folds(each, size, clusters)
    if steps > 0:
        states.append(State(steps, first=False))
    if covered + steps * each.offset * clusters != size:
        rest = size - (steps + 1) * each.offset * clusters
        whole = 1 if rest < each.size else (rest - each.size) // each.offset + 1
        states.append(State(1, first=False, edge=True, partial_last=(whole - 1) * each.offset + each.size < rest))
    return states
