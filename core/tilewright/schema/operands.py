"""Unit operation: how many operands a compute unit multiplies, and problems that need more (Union, section III-B2)."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem
from tilewright.values import grouped


def operand_warnings(problems: Sequence[Problem], architecture: Architecture) -> tuple[str, ...]:
    """Return a sentence for the problems that multiply more operands than an operation of the hardware does.

    Their energy of compute is that of an operation with fewer operands.
    """
    unit, few = architecture.compute, architecture.compute.operands
    needing = grouped((problem.operand_count, problem.name) for problem in problems if problem.operand_count > few)
    return tuple(
        f"{', '.join(dict.fromkeys(names))}: {count} operands are multiplied, and an operation of {unit.name} of "
        f"{architecture.name} multiplies {unit.operands}, so the energy of compute is that of another operation; "
        f"write `operands: {count}` and its energy under `compute`"
        for count, names in needing.items()
    )
