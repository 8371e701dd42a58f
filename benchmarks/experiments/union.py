"""Union (Jeong et al., PACT 2021): its figures of mappings, algorithms, aspect ratios and chiplets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw
from benchmarks import algorithms
from benchmarks.experiments.framework import Chart, Experiment, Row, Run, distinct, number, table
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.schema.objective import EDP

PAPER = "Union (PACT 2021)"
LAYERS = tuple(layer.problem.name for layer in tw.load("union_dnn_layers", kind="workload").layers)
THIN = "mk,kn->mn; m=4 k=2048 n=2"
PER_AXIS = "one dimension per axis"
ALONE = f"thin GEMM, {PER_AXIS}"
PAIRED = {"timeloop": (), "maestro": LAYERS}
"""Layers with one dimension per axis, besides the thin product; the paper uses MAESTRO."""
PAIRED_QUICK = ("DLRM-2", "BERT-1")
ENOUGH = 4096.0
"""Words per cycle of a DRAM that is not waited for."""
NEAR = 1.02
"""Results of a heuristic search scatter: what counts as equal to the best."""
COMPULSORY = dict(zip(LAYERS, (4.0, 0.48, 0.54, 0.75, 4.5, 0.62, 1.33, 1.33, 1.08), strict=True))
"""GB/s per chiplet that inputs and weights, once each, take at full speed."""
MODELS = {"timeloop": "quickflow", "maestro": "gamma"}
"""Cost models, each with a mapper that does well under it."""
EVALUATIONS = 20_000
QUICK = {
    "timeloop": ("ResNet50-1", "ResNet50-2", "DLRM-1", "DLRM-2", "BERT-1"),
    "maestro": ("ResNet50-2", "DLRM-1", "BERT-1"),
}

# -- Figure 3 ------------------------------------------------------------------------------------------------------


def measure_fig_3(run: Run) -> Iterator[Row]:
    space = tw.space("union_dnn_layers/DLRM-1", "union_edge", constraints="none")
    evaluator = installed().make(CostModelSpec, "timeloop").bind(space.problem, space.architecture)
    drawn = space.sample(np.random.default_rng(0), run.pick(4_000, 20_000))
    costs = evaluator.evaluate_batch(drawn.take(drawn.fits()).batch())
    for energy, cycles in zip(costs.energy_pj[costs.valid], costs.cycles[costs.valid], strict=True):
        yield {"energy_pj": float(energy), "cycles": float(cycles)}


def show_fig_3(rows: list[Row]) -> Iterator[str]:
    energy, cycles = (np.array([number(row, key) for row in rows]) for key in ("energy_pj", "cycles"))
    spread = [float(values.max() / values.min()) for values in (energy, cycles, energy * cycles)]
    yield table(
        ("valid mappings", "energy, most / least", "cycles, most / least", "EDP, most / least"), [[len(rows), *spread]]
    )


def chart_fig_3(rows: list[Row]) -> Chart:
    least = [min(number(row, key) for row in rows) for key in ("energy_pj", "cycles")]
    places = [[number(row, key) / low for row in rows] for key, low in zip(("energy_pj", "cycles"), least, strict=True)]
    curves: dict[str, tuple[list[float], list[float]]] = {"mappings": (places[1][:1000], places[0][:1000])}
    return Chart("cycles / least", "energy / least", curves, "xy", points=True)


# -- Figure 6 ------------------------------------------------------------------------------------------------------

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/union_figure_7.yaml"
STEPS = 3


def measure_fig_6(run: Run) -> Iterator[Row]:
    """Data of each processing element in the first time steps."""
    files = tw.convert(EXAMPLE, "union", "tilewright").files
    mapping, problem = tw.Mapping.from_yaml(files["mapping.yaml"]), tw.Problem.from_yaml(files["problem.yaml"])
    loops = list(mapping.loops())
    spatial, temporal = ([loop for loop in loops if loop.spatial is kind] for kind in (True, False))
    steps = itertools.product(*(range(loop.trips) for loop in temporal))
    for step, times in enumerate(itertools.islice(steps, STEPS)):
        for element, places in enumerate(itertools.product(*(range(loop.trips) for loop in spatial))):
            at = dict.fromkeys(problem.dimensions, 0)
            for loop, index in (*zip(temporal, times, strict=True), *zip(spatial, places, strict=True)):
                at[loop.dimension] += index * loop.tile
            yield {"step": step + 1, "element": element} | {
                tensor.name: " ".join(
                    str(sum(by * at[dim] for dim, by in rank.terms.items())) for rank in tensor.projection
                )
                for tensor in problem.tensors
            }


def show_fig_6(rows: list[Row]) -> Iterator[str]:
    tensors = [key for key in rows[0] if key not in ("step", "element")]
    lines: list[list[object]] = []
    before: dict[str, set[str]] = {}
    for step in distinct(rows, "step"):
        mine = [row for row in rows if row["step"] == step]
        data = {tensor: {row[tensor] for row in mine} for tensor in tensors}
        kept = [
            f"{len(data[tensor])}, {len(data[tensor] & before.get(tensor, set()))} of them kept" for tensor in tensors
        ]
        lines.append([step, len({row["element"] for row in mine}), *kept])
        before = data
    yield table(("time step", "elements", *tensors), lines)


def chart_fig_6(rows: list[Row]) -> Chart:
    tensors = [key for key in rows[0] if key not in ("step", "element")]
    steps = distinct(rows, "step")
    curves = {
        tensor: (steps, [float(len({row[tensor] for row in rows if row["step"] == step})) for step in steps])
        for tensor in tensors
    }
    return Chart("time step", "different values in use", curves, points=True)


# -- Figure 8 ------------------------------------------------------------------------------------------------------


def measure_fig_8(run: Run) -> Iterator[Row]:
    budget: dict[str, Any] = {"mapper": "quickflow", "evaluations": run.pick(1_000, 20_000)}
    for name in run.pick(("intensli2_16", "intensli2_64", "ccsd7_16"), algorithms.CONTRACTIONS):
        for alone in (True, False):
            for algorithm in ("native", "ttgt"):
                layer, moved = algorithms.best(name, algorithm, ENOUGH, alone, **budget)
                assert layer.result is not None
                yield {
                    "layer": name,
                    "axes": "one dimension" if alone else "shared",
                    "algorithm": algorithm,
                    "edp": layer.edp,
                    "moved": moved,
                    "partition": algorithms.partition(layer),
                    "cpu_seconds": round(layer.result.cpu_seconds, 3),
                }


def show_fig_8(rows: list[Row]) -> Iterator[str]:
    lines: list[list[object]] = []
    for native, ttgt in zip(rows[::2], rows[1::2], strict=True):
        lines.append([native["layer"], native["axes"], number(native, "edp") / number(ttgt, "edp"),
                      number(native, "edp") / number(ttgt, "moved"), native["partition"], ttgt["partition"]])  # fmt: skip
    yield table(
        (
            "contraction",
            "per axis",
            "native / TTGT",
            "the same, with transposition",
            "elements, native",
            "elements, TTGT",
        ),
        lines,
    )


def chart_fig_8(rows: list[Row]) -> Chart:
    curves = {}
    for axes, algorithm in itertools.product(distinct(rows, "axes"), distinct(rows, "algorithm")):
        mine = [row for row in rows if (row["axes"], row["algorithm"]) == (axes, algorithm)]
        curves[f"{algorithm}, {axes}"] = ([row["layer"] for row in mine], [number(row, "edp") for row in mine])
    return Chart("contraction", "EDP, pJ x cycles", curves, "y", points=True)


# -- Figures 10 and 11 ---------------------------------------------------------------------------------------------


def explored(
    run: Run, model: str, problem: str, space: Any, constraints: Any = "none", evaluations: int | None = None
) -> tw.ExplorationReport:
    return tw.explore(
        problem, space, mapper=MODELS[model], model=model, constraints=constraints, bounds=False, store=run.store, progress=False,
        evaluations=evaluations or run.pick({"timeloop": EVALUATIONS, "maestro": 10_000}[model], EVALUATIONS),
    )  # fmt: skip


def rows_of(report: tw.ExplorationReport, first: Row) -> Iterator[Row]:
    for point in report.points:
        layers = [layer for _, layer in point.layers]
        yield first | {
            "place": next(iter(point.values.values())),
            "edp": point.of(EDP) if layers and layers[0].reason is None else None,
            "cpu_seconds": round(sum(layer.cpu_seconds for layer in layers), 3),
        }


def measure_fig_10(run: Run) -> Iterator[Row]:
    for model, size in itertools.product(MODELS, ("edge", "cloud")):
        given = tw.architecture_space(f"union_{size}_aspects").to_data()
        given["set"] |= {f"DRAM.{way}_bandwidth_words_per_cycle": f"{ENOUGH:g}" for way in ("read", "write")}
        for layer in run.pick(QUICK[model], LAYERS):
            report = explored(run, model, f"union_dnn_layers/{layer}", given)
            yield from rows_of(report, {"model": model, "size": size, "layer": layer})
        alone = {ALONE: THIN} | {
            f"{layer}, {PER_AXIS}": f"union_dnn_layers/{layer}"
            for layer in PAIRED[model]
            if not run.quick or layer in PAIRED_QUICK
        }
        for label, problem in alone.items():
            for pair, chosen in pairs(problem):
                report = explored(run, model, problem, given, chosen, evaluations=run.pick(1_000, 5_000))
                yield from rows_of(report, {"model": model, "size": size, "layer": f"{label}: {pair}"})


def pairs(problem: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Constraints of one dimension along each axis, for every pair of dimensions."""
    sizes = tw.load(problem, kind="problem").dimensions
    for pair in itertools.permutations([name for name, size in sizes.items() if size > 1], 2):
        rules = [{"cluster": name, "only": [one]} for name, one in zip(algorithms.AXES, pair, strict=True)]
        yield " ".join(pair), {"name": "_".join(pair), "variants": [{"spatial": rules}]}


def per_layer(rows: list[Row]) -> dict[tuple[str, str, str], dict[str, float]]:
    """(model, size, layer) -> EDP over its least, by place. The pairs of dimensions of a product are one layer."""
    layers: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in rows:
        mine = layers.setdefault((row["model"], row.get("size", ""), row["layer"].partition(":")[0]), {})
        known = mine.get(row["place"], math.nan)
        mine[row["place"]] = (
            min(number(row, "edp"), known) if known > 0 and row["edp"] else known if known > 0 else number(row, "edp")
        )
    for mine in layers.values():
        least = min((value for value in mine.values() if not math.isnan(value)), default=math.nan)
        mine.update({place: value / least for place, value in mine.items()})
    return layers


def show_fig_10(rows: list[Row]) -> Iterator[str]:
    cells = per_layer(rows)
    for size, units in (("edge", 256), ("cloud", 2048)):
        mine = {(model, layer): values for (model, of, layer), values in cells.items() if of == size}
        places = list(next(iter(mine.values())))
        shapes = [f"{int(float(place))}x{int(units / float(place))}" for place in places]
        yield table(
            (f"{size}: EDP / least", "model", *shapes),
            [[layer, model, *values.values()] for (model, layer), values in mine.items()],
        )
        for model in MODELS:
            for told, axes in (("", ""), (f" with {PER_AXIS}", PER_AXIS)):
                layers = {
                    layer: values
                    for (of, layer), values in mine.items()
                    if of == model and layer != ALONE and (PER_AXIS in layer) == bool(axes)
                }
                if layers:
                    near = sum(values[places[-1]] <= NEAR for values in layers.values())
                    flat = [values[places[0]] / values[places[-1]] for values in layers.values()]
                    yield (
                        f"By `{model}`,{told} {shapes[-1]} is within 2 % of the least for {near} of {len(layers)} layers, and {shapes[0]} costs "
                        f"{min(flat):.3g} to {max(flat):.3g} times as much."
                    )
            thin = mine[model, ALONE]
            best = min(thin, key=lambda place: thin[place] if thin[place] > 0 else math.inf)
            yield (
                f"By `{model}`, the thin GEMM is best at {shapes[places.index(best)]}; {shapes[-1]} costs {thin[places[-1]]:.3g} times as much."
            )


def chart_fig_10(rows: list[Row]) -> Chart:
    curves = {
        f"{layer}, {model}": ([float(place) for place in values], list(values.values()))
        for (model, size, layer), values in per_layer(rows).items()
        if size == "edge" and PER_AXIS in layer
    }
    return Chart("rows of 256 elements", "EDP / least of the layer", curves, "x")


def measure_fig_11(run: Run) -> Iterator[Row]:
    for model in MODELS:
        for layer in run.pick(QUICK[model], LAYERS):
            report = explored(run, model, f"union_dnn_layers/{layer}", "union_chiplets")
            yield from rows_of(report, {"model": model, "layer": layer})


def show_fig_11(rows: list[Row]) -> Iterator[str]:
    layers, lines = per_layer(rows), []
    rates = distinct(rows, "place")
    for (model, _, layer), values in layers.items():
        known = [values[rate] for rate in rates]
        flat = [rate for at, rate in enumerate(rates) if max(known[at:]) <= 1.05]
        lines.append([layer, model, *known, flat[0] if flat else "-", COMPULSORY[layer]])
    yield table(("EDP / least, at GB/s", "model", *rates, "knee", "compulsory"), lines)
    yield "The knee is the lowest bandwidth from which on EDP is within 5 % of the least. Inputs and weights, once each, need the compulsory one."


def chart_fig_11(rows: list[Row]) -> Chart:
    curves = {
        f"{layer}, {model}": ([float(place) for place in values], list(values.values()))
        for (model, _, layer), values in per_layer(rows).items()
    }
    return Chart("fill bandwidth of a chiplet, GB/s", "EDP / least of the layer", curves, "xy")


EXPERIMENTS = (
    Experiment(
        "union_fig_3",
        PAPER,
        "Figure 3",
        "energy and latency of the mappings of a layer of DLRM, 16 x 16 elements",
        "Energy and latency vary widely between mappings, as a scatter plot shows.",
        "The paper names neither the layer nor its number of mappings. Here random mappings of DLRM-1 on `union_edge` are evaluated by `timeloop`.",
        "16,000 of 20,000 drawn mappings. Those that fit are shown.",
        measure_fig_3,
        show_fig_3,
        chart_fig_3,
    ),
    Experiment(
        "union_fig_6",
        PAPER,
        "Figure 6",
        "data of 18 elements in three time steps, K_YR_XS partitioned",
        "From step 1 to step 2 inputs and outputs are reused, and other filters are fetched. From step 2 to step 3 a part of the inputs stays.",
        "The paper's sizes are not printed, so those of `examples/union_figure_7.yaml` are used. There K steps innermost, and outputs "
        "change with K: what stays is the place, not the value.",
        "nothing.",
        measure_fig_6,
        show_fig_6,
        chart_fig_6,
    ),
    Experiment(
        "union_fig_8",
        PAPER,
        "Figure 8",
        "contractions natively and as matrix products (TTGT), cloud accelerator",
        "TTGT has the lower EDP for all contractions with dimensions of 16, because mappings leave elements idle natively. "
        "For intensli2 they use 256 elements natively, and 1,024 with TTGT.",
        "The paper's mappings have one dimension per axis. Without that rule, several dimensions fill an axis natively, too. The DRAM is not "
        "waited for. The paper leaves out what transposition costs; the second ratio counts it.",
        "three of six contractions; searches of more than 1,000 mappings (20,000).",
        measure_fig_8,
        show_fig_8,
        chart_fig_8,
    ),
    Experiment(
        "union_fig_10",
        PAPER,
        "Figure 10",
        "aspect ratios of a flexible accelerator",
        "EDP saturates once all elements work. The balanced ratio is best for most layers. A thin GEMM uses 1 x 2048 fully, and leaves "
        "32 x 64 underused.",
        "The paper uses MAESTRO with energies that it does not print. Where several dimensions may share an axis, most layers fill every ratio, and "
        "EDP is flat. The paper's mappings have one dimension per axis, so every pair of dimensions is searched, too, by `maestro`. The DRAM is "
        "not waited for. `maestro` searches with `gamma`, `timeloop` with `quickflow`.",
        "four of nine layers by `timeloop`, six by `maestro`, seven with one dimension per axis; searches by `maestro` of more than 10,000 "
        "mappings (20,000), and with one dimension per axis of more than 1,000 (5,000).",
        measure_fig_10,
        show_fig_10,
        chart_fig_10,
    ),
    Experiment(
        "union_fig_11",
        PAPER,
        "Figure 11",
        "fill bandwidth of sixteen chiplets",
        "EDP falls with the bandwidth, then it is flat: from 2 GB/s for ResNet50-2, from 6 to 12 GB/s for the others.",
        "The paper does not name its mapper. By `timeloop`, mappings here read inputs and weights from DRAM hardly more than once, so knees "
        "are lower, and near the compulsory bandwidth. By `maestro`, EDP scatters by up to 15 % from search to search, so some knees are "
        "late. The energy of a link on the package is published (0.58 pJ per bit); `maestro` does not count it.",
        "four of nine layers by `timeloop`, six by `maestro`; searches by `maestro` of more than 10,000 mappings (20,000).",
        measure_fig_11,
        show_fig_11,
        chart_fig_11,
    ),
)  # fmt: skip
