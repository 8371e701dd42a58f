"""Analysis of directives by the kernel. Counts that may exceed 64 bits run in Python's integers."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tilewright.compiled import interpreted
from tilewright_costmodels.maestro.kernel import analyse_all
from tilewright_costmodels.maestro.tables import BEYOND_INT64, AnalysisScratch, Hardware, Result, scratch_for
from tilewright_notations.directives.nest import Nests, scratch_of
from tilewright_notations.directives.table import Letters, Table

EXACT = 2.0**62
"""Upper bound up to which 64 bits hold every count."""


def analyse(
    dimensions: Letters, hardware: Hardware, table: Table, explain: bool = False, kind: type | None = None
) -> tuple[Result, AnalysisScratch]:
    """Return MAESTRO's results for complete directives.

    Args:
        explain: also return the phases.
        kind: type of integers for plain Python on arrays; `object`: Python's integers. None:
            compiled in int64, or Python's integers if counts may be larger.
    """
    result, analysis, nests = empty_result(), scratch_for(int(dimensions.named), kind or np.int64), Nests()
    scratch = scratch_of(nests, table)
    if kind is None:
        analyse_all(dimensions, hardware, nests, scratch, table, explain, EXACT, result, analysis)
        is_exact = result.code[0] != BEYOND_INT64
        return (result, analysis) if is_exact else analyse(dimensions, hardware, table, explain, object)
    max_count, run = EXACT, interpreted(analyse_all)
    if kind is object:
        max_count, dimensions, hardware, table = math.inf, _large(dimensions), _large(hardware), _large(table)
    run(dimensions, hardware, nests, scratch, table, explain, max_count, result, analysis)
    return result, analysis


def empty_result(count: int = 1) -> Result:
    """Return infinite costs of `count` mappings."""
    return Result(np.full(count, np.inf), np.full(count, np.inf), np.zeros(count, dtype=np.int64))


def _large(arrays: NamedTuple) -> Any:
    """Return the tuple with its integers as Python's integers."""

    def large(field: Any) -> Any:
        if isinstance(field, np.ndarray):
            return field.astype(object) if field.dtype == np.int64 else field
        return field.item() if isinstance(field, np.generic) else field

    return type(arrays)(*map(large, arrays))
