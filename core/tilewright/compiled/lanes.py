# mypy: disable-error-code="import-untyped, no-untyped-call, no-untyped-def, untyped-decorator, attr-defined"
"""Rows of numbers that are worked on side by side: one instruction works on several. There are rows of sixteen, one for each of
sixteen mappings, and of eight, one for each of what a mapping has few of.

Kernels are written as NumPy on such rows: `+ - * / // < <= > >= == != & | ^ ~ << >>`, `np.where`, `np.minimum`, `np.maximum`,
`np.floor`, `np.ceil`, `np.any`, and `place[:] = row`, where integers may become fractions. Interpreted, that is what runs. Compiled, a
row is a vector of the machine, which numba does not have: no loop, no array, and nothing that might overlap.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel.models import PrimitiveModel
from numba.core.datamodel.registry import register_default
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.generic)
LANES, FEW = 16, 8
_KINDS: dict[Any, ir.Type] = {
    types.float64: ir.DoubleType(),
    types.int64: ir.IntType(64),
    types.boolean: ir.IntType(1),
}
_COMPARED = {
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.eq: "==",
    operator.ne: "!=",
}


def lanes(row: NDArray[Number]) -> NDArray[Number]:
    """What stands in a row of `LANES` numbers; it does not change with the row. Bytes become integers of 64 bits."""
    return row.astype(np.int64) if row.dtype == np.uint8 else row.copy()


def eight(row: NDArray[Number]) -> NDArray[Number]:
    """The same of a row of `FEW` numbers; `//` is of integers below 2**53."""
    return lanes(row)


def few(row: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same of a row of at most `FEW` integers; behind them come ones."""
    return np.append(row, np.ones(FEW - len(row), row.dtype))


def every(number: float | bool) -> NDArray[Any]:
    """The same number in all lanes."""
    return np.full(LANES, number)


def integers(row: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole numbers as integers."""
    return row.astype(np.int64)


def floats(row: NDArray[Any]) -> NDArray[np.float64]:
    """Integers as fractions."""
    return row.astype(np.float64)


def product(row: NDArray[Any]) -> Any:
    """Of all numbers in a row, a number."""
    return row.prod()


def among(bits: int) -> NDArray[np.bool_]:
    """Which of the lowest `FEW` bits of a number are set."""
    return np.array([bits >> place & 1 for place in range(FEW)], dtype=np.bool_)


def bits(row: NDArray[np.bool_]) -> int:
    """The number of which these are the bits, lowest first."""
    return sum(1 << place for place, each in enumerate(row.tolist()) if each)


class _Lanes(types.Type):
    """The type of such a row."""

    def __init__(self, kind: Any, count: int = LANES) -> None:
        self.kind, self.count = kind, count
        super().__init__(name=f"Lanes({kind}, {count})")

    def of(self, kind: Any) -> _Lanes:
        """A row as long, of another kind."""
        return _Lanes(kind, self.count)

    @property
    def vector(self) -> ir.VectorType:
        return ir.VectorType(_KINDS[self.kind], self.count)


_GIVEN = _Lanes, types.Number, types.Boolean


@register_default(_Lanes)
class _Model(PrimitiveModel):
    def __init__(self, models: Any, kind: _Lanes) -> None:
        super().__init__(models, kind, kind.vector)


def _row(kind: types.Type) -> bool:
    """An array to which rows are copied."""
    return isinstance(kind, types.Array) and kind.ndim == 1 and kind.layout == "C" and kind.dtype in _KINDS


def typed(function: Callable[..., object], typer: Callable[..., types.Type | None]) -> None:
    """Say of what type the result is; None: not of rows."""

    class _Template(AbstractTemplate):
        key = function

        def generic(self, given: tuple[Any, ...], _: object) -> Any:
            result = typer(*given)
            return None if result is None else signature(result, *given)

    infer_global(function, types.Function(_Template))


def _rows_of(*given: Any) -> Any:
    """The type of a row and of whatever else there is: rows of the same, or a number that is one of that kind."""
    rows = {each for each in given if isinstance(each, _Lanes)}
    if len(rows) != 1:
        return None
    row = rows.pop()
    allowed = {types.float64: types.Number, types.int64: types.Integer, types.boolean: types.Boolean}[row.kind]
    return row if all(isinstance(each, (_Lanes, allowed)) for each in given) else None


def _rows_of_numbers(*given: Any) -> Any:
    """The same where they are not of truths."""
    row = _rows_of(*given)
    return None if row is None or row.kind == types.boolean else row


def _spread(context: Any, builder: Any, value: Any, kind: Any, wanted: Any) -> Any:
    """A number in every lane; a row as it is."""
    if isinstance(kind, _Lanes):
        return value
    number = context.cast(builder, value, kind, wanted.kind)
    if wanted.kind == types.boolean:
        number = builder.trunc(number, _KINDS[wanted.kind]) if number.type != _KINDS[wanted.kind] else number
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), wanted.count), [0] * wanted.count)
    one = builder.insert_element(ir.Constant(wanted.vector, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, ir.Constant(wanted.vector, ir.Undefined), zeros)


def _lower(function: Callable[..., object], count: int, make: Callable[..., Any]) -> None:
    """Of `count` arguments of which some are rows; `make` is given them all as vectors, and their type."""

    def lowered(context: Any, builder: Any, given: Any, values: Any) -> Any:
        row = _rows_of(*given.args)
        return make(
            builder,
            row,
            *(_spread(context, builder, value, each, row) for value, each in zip(values, given.args, strict=True)),
        )

    for each in itertools.product(_GIVEN, repeat=count):
        if _Lanes in each:
            lower_builtin(function, *each)(lowered)


def _arithmetic(function: Any, of_floats: str, of_ints: str) -> None:
    names = {types.float64: of_floats} | ({types.int64: of_ints} if of_ints else {})

    def make(builder: Any, row: Any, a: Any, b: Any) -> Any:
        return getattr(builder, names[row.kind])(a, b)

    def typer(a: Any, b: Any) -> Any:
        row = _rows_of(a, b)
        return row if row is not None and row.kind in names else None

    typed(function, typer)
    _lower(function, 2, make)


def _logic(function: Any, name: str) -> None:
    def typer(a: Any, b: Any) -> Any:
        row = _rows_of(a, b)
        return row if row is not None and row.kind in (types.boolean, types.int64) else None

    typed(function, typer)
    _lower(function, 2, lambda builder, _, a, b: getattr(builder, name)(a, b))


def _comparison(function: Any, sign: str) -> None:
    def typer(a: Any, b: Any) -> Any:
        row = _rows_of_numbers(a, b)
        return None if row is None else row.of(types.boolean)

    typed(function, typer)
    _lower(function, 2, lambda builder, row, a, b: _compare(builder, row, sign, a, b))


def _compare(builder: Any, row: Any, sign: str, a: Any, b: Any) -> Any:
    if row.kind != types.float64:
        return builder.icmp_signed(sign, a, b)
    return builder.fcmp_unordered(sign, a, b) if sign == "!=" else builder.fcmp_ordered(sign, a, b)


def _extreme(function: Any, sign: str) -> None:
    def make(builder: Any, row: Any, a: Any, b: Any) -> Any:
        return builder.select(_compare(builder, row, sign, a, b), a, b)

    typed(function, _rows_of_numbers)
    _lower(function, 2, make)


def _round(builder: Any, name: str, a: Any) -> Any:
    called = ir.FunctionType(a.type, [a.type])
    return builder.call(cgutils.get_or_insert_function(builder.module, called, f"llvm.{name}.v{a.type.count}f64"), [a])


def _rounding(function: Any, name: str) -> None:
    typed(function, lambda a: a if isinstance(a, _Lanes) and a.kind == types.float64 else None)
    _lower(function, 1, lambda builder, _, a: _round(builder, name, a))


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
    """As fractions, exact below 2**53; integers are divided one at a time by machines."""
    a, b = (builder.sitofp(each, row.of(types.float64).vector) for each in (a, b))
    return builder.fptosi(_round(builder, "floor", builder.fdiv(a, b)), row.vector)


def _type_of_quotient(a: Any, b: Any) -> Any:
    row = _rows_of(a, b)
    return row if row is not None and row.kind == types.int64 else None


typed(operator.floordiv, _type_of_quotient)
_lower(operator.floordiv, 2, _whole_quotient)
typed(operator.invert, lambda a: a if isinstance(a, _Lanes) and a.kind == types.boolean else None)
_lower(operator.invert, 1, lambda builder, _, a: builder.not_(a))


def _type_of_where(condition: Any, a: Any, b: Any) -> Any:
    if not (isinstance(condition, _Lanes) and condition.kind == types.boolean):
        return None
    row = _rows_of(a, b)
    if row is None and a == b and a in _KINDS:  # two numbers
        row = condition.of(a)
    return row if row is not None and row.count == condition.count else None


typed(np.where, _type_of_where)
for _pair in itertools.product(_GIVEN, repeat=2):

    @lower_builtin(np.where, _Lanes, *_pair)
    def _where(context: Any, builder: Any, given: Any, values: Any) -> Any:
        row, kinds = given.return_type, given.args[1:]
        a, b = (_spread(context, builder, value, each, row) for value, each in zip(values[1:], kinds, strict=True))
        return builder.select(values[0], a, b)


typed(np.any, lambda a: types.boolean if isinstance(a, _Lanes) and a.kind == types.boolean else None)


@lower_builtin(np.any, _Lanes)
def _any(context: Any, builder: Any, given: Any, values: Any) -> Any:
    found = builder.bitcast(values[0], ir.IntType(given.args[0].count))
    return builder.icmp_unsigned("!=", found, ir.Constant(found.type, 0))


def _type_of_lanes(count: int) -> Callable[[Any], Any]:
    def typer(row: Any) -> Any:
        if not isinstance(row, types.Array) or row.ndim != 1 or row.layout != "C":
            return None
        kind = types.int64 if row.dtype == types.uint8 else row.dtype
        return _Lanes(kind, count) if kind in _KINDS else None

    return typer


typed(lanes, _type_of_lanes(LANES))
typed(eight, _type_of_lanes(FEW))


@lower_builtin(eight, types.Array)
@lower_builtin(lanes, types.Array)
def _load(context: Any, builder: Any, given: Any, values: Any) -> Any:
    (kind,), loaded = given.args, given.return_type
    array = context.make_array(kind)(context, builder, values[0])
    number = array.data.type.pointee
    row = builder.load(builder.bitcast(array.data, ir.VectorType(number, loaded.count).as_pointer()))
    row.align = context.get_abi_sizeof(number)
    if kind.dtype == types.boolean:
        return builder.trunc(row, loaded.vector)
    return builder.zext(row, loaded.vector) if kind.dtype == types.uint8 else row


typed(few, lambda row: _type_of_lanes(FEW)(row) if getattr(row, "dtype", None) == types.int64 else None)


@lower_builtin(few, types.Array)
def _load_few(context: Any, builder: Any, given: Any, values: Any) -> Any:
    (kind,), loaded = given.args, given.return_type
    array = context.make_array(kind)(context, builder, values[0])
    number, truths = ir.IntType(64), ir.VectorType(ir.IntType(1), FEW)
    (length,) = cgutils.unpack_tuple(builder, array.shape, 1)
    places = ir.Constant(ir.VectorType(number, FEW), list(range(FEW)))
    there = builder.icmp_signed("<", places, _spread(context, builder, length, types.int64, loaded))
    place = builder.bitcast(array.data, loaded.vector.as_pointer())
    called = ir.FunctionType(loaded.vector, [place.type, ir.IntType(32), truths, loaded.vector])
    name = f"llvm.masked.load.v{FEW}i64.p0v{FEW}i64"
    ones = ir.Constant(loaded.vector, [1] * FEW)
    return builder.call(
        cgutils.get_or_insert_function(builder.module, called, name),
        [place, ir.Constant(ir.IntType(32), context.get_abi_sizeof(number)), there, ones],
    )


def _converted(kind: Any, wanted: Any) -> Callable[[Any], Any]:
    return lambda row: row.of(wanted) if isinstance(row, _Lanes) and row.kind == kind else None


typed(integers, _converted(types.float64, types.int64))
typed(floats, _converted(types.int64, types.float64))


@lower_builtin(integers, _Lanes)
def _integers(context: Any, builder: Any, given: Any, values: Any) -> Any:
    return builder.fptosi(values[0], given.return_type.vector)


@lower_builtin(floats, _Lanes)
def _floats(context: Any, builder: Any, given: Any, values: Any) -> Any:
    return builder.sitofp(values[0], given.return_type.vector)


typed(product, lambda row: row.kind if _rows_of_numbers(row) else None)


@lower_builtin(product, _Lanes)
def _product(context: Any, builder: Any, given: Any, values: Any) -> Any:
    (kind,), (row,) = given.args, values
    half = kind.count
    while half > 1:  # the one half times the other, again and again
        half //= 2
        places = [
            ir.Constant(ir.VectorType(ir.IntType(32), half), list(range(start, start + half))) for start in (0, half)
        ]
        parts = [builder.shuffle_vector(row, ir.Constant(row.type, ir.Undefined), each) for each in places]
        row = (builder.fmul if kind.kind == types.float64 else builder.mul)(*parts)
    return builder.extract_element(row, ir.Constant(ir.IntType(32), 0))


typed(among, lambda number: _Lanes(types.boolean, FEW) if isinstance(number, types.Integer) else None)
typed(bits, lambda row: types.int64 if row == _Lanes(types.boolean, FEW) else None)


@lower_builtin(among, types.Integer)
def _among(context: Any, builder: Any, given: Any, values: Any) -> Any:
    return builder.bitcast(builder.trunc(values[0], ir.IntType(FEW)), given.return_type.vector)


@lower_builtin(bits, _Lanes)
def _bits(context: Any, builder: Any, given: Any, values: Any) -> Any:
    return builder.zext(builder.bitcast(values[0], ir.IntType(FEW)), _KINDS[types.int64])


typed(every, lambda number: _Lanes(number) if number in _KINDS else None)


@lower_builtin(every, types.Number)
@lower_builtin(every, types.Boolean)
def _every(context: Any, builder: Any, given: Any, values: Any) -> Any:
    return _spread(context, builder, values[0], given.args[0], given.return_type)


def _type_of_setitem(row: Any, places: Any, value: Any) -> Any:
    if not (_row(row) and isinstance(places, types.SliceType) and isinstance(value, _Lanes)):
        return None
    return types.none if (value.kind, row.dtype) in {(row.dtype, row.dtype), (types.int64, types.float64)} else None


typed(operator.setitem, _type_of_setitem)


@lower_builtin(operator.setitem, types.Array, types.SliceType, _Lanes)
def _store(context: Any, builder: Any, given: Any, values: Any) -> Any:
    kind, _, value = given.args
    start, row = context.make_array(kind)(context, builder, values[0]).data, values[2]
    stored = ir.VectorType(start.type.pointee, value.count)
    if kind.dtype == types.boolean:
        row = builder.zext(row, stored)
    elif kind.dtype != value.kind:
        row = builder.sitofp(row, stored)
    place = builder.store(row, builder.bitcast(start, stored.as_pointer()))
    place.align = context.get_abi_sizeof(start.type.pointee)
    return context.get_dummy_value()
