"""Check of the results of group mappers."""

from __future__ import annotations

import sys

from tilewright.mapspace.group_legality import group_legality
from tilewright.plugin.groupmapper import GroupResult, GroupTask
from tilewright.plugin.guard.calls import described, one_line_error
from tilewright.plugin.guard.figures import may_bound
from tilewright.schema.group import GroupMapping


def fault_of_result(result: object, task: GroupTask) -> str | None:
    """Return the contract violation in a group mapper's result in a few words, or None."""
    if not isinstance(result, GroupResult):
        return f"returned {described(result)}, a GroupResult is expected"
    for name in ("group", "unfused"):
        mapping: object = getattr(result, name)
        if not isinstance(mapping, GroupMapping):
            return f"returned {described(mapping)} as {name}, a GroupMapping is expected"
        try:
            whole = GroupMapping.model_validate(mapping.to_data())
        except Exception as error:  # parts that were never validated may raise anything
            return f"returned a GroupMapping that is none as {name}: {one_line_error(error)}"
        given = ("name", "layers", "edges", "architecture")
        changed = [part for part in given if getattr(whole, part) != getattr(task.group, part)]
        if changed:
            return f"changed the {changed[0]} of the group in {name}"
        if reasons := group_legality(whole).reasons:
            return f"returned a mapping that is not legal as {name}: {reasons[0]}"
    for name in ("energy_pj", "cycles", "bound"):
        value: object = getattr(result, name)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= sys.float_info.max:
            return f"returned {str(value)[:40]} as {name}, a number of at least 0 is expected"
    value = result.of(task.objective)
    if not may_bound(result.bound, value):
        return f"claims that nothing costs less than {result.bound:g}, and returned what costs {value:g}"
    if result.proved and not may_bound(value, result.bound):
        return f"claims that {value:g} is the least cost, and bounds it by {result.bound:g} only"
    return None
