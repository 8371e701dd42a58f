"""The built-in search of fused groups, without the host."""

from functools import partial

from tilewright.application.run.evaluation import build_model, evaluate_group
from tilewright.plugin import GroupResult, GroupTask, Objective
from tilewright.schema.group import GroupMapping
from tilewright.schema.objective import ENERGY
from tilewright_mappers.fused.group import FusedGroupMapper


def search_group(group: GroupMapping, objective: Objective = ENERGY, seconds: float | None = None) -> GroupResult:
    """Return the result of the mapper `loop_trees`."""
    return FusedGroupMapper().search_group(
        GroupTask(group, partial(evaluate_group, build_model("timeloop")), objective, seconds)
    )
