"""Actions and kinds of accesses, and what compute units do with operands that are nonzero, zero or absent.

Functions take numbers, or SIMD lanes in a kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.compiled import kernel_part
from tilewright.prices import Number

READ, FILL, UPDATE = range(3)
"""Actions."""
EXECUTED, GATED, SKIPPED = range(3)
"""Kinds of accesses."""
State = tuple[Any, Any, Any]
"""Fractions of an operand's values: nonzero, zero, absent."""


@kernel_part
def state_of(nonzero: Number, saved: Number, absent: Any) -> tuple[State, Any]:
    """Return the state of an operand, and whether there are as many zeros as actions save operations.

    Args:
        nonzero: fraction of its values; six decimals, as `saved`.
        saved: fraction of the operations that actions on the other operand save.
        absent: zeros do not exist, because the memory next to the units has metadata.
    """
    left = 1.0 - saved
    share = np.where(left > 0.0, nonzero / np.maximum(left, 1e-300), np.inf)
    nonzero = np.minimum(share, 1.0)
    zero = 1.0 - nonzero
    return (nonzero, np.where(absent, 0.0, zero), np.where(absent, zero, 0.0)), share <= 1.0 + 1e-5


@kernel_part
def perform(operations: Number, first: State, second: State, gate: bool, skip: bool) -> tuple[Number, Number, Number]:
    """Return the actual, gated and skipped operations of units that gate, and that skip, on operands in these states."""
    (a, a_zero, a_absent), (b, b_zero, b_absent) = first, second
    # in Timeloop's order, so that sums round alike
    zero, lone = operations * (a * b_zero + a_zero * b), operations * (a * b_absent + a_absent * b)
    both, mixed = operations * (a_zero * b_zero), operations * (a_zero * b_absent + a_absent * b_zero)
    gated = operations * 0.0
    if gate:
        gated = zero + both if skip else zero + lone + both + mixed
    gates, skips = np.floor(gated), operations * 0.0
    if skip:
        skips = np.floor(lone + mixed)
    nothing = np.floor(operations * (a_absent * b_absent))
    return operations - gates - skips - nothing, gates, skips


@kernel_part
def rounded(share: Number) -> Number:
    """Return a share to six decimals, halves rounded up."""
    return np.floor(share * 1e6 + 0.5) / 1e6
