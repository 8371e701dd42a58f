"""Differences between a cost model and the execution, per level, tensor and action, with their causes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.errors import TilewrightError
from tilewright.plugin.guard.calls import Owner, calling
from tilewright.plugin.route import ACTIONS, Action, Route
from tilewright.plugin.specs import Approximation
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.report import Report
from tilewright.values import Model


class Cause(Model):
    """Possible cause of a difference. `code` is stable.

    It is a declared approximation that applies to the mapping, `totals` (the model counts all
    instances together) or `rounding`.
    """

    code: str
    message: str


class Difference(Model):
    """One count that differs, in words per instance: by execution and by the model."""

    level: str
    tensor: str
    action: Action
    executed: int
    counted: int
    causes: tuple[Cause, ...]


def compared(executed: Report, other: Report) -> int:
    """Return the number of counts that both reports have."""
    theirs = {(level.name, name) for level in other.levels for name in level.tensors}
    return len(ACTIONS) * sum((level.name, name) in theirs for level in executed.levels for name in level.tensors)


def differences(
    problem: Problem,
    architecture: Architecture,
    mapping: Mapping,
    executed: Report,
    other: Report,
    approximations: Sequence[Approximation],
) -> tuple[Difference, ...]:
    """Return every count of `other` that differs from the execution, with possible causes.

    Args:
        executed: A valid report of a model that executes mappings.
        other: A valid report of another model on the same mapping.
        approximations: The declared approximations of the other model.
    """
    theirs = {(level.name, name): counts for level in other.levels for name, counts in level.tensors.items()}
    found = []
    for level in executed.levels:
        for name, counts in level.tensors.items():
            if (level.name, name) not in theirs:
                continue
            for action in ACTIONS:
                really, said = getattr(counts, action), getattr(theirs[level.name, name], action)
                if really != said:
                    route = Route.of(problem, architecture, mapping, other, name, level.name, action)
                    causes = (
                        *(cause for each in approximations if (cause := _cause(each, route)) is not None),
                        *_readings(executed, level.name, name, action, really, said),
                    )
                    found.append(
                        Difference(
                            level=level.name, tensor=name, action=action, executed=really, counted=said, causes=causes
                        )
                    )
    return tuple(found)


def _cause(approximation: Approximation, route: Route) -> Cause | None:
    try:
        with calling(Owner("approximation", approximation.code), "detect"):
            message: object = approximation.detect(route)
    except TilewrightError as error:
        message = f"{approximation.meaning}? {error.message}"
    return None if message is None else Cause(code=approximation.code, message=str(message))


def _readings(executed: Report, level: str, tensor: str, action: Action, really: int, said: int) -> Iterator[Cause]:
    """Yield causes in the interpretation of a count."""
    rows = executed.execution.accesses if executed.execution else ()
    for row in rows:
        if (row.level, row.tensor) == (level, tensor) and getattr(row, action).total == said:
            yield Cause(code="totals", message=f"all {row.instances} instances together")
    if abs(really - said) == 1:
        yield Cause(code="rounding", message="an average over instances, rounded or cut off")
