"""Page of an exploration in a store."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from tilewright.application.api.hardware.exploration_report import ExplorationReport
from tilewright.application.api.hardware.spaces import choice_columns, choice_text
from tilewright.application.api.page.parts import FORM, NestRow, chart, document, facts, nest, sections, table
from tilewright.application.api.sections import added_sections
from tilewright.application.drawing.charts import bars
from tilewright.application.drawing.drawing import Drawing
from tilewright.application.exploration.records import ExploredPoint, FoundLayer, LayerRecord
from tilewright.application.exploration.store import Store
from tilewright.errors import InputError
from tilewright.formats import common_unit, quantity
from tilewright.reports.costs import COSTS
from tilewright.schema.mapped import BoundMapping
from tilewright.tables import SIZES, Shown, Table, numbers
from tilewright.version import __version__

DETAILED = 20
"""Maximum number of points whose layers are shown."""
NESTED = 3
"""Maximum number of points whose loop nests are shown."""


def exploration_page(report: ExplorationReport, store: Store | None = None) -> str:
    """Return the page of an exploration; it shows loop nests if `store` has their problems and machines."""
    record, best = report.record, sorted(report.front, key=lambda point: point.of(report.record.objective))
    return document(
        "exploration.html.jinja",
        f"{record.workload} on {record.space['name']}",
        objective=record.objective.title,
        figures=list(_totals(report)),
        front=chart(report.plot.pareto, "front"),
        points=points_table(report),
        energy=chart(lambda: _energies(report), "energy"),
        best=_beside(report),
        is_baseline=bool(report.found) and report.found[0] is _baseline(report),
        details=[_detail(point, store if number < NESTED else None) for number, point in enumerate(best[:DETAILED])],
        without=_without(report.points),
        sections=sections(added_sections("exploration", report.data())),
        provenance=facts(_provenance(report)),
    )


def _totals(report: ExplorationReport) -> Iterator[tuple[str, str]]:
    record, points = report.record, report.found
    yield "points tried", f"{len(report.points):,} of {record.size:,}"
    yield "with mappings", f"{len(points):,}"
    yield "on the front", f"{len(report.front):,}"
    yield "dominated by bounds, not searched", f"{sum(point.outcome == 'bounded' for point in report.points):,}"
    if points:
        value = points[0].of(record.objective)
        yield f"least {record.objective.title}", quantity(value, record.objective.unit)


def points_table(report: ExplorationReport) -> dict[str, Any] | None:
    """Return the table of all points with figures, the best first, connected to the marks of the chart; None without any."""
    rows = [row for row in report.rows() if row["energy_pj"] is not None]
    marks, counts = {}, Counter[str]()
    for row in rows:  # the order in which the chart draws them
        group = "chosen" if row["on_front"] else "others"
        marks[row["point"]] = f"{group}-{counts[group]}"
        counts[group] += 1
    front = {point.index for point in report.front}
    columns: list[Shown[ExploredPoint]] = [
        Shown(numbers("point"), lambda point: point.index),
        *choice_columns(report.record.choices, lambda point: point.values),
        *COSTS.shown("explore", lambda point: point, known=report.found),
        Shown("front", lambda point: "front" if point.index in front else ""),
    ]
    made = Table.of(columns, report.found)
    return table(made, "points", marks=[marks[point.index] for point in report.found]) if rows else None


def _energies(report: ExplorationReport) -> Drawing:
    layers = report.found[0].layers if report.found else ()
    places = list(dict.fromkeys(place for _, layer in layers for place in layer.places))
    values = [[result.places.get(place, 0.0) * layer.count for place in places] for layer, result in layers]
    step, unit = common_unit([math.fsum(value) for value in values], "pJ")
    names = [f"{layer.name} x{layer.count}" if layer.count > 1 else layer.name for layer, _ in layers]
    return bars("energy of the best point", names, places, [[value / step for value in row] for row in values], unit)


def _baseline(report: ExplorationReport) -> ExploredPoint:
    """Return the first point that has figures."""
    return min(report.found, key=lambda point: point.index)


def _beside(report: ExplorationReport) -> dict[str, Any] | None:
    """Return the table of the best point and the baseline; None if they are one point."""
    if not report.found or report.found[0] is _baseline(report):
        return None
    best, base = report.found[0], _baseline(report)
    made = Table(
        "quantity", f"best: point {best.index}", f"baseline: point {base.index}", numbers("baseline / best", decimals=3)
    )
    for name in report.record.choices:
        made.add_row(name, choice_text(best.values[name]), choice_text(base.values[name]), None)
    for figure in COSTS.view("explore").values():
        values = figure.value(best), figure.value(base)
        if all(values) or not figure.is_optional:
            texts = (figure.text(point) for point in (best, base))
            made.add_row(figure.column.name, *texts, values[1] / values[0] if values[0] else None)
    return table(made, "best")


def _detail(point: ExploredPoint, store: Store | None) -> dict[str, Any]:
    """Return the layers of a point: energies by component, limits and, with a store, loop nests."""
    places = list(dict.fromkeys(place for _, result in point.layers for place in result.places))
    columns: list[Shown[tuple[LayerRecord, FoundLayer]]] = [
        Shown("layer", lambda row: row[0].name),
        Shown(SIZES, lambda row: row[0].sizes),
        Shown(numbers("count"), lambda row: row[0].count),
        *(Shown(numbers(place, "pJ", like="energy"), partial(_energy_in, place)) for place in places),
        Shown(numbers("cycles"), lambda row: row[1].cycles),
        Shown("limited by", lambda row: row[1].binds),
    ]
    nests = [] if store is None else [(layer, _nest(store, point, layer, result)) for layer, result in point.layers]
    return {
        "index": point.index,
        "choices": ", ".join(f"{name} {choice_text(value)}" for name, value in point.values.items()),
        "layers": table(Table.of(columns, point.layers), f"point-{point.index}"),
        "nests": [(layer, rows) for layer, rows in nests if rows],
    }


def _energy_in(place: str, row: tuple[LayerRecord, FoundLayer]) -> float:
    return row[1].places.get(place, 0.0)


def _nest(store: Store, point: ExploredPoint, layer: LayerRecord, result: FoundLayer) -> list[NestRow]:
    """Return the loop nest of a layer; empty without a mapping, or if the stored data is no mapping."""
    try:
        loops = result.loops()
        if loops is None or point.machine is None:
            return []
        mapping = BoundMapping.of(loops, store.problem(layer.problem), store.architecture(point.machine))
        return list(nest(mapping.levels(), str(mapping).splitlines()[-1].strip()))
    except (ValueError, InputError):
        return []


def _without(points: Sequence[ExploredPoint]) -> dict[str, Any] | None:
    """Return the reasons for missing figures, the most frequent first; None without any."""
    lacking = [point for point in points if not math.isfinite(point.energy_pj)]
    kinds = {point.index: (point.told or "").partition(": ")[0] for point in lacking}
    made = Table("reason", numbers("points"), "example")
    for kind, count in Counter(kinds.values()).most_common():
        made.add_row(
            kind, count, next(f"point {point.index}: {point.told}" for point in lacking if kinds[point.index] == kind)
        )
    return table(made, "without") if lacking else None


def _provenance(report: ExplorationReport) -> Iterator[tuple[str, object]]:
    record = report.record
    data = record.model_dump(mode="json")
    for name in ("tilewright", "mapper", "model", "objective", "constraints", "budget", "seed"):
        value = data["methods"].get(name)
        if value is not None:
            yield name, value
    yield "strategy", record.strategy
    yield "workload", f"{record.workload}: {len(record.layers)} distinct layers"
    yield (
        "CPU seconds of the searches",
        f"{math.fsum(one.cpu_seconds for point in report.points for _, one in point.layers):,.1f}",
    )
    yield "exploration", record.key
    yield "method", record.method
    for name, value in data["space"].items():
        if name in FORM:
            continue
        if name == "choices":
            yield from ((f"choice {choice}", values) for choice, values in value.items())
        else:
            yield f"space, {name}", value
    yield "page by tilewright", __version__
