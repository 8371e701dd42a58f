"""Experiments of papers: what each measures, what the paper claims, and how its rows become tables and a chart."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tilewright as tw
from tilewright.schema.objective import ObjectiveName
from tilewright.schema.problem import Problem

Row = dict[str, Any]
"""One line of an experiment's CSV file; all values are text once it is read."""


@dataclass(frozen=True)
class Run:
    """How to measure: with the small budgets or the full ones, and the store of explorations."""

    quick: bool
    store: Path

    def pick(self, quick: Any, full: Any) -> Any:
        return quick if self.quick else full


@dataclass(frozen=True)
class Chart:
    """Lines over one axis; `log` names the logarithmic axes."""

    x: str
    y: str
    curves: Mapping[str, tuple[Sequence[Any], Sequence[float]]]
    log: str = ""
    points: bool = False
    """Points without lines."""


@dataclass(frozen=True)
class Experiment:
    """One figure or table of a paper.

    Attributes:
        claim: What the paper states.
        reason: Why our figures differ from it, or cannot be compared.
        omits: Budgets and layers that only the full run has.
        measure: Gives the rows.
        show: Gives Markdown blocks from the rows, as read from the CSV file.
        chart: Gives the plot from the rows.
        extra: An optional module that it imports, and the extra that installs it.
    """

    name: str
    paper: str
    part: str
    title: str
    claim: str
    reason: str
    omits: str
    measure: Callable[[Run], Iterable[Row]]
    show: Callable[[list[Row]], Iterable[str]]
    chart: Callable[[list[Row]], Chart]
    extra: tuple[str, str] | None = None

    @property
    def missing(self) -> str:
        """What to install before this experiment runs; empty if nothing is missing."""
        if self.extra is None or find_spec(self.extra[0]) is not None:
            return ""
        return f"it needs {self.extra[0]}: pip install '.[{self.extra[1]}]'"


@dataclass(frozen=True)
class Tool:
    """A mapper under the name that the paper gives it."""

    label: str
    mapper: str
    options: Mapping[str, Any] = field(default_factory=dict)
    ends: bool = True
    """Whether it ends soon itself; limits on the number of mappings are for others."""


def searched(
    run: Run,
    layers: Mapping[str, Any],
    arch: Any,
    tools: Sequence[Tool],
    *,
    constraints: Any = "none",
    objective: ObjectiveName = "edp",
    model: str = "timeloop",
    evaluations: int | None = None,
    seconds: float | None = None,
) -> Iterator[Row]:
    """Search each layer with each tool, and give one row per search.

    Raises:
        KeyboardInterrupt: A search was interrupted. Finished ones are in the cache.
    """
    for label, layer in layers.items():
        for tool in tools:
            report = tw.map(
                layer, arch, mapper=tool.mapper, mapper_options=dict(tool.options) or None, model=model, objective=objective,
                constraints=constraints, evaluations=None if tool.ends else evaluations, seconds=seconds, progress=False,
            )  # fmt: skip
            (mapped,) = report.layers
            if mapped.interrupted:
                raise KeyboardInterrupt
            result = mapped.result
            yield {
                "layer": label,
                "tool": tool.label,
                "edp": mapped.edp,
                "energy_pj": mapped.energy_pj,
                "cycles": mapped.cycles,
                "utilization": mapped.utilization,
                "evaluated": None if result is None else result.evaluated,
                "stop": str(mapped.error).splitlines()[0] if mapped.error else result and result.stop,
                "cpu_seconds": None if result is None else round(result.cpu_seconds, 3),
            }


def problems(workload: str, names: Sequence[str] | None = None) -> dict[str, Problem]:
    """Layers of a library workload by name, all or some."""
    layers = {layer.problem.name: layer.problem for layer in tw.load(workload, kind="workload").layers}
    return layers if names is None else {name: layers[name] for name in names}


# -- from rows to text ---------------------------------------------------------------------------------------------


def number(row: Row, column: str) -> float:
    """A cell as a number; nan if it is empty."""
    return float(row[column]) if row.get(column) not in (None, "") else math.nan


def shown(value: object) -> str:
    """A cell of a table."""
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def table(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Markdown. Cells have no padding, since some tables have fifteen columns."""
    lines = [f"|{'|'.join(columns)}|", f"|{'---|' * len(columns)}"]
    return "\n".join([*lines, *(f"|{'|'.join(map(shown, row))}|" for row in rows)])


def distinct(rows: Iterable[Row], column: str) -> list[str]:
    return list(dict.fromkeys(row[column] for row in rows))


def geomean(values: Iterable[float]) -> float:
    """Over the numbers that are none of nan; nan of nothing."""
    known = [math.log(value) for value in values if not math.isnan(value)]
    return math.exp(sum(known) / len(known)) if known else math.nan


def ratios(rows: Sequence[Row], value: str, base: str | None = None) -> dict[tuple[str, str], float]:
    """(layer, tool) -> value over that of tool `base`, or over the layer's least."""
    cells = {(row["layer"], row["tool"]): number(row, value) for row in rows}
    shares = {}
    for (layer, tool), cell in cells.items():
        mine = [other for (name, _), other in cells.items() if name == layer and not math.isnan(other)]
        over = min(mine, default=math.nan) if base is None else cells.get((layer, base), math.nan)
        shares[layer, tool] = cell / over
    return shares


def compared(rows: Sequence[Row], value: str, what: str, base: str | None = None) -> str:
    """Table of layers by tools: the value over the layer's least (or over `base`), then geometric mean and CPU time."""
    layers, tools, cells = distinct(rows, "layer"), distinct(rows, "tool"), ratios(rows, value, base)
    lines: list[list[object]] = [[layer, *(cells.get((layer, tool), math.nan) for tool in tools)] for layer in layers]
    means: list[object] = [geomean(cells.get((layer, tool), math.nan) for layer in layers) for tool in tools]
    seconds: list[object] = [
        sum(number(row, "cpu_seconds") for row in rows if row["tool"] == tool and number(row, "cpu_seconds") >= 0)
        for tool in tools
    ]
    lines += [["geometric mean", *means], ["CPU s, all layers", *seconds]]
    return table([what, *tools], lines)


def by_tool(rows: list[Row], value: str = "edp", y: str = "EDP / least of the layer", base: str | None = None) -> Chart:
    """One curve per tool over the layers."""
    layers, cells = distinct(rows, "layer"), ratios(rows, value, base)
    curves = {
        tool: (layers, [cells.get((layer, tool), math.nan) for layer in layers]) for tool in distinct(rows, "tool")
    }
    return Chart("layer", y, curves, "y", points=True)


# -- files ---------------------------------------------------------------------------------------------------------


def save(path: Path, rows: Sequence[Row]) -> None:
    """Write rows; numbers with seven digits, so that files do not differ by rounding."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: f"{value:.7g}" if isinstance(value, float) else value for key, value in row.items()})


def load(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def plot(path: Path, chart: Chart) -> None:
    """Draw a chart; equal rows give equal files."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "tilewright"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for number, (name, (places, values)) in enumerate(chart.curves.items()):
        marker, style = ("o", "-") if number < 10 else ("x", "--")  # colours repeat after ten
        width = 0 if chart.points else 1
        axes.plot(places, values, marker=marker, markersize=3, linewidth=width, linestyle=style, label=name)
    axes.set(xlabel=chart.x, ylabel=chart.y, **{f"{axis}scale": "log" for axis in chart.log})
    if any(isinstance(place, str) for places, _ in chart.curves.values() for place in places):
        many = max(len(places) for places, _ in chart.curves.values())
        axes.tick_params(axis="x", rotation=90 if many > 20 else 30, labelsize=4 if many > 20 else 6)
        if many > 80:  # too small to read
            axes.set(xlabel=f"{chart.x}, {many} as in the CSV file", xticks=[])
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
