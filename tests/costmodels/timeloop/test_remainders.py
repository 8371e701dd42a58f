"""Timeloop's own remainders: 47 recorded runs of two versions, beside what is executed and what `timeloop` says.

`executed` of a case was recorded from the cost model `oracle`; the smaller ones are executed again here.
"""

from collections import Counter
from typing import Any

import pytest

from support.recorded.timeloop import recorded_remainders
from tilewright.application.run.differences import differences
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_costmodels import OracleOptions, TimeloopOptions
from tilewright_costmodels.approximations import OF_TIMELOOP
from tilewright_costmodels.oracle.model import OracleModel
from tilewright_costmodels.timeloop.model import TimeloopModel

pytestmark = pytest.mark.exhaustive

CASES = recorded_remainders()
MACS = 40_000
"""Cases of no more operations are executed again."""

Parts = tuple[Problem, Architecture, Mapping]


def parts(case: dict[str, Any]) -> Parts:
    return (
        Problem.model_validate(case["problem"]),
        Architecture.model_validate(case["architecture"]),
        Mapping.model_validate(case["mapping"]),
    )


def ours(case: dict[str, Any], links: bool = True) -> Report:
    problem, architecture, mapping = parts(case)
    return TimeloopModel(TimeloopOptions(link_transfers=links)).bind(problem, architecture).explain(mapping)


def counts(report: Report) -> dict[str, Any]:
    """As the cases have them: reads, fills and updates of an instance, instances, words of a tile."""
    return {
        level.name: {
            name: [row.reads, row.fills, row.updates, row.instances, row.tile_words]
            for name, row in level.tensors.items()
        }
        for level in report.levels
    }


@pytest.mark.parametrize("name", CASES)
def test_every_recorded_remainder_is_evaluated(name: str) -> None:
    """The cycles are those executed; every other difference has a cause."""
    case = CASES[name]
    report = ours(case)
    assert report.valid, report.reasons
    assert report.cycles == case["executed"]["cycles"]
    problem, architecture, mapping = parts(case)
    if problem.macs <= MACS:
        executed = OracleModel(OracleOptions()).bind(problem, architecture).explain(mapping)
        assert counts(executed) == case["executed"]["levels"] and executed.cycles == case["executed"]["cycles"]
        for difference in differences(problem, architecture, mapping, executed, report, OF_TIMELOOP):
            assert difference.causes, difference


def test_how_often_each_says_what_is_executed() -> None:
    """The table of docs/timeloop.md."""
    found = Counter[tuple[str, str]]()
    for case in CASES.values():
        version, executed = case["version"], case["executed"]
        report = ours(case)
        found[version, "cases"] += 1
        found[version, "operations"] += case["timeloop"]["operations"] == report.macs
        for who, cycles, levels in (
            ("theirs", case["timeloop"]["cycles"], case["timeloop"]["levels"]),
            ("ours", report.cycles, counts(report)),
        ):
            found[version, f"cycles, {who}"] += cycles == executed["cycles"]
            found[version, f"counts, {who}"] += levels == executed["levels"]
    assert found == Counter(TABLE)


TABLE = {
    ("3.0.3", "cases"): 22,
    ("3.0.3", "operations"): 19,
    ("3.0.3", "cycles, theirs"): 3,
    ("3.0.3", "counts, theirs"): 16,
    ("3.0.3", "cycles, ours"): 22,
    ("3.0.3", "counts, ours"): 18,
    ("2025", "cases"): 25,
    ("2025", "operations"): 24,
    ("2025", "cycles, theirs"): 3,
    ("2025", "counts, theirs"): 12,
    ("2025", "cycles, ours"): 25,
    ("2025", "counts, ours"): 21,
}
