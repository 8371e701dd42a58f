"""Range in which double precision, the type of all costs, is exact."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tilewright.errors import Reason
from tilewright.schema.problem import Problem

EXACT = 2**53
"""Integers up to this product are exact in double precision."""


def overflow(problem: Problem) -> Iterator[Reason]:
    """Yield the reason why a problem cannot be counted exactly, if any."""
    if _largest_count(problem) > EXACT:
        yield Reason(code="overflow", where=problem.name, message=_message(problem.macs))


def group_overflow(name: str, problems: Sequence[Problem], slices: int = 1) -> Iterator[Reason]:
    """Yield the reasons why layers that run in sequence cannot be counted exactly: one layer, or the sum of all.

    Args:
        name: the group's.
        slices: parts of a value that are counted, at most.
    """
    reasons = [reason for problem in problems for reason in overflow(problem)]
    yield from reasons
    if not reasons and sum(map(_largest_count, problems)) * slices > EXACT:
        text = _message(sum(problem.macs for problem in problems))
        yield Reason(code="overflow", where=name, message=f"together, {text}")


def _message(operations: int) -> str:
    return f"{operations} operations give counts beyond 2**53, where double precision is not exact"


def _largest_count(problem: Problem) -> int:
    """Return an upper bound on every count: operations, times the holes that strides leave in bounding boxes."""
    holes = max(math.prod(sum(rank.terms.values()) for rank in tensor.projection) for tensor in problem.tensors)
    return problem.macs * holes
