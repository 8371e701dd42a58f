"""Charts of results, by kind: energy, latency, roofline, Pareto front, convergence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from statistics import geometric_mean, median
from typing import Any, ClassVar

from tilewright.application.drawing.charts import RooflinePoint, bars, convergence, grouped, roofline, sweep
from tilewright.application.drawing.drawing import Drawing
from tilewright.application.drawing.fronts import Panel, ScatterPanel, fronts, pareto, scatter
from tilewright.application.drawing.timeline import Work, timeline
from tilewright.errors import InputError
from tilewright.formats import common_unit
from tilewright.reports import Report
from tilewright.reports.costs import COSTS
from tilewright.reports.parts import Limit
from tilewright.schema.objective import Objective

Rows = Sequence[Mapping[str, Any]]


def _named(layer: Mapping[str, Any]) -> str:
    """Return the name of a layer; with that of its weights, if the network's file only numbers its operators."""
    origin = (layer.get("origins") or {}).get(layer["name"]) or {}
    return f"{layer['name']} {weights}" if (weights := origin.get("weights")) else str(layer["name"])


@dataclass(frozen=True)
class NetworkPlots:
    """Charts of mapped layers.

    `data` is the JSON document of `map --json`, and `kinds` the names of the charts.
    """

    data: Mapping[str, Any]
    kinds: ClassVar[tuple[str, ...]] = ("energy", "latency", "roofline", "convergence")

    @cached_property
    def mapped(self) -> Rows:
        """Layers that have a mapping."""
        return [layer for layer in self.data["layers"] if layer["best"]["valid"]]

    @cached_property
    def energy_unit(self) -> tuple[float, str]:
        """Number of pJ in the unit of all energies, and its name."""
        energies = [layer["best"]["energy_pj"] for layer in self.mapped]
        return common_unit(
            [*energies, *(energy * layer["count"] for energy, layer in zip(energies, self.mapped, strict=True))], "pJ"
        )

    @property
    def _names(self) -> list[str]:
        return [_named(layer) + (f" x{layer['count']}" if layer["count"] > 1 else "") for layer in self.mapped]

    def _stacked(self, title: str, parts: Sequence[Mapping[str, float]], unit: str) -> Drawing:
        """Return bars of the parts of each layer; all executions count."""
        series = list(dict.fromkeys(name for part in parts for name in part))
        values = [
            [part.get(name, 0.0) * layer["count"] for name in series]
            for part, layer in zip(parts, self.mapped, strict=True)
        ]
        return bars(title, self._names, series, values, unit)

    def energy(self) -> Drawing:
        """Return the energy by layer and component, of all executions of each layer."""
        step, unit = self.energy_unit
        parts: list[dict[str, float]] = []
        for layer in self.mapped:
            parts.append({})
            for row in layer["energy"] or [{"level": "energy", "energy_pj": layer["best"]["energy_pj"]}]:
                parts[-1][row["level"]] = parts[-1].get(row["level"], 0.0) + row["energy_pj"] / step
        return self._stacked("energy by layer and component", parts, unit)

    def latency(self) -> Drawing:
        """Return the cycles by layer and by the limit that binds them, of all executions of each layer."""
        parts = [
            {
                Limit.model_validate(limit).title: float(limit["binding_cycles"])
                for limit in layer["limits"]
                if limit["binding_cycles"]
            }
            or {"cycles": float(layer["best"]["cycles"])}
            for layer in self.mapped
        ]
        return self._stacked("cycles by layer and by what they wait for", parts, "cycles")

    @cached_property
    def compute_units(self) -> float:
        """Number of compute units, derived from the utilization of the layers; 0 if no layer has one."""
        busy = [layer for layer in self.mapped if layer["best"]["utilization"]]
        units = (layer["macs"] / (layer["best"]["utilization"] * layer["best"]["cycles"]) for layer in busy)
        return round(max(units, default=0.0), 6)

    def port(self, layer: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the busiest port of the outermost memory, or None if the model reports no ports."""
        if roofline := layer.get("roofline"):  # runs of earlier versions, and evaluations, have none
            return roofline if roofline["words"] else None
        places = dict.fromkeys(row["level"] for other in self.mapped for row in other["energy"])
        ports = [limit for limit in layer["limits"] if limit["action"] != "compute" and limit["words"]]
        first = next((place for place in places if any(port["name"] == place for port in ports)), None)
        limits = [port for port in ports if port["name"] == first]
        return max(limits, key=lambda limit: float(limit["words"]), default=None)

    def roofline(self) -> Drawing:
        """Return MACs per cycle over MACs per word of the outermost memory's busiest port."""
        pairs = [(layer, port) for layer in self.mapped if (port := self.port(layer)) is not None]
        points = [
            RooflinePoint(_named(layer), layer["macs"] / port["words"], layer["macs"] / layer["best"]["cycles"])
            for layer, port in pairs
        ]
        rates = [port["words_per_cycle"] for _, port in pairs if port["words_per_cycle"]]
        return roofline("roofline", points if self.compute_units else [], self.compute_units, max(rates, default=None))

    def convergence(self) -> Drawing:
        """Return the best value of each search over the number of evaluated mappings."""
        histories = {_named(layer): layer["search"]["history"] for layer in self.mapped}
        search = self.mapped[0]["search"] if len(self.mapped) == 1 else {}
        bound, claimed_by = search.get("lower_bound"), search.get("claimed_by")
        return convergence(
            "convergence of the searches", histories, Objective.named(self.data["objective"]).unit, bound, claimed_by
        )


@dataclass(frozen=True)
class UnitPlots(NetworkPlots):
    """Charts of a network on several units."""

    kinds: ClassVar[tuple[str, ...]] = (*NetworkPlots.kinds, "timeline")

    def timeline(self) -> Drawing:
        """Return when each layer runs on its unit, with units in parallel."""
        bars = [*self.data["timeline"], *self.data.get("ports", ())]  # older files have no ports
        step, unit = common_unit([float(bar["end"]) for bar in bars], "cycles")
        work = [
            Work(
                bar["unit"],
                bar["name"],
                bar["start"] / step,
                bar["end"] / step,
                f", the first of {bar['count']:,} executions" if bar["count"] > 1 else "",
            )
            for bar in bars
        ]
        return timeline("units and ports over time", work, unit)


def network_plots(data: Mapping[str, Any]) -> NetworkPlots:
    """Return the charts of a mapped network; a time line only if several units are known to work."""
    return UnitPlots(data) if data.get("timeline") else NetworkPlots(data)


@dataclass(frozen=True)
class ReportPlots(NetworkPlots):
    """Charts of reports of an evaluation, with a row each."""

    kinds: ClassVar[tuple[str, ...]] = ("energy", "latency", "roofline")


@dataclass(frozen=True)
class ComparisonPlots:
    """Charts of a comparison. `data` is the JSON document of `compare --json`."""

    data: Mapping[str, Any]
    kinds: ClassVar[tuple[str, ...]] = ("objective", "energy", "latency")

    def _values(
        self, of: Callable[[Mapping[str, Any]], float | None]
    ) -> tuple[list[str], list[str], list[list[float | None]]]:
        """Return layers, series and numbers[layer][series]. A series is a mapper, and what else differs.

        A model that refuses a mapping has no number. Layers and series without numbers are left out.
        """
        rows = self.data["rows"]
        guides = {row["guide"] for row in rows}
        models = {price["model"] for row in rows for price in row["prices"] if of(price) is not None}
        known: dict[tuple[str, str], float] = {}
        for row in rows:
            for price in row["prices"]:
                name = row["mapper"] + (f" under {row['guide']}" if len(guides) > 1 else "")
                name += f" by {price['model']}" if len(models) > 1 else ""
                value = of(price)
                if value is not None:
                    known[row["layer"], name] = value
        layers, series = (list(dict.fromkeys(key[side] for key in known)) for side in (0, 1))
        return layers, series, [[known.get((layer, name)) for name in series] for layer in layers]

    def _bars(self, title: str, key: str, unit: str) -> Drawing:
        layers, series, values = self._values(lambda price: price[key])
        step, unit = common_unit([value for row in values for value in row if value is not None], unit)
        scaled = [[None if value is None else value / step for value in row] for row in values]
        return bars(title, layers, series, scaled, unit, stacked=False)

    def objective(self) -> Drawing:
        """Return the objective of each best mapping as a multiple of the layer's least, with geometric means."""
        objective = Objective.named(self.data["objective"])

        def value(price: Mapping[str, Any]) -> float | None:
            known = price["energy_pj"] is not None and price["cycles"] is not None
            return objective.value(price["energy_pj"], price["cycles"]) if known else None

        layers, series, values = self._values(value)
        least = [min(number for number in row if number is not None) or 1.0 for row in values]
        ratios: list[list[float | None]] = [
            [None if number is None else number / best for number in row]
            for row, best in zip(values, least, strict=True)
        ]
        if len(layers) > 1:
            columns = [[row[at] for row in ratios] for at in range(len(series))]
            layers = [*layers, "geomean"]
            ratios.append([geometric_mean([n or 0.0 for n in column]) if all(column) else None for column in columns])
        title = f"{objective.title} by layer and mapper, in multiples of the layer's least"
        return grouped(title, layers, series, ratios, f"{objective.title}, times the least", 1.0)

    def energy(self) -> Drawing:
        """Return the energy of each best mapping, with a bar for each mapper; what has no figures is left out."""
        return self._bars("energy by layer and mapper", "energy_pj", "pJ")

    def latency(self) -> Drawing:
        """Return the cycles of each best mapping, with a bar for each mapper."""
        return self._bars("cycles by layer and mapper", "cycles", "cycles")


@dataclass(frozen=True)
class CorrelationPlots:
    """Chart of correlated cost models. `data` is the JSON document of `correlate --json`."""

    data: Mapping[str, Any]
    kinds: ClassVar[tuple[str, ...]] = ("scatter",)

    def scatter(self) -> Drawing:
        """Return a panel per pair of models: the objective of each mapping, as a multiple of its layer's median."""
        panels = []
        for first, second in combinations(self.data["models"], 2):
            points: list[tuple[float, float]] = []
            for layer in self.data["layers"]:
                one, other = (layer["points"].get(model, ()) for model in (first, second))
                both = [(a, b) for a, b in zip(one, other, strict=False) if a and b]
                if both:
                    middle = [median(values) for values in zip(*both, strict=True)]
                    points += [(a / middle[0], b / middle[1]) for a, b in both]
            panels.append(ScatterPanel(first, second, points))
        objective = Objective.named(self.data["objective"])
        return scatter(f"{objective.title} under pairs of cost models, in multiples of the layer's median", panels)


@dataclass(frozen=True)
class CalibrationPlots:
    """Chart of predicted and measured cycles. `data` is the JSON document of `calibrate --json`."""

    data: Mapping[str, Any]
    kinds: ClassVar[tuple[str, ...]] = ("scatter",)

    def scatter(self) -> Drawing:
        """Return panels of predicted over measured cycles: as given, fitted, unseen and, if there are any, of the test."""
        rows = self.data["predictions"]
        sets = [
            ("as given", "given", False), ("fitted", "fitted", False), ("unseen", "unseen", False),
            ("test as given", "given", True), ("test fitted", "fitted", True),
        ]  # fmt: skip
        panels = []
        for name, key, test in sets:
            points = [(row["measured"], row[key]) for row in rows if row["test"] == test and row[key] is not None]
            panels += [ScatterPanel("measured cycles", f"cycles, {name}", points)] if points else []
        title = f"predicted and measured cycles of {self.data['arch']} under {self.data['model']}"
        return scatter(title, panels, "on the line both are equal")


@dataclass(frozen=True)
class FrontPlots:
    """Chart of the Pareto fronts of layers. `data` is the JSON document of `map --pareto --json`."""

    data: Mapping[str, Any]
    kinds: ClassVar[tuple[str, ...]] = ("pareto",)

    def pareto(self) -> Drawing:
        """Return energy over cycles of the Pareto-optimal mappings, a panel for each layer."""
        panels = []
        for layer in self.data["layers"]:
            points = layer["points"]
            step, unit = common_unit([point["energy_pj"] for point in points], "pJ")
            places = [(float(point["cycles"]), point["energy_pj"] / step) for point in points]
            panels.append(Panel(layer["name"], "cycles", f"energy, {unit}", places, [True] * len(places)))
        return pareto("Pareto fronts of the layers", panels, "the Pareto-optimal mappings")


def figures_of(points: Rows) -> list[tuple[str, list[float]]]:
    """Return (name with unit, values) of energy, cycles and, if all are known, area of explored points."""
    figures = []
    for figure in COSTS.view("axes").values():
        values = [float(figure.cell(point) or 0) for point in points]
        step, unit = common_unit(values, figure.column.unit)
        if all(figure.value(point) is not None for point in points):
            figures.append((f"{figure.column.name}{unit and f', {unit}'}", [value / step for value in values]))
    return figures


@dataclass(frozen=True)
class ExplorationPlots:
    """Charts of an exploration. `rows` are those of its report, and `choices` the names of what varies."""

    rows: Rows
    choices: Sequence[str] = ()

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the charts. One or two varied fields have a chart of lines."""
        return {1: ("sweep", "pareto"), 2: ("pareto", "sweep")}.get(len(self.choices), ("pareto",))

    def sweep(self) -> Drawing:
        """Return energy, cycles and area, if known, over the values of the first choice, with a line for each of the second."""
        if not 1 <= len(self.choices) <= 2:
            raise InputError(
                f"a sweep has one or two varied fields, not {len(self.choices)}", hint="draw --kind pareto"
            )
        first, *others = self.choices
        values = list(dict.fromkeys(row[first] for row in self.rows))
        lines = list(dict.fromkeys(row[others[0]] if others else "" for row in self.rows))
        panels = []
        for figure in COSTS.view("axes").values():
            known = [row for row in self.rows if row[figure.key] is not None]
            step, unit = common_unit([float(figure.cell(row) or 0) for row in known], figure.column.unit)
            cells = {
                (row[first], row[others[0]] if others else ""): float(figure.cell(row) or 0) / step for row in known
            }
            if known and any(cells.values()):
                label = f"{figure.column.name}{unit and f', {unit}'}"
                panels.append(
                    (label, {_told(others, line): [cells.get((value, line)) for value in values] for line in lines})
                )
        title = f"figures over {first}" + (f" and {others[0]}" if others else "")
        return sweep(title, first, [_value(value) for value in values], panels)

    def pareto(self) -> Drawing:
        """Return the points in energy, cycles and area, two at a time, each with the front of these two."""
        points = [row for row in self.rows if row["energy_pj"] is not None]
        axes = figures_of(points)
        chosen = [bool(point["on_front"]) for point in points]
        names = [str(point["point"]) if point["on_front"] else "" for point in points]
        pairs = [(one, other) for at, one in enumerate(axes) for other in axes[at + 1 :]]
        panels = [
            Panel("", one, other, list(zip(xs, ys, strict=True)), chosen, names) for (one, xs), (other, ys) in pairs
        ]
        return pareto("Pareto front of the exploration", panels, "Pareto-optimal in all quantities at once")


def fronts_of(runs: Mapping[str, FrontPlots | ExplorationPlots]) -> Drawing:
    """Return the Pareto fronts of several runs by name: of `map --pareto`, with a panel for each layer, or of explorations.

    Raises:
        InputError: The runs are of both kinds, or have no points.
    """
    names, all_of_them = list(runs), list(runs.values())
    panels: list[tuple[Panel, list[int]]] = []
    if all(isinstance(run, FrontPlots) for run in all_of_them):
        points = [
            (layer["name"], owner, float(point["cycles"]), point["energy_pj"])
            for owner, run in enumerate(all_of_them)
            if isinstance(run, FrontPlots)
            for layer in run.data["layers"]
            for point in layer["points"]
        ]
        for name in dict.fromkeys(point[0] for point in points):
            group = [point[1:] for point in points if point[0] == name]
            step, unit = common_unit([energy for _, _, energy in group], "pJ")
            places = [(cycles, energy / step) for _, cycles, energy in group]
            panel = Panel(name, "cycles", f"energy, {unit}", places, [True] * len(places))
            panels.append((panel, [owner for owner, _, _ in group]))
    elif all(isinstance(run, ExplorationPlots) for run in all_of_them):
        rows = [
            (owner, row)
            for owner, run in enumerate(all_of_them)
            if isinstance(run, ExplorationPlots)
            for row in run.rows
            if row["energy_pj"] is not None
        ]
        axes = figures_of([row for _, row in rows])
        for (one, xs), (other, ys) in combinations(axes, 2):
            panel = Panel("", one, other, list(zip(xs, ys, strict=True)), [True] * len(rows))
            panels.append((panel, [owner for owner, _ in rows]))
    else:
        raise InputError(
            "these runs have other charts", hint="give folders of `map --pareto -o`, or stores of `explore`"
        )
    return fronts(f"Pareto fronts of {', '.join(names)}", names, panels)


def _value(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:,.10g}"


def _told(others: Sequence[str], value: Any) -> str:
    """Return the label of a line: field and value, or nothing for the only line."""
    return f"{others[0]} {_value(value)}" if others else ""


def report_plots(reports: Iterable[tuple[str, Report]]) -> ReportPlots:
    """Return the charts of evaluated reports, each with a name."""
    layers = [
        {"name": name, "count": 1, "macs": report.macs, "best": {"valid": report.valid} | COSTS.data("json", report)}
        | {"energy": report.rows(), "limits": [limit.model_dump() for limit in report.limits]}
        for name, report in reports
    ]
    return ReportPlots({"layers": layers})
