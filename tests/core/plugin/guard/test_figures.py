"""The check of costs is what its sentence says, one mapping at a time."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tilewright.plugin.costmodel import Costs
from tilewright.plugin.guard.figures import fault_of_costs, fault_of_report
from tilewright.schema.report import LevelReport, Report

figures = st.one_of(st.floats(), st.sampled_from([0.0, 1.0, 10.0, 1e300, math.inf]))
rows = st.lists(st.tuples(st.booleans(), figures, figures), max_size=8)


@given(rows, st.sampled_from([0.0, 1.0]))
def test_costs_are_right_where_each_row_is(given_rows: list[tuple[bool, float, float]], least: float) -> None:
    valid, energy, cycles = (list(column) for column in zip(*given_rows, strict=True)) if given_rows else ([], [], [])
    costs = Costs(np.array(valid, np.bool_), np.array(energy, np.float64), np.array(cycles, np.float64))

    def right(row: tuple[bool, float, float]) -> bool:
        if row[0]:
            return 0 <= row[1] < math.inf and least <= row[2] < math.inf
        return row[1] == row[2] == math.inf

    assert (fault_of_costs(costs, len(given_rows), least) is None) == all(map(right, given_rows))


def report(**changes: object) -> Report:
    figures = {"model": "m", "problem": "p", "valid": True, "macs": 8, "cycles": 4, "energy_pj": 6.0, "edp": 24.0}
    return Report.model_validate(figures | changes)


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
