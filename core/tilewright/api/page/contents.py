"""Contents of pages: an exploration in a store, or a folder that `map -o` wrote."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.api.hardware.exploration_report import ExplorationReport
from tilewright.api.page.document import document
from tilewright.errors import InputError
from tilewright.exploration.records import ExploredPoint
from tilewright.files import read_text
from tilewright.schema.mapped import MappedProblem, read_mapping
from tilewright.schema.report.printed import ACTIONS
from tilewright.version import __version__

DETAILED = 60
"""Maximum number of points whose layers are shown."""
SUMMARY = "summary.json"


def of_exploration(report: ExplorationReport) -> dict[str, Any]:
    """Return the page data of an exploration."""
    record, found = report.record, report.found
    best = {each.index for each in report.front}
    detailed = [each for each in found if each.index in best][:DETAILED]
    places = dict.fromkeys(place for each in detailed for _, one in each.layers for place in one.places)
    has_area = any(each.area_um2 is not None for each in found)
    bounded = sum(each.outcome == "bounded" for each in report.points)
    spent = math.fsum(one.cpu_seconds for each in report.points for _, one in each.layers)
    return {
        "kind": "exploration",
        "title": f"{record.workload} on {record.space['name']}",
        "summary": [
            f"{len(report.points):,} of {record.size:,} points tried: {len(found):,} with mappings, {len(best):,} on the front, "
            f"{bounded:,} dominated by bounds and not searched. Objective: {record.objective}.",
        ],
        "objective": record.objective,
        "choices": list(record.choices),
        "has_area": has_area,
        "points": [_row(each, each.index in best, has_area) for each in found],
        "layers": [[each.name, each.count] for each in record.layers],
        "places": list(places),
        "detailed": [_detail(each, list(places)) for each in detailed],
        "best": [found[0].index] if found else None,
        "baseline": [min(each.index for each in found)] if found else None,
        "without": _without(report.points),
        "provenance": [
            *_plugins(record.methods),
            ["strategy", record.strategy],
            ["workload", f"{record.workload}: {len(record.layers)} distinct layers"],
            ["CPU seconds of the searches", f"{spent:,.1f}"],
            ["exploration", record.key],
            ["method", record.method],
            ["space", json.dumps(record.model_dump(mode="json")["space"], ensure_ascii=False)],
            ["page by tilewright", __version__],
        ],
    }


def folder_page(summary: dict[str, Any], folder: Path) -> str:
    """Return the page of a mapped network, from its `summary.json` and its mapping files."""
    return document(_network(summary, folder))


def of_folder(folder: Path) -> dict[str, Any]:
    """Return the page data of a folder; raise InputError if `map` did not write it."""
    file = folder / SUMMARY
    if not file.is_file():
        raise InputError(f"{folder} has no {SUMMARY}", hint="give a folder that `tilewright map -o` wrote, or a store")
    try:
        data = json.loads(read_text(file))
        return _network(data, folder)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise InputError(f"{file} was not written by `tilewright map`:  {type(error).__name__}: {error}") from None


def _network(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    layers = data["layers"]
    places = list(dict.fromkeys(row["level"] for layer in layers for row in layer["energy"]))
    busy = [each for each in layers if each["best"]["utilization"]]
    units = max((each["macs"] / (each["best"]["utilization"] * each["best"]["cycles"]) for each in busy), default=0.0)
    ports = [_port(layer, places) for layer in layers]
    rates = [port["words_per_cycle"] for port in ports if port and port["words_per_cycle"]]
    return {
        "kind": "network",
        "title": f"{data['workload']} on {data['arch']}",
        "summary": [f"{len(layers):,} distinct layers; values from cost model {data['model']}."],
        "places": places,
        "units": round(units, 6),
        "rate": max(rates, default=None),
        "layers": [_layer(layer, port, places) for layer, port in zip(layers, ports, strict=True)],
        "provenance": [
            *_plugins(data | _recorded(folder, layers)),
            ["folder", folder.name],
            ["page by tilewright", __version__],
        ],
    }


def _recorded(folder: Path, layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the provenance in the first mapping file; raise InputError if it is damaged."""
    name = next((each["best"]["mapping_file"] for each in layers if each["best"]["mapping_file"]), None)
    file = folder / Path(name or "").name
    written = read_mapping(file) if name and file.is_file() else None
    if not isinstance(written, MappedProblem) or written.provenance is None:
        return {}
    told = written.provenance.model_dump(mode="json", include={"tilewright", "mapper", "model"})
    return {name: value for name, value in told.items() if value is not None}


def _layer(layer: Mapping[str, Any], port: Mapping[str, Any] | None, places: Sequence[str]) -> dict[str, Any]:
    best = layer["best"]
    energies = dict.fromkeys(places, 0.0)
    for row in layer["energy"]:
        energies[row["level"]] += row["energy_pj"]
    binds = layer["limits"][0] if layer["limits"] else None
    return {
        "name": layer["name"],
        "count": layer["count"],
        "macs": layer["macs"],
        "energy_pj": best["energy_pj"],
        "cycles": best["cycles"],
        "utilization": best["utilization"],
        "energies": list(energies.values()),
        "speed": layer["macs"] / best["cycles"] if best["cycles"] else None,
        "intensity": layer["macs"] / port["words"] if port and port["words"] else None,
        "binds": binds and f"{binds['name']} {ACTIONS[binds['action']]}".rstrip(),
        "nest": layer["nest"] or [],
        "error": layer["error"],
    }


def _port(layer: Mapping[str, Any], places: Sequence[str]) -> Mapping[str, Any] | None:
    """Return the busiest port of the outermost memory, or None if the model reports no ports."""
    of_memories = [each for each in layer["limits"] if each["action"] != "compute" and each["words"]]
    first = next((place for place in places if any(each["name"] == place for each in of_memories)), None)
    mine = [each for each in of_memories if each["name"] == first]
    return max(mine, key=lambda each: float(each["words"]), default=None)


def _row(point: ExploredPoint, on_front: bool, has_area: bool) -> list[Any]:
    area = None if point.area_um2 is None else _short(point.area_um2 * 1e-6)
    costs = [_short(point.energy_pj), point.cycles, _short(point.of("edp"))]
    return [point.index, int(on_front), *point.values.values(), *costs, *([area] if has_area else [])]


def _detail(point: ExploredPoint, places: Sequence[str]) -> dict[str, Any]:
    return {
        "point": point.index,
        "energies": [[_short(found.places.get(place, 0.0)) for place in places] for _, found in point.layers],
        "binds": [found.binds for _, found in point.layers],
    }


def _without(points: Sequence[ExploredPoint]) -> list[list[Any]]:
    """Return [reason, number of points, example], the most frequent first."""
    lacking = [each for each in points if not math.isfinite(each.energy_pj)]
    kinds = {each.index: (each.told or "").partition(": ")[0] for each in lacking}
    return [
        [kind, count, next(f"point {each.index}: {each.told}" for each in lacking if kinds[each.index] == kind)]
        for kind, count in Counter(kinds.values()).most_common()
    ]


def _plugins(data: Mapping[str, Any]) -> list[list[str]]:
    found = []
    for name in ("tilewright", "mapper", "model", "objective", "constraints", "budget", "seed"):
        value = data.get(name)
        if value is not None:
            text = value if isinstance(value, str) else json.dumps(_plain(value), ensure_ascii=False)
            found.append([name, text])
    return found


def _plain(value: Any) -> Any:
    """Return the value with mappings as dicts, for JSON."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _short(value: float) -> float:
    """Return the number with six digits, which suffice for display."""
    return float(f"{value:.6g}")
