"""The result of `compare`: table, JSON, CSV, mapping files."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from tilewright.cli.common import console, figure
from tilewright.errors import InputError, Reason
from tilewright.run.evaluation import BuiltModel
from tilewright.run.network import mapping_file
from tilewright.run.sweep import SweepPoint, SweepRow
from tilewright.schema.report import Objective, Report
from tilewright.schema.workload import Workload

FIGURES: dict[Objective, tuple[str, str]] = {
    "edp": ("edp", "EDP pJ x cycles"),
    "energy": ("energy_pj", "energy pJ"),
    "cycles": ("cycles", "cycles"),
}
"""Objective -> field of a report, and its name with the unit."""
COLUMNS = (
    "layer", "count", "macs", "mapper", "guide", "model", "valid", "energy_pj", "cycles", "edp", "utilization",
    "evaluated", "wall_seconds", "stop", "mapping_file", "reason",
)  # fmt: skip


class Standing:
    """Collects cells, and writes each one's mapping as soon as it is there."""

    def __init__(
        self,
        workload: Workload,
        arch: str,
        objective: Objective,
        contenders: Sequence[SweepPoint],
        judges: Sequence[BuiltModel],
        folder: Path | None,
    ) -> None:
        self.workload, self.arch, self.objective = workload, arch, objective
        self.contenders, self.judges, self.folder = contenders, judges, folder
        self.cells: list[SweepRow] = []
        self.files: list[str | None] = []
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"cannot write to {folder}: {error}") from None

    def add(self, cell: SweepRow) -> None:
        """Take a cell; its mapping is on disk when this returns."""
        self.cells.append(cell)
        name, contender = None, cell.point
        if self.folder is not None and cell.layer.report is not None and contender.configuration is not None:
            words = (f"{len(self.cells):03d}", cell.layer.name, contender.mapper, contender.model)
            name = "_".join(re.sub(r"[^A-Za-z0-9.\-]+", "_", word) for word in words) + ".yaml"
            text = mapping_file(cell.layer, contender.configuration).to_yaml()
            (self.folder / name).write_text(text, encoding="utf-8")
        self.files.append(name)

    @property
    def missing(self) -> int:
        """Searches that were not made."""
        return len(self.contenders) * len(self.workload.distinct()) - len(self.cells)

    @property
    def exit_code(self) -> int:
        """0 when everything was tried and something found; refusals are results."""
        return 0 if not self.missing and any(cell.reports for cell in self.cells) else 1

    def finish(self) -> None:
        """Write `compare.json` and `compare.csv`."""
        if self.folder is None:
            return
        (self.folder / "compare.json").write_text(json.dumps(self.data(), indent=2) + "\n", encoding="utf-8")
        with (self.folder / "compare.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            for row in self.data()["rows"]:
                shared = {key: row[key] for key in ("layer", "count", "macs", "mapper", "guide", "mapping_file")}
                shared |= {key: row["search"][key] for key in ("evaluated", "wall_seconds", "stop")}
                nothing = [{"model": row["guide"], "valid": False, "reasons": row["reasons"]}]
                for price in row["prices"] or nothing:
                    reason = "; ".join(str(Reason(**each)) for each in price["reasons"])
                    figures = {key: price[key] for key in COLUMNS if key in price}
                    writer.writerow(shared | figures | {"reason": reason})

    def messages(self) -> list[str]:
        """What the person should know beside the figures."""
        found = [f"warning: {name}: {warning}" for name, warning in self._warnings()]
        if self.missing:
            total = self.missing + len(self.cells)
            found.append(f"interrupted: {self.missing} of {total} searches were not made")
        if self.folder is not None:
            found.append(f"written to {self.folder}")
        return found

    def _warnings(self) -> list[tuple[str, str]]:
        """(model or mapper, text), once for all that differ in numbers only."""
        said = [(cell.point.mapper, text) for cell in self.cells for text in cell.layer.warnings]
        said += [(price.model, text) for cell in self.cells for price in cell.reports for text in price.warnings]
        alike: dict[tuple[str, str], dict[str, None]] = {}
        for name, text in said:
            alike.setdefault((name, re.sub(r"[\d,.]+", "#", text)), {})[text] = None
        return [
            (name, next(iter(texts)) + (f" (and {len(texts) - 1} like it)" if len(texts) > 1 else ""))
            for (name, _), texts in alike.items()
        ]

    def data(self) -> dict[str, Any]:
        """The JSON document of `compare --json` and `compare.json`."""
        return {
            "schema_version": 1,
            "workload": self.workload.name,
            "arch": self.arch,
            "objective": self.objective,
            "mappers": list(dict.fromkeys(contender.mapper for contender in self.contenders)),
            "models": [judge.name for judge in self.judges],
            "complete": not self.missing,
            "rows": [self._row(cell, file) for cell, file in zip(self.cells, self.files, strict=True)],
        }

    def _row(self, cell: SweepRow, file: str | None) -> dict[str, Any]:
        result = cell.layer.result
        return {
            "layer": cell.layer.name,
            "layers": list(cell.layer.distinct.layers),
            "count": cell.layer.count,
            "macs": cell.layer.distinct.problem.macs,
            "mapper": cell.point.mapper,
            "guide": cell.point.model,
            "valid": bool(cell.reports),
            "reasons": [reason.model_dump(mode="json") for reason in cell.reasons],
            "mapping_file": file,
            "search": {
                "evaluated": result.evaluated if result else 0,
                "valid": result.valid if result else 0,
                "wall_seconds": result.wall_seconds if result else 0.0,
                "stop": result.stop if result else "failed",
                "lower_bound": result.lower_bound if result else None,
                "gap": result.gap if result else None,
            },
            "prices": [
                price.model_dump(
                    mode="json",
                    include={"valid", "reasons", "warnings", "energy_pj", "cycles", "edp", "utilization"},
                )
                | {"model": judge.name}
                for judge, price in zip(self.judges, cell.reports, strict=False)
            ],
        }

    def print(self) -> None:
        """The table for people: a row per layer, guide and mapper; per model the figure and how far from the best."""
        out, name = console(), FIGURES[self.objective][1]
        title = (
            f"{self.workload.name} on {self.arch}: {name}; in brackets, how many times the layer's best by that model"
        )
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        for column in ("layer", "guided by", "mapper"):
            table.add_column(column)
        for judge in self.judges:
            table.add_column(f"by {judge.name}", justify="right")
        table.add_column("seconds", justify="right")
        table.add_column("remarks")
        notes: dict[str, int] = {}
        for layer in dict.fromkeys(cell.layer.name for cell in self.cells):
            rows = [cell for cell in self.cells if cell.layer.name == layer]
            bests = [min((self._value(cell, n) for cell in rows), default=math.inf) for n in range(len(self.judges))]
            for number, cell in enumerate(rows):
                table.add_row(layer if number == 0 else "", *self._texts(cell, bests, notes))
            table.add_section()
        out.print(table)
        for text, mark in notes.items():
            out.print(f"  {mark}  {text}")

    def _texts(self, cell: SweepRow, bests: Sequence[float], notes: dict[str, int]) -> list[str]:
        """The words of a row; remarks are numbers of notes."""
        prices = []
        for number, best in enumerate(bests):
            value = self._value(cell, number)
            prices.append("-" if math.isinf(value) else f"{figure(value)} ({value / best if best else 1:.2f})")
        seconds = "-" if cell.layer.result is None else f"{cell.layer.result.wall_seconds:.1f}"
        marks = [str(notes.setdefault(text, len(notes) + 1)) for text in self._remarks(cell)]
        return [cell.point.model, cell.point.mapper, *prices, seconds, " ".join(marks)]

    def _value(self, cell: SweepRow, judge: int) -> float:
        """The objective by one judge; inf where there is none."""
        price: Report | None = cell.reports[judge] if cell.reports else None
        value = None if price is None or not price.valid else getattr(price, FIGURES[self.objective][0])
        return math.inf if value is None else float(value)

    def _remarks(self, cell: SweepRow) -> list[str]:
        """Why there is no mapping, and who refuses to price it."""
        found = [f"{reason.message} [{reason.code}]" for reason in cell.reasons]
        for judge, price in zip(self.judges, cell.reports, strict=False):
            found += [f"{judge.name}: {reason}" for reason in price.reasons]
        return found
