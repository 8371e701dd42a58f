"""Meshes: loads of links against a simulation, cycles, and refusals."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from support.mesh_simulation import runs
from tilewright.application.conversion.dropped import simplified
from tilewright.application.run.evaluation import build_model, evaluate
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.adapter import InputSet
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import AdapterSpec
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
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
    splits: list[list[list[str] | None]] = [
        [None],
        [["A"], None],
        [["input"], ["B", "output"]],
        [["A"], ["weight"], ["Z"]],
    ]
    return [{"tensors": tensors, **each} for tensors in splits[int(rng.integers(4))]]


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
    limits = {limit.name: limit.cycles for limit in report.limits}
    for mesh, (cluster, index) in zip(report.meshes, numbered(architecture), strict=True):
        instances = simulated.pop((cluster, index), [])
        bandwidth = architecture.cluster(cluster).fanout.network.meshes[index].link_words_per_cycle
        assert bandwidth is not None and mesh.name == f"mesh below {cluster}"
        if not instances:
            assert not mesh.loads
        for instance in instances:
            loads, cycles = instance.simulate(int(bandwidth))
            assert dict(mesh.loads) == dict(loads), (seed, cluster, index)
            bound = math.ceil(max(loads.values()) / bandwidth)
            assert bound <= report.cycles and bound <= cycles <= loads.total()
            assert limits[f"{mesh.name} ({', '.join(mesh.tensors)})"] == bound
    assert not simulated
    return any(mesh.loads for mesh in report.meshes)


PROBLEM = Problem.model_validate(
    {
        "name": "gemm",
        "dimensions": {"M": 8, "K": 8, "N": 8},
        "tensors": [
            {"name": "A", "role": "input", "projection": ["M", "K"]},
            {"name": "B", "role": "weight", "projection": ["K", "N"]},
            {"name": "Z", "role": "output", "projection": ["M", "N"]},
        ],
    }
)


def small(*meshes: dict[str, Any], dram: str = "dram", **fanout: Any) -> Architecture:
    """DRAM, a buffer that leaks, 2 x 2 elements with registers."""
    data = {
        "name": "small",
        "clusters": [
            {"name": "Chip", "memories": [{"name": "DRAM", "technology": dram, **COSTS}]},
            {
                "name": "Array",
                "memories": [{"name": "Buffer", "leakage_pj_per_cycle": 2.0, **COSTS}],
                "fanout": {"size": 2, "axis": "X", "network": {"meshes": list(meshes)}},
            },
            {"name": "Row", "fanout": {"size": 2, "axis": "Y"} | fanout},
            {"name": "Element", "memories": [{"name": "Registers", **COSTS}]},
        ],
        "compute": {"energy_per_operation_pj": 1.0},
    }
    return Architecture.model_validate(data)


def mapping_of(tile: int = 4, **row: Any) -> Mapping:
    """Whole tensors in the registers, rows along X and columns along Y."""
    every = ["A", "B", "Z"]
    entries = [
        {"target": "Chip", "keep": every, "temporal_tile_sizes": dict(PROBLEM.dimensions)},
        {"target": "Array", "keep": row.pop("array", every), "spatial_tile_sizes": {"M": tile}},
        {"target": "Row", "spatial_tile_sizes": {"N": 4}} | row,
        {"target": "Element", "keep": every},
        {"target": "Element", "temporal_tile_sizes": {"M": 1, "K": 1, "N": 1}, "temporal_order": ["M", "K", "N"]},
    ]
    return Mapping.model_validate({"entries": entries})


def report_of(architecture: Architecture, model: str = "timeloop", **changes: Any) -> Report:
    return evaluate(build_model(model), PROBLEM, architecture, mapping_of(**changes))


def loads_of(report: Report) -> list[dict[str, int]]:
    assert report.valid, report.reasons
    return [dict(mesh.loads) for mesh in report.meshes]


NODES = {f"{x},{y}>node": 32 for x in (0, 1) for y in (0, 1)}
LOADS = {
    "A": {"memory>0,0": 64, "0,0>1,0": 32, "0,0>0,1": 32, "1,0>1,1": 32} | NODES,
    "B": {"memory>0,0": 64, "0,0>1,0": 64, "0,0>0,1": 32, "1,0>1,1": 32} | NODES,
    "Z": {f"node>{x},{y}": 16 for x in (0, 1) for y in (0, 1)}
    | {"1,0>0,0": 16, "1,1>0,1": 16, "0,1>0,0": 32, "0,0>memory": 64},
}
"""Worked out by hand: two halves of 32 words, each for two elements; four outputs of 16 words."""


def test_loads_worked_out_by_hand() -> None:
    one_each = report_of(small({"tensors": ["A"]}, {"tensors": ["weight"]}, {}))
    assert loads_of(one_each) == [LOADS["A"], LOADS["B"], LOADS["Z"]]
    assert [mesh.tensors for mesh in one_each.meshes] == [("A",), ("B",), ("Z",)]
    together = report_of(small({}))
    assert loads_of(together) == [sum((Counter(load) for load in LOADS.values()), Counter[str]())]
    (only_inputs,) = loads_of(report_of(small({"tensors": ["input"]})))
    assert only_inputs == LOADS["A"]


def test_without_multicast_each_element_has_its_own_copy() -> None:
    mesh = {"tensors": ["A"]}
    for report in (report_of(small(mesh, multicast=False)), report_of(small(mesh), unicast=["A"])):
        (loads,) = loads_of(report)
        assert loads == {"memory>0,0": 128, "0,0>1,0": 64, "0,0>0,1": 32, "1,0>1,1": 32} | NODES


def test_the_busiest_link_bounds_cycles_and_a_longer_run_leaks_more() -> None:
    free, slow = (report_of(small({"link_words_per_cycle": rate})) for rate in (None, 0.5))
    assert free.cycles == 8**3 // 4 and [limit.name for limit in free.slowest] == ["compute"]
    limit = slow.slowest[0]
    assert (limit.name, limit.action, limit.words) == ("mesh below Array (A, B, Z)", "link", 128)
    assert slow.cycles == limit.cycles == limit.binding_cycles == 256
    assert free.energy_pj is not None and slow.energy_pj is not None
    assert slow.energy_pj == pytest.approx(free.energy_pj + 2.0 * (256 - 128))
    assert slow.energy_pj == pytest.approx(sum(part.energy_pj for part in slow.energy_parts()))
    assert "mesh below Array  A, B, Z  memory>0,0      128" in str(slow.explained())


def test_meshes_change_nothing_else() -> None:
    """Except that neighbours forward nothing."""
    plain = evaluate(build_model("timeloop", {"link_transfers": False}), PROBLEM, small(), mapping_of())
    assert report_of(small({})).model_copy(update={"meshes": ()}) == plain


def test_what_is_not_counted_is_refused() -> None:
    mesh = small({})
    assert [reason.code for reason in report_of(mesh, "oracle").reasons] == ["mesh"]
    assert report_of(mesh, tile=5).reasons[0].code == "mesh"  # tiles do not divide
    returning = report_of(mesh, array=["A", "B"])
    assert "Z returns from DRAM through the mesh" in str(returning.reasons[0])
    assert report_of(small({}, dram="sram"), array=["A", "B"]).valid
    below_dram = mesh.model_copy(
        update={
            "clusters": (mesh.clusters[0].model_copy(update={"fanout": mesh.clusters[1].fanout}), *mesh.clusters[2:])
        }
    )
    report = evaluate(build_model("timeloop"), PROBLEM, below_dram, mapping_of())
    assert "meshes below DRAM are not supported" in str(report.reasons[0])


def test_sparse_hardware_on_a_mesh_is_refused() -> None:
    data = small({}).model_dump(mode="json")
    data["compute"]["sparse"] = {"gate": True}
    report = evaluate(build_model("timeloop"), PROBLEM, Architecture.model_validate(data), mapping_of())
    assert "meshes is not counted" in str(report.reasons)


def test_invalid_meshes_are_refused_where_they_stand() -> None:
    with pytest.raises(ValueError, match=r"the port \(2, 0\) is outside the 2 x 2 routers below Array"):
        small({"port": [2, 0]})
    with pytest.raises(ValueError, match="several meshes carry A"):
        small({"tensors": ["A"]}, {"tensors": ["B", "A"]})
    with pytest.raises(ValueError, match="several meshes carry all other tensors"):
        small({}, {})


def test_a_search_on_a_mesh_finds_what_its_report_says() -> None:
    architecture = small({"link_words_per_cycle": 0.25})
    report = tw.map("mk,kn->mn; m=8 k=8 n=8", arch=architecture, mapper="random", evaluations=20)
    (layer,) = report.layers
    assert layer.result is not None and layer.report is not None
    assert layer.result.value == pytest.approx(layer.report.edp) and layer.report.meshes


def numbered(architecture: Architecture) -> list[tuple[str, int]]:
    return [(each.name, index) for each in architecture.clusters for index in range(len(each.fanout.network.meshes))]


def test_loads_are_those_of_a_simulation_and_bound_its_cycles() -> None:
    assert sum(check(seed) for seed in range(60)) > 50


@pytest.mark.exhaustive
def test_loads_are_those_of_a_simulation_of_1000_meshes() -> None:
    assert sum(check(seed) for seed in range(1000)) > 900


def test_other_tools_files_refuse_meshes_and_lossy_conversion_drops_them(tmp_path: Path) -> None:
    inputs = InputSet(PROBLEM, small({}), mapping_of())
    for name in ("timeloop", "timeloop_v4", "maestro", "zigzag", "accelforge"):
        reasons = installed().make(AdapterSpec, name).expressible(inputs).reasons
        assert any("mesh" in str(reason) or reason.code == "network" for reason in reasons), name
    _, dropped = simplified(inputs, installed().make(AdapterSpec, "timeloop").expressible)
    assert [str(each) for each in dropped if each.what == "network.meshes"][0].endswith("below Array")
    for name in ("tilewright", "loopnest", "union"):
        adapter = installed().make(AdapterSpec, name)
        paths = [tmp_path / f"{name}-{file}" for file in adapter.render(inputs)]
        for path, text in zip(paths, adapter.render(inputs).values(), strict=True):
            path.write_text(text)
        assert adapter.parse(paths).architecture == inputs.architecture
