"""Front report: results of `front`, point by point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewright.application.api.call_arguments import at_least
from tilewright.application.api.front.budgeted import BudgetedNetwork, bound_within, chosen_within
from tilewright.application.api.front.points import Front, FrontPoint
from tilewright.application.api.plots import FrontPlots
from tilewright.application.documents.searches import FrontLayer, FrontOutput, FrontRow
from tilewright.application.run.artifacts.layers import certificate_beside, certificate_of, mapping_file
from tilewright.application.run.artifacts.summaries import (
    fallback_message,
    folder_message,
    head_of,
    interrupted_message,
    save_summary,
    title_of,
)
from tilewright.application.run.configuration import RunConfiguration, acquire
from tilewright.application.run.searched import PROBLEMS
from tilewright.application.run.vector_network import not_counted_here
from tilewright.errors import InputError, OutputError
from tilewright.files import RunFolder, file_name
from tilewright.reports.costs import COSTS
from tilewright.schema.objective import ENERGY
from tilewright.schema.operands import operand_warnings
from tilewright.schema.unsearched import unsearched_notes
from tilewright.schema.workload import Workload
from tilewright.tables import Shown, Table, Tabular, numbers

ENDS = ("most_cycles", "gap", "claimed_by", "whole", "mapping_file", "certificate_file")
"""Keys of a point after its costs."""


@dataclass(frozen=True, repr=False)
class FrontReport(Tabular):
    """Pareto fronts of the distinct problems of a workload. An interrupted run has fewer.

    `folder` contains the mapping files.

    Example:
        >>> import tilewright as tw
        >>> report = tw.front("nk,km->nm; n=2 k=2 m=2", "eyeriss", cache=False)
        >>> report.complete
        True
    """

    workload: Workload
    configuration: RunConfiguration
    fronts: tuple[Front, ...]
    folder: Path | None = None
    unwritten: OutputError | None = None

    def __repr__(self) -> str:
        where = self.configuration.architecture.name
        return f"<FrontReport of {self.workload.name} on {where}: {sum(len(front.points) for front in self.fronts)} points>"

    def __getitem__(self, name: str) -> Front:
        """Return the front of the layer of that name, or raise KeyError."""
        for front in self.fronts:
            if name in front.distinct.layers:
                return front
        raise KeyError(name)

    @property
    def stopped(self) -> list[str]:
        """Layers whose front an interruption ended after a point was found."""
        return [front.distinct.problem.name for front in self.fronts if front.interrupted and front.points]

    @property
    def complete(self) -> bool:
        """Whether every layer has a mapping."""
        return len(self.fronts) == len(self.workload.distinct()) and all(front.points for front in self.fronts)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Operations of the workload that the compute units do not fit."""
        problems = [distinct.problem for distinct in self.workload.distinct()]
        return operand_warnings(problems, self.configuration.architecture)

    def within(self, most_cycles: float) -> BudgetedNetwork:
        """Return the mappings of least energy, among the points, within a total of cycles of the whole network.

        Raises:
            InputError: `most_cycles` is no number, the layers take more cycles at least, or one has no mapping.
        """
        at_least(0, most_cycles=most_cycles)
        if self.workload.is_list:
            raise InputError(*self.workload.told(), hint="give a network, or one layer: NAME/LAYER")
        if not self.complete:
            raise InputError("a layer has no mapping, so the network has no total of cycles")
        uses = chosen_within(self.fronts, most_cycles)
        flat = [use for row in uses for use in row]
        return BudgetedNetwork(
            self.workload.name,
            self.configuration.architecture.name,
            most_cycles,
            tuple(zip(self.fronts, uses, strict=True)),
            math.fsum(point.energy_pj * count for point, count in flat),
            sum(point.cycles * count for point, count in flat),
            bound_within(self.fronts, most_cycles),
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per point.

        `most_cycles` is the largest cycle count within which no mapping has lower energy, up to the
        `gap`. None means that there is no lower energy at all.
        """
        return [row for number, front in enumerate(self.fronts, start=1) for row in self._rows(number, front)]

    def _rows(self, number: int, front: Front) -> list[dict[str, Any]]:
        rows = []
        for place, point in enumerate(front.points, start=1):
            name = None if self.folder is None else point_file(number, front, place)
            most = None if point.most_cycles == math.inf else int(point.most_cycles)
            proof = None if name is None or point.gap is None else certificate_beside(name)
            rows.append(
                PROBLEMS.data("front, csv", front.distinct)
                | COSTS.data("front", point.layer.report)
                | dict(zip(ENDS, (most, point.gap, point.claimed_by, front.whole, name, proof), strict=True))
            )
        return rows

    def data(self) -> dict[str, Any]:
        """Return the JSON document of `map --pareto --json` and `front.json`."""
        run = self.configuration
        return FrontOutput(
            **head_of(self.workload, run),
            seed=run.seed,
            warnings=list(self.warnings),
            layers=[self._layer(number, front) for number, front in enumerate(self.fronts, start=1)],
        ).data()

    def _layer(self, number: int, front: Front) -> FrontLayer:
        shared = (*PROBLEMS.view("front, csv"), "whole")
        return FrontLayer(
            **PROBLEMS.data("front", front.distinct),
            whole=front.whole,
            points=[
                FrontRow(
                    **{name: value for name, value in row.items() if name not in shared},
                    mapping=None if point.layer.mapping is None else point.layer.mapping.to_data(),
                )
                for row, point in zip(self._rows(number, front), front.points, strict=True)
            ],
            error=None if front.fastest.error is None else str(front.fastest.error),
        )

    @property
    def plot(self) -> FrontPlots:
        """Charts of the report, such as `plot.pareto()`."""
        return FrontPlots(self.data())

    def tables(self) -> Sequence[Table | str]:
        columns: list[Shown[tuple[Front, FrontPoint]]] = [
            *PROBLEMS.shown("table", lambda row: row[0].distinct),
            *COSTS.shown("front", lambda row: row[1].layer.report),
            Shown(numbers("least up to, cycles", rank=4), _most),
            Shown("proved", lambda row: row[1].proved),
        ]
        rows = [(front, point) for front in self.fronts for point in front.points]
        title = title_of(self.workload, self.configuration, [front.fastest for front in self.fronts])
        table = Table.of(columns, rows, title, "--json or -o")
        return [table, *self.workload.told()]

    def messages(self) -> list[str]:
        """Return messages that the user needs to interpret the results."""
        messages = [f"warning: {text}" for text in self.warnings]
        run, problems = self.configuration, [front.distinct.problem for front in self.fronts]
        messages += [f"note: {text}" for text in unsearched_notes(run.constraints, problems)]
        messages += [f"note: {text}" for text in not_counted_here(self.workload, run.architecture)]
        messages += fallback_message(self.configuration, [front.fastest for front in self.fronts])
        for front in self.fronts:
            name = front.distinct.problem.name
            messages += [f"error: {name}: {error}" for error in front.errors]
            if not front.errors and not front.points:
                told = "" if front.fastest.result is None else f": {front.fastest.result.told}"
                messages.append(f"no valid mapping found for {name}{told}")
        some = [front.distinct.problem.name for front in self.fronts if front.points and not front.whole]
        if some:
            messages.append(f"the front may have further points for {', '.join(some)}; a larger --pareto finds more")
        layers = len(self.workload.distinct())
        messages += interrupted_message(self.stopped, layers - len(self.fronts), layers)
        return [*messages, *folder_message(self.folder, self.unwritten)]

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *self.messages()])

    def save(self, folder: str | Path) -> Path:
        """Write the mappings and certificates of all points, `front.json` and `front.csv`.

        This is what `map --pareto -o` writes.

        Raises:
            InputError: The folder belongs to another run.
            OutputError: A file cannot be written.
        """
        run = RunFolder(folder)
        acquire(run, self.workload, [(f"front by {self.configuration.mapper_record.name}", self.configuration)])
        for number, front in enumerate(self.fronts, start=1):
            save_points(run, number, front, self.configuration)
        if (failure := self.summarised(run).unwritten) is not None:
            raise failure
        return run.path

    def summarised(self, folder: RunFolder | None) -> FrontReport:
        """Write `front.json` and `front.csv`, and return the report with its folder."""
        if folder is None:
            return self
        saved = replace(self, folder=folder.path)
        save_summary(
            folder, "front", saved.data(), (*PROBLEMS.view("front, csv"), *COSTS.view("front"), *ENDS), saved.rows()
        )
        return replace(saved, unwritten=folder.failure)


def _most(row: tuple[Front, FrontPoint]) -> int | str:
    return "any" if row[1].most_cycles == math.inf else int(row[1].most_cycles)


def point_file(number: int, front: Front, place: int) -> str:
    """Return the name of a point's mapping file; `number` and `place` count from 1."""
    return f"{file_name(f'{number:03d}', front.distinct.problem.name)}.front{place:02d}.yaml"


def save_points(folder: RunFolder, number: int, front: Front, configuration: RunConfiguration) -> None:
    """Write the mapping files of a front, and the certificates of points with a proof."""
    for place, point in enumerate(front.points, start=1):
        aimed = configuration.with_objective(ENERGY, point.most_cycles)
        result = None if point.layer.result is None else replace(point.layer.result, lower_bound=point.bound)
        layer = replace(point.layer, result=result)
        name, certificate = point_file(number, front, place), certificate_of(layer, aimed)
        folder.write(name, mapping_file(layer, aimed).to_yaml())
        if certificate is not None:
            folder.write(certificate_beside(name), certificate.to_yaml())
