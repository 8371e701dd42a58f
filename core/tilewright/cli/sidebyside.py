"""Several models on one mapping, side by side: their totals, then every count on which they disagree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.cli.common import console, figure
from tilewright.schema.report import Report

ACTIONS = ("reads", "fills", "updates")


def disagreements(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """Counts (words per instance) that are not the same in all valid reports, outermost level first; a model that has
    no such count gives None."""
    valid = [report for report in reports if report.valid]
    counts = [
        {(level.name, tensor): row for level in report.levels for tensor, row in level.tensors.items()}
        for report in valid
    ]
    rows: list[dict[str, Any]] = []
    for level, tensor in dict.fromkeys(place for each in counts for place in each):
        for action in ACTIONS:
            values = [getattr(each.get((level, tensor)), action, None) for each in counts]
            if len(set(values)) > 1:
                by_model = {report.model: value for report, value in zip(valid, values, strict=True)}
                rows.append({"level": level, "tensor": tensor, "action": action, "counts": by_model})
    return rows


def print_side_by_side(reports: Sequence[Report]) -> None:
    """A row per model, refusals with their reason; then the account of the differences."""
    from rich.table import Table

    out = console()
    table = Table(title=f"{reports[0].problem}", title_justify="left", box=None, pad_edge=False)
    for column in ("model", "energy pJ", "cycles", "EDP pJ x cycles", "utilization", "remarks"):
        table.add_column(column, justify="left" if column in ("model", "remarks") else "right")
    for report in reports:
        remarks = [*report.warnings, *(str(reason) for reason in report.reasons)]
        figures = (report.energy_pj, report.cycles, report.edp, report.utilization)
        table.add_row(report.model, *(figure(value) for value in figures), "; ".join(remarks))
    out.print(table)
    rows = disagreements(reports)
    valid = [report.model for report in reports if report.valid]
    if len(valid) < 2:
        return
    if not rows:
        out.print(f"{', '.join(valid)} agree on every count")
        return
    table = Table(title="where they differ, words per instance", title_justify="left", box=None, pad_edge=False)
    for column in ("level", "tensor", "action", *valid):
        table.add_column(column, justify="right" if column in valid else "left")
    for row in rows:
        values = ("none" if row["counts"][model] is None else figure(row["counts"][model]) for model in valid)
        table.add_row(row["level"], row["tensor"], row["action"], *values)
    out.print(table)
