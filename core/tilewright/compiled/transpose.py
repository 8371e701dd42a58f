# mypy: disable-error-code="import-untyped, no-untyped-call, untyped-decorator"
"""Transposition of mappings from row-major storage into SIMD lanes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import lower_builtin
from numpy.typing import NDArray

from tilewright.compiled.lane_vectors import LANES, typed
from tilewright.compiled.lanes import Number
from tilewright.compiled.pointers import POINTER, call, load, offset, store

_BLOCK = 8
"""Numbers of each mapping that are transposed together: as many 64-bit numbers as a register holds."""
_TRANSPOSED = {(types.int64, types.float64), (types.uint8, types.uint8), (types.boolean, types.boolean)}


def transpose_to_lanes(numbers: NDArray[Number], rows: NDArray[Any]) -> None:
    """Transpose the numbers of `LANES` mappings [B, slot, dimension] into rows [slot, dimension, B].

    The numbers of one mapping must be contiguous. `rows` may have further slots, which do not change.
    """
    rows[: numbers.shape[1]] = np.moveaxis(numbers, 0, -1)


def prefetch(row: NDArray[np.generic]) -> None:
    """Prefetch the beginning of a row."""


def _type_of_transpose(numbers: Any, rows: Any) -> types.Type | None:
    arrays = isinstance(numbers, types.Array) and isinstance(rows, types.Array) and numbers.ndim == rows.ndim == 3
    return types.none if arrays and rows.layout == "C" and (numbers.dtype, rows.dtype) in _TRANSPOSED else None


typed(transpose_to_lanes, _type_of_transpose)
typed(prefetch, lambda row: types.none if isinstance(row, types.Array) else None)


@lower_builtin(transpose_to_lanes, types.Array, types.Array)
def _transpose(context: Any, builder: Any, given: Any, values: Any) -> Any:
    numbers, rows = (
        context.make_array(kind)(context, builder, value) for kind, value in zip(given.args, values, strict=True)
    )
    kind, stored = (context.get_data_type(argument.dtype) for argument in given.args)
    size, stored_size = context.get_abi_sizeof(kind), context.get_abi_sizeof(stored)
    slots, dims = (builder.extract_value(numbers.shape, axis) for axis in (1, 2))
    stride, count = builder.extract_value(numbers.strides, 0), builder.mul(slots, dims)

    def constant(number: int) -> Any:
        return ir.Constant(count.type, number)

    def blocks(width: int) -> None:
        """Transpose blocks of `width` numbers; the last block may overlap the one before."""
        last = builder.sub(count, constant(width))
        with _repeated(builder, count, constant(width)) as number:
            at = builder.select(builder.icmp_signed("<", number, last), number, last)
            start = offset(builder, numbers.data, builder.mul(at, constant(size)))
            places = [offset(builder, start, builder.mul(stride, constant(lane))) for lane in range(LANES)]
            loaded = [load(builder, place, ir.VectorType(kind, width), size) for place in places]
            place = offset(builder, rows.data, builder.mul(at, constant(LANES * stored_size)))
            for row, turned in enumerate(_transposed(builder, loaded, width)):
                if turned.type.element != stored:
                    turned = builder.sitofp(turned, ir.VectorType(stored, LANES))
                store(builder, turned, offset(builder, place, row * LANES * stored_size), stored_size)

    with builder.if_else(builder.icmp_signed(">=", count, constant(_BLOCK))) as (long, short):
        with long:
            blocks(_BLOCK)
        with short:
            blocks(1)
    return context.get_dummy_value()


@contextmanager
def _repeated(builder: Any, count: Any, step: Any) -> Iterator[Any]:
    """Repeat the code written inside for the numbers 0, `step`, ... below `count`."""
    before, head = builder.block, builder.append_basic_block()
    body, after = builder.append_basic_block(), builder.append_basic_block()
    builder.branch(head)
    builder.position_at_end(head)
    number = builder.phi(count.type)
    number.add_incoming(ir.Constant(count.type, 0), before)
    builder.cbranch(builder.icmp_signed("<", number, count), body, after)
    builder.position_at_end(body)
    yield number
    number.add_incoming(builder.add(number, step), builder.block)
    builder.branch(head)
    builder.position_at_end(after)


def _transposed(builder: Any, loaded: list[Any], width: int) -> list[Any]:
    """Transpose `LANES` vectors of `width` numbers into `width` vectors of `LANES` numbers."""

    def taken(a: Any, b: Any, places: list[int]) -> Any:
        return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places))

    squares = [loaded[first : first + width] for first in range(0, LANES, width)]
    for square in squares:
        step = 1
        while step < width:  # exchange elements `step` columns apart with those `step` rows apart
            upper = [place + width - step if place & step else place for place in range(width)]
            lower = [place + step for place in upper]
            for row in range(width):
                if not row & step:
                    a, b = square[row], square[row + step]
                    square[row], square[row + step] = taken(a, b, upper), taken(a, b, lower)
            step *= 2
    while len(squares) > 1:
        whole = list(range(2 * squares[0][0].type.count))
        squares = [
            [taken(a, b, whole) for a, b in zip(*pair, strict=True)]
            for pair in zip(squares[::2], squares[1::2], strict=True)
        ]
    return squares[0]


@lower_builtin(prefetch, types.Array)
def _prefetch(context: Any, builder: Any, given: Any, values: Any) -> Any:
    place = builder.bitcast(context.make_array(given.args[0])(context, builder, values[0]).data, POINTER)
    how = [ir.Constant(ir.IntType(32), hint) for hint in (0, 3, 1)]  # read access, high locality, data cache
    call(builder, "llvm.prefetch.p0", ir.VoidType(), place, *how)
    return context.get_dummy_value()
