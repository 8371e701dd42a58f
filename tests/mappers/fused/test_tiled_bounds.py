"""Bounds of groups in tiles: none is above a mapping of the space, also where a group rounds less often than its visits."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import pytest

from support.profiles import first
from support.tiled_groups import MORE, TIMELOOP, Case, solution
from tilewright.application.run.evaluation import evaluate_group
from tilewright.application.run.group_search import branch_table
from tilewright.errors import Reason
from tilewright.plugin.groupmapper import BranchCase, BranchCost, BranchMapper, GroupTask
from tilewright.reports import Report
from tilewright.schema.architecture import Memory
from tilewright.schema.group import GroupMapping
from tilewright.schema.objective import ENERGY, Objective
from tilewright.schema.problem import Problem
from tilewright_mappers.fused.group import _axes, _shared
from tilewright_mappers.fused.limits import Limits
from tilewright_mappers.fused.tiled_group import TiledGroup, Tree, _Cut
from tilewright_mappers.fused.tiles import Fused, TiledInterval


@dataclass
class Loose:
    """Searches of branches that prove only a share of what they find."""

    exact: BranchMapper
    share: float
    home: Memory | None
    is_free: bool

    def home_is_least(self, objective: Objective) -> bool:
        return self.exact.home_is_least(objective)

    def branches(self, cases: Sequence[BranchCase], objective: Objective) -> list[BranchCost]:
        return [replace(cost, bound=self.share * cost.bound) for cost in self.exact.branches(cases, objective)]


def searched(case: Case, seconds: float = math.inf, share: float = 1.0) -> TiledGroup:
    """Return the search of a case; `search` runs it."""
    group, limits = case.group(), Limits()
    exact = branch_table(group.architecture, TIMELOOP)
    table = exact if share == 1 else Loose(exact, share, exact.home, exact.is_free)
    assert table.home is not None
    limits.ends = limits.now() + seconds
    shared = list(_shared(group, table.home))
    task = GroupTask(group, partial(evaluate_group, TIMELOOP), case.objective, None, table)
    axes = _axes(group, shared, limits)
    return TiledGroup(task, table, table.home, group.layers, shared, axes, frozenset(), limits)


@pytest.mark.parametrize("seed", first(2, 3, 0, 4, *range(5, 12)))
def test_no_choice_costs_less_than_its_bound(seed: int) -> None:
    """A visit is charged whole blocks, whole cycles and their leakage; the group is charged once for all visits."""
    case = Case(seed, rough=True)
    search = searched(case, seconds=1e6)
    _, bound, _ = search.search()
    last, objective = len(search.problems) - 1, case.objective
    branches, home = search.branches[objective], search.home
    within = search.within(0, last)
    interval = TiledInterval(search.problems, *within, search._axes(0, last), search.group.architecture, home)
    floors = math.fsum(search.floors[objective]) if objective.is_additive else 0.0
    for choice in interval.choices():
        bounds = []
        for _ in range(3):  # unknown, known with all room, known
            pairs = [branches.least(branch, visits) for branch, visits in zip(choice.cases, choice.visits, strict=True)]
            energy, cycles = (math.fsum(column) for column in zip(*pairs, strict=True))
            bounds.append(objective.value(choice.energy_pj + energy, cycles))
            branches.ask([branches.next_of(branch) for branch in choice.cases if not branches.is_known(branch)])
        best = [branches.best(branch) for branch in choice.cases]
        if not all(math.isfinite(cost.energy_pj) for cost in best):
            continue
        part = Fused(0, 0.0, 0.0, 0.0, choice, tuple(cost.entries for cost in best))
        report = evaluate_group(TIMELOOP, Tree(search, _Cut(0.0, 0.0, (part,))).group())
        value = report.of(objective)
        assert value is not None, report.reasons
        assert max(*bounds, bound, floors) <= value * (1 + 1e-9)


@pytest.mark.parametrize("seed", first(3, *range(12)))
def test_branches_that_are_not_proved_leave_a_gap(seed: int) -> None:
    case = Case(seed)
    best, bound, _ = searched(case).search()
    near, least, _ = searched(case, share=0.9).search()
    value, other = (case.objective.value(one.energy_pj, one.cycles) for one in (best, near))
    assert value * (1 - 1e-9) <= other <= value * (1 + 1e-9) / 0.9**2
    assert least <= bound * (1 + 1e-9) <= value * (1 + 1e-8)


@pytest.mark.parametrize("seed", first(2, 3, 0, 4, 7))
def test_floors_are_the_least_costs_over_all_sets_of_tensors(seed: int) -> None:
    search = searched(Case(seed), seconds=1e6)
    search.search()
    for objective, floors in search.floors.items():
        everything = [BranchCase(problem, some) for problem in search.problems for some in _sets(problem)]
        search.branches[objective].ask(everything)
        again = [search._floor(at, objective) for at in range(len(search.problems))]
        assert again == pytest.approx(floors, rel=1e-9)


@pytest.mark.parametrize("named", [True, False])
def test_a_mapping_that_the_model_refuses_loses_an_interval_and_not_all(named: bool) -> None:
    """The reason names a layer, whose interval is lost, or a memory."""
    search, refused = searched(Case(5)), list[GroupMapping]()
    evaluate = search.task.evaluate

    def refuse(group: GroupMapping) -> Report:
        report = evaluate(group)
        if refused or report.energy_pj is None or report.energy_pj > 2000:
            return report
        refused.append(group)
        reason = Reason(code="alive", where=group.layers[0].name if named else "Home", message="words do not fit")
        return report.model_copy(update={"valid": False, "reasons": (reason,), "energy_pj": None, "cycles": None})

    search.task = replace(search.task, evaluate=refuse)
    result = search.result()
    assert refused and 2000 < result.energy_pj < (evaluate(result.unfused).energy_pj or 0)


def _sets(problem: Problem) -> list[frozenset[str]]:
    names = [tensor.name for tensor in problem.tensors]
    return [frozenset(some) for count in range(len(names) + 1) for some in combinations(names, count)]


def test_an_operand_in_common_is_filled_once_in_the_bound_of_intervals_that_are_not_searched() -> None:
    case = Case(0)
    case.layers, case.objective, case.capacity, case.held = MORE[2], ENERGY, 40, None
    case.sizes = {"m": 4, "a": 4, "b": 1, "c": 1}
    search = searched(case, seconds=1e6)
    best, _, plain = search.search()
    assert best.energy_pj < plain.energy_pj
    assert math.fsum(search.floors[ENERGY]) <= best.energy_pj * (1 + 1e-9)


OUTSIDE: dict[str, tuple[tuple[dict[str, str], ...], int, float]] = {
    "an earlier result is an input of both readers": (
        (
            {"T0": "ma", "W0": "ab", "T1": "mb"},
            {"T1": "mb", "W1": "bc", "T2": "mc"},
            {"T1": "mb", "W1": "bc", "T3": "mc"},
        ),
        8,
        9365.2,
    ),
    "a result that leaves is whole before the next layer reads all of it": (MORE[1], 12, 12513.2),
}


@pytest.mark.parametrize(("layers", "capacity", "least"), OUTSIDE.values(), ids=OUTSIDE)
def test_results_with_readers_outside_an_interval(
    layers: tuple[dict[str, str], ...], capacity: int, least: float
) -> None:
    case = Case(0)
    case.layers, case.objective, case.capacity, case.held = layers, ENERGY, capacity, None
    case.sizes = {"m": 1, "a": 4, "b": 4, "c": 4}
    case.levels, case.units, case.energies, case.bandwidths = 2, 1, [200, 1, 0.1, 0.1], [None] * 4
    result = solution(case, branch_table(case.group().architecture, TIMELOOP))
    assert evaluate_group(TIMELOOP, result.group).valid
    assert result.proved and result.energy_pj == pytest.approx(least)
    assert result.bound <= result.energy_pj <= (evaluate_group(TIMELOOP, result.unfused).energy_pj or 0)
