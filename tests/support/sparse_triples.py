"""Random sparse problems, machines and mappings, small enough to execute."""

from __future__ import annotations

import math
from random import Random
from typing import Any

from tilewright.mapspace.legality import legality
from tilewright.schema.architecture import Architecture
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Entry, Mapping
from tilewright.schema.problem import Problem

Triple = tuple[Problem, Architecture, Mapping]
SHAPES = (
    {"A": ["M", "K"], "B": ["K", "N"], "Z": ["M", "N"]},
    {"A": ["M", "K"], "B": ["K"], "Z": ["M"]},
    {"A": ["C", "P + R"], "B": ["K", "C", "R"], "Z": ["K", "P"]},
    {"A": ["G", "M", "K"], "B": ["G", "K"], "Z": ["G", "M"]},
    {"A": ["M", "K"], "B": ["M", "K"], "Z": ["M"]},
)


def drawn(random: Random, operations: int = 800) -> Triple | None:
    """A triple; None: the mapping that was drawn is not legal."""
    problem = problem_of(random, operations)
    architecture = architecture_of(random, problem)
    mapping = mapping_of(random, problem, architecture)
    return (problem, architecture, mapping) if legality(problem, architecture, mapping) else None


def problem_of(random: Random, operations: int) -> Problem:
    """Two operands and an output, of uniform or structured density, or dense."""
    shape = random.choice(SHAPES)
    names = sorted({name for ranks in shape.values() for rank in ranks for name in rank.split(" + ")})
    sizes: dict[str, int] = {}
    for name in random.sample(names, len(names)):
        room = operations // math.prod(sizes.values())
        sizes[name] = random.choice([size for size in (1, 2, 3, 4, 6, 8, 12, 16) if size <= max(room, 1)])

    def density() -> Any:
        measure = random.choice((0.1, 0.25, 0.4, 0.5, 0.75, 0.9))
        return random.choice((None, measure, *[{"distribution": "uniform", "density": measure}] * 3))

    roles = {"A": "input", "B": "weight", "Z": "output"}
    tensors = [
        {"name": name, "role": roles[name], "projection": ranks, "density": density()} for name, ranks in shape.items()
    ]
    return Problem.model_validate(
        {"name": "random", "dimensions": {name: sizes[name] for name in names}, "tensors": tensors}
    )


def architecture_of(random: Random, problem: Problem) -> Architecture:
    """One to four memories, with fanouts, formats and actions."""
    compressed: dict[str, bool] = {}

    def memory(index: int) -> dict[str, Any]:
        formats: dict[str, Any] = {}
        for name in problem.tensor_names:
            if random.randrange(2) and compressed.setdefault(name, index == 0):
                count = random.choice((1, 1, 2, 3))
                flatten = random.choice((None, "all"))
                kinds = random.choice((["CP"], ["B"], ["RLE"], ["UOP", "CP"], ["UOP"], ["UB"], ["B", "CP"]))
                ranks = [{"format": kinds[max(0, at - count + len(kinds))], "flatten": flatten} for at in range(count)]
                formats[name] = {"ranks": ranks, "fill": random.choice(("outer", "outer", "inner"))}
            compressed[name] = name in formats
        actions = []
        for name in problem.tensor_names:
            if random.randrange(3) == 0:
                others = [other for other in problem.tensor_names if other != name]
                conditions = others if random.randrange(5) == 0 else [random.choice(others)]
                actions.append({random.choice(("gate", "skip")): name, "when_empty": conditions})
        return {
            "name": f"M{index}",
            "technology": "sram" if index else "dram",
            "read_energy_pj": 1.0,
            "write_energy_pj": 1.0,
            "sparse": {
                "formats": formats,
                "actions": actions,
                "metadata": {"width_bits": 32, "depth": 2**20, "default_bits": 4},
                "decompresses": True,
                "compresses": True,
            },
        }

    clusters = [
        {
            "name": f"C{index}",
            "memories": [memory(index)],
            "fanout": {
                "size": random.choice((1, 1, 2, 3, 4)),
                "axis": random.choice("XY"),
                "multicast": True,
                "reduction": True,
                "network": {},
            },
        }
        for index in range(random.randint(1, 4))
    ]
    compute = {"energy_per_operation_pj": 1.0, "sparse": {"gate": random.random() < 0.5, "skip": random.random() < 0.5}}
    return Architecture.model_validate({"name": "random", "clusters": clusters, "compute": compute})


def mapping_of(random: Random, problem: Problem, architecture: Architecture) -> Mapping:
    """Perfect tiles; loops in time are outside the unrolling of a cluster, as in Timeloop."""
    slots: list[tuple[str, tuple[str, ...] | None]] = []  # target, keep; None: loops, then unrolling
    for index, cluster in enumerate(architecture.clusters):
        slots.append((cluster.name, tuple(n for n in problem.tensor_names if index == 0 or random.randrange(4))))
        slots.append((cluster.name, None))
    room = {cluster.name: cluster.fanout.size for cluster in architecture.clusters}
    temporal: list[dict[str, int]] = [{} for _ in slots]
    spatial: list[dict[str, int]] = [{} for _ in slots]
    for name, size in problem.dimensions.items():
        tile = 1
        for index in range(len(slots) - 1, -1, -1):
            spatial[index][name] = temporal[index][name] = tile
            target, keep = slots[index]
            if keep is not None:
                continue
            trips = _trips(random, size // tile, room[target])
            room[target] //= trips
            temporal[index][name] = tile = tile * trips
            tile = size if index == 1 else tile * _trips(random, size // tile, size)
    names = list(problem.dimensions)

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
        )
        for index, (target, keep) in enumerate(slots)
    ]
    return Mapping(entries=tuple(entries))


def _trips(random: Random, most: int, room: int) -> int:
    return random.choice([trips for trips in range(1, most + 1) if most % trips == 0 and trips <= room])
