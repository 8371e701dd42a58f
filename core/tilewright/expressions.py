"""Arithmetic in files: numbers, names of variables, and a few functions. Nothing is ever executed."""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable, Mapping

Number = int | float
Values = Mapping[str, object]

_MOST_CHARACTERS = 300
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
"""What an expression may use, for messages."""


class ExpressionError(ValueError):
    """The text is no arithmetic over these names."""


def evaluate(text: str, values: Values) -> Number:
    """The value of an arithmetic expression.

    Raises:
        ExpressionError: it uses anything but numbers, `values`, and KNOWN, or leaves the numbers that hardware has.

    >>> evaluate("kb * 1024 // 2", {"kb": 3})
    1536
    """
    if len(text) > _MOST_CHARACTERS:
        raise ExpressionError(f"longer than {_MOST_CHARACTERS} characters")
    try:
        with warnings.catch_warnings(action="ignore"):  # about odd literals
            tree = ast.parse(text.strip(), mode="eval")
        return _value(tree.body, values)
    except (SyntaxError, ArithmeticError, TypeError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(str(error)) from None


def variables(text: str) -> frozenset[str]:
    """The names of variables in an expression; none where it is no expression.

    >>> sorted(variables("max(rows, 2) * columns"))
    ['columns', 'rows']
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(text.strip()[:_MOST_CHARACTERS], mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called)


def _value(node: ast.expr, values: Values) -> Number:
    if isinstance(node, ast.Constant):
        return sane(node.value)
    if isinstance(node, ast.Name):
        if node.id not in values:
            raise ExpressionError(f"there is no variable '{node.id}'")
        return sane(values[node.id])
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _value(node.operand, values)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
        left, right = _value(node.left, values), _value(node.right, values)
        if isinstance(node.op, ast.Pow) and (abs(right) > 80 or abs(left) > 2**20):
            raise ExpressionError("a power beyond all hardware")
        return sane(OPERATIONS[type(node.op)](left, right))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if node.func.id not in FUNCTIONS:
            raise ExpressionError(f"there is no function '{node.func.id}'")
        return sane(FUNCTIONS[node.func.id](*(_value(argument, values) for argument in node.args)))
    raise ExpressionError("only arithmetic is understood")


def sane(value: object) -> Number:
    """The number, whole where it can be. Raises ExpressionError: it is none that hardware has."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ExpressionError(f"{value!r} is no number")
    if abs(value) > _LARGEST or value != value:
        raise ExpressionError("a number beyond all hardware")
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def resolved(value: object, values: Values) -> object:
    """The value of a text that is arithmetic over `values`; everything else as it is, for the reader to judge."""
    if not isinstance(value, str):
        return value
    if value in values:
        return values[value]
    try:
        return evaluate(value, values)
    except ExpressionError:
        return value
