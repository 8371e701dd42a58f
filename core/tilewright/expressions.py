"""Arithmetic expressions in files: numbers, variables and a few functions. No code is executed."""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable, Mapping

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


def evaluate(text: str, values: Values) -> Number:
    """Return the value of an arithmetic expression.

    Raises:
        ExpressionError: The expression uses anything except numbers, `values` and KNOWN, or a number
            exceeds the limits for hardware.

    >>> evaluate("kb * 1024 // 2", {"kb": 3})
    1536
    """
    if len(text) > _MAX_CHARACTERS:
        raise ExpressionError(f"longer than {_MAX_CHARACTERS} characters")
    try:
        with warnings.catch_warnings(action="ignore"):  # syntax warnings about literals
            tree = ast.parse(text.strip(), mode="eval")
        return _value(tree.body, values)
    except (SyntaxError, ArithmeticError, TypeError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(str(error)) from None


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
            raise ExpressionError("a power beyond the limits for hardware")
        return sane(OPERATIONS[type(node.op)](left, right))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if node.func.id not in FUNCTIONS:
            raise ExpressionError(f"there is no function '{node.func.id}'")
        return sane(FUNCTIONS[node.func.id](*(_value(argument, values) for argument in node.args)))
    raise ExpressionError("only arithmetic is allowed")


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
