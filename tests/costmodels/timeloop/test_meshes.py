"""Meshes: loads of links against a simulation, cycles, and refusals."""

import math
from typing import Any

import numpy as np
import pytest

from support.mesh_simulation import runs
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.registry import installed
from tilewright.run.evaluation import build_model, evaluate
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem

COSTS = {"read_energy_pj": 1.0, "write_energy_pj": 2.0}


def problem_of(rng: np.random.Generator) -> Problem:
    """Two operands; each tensor has some of the dimensions."""
    names = "MNK"
    sizes = {name: int(rng.choice([1, 2, 3, 4, 6, 8])) for name in names}
    tensors = [
        {"name": name, "role": role, "projection": [each for each in names if rng.random() < 0.6]}
        for name, role in (("A", "input"), ("B", "weight"), ("Z", "output"))
    ]
    return Problem.model_validate({"name": "random", "dimensions": sizes, "tensors": tensors})


def meshes_of(rng: np.random.Generator, extent: tuple[int, int]) -> list[dict[str, Any]]:
    port = [int(rng.integers(size)) for size in extent]
    each = {"link_words_per_cycle": int(rng.integers(1, 3)), "port": port}
    split = [[None], [["A"], None], [["input"], ["B", "output"]], [["A"], ["weight"], ["Z"]]][int(rng.integers(4))]
    return [{"tensors": tensors, **each} for tensors in split]


def architecture_of(rng: np.random.Generator) -> Architecture:
    """A buffer, a mesh of at most 4 x 4 elements and, for some, a further row of units with a mesh inside each."""
    sizes = [int(rng.choice([1, 2, 3, 4])) for _ in range(3)]
    axes = [str(rng.choice(["X", "Y"])) for _ in range(3)]
    flat = axes[0] == axes[1]
    extent = (1, sizes[0] * sizes[1]) if flat and axes[0] == "Y" else (sizes[0] * sizes[1], 1) if flat else None
    extent = extent or ((sizes[0], sizes[1]) if axes[0] == "X" else (sizes[1], sizes[0]))
    shares = [{"multicast": bool(rng.random() < 0.8), "reduction": bool(rng.random() < 0.8)} for _ in range(3)]
    fanouts = [{"size": size, "axis": axis, **share} for size, axis, share in zip(sizes, axes, shares, strict=True)]
    fanouts[0]["network"] = {"meshes": meshes_of(rng, extent)}
    if rng.random() < 0.5:
        fanouts[2]["network"] = {"meshes": meshes_of(rng, (sizes[2], 1) if axes[2] == "X" else (1, sizes[2]))}
    keeps = [list(rng.permutation(["input", "weight", "output"])[: int(rng.integers(0, 4))]) for _ in range(2)]
    keeps[0] = sorted({*keeps[0], "output"})  # partial sums that return from DRAM are refused
    clusters = [
        {"name": "Chip", "memories": [{"name": "DRAM", "technology": "dram", **COSTS}]},
        {"name": "Array", "memories": [{"name": "Buffer", "holds": keeps[0], **COSTS}], "fanout": fanouts[0]},
        {"name": "Row", "fanout": fanouts[1]},
        {"name": "Element", "memories": [{"name": "Registers", "holds": keeps[1], **COSTS}], "fanout": fanouts[2]},
    ]
    data = {"name": "random", "clusters": clusters, "compute": {"energy_per_operation_pj": 1.0}}
    return Architecture.model_validate(data)


def check(seed: int) -> bool:
    """Compare the loads and cycles of a random mapping; return whether some words moved."""
    rng = np.random.default_rng(seed)
    problem, architecture = problem_of(rng), architecture_of(rng)
    space = MapSpace.of(problem, architecture, rules=None)
    mapping = next(iter(space.sample(rng, 1)))
    report = evaluate(build_model("timeloop"), problem, architecture, mapping)
    assert report.valid, report.reasons
    simulated = runs(problem, architecture, mapping)
    assert report.cycles is not None
    for mesh, (cluster, index) in zip(report.meshes, numbered(architecture), strict=True):
        instances = simulated.pop((cluster, index), [])
        bandwidth = architecture.cluster(cluster).fanout.network.meshes[index].link_words_per_cycle
        assert bandwidth is not None and mesh.name == f"mesh below {cluster}"
        if not instances:
            assert not mesh.loads
        for each in instances:
            loads, cycles = each.simulate(int(bandwidth))
            assert dict(mesh.loads) == dict(loads), (seed, cluster, index)
            bound = math.ceil(max(loads.values()) / bandwidth)
            assert bound <= report.cycles and bound <= cycles <= loads.total()
            assert [
                limit.cycles
                for limit in report.limits
                if limit.name.startswith(f"{mesh.name} (")
                and set(limit.name[len(mesh.name) + 2 : -1].split(", ")) == set(mesh.tensors)
            ] == [bound]
    assert not simulated
    return any(mesh.loads for mesh in report.meshes)


def numbered(architecture: Architecture) -> list[tuple[str, int]]:
    return [(each.name, index) for each in architecture.clusters for index in range(len(each.fanout.network.meshes))]


def test_loads_are_those_of_a_simulation_and_bound_its_cycles() -> None:
    assert sum(check(seed) for seed in range(60)) > 50


@pytest.mark.exhaustive
def test_loads_are_those_of_a_simulation_of_1000_meshes() -> None:
    assert sum(check(seed) for seed in range(1000)) > 900
