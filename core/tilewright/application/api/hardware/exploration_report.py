"""Exploration report: contents of a store for one exploration, point by point."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tilewright.application.api.hardware.spaces import choice_columns
from tilewright.application.api.plots import ExplorationPlots
from tilewright.application.documents.hardware import ExploredRow, ExploreOutput
from tilewright.application.documents.listings import ErrorData
from tilewright.application.exploration.records import ExplorationRecord, ExploredPoint, behind, first_of_equals, front
from tilewright.errors import InputError, OutputError, TilewrightError
from tilewright.files import write_text
from tilewright.plugin.result import PROOF_TOLERANCE
from tilewright.reports.costs import COSTS
from tilewright.schema.mapped import PluginRecord
from tilewright.schema.mapped.claimants import claimant
from tilewright.tables import Column, Shown, Table, Tabular, csv_text
from tilewright.values import attributes

FORMATS = (".csv", ".parquet")
SWEEP = 30
"""Maximum number of points of a table that shows all."""
FAULTS = 3
"""Maximum number of different faults listed."""


@dataclass(frozen=True, repr=False)
class ExplorationReport(Tabular):
    """Results of an exploration, point by point.

    `asked` of the record is the number of points to try.

    Attributes:
        complete: Whether the exploration ran to its end.
        failure: Lost cluster that ended the exploration.

    Example:
        >>> import tilewright as tw
        >>> sweep = {"GlobalBuffer.capacity_words": [1024, 4096]}
        >>> report = tw.explore("nk,km->nm; n=4 k=4 m=4", arch="eyeriss", vary=sweep, mapper="random", evaluations=20)
        >>> len(report.rows())
        2
    """

    record: ExplorationRecord
    points: tuple[ExploredPoint, ...]
    complete: bool = True
    failure: TilewrightError | None = None

    def __repr__(self) -> str:
        return (
            f"<ExplorationReport of {self.record.workload} on {self.record.space['name']}: {len(self.points)} points>"
        )

    @cached_property
    def found(self) -> tuple[ExploredPoint, ...]:
        """Points where every layer has a mapping, the best first; of equal ones, that with the smallest memories."""
        good = [point for point in self.points if math.isfinite(point.energy_pj)]
        return tuple(sorted(good, key=lambda point: (point.of(self.record.objective), point.memory_bits)))

    @cached_property
    def front(self) -> tuple[ExploredPoint, ...]:
        """Pareto-optimal points in energy, cycles and area (if known); of equal ones, that with the smallest memories."""
        return first_of_equals(front(self.found))

    @property
    def claimed_by(self) -> str | None:
        """Names of the plugins whose claim the bounds of layers and machines are; None if mapper and cost model are built in."""
        return claimant(self._plugin("mapper"), self._plugin("model"))

    def _plugin(self, kind: str) -> PluginRecord:
        return PluginRecord.model_validate(dict(self.record.methods[kind]))

    @cached_property
    def behind(self) -> float | None:
        """How far the front is behind at most: relative to the bound of each machine, in the `mean` over its layers.

        Some machine of the front is not larger, and costs no more by that part. None: a layer has no bound.
        """
        most = max(behind(self.found, self.front, self.record.objective), default=math.inf)
        return most - 1 if math.isfinite(most) else None

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per point."""
        best = {point.index for point in self.front}
        return [
            {"point": point.index, **point.values}
            | COSTS.data("explore", point)
            | {"gap": point.gap(self.record.objective), "shared_layers": point.shared_layers}
            | {"on_front": point.index in best, "outcome": point.outcome, "reason": point.told}
            for point in self.points
        ]

    def layer_rows(self) -> list[dict[str, Any]]:
        """Return one dict per point and layer, with the values of one execution and its search."""
        return [
            {"point": point.index, **point.values, "layer": layer.name}
            | attributes(layer, "sizes count macs")
            | COSTS.data("explore, layers", result)
            | attributes(result, "lower_bound stop evaluated cpu_seconds binds reason")
            | {"gap": result.gap(self.record.objective), "shared_from": result.shared_from}
            | {"claimed_by": self.claimed_by if result.lower_bound is not None else None}
            | {f"{place}_pj": energy for place, energy in result.places.items()}
            for point in self.points
            for layer, result in point.layers
        ]

    def data(self) -> dict[str, Any]:
        """Return the document that `--json` prints."""
        return ExploreOutput(
            exploration=self.record.key,
            workload=self.record.workload,
            space=self.record.space["name"],
            **attributes(self.record, "size strategy asked"),
            objective=self.record.objective.name,
            points=[ExploredRow(**row) for row in self.rows()],
            error=None if self.failure is None else ErrorData(**self.failure.data()),
        ).data()

    @property
    def plot(self) -> ExplorationPlots:
        """Charts of the report, such as `plot.pareto()`."""
        return ExplorationPlots(self.rows(), self.record.choices)

    def save(self, file: str | Path, *, layers: bool = False) -> Path:
        """Write the rows, or those of all layers, as comma-separated values or Parquet.

        The suffix of the file selects the format. Parquet needs pyarrow.

        Raises:
            InputError: The format is unknown, or pyarrow is not installed.
            OutputError: The file cannot be written.
        """
        rows, path = self.layer_rows() if layers else self.rows(), Path(file)
        columns = list(dict.fromkeys(name for row in rows for name in row)) or ["point"]
        if path.suffix == ".parquet":
            _write_parquet(path, columns, rows)
        elif path.suffix == ".csv":
            write_text(path, csv_text(columns, [dict.fromkeys(columns) | row for row in rows]))
        else:
            raise InputError(f"{path} is called neither {' nor '.join(FORMATS)}", hint=f"such as {path.stem}.csv")
        return path

    def tables(self) -> Sequence[Table | str]:
        points, best, record = self.found, self.front, self.record
        lines: list[Table | str] = [
            f"{record.workload} on {record.space['name']}: {len(self.points):,} of {record.size:,} points tried, "
            f"{len(points):,} with mappings",
            f"  {len(best):,} on the front of energy, cycles and area",
        ]
        if equal := len(front(points)) - len(best):
            lines.append(f"  {equal:,} cost the same as one on the front, with memories of the same size or larger")
        lines += self._proofs()
        lines += [f"  {record.asked - len(self.points):,} were not tried"] if len(self.points) < record.asked else []
        if not (self.is_sweep and best):  # the table of all points has the reasons
            lines += [f"  {count:,} without: {why}" for why, count in self.without()]
        model = claimant(self._plugin("model"))
        if model is not None and any(point.outcome == "bounded" for point in self.points):
            lines.append(f"  the bounds of points that were not searched are claimed by {model}")
        columns: list[Shown[ExploredPoint]] = [
            Shown("point", lambda point: str(point.index)),
            *choice_columns(record.choices, lambda point: point.values),
            *COSTS.shown("explore", lambda point: point, first=record.objective.title),
        ]
        if not best:
            return lines
        if self.is_sweep:
            names = {point.index for point in best}
            marked = [*columns, Shown("front", lambda point: "yes" if point.index in names else "")]
            if any(point.told for point in self.points):
                marked.append(Shown(Column("without figures because", wrapped=True), lambda point: point.told or ""))
            return [*lines, "", Table.of(marked, self.points, "all points, in their order")]
        title = f"the front, least {record.objective} ({record.objective.unit}) first"
        return [*lines, "", Table.of(columns, sorted(best, key=lambda point: point.of(record.objective)), title)]

    def _proofs(self) -> list[str]:
        """Return lines on shared results, on gaps of layers, and on how far the front may be behind."""
        objective, lines = self.record.objective, []
        if shared := sum(point.shared_layers for point in self.found):
            lines.append(f"  {shared:,} of {sum(len(point.layers) for point in self.found):,} mappings were found on other machines; export --layers names them")  # fmt: skip
        asked = float(self._plugin("mapper").options.get("gap") or 0.0)
        if not asked or self.behind is None or self.claimed_by is not None:
            return lines
        best = {point.index for point in self.front}
        for where, points in (
            ("the front", self.front),
            ("other machines", [point for point in self.found if point.index not in best]),
        ):
            layers = [layer for point in points for _, layer in point.layers]
            wide = [layer.gap(objective) or 0.0 for layer in layers if not layer.is_within(asked, objective)]
            told = f"  proved on {where}: {len(layers) - len(wide):,} of {len(layers):,} mappings to {_at_most(asked)}"
            lines.append(f"{told}, the others to {_at_most(max(wide))}" if wide else told)
        return [
            *lines,
            f"  proved of each machine: one of the front is not larger, and its {objective.title} at most {_at_most(self.behind)} above the bound, in the mean of layers",
        ]

    @property
    def is_sweep(self) -> bool:
        """Whether the space has a few points without limits, so that the table shows all of them."""
        return not self.record.space.get("limits") and self.record.size <= SWEEP

    def messages(self) -> list[str]:
        """Return the failures, each once, with the most frequent first."""
        failed = [
            (result.reason or "", f"{layer.name} on point {point.index}")
            for point in self.points
            for layer, result in point.layers
            if result.stop == "failed"
        ]
        first = dict(reversed(failed))
        faults = Counter(reason for reason, _ in failed).most_common()
        lines = [f"error: {first[reason]}: {reason}{_more(count - 1)}" for reason, count in faults[:FAULTS]]
        if len(faults) > FAULTS:
            lines.append(
                f"error: {sum(count for _, count in faults[FAULTS:]):,} further searches failed; -o writes the reasons"
            )
        lines += ["  hint: --retry repeats failed searches"] if lines else []
        return [*lines, *([] if self.failure is None else [f"error: {self.failure}"])]

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *self.messages()])

    def without(self) -> list[tuple[str, int]]:
        """Return pairs (reason for missing values, number of points), the most frequent first."""
        why = Counter(
            _shortly(point.reason) if point.reason else "layers without a mapping"
            for point in self.points
            if not math.isfinite(point.energy_pj)
        )
        return why.most_common()


def _at_most(part: float) -> str:
    """Return a fraction in percent, rounded up."""
    return f"{math.ceil((part - PROOF_TOLERANCE) * 1e4) / 100:g} %"


def _more(count: int) -> str:
    return f" (and of {count:,} others)" if count else ""


def _shortly(reason: str) -> str:
    """Return the source of a refusal without details of one point; reasons are `where: message`."""
    return reason.partition(": ")[0]


def _write_parquet(path: Path, columns: Sequence[str], rows: list[dict[str, Any]]) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError("Parquet files need pyarrow", hint="pip install pyarrow; or write a .csv") from None
    table = pyarrow.table({name: [row.get(name) for row in rows] for name in columns})
    try:
        pyarrow.parquet.write_table(table, path)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error}") from None
