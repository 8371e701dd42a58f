"""Comparison report: results of `compare`, one per search."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tilewright.application.api.compared_columns import model_cells, model_columns, value_of
from tilewright.application.api.hardware.fits import Fit, fit_table, refused_models
from tilewright.application.api.plots import ComparisonPlots
from tilewright.application.documents.comparisons import ComparedSearch, CompareOutput, CompareRow, MeasuredPrice
from tilewright.application.run.artifacts.layers import mapping_file
from tilewright.application.run.artifacts.summaries import folder_message, interrupted_message, save_summary
from tilewright.application.run.configuration import acquire, limit_message
from tilewright.application.run.evaluation import BuiltModel
from tilewright.application.run.searched import PROBLEMS, SEARCHES
from tilewright.application.run.sweep import Distance, Proofs, SweepPoint, SweepRow
from tilewright.application.run.vector_network import not_counted_here
from tilewright.errors import OutputError, Reason
from tilewright.files import RunFolder, file_name
from tilewright.plugin.mapper import Budget
from tilewright.reports.costs import COSTS
from tilewright.schema.architecture import Architecture
from tilewright.schema.objective import Objective
from tilewright.schema.unmatched import unmatched
from tilewright.schema.unsearched import unsearched_notes
from tilewright.schema.workload import Workload
from tilewright.tables import Cell, Column, Table, Tabular, numbers
from tilewright.values import attributes


@dataclass(frozen=True, repr=False)
class ComparisonReport(Tabular):
    """Results of `compare`, with one row per search: a mapper under a model on a layer.

    `folder` contains the mapping files. `fits` records which models fit which layers. Models that
    do not fit a layer are in a table of their own.

    Example:
        >>> import tilewright as tw
        >>> report = tw.compare("nk,km->nm; n=4 k=4 m=4", "eyeriss", mappers="random", evaluations=50, cache=False)
        >>> report.complete
        True
    """

    workload: Workload
    architecture: Architecture
    objective: Objective
    points: tuple[SweepPoint, ...]
    models: tuple[BuiltModel, ...]
    searches: tuple[SweepRow, ...]
    fits: tuple[Fit, ...] = ()
    folder: Path | None = None
    unwritten: OutputError | None = None

    def __repr__(self) -> str:
        return f"<ComparisonReport of {self.workload.name} on {self.architecture.name}: {len(self.searches)} searches>"

    @property
    def missing(self) -> int:
        """Number of searches that an interruption prevented."""
        return len(self.points) * len(self.workload.distinct()) - len(self.searches)

    @property
    def stopped(self) -> list[str]:
        """Searches that an interruption ended after they had found a mapping."""
        cut = [row for row in self.searches if row.layer.interrupted and row.layer.report is not None]
        return [f"{row.layer.name} by {row.point.mapper}" for row in cut]

    @property
    def complete(self) -> bool:
        """Whether all searches ran to their end."""
        return not self.missing and not self.stopped

    def save(self, folder: str | Path) -> Path:
        """Write a mapping file per search, `compare.json` and `compare.csv`, as `compare -o` does.

        Raises:
            InputError: The folder belongs to another run.
            OutputError: A file cannot be written.
        """
        run = RunFolder(folder)
        acquire(run, self.workload, [(point.mapper, point.configuration) for point in self.points])
        for number, row in enumerate(self.searches, start=1):
            save_row(run, number, row)
        if (failure := self.summarised(run).unwritten) is not None:
            raise failure
        return run.path

    def summarised(self, folder: RunFolder | None) -> ComparisonReport:
        """Write `compare.json` and `compare.csv`, and return the report with its folder."""
        if folder is None:
            return self
        saved = replace(self, folder=folder.path)
        columns = (
            *(*PROBLEMS.view("compare, csv"), "mapper", "guide", "model", "valid", *COSTS.view("csv"), "distance"),
            *("optimum_proved", *SEARCHES.view("compare, csv"), "mapping_file", "reason"),
        )
        save_summary(folder, "compare", saved.data(), columns, saved.rows())
        return replace(saved, unwritten=folder.failure)

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per search and model."""
        listed = []
        keys = ("model", "valid", *COSTS.view("csv"), "distance", "optimum_proved")
        for search, row in zip(self.searches, self.data()["rows"], strict=True):
            shared = PROBLEMS.data("compare, csv", search.layer.distinct)
            shared |= {key: row[key] for key in ("mapper", "guide", "mapping_file")}
            shared |= SEARCHES.data("compare, csv", row["search"])
            nothing = [{"model": row["guide"], "valid": False, "reasons": row["reasons"]}]
            for cost in row["prices"] or nothing:
                reason = "; ".join(str(Reason(**fields)) for fields in cost["reasons"])
                listed.append(shared | {key: cost[key] for key in keys if key in cost} | {"reason": reason})
        return listed

    def data(self) -> dict[str, Any]:
        """Return the JSON document of `compare --json` and `compare.json`."""
        return CompareOutput(
            workload=self.workload.name,
            content=self.workload.content,
            arch=self.architecture.name,
            objective=self.objective.name,
            mappers=list(dict.fromkeys(point.mapper for point in self.points)),
            models=[model.name for model in self.models],
            complete=self.complete,
            rows=[self._row(number, row) for number, row in enumerate(self.searches, start=1)],
        ).data()

    def _row(self, number: int, row: SweepRow) -> CompareRow:
        written = self.folder is not None and row.layer.report is not None
        return CompareRow(
            **PROBLEMS.data("compare", row.layer.distinct),
            mapper=row.point.mapper,
            guide=row.point.model,
            valid=bool(row.reports),
            reasons=list(row.reasons),
            mapping_file=row_file(number, row) if written else None,
            search=ComparedSearch(**SEARCHES.data("compare", row.search)),
            prices=[
                MeasuredPrice(
                    **attributes(report, "valid reasons warnings"),
                    **COSTS.data("json", report),
                    model=model.name,
                    distance=None if distance is None else distance.ratio,
                    optimum_proved=None if distance is None else distance.exact and distance.claimed_by is None,
                    optimum_claimed_by=None if distance is None else distance.claimed_by,
                )
                for model, report, distance in zip(self.models, row.reports, self._distances[number - 1], strict=False)
            ],
        )

    @property
    def plot(self) -> ComparisonPlots:
        """Charts of the report, such as `plot.energy()`."""
        return ComparisonPlots(self.data())

    @cached_property
    def _distances(self) -> list[list[Distance | None]]:
        """Return the distance from the best result, per search and model."""
        layers = dict.fromkeys(row.layer.name for row in self.searches)
        proofs = {name: Proofs([row for row in self.searches if row.layer.name == name]) for name in layers}
        return [
            [self._distance(proofs[row.layer.name], row, n) for n in range(len(self.models))] for row in self.searches
        ]

    def _distance(self, proofs: Proofs, row: SweepRow, model: int) -> Distance | None:
        best, value = None if row.layer.result is None else row.layer.result.best, self._value(row, model)
        return None if best is None or math.isinf(value) else proofs.distance(best, self.models[model].name, value)

    def messages(self) -> list[str]:
        """Return messages that the user needs to interpret the results."""
        messages = [f"note: {note}" for note in (*self._unlimited(), *self._unsearched())]
        messages += [f"note: {note}" for note in not_counted_here(self.workload, self.architecture)]
        messages += [f"warning: {warning}" for warning in self._unmatched()]
        messages += [f"warning: {name}: {warning}" for name, warning in self._warnings()]
        total = self.missing + len(self.searches)
        messages += interrupted_message(self.stopped, self.missing, total, "searches were not run")
        return [*messages, *folder_message(self.folder, self.unwritten)]

    def _unlimited(self) -> list[str]:
        """Return which limits do not apply to provers that limit themselves (`Plan.configuration`)."""
        budgets = {point.mapper: point.configuration.budget for point in self.points if point.configuration is not None}
        if all(budget.evaluations is None for budget in budgets.values()):
            return []
        free = [mapper for mapper, budget in budgets.items() if budget == Budget(seconds=budget.seconds)]
        return [f"--evaluations does not limit {mapper}, which ends with its proof" for mapper in free]

    def _unsearched(self) -> tuple[str, ...]:
        """Return which rules of other tools' files no search has."""
        runs = [point.configuration for point in self.points if point.configuration is not None]
        problems = [distinct.problem for distinct in self.workload.distinct()]
        return unsearched_notes(runs[0].constraints, problems) if runs else ()

    def _unmatched(self) -> tuple[str, ...]:
        """Names in architecture and constraints that match nothing; all searches share the constraints."""
        runs = [point.configuration for point in self.points if point.configuration is not None]
        problems = [distinct.problem for distinct in self.workload.distinct()]
        return unmatched(problems, self.architecture, runs[0].constraints) if runs else ()

    def _warnings(self) -> list[tuple[str, str]]:
        """Return pairs (model or mapper, text), with one entry for texts that differ only in numbers."""
        said = [(row.point.mapper, text) for row in self.searches for text in row.layer.warnings]
        said += [
            (row.point.mapper, row.layer.error.message) for row in self.searches if row.reports and row.layer.error
        ]
        said += [(report.model, text) for row in self.searches for report in row.reports for text in report.warnings]
        alike: dict[tuple[str, str], dict[str, None]] = {}
        for name, text in said:
            alike.setdefault((name, re.sub(r"[\d,.]+", "#", text)), {})[text] = None
        return [
            (name, next(iter(texts)) + (f" (and {len(texts) - 1} like it)" if len(texts) > 1 else ""))
            for (name, _), texts in alike.items()
        ]

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *self.messages()])

    def tables(self) -> Sequence[Table | str]:
        """Return tables with a row per layer, search model and mapper.

        For each model they show the metric, its distance from the best, and from the optimum if a bound was proved.
        """
        refused = refused_models(self.fits)
        shown = [n for n, model in enumerate(self.models) if model.name not in refused]
        told = {n: any(distance[n] for distance in self._distances) for n in shown}
        columns = model_columns(self.models, told, self.objective)
        title = (
            f"{self.workload.name} on {self.architecture.name}: {self.objective.title} by each model, "
            "and how many times the layer's best by that model"
            + (
                ", and the optimum that is proved or claimed"
                if any(far and far.claimed_by for row in self._distances for far in row)
                else ", and the proved optimum"
                if any(told.values())
                else ""
            )
        )
        proves = any(row.search.cut or row.search.result.proved for row in self.searches)
        ends = [*([Column("proved")] if proves else []), numbers("seconds", rank=3, decimals=1), Column("remarks")]
        names = [*PROBLEMS.columns("table"), Column("search by"), Column("mapper")]
        table = Table(*names, *columns, *ends, title=title, more="--json or -o")
        notes: dict[str, int] = {}
        for layer in dict.fromkeys(row.layer.name for row in self.searches):
            rows = [
                (row, far)
                for row, far in zip(self.searches, self._distances, strict=True)
                if row.layer.name == layer and (row.point.model, layer) not in self._refused
            ]
            bests = {n: min((self._value(row, n) for row, _ in rows), default=math.inf) for n in shown}
            for index, (row, distances) in enumerate(rows):
                costs: list[Cell] = []
                for n, best in bests.items():
                    costs += model_cells(self._value(row, n), best, distances[n], told[n])
                named = ("", "") if index else (layer, row.layer.problem.long_dimensions)
                table.add_row(*named, *self._cells(row, costs, notes, proves))
        left_out = [fit for fit in self.fits if not fit.fits]
        title = f"left out: cost models that do not fit on {self.architecture.name}"
        without = [fit_table(left_out, self.fits, title)] if left_out else []
        return [*([table] if shown else []), *(f"  {mark}  {text}" for text, mark in notes.items()), *without]

    def _cells(self, row: SweepRow, costs: Sequence[Cell], notes: dict[str, int], proves: bool) -> list[Cell]:
        """Return the cells after the layer. Remarks are shown as numbers of notes."""
        seconds = None if row.layer.result is None else row.layer.result.wall_seconds
        proof = ["cut, " * row.search.cut + (row.search.result.told_proof or "no")] if proves else []
        marks = sorted(notes.setdefault(text, len(notes) + 1) for text in self._remarks(row))
        return [row.point.model, row.point.mapper, *costs, *proof, seconds, " ".join(map(str, marks))]

    @cached_property
    def _refused(self) -> set[tuple[str, str]]:
        """Pairs (model, layer) that do not fit. A table of their own names them once."""
        return {(fit.model, fit.problem) for fit in self.fits if not fit.fits}

    def _value(self, row: SweepRow, model: int) -> float:
        """Return the objective by one model, inf if it has no value."""
        return value_of(row.reports, model, self.objective)

    def _remarks(self, row: SweepRow) -> list[str]:
        """Return why there is no mapping, which models refuse it, and which limit ended the search."""
        remarks = [f"{reason.message} [{reason.code}]" for reason in row.reasons]
        for model, report in zip(self.models, row.reports, strict=False):
            if (model.name, row.layer.name) not in self._refused:
                remarks += [f"{model.name}: {reason}" for reason in report.reasons]
        if row.search.cut:
            remarks.append(
                f"{row.point.mapper} was cut, so its mapping may be no optimum: {row.search.gap_reason or row.search.stopped_by}"
            )
        limit = row.search.stopped_by
        return remarks if limit is None else [*remarks, limit_message(limit, "")]


def row_file(number: int, row: SweepRow) -> str:
    """Return the name of a search's mapping file; `number` counts from 1."""
    return file_name(f"{number:03d}", row.layer.name, row.point.mapper, row.point.model) + ".yaml"


def save_row(folder: RunFolder, number: int, row: SweepRow) -> None:
    """Write the mapping file of a search that found a mapping."""
    if row.layer.report is not None and row.point.configuration is not None:
        folder.write(row_file(number, row), mapping_file(row.layer, row.point.configuration).to_yaml())
