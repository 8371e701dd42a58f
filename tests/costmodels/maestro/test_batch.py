"""Batches cost the same as their single mappings, and the compiled kernel gives the same as plain Python."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import tilewright as tw
from support.maestro_mappings import Case, cases
from support.profiles import scaled
from support.recorded.maestro import hardware_of, layer_of, load
from tilewright.compiled import interpreted
from tilewright.errors import NotConformableError
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.legality import legal
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_costmodels import MaestroOptions
from tilewright_costmodels.maestro.analysis import analyse
from tilewright_costmodels.maestro.machine import machine_of_directives
from tilewright_costmodels.maestro.model import MaestroEvaluator, MaestroModel
from tilewright_costmodels.maestro.tables import AnalysisScratch, Result
from tilewright_notations.directives.completion import complete_table
from tilewright_notations.directives.table import fill_in, letters_of
from tilewright_notations.directives.translation import form_of, nests_of, written


@pytest.mark.parametrize("roomy", [True, False])
@given(data=st.data(), faithful=st.booleans())
def test_batch_equals_one_by_one(data: st.DataObject, faithful: bool, roomy: bool) -> None:
    problem, architecture, found = data.draw(cases(roomy, most=8))
    evaluator = MaestroModel(MaestroOptions(faithful=faithful)).bind(problem, architecture)
    costs = evaluator.evaluate_batch(MappingBatch.pack(problem, found))
    for index, mapping in enumerate(found):
        report = evaluator.explain(mapping)
        event("valid" if report.valid else report.reasons[0].code)
        assert report.valid == costs.valid[index], report.reasons
        if report.valid:
            assert report.cycles == costs.cycles[index] and report.energy_pj is not None
            np.testing.assert_allclose(costs.energy_pj[index], report.energy_pj, rtol=1e-12)
        else:
            assert np.isinf(costs.energy_pj[index]) and np.isinf(costs.cycles[index])


def assert_same(one: tuple[Result, AnalysisScratch], other: tuple[Result, AnalysisScratch]) -> None:
    """Both cost the same, by the same account; the rest of `AnalysisScratch` is room."""
    for ours, theirs in zip(one[0], other[0], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for name in ("errors", "states", "phases", "steps", "counts", "required"):
        ours, theirs = getattr(one[1], name), getattr(other[1], name)
        if name in ("errors", "states"):
            ours, theirs = ours[0, 0], theirs[0, 0]
        assert ours.tolist() == theirs.tolist(), name


@scaled(0.5)
@given(case=cases(most=6))
def test_compiled_equals_interpreted(case: Case) -> None:
    """On numbers of 64 bits and on Python's."""
    problem, architecture, found = case
    evaluator = MaestroModel(MaestroOptions()).bind(problem, architecture)
    batch = MappingBatch.pack(problem, found)
    costs, dimensions, is_legal = (
        evaluator.evaluate_batch(batch),
        evaluator.dimensions,
        legal(problem, architecture, batch),
    )
    nests = nests_of(batch, is_legal, form_of(batch, evaluator.cast, evaluator.plan))
    for n in np.flatnonzero(is_legal).tolist():
        table = written(dimensions, nests, n)
        if table.fault[0]:
            assert not costs.valid[n]
            continue
        interpreted(fill_in)(dimensions, table)
        compiled = analyse(dimensions, evaluator.numbers, table)
        assert (compiled[0].energy_pj[0], compiled[0].cycles[0]) == (costs.energy_pj[n], costs.cycles[n])
        for kind in (np.int64, object):
            assert_same(analyse(dimensions, evaluator.numbers, table, kind=kind), compiled)


@pytest.mark.parametrize("case", load("cases"), ids=lambda case: case["id"])
def test_programs_compiled_equal_interpreted(case: dict[str, Any]) -> None:
    layer, hardware = layer_of(case), hardware_of(case)
    dimensions, table = letters_of(layer), complete_table(layer, hardware)
    numbers = machine_of_directives(layer, hardware).numbers
    plain = analyse(dimensions, numbers, table, True, np.int64)
    assert_same(plain, analyse(dimensions, numbers, table, True))


@scaled(0.4)
@given(case=cases(most=6), random=st.randoms(use_true_random=False))
def test_a_permuted_batch_has_permuted_costs(case: Case, random: st.DataObject) -> None:
    problem, architecture, found = case
    evaluator = MaestroModel(MaestroOptions()).bind(problem, architecture)
    batch = MappingBatch.pack(problem, found)
    order = np.array(random.sample(range(len(found)), len(found)))  # type: ignore[attr-defined]
    plain, mixed = evaluator.evaluate_batch(batch), evaluator.evaluate_batch(batch.take(order))
    np.testing.assert_array_equal(mixed.energy_pj, plain.energy_pj[order])
    np.testing.assert_array_equal(mixed.cycles, plain.cycles[order])


@scaled(0.2)
@given(case=cases())
def test_batches_are_evaluated_without_an_object_per_mapping(case: Case) -> None:
    problem, architecture, found = case
    batch = MappingBatch.pack(problem, found)
    evaluator = MaestroModel(MaestroOptions()).bind(problem, architecture)
    before = MappingBatch.__getitem__
    MappingBatch.__getitem__ = None  # type: ignore[assignment, method-assign]
    try:
        assert len(evaluator.evaluate_batch(batch)) == len(found)
    finally:
        MappingBatch.__getitem__ = before  # type: ignore[method-assign]


ARRAY = tw.Architecture.from_yaml("""
name: kc_array
clusters:
- name: DRAM
  memories: [{name: DRAM, technology: dram, read_energy_pj: 100, write_energy_pj: 100, read_bandwidth_words_per_cycle: 64}]
- name: L2
  memories: [{name: L2, capacity_words: 524288, read_energy_pj: 4.28, write_energy_pj: 4.28}]
  fanout: {size: 16, network: {bandwidth_words_per_cycle: 64, latency_cycles: 1}}
- name: Row
  fanout: {size: 16, axis: Y}
- name: PE
  memories: [{name: L1, capacity_words: 2048, read_energy_pj: 0.39, write_energy_pj: 0.39}]
compute: {energy_per_operation_pj: 0.23}
""")
DATAFLOW = tw.Constraints.from_yaml("""
name: kc_partitioned
variants:
- structure: conv
  temporal:
  - {memory: DRAM, only: [N, K, C, P, Q]}
  - {memory: L2, only: []}
  spatial:
  - {cluster: L2, only: [K]}
  - {cluster: Row, only: [C]}
  - {cluster: PE, only: []}
""")


@scaled(0.2)
@given(layer=st.sampled_from(["I", "III", "IV"]), seed=st.integers(0, 2**32 - 1))
def test_candidates_cost_what_their_tile_sizes_cost(layer: str, seed: int) -> None:
    """Batches equal single evaluations in three spaces, with orders and without.

    These are the whole space, where few mappings have directives, a dataflow's space, and a ragged space.
    """
    for rules, factors in ((None, "perfect"), (DATAFLOW, "perfect"), (DATAFLOW, "ragged")):
        space = tw.space(f"quickflow_convs/{layer}", ARRAY, constraints=rules, factors=factors)
        drawn = space.sample(np.random.default_rng(seed), 60)
        evaluator = MaestroModel(MaestroOptions()).bind(space.problem, ARRAY)
        for some in (drawn, replace(drawn, order=None, keep=None), drawn.take(slice(0, 0))):
            one, other = evaluator.evaluate_candidates(some), evaluator.evaluate_batch(some.batch())
            np.testing.assert_array_equal(one.valid, other.valid)
            np.testing.assert_array_equal(one.cycles, other.cycles)
            np.testing.assert_array_equal(one.energy_pj, other.energy_pj)
            event(f"some are valid: {one.valid.any()}")


def test_counts_beyond_64_bits_are_exact() -> None:
    """2^22 x 2^20 x 2^20 operations with a slow NoC: no cycle is lost."""
    problem = Problem.from_yaml("""
name: gemm
operation: gemm
dimensions: {M: 4194304, N: 1048576, K: 1048576}
tensors:
- {name: A, role: input, projection: [M, K]}
- {name: B, role: weight, projection: [K, N]}
- {name: Z, role: output, projection: [M, N]}
""")
    architecture = Architecture.from_yaml("""
name: array
clusters:
- name: L2
  memories: [{name: L2, read_energy_pj: 1, write_energy_pj: 1}]
  fanout: {size: 1024, network: {bandwidth_words_per_cycle: 1, latency_cycles: 1}}
- {name: PE, memories: [{name: L1, read_energy_pj: 1, write_energy_pj: 1}]}
compute: {energy_per_operation_pj: 1}
""")
    mapping = Mapping.from_yaml("""
entries:
- {target: L2, keep: [A, B, Z], temporal_tile_sizes: {M: 4194304, N: 1048576, K: 1048576}}
- target: L2
  temporal_tile_sizes: {M: 1048576, N: 1024, K: 1024}
  temporal_order: [M, N, K]
  spatial_tile_sizes: {M: 1024}
- {target: PE, keep: [A, B, Z]}
- {target: PE, temporal_tile_sizes: {M: 1, N: 1, K: 1}, temporal_order: [M, N, K]}
""")
    evaluator = MaestroEvaluator(
        problem, architecture, faithful=False
    )  # a model that is bound refuses so many operations
    report = evaluator.explain(mapping)
    costs = evaluator.evaluate_batch(MappingBatch.pack(problem, [mapping]))
    assert report.valid and report.columns["num_macs"] == problem.macs == 2**62  # type: ignore[attr-defined]
    assert (costs.cycles[0], costs.energy_pj[0]) == (report.cycles, report.energy_pj)


def test_problems_that_cannot_be_counted_exactly_are_refused() -> None:
    space = tw.space("nk,km->nm; n=1048576 k=1048576 m=1048576", "union_edge", constraints="none")
    with pytest.raises(NotConformableError, match=r"2\*\*53"):
        MaestroModel(MaestroOptions()).bind(space.problem, space.architecture)
