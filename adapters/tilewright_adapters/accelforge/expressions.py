"""Expressions in AccelForge's files: arithmetic, and sets of tensors such as `~(input | output)`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from tilewright.expressions import Arithmetic, ExpressionError, Number, sane
from tilewright.schema.document import suggestion

Tensors = frozenset[str]
Value = Number | Tensors

_SETS: dict[type[ast.operator], Callable[[Tensors, Tensors], Tensors]] = {
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.Sub: operator.sub,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Number, Number], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@dataclass
class Scope:
    """Names and their values.

    Attributes:
        every: all tensors, for complements.
        names: numbers and sets of tensors.
        bits: tensor -> bits of its values.
    """

    every: Tensors
    names: dict[str, Value] = field(default_factory=dict)
    bits: Mapping[str, int] = field(default_factory=dict)

    def number(self, value: object) -> Number:
        """Return a number, given as such or as an expression; it may be infinite. Raises ExpressionError."""
        if isinstance(value, str):
            if value.strip() in ("inf", 'float("inf")', "float('inf')"):
                return float("inf")
            number = self._read(value)
        else:
            number = value  # type: ignore[assignment]
        if isinstance(number, frozenset):
            raise ExpressionError(f"{value} is a set of tensors; expected a number")
        return number if number == float("inf") else sane(number)

    def whole(self, value: object) -> int:
        """Return a whole number above 0. Raises ExpressionError."""
        number = self.number(value)
        if not 1 <= number < float("inf") or number != int(number):
            raise ExpressionError(f"{value} is not a whole number above 0")
        return int(number)

    def tensors(self, value: object) -> Tensors:
        """Return a set of tensors, given as an expression. Raises ExpressionError."""
        names = self._read(value) if isinstance(value, str) else None
        if not isinstance(names, frozenset):
            raise ExpressionError(f"{value!r} is not a set of tensors")
        return names

    def truth(self, value: object) -> bool:
        """Return a truth value. Raises ExpressionError."""
        return value if isinstance(value, bool) else bool(self.number(value))

    def _read(self, text: str) -> Value:
        try:
            result: Value = _SetArithmetic(self.names, self).read(text)
        except ExpressionError as error:
            raise ExpressionError(f"'{text[:300]}': {error}") from None
        return result


@dataclass
class _SetArithmetic(Arithmetic):
    """Evaluator that adds sets of tensors, comparisons and conditions."""

    scope: Scope

    def value(self, node: ast.expr) -> Value:
        names = self.scope.names
        match node:
            case ast.Constant(bool(value)):
                return int(value)
            case ast.Name(name) | ast.Attribute(ast.Name(name), "tensors") if name in names:
                return names[name]  # which may be infinite
            case ast.Name(name):
                raise ExpressionError(f"unknown name {name}{suggestion(name, names)}")
            case ast.Attribute(inner, "bits_per_value"):
                bits = {self.scope.bits[tensor] for tensor in self._set(inner) if tensor in self.scope.bits}
                if len(bits) != 1:
                    raise ExpressionError("bits_per_value of tensors that have no value or different ones")
                return bits.pop()
            case ast.UnaryOp(ast.Invert(), inner):
                return self.scope.every - self._set(inner)
            case ast.UnaryOp(ast.Not(), inner):
                return int(not self.value(inner))
            case ast.Compare(left, [op], [right]) if type(op) in _COMPARISONS:
                return int(_COMPARISONS[type(op)](self.number(left), self.number(right)))
            case ast.IfExp(test, body, orelse):
                return self.value(body if self.value(test) else orelse)
            case ast.Call(ast.Name("len"), [inner], []):
                return len(self._set(inner))
            case ast.Constant() | ast.UnaryOp() | ast.BinOp() | ast.Call(ast.Name()):
                return cast(Value, super().value(node))
        raise ExpressionError("unsupported expression; expected arithmetic or sets of tensors")

    def number(self, node: ast.expr) -> Number:
        result = self.value(node)
        if isinstance(result, frozenset):
            raise ExpressionError("a set of tensors was given; expected a number")
        return result

    def combined(self, left: Value, op: type[ast.operator], right: Value) -> Value:
        if isinstance(left, frozenset) and isinstance(right, frozenset) and op in _SETS:
            return _SETS[op](left, right)
        if isinstance(left, frozenset) or isinstance(right, frozenset):
            raise ExpressionError("unsupported operator; sets have | & - ~, numbers + - * / // % **")
        return cast(Value, super().combined(left, op, right))

    def _set(self, node: ast.expr) -> Tensors:
        names = self.value(node)
        if not isinstance(names, frozenset):
            raise ExpressionError("a number was given; expected a set of tensors")
        return names
