"""Pages of mapped networks: one, or a comparison of two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from tilewright.application.api.page.parts import chart, document, facts, nest, sections, table
from tilewright.application.api.plots import network_plots
from tilewright.application.api.sections import added_sections
from tilewright.application.drawing.charts import bars
from tilewright.application.drawing.diagrams import draw
from tilewright.application.drawing.drawing import Drawing
from tilewright.application.run.roofline import ROOFLINE
from tilewright.application.run.searched import PROBLEMS
from tilewright.application.run.vector_network import VECTORS
from tilewright.figures import Figure
from tilewright.formats import common_unit, quantity
from tilewright.plugin.result import proof
from tilewright.reports.content import seconds_of
from tilewright.reports.costs import COSTS
from tilewright.reports.parts import Limit
from tilewright.schema.mapped import MappedProblem, read_mapping
from tilewright.schema.mapping.levels import Level
from tilewright.schema.origin import Origin
from tilewright.tables import SIZES, Column, Shown, Table, numbers
from tilewright.version import __version__

Layer = Mapping[str, Any]
SETTINGS = ("arch", "constraints", "mapper", "model", "objective", "seed")


def network_page(data: Mapping[str, Any], folder: Path) -> str:
    """Return the page of a mapped network, from its `summary.json` and the mapping files next to it."""
    plots, layers = network_plots(data), data["layers"]
    links = [f"nest-{at}" if layer["levels"] else "" for at, layer in enumerate(layers)]
    written = _written(data, folder)
    dearest = max(filter(itemgetter("levels"), layers), key=lambda layer: _times(layer, "energy_pj") or 0, default=None)
    return document(
        "network.html.jinja",
        _title(data),
        figures=list(_totals(data)),
        charts={kind: chart(getattr(plots, kind), kind) for kind in plots.kinds},
        architecture=None if written is None else chart(partial(draw, written.architecture), "architecture"),
        layers=table(_layer_table(data), "layers", links, total=_has_total(data)),
        sensitivity=_sensitivity(data),
        vectors=_vectors(data),
        unmapped=_unmapped(data),
        mapper_figures=_figures(data),
        mappings=[_mapping(layer, link, layer is dearest) for layer, link in zip(layers, links, strict=True) if link],
        sections=sections(added_sections("network", data)),
        provenance=facts(_provenance(data, folder, written)),
    )


def two_networks_page(runs: Sequence[tuple[Path, Mapping[str, Any]]]) -> str:
    """Return the page that compares two mapped networks."""
    (first, one), (second, other) = runs
    names = [f"A: {first.name}", f"B: {second.name}"]
    totals = [dict(_totals(data)) for _, data in runs]
    whole = Table("figure", names[0], names[1], numbers("B / A", decimals=3), title="totals")
    ratios = {
        figure.column.name: _ratio(figure.value(one["totals"]), figure.value(other["totals"]))
        for view in ("page, totals", "page, more totals")
        for figure in COSTS.view(view).values()
    }
    for name in dict.fromkeys([*totals[0], *totals[1]]):
        whole.add_row(name, *(figures.get(name, "-") for figures in totals), ratios.get(name))
    settings = [dict(facts(_provenance(data, folder, _written(data, folder)))) for folder, data in runs]
    differing = Table("setting", *(Column(name, wrapped=True) for name in names))
    for name in dict.fromkeys([*settings[0], *settings[1]]):
        texts = [setting.get(name, "-") for setting in settings]
        if texts[0] != texts[1]:
            differing.add_row(name, *texts)
    kinds = {"energy": "energy_pj", "latency": "cycles"}
    return document(
        "two_networks.html.jinja",
        f"{_title(one)} and {_title(other)}",
        first=first,
        second=second,
        totals=table(whole, "totals"),
        charts={kind: chart(partial(_both, runs, names, COSTS.figures[key]), kind) for kind, key in kinds.items()},
        layers=table(_both_table(one, other), "layers"),
        differences=table(differing, "differences"),
    )


def _title(data: Mapping[str, Any]) -> str:
    return f"{data['workload']} on {data['arch']}"


def _totals(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the total figures with their units."""
    totals, layers = data["totals"], data["layers"]
    listed = data.get("content") == "layers"
    if listed:
        yield "content", "list of layers, no total"
    yield from _told("page, totals", totals, listed)
    seconds = seconds_of(totals["cycles"], totals["clock_ghz"])
    if seconds:
        yield f"time at {totals['clock_ghz']:g} GHz", quantity(1e12 * seconds, "ps")
    yield from _told("page, more totals", totals, listed)
    yield "distinct layers", f"{len(layers):,}"
    proofs = Counter(_proof(layer) for layer in layers)
    yield "proved optimal", f"{proofs['yes']:,} of {len(layers):,} layers"
    for claim, count in proofs.items():
        if claim.startswith("claimed"):
            yield f"optimal as {claim}", f"{count:,} of {len(layers):,} layers"
    wider = sum(map(_is_wider, layers))
    if wider:
        yield "in spaces wider than the files'", f"{wider:,} layers"
    if left := _left(data):
        yield f"operators not {'counted' if data.get('vectors') else 'mapped'}", f"{len(left):,}"


def _told(view: str, totals: Mapping[str, Any], listed: bool) -> Iterator[tuple[str, str]]:
    """Yield figures with their units. Lists of layers have no totals."""
    for figure in COSTS.view(view).values():
        if figure.value(totals) is not None or not (listed or figure.is_optional):
            yield figure.column.name, figure.text(totals)


def _layer_table(data: Mapping[str, Any]) -> Table:
    totals = data["totals"]
    count = sum(layer["count"] for layer in data["layers"])
    whole = {"stride": "", "dilation": "", "count": count, "macs": totals["macs"]}
    energy, cycles, *others = COSTS.shown("page", lambda layer: layer["best"], totals)
    columns: list[Shown[Layer]] = [
        Shown("layer", itemgetter("name"), "total"),
        *([Shown("origin", _origin)] if any(layer.get("origins") for layer in data["layers"]) else []),
        Shown(SIZES, _shape),
        *PROBLEMS.shown("page", lambda layer: layer, whole, known=data["layers"]),
        replace(energy, total=""),
        Shown(
            numbers("energy x count", "pJ", like="energy"),
            lambda layer: _times(layer, "energy_pj"),
            totals["energy_pj"],
        ),
        Shown(
            numbers("share", "%", decimals=1),
            lambda layer: _share(_times(layer, "energy_pj"), totals["energy_pj"]),
            _share(totals["energy_pj"], totals["energy_pj"]),
        ),
        replace(cycles, total=""),
        Shown(numbers("cycles x count", like="cycles"), lambda layer: _times(layer, "cycles"), totals["cycles"]),
        *others,
        Shown(numbers("utilization", "%", decimals=1), lambda layer: _scaled(layer["best"]["utilization"], 100)),
        *ROOFLINE.shown("map", _roofline),
        Shown("limited by", lambda layer: _limit(layer) or layer["error"] or "-"),
        Shown("proved", lambda layer: _proof(layer) + ", wider" * _is_wider(layer)),
    ]
    return Table.of(columns, data["layers"], total=_has_total(data))


def _roofline(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the place of an operator below the roofline; older files have none."""
    return row.get("roofline") or {}


def _has_total(data: Mapping[str, Any]) -> bool:
    """Return whether the layers are a whole network with costs, of more than one distinct layer."""
    return len(data["layers"]) > 1 and data.get("content") != "layers" and data["totals"]["energy_pj"] is not None


def _proof(layer: Layer) -> str:
    """Return what is proved of a layer, or claimed; "no" if nothing is. Files of older versions name no claimant."""
    search = layer["search"]
    return proof(search["gap"], search.get("claimed_by")) or "no"


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _share(value: float | None, whole: float | None) -> float | None:
    return None if value is None or not whole else 100 * value / whole


def _is_wider(layer: Layer) -> bool:
    """Return whether rules of the files were not searched, and the mapping may break one."""
    return any(rule["missing"] or not rule["satisfied"] for rule in layer.get("unsearched", ()))


def _origin(layer: Layer) -> str:
    """Return the place of the layer in the network's file."""
    origin = layer.get("origins", {}).get(layer["name"])
    return str(Origin.model_validate(origin)) if origin else "-"


def _shape(layer: Layer) -> str:
    return " ".join(f"{name}={size}" for name, size in layer["dimensions"].items() if size > 1)


def _limit(layer: Layer) -> str:
    return Limit.model_validate(layer["limits"][0]).title if layer["limits"] else ""


def _sensitivity(data: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what larger bandwidths and capacities would change; None if it was not asked. Older files have none."""
    effects = data.get("sensitivity", ())
    made = Table("part", "figure", numbers("more", "%"), Column("effect", wrapped=True))
    for effect in effects:
        made.add_row(effect["part"], effect["what"], effect["percent"], effect["told"])
    return table(made, "sensitivity") if effects else None


def _left(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the operators that are neither mapped nor counted as vector layers. Older files do not tell which are counted."""
    return [unmapped for unmapped in data["unmapped"] if not unmapped.get("counted")]


def _unmapped(data: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return these operators by kind and reason; None if there are none."""
    counts = Counter((unmapped["operator"], unmapped["reason"]) for unmapped in _left(data))
    work = Counter[tuple[str, str]]()
    for unmapped in _left(data):
        work[unmapped["operator"], unmapped["reason"]] += unmapped["operations"] or 0
    made = Table("operator", numbers("count"), numbers("scalar operations"), "reason")
    for (operator, reason), count in sorted(counts.items(), key=lambda item: (-work[item[0]], -item[1])):
        made.add_row(operator, count, work[operator, reason], reason)
    return table(made, "unmapped") if counts else None


def _vectors(data: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the vector layers; None if there are none. Older files have none."""
    columns = VECTORS.shown("page", lambda vector: vector) + COSTS.shown("steps", lambda vector: vector)
    columns += ROOFLINE.shown("table", _roofline)
    return table(Table.of(columns, data["vectors"]), "vectors") if data.get("vectors") else None


def _figures(data: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the table of the mapper's figures; None if it reports none."""
    by_layer = {layer["name"]: layer["search"]["figures"] for layer in data["layers"]}
    names = list(dict.fromkeys(name for figures in by_layer.values() for name in figures))
    made = Table("layer", *(numbers(name) for name in names))
    for layer, figures in by_layer.items():
        made.add_row(layer, *(figures.get(name) for name in names))
    return table(made, "figures") if names else None


def _mapping(layer: Layer, link: str, is_open: bool) -> dict[str, Any]:
    """Return the loop nest of a layer, and where its file is."""
    levels = [Level.model_validate(level) for level in layer["levels"]]
    drawn = list(nest(levels, layer["nest"][-1].strip()))
    names = {"link": link, "open": is_open, "name": layer["name"], "sizes": _shape(layer)}
    return names | {"file": layer["best"]["mapping_file"], "nest": drawn}


def _written(data: Mapping[str, Any], folder: Path) -> MappedProblem | None:
    """Return the first mapping file of the run; None if there is none."""
    name = next((layer["best"]["mapping_file"] for layer in data["layers"] if layer["best"]["mapping_file"]), None)
    file = folder / Path(name or "").name
    written = read_mapping(file) if name and file.is_file() else None
    return written if isinstance(written, MappedProblem) else None


def _provenance(data: Mapping[str, Any], folder: Path, written: MappedProblem | None) -> Iterator[tuple[str, object]]:
    """Yield the settings of the run, with plugins and options as a mapping file records them."""
    recorded: dict[str, object] = {}
    if written is not None and written.provenance is not None:
        recorded = written.provenance.model_dump(mode="json", include={"tilewright", "mapper", "model"})
    yield from ({name: data[name] for name in SETTINGS} | recorded).items()
    yield "folder", folder.name
    yield "page by tilewright", __version__


def _both(runs: Sequence[tuple[Path, Mapping[str, Any]]], names: Sequence[str], figure: Figure) -> Drawing:
    """Return bars of one figure, a pair for each layer, of all its executions."""
    layers, column = _together(runs[0][1], runs[1][1]), figure.column
    values = [[_times(layer, figure.key) for layer in pair] for _, *pair in layers]
    known = [value for pair in values for value in pair if value is not None]
    step, unit = common_unit(known, column.unit or column.name)
    scaled = [[None if value is None else value / step for value in pair] for pair in values]
    return bars(f"{column.name} by layer", [name for name, *_ in layers], names, scaled, unit, stacked=False)


def _together(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[tuple[str, Layer | None, Layer | None]]:
    """Return (name, layer of A, layer of B) for every layer of either."""
    first, second = ({layer["name"]: layer for layer in data["layers"]} for data in (one, other))
    return [(name, first.get(name), second.get(name)) for name in dict.fromkeys([*first, *second])]


def _times(layer: Layer | None, key: str) -> float | None:
    if layer is None or layer["best"][key] is None:
        return None
    return float(layer["best"][key] * layer["count"])


def _ratio(one: float | None, other: float | None) -> float | None:
    return other / one if one and other is not None else None


def _both_table(one: Mapping[str, Any], other: Mapping[str, Any]) -> Table:
    figures = COSTS.view("layers").values()
    columns = [
        replace(figure.column if run else numbers("", decimals=3), name=f"{figure.column.name} {run or 'B / A'}")
        for figure in figures
        for run in ("A", "B", "")
    ]
    made = Table("layer", SIZES, "count", *columns, "limited by A", "limited by B")
    for name, *pair in _together(one, other):
        bests = [layer and layer["best"] for layer in pair]
        values = [[figure.value(best) for best in bests] for figure in figures]
        cells = [cell for both in values for cell in (*both, _ratio(*both))]
        shapes = dict.fromkeys(_shape(layer) for layer in pair if layer)
        counts = dict.fromkeys(str(layer["count"]) for layer in pair if layer)
        limits = ((layer and _limit(layer)) or "-" for layer in pair)
        made.add_row(name, "; ".join(shapes), "; ".join(counts), *cells, *limits)
    return made
