"""Report: everything a cost model has to say about one mapping. Its JSON form is what `evaluate --json` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.schema.report.content import UNITS, Objective, ReportContent
from tilewright.schema.report.parts import (
    Accesses,
    Delivery,
    Execution,
    InstanceCounts,
    LevelReport,
    Limit,
    LimitAction,
    NetworkReport,
    Served,
    TensorCounts,
    overlapping,
)
from tilewright.schema.report.printed import explanation, rows, summary
from tilewright.tables import Table, Tabular

__all__ = [
    "UNITS",
    "Accesses",
    "Delivery",
    "Execution",
    "InstanceCounts",
    "LevelReport",
    "Limit",
    "LimitAction",
    "NetworkReport",
    "Objective",
    "Report",
    "Served",
    "TensorCounts",
    "overlapping",
]


class Report(Tabular, ReportContent):
    """What a mapping costs by one model; with `valid` false, `reasons` says why and the figures are absent.

    It prints in short: where the energy goes and what limits the speed; `explained()` prints all of it.
    """

    def rows(self) -> list[dict[str, Any]]:
        """One per level and tensor, NoC and compute: energy, its share, pJ per MAC, and the counts of memories."""
        return rows(self)

    def tables(self) -> Sequence[Table | str]:
        return summary(self)

    def explained(self) -> Explanation:
        """The same at length: every limit, energy, count and memory."""
        return Explanation(self)


class Explanation(Tabular):
    """A report that prints all of it."""

    def __init__(self, report: Report) -> None:
        self.report = report

    def rows(self) -> list[dict[str, Any]]:
        return self.report.rows()

    def tables(self) -> Sequence[Table | str]:
        return explanation(self.report)
