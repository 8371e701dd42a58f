"""Bits per value of a product's tensors, from the element types of operands and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.schema.problem import Problem
from tilewright_frontends.mlir import affine, aten
from tilewright_frontends.mlir.tree import Operation, Value, within

SINGLE = 32
"""Bits of a value in single precision, which is not worth a note."""
_SECOND = ("addmm", "baddbmm")
"""Operators of ATen whose first operand is added."""


def with_widths(
    problems: Sequence[Problem], operation: Operation, maker: Callable[[Value], Operation | None]
) -> list[Problem]:
    """Return an operation's problems with the bits of their tensors; unchanged if all known widths are 32."""
    bits = [value.bits for value in _values(operation, maker)]
    if not set(bits) - {None, SINGLE}:
        return list(problems)
    found = []
    for problem in problems:
        known = bits if len(bits) == len(problem.tensors) else []
        if not known and len(set(bits)) == 1:  # the scores of an attention are as wide as its operands
            known = bits[:1] * len(problem.tensors)
        tensors = zip(problem.tensors, known or [None] * len(problem.tensors), strict=True)
        update = {"tensors": tuple(tensor.model_copy(update={"bits": each}) for tensor, each in tensors)}
        found.append(problem.model_copy(update=update))
    return found


def _values(operation: Operation, maker: Callable[[Value], Operation | None]) -> list[Value]:
    """Return the values of a product's operands and of its result, in the order of its tensors."""
    operands = list(operation.operands)
    result = operation.results[-1:] or operation.operands[-1:]
    if operation.name == "affine.for":
        return _accessed(operation)
    if affine.has_maps(operation):
        return [*(operands[place] for place in affine.factor_places(operation)), *result]
    kind = aten.operator_of(operation.name) or operation.kind
    if kind == "einsum" and (listed := maker(operands[1])) is not None:
        return [*listed.operands, *result]
    if kind == "Einsum":
        return [*operands, *result]
    if kind == "Conv2DBackpropInput":
        return [operands[2], operands[1], *result]
    if "scaled_dot_product" in kind:
        return [*operands[:3], *result, *result]  # two products, so only equal widths count
    first = 1 if kind in _SECOND else 0
    return [*operands[first : first + 2], *result]


def _accessed(operation: Operation) -> list[Value]:
    """Return the buffers that a loop nest reads, if all are equally wide, and the one that it writes."""
    buffers = [
        (each.name, each.operands[0 if each.name.endswith(".load") else 1])
        for each in within(operation)
        if each.name.endswith((".load", ".store"))
    ]
    written = [value for name, value in buffers if name.endswith(".store")]
    read = [value for name, value in buffers if name.endswith(".load") and value not in written]
    return [*read, *written] if len({value.bits for value in read}) == 1 else []
