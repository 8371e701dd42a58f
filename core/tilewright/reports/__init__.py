"""Report: the complete result of a cost model for one mapping, as `evaluate --json` prints it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from tilewright.reports.content import ReportContent
from tilewright.reports.parts import (
    AccessCounts,
    Accesses,
    Delivery,
    Execution,
    InstanceCounts,
    LevelReport,
    Limit,
    LimitAction,
    MeshReport,
    MetadataCounts,
    NetworkReport,
    RankCounts,
    Served,
    SparseCounts,
    TensorCounts,
    overlapping,
)
from tilewright.reports.printed import explanation, rows, summary
from tilewright.tables import Table, Tabular

__all__ = [
    "AccessCounts",
    "Accesses",
    "Delivery",
    "Execution",
    "InstanceCounts",
    "LevelReport",
    "Limit",
    "LimitAction",
    "MeshReport",
    "MetadataCounts",
    "NetworkReport",
    "RankCounts",
    "Report",
    "Served",
    "SparseCounts",
    "TensorCounts",
    "overlapping",
]


class Report(Tabular, ReportContent):
    """Cost of a mapping by one model; if `valid` is false, only `reasons` are given.

    Printed, it shows where the energy goes and what limits the speed; `explained()` prints everything.
    Reports of some models have further values, such as the columns of the model's own files.

    Example:
        >>> import tilewright as tw
        >>> layer = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False).layers[0]
        >>> report = layer.report
        >>> report.valid, report.energy_pj == layer.energy_pj
        (True, True)
    """

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Accept further values of a model."""
        schema = super().__get_pydantic_json_schema__(core, handler)
        handler.resolve_ref_schema(schema).pop("additionalProperties", None)
        return schema

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per level and tensor, NoC and compute.

        A row has energy, its fraction, pJ per MAC, and the counts of memories.
        """
        return rows(self)

    def tables(self) -> Sequence[Table | str]:
        return summary(self)

    def explained(self) -> Explanation:
        """Return the long form: every limit, energy, count and memory."""
        return Explanation(self)


class Explanation(Tabular):
    """The long printed form of a report."""

    def __init__(self, report: Report) -> None:
        self.report = report

    def rows(self) -> list[dict[str, Any]]:
        return self.report.rows()

    def tables(self) -> Sequence[Table | str]:
        return explanation(self.report)
