"""Arithmetic expressions in files: numbers, variables and a few functions. No code is executed."""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Number = int | float
Values = Mapping[str, object]

_MAX_CHARACTERS = 300
_LARGEST = 2**80
OPERATIONS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
FUNCTIONS: dict[str, Callable[..., Number]] = {
    "abs": abs,
    "ceil": math.ceil,
    "floor": math.floor,
    "int": int,
    "log2": math.log2,
    "max": max,
    "min": min,
    "round": round,
    "sqrt": math.sqrt,
}
KNOWN = f"+ - * / // % ** and {', '.join(sorted(FUNCTIONS))}"
"""Operators and functions of expressions, for messages."""


class ExpressionError(ValueError):
    """The text is not an arithmetic expression over the given names."""


@dataclass
class Arithmetic:
    """Evaluator of expressions over `values`. A subclass may add further nodes, and values other than numbers."""

    values: Values

    def read(self, text: str) -> Any:
        """Return the value of an expression. Raises ExpressionError."""
        if len(text) > _MAX_CHARACTERS:
            raise ExpressionError(f"longer than {_MAX_CHARACTERS} characters")
        try:
            with warnings.catch_warnings(action="ignore"):  # syntax warnings about literals
                tree = ast.parse(text.strip(), mode="eval")
            return self.value(tree.body)
        except (SyntaxError, ArithmeticError, TypeError, ValueError, RecursionError, MemoryError) as error:
            raise ExpressionError(str(error)) from None

    def value(self, node: ast.expr) -> Any:
        """Return the value of a part. Raises ExpressionError."""
        match node:
            case ast.Constant(value):
                return sane(value)
            case ast.Name(name):
                if name not in self.values:
                    raise ExpressionError(f"there is no variable '{name}'")
                return sane(self.values[name])
            case ast.UnaryOp(ast.USub() | ast.UAdd() as sign, inner):
                return -self.number(inner) if isinstance(sign, ast.USub) else self.number(inner)
            case ast.BinOp(left, op, right):
                return self.combined(self.value(left), type(op), self.value(right))
            case ast.Call(ast.Name(name), arguments, []):
                if name not in FUNCTIONS:
                    raise ExpressionError(f"there is no function '{name}'")
                return sane(FUNCTIONS[name](*map(self.number, arguments)))
        raise ExpressionError("only arithmetic is allowed")

    def number(self, node: ast.expr) -> Number:
        """Return the value of a part that must be a number. Raises ExpressionError."""
        return sane(self.value(node))

    def combined(self, left: Any, op: type[ast.operator], right: Any) -> Any:
        """Return the result of an operator. Raises ExpressionError."""
        if op not in OPERATIONS:
            raise ExpressionError("only arithmetic is allowed")
        if op is ast.Pow and (abs(right) > 80 or abs(left) > 2**20):
            raise ExpressionError("a power beyond the limits for hardware")
        return sane(OPERATIONS[op](left, right))


def evaluate(text: str, values: Values) -> Number:
    """Return the value of an arithmetic expression.

    Raises:
        ExpressionError: The expression uses anything except numbers, `values` and KNOWN, or a number
            exceeds the limits for hardware.

    >>> evaluate("kb * 1024 // 2", {"kb": 3})
    1536
    """
    return sane(Arithmetic(values).read(text))


def variables(text: str) -> frozenset[str]:
    """Return the names of variables in an expression; empty if the text is no expression.

    >>> sorted(variables("max(rows, 2) * columns"))
    ['columns', 'rows']
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(text.strip()[:_MAX_CHARACTERS], mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called)


def sane(value: object) -> Number:
    """Return the number, as an integer if it is whole.

    Raises:
        ExpressionError: The value is not a number, or exceeds the limits for hardware.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ExpressionError(f"{value!r} is not a number")
    if abs(value) > _LARGEST or value != value:
        raise ExpressionError("a number beyond the limits for hardware")
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def resolved(value: object, values: Values) -> object:
    """Return the value of a text that is an arithmetic expression over `values`.

    Other values are returned unchanged, and the reader checks them.
    """
    if not isinstance(value, str):
        return value
    if value in values:
        return values[value]
    try:
        return evaluate(value, values)
    except ExpressionError:
        return value
