"""Differences between a cost model and the execution, with their causes: counts per level, tensor and action; costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

from tilewright.errors import TilewrightError
from tilewright.plugin.guard.calls import Owner, calling
from tilewright.plugin.guard.figures import RELATIVE_TOLERANCE
from tilewright.plugin.route import ACTIONS, Action, Route
from tilewright.plugin.specs import Approximation
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.values import Model


class Cause(Model):
    """Possible cause of a difference."""

    code: str
    """Stable code: an approximation that the model declares, `totals` (all instances counted together) or `rounding`."""
    message: str
    """The cause in words."""


ROUNDED = Cause(code="rounding", message="an average over instances, rounded or cut off")


class Difference(Model):
    """One count that differs, in words per instance: by execution and by the model."""

    level: str
    """Name of the memory."""
    tensor: str
    """Name of the tensor."""
    action: Action
    """Reads, fills or updates."""
    executed: int
    """Count of the execution."""
    counted: int
    """Count of the model."""
    causes: tuple[Cause, ...]
    """Possible causes; empty if none is known."""


class CostDifference(Model):
    """Energy or cycles that differ, by execution and by the model; there may be several causes, or no known one."""

    figure: Literal["energy_pj", "cycles"]
    """The figure."""
    executed: float
    """Its value by execution."""
    counted: float
    """Its value by the model."""
    causes: tuple[Cause, ...]
    """Possible causes; empty if none is known."""


def compared(executed: Report, other: Report) -> int:
    """Return the number of counts that both reports have."""
    places = {(level.name, name) for level in other.levels for name in level.tensors}
    return len(ACTIONS) * sum((level.name, name) in places for level in executed.levels for name in level.tensors)


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
    tables = {(level.name, name): counts for level in other.levels for name, counts in level.tensors.items()}
    rows = []
    for level in executed.levels:
        for name, counts in level.tensors.items():
            if (level.name, name) not in tables:
                continue
            for action in ACTIONS:
                really, said = getattr(counts, action), getattr(tables[level.name, name], action)
                if really != said:
                    route = Route.of(problem, architecture, mapping, other, name, level.name, action)
                    causes = (
                        *(
                            cause
                            for approximation in approximations
                            if (cause := approximated(approximation, route)) is not None
                        ),
                        *_readings(executed, level.name, name, action, really, said),
                    )
                    rows.append(
                        Difference(
                            level=level.name, tensor=name, action=action, executed=really, counted=said, causes=causes
                        )
                    )
    return tuple(rows)


def cost_differences(
    problem: Problem, architecture: Architecture, executed: Report, other: Report, counts: Sequence[Difference]
) -> tuple[CostDifference, ...]:
    """Return energy and cycles of `other` if they differ from the execution, with possible causes.

    Args:
        executed, other: Valid reports, as for `differences`.
        counts: The counts that differ.
    """
    rows = []
    figures: tuple[Literal["energy_pj", "cycles"], ...] = ("energy_pj", "cycles")
    for figure in figures:
        really, said = getattr(executed, figure), getattr(other, figure)
        if really is None or said is None or math.isclose(really, said, rel_tol=RELATIVE_TOLERANCE):
            continue
        causes = tuple(_cost_causes(figure, problem, architecture, executed, other, counts))
        rows.append(CostDifference(figure=figure, executed=really, counted=said, causes=causes))
    return tuple(rows)


def _cost_causes(
    figure: str,
    problem: Problem,
    architecture: Architecture,
    executed: Report,
    other: Report,
    counts: Sequence[Difference],
) -> Iterator[Cause]:
    """Yield what may make energy or cycles differ, beside rounding."""
    memories = architecture.memories
    if counts:
        yield Cause(code="counts", message="counts differ, too")
    blocks = [memory.name for memory in memories if memory.block_words > 1]
    if blocks:
        text = f"accesses of whole blocks in {', '.join(blocks)}: a mean over instances is rounded, or each instance's"
        yield Cause(code="blocks", message=text)
    parts = [m.name for m in memories if any(m.may_hold(t) and m.words_of(t) % 1 for t in problem.tensors)]
    if parts:
        text = f"values that are a fraction of a word in {', '.join(parts)}: a mean is rounded to words, or each instance's"
        yield Cause(code="fractions", message=text)
    if architecture.sparse_parts:
        yield Cause(code="zeros", message="zeros and metadata: an expectation, or the mean of random draws")
    networks = [sum(network.energy_pj for network in report.networks) for report in (executed, other)]
    if figure == "energy_pj" and networks[0] != networks[1]:
        yield Cause(code="networks", message=f"{networks[1]:.4g} pJ of networks; the execution has {networks[0]:.4g}")
    if figure == "energy_pj" and executed.cycles != other.cycles and any(m.leakage_pj_per_cycle for m in memories):
        yield Cause(code="leakage", message="leakage during other cycles")
    known = {(limit.name, limit.action) for limit in executed.limits}
    more = [f"{limit.name} {limit.action}".strip() for limit in other.limits if (limit.name, limit.action) not in known]
    if figure == "cycles" and more:
        yield Cause(code="limits", message=f"limits that the execution does not have: {', '.join(more)}")
    if figure == "cycles" and abs((executed.cycles or 0) - (other.cycles or 0)) == 1:
        yield Cause(code="rounding", message="a quotient, rounded to a whole cycle")


def approximated(approximation: Approximation, route: Route) -> Cause | None:
    """Return a declared approximation as a cause, with what its detector says of the count; None if the count is exact."""
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
        yield ROUNDED
