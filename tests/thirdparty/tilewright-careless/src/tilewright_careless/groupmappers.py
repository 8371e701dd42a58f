"""Group mappers that break promises. The good one returns the group as it is."""

from __future__ import annotations

import random
from dataclasses import replace

from tilewright.errors import NotConformableError
from tilewright.plugin import GroupMapping, GroupResult, GroupTask, Reason


class Good:
    """Group mapper that searches nothing."""

    def search_group(self, task: GroupTask) -> GroupResult:
        report = task.evaluate(task.group)
        assert report.energy_pj is not None and report.cycles is not None
        return GroupResult(
            task.group, report.energy_pj, report.cycles, task.group, bound=0.0, proved=False, unfused_proved=False
        )


class Illegal(Good):
    """Leaves out what the innermost tiles need."""

    def search_group(self, task: GroupTask) -> GroupResult:
        data = task.group.to_data()
        for branch in data["tree"]["branches"]:
            branch["entries"] = []
        return replace(super().search_group(task), group=GroupMapping.model_validate(data))


class Boundless(Good):
    """Proves something, and does not say in which space."""

    def search_group(self, task: GroupTask) -> GroupResult:
        result = super().search_group(task)
        return replace(result, bound=result.of(task.objective), proved=True)


class Moody(Good):
    """Returns other costs each time."""

    def search_group(self, task: GroupTask) -> GroupResult:
        result = super().search_group(task)
        return replace(result, energy_pj=result.energy_pj * (1 + random.random()))


class Hasty(Good):
    """Gives nothing when the time is over."""

    def search_group(self, task: GroupTask) -> GroupResult:
        if task.seconds is not None:
            raise NotConformableError("hasty", [Reason(code="time", where=task.group.name, message="no time is left")])
        return super().search_group(task)
