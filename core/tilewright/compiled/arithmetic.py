# mypy: disable-error-code="import-untyped, no-untyped-call, no-untyped-def, untyped-decorator, attr-defined"
"""Arithmetic of lane vectors (see `lanes`)."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import lower_builtin
from numpy.typing import NDArray

from tilewright.compiled.lane_vectors import GIVEN, KINDS, LaneVector, broadcast, lower, rows_of, rows_of_numbers, typed
from tilewright.compiled.pointers import call

_COMPARED = {
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.eq: "==",
    operator.ne: "!=",
}


def product(row: NDArray[Any]) -> Any:
    """Return the product of all numbers in a row."""
    return row.prod()


def total(row: NDArray[Any]) -> Any:
    """Return the sum of all numbers in a row."""
    return row.sum()


def _arithmetic(function: Any, of_floats: str, of_ints: str) -> None:
    names = {types.float64: of_floats} | ({types.int64: of_ints} if of_ints else {})

    def make(builder: Any, row: Any, a: Any, b: Any) -> Any:
        return getattr(builder, names[row.kind])(a, b)

    def typer(a: Any, b: Any) -> Any:
        row = rows_of(a, b)
        return row if row is not None and row.kind in names else None

    typed(function, typer)
    lower(function, 2, make)


def _logic(function: Any, name: str) -> None:
    def typer(a: Any, b: Any) -> Any:
        row = rows_of(a, b)
        return row if row is not None and row.kind in (types.boolean, types.int64) else None

    typed(function, typer)
    lower(function, 2, lambda builder, _, a, b: getattr(builder, name)(a, b))


def _comparison(function: Any, sign: str) -> None:
    def typer(a: Any, b: Any) -> Any:
        row = rows_of_numbers(a, b)
        return None if row is None else row.of(types.boolean)

    typed(function, typer)
    lower(function, 2, lambda builder, row, a, b: _compare(builder, row, sign, a, b))


def _compare(builder: Any, row: Any, sign: str, a: Any, b: Any) -> Any:
    if row.kind != types.float64:
        return builder.icmp_signed(sign, a, b)
    return builder.fcmp_unordered(sign, a, b) if sign == "!=" else builder.fcmp_ordered(sign, a, b)


def _extreme(function: Any, sign: str) -> None:
    def make(builder: Any, row: Any, a: Any, b: Any) -> Any:
        return builder.select(_compare(builder, row, sign, a, b), a, b)

    typed(function, lambda a, b: rows_of_numbers(a, b))
    lower(function, 2, make)


def _round(builder: Any, name: str, a: Any) -> Any:
    return call(builder, f"llvm.{name}.v{a.type.count}f64", a.type, a)


def _rounding(function: Any, name: str) -> None:
    typed(function, lambda a: a if isinstance(a, LaneVector) and a.kind == types.float64 else None)
    lower(function, 1, lambda builder, _, a: _round(builder, name, a))


for _function, _of_floats, _of_ints in (
    (operator.add, "fadd", "add"),
    (operator.sub, "fsub", "sub"),
    (operator.mul, "fmul", "mul"),
    (operator.truediv, "fdiv", ""),
):
    _arithmetic(_function, _of_floats, _of_ints)
for _function, _of_bits in (
    (operator.and_, "and_"),
    (operator.or_, "or_"),
    (operator.lshift, "shl"),
    (operator.rshift, "ashr"),
    (operator.xor, "xor"),
):
    _logic(_function, _of_bits)
for _function, _sign in _COMPARED.items():
    _comparison(_function, _sign)
_extreme(np.minimum, "<")
_extreme(np.maximum, ">")
_rounding(np.floor, "floor")
_rounding(np.ceil, "ceil")


def _whole_quotient(builder: Any, row: Any, a: Any, b: Any) -> Any:
    """Return the floor of the quotient of integer vectors.

    The division is done in floating point, which is exact below 2**53. Processors divide integers one at a time.
    """
    a, b = (builder.sitofp(operand, row.of(types.float64).vector) for operand in (a, b))
    return builder.fptosi(_round(builder, "floor", builder.fdiv(a, b)), row.vector)


def _type_of_quotient(a: Any, b: Any) -> Any:
    row = rows_of(a, b)
    return row if row is not None and row.kind == types.int64 else None


typed(operator.floordiv, _type_of_quotient)
lower(operator.floordiv, 2, _whole_quotient)
typed(operator.invert, lambda a: a if isinstance(a, LaneVector) and a.kind == types.boolean else None)
lower(operator.invert, 1, lambda builder, _, a: builder.not_(a))


def _type_of_where(condition: Any, a: Any, b: Any) -> Any:
    if not (isinstance(condition, LaneVector) and condition.kind == types.boolean):
        return None
    row = rows_of(a, b)
    if row is None and a == b and a in KINDS:  # both values are scalars
        row = condition.of(a)
    return row if row is not None and row.count == condition.count else None


typed(np.where, _type_of_where)
for _pair in itertools.product(GIVEN, repeat=2):

    @lower_builtin(np.where, LaneVector, *_pair)
    def _where(context: Any, builder: Any, given: Any, values: Any) -> Any:
        row, kinds = given.return_type, given.args[1:]
        a, b = (broadcast(context, builder, value, kind, row) for value, kind in zip(values[1:], kinds, strict=True))
        return builder.select(values[0], a, b)


typed(np.any, lambda a: types.boolean if isinstance(a, LaneVector) and a.kind == types.boolean else None)


@lower_builtin(np.any, LaneVector)
def _any(context: Any, builder: Any, given: Any, values: Any) -> Any:
    bits = builder.bitcast(values[0], ir.IntType(given.args[0].count))
    return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))


def _reduction(function: Callable[..., object], of_floats: str, of_ints: str) -> None:
    typed(function, lambda row: row.kind if rows_of_numbers(row) else None)

    @lower_builtin(function, LaneVector)
    def lowered(context: Any, builder: Any, given: Any, values: Any) -> Any:
        (kind,), (row,) = given.args, values
        combine, half = getattr(builder, of_floats if kind.kind == types.float64 else of_ints), kind.count
        while half > 1:  # halve the vector until one element is left
            half //= 2
            halves = (list(range(start, start + half)) for start in (0, half))
            places = [ir.Constant(ir.VectorType(ir.IntType(32), half), lane) for lane in halves]
            row = combine(
                *(builder.shuffle_vector(row, ir.Constant(row.type, ir.Undefined), place) for place in places)
            )
        return builder.extract_element(row, ir.Constant(ir.IntType(32), 0))


_reduction(product, "fmul", "mul")
_reduction(total, "fadd", "add")
