"""Unit operation: how many operands a compute unit multiplies, and problems that need more (Union, section III-B2)."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem


def operand_warnings(problems: Sequence[Problem], architecture: Architecture) -> tuple[str, ...]:
    """Return a sentence for the problems that multiply more operands than an operation of the hardware does.

    Their energy of compute is that of an operation with fewer operands.
    """
    unit, needing = architecture.compute, dict[int, list[str]]()
    for problem in problems:
        if problem.operand_count > unit.operands:
            needing.setdefault(problem.operand_count, []).append(problem.name)
    return tuple(
        f"{', '.join(dict.fromkeys(names))}: {count} operands are multiplied, and an operation of {unit.name} of "
        f"{architecture.name} multiplies {unit.operands}, so the energy of compute is that of another operation; "
        f"write `operands: {count}` and its energy under `compute`"
        for count, names in needing.items()
    )
