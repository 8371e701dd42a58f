"""The literal walker gives the figures that Timeloop printed; it may therefore judge the cost model."""

import math

import pytest

from support.recorded.timeloop import Case, Figures, cases, rejected
from support.timeloop_walk import walk
from tilewright.reports import NetworkReport, Report

pytestmark = pytest.mark.exhaustive


def close(value: float | None, printed: float) -> bool:
    """Energies are printed with nine decimals."""
    return value is not None and math.isclose(value, printed, rel_tol=1e-6, abs_tol=1e-9)


def compare(report: Report, printed: Figures) -> None:
    """Compare counts exactly, cycles within 1 if a bandwidth sets them, and energies to 1e-6."""
    assert report.cycles is not None
    assert abs(report.cycles - printed.cycles) <= (1 if printed.throttled else 0)
    assert report.macs == printed.macs
    assert close(report.energy_pj, printed.energy_pj)
    assert close(report.compute_energy_pj, printed.compute_energy_pj)
    assert report.utilization == pytest.approx(printed.utilization, rel=1e-4)
    assert [level.name for level in report.levels] == [level.name for level in printed.levels]
    for level, expected in zip(report.levels, printed.levels, strict=True):
        assert abs(level.cycles - expected.cycles) <= (1 if printed.throttled else 0)
        assert close(level.energy_pj, expected.energy_pj)
        assert set(level.tensors) == set(expected.tensors)
        for name, counts in expected.tensors.items():
            got = level.tensors[name]
            figures = (got.reads, got.fills, got.updates, got.instances, got.tile_words, got.partition_words)
            assert figures == counts[:6], f"{name} in {level.name}"
            assert close(got.energy_pj, counts.energy_pj)
    compare_networks(report, printed)


def compare_networks(report: Report, printed: Figures) -> None:
    found: dict[tuple[str, str], NetworkReport] = {(row.name, row.tensor): row for row in report.networks}
    assert len(found) == len(printed.networks)
    for network in printed.networks:
        got = found[network.level, network.tensor]
        where = f"{network.tensor} below {network.level}"
        deliveries = {(row.multicast, row.scatter, row.accesses) for row in got.deliveries}
        assert deliveries == {row for row in network.deliveries if row[2]}, where
        assert (got.ingresses, got.link_transfers) == (network.ingresses, network.link_transfers), where
        assert got.spatial_reductions == network.spatial_reductions, where
        assert close(got.hops, network.hops), where
        assert close(got.energy_pj, network.energy_pj + network.link_energy_pj), where


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_reproduces_timeloop(case: Case) -> None:
    for links in (True, False):
        report = walk(case.problem, case.architecture, case.mapping, link_transfers=links)
        compare(report, case.run(links))


def test_reproduces_what_timeloop_accepted_beyond_a_fanout() -> None:
    accepted = [case for case in rejected() if case.figures is not None]
    assert len(accepted) == 2
    for case in accepted:
        assert case.figures is not None
        compare(walk(case.problem, case.architecture, case.mapping), case.figures)
