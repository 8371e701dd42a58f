"""Tables through the kernel; rows whose counts 64 bits may not hold run in Python's integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from tilewright.notations.directives.table import Letters, Table
from tilewright_costmodels.maestro.kernel import analyse_rows
from tilewright_costmodels.maestro.work import INEXACT, Hardware, Result, Work, work_for

EXACT = 2.0**62
"""Below this 64 bits hold every count."""


def analyse(letters: Letters, hardware: Hardware, table: Table, explain: bool = False) -> tuple[Result, Work]:
    """MAESTRO's figures for a complete table of one row, in int64 or, where they may be larger, in Python's integers;
    `explain`: with the phases."""
    result, work = empty_result(), work_for(len(letters.sizes), np.int64)
    analyse_rows(letters, hardware, table, explain, EXACT, result, work)
    return (
        analyse_interpreted(letters, hardware, table, object, explain) if result.code[0] == INEXACT else (result, work)
    )


def analyse_interpreted(
    letters: Letters, hardware: Hardware, table: Table, kind: type, explain: bool = False
) -> tuple[Result, Work]:
    """The same as plain Python, on arrays of a kind: `object` for Python's integers, of any size."""
    result, work = empty_result(), work_for(len(letters.sizes), kind)
    seen = Work(*(array.view(np.recarray) if array.dtype.names else array for array in work))
    large = (_large(arrays) if kind is object else arrays for arrays in (letters, hardware, table))
    interpreted(analyse_rows)(*large, explain, math.inf if kind is object else EXACT, result, seen)
    return result, work


def empty_result(rows: int = 1) -> Result:
    """Nothing costs anything yet."""
    return Result(np.full(rows, np.inf), np.full(rows, np.inf), np.zeros(rows, dtype=np.int64))


def _large(arrays: NamedTuple) -> Any:
    """The same in Python's integers."""

    def large(field: Any) -> Any:
        if isinstance(field, np.ndarray):
            return field.astype(object) if field.dtype == np.int64 else field
        return field.item() if isinstance(field, np.generic) else field

    return type(arrays)(*map(large, arrays))


def interpreted(kernel: Any) -> Callable[..., Any]:
    """A compiled function, and all that it calls, as plain Python."""
    function = getattr(kernel, "py_func", kernel)
    names = dict(function.__globals__)
    for name in function.__code__.co_names:
        if hasattr(names.get(name), "py_func"):
            names[name] = interpreted(names[name])
    return FunctionType(function.__code__, names)
