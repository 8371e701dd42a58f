"""MAESTRO's figures compared with an execution.

They are exact where tiles divide and there are no strides, and bounded elsewhere. Where they
contradict the layer, there is a warning. Better hardware never costs more.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import assume, event, given
from hypothesis import strategies as st

from support.maestro_mappings import Case, cases, layers
from tilewright.mapspace.batch import MappingBatch
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem
from tilewright_costmodels import MaestroOptions, OracleOptions
from tilewright_costmodels.maestro.consistency import words_needed
from tilewright_costmodels.maestro.model import MaestroModel
from tilewright_costmodels.oracle.model import OracleModel
from tilewright_notations.directives import FILTER, INPUT, OUTPUT, DirectiveHardware, DirectiveLayer
from tilewright_notations.directives.completion import complete
from tilewright_notations.directives.plan import plan_of
from tilewright_notations.directives.roles import roles_of
from tilewright_notations.directives.translation import directives_of

plain_cases = cases(perfect=True, most=1, strides=(1,))


def changed(architecture: Architecture, **fields: Any) -> Architecture:
    """The architecture with other fields in all its memories and networks."""
    clusters = []
    for cluster in architecture.clusters:
        memories = tuple(
            memory.model_copy(update={name: value for name, value in fields.items() if hasattr(memory, name)})
            for memory in cluster.memories
        )
        noc = {name: value for name, value in fields.items() if hasattr(cluster.fanout.network, name)}
        network = cluster.fanout.network.model_copy(update=noc if cluster.name == "L2" else {})
        fanout = cluster.fanout.model_copy(update={"network": network})
        clusters.append(cluster.model_copy(update={"memories": memories, "fanout": fanout}))
    return architecture.model_copy(update={"clusters": tuple(clusters)})


def both(case: Case) -> tuple[Any, Report, DirectiveLayer]:
    """MAESTRO's report and the oracle's for the case's mapping, and its directives. Wires are free, operations few."""
    problem, architecture, (mapping,) = case
    assume(problem.macs <= 4000)
    architecture = changed(
        architecture, read_bandwidth_words_per_cycle=None, bandwidth_words_per_cycle=None, latency_cycles=1
    )
    theirs = MaestroModel(MaestroOptions(faithful=True)).bind(problem, architecture).explain(mapping)
    assume(theirs.valid)
    truth = OracleModel(OracleOptions()).bind(problem, architecture).explain(mapping)
    assert truth.valid
    return theirs, truth, directives_of(problem, mapping, roles_of(problem), plan_of(architecture))[0]


@given(case=plain_cases)
def test_operations_are_exact_and_compute_time_a_lower_bound(case: Case) -> None:
    theirs, truth, layer = both(case)
    assert theirs.columns["num_macs"] == truth.execution.operations == case[0].macs  # type: ignore[union-attr]
    assert not any("operations" in warning for warning in theirs.warnings)
    if len(layer.levels) == 1:  # the first tiles take a cycle to arrive, everything else is hidden
        event("one level")
        assert theirs.cycles == truth.cycles + 1  # type: ignore[operator]
    else:  # inner levels wait for their first tiles at every step outside
        assert theirs.cycles > truth.cycles + 1  # type: ignore[operator]


def loops_of(layer: DirectiveLayer) -> list[str]:
    """Letters that move in the outermost level, outermost first."""
    level = complete(layer, DirectiveHardware(num_pes=2**30))[0]
    return [each.dimension for each in level.maps if each.size < level.sizes[each.dimension]]


@given(case=plain_cases)
def test_tensors_without_windows_are_never_sent_more_often_than_needed(case: Case) -> None:
    """MAESTRO ignores that inner loops restart when an outer one advances; without inner loops it is exact."""
    theirs, truth, layer = both(case)
    l2 = {level.name: level.tensors for level in truth.levels}
    columns, tensors = theirs.columns["tensors"], roles_of(case[0]).tensors
    for name in (FILTER,) if layer.type != "GEMM" else (FILTER, INPUT):
        letters = layer.tensors[name]
        reads = next(tables[tensors[name].name].reads for at, tables in l2.items() if at == "L2")
        assert columns[name]["l2_read"] <= reads
        moving = [letter in letters for letter in loops_of(layer)]
        if len(layer.levels) == 1 and moving == sorted(moving, reverse=True):
            event("outermost")
            assert columns[name]["l2_read"] == reads
    if len(layer.levels) == 1:
        tables = next(tables for at, tables in l2.items() if at in ("L2", "L2o") and tensors[OUTPUT].name in tables)
        assert columns[OUTPUT]["l2_write"] >= tables[tensors[OUTPUT].name].updates


@given(problem=layers())
def test_words_that_any_execution_needs_are_those_that_operations_touch(problem: Problem) -> None:
    assume(problem.macs <= 20_000)
    roles = roles_of(problem)
    layer = DirectiveLayer.model_validate(
        {"name": "L", "type": roles.type, "dimensions": roles.sizes(problem), "strides": roles.strides, "levels": ((),)}
    )
    for name, tensor in roles.tensors.items():
        touched = 1
        for rank in tensor.projection:
            ranges = [range(problem.dimensions[dimension]) for dimension in rank.terms]
            steps = tuple(rank.terms.values())
            touched *= len({sum(a * b for a, b in zip(steps, at, strict=True)) for at in product(*ranges)})
        assert words_needed(layer, name) == touched


@given(case=cases(most=2))
def test_traffic_below_what_is_needed_is_warned_of(case: Case) -> None:
    problem, architecture, found = case
    reports: list[Any] = [
        MaestroModel(MaestroOptions(faithful=True)).bind(problem, architecture).explain(each) for each in found
    ]
    valid = [(mapping, report) for mapping, report in zip(found, reports, strict=True) if report.valid]
    assume(valid)
    for mapping, report in valid:
        layer, _ = directives_of(problem, mapping, roles_of(problem), plan_of(architecture))
        for name, counts in report.columns["tensors"].items():
            moved = counts["l2_write" if name == OUTPUT else "l2_read"]
            needed, way = words_needed(layer, name), "up to" if name == OUTPUT else "down from"
            said = f"MAESTRO sends {moved} elements of the {name} {way} L2; any execution needs {needed}"
            assert (said in report.warnings) == (moved < needed)
        warned = any("operations; the layer has" in warning for warning in report.warnings)
        assert warned == (report.columns["num_macs"] != problem.macs)


@given(case=cases(most=3), which=st.sampled_from(["network", "DRAM", "both"]))
def test_more_bandwidth_never_costs_cycles(case: Case, which: str) -> None:
    problem, architecture, found = case
    batch = MappingBatch.pack(problem, found)
    slow: dict[str, int] = {"bandwidth_words_per_cycle": 2} if which != "DRAM" else {}
    slow |= {"read_bandwidth_words_per_cycle": 2} if which != "network" else {}
    before = None
    for times in (1, 2, 7, 1000):
        faster = changed(architecture, **{name: value * times for name, value in slow.items()})
        costs = MaestroModel(MaestroOptions()).bind(problem, faster).evaluate_batch(batch)
        if before is not None:
            assert (costs.valid == before.valid).all() and (costs.cycles <= before.cycles).all()
            assert (costs.energy_pj == before.energy_pj).all()
        before = costs


@given(case=cases(roomy=False, most=3), more=st.sampled_from([1, 2, 100]))
def test_a_larger_memory_never_invalidates(case: Case, more: int) -> None:
    problem, architecture, found = case
    batch = MappingBatch.pack(problem, found)
    larger = architecture.model_copy(
        update={
            "clusters": tuple(
                cluster.model_copy(
                    update={
                        "memories": tuple(
                            memory.model_copy(update={"capacity_words": memory.capacity_words + more})
                            if memory.capacity_words
                            else memory
                            for memory in cluster.memories
                        )
                    }
                )
                for cluster in architecture.clusters
            )
        }
    )
    before = MaestroModel(MaestroOptions()).bind(problem, architecture).evaluate_batch(batch)
    after = MaestroModel(MaestroOptions()).bind(problem, larger).evaluate_batch(batch)
    assert (after.valid | ~before.valid).all()
    assert (after.cycles[before.valid] == before.cycles[before.valid]).all()
    assert (after.energy_pj[before.valid] == before.energy_pj[before.valid]).all()
