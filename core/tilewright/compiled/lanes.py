# mypy: disable-error-code="import-untyped, no-untyped-call, no-untyped-def, untyped-decorator, attr-defined"
"""Rows of sixteen numbers, one for each of sixteen mappings that are worked on side by side: one instruction works on several.

Kernels are written as NumPy on such rows: `+ - * / < <= > >= == != & | ^ ~ << >>`, `np.where`, `np.minimum`, `np.maximum`, `np.floor`,
`np.ceil`, `np.any`, and `place[:] = row`, where integers may become fractions. Interpreted, that is what runs. Compiled, a row is a vector
of the machine, which numba does not have: no loop, no array, and nothing that might overlap.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product
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
LANES = 16
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


def every(number: float | bool) -> NDArray[Any]:
    """The same number in all lanes."""
    return np.full(LANES, number)


def integers(row: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole numbers as integers."""
    return row.astype(np.int64)


class _Lanes(types.Type):
    """The type of such a row."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        super().__init__(name=f"Lanes({kind})")


_GIVEN = _Lanes, types.Number, types.Boolean


@register_default(_Lanes)
class _Model(PrimitiveModel):
    def __init__(self, models: Any, kind: _Lanes) -> None:
        super().__init__(models, kind, _vector(kind.kind))


def _vector(kind: types.Type) -> ir.VectorType:
    return ir.VectorType(_KINDS[kind], LANES)


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
    """The kind of a row and of whatever else there is: rows of the same, or a number that is one of that kind."""
    kinds = {each.kind for each in given if isinstance(each, _Lanes)}
    if len(kinds) != 1:
        return None
    kind = kinds.pop()
    allowed = {types.float64: types.Number, types.int64: types.Integer, types.boolean: types.Boolean}[kind]
    return kind if all(isinstance(each, (_Lanes, allowed)) for each in given) else None


def _spread(context: Any, builder: Any, value: Any, kind: Any, wanted: Any) -> Any:
    """A number in every lane; a row as it is."""
    if isinstance(kind, _Lanes):
        return value
    number = context.cast(builder, value, kind, wanted)
    if wanted == types.boolean:
        number = builder.trunc(number, _KINDS[wanted]) if number.type != _KINDS[wanted] else number
    vector, zeros = _vector(wanted), ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)


def _lower(function: Callable[..., object], count: int, make: Callable[..., Any]) -> None:
    """Of `count` arguments of which some are rows; `make` is given them all as vectors, and their kind."""

    def lowered(context: Any, builder: Any, given: Any, values: Any) -> Any:
        kind = _rows_of(*given.args)
        return make(
            builder,
            kind,
            *(_spread(context, builder, value, each, kind) for value, each in zip(values, given.args, strict=True)),
        )

    for each in product(_GIVEN, repeat=count):
        if _Lanes in each:
            lower_builtin(function, *each)(lowered)


def _arithmetic(function: Any, of_floats: str, of_ints: str) -> None:
    names = {types.float64: of_floats} | ({types.int64: of_ints} if of_ints else {})

    def make(builder: Any, kind: Any, a: Any, b: Any) -> Any:
        return getattr(builder, names[kind])(a, b)

    def typer(a: Any, b: Any) -> Any:
        kind = _rows_of(a, b)
        return _Lanes(kind) if kind in names else None

    typed(function, typer)
    _lower(function, 2, make)


def _logic(function: Any, name: str) -> None:
    def typer(a: Any, b: Any) -> Any:
        kind = _rows_of(a, b)
        return _Lanes(kind) if kind in (types.boolean, types.int64) else None

    typed(function, typer)
    _lower(function, 2, lambda builder, _, a, b: getattr(builder, name)(a, b))


def _comparison(function: Any, sign: str) -> None:
    def typer(a: Any, b: Any) -> Any:
        return None if _rows_of(a, b) in (None, types.boolean) else _Lanes(types.boolean)

    typed(function, typer)
    _lower(function, 2, lambda builder, kind, a, b: _compare(builder, kind, sign, a, b))


def _compare(builder: Any, kind: Any, sign: str, a: Any, b: Any) -> Any:
    if kind != types.float64:
        return builder.icmp_signed(sign, a, b)
    return builder.fcmp_unordered(sign, a, b) if sign == "!=" else builder.fcmp_ordered(sign, a, b)


def _extreme(function: Any, sign: str) -> None:
    def make(builder: Any, kind: Any, a: Any, b: Any) -> Any:
        return builder.select(_compare(builder, kind, sign, a, b), a, b)

    typed(function, lambda a, b: _Lanes(kind) if (kind := _rows_of(a, b)) not in (None, types.boolean) else None)
    _lower(function, 2, make)


def _rounding(function: Any, name: str) -> None:
    typed(function, lambda a: a if isinstance(a, _Lanes) and a.kind == types.float64 else None)

    def make(builder: Any, kind: Any, a: Any) -> Any:
        called = ir.FunctionType(a.type, [a.type])
        return builder.call(cgutils.get_or_insert_function(builder.module, called, f"llvm.{name}.v{LANES}f64"), [a])

    _lower(function, 1, make)


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

typed(operator.invert, lambda a: a if isinstance(a, _Lanes) and a.kind == types.boolean else None)
_lower(operator.invert, 1, lambda builder, _, a: builder.not_(a))


def _type_of_where(condition: Any, a: Any, b: Any) -> Any:
    if not (isinstance(condition, _Lanes) and condition.kind == types.boolean):
        return None
    kind = _rows_of(a, b)
    if kind is None and a == b and a in _KINDS:  # two numbers
        kind = a
    return None if kind is None else _Lanes(kind)


typed(np.where, _type_of_where)
for _pair in product(_GIVEN, repeat=2):

    @lower_builtin(np.where, _Lanes, *_pair)
    def _where(context: Any, builder: Any, given: Any, values: Any) -> Any:
        kind, kinds = given.return_type.kind, given.args[1:]
        a, b = (_spread(context, builder, value, each, kind) for value, each in zip(values[1:], kinds, strict=True))
        return builder.select(values[0], a, b)


typed(np.any, lambda a: types.boolean if isinstance(a, _Lanes) and a.kind == types.boolean else None)


@lower_builtin(np.any, _Lanes)
def _any(context: Any, builder: Any, given: Any, values: Any) -> Any:
    bits = builder.bitcast(values[0], ir.IntType(LANES))
    return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))


def _type_of_lanes(row: Any) -> Any:
    if not isinstance(row, types.Array) or row.ndim != 1 or row.layout != "C":
        return None
    kind = types.int64 if row.dtype == types.uint8 else row.dtype
    return _Lanes(kind) if kind in _KINDS else None


typed(lanes, _type_of_lanes)


@lower_builtin(lanes, types.Array)
def _load(context: Any, builder: Any, given: Any, values: Any) -> Any:
    (kind,) = given.args
    array = context.make_array(kind)(context, builder, values[0])
    number = array.data.type.pointee
    row = builder.load(builder.bitcast(array.data, ir.VectorType(number, LANES).as_pointer()))
    row.align = context.get_abi_sizeof(number)
    if kind.dtype == types.boolean:
        return builder.trunc(row, _vector(kind.dtype))
    return builder.zext(row, _vector(types.int64)) if kind.dtype == types.uint8 else row


typed(integers, lambda row: _Lanes(types.int64) if isinstance(row, _Lanes) and row.kind == types.float64 else None)


@lower_builtin(integers, _Lanes)
def _integers(context: Any, builder: Any, given: Any, values: Any) -> Any:
    return builder.fptosi(values[0], _vector(types.int64))


typed(every, lambda number: _Lanes(number) if number in _KINDS else None)


@lower_builtin(every, types.Number)
@lower_builtin(every, types.Boolean)
def _every(context: Any, builder: Any, given: Any, values: Any) -> Any:
    return _spread(context, builder, values[0], given.args[0], given.args[0])


def _type_of_setitem(row: Any, places: Any, value: Any) -> Any:
    if not (_row(row) and isinstance(places, types.SliceType) and isinstance(value, _Lanes)):
        return None
    return types.none if (value.kind, row.dtype) in {(row.dtype, row.dtype), (types.int64, types.float64)} else None


typed(operator.setitem, _type_of_setitem)


@lower_builtin(operator.setitem, types.Array, types.SliceType, _Lanes)
def _store(context: Any, builder: Any, given: Any, values: Any) -> Any:
    kind, _, value = given.args
    start, row = context.make_array(kind)(context, builder, values[0]).data, values[2]
    stored = ir.VectorType(start.type.pointee, LANES)
    if kind.dtype == types.boolean:
        row = builder.zext(row, stored)
    elif kind.dtype != value.kind:
        row = builder.sitofp(row, stored)
    place = builder.store(row, builder.bitcast(start, stored.as_pointer()))
    place.align = context.get_abi_sizeof(start.type.pointee)
    return context.get_dummy_value()
