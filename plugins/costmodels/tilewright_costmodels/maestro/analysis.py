"""Tables through the kernel; rows whose counts 64 bits may not hold run in Python's integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from tilewright.notations.directives.table import Letters, Table
from tilewright_costmodels.maestro.kernel import analyse_rows
from tilewright_costmodels.maestro.work import INEXACT, Hardware, Result, result_for, work_for

EXACT = 2.0**62
"""Below this 64 bits hold every count."""


def analyse(letters: Letters, hardware: Hardware, table: Table, explain: bool = False) -> Result:
    """MAESTRO's figures for every row of a complete table; `explain`: with the phases of the last.

    Counts are int64; of a table of one row, Python's integers where they may be larger. Of longer ones such rows have
    the fault INEXACT.
    """
    count = len(letters.sizes)
    result = result_for(len(table.levels), count, np.int64)
    analyse_rows(letters, hardware, table, explain, EXACT, result, work_for(count, np.int64))
    if len(table.levels) == 1 and result.fault[0, 0] == INEXACT:
        return analyse_interpreted(letters, hardware, table, object, explain)
    return result


def analyse_interpreted(
    letters: Letters, hardware: Hardware, table: Table, kind: type, explain: bool = False
) -> Result:
    """The same as plain Python, on arrays of a kind: `object` for Python's integers, of any size."""
    count = len(letters.sizes)
    result, work = result_for(len(table.levels), count, kind), work_for(count, kind)
    large = (_large(arrays) if kind is object else arrays for arrays in (letters, hardware, table))
    interpreted(analyse_rows)(*large, explain, math.inf if kind is object else EXACT, result, work)
    return result


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
