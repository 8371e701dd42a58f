# mypy: disable-error-code="import-untyped, no-untyped-call, no-untyped-def, untyped-decorator, attr-defined"
"""Lane vectors: rows of numbers that one SIMD instruction processes together.

Rows have 16 lanes, one per mapping, or 8 lanes, one per item of a single mapping.

Kernels use NumPy notation on such rows. The operators are `+ - * / // < <= > >= == != & | ^ ~ << >>`. The functions are
`np.where`, `np.minimum`, `np.maximum`, `np.floor`, `np.ceil` and `np.any`. `row[index]` reads an element. `array[:] =
row` stores a row, and may convert integers to floats. Interpreted kernels run this notation as NumPy. In compiled
kernels a row is an LLVM vector, a type that numba lacks: no loops, no temporary arrays, and no aliasing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import lower_builtin
from numpy.typing import NDArray

from tilewright.compiled.lane_vectors import FEW, KINDS, LANES, LaneVector, broadcast, rows_of_numbers, typed
from tilewright.compiled.pointers import call, load, store

Number = TypeVar("Number", bound=np.generic)


def lanes(row: NDArray[Number]) -> NDArray[Number]:
    """Return a copy of a row of `LANES` numbers; bytes become 64-bit integers."""
    return row.astype(np.int64) if row.dtype == np.uint8 else row.copy()


def load8(row: NDArray[Number]) -> NDArray[Number]:
    """Return a copy of a row of `FEW` numbers. `//` of such rows is exact for integers below 2**53."""
    return lanes(row)


def load_padded8(row: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a copy of at most `FEW` integers, padded with ones."""
    return np.append(row, np.ones(FEW - len(row), row.dtype))


def splat16(number: float | bool) -> NDArray[Any]:
    """Return a row with the same number in all `LANES` lanes."""
    return np.full(LANES, number)


def splat8(number: int) -> NDArray[Any]:
    """Return a row with the same integer in all `FEW` lanes; unlimited integers if interpreted."""
    return np.full(FEW, number, object)


def integers(row: NDArray[np.float64]) -> NDArray[np.int64]:
    """Convert whole numbers to integers."""
    return row.astype(np.int64)


def floats(row: NDArray[Any]) -> NDArray[np.float64]:
    """Convert integers to floats."""
    return row.astype(np.float64)


def unpack_bits(bits: int) -> NDArray[np.bool_]:
    """Return the lowest `FEW` bits of a number as booleans, lowest first."""
    return np.array([bits >> place & 1 for place in range(FEW)], dtype=np.bool_)


def pack_bits(row: NDArray[np.bool_]) -> int:
    """Return the number with these bits, lowest first."""
    return sum(1 << place for place, bit in enumerate(row.tolist()) if bit)


def _row(kind: types.Type) -> bool:
    """Return whether the type is an array that rows can be stored to."""
    return isinstance(kind, types.Array) and kind.ndim == 1 and kind.layout == "C" and kind.dtype in KINDS


def _type_of_lanes(count: int) -> Callable[[Any], Any]:
    def typer(row: Any) -> Any:
        if not isinstance(row, types.Array) or row.ndim != 1 or row.layout != "C":
            return None
        kind = types.int64 if row.dtype == types.uint8 else row.dtype
        return LaneVector(kind, count) if kind in KINDS else None

    return typer


typed(lanes, _type_of_lanes(LANES))
typed(load8, _type_of_lanes(FEW))


@lower_builtin(load8, types.Array)
@lower_builtin(lanes, types.Array)
def _load(context: Any, builder: Any, given: Any, values: Any) -> Any:
    (kind,), loaded = given.args, given.return_type
    array = context.make_array(kind)(context, builder, values[0])
    number = context.get_data_type(kind.dtype)
    row = load(builder, array.data, ir.VectorType(number, loaded.count), context.get_abi_sizeof(number))
    if kind.dtype == types.boolean:
        return builder.trunc(row, loaded.vector)
    return builder.zext(row, loaded.vector) if kind.dtype == types.uint8 else row


typed(load_padded8, lambda row: _type_of_lanes(FEW)(row) if getattr(row, "dtype", None) == types.int64 else None)


@lower_builtin(load_padded8, types.Array)
def _load_padded(context: Any, builder: Any, given: Any, values: Any) -> Any:
    (kind,), loaded = given.args, given.return_type
    array = context.make_array(kind)(context, builder, values[0])
    places = ir.Constant(loaded.vector, list(range(FEW)))
    length = broadcast(context, builder, builder.extract_value(array.shape, 0), types.int64, loaded)
    there = builder.icmp_signed("<", places, length)
    align = ir.Constant(ir.IntType(32), context.get_abi_sizeof(KINDS[types.int64]))
    place = builder.bitcast(array.data, loaded.vector.as_pointer())
    ones = ir.Constant(loaded.vector, [1] * FEW)
    return call(builder, f"llvm.masked.load.v{FEW}i64.p0", loaded.vector, place, align, there, ones)


def _converted(kind: Any, wanted: Any) -> Callable[[Any], Any]:
    return lambda row: row.of(wanted) if isinstance(row, LaneVector) and row.kind == kind else None


typed(integers, _converted(types.float64, types.int64))
typed(floats, _converted(types.int64, types.float64))


@lower_builtin(integers, LaneVector)
def _integers(context: Any, builder: Any, given: Any, values: Any) -> Any:
    return builder.fptosi(values[0], given.return_type.vector)


@lower_builtin(floats, LaneVector)
def _floats(context: Any, builder: Any, given: Any, values: Any) -> Any:
    return builder.sitofp(values[0], given.return_type.vector)


typed(
    operator.getitem,
    lambda row, place: row.kind if rows_of_numbers(row) and isinstance(place, types.Integer) else None,
)


@lower_builtin(operator.getitem, LaneVector, types.Integer)
def _one(context: Any, builder: Any, given: Any, values: Any) -> Any:
    return builder.extract_element(*values)


typed(unpack_bits, lambda number: LaneVector(types.boolean, FEW) if isinstance(number, types.Integer) else None)
typed(pack_bits, lambda row: types.int64 if row == LaneVector(types.boolean, FEW) else None)


@lower_builtin(unpack_bits, types.Integer)
def _unpack(context: Any, builder: Any, given: Any, values: Any) -> Any:
    return builder.bitcast(builder.trunc(values[0], ir.IntType(FEW)), given.return_type.vector)


@lower_builtin(pack_bits, LaneVector)
def _pack(context: Any, builder: Any, given: Any, values: Any) -> Any:
    return builder.zext(builder.bitcast(values[0], ir.IntType(FEW)), KINDS[types.int64])


typed(splat16, lambda number: LaneVector(number) if number in KINDS else None)
typed(splat8, lambda number: LaneVector(types.int64, FEW) if isinstance(number, types.Integer) else None)


@lower_builtin(splat8, types.Integer)
@lower_builtin(splat16, types.Number)
@lower_builtin(splat16, types.Boolean)
def _splat(context: Any, builder: Any, given: Any, values: Any) -> Any:
    return broadcast(context, builder, values[0], given.args[0], given.return_type)


def _type_of_setitem(row: Any, places: Any, value: Any) -> Any:
    if not (_row(row) and isinstance(places, types.SliceType) and isinstance(value, LaneVector)):
        return None
    return types.none if (value.kind, row.dtype) in {(row.dtype, row.dtype), (types.int64, types.float64)} else None


typed(operator.setitem, _type_of_setitem)


@lower_builtin(operator.setitem, types.Array, types.SliceType, LaneVector)
def _store(context: Any, builder: Any, given: Any, values: Any) -> Any:
    kind, _, value = given.args
    place, row = context.make_array(kind)(context, builder, values[0]).data, values[2]
    number = context.get_data_type(kind.dtype)
    if kind.dtype == types.boolean:
        row = builder.zext(row, ir.VectorType(number, value.count))
    elif kind.dtype != value.kind:
        row = builder.sitofp(row, ir.VectorType(number, value.count))
    store(builder, row, place, context.get_abi_sizeof(number))
    return context.get_dummy_value()
