"""Symbolic sizes: expressions such as `2*s0 + 1`, with values for their symbols."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from tilewright_frontends.nests import Shape, Unsupported

MAX_LENGTH = 1000
"""Maximum length of an expression in characters."""
MAX_SIZE = 2**53
OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "Max": max,
    "Min": min,
    "FloorDiv": lambda a, b: a // b,
    "CleanDiv": lambda a, b: a // b,
    "CeilDiv": lambda a, b: -(-a // b),
    "Mod": lambda a, b: a % b,
    "PythonMod": lambda a, b: a % b,
}


class OpenSizeError(Exception):
    """Error: a symbol has no value; the message is its name."""


def symbols_of(expression: str) -> tuple[str, ...]:
    """Return the symbols of an expression. Raises Unsupported."""
    return tuple(
        node.id for node in ast.walk(_parsed(expression)) if isinstance(node, ast.Name) and node.id not in FUNCTIONS
    )


def value_of(expression: str, sizes: Mapping[str, int]) -> int:
    """Return the value of an expression.

    Raises:
        OpenSizeError: a symbol has no value.
        Unsupported: it contains more than sums, products and quotients.
    """
    return _value(_parsed(expression), sizes, expression)


def shape_of(value: Mapping[str, Any], sizes: Mapping[str, int]) -> Shape:
    """Return the shape in a tensor's metadata.

    Raises:
        OpenSizeError, Unsupported: see `value_of`.
        LookupError, TypeError, ValueError: the metadata are malformed.
    """
    return tuple(size_of(size, sizes) for size in value["sizes"])


def size_of(size: Mapping[str, Any], sizes: Mapping[str, int]) -> int:
    """Return one size, given as a number or an expression."""
    if "as_int" in size:
        return int(size["as_int"])
    return value_of(str(size["as_expr"]["expr_str"]), sizes)


def _parsed(expression: str) -> ast.expr:
    if len(expression) > MAX_LENGTH:
        raise Unsupported(f"a size has {len(expression):,} characters; expected at most {MAX_LENGTH:,}")
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Unsupported(f"the size {expression[:80]!r} cannot be read") from None


def _value(node: ast.expr, sizes: Mapping[str, int], expression: str) -> int:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            number = value
        case ast.Name(id=name):
            if name not in sizes:
                raise OpenSizeError(name)
            number = sizes[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = -_value(operand, sizes, expression)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATORS:
            number = _applied(OPERATORS[type(operator)], [left, right], sizes, expression)
        case ast.Call(func=ast.Name(id=name), args=[left, right], keywords=[]) if name in FUNCTIONS:
            number = _applied(FUNCTIONS[name], [left, right], sizes, expression)
        case _:
            raise Unsupported(f"the size {expression[:80]!r} is not a sum, product or quotient")
    if abs(number) > MAX_SIZE:
        raise Unsupported(f"the size {expression[:80]!r} is above 2**53")
    return number


def _applied(
    function: Callable[[int, int], int], parts: list[ast.expr], sizes: Mapping[str, int], expression: str
) -> int:
    first, second = (_value(part, sizes, expression) for part in parts)
    try:
        return function(first, second)
    except ZeroDivisionError:
        raise Unsupported(f"the size {expression[:80]!r} divides by 0") from None
