"""Columns of comparisons: the objective by each model, its ratio to the best, and to the optimum where a bound is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tilewright.application.run.evaluation import BuiltModel
from tilewright.reports import Report
from tilewright.schema.objective import Objective
from tilewright.tables import Cell, Column, numbers


def value_of(reports: Sequence[Report], model: int, objective: Objective) -> float:
    """Return the objective by one of the models; inf if there is no report, or no value."""
    value = reports[model].of(objective) if reports and reports[model].valid else None
    return math.inf if value is None else float(value)


def model_columns(models: Sequence[BuiltModel], told: Mapping[int, bool], objective: Objective) -> list[Column]:
    """Return two columns for each shown model, and a third one where a distance from the optimum is known.

    Args:
        told: Position of a shown model -> whether such a distance is known.
    """
    return [
        column
        for model, known in told.items()
        for column in (
            numbers(models[model].name, objective.unit, rank=2, like="figure"),
            numbers(models[model].name, "x best", decimals=2),
            *([Column(models[model].name, "x optimum", right=True)] if known else []),
        )
    ]


def model_cells(value: float, best: float, distance: object | None, told: bool) -> list[Cell]:
    """Return the cells of one model in these columns."""
    ratio = math.inf if math.isinf(value) else value / best if best else 1.0
    return [value, ratio, *([None if distance is None else str(distance)] if told else [])]
