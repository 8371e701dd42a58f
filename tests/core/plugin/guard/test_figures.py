"""The check of costs is what its sentence says, one mapping at a time."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.plugin.costmodel import Costs
from tilewright.plugin.guard.figures import MAX_COST, fault_of_costs, fault_of_report, least_cycles
from tilewright.reports import LevelReport, Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem

figures = st.one_of(st.floats(), st.sampled_from([0.0, 1.0, 10.0, 1e300, math.inf]))
rows = st.lists(st.tuples(st.booleans(), figures, figures), max_size=8)


@given(rows, st.sampled_from([0.0, 1.0]))
def test_costs_are_right_where_each_row_is(given_rows: list[tuple[bool, float, float]], least: float) -> None:
    valid, energy, cycles = (list(column) for column in zip(*given_rows, strict=True)) if given_rows else ([], [], [])
    costs = Costs(np.array(valid, np.bool_), np.array(energy, np.float64), np.array(cycles, np.float64))

    def right(row: tuple[bool, float, float]) -> bool:
        if row[0]:
            return 0 <= row[1] <= MAX_COST and least <= row[2] <= MAX_COST  # beyond, an objective is infinite
        return row[1] == row[2] == math.inf

    assert (fault_of_costs(costs, len(given_rows), least) is None) == all(map(right, given_rows))


def report(**changes: object) -> Report:
    figures = {"model": "m", "problem": "p", "valid": True, "macs": 8, "cycles": 4, "energy_pj": 6.0, "edp": 24.0}
    return Report.model_validate(figures | changes)


def test_fewer_cycles_than_all_units_need_are_a_fault() -> None:
    """100 operations on 8 units take 12.5 cycles; sparse hardware may skip them all."""
    gemm = {"name": "p", "dimensions": {"K": 100}, "tensors": [{"name": "I", "role": "input", "projection": ["K"]}, {"name": "O", "role": "output", "projection": []}]}  # fmt: skip
    memory = {"name": "D", "read_energy_pj": 1.0, "write_energy_pj": 1.0}
    clusters = [{"name": "D", "memories": [memory], "fanout": {"size": 8}}]
    machine = {"name": "a", "clusters": clusters, "compute": {"energy_per_operation_pj": 1.0}}
    problem, architecture = Problem.model_validate(gemm), Architecture.model_validate(machine)
    least = least_cycles(problem, architecture)
    assert least == pytest.approx(12.5, rel=1e-5)

    def costs(*cycles: float) -> Costs:
        return Costs(np.isfinite(cycles), np.where(np.isfinite(cycles), 1.0, np.inf), np.array(cycles))

    assert fault_of_costs(costs(12.5, 13.0, math.inf), 3, least) is None
    fault = fault_of_costs(costs(13.0, 12.0), 2, least)
    assert fault is not None and "12 cycles, where all compute units together need 12.5" in fault
    memory["sparse"] = {"actions": [{"skip": "I", "when_empty": ["O"]}]}
    assert least_cycles(problem, Architecture.model_validate(machine)) == 0.0


def test_a_report_may_leave_parts_out_but_not_contradict_itself() -> None:
    half = LevelReport(name="L", instances=1, cycles=1, energy_pj=3.0)
    assert fault_of_report(report()) is None
    assert fault_of_report(report(levels=(half,))) is None, "compute is not told"
    assert fault_of_report(report(levels=(half,), compute_energy_pj=3.0, utilization=1.0)) is None
    for wrong, words in (
        ({"levels": (half,), "compute_energy_pj": 2.0}, "an energy of 6 pJ, its parts add up to 5 pJ"),
        ({"levels": (half, half, half)}, "its parts add up to 9 pJ"),
        ({"edp": 25.0}, "an EDP of 25, energy times cycles is 24"),
        ({"utilization": 5.0}, "a utilization of 5, above 1"),
        ({"energy_pj": None}, "a valid mapping without energy, cycles or EDP"),
        ({"energy_pj": -6.0, "edp": -24.0}, "an energy of -6 pJ"),
    ):
        assert words in str(fault_of_report(report(**wrong))), wrong
    assert fault_of_report(report(valid=False, edp=1.0)) is None, "figures of what is not valid are nobody's"
