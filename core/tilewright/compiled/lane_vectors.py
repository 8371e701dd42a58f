# mypy: disable-error-code="import-untyped, no-untyped-call, no-untyped-def, untyped-decorator, attr-defined"
"""Numba type of lane vectors (see `lanes`), and helpers that register operations for it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, models, register_model, type_callable

LANES, FEW = 16, 8
"""Lengths of lane vectors: one lane per mapping, and a shorter row for the items of one mapping."""
KINDS: dict[Any, ir.Type] = {
    types.float64: ir.DoubleType(),
    types.int64: ir.IntType(64),
    types.boolean: ir.IntType(1),
}


class LaneVector(types.Type):
    """Numba type of a lane vector with `count` elements of type `kind`."""

    def __init__(self, kind: Any, count: int = LANES) -> None:
        self.kind, self.count = kind, count
        super().__init__(name=f"LaneVector({kind}, {count})")

    def of(self, kind: Any) -> LaneVector:
        """Return the type of a row with the same length and another element type."""
        return LaneVector(kind, self.count)

    @property
    def vector(self) -> ir.VectorType:
        return ir.VectorType(KINDS[self.kind], self.count)


GIVEN = LaneVector, types.Number, types.Boolean


@register_model(LaneVector)
class _Model(models.PrimitiveModel):
    def __init__(self, models: Any, kind: LaneVector) -> None:
        super().__init__(models, kind, kind.vector)


def typed(function: Callable[..., object], typer: Callable[..., types.Type | None]) -> None:
    """Register a typer for `function`; it returns the result type, or None for arguments other than rows."""

    type_callable(function)(lambda context: typer)


def rows_of(*given: Any) -> Any:
    """Return the row type that rows and scalars combine to, or None if their types do not match."""
    rows = {vector for vector in given if isinstance(vector, LaneVector)}
    if len(rows) != 1:
        return None
    row = rows.pop()
    allowed = {types.float64: types.Number, types.int64: types.Integer, types.boolean: types.Boolean}[row.kind]
    return row if all(isinstance(kind, (LaneVector, allowed)) for kind in given) else None


def rows_of_numbers(*given: Any) -> Any:
    """Return the row type as `rows_of`, but None for booleans."""
    row = rows_of(*given)
    return None if row is None or row.kind == types.boolean else row


def broadcast(context: Any, builder: Any, value: Any, kind: Any, wanted: Any) -> Any:
    """Return a value as a vector: a scalar is copied into every lane, a vector is returned unchanged."""
    if isinstance(kind, LaneVector):
        return value
    number = context.cast(builder, value, kind, wanted.kind)
    if wanted.kind == types.boolean:
        number = builder.trunc(number, KINDS[wanted.kind]) if number.type != KINDS[wanted.kind] else number
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), wanted.count), [0] * wanted.count)
    one = builder.insert_element(ir.Constant(wanted.vector, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, ir.Constant(wanted.vector, ir.Undefined), zeros)


def lower(function: Callable[..., object], count: int, make: Callable[..., Any]) -> None:
    """Register the code of a function with `count` arguments, at least one of them a row.

    `make` receives the builder, the row type, and all arguments as vectors.
    """

    def lowered(context: Any, builder: Any, given: Any, values: Any) -> Any:
        row = rows_of(*given.args)
        return make(
            builder,
            row,
            *(
                broadcast(context, builder, value, argument, row)
                for value, argument in zip(values, given.args, strict=True)
            ),
        )

    for kinds in itertools.product(GIVEN, repeat=count):
        if LaneVector in kinds:
            lower_builtin(function, *kinds)(lowered)
