"""Buffers that operations change, and those that may share memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright_frontends.mlir.affine import ENDS
from tilewright_frontends.mlir.tree import Operation, Value, within

READING = frozenset(
    "load dim rank dealloc prefetch transfer_read assume_alignment extract_strided_metadata extract_aligned_pointer_as_index".split()
)
"""Operations that only read their buffers."""
SECOND = frozenset("store copy transfer_write vector_store".split())
"""Operations that change their second operand only."""
STRUCTURE = frozenset("return yield for if while parallel execute_region forall".split())
"""Operations that hand buffers on, or whose regions have the operations that change them."""


def changed(operation: Operation) -> list[Value]:
    """Return the buffers that an operation, or one in its regions, may change."""
    values = [value for inner in (operation, *within(operation)) for value in _of(inner)]
    return list(dict.fromkeys(value for value in values if value.buffer))


def _of(operation: Operation) -> Sequence[Value]:
    """Return the values that an operation may change, apart from those in its regions."""
    kind = operation.kind
    if kind in SECOND or kind.endswith("_store"):
        return operation.operands[1:2]
    if operation.name.startswith("linalg.") and kind != "yield":
        return () if operation.results else operation.operands[len(operation.operands) - _results(operation) :]
    if (
        kind in READING
        or kind.endswith("_load")
        or kind in STRUCTURE
        or any(result.buffer for result in operation.results)
    ):
        return ()
    return operation.operands


def _results(operation: Operation) -> int:
    """Return the number of buffers that an operation of linalg writes."""
    ends = [end for region in operation.regions for end in region.operations if end.name in ENDS]
    return max(1, len(ends[0].operands)) if ends else 1


def shared(operation: Operation) -> Iterator[tuple[Value, Value]]:
    """Yield pairs of values that may share memory after an operation, such as a part of a buffer and the buffer."""
    every = [*operation.operands, *(value for inner in within(operation) for value in inner.operands)]
    for result in operation.results:
        for operand in every:
            if operand is not result and (result.buffer and operand.buffer or _converts(operation, operand)):
                yield result, operand


def _converts(operation: Operation, operand: Value) -> bool:
    """Return whether a buffer becomes a tensor, or a tensor a buffer."""
    return operation.name.startswith("bufferization.") and operand.shape is not None
