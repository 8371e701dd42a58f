"""Loops with a known number of iterations: those of JAX's `lax.scan` and `lax.fori_loop`, and of tiled linalg."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tilewright_frontends.mlir.tree import Block, Operation, Value

ONCE = frozenset({"mhlo.fusion", "scf.execute_region"})
"""Operations that execute their region once."""

COUNTED = frozenset({"scf.for", "scf.parallel"})
"""Loops with bounds and steps as operands."""

Makers = Callable[[Value], Operation | None]


def iterations(operation: Operation, outside: Makers) -> int | None:
    """Return the number of iterations of a loop; None if it is none or not known.

    A region that is executed once counts as one iteration. The number of a `stablehlo.while` is known if
    a counter starts at a constant, grows by a constant and stays below a constant.

    Args:
        operation: an operation with a condition and a body.
        outside: returns the operation that produces a value outside of the loop.
    """
    if operation.name in ONCE and len(operation.regions) == 1:
        return 1
    if operation.name in COUNTED and len(operation.regions) == 1:
        numbers = [_number(bound, outside) for bound in bounds(operation)]
        count = len(numbers) // 3
        return (
            math.prod(
                _steps(numbers[place], numbers[place + count], numbers[place + 2 * count]) or 0
                for place in range(count)
            )
            or None
        )
    if operation.kind != "while" or len(operation.regions) != 2:
        return None
    condition, body = operation.regions
    below, after = _makers(condition, outside), _makers(body, outside)
    test = below(_returned(condition, 0))
    if test is None or test.kind != "compare" or "LT" not in str(test.attributes.get("comparison_direction")):
        return None
    counter, limit = test.operands[:2]
    if counter not in condition.arguments:
        return None
    place = condition.arguments.index(counter)
    step = after(_returned(body, place))
    if step is None or step.kind != "add" or body.arguments[place] not in step.operands:
        return None
    low, high = _number(operation.operands[place], outside), _number(limit, below)
    steps = [_number(operand, after) for operand in step.operands if operand is not body.arguments[place]]
    return _steps(low, high, steps[0]) if len(steps) == 1 else None


def bounds(operation: Operation) -> Sequence[Value]:
    """Return the lower bounds, upper bounds and steps of an `scf.for` or `scf.parallel`."""
    loops = 1 if operation.name == "scf.for" else len(operation.operands) // 3
    return operation.operands[: 3 * loops]


def _steps(low: int | None, high: int | None, step: int | None) -> int | None:
    if low is None or high is None or step is None or step < 1:
        return None
    return max(0, -(-(high - low) // step)) or None


def _makers(block: Block, outside: Makers) -> Makers:
    inside = {result: operation for operation in block.operations for result in operation.results}
    return lambda value: inside.get(value) or outside(value)


def _returned(block: Block, place: int) -> Value:
    """Return a value that a block returns; one without a maker if there is none."""
    ends = block.operations[-1].operands if block.operations else ()
    return ends[place] if place < len(ends) else Value(None)


def _number(value: Value, makers: Makers) -> int | None:
    made = makers(value)
    if made is None or made.kind != "constant":
        return None
    attribute = made.attributes.get("value")
    number = attribute[0] if isinstance(attribute, tuple) and len(attribute) == 1 else attribute
    return number if isinstance(number, int) else None
