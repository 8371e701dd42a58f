"""Timeloop's own figures, reproduced: counts and cycles exactly, energies to 1e-6."""

import json
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from support.recorded.timeloop import FOLDER, Case, Figures, Rejected, cases, rejected
from tilewright.mapspace.batch import MappingBatch
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopModel

RUNS = [(case, links) for case in cases() for links in (True, False)]


def test_every_recorded_mapping_is_here() -> None:
    assert len(cases()) == 370
    assert sum(case.figures != case.without_links for case in cases()) == 27
    assert len(rejected()) == 26


@pytest.mark.parametrize(
    ("case", "links"), RUNS, ids=[f"{case.id}-{'links' if on else 'no_links'}" for case, on in RUNS]
)
def test_report_and_batch_reproduce_timeloop(case: Case, links: bool) -> None:
    evaluator = TimeloopModel(TimeloopOptions(link_transfers=links)).bind(case.problem, case.architecture)
    figures = case.run(links)
    report = evaluator.explain(case.mapping)
    assert report.valid, report.reasons
    assert report.cycles is not None and report.energy_pj is not None and report.utilization is not None
    assert report.macs == figures.macs
    assert report.cycles == figures.cycles
    assert report.energy_pj == pytest.approx(figures.energy_pj, rel=1e-6)
    assert report.compute_energy_pj == pytest.approx(figures.compute_energy_pj, rel=1e-6)
    assert report.utilization == pytest.approx(figures.utilization, rel=1e-6)
    check_levels(report, figures)
    check_networks(report, figures)

    costs = evaluator.evaluate_batch(MappingBatch.pack(case.problem, [case.mapping, case.mapping]))
    assert costs.valid.tolist() == [True, True]
    assert costs.cycles.tolist() == [report.cycles, report.cycles]
    assert costs.energy_pj[0] == pytest.approx(figures.energy_pj, rel=1e-6)


def test_timeloop_has_one_cycle_more_than_words_over_bandwidth_where_floating_point_rounds_up() -> None:
    """Of the recorded levels, 12 have it: cycles are the cycles of compute over a speed, which is no exact number."""
    more = Counter[int]()
    for case, links in RUNS:
        figures = case.run(links)
        memories = {memory.name: memory for memory in case.architecture.memories}
        for level in figures.levels:
            memory, exact = memories[level.name], figures.compute_cycles
            read = sum(counts.reads for counts in level.tensors.values())
            written = sum(counts.fills + counts.updates for counts in level.tensors.values())
            for words, bandwidth in (
                (read, memory.read_bandwidth_words_per_cycle),
                (written, memory.write_bandwidth_words_per_cycle),
            ):
                exact = exact if bandwidth is None else max(exact, math.ceil(Fraction(words) / Fraction(bandwidth)))
            more[level.cycles - exact] += 1
    assert more == {0: 2806, 1: 12}


@pytest.mark.parametrize(
    "case", [case for case in cases() if case.figures != case.without_links], ids=lambda case: case.id
)
def test_a_tensor_without_links_has_the_figures_of_a_run_without_links(case: Case) -> None:
    """Timeloop's counts of one tensor do not depend on the links of another."""
    for name in case.problem.tensor_names:
        clusters = tuple(
            cluster.model_copy(update={"fanout": cluster.fanout.model_copy(update={"unlinked": (name,)})})
            for cluster in case.architecture.clusters
        )
        architecture = case.architecture.model_copy(update={"clusters": clusters})
        report = TimeloopModel(TimeloopOptions()).bind(case.problem, architecture).explain(case.mapping)
        for network in report.networks:
            run = case.run(network.tensor != name)
            expected = {(row.level, row.tensor): row for row in run.networks}[network.name, network.tensor]
            assert network.link_transfers == expected.link_transfers


def check_levels(report: Report, figures: Figures) -> None:
    levels = {level.name: level for level in report.levels}
    for expected in figures.levels:
        level = levels[expected.name]
        assert abs(level.cycles - expected.cycles) <= figures.throttled
        assert level.energy_pj == pytest.approx(expected.energy_pj, rel=1e-6)
        assert set(level.tensors) == set(expected.tensors)
        for name, counts in expected.tensors.items():
            found = level.tensors[name]
            for field in ("reads", "fills", "updates", "instances", "tile_words", "partition_words"):
                assert getattr(found, field) == getattr(counts, field), f"{expected.name} {name} {field}"
            assert found.energy_pj == pytest.approx(counts.energy_pj, rel=1e-6)


def check_networks(report: Report, figures: Figures) -> None:
    networks = {(network.name, network.tensor): network for network in report.networks}
    for network in figures.networks:
        found = networks[network.level, network.tensor]
        where = f"below {network.level}, {network.tensor}"
        assert (found.ingresses, found.link_transfers, found.spatial_reductions) == (
            network.ingresses,
            network.link_transfers,
            network.spatial_reductions,
        ), where
        rows = sorted((row.multicast, row.scatter, row.accesses) for row in found.deliveries)
        assert rows == sorted(row for row in network.deliveries if row[2]), where
        assert found.hops == pytest.approx(network.hops, rel=1e-6), where
        assert found.energy_pj == pytest.approx(network.energy_pj + network.link_energy_pj, rel=1e-6), where


CODES = {"capacity": "capacity", "fanout": "fanout", "product": "coverage", "bypass_all": "backing"}


@pytest.mark.parametrize("case", rejected(), ids=lambda case: case.id)
def test_rejected_mappings_get_timeloops_verdict_and_reason(case: Rejected) -> None:
    evaluator = TimeloopModel(TimeloopOptions()).bind(case.problem, case.architecture)
    report = evaluator.explain(case.mapping)
    costs = evaluator.evaluate_batch(MappingBatch.pack(case.problem, [case.mapping]))
    assert costs.valid.tolist() == [report.valid]
    if case.error is None:  # Timeloop checks totals, not each fanout, and takes these; we say so
        assert report.valid and case.figures is not None
        assert report.energy_pj == pytest.approx(case.figures.energy_pj, rel=1e-6)
        assert case.expected["level"] in report.warnings[0] and str(case.expected["used"]) in report.warnings[0]
        return
    assert not report.valid and report.energy_pj is None
    first = report.reasons[0]
    assert first.code == CODES[case.kind]
    words = case.error.replace(":", " ").split()
    numbers = [word.rstrip(".") for word in words if word.rstrip(".").isdecimal()]
    assert all(number in first.message for number in numbers), (first, case.error)
    if case.kind in ("capacity", "fanout"):
        assert f"level {first.where}:" in case.error


@pytest.mark.parametrize(
    "case", json.loads((FOLDER / "innermost_fanout.json").read_text())["cases"], ids=lambda case: case["id"]
)
def test_compute_units_have_operands_from_their_neighbours(case: dict[str, Any]) -> None:
    """Where the innermost memory fans out, what stays in use is read once, although compute has no register."""
    problem, architecture = Problem.model_validate(case["problem"]), Architecture.model_validate(case["architecture"])
    evaluator = TimeloopModel(TimeloopOptions()).bind(problem, architecture)
    report = evaluator.explain(Mapping.model_validate(case["mapping"]))
    assert report.cycles == case["cycles"]
    found = {level.name: level.tensors for level in report.levels}
    for level, tensors in case["levels"].items():
        for tensor, figures in tensors.items():
            counted = found[level][tensor]
            assert (counted.reads, counted.fills, counted.updates) == tuple(
                figures[each] for each in ("reads", "fills", "updates")
            )
            assert counted.energy_pj == pytest.approx(figures["energy_pj"], rel=1e-9)
