"""Mappers on sparse hardware, and proofs of `optimal` there."""

from typing import Any

import numpy as np
import pytest

from support.grid import OPTIONS, usable
from support.proofs.checking import check, dense_hardware
from support.proofs.sparse import draw_sparse
from tilewright.application.run.search import search
from tilewright.errors import NotConformableError, NoValidMappingError, SpaceTooLargeError
from tilewright.mapspace.space import MapSpace
from tilewright.plugin import Relaxation
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopModel

MAPPERS = sorted(each.spec.name for each in usable(MapperSpec) if each.distribution == "tilewright")
SIMPLE = {"formats": {"weight": [{"format": "CP", "flatten": "all"}]}}
SKIP = {"actions": [{"skip": "A", "when_empty": ["B"]}]}


def problem(a: Any = 0.5, b: Any = 0.25) -> Problem:
    tensors = [
        {"name": "A", "role": "input", "projection": ["M", "K"], "density": a},
        {"name": "B", "role": "weight", "projection": ["K", "N"], "density": b},
        {"name": "Z", "role": "output", "projection": ["M", "N"]},
    ]
    return Problem.model_validate({"name": "product", "dimensions": {"M": 4, "K": 6, "N": 4}, "tensors": tensors})


def machine(outer: dict[str, Any] | None, inner: dict[str, Any] | None, units: int = 1, **compute: Any) -> Architecture:
    """DRAM, a fanout, and a buffer with room for 24 words."""
    plain = {"read_energy_pj": 8.0, "write_energy_pj": 4.0}
    dram = {"name": "DRAM", "technology": "dram", "sparse": outer, **plain}
    buffer = {"name": "buffer", "capacity_words": 24, "read_energy_pj": 1.0, "write_energy_pj": 1.0, "sparse": inner}
    clusters = [
        {"name": "chip", "memories": [dram], "fanout": {"size": units, "axis": "X"}},
        {"name": "unit", "memories": [buffer], "fanout": {"size": 1}},
    ]
    data = {"name": "sparse", "clusters": clusters, "compute": {"energy_per_operation_pj": 1.0, **compute}}
    return Architecture.model_validate(data)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MAPPERS)
def test_every_mapper_maps_onto_sparse_hardware_or_refuses_it(name: str) -> None:
    inner = {"decompresses": True, "compresses": True, **SKIP}
    coordinates = {"format": "CP", "flatten": "all"}
    outer = {
        "formats": {"weight": [coordinates, coordinates]}
    }  # a rank for the tiles of the buffer, and one inside them
    space = MapSpace.of(problem(), machine(outer, inner, units=2, sparse={"gate": True}), rules=None)
    evaluator = installed().make(CostModelSpec, "timeloop").bind(space.problem, space.architecture)
    mapper = installed().make(MapperSpec, name, OPTIONS[name] if name == "mindmappings" else {})
    result = search(mapper, Task(space), evaluator, Budget(300), seed=1)
    if result.error is not None:
        assert isinstance(result.error, NotConformableError | NoValidMappingError | SpaceTooLargeError), result.error
        return
    assert result.best is not None
    assert space.contains(result.best)
    report = evaluator.explain(result.best)
    assert report.valid and report.edp == pytest.approx(result.value, rel=1e-9)
    assert report.actual_operations is not None and report.actual_operations < report.macs


@pytest.mark.exhaustive
@pytest.mark.parametrize("simple", [True, False])
def test_no_mapping_on_sparse_hardware_costs_less_than_a_proof(simple: bool) -> None:
    """`python -m support.proofs 200 --sparse simple` checks more of them."""
    outcomes = []
    for seed in range(6):
        verdict = check(draw_sparse(seed, simple=simple), 4000)
        assert not verdict.wrong, seed
        outcomes.append(verdict.status)
    assert "proved" in outcomes


@pytest.mark.exhaustive
def test_a_proof_counts_loops_of_one_trip_where_the_mapping_has_them() -> None:
    """In blocks of two words, Timeloop looks at two iterations of the innermost loop, whatever its trips."""
    verdict = check(draw_sparse(920075), 4000)
    assert verdict.status == "proved" and not verdict.wrong


def relaxation(problem: Problem, architecture: Architecture) -> Relaxation:
    space = MapSpace.of(problem, architecture, rules=None)
    evaluator = TimeloopModel(TimeloopOptions(link_transfers=False)).bind(problem, architecture)
    found = evaluator.relaxation(space.skeleton, space.keeps)
    assert found is not None
    return found


def test_savings_that_are_the_same_in_all_mappings_are_exact() -> None:
    """B is compressed in both memories; A's reads are skipped at the operation where B is zero."""
    found = relaxation(problem(), machine(SIMPLE, SIMPLE | SKIP))
    assert found.exact and found.rounded and not found.order_matters
    dense = relaxation(problem(), dense_hardware(machine(None, None)))
    np.testing.assert_allclose(found.read_pj[0], dense.read_pj[0] * [1, 0.25, 1], rtol=1e-9)
    np.testing.assert_allclose(found.read_pj[1], dense.read_pj[1] * [0.25, 0.25, 1], rtol=1e-9)
    np.testing.assert_allclose(found.fill_pj[1], dense.fill_pj[1] * [1, 0.25, 1], rtol=1e-9)
    assert found.compute_pj == pytest.approx(dense.compute_pj / 4)
    assert found.cycles_per_operation == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("architecture", "densities"),
    [
        (machine(SIMPLE, {"decompresses": True, **SKIP, "formats": {"B": [{"format": "CP", "flatten": "all"}]}}), {"b": {"distribution": "uniform", "density": 0.9}}),
        (machine(None, SKIP, units=2), {}),  # exact: the units are outside the buffer
        (machine(SKIP, None), {}),
        (machine(None, {"actions": [{"gate": "Z", "when_empty": ["A"]}]}), {}),
        (machine({"formats": {"B": [{"format": "UOP"}, {"format": "CP", "flatten": "all"}]}}, {"decompresses": True}), {}),
    ],
)  # fmt: skip
def test_no_mapping_costs_less_than_the_least_of_its_words(architecture: Architecture, densities: Any) -> None:
    work = problem(**densities)
    space = MapSpace.of(work, architecture, rules=None)
    found = relaxation(work, architecture)
    assert found.exact == (architecture.clusters[0].fanout.size == 2)
    evaluator = TimeloopModel(TimeloopOptions(link_transfers=False)).bind(work, architecture)
    costs = evaluator.evaluate_candidates(space.sample(np.random.default_rng(0), 200))
    assert costs.valid.any()
    assert costs.energy_pj.min() >= found.compute_pj
    assert costs.cycles.min() >= np.ceil(found.cycles_per_operation * work.macs / architecture.compute_instances)


@pytest.mark.parametrize("b", [{"distribution": "banded", "band_width": 1}, {"data": np.eye(4)}])
def test_nothing_is_proved_where_zeros_have_given_places(b: Any) -> None:
    tensors = problem().model_dump(mode="json")["tensors"]
    tensors[1]["density"] = b
    work = Problem.model_validate({"name": "p", "dimensions": {"M": 4, "K": 4, "N": 4}, "tensors": tensors})
    space = MapSpace.of(work, machine(None, SKIP), rules=None)
    evaluator = installed().make(CostModelSpec, "timeloop").bind(work, space.architecture)
    result = search(installed().make(MapperSpec, "optimal"), Task(space), evaluator, Budget(10))
    assert "offers no relaxation" in str(result.error)
