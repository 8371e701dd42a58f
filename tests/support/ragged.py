"""Random mappings whose tiles need not divide, small enough to execute."""

from __future__ import annotations

import math
from random import Random

from hypothesis import assume
from hypothesis import strategies as st

from tilewright.mapspace.legality import legality
from tilewright.schema.architecture import Architecture, Cluster, Compute, Fanout, Memory, Network
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Entry, Mapping
from tilewright.schema.problem import Problem

Case = tuple[Problem, Architecture, Mapping]
LETTERS = "ABCDEFG"


def ragged(plain: bool = False, macs: int = 400) -> st.SearchStrategy[Case]:
    """Cases, one by one of chance that hypothesis has in hand."""

    def draw(random: Random) -> Case:
        case = drawn(random, plain, macs)
        assume(case is not None)
        assert case is not None
        return case

    return st.randoms(use_true_random=False).map(draw)


def drawn(random: Random, plain: bool, macs: int = 400) -> Case | None:
    """A case; None: the mapping that was drawn is not legal."""
    problem, architecture = problem_of(random, plain, macs), architecture_of(random)
    mapping = mapping_of(random, problem, architecture)
    return (problem, architecture, mapping) if legality(problem, architecture, mapping) else None


def problem_of(random: Random, plain: bool, macs: int) -> Problem:
    """One to seven dimensions of any size, two to four tensors; `plain`: a coordinate is one dimension, which has no other."""
    sizes: dict[str, int] = {}
    for letter in LETTERS[: random.randint(1, 7)]:
        room = macs // math.prod(sizes.values())
        sizes[letter] = random.randint(1, max(1, min(13, room)))
    names = list(sizes)

    def some(most: int, least: int = 0) -> list[str]:
        return random.sample(names, random.randint(least, min(most, len(names))))

    def coordinate() -> str:
        return " + ".join(f"{random.choice((1, 1, 1, 2, 3))}*{name}" for name in some(2, 1))

    roles = ["input", *["weight"] * random.randint(0, 2), "output"]
    tensors = [
        {
            "name": f"T{at}",
            "role": role,
            "projection": some(3) if plain else [coordinate() for _ in range(random.randint(0, 3))],
        }
        for at, role in enumerate(roles)
    ]
    return Problem.model_validate({"name": "random", "dimensions": sizes, "tensors": tensors})


def architecture_of(random: Random) -> Architecture:
    """One to five clusters, some virtual, with fanouts along X and Y, blocks, bandwidths; memories are not limited."""

    def memory(index: int) -> Memory:
        return Memory(
            name=f"M{index}",
            technology="sram" if index else "dram",
            read_energy_pj=random.choice((0.5, 2.0, 64.0)),
            write_energy_pj=random.choice((0.25, 3.0, 80.0)),
            update_energy_pj=random.choice((None, 5.0)),
            read_bandwidth_words_per_cycle=random.choice((None, 0.5, 4.0)),
            write_bandwidth_words_per_cycle=random.choice((None, 0.75, 3.0)),
            shared_bandwidth_words_per_cycle=random.choice((None, None, 1.0, 4.5)),
            block_words=random.choice((1, 1, 4)),
            multiple_buffering=random.choice((1.0, 1.0, 2.0)),
            leakage_pj_per_cycle=random.choice((0.0, 0.0, 0.25)),
            power_gated_at=random.choice((None, "M0")),
        )

    clusters = [
        Cluster(
            name=f"C{index}",
            memories=(memory(index),) if index == 0 or random.randrange(4) else (),
            fanout=Fanout(
                size=random.choice((1, 2, 3, 4, 5, 6)),
                axis=random.choice("XY"),
                multicast=random.randrange(6) > 0,
                reduction=random.randrange(6) > 0,
                network=Network(),
            ),
        )
        for index in range(random.randint(1, 5))
    ]
    return Architecture(name="random", clusters=tuple(clusters), compute=Compute(energy_per_operation_pj=0.5))


def mapping_of(random: Random, problem: Problem, architecture: Architecture) -> Mapping:
    """Of every dimension either all cuts stand on their own, or only the outermost one need not divide."""
    slots: list[tuple[str, tuple[str, ...] | None, bool]] = []  # target, keep, may unroll
    for index, cluster in enumerate(architecture.clusters):
        last = index == len(architecture.clusters) - 1
        if cluster.memories:
            kept = [name for name in problem.tensor_names if random.randrange(2 if index else 8)]
            later = [] if index == 0 else [name for name in kept if random.randrange(4) == 0]
            slots.append((cluster.name, tuple(name for name in kept if name not in later), False))
            if later:
                slots.append((cluster.name, tuple(later), False))
        if cluster.fanout.size > 1 or last or random.randrange(2):
            slots.append((cluster.name, None, True))
    lost = set(problem.tensor_names).difference(*(keep or () for _, keep, _ in slots))
    slots[0] = (slots[0][0], (*(slots[0][1] or ()), *sorted(lost)), False)
    room = [architecture.cluster(target).fanout.size for target, _, _ in slots]
    names = list(problem.dimensions)
    temporal: list[dict[str, int]] = [{} for _ in slots]
    spatial: list[dict[str, int]] = [{} for _ in slots]
    for name, size in problem.dimensions.items():
        chain = random.randrange(2) > 0
        tile = 1
        for index in range(len(slots) - 1, -1, -1):
            spatial[index][name] = tile
            if slots[index][2]:
                trips = random.randint(1, max(1, min(room[index], -(-size // tile))))
                room[index] //= trips
                tile = _cut(random, tile, trips, size, chain)
            temporal[index][name] = tile
            if index > 0:
                most = -(-size // tile)
                trips = most if index == 1 else random.randint(1, most)
                tile = size if index == 1 else _cut(random, tile, trips, size, chain)

    def order() -> tuple[str, ...]:
        return tuple(random.sample(names, len(names)))

    entries = [
        Entry(
            target=target,
            keep=keep,
            temporal_order=order(),
            temporal_tile_sizes=FrozenDict(temporal[index]),
            spatial_tile_sizes=FrozenDict(spatial[index]),
            spatial_order=order(),
            unicast=tuple(name for name in problem.tensor_names if random.randrange(8) == 0),
        )
        for index, (target, keep, _) in enumerate(slots)
    ]
    return Mapping(entries=tuple(entries))


def _cut(random: Random, tile: int, trips: int, size: int, chain: bool) -> int:
    """A tile that takes so many trips of another one; the last may be short."""
    most = min(size, tile * trips)
    return most if chain or trips == 1 else random.randint(min(most, tile * (trips - 1) + 1), most)
