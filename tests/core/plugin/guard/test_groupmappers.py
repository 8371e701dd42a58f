"""Results of group mappers that break their contract are told in a few words, and never raise."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

import tilewright as tw
from support import EXAMPLE_FILES
from tilewright.application.run.evaluation import build_model, evaluate_group
from tilewright.plugin import GroupResult, GroupTask
from tilewright.plugin.guard.groupmappers import fault_of_result
from tilewright.schema.group import GroupMapping

GROUP = GroupMapping.from_file(EXAMPLE_FILES / "two_products.yaml")
TASK = GroupTask(GROUP, partial(evaluate_group, build_model("timeloop")))
REPORT = TASK.evaluate(GROUP)
assert REPORT.energy_pj is not None and REPORT.cycles is not None
RESULT = GroupResult(GROUP, REPORT.energy_pj, REPORT.cycles, GROUP, bound=0.0, proved=False, unfused_proved=False)


def test_a_result_that_claims_nothing_is_right() -> None:
    assert fault_of_result(RESULT, TASK) is None


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"group": None}, "returned None as group"),
        ({"group": GROUP.model_copy(update={"tree": None})}, "a GroupMapping that is none as group"),
        ({"group": GROUP.model_copy(update={"axes": {}})}, "a GroupMapping that is none as group"),
        ({"unfused": GROUP.model_copy(update={"name": "other"})}, "changed the name of the group in unfused"),
        ({"energy_pj": 10**400}, "as energy_pj, a number"),
        ({"cycles": float("nan")}, "as cycles, a number"),
        ({"bound": RESULT.energy_pj * 2}, "claims that nothing costs less"),
        ({"proved": True}, "bounds it by 0 only"),
    ],
)
def test_a_fault_is_named(changes: dict[str, Any], fault: str) -> None:
    assert fault in (fault_of_result(replace(RESULT, **changes), TASK) or "")


def test_a_mapping_that_is_not_legal_is_a_fault() -> None:
    data = GROUP.to_data()
    for branch in data["tree"]["branches"]:
        branch["entries"] = []
    wrong = replace(RESULT, group=GroupMapping.model_validate(data))

    assert "not legal as group" in (fault_of_result(wrong, TASK) or "")
    assert tw.evaluate(wrong.group).reports[0].reasons
