# mypy: disable-error-code="import-untyped, no-untyped-call, no-untyped-def, untyped-decorator, attr-defined"
"""The type that compiled kernels have for rows of numbers (`lanes`), and how what is done with rows gets a type and code."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.datamodel.models import PrimitiveModel
from numba.core.datamodel.registry import register_default
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

LANES, FEW = 16, 8
"""How long they are."""
KINDS: dict[Any, ir.Type] = {
    types.float64: ir.DoubleType(),
    types.int64: ir.IntType(64),
    types.boolean: ir.IntType(1),
}


class Row(types.Type):
    """The type of such a row."""

    def __init__(self, kind: Any, count: int = LANES) -> None:
        self.kind, self.count = kind, count
        super().__init__(name=f"Row({kind}, {count})")

    def of(self, kind: Any) -> Row:
        """A row as long, of another kind."""
        return Row(kind, self.count)

    @property
    def vector(self) -> ir.VectorType:
        return ir.VectorType(KINDS[self.kind], self.count)


GIVEN = Row, types.Number, types.Boolean


@register_default(Row)
class _Model(PrimitiveModel):
    def __init__(self, models: Any, kind: Row) -> None:
        super().__init__(models, kind, kind.vector)


def typed(function: Callable[..., object], typer: Callable[..., types.Type | None]) -> None:
    """Say of what type the result is; None: not of rows."""

    class _Template(AbstractTemplate):
        key = function

        def generic(self, given: tuple[Any, ...], _: object) -> Any:
            result = typer(*given)
            return None if result is None else signature(result, *given)

    infer_global(function, types.Function(_Template))


def rows_of(*given: Any) -> Any:
    """The type of a row and of whatever else there is: rows of the same, or a number that is one of that kind."""
    rows = {each for each in given if isinstance(each, Row)}
    if len(rows) != 1:
        return None
    row = rows.pop()
    allowed = {types.float64: types.Number, types.int64: types.Integer, types.boolean: types.Boolean}[row.kind]
    return row if all(isinstance(each, (Row, allowed)) for each in given) else None


def rows_of_numbers(*given: Any) -> Any:
    """The same where they are not of truths."""
    row = rows_of(*given)
    return None if row is None or row.kind == types.boolean else row


def spread(context: Any, builder: Any, value: Any, kind: Any, wanted: Any) -> Any:
    """A number in every lane; a row as it is."""
    if isinstance(kind, Row):
        return value
    number = context.cast(builder, value, kind, wanted.kind)
    if wanted.kind == types.boolean:
        number = builder.trunc(number, KINDS[wanted.kind]) if number.type != KINDS[wanted.kind] else number
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), wanted.count), [0] * wanted.count)
    one = builder.insert_element(ir.Constant(wanted.vector, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, ir.Constant(wanted.vector, ir.Undefined), zeros)


def lower(function: Callable[..., object], count: int, make: Callable[..., Any]) -> None:
    """Of `count` arguments of which some are rows; `make` is given them all as vectors, and their type."""

    def lowered(context: Any, builder: Any, given: Any, values: Any) -> Any:
        row = rows_of(*given.args)
        return make(
            builder,
            row,
            *(spread(context, builder, value, each, row) for value, each in zip(values, given.args, strict=True)),
        )

    for each in itertools.product(GIVEN, repeat=count):
        if Row in each:
            lower_builtin(function, *each)(lowered)
