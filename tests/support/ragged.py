"""Random mappings whose tiles need not divide, small enough to execute."""

from __future__ import annotations

import math

from hypothesis import assume
from hypothesis import strategies as st

from tilewright.mapspace.legality import legality
from tilewright.schema.architecture import Architecture
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Entry, Mapping
from tilewright.schema.problem import Problem
from tilewright.testing.strategies import architectures

Case = tuple[Problem, Architecture, Mapping]
LETTERS = "ABCDEFG"


@st.composite
def problems(draw: st.DrawFn, plain: bool, macs: int) -> Problem:
    """One to seven dimensions of any size, two to four tensors; `plain`: a coordinate is one dimension, which has no other."""
    sizes: dict[str, int] = {}
    for letter in LETTERS[: draw(st.integers(1, 7))]:
        room = macs // math.prod(sizes.values())
        sizes[letter] = draw(st.integers(1, max(1, min(13, room))))
    names = list(sizes)

    def coordinate() -> str:
        terms = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
        return " + ".join(f"{draw(st.sampled_from((1, 1, 1, 2, 3)))}*{name}" for name in terms)

    def projection() -> list[str]:
        if plain:
            return draw(st.lists(st.sampled_from(names), max_size=3, unique=True))
        return [coordinate() for _ in range(draw(st.integers(0, 3)))]

    operands = draw(st.integers(1, 3))
    roles = ["input", *["weight"] * (operands - 1), "output"]
    tensors = [{"name": f"T{at}", "role": role, "projection": projection()} for at, role in enumerate(roles)]
    return Problem.model_validate({"name": "random", "dimensions": sizes, "tensors": tensors})


@st.composite
def ragged(draw: st.DrawFn, plain: bool = False, macs: int = 400) -> Case:
    """Legal mappings; of every dimension either all cuts stand on their own, or only the outermost one need not divide."""
    problem, architecture = draw(problems(plain, macs)), draw(architectures())
    slots: list[tuple[str, tuple[str, ...] | None, bool]] = []  # target, keep, may unroll
    for index, cluster in enumerate(architecture.clusters):
        last = index == len(architecture.clusters) - 1
        if cluster.memories:
            kept = [name for name in problem.tensor_names if index == 0 or draw(st.booleans())]
            later = [] if index == 0 else [name for name in kept if draw(st.integers(0, 3)) == 0]
            slots.append((cluster.name, tuple(name for name in kept if name not in later), False))
            if later:
                slots.append((cluster.name, tuple(later), False))
        if cluster.fanout.size > 1 or last or draw(st.booleans()):
            slots.append((cluster.name, None, True))
    room = [architecture.cluster(target).fanout.size for target, _, _ in slots]
    names = list(problem.dimensions)
    temporal: list[dict[str, int]] = [{} for _ in slots]
    spatial: list[dict[str, int]] = [{} for _ in slots]
    for name, size in problem.dimensions.items():
        whole = size if draw(st.booleans()) else None  # of a chain: sizes are products of the trips inside
        tile = 1
        for index in range(len(slots) - 1, -1, -1):
            spatial[index][name] = tile
            if slots[index][2]:
                trips = draw(st.integers(1, max(1, min(room[index], -(-size // tile)))))
                room[index] //= trips
                tile = _cut(draw, tile, trips, size, whole)
            temporal[index][name] = tile
            if index > 0:
                most = -(-size // tile)
                trips = most if index == 1 else draw(st.integers(1, most))
                tile = size if index == 1 else _cut(draw, tile, trips, size, whole)
    for name, size in problem.dimensions.items():
        assume(temporal[0][name] == size)
    entries = [
        Entry(
            target=target,
            keep=keep,
            temporal_order=tuple(draw(st.permutations(names))),
            temporal_tile_sizes=FrozenDict(temporal[index]),
            spatial_tile_sizes=FrozenDict(spatial[index]),
            spatial_order=tuple(draw(st.permutations(names))),
            unicast=tuple(name for name in problem.tensor_names if draw(st.integers(0, 7)) == 0),
        )
        for index, (target, keep, _) in enumerate(slots)
    ]
    mapping = Mapping(entries=tuple(entries))
    assume(bool(legality(problem, architecture, mapping)))
    return problem, architecture, mapping


def _cut(draw: st.DrawFn, tile: int, trips: int, size: int, whole: int | None) -> int:
    """A tile that takes so many trips of another one; the last may be short."""
    most = min(size, tile * trips)
    return most if whole or trips == 1 else draw(st.integers(min(most, tile * (trips - 1) + 1), most))
