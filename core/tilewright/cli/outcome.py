"""The result of `map`: table, JSON, files."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from tilewright.cli.common import console, figure, percent
from tilewright.errors import InputError
from tilewright.run.configuration import RunConfiguration
from tilewright.run.network import MappedLayer, mapping_file
from tilewright.schema.workload import Workload

if TYPE_CHECKING:
    from rich.console import Console

COLUMNS = ("layer", "count", "MACs", "energy pJ", "cycles", "utilization", "EDP pJ x cycles", "share of energy")


class Outcome:
    """Collects mapped layers, and writes each one's file as soon as it is there."""

    def __init__(self, workload: Workload, method: RunConfiguration, folder: Path | None) -> None:
        self.workload = workload
        self.method = method
        self.folder = folder
        self.layers: list[MappedLayer] = []
        self.files: list[str | None] = []
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"cannot write to {folder}: {error}") from None

    def add(self, layer: MappedLayer) -> None:
        """Take a finished layer; its mapping is on disk when this returns."""
        self.layers.append(layer)
        name = None
        if self.folder is not None and layer.report is not None:
            safe = re.sub(r"[^A-Za-z0-9_.\-]+", "_", layer.name)
            name = f"{len(self.layers):03d}_{safe}.yaml"
            (self.folder / name).write_text(mapping_file(layer, self.method).to_yaml(), encoding="utf-8")
        self.files.append(name)

    def finish(self) -> None:
        """Write `summary.json` and `summary.csv`."""
        if self.folder is None:
            return
        (self.folder / "summary.json").write_text(json.dumps(self.data(), indent=2) + "\n", encoding="utf-8")
        with (self.folder / "summary.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(
                [
                    "layer",
                    "count",
                    "macs",
                    "valid",
                    "energy_pj",
                    "cycles",
                    "edp",
                    "utilization",
                    "evaluated",
                    "stop",
                    "mapping_file",
                ]
            )
            for row in self.data()["layers"]:
                best, how = row["best"], row["search"]
                writer.writerow(
                    [row["name"], row["count"], row["macs"], best["valid"]]
                    + [best[key] for key in ("energy_pj", "cycles", "edp", "utilization")]
                    + [how["evaluated"], how["stop"], best["mapping_file"]]
                )

    @property
    def exit_code(self) -> int:
        """0 when every layer has a mapping; else that of the worst error, or 1."""
        errors = [layer.error.exit_code for layer in self.layers if layer.error is not None]
        if errors:
            return max(errors)
        everything = len(self.layers) == len(self.workload.distinct())
        return 0 if everything and all(layer.report is not None for layer in self.layers) else 1

    def messages(self) -> list[str]:
        """What the person should know beside the figures."""
        found = []
        name = self.method.constraints.name
        free = [layer.name for layer in self.layers if not layer.constrained]
        if free:
            found.append(f"constraints '{name}' say nothing of such problems, mapped without: {', '.join(free)}")
        for layer in self.layers:
            if layer.error is not None:
                found.append(f"error: {layer.name}: {layer.error}")
            elif layer.report is None and layer.result is not None:
                result = layer.result
                found.append(
                    f"no valid mapping found for {layer.name}: {result.evaluated:,} tried, stopped by {result.stop}; "
                    "try more --evaluations, or other --constraints"
                )
            found.extend(f"warning: {warning}" for warning in layer.warnings)
        missing = len(self.workload.distinct()) - len(self.layers)
        if missing:
            found.append(f"interrupted: {missing} of {len(self.workload.distinct())} distinct layers were not searched")
        if self.folder is not None:
            found.append(f"written to {self.folder}")
        return found

    def data(self) -> dict[str, Any]:
        """The JSON document of `map --json` and `summary.json`."""
        method = self.method
        totals = self._totals()
        return {
            "schema_version": 1,
            "workload": self.workload.name,
            "arch": method.architecture.name,
            "constraints": method.constraints.name,
            "mapper": method.mapper_record.name,
            "model": method.model.record.name,
            "objective": method.objective,
            "seed": method.seed,
            "layers": [self._layer(layer, file) for layer, file in zip(self.layers, self.files, strict=True)],
            "unmapped": [
                {"name": each.name, "operator": each.operator, "reason": each.reason, "operations": each.operations}
                for each in self.workload.unmapped
            ],
            "totals": totals,
        }

    def _layer(self, layer: MappedLayer, file: str | None) -> dict[str, Any]:
        report, result = layer.report, layer.result
        return {
            "name": layer.name,
            "layers": list(layer.distinct.layers),
            "count": layer.count,
            "macs": layer.distinct.problem.macs,
            "best": {
                "valid": report is not None,
                "cycles": report.cycles if report else None,
                "energy_pj": report.energy_pj if report else None,
                "edp": report.edp if report else None,
                "utilization": report.utilization if report else None,
                "mapping_file": file,
            },
            "search": {
                "evaluated": result.evaluated if result else 0,
                "valid": result.valid if result else 0,
                "rejected": result.rejected if result else 0,
                "cpu_seconds": result.cpu_seconds if result else 0.0,
                "wall_seconds": result.wall_seconds if result else 0.0,
                "stop": result.stop if result else "failed",
                "lower_bound": result.lower_bound if result else None,
                "gap": result.gap if result else None,
                "figures": result.figures if result else {},
                "cached": layer.cached,
            },
            "error": None if layer.error is None else str(layer.error),
        }

    def _totals(self) -> dict[str, Any]:
        """Sums over all layers, each as often as it occurs; absent while a layer has no mapping."""
        macs = sum(layer.distinct.problem.macs * layer.count for layer in self.layers)
        if not self.layers or any(layer.report is None for layer in self.layers):
            return {"macs": macs, "cycles": None, "energy_pj": None, "edp": None}
        cycles = sum((layer.report.cycles or 0) * layer.count for layer in self.layers if layer.report)
        energy = sum((layer.report.energy_pj or 0.0) * layer.count for layer in self.layers if layer.report)
        return {"macs": macs, "cycles": cycles, "energy_pj": energy, "edp": energy * cycles}

    def print(self) -> None:
        """The table for people."""
        out = console()
        method, totals = self.method, self._totals()
        title = (
            f"{self.workload.name} on {method.architecture.name} (constraints {method.constraints.name}), "
            f"mapper {method.mapper_record.name}, model {method.model.record.name}"
        )
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        for index, column in enumerate(COLUMNS):
            table.add_column(column, justify="left" if index == 0 else "right")
        wide = out.width >= 120
        if wide:
            table.add_column("dimensions longer than 1")
        for layer in self.layers:
            report = layer.report
            energy = None if report is None or report.energy_pj is None else report.energy_pj
            table.add_row(
                layer.name,
                str(layer.count),
                figure(layer.distinct.problem.macs),
                figure(energy),
                figure(report.cycles if report else None),
                figure(report.utilization if report else None, 3),
                figure(report.edp if report else None),
                percent((energy or 0.0) * layer.count, totals["energy_pj"] or 0.0),
                *([layer.distinct.problem.long_dimensions] if wide else []),
            )
        table.add_section()
        table.add_row(
            "total", str(sum(layer.count for layer in self.layers)), figure(totals["macs"]), figure(totals["energy_pj"]),
            figure(totals["cycles"]), "", figure(totals["edp"]), "",
        )  # fmt: skip
        out.print(table)
        self._print_unmapped(out)
        cached = [layer.name for layer in self.layers if layer.cached]
        if cached:
            which = "all layers" if len(cached) == len(self.layers) else ", ".join(cached)
            out.print(f"from the cache, not searched again (--no-cache would): {which}")
        searched = [layer.result for layer in self.layers if layer.result and not layer.cached]
        evaluated = sum(result.evaluated for result in searched)
        seconds = sum(result.wall_seconds for result in searched)
        if seconds:
            out.print(f"{evaluated:,} mappings priced in {seconds:.1f} s ({evaluated / seconds:,.0f} per second)")

    def _print_unmapped(self, out: Console) -> None:
        """Operators that are not mapped, by kind, with their share of all scalar operations."""
        if not self.workload.unmapped:
            return
        groups: dict[tuple[str, str], list[int | None]] = {}
        for each in self.workload.unmapped:
            groups.setdefault((each.operator, each.reason), []).append(each.operations)
        known = Counter({key: sum(n or 0 for n in values) for key, values in groups.items()})
        work = sum(known.values()) + self.workload.macs
        table = Table(title="not mapped", title_justify="left", box=None, pad_edge=False)
        for column in ("operator", "count", "share of work", "reason"):
            table.add_column(column, justify="right" if column in ("count", "share of work") else "left")
        for (operator, reason), operations in known.most_common():
            unknown = any(n is None for n in groups[operator, reason])
            share = "unknown" if unknown else percent(operations, work) if operations else "none"
            table.add_row(operator, str(len(groups[operator, reason])), share, reason)
        out.print(table)
