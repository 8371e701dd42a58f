"""The front of a layer, from answers to what takes the least under bounds on the cycles."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.application.api.front.points import Front, front_of
from tilewright.application.run.network import MappedLayer
from tilewright.plugin.result import Result
from tilewright.reports import Report
from tilewright.schema.objective import CYCLES, ENERGY, Objective
from tilewright.schema.workload import DistinctProblem
from tilewright.testing.corpus import SAMPLES

DISTINCT = DistinctProblem(SAMPLES[0].problem, ("layer",), 1)
Cost = tuple[int, float]
"""Cycles, energy."""
costs = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 30).map(float)), min_size=1, max_size=40)


def true_front(costs: list[Cost]) -> list[Cost]:
    return sorted((c, e) for c, e in set(costs) if not any(o != (c, e) and o[0] <= c and o[1] <= e for o in costs))


def answered(costs: list[Cost], most: int) -> tuple[Front, int]:
    """The front, and how many searches it took; of equal mappings any is found."""
    asked = 0

    def least(objective: Objective, cap: float) -> MappedLayer:
        nonlocal asked
        asked += 1
        fit = [cost for cost in costs if cost[0] <= cap]
        cycles, energy = min(fit, key=lambda cost: cost[objective == ENERGY])
        report = Report(model="any", problem="layer", macs=1, valid=True, cycles=cycles, energy_pj=energy)
        proved = energy * (0.5 + cap % 2 / 4 if cap < math.inf else 0.6)  # here much, there little
        result = Result(None, energy, 1, 1, 0, "finished", 0.0, 0.0, 0, lower_bound=proved)
        return MappedLayer(DISTINCT, result=result, report=report)

    return front_of(DISTINCT, least, most), asked


@given(costs)
def test_with_room_for_all_the_front_is_whole(costs: list[Cost]) -> None:
    found, asked = answered(costs, 100)
    points = [(point.cycles, point.energy_pj) for point in found.points]
    assert found.whole and points == true_front(costs)
    assert asked <= 5 + 10 * len(points)
    for point, after in zip(found.points, found.points[1:], strict=False):
        assert point.most_cycles == after.cycles - 1
    assert found.points[-1].most_cycles == math.inf


@given(costs, st.integers(2, 100))
def test_bounds_are_those_of_all_that_a_point_stands_for(costs: list[Cost], most: int) -> None:
    for point in answered(costs, most)[0].points:
        least = min(energy for cycles, energy in costs if cycles <= point.most_cycles)
        assert point.energy_pj == least and point.bound is not None and point.gap is not None
        assert 0.5 * least <= point.bound <= 0.75 * least
        assert point.gap == pytest.approx((least - point.bound) / least)


@given(costs, st.integers(2, 5))
def test_fewer_points_are_on_the_front_with_its_ends(costs: list[Cost], most: int) -> None:
    found, _ = answered(costs, most)
    points, truth = [(point.cycles, point.energy_pj) for point in found.points], true_front(costs)
    assert set(points) <= set(truth) and {truth[0], truth[-1]} <= set(points)
    assert found.whole == (points == truth)


def test_where_nothing_is_found_there_is_no_front() -> None:
    nothing = MappedLayer(DISTINCT)
    found = front_of(DISTINCT, lambda objective, cap: nothing, 8)
    assert found.points == () and not found.whole and found.fastest is nothing


def test_what_a_search_misses_leaves_the_front_open() -> None:
    """As after an interruption."""

    def least(objective: Objective, cap: float) -> MappedLayer:
        cycles, energy = (10, 5.0) if cap < math.inf or objective == CYCLES else (100, 1.0)
        report = Report(model="any", problem="layer", macs=1, valid=True, cycles=cycles, energy_pj=energy)
        return MappedLayer(DISTINCT, report=None if 10 < cap < math.inf else report)

    found = front_of(DISTINCT, least, 8)
    assert [point.cycles for point in found.points] == [10, 100] and not found.whole


def test_where_the_fastest_alone_is_known_it_is_what_there_is() -> None:
    report = Report(model="any", problem="layer", macs=1, valid=True, cycles=10, energy_pj=5.0)

    def least(objective: Objective, cap: float) -> MappedLayer:
        return MappedLayer(DISTINCT, report=report if objective == CYCLES else None)

    found = front_of(DISTINCT, least, 8)
    (point,) = found.points
    assert (point.cycles, point.most_cycles, point.bound, found.whole) == (10, 10, None, False)
