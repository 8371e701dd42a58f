"""Explorations of published papers: Sunstone-arch, Union (Figures 10 and 11), AccelForge's buffer curve, ZigZag's forty points.

    python benchmarks/papers.py                          # all, some tens of minutes
    python benchmarks/papers.py union_10 --store s.sqlite
    python benchmarks/papers.py --plots docs             # writes papers-*.svg there, too

Each prints its table as Markdown, and what became of the paper's statements. Results stand in the store: what was ended goes on.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tilewright as tw
from tilewright.exploration.records import ExploredPoint

STUDIES: dict[str, Callable[[Path, Path | None], None]] = {}
EVALUATIONS = 20_000
LAYERS = tuple(layer.problem.name for layer in tw.load("union_dnn_layers", kind="workload").layers)
THIN = "mk,kn->mn; m=4 k=2048 n=2"
ENOUGH = 4096.0
"""Words per cycle of a DRAM that is not waited for."""
COMPULSORY = dict(zip(LAYERS, (4.0, 0.48, 0.54, 0.75, 4.5, 0.62, 1.33, 1.33, 1.08), strict=True))
"""GB/s per chiplet that inputs and weights, once each, take at full speed."""
NEAR = 1.02
"""What counts as equal to the best: results of a heuristic search scatter."""
FLAT = 1.06
"""Where a curve is called flat."""


def study(function: Callable[[Path, Path | None], None]) -> Callable[[Path, Path | None], None]:
    STUDIES[function.__name__] = function
    return function


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    print(f"\n| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
    for row in rows:
        print(f"| {' | '.join(f'{each:.4g}' if isinstance(each, float) else str(each) for each in row)} |")
    print(flush=True)


def plotted(
    file: Path, curves: Mapping[str, tuple[Sequence[Any], Sequence[float]]], x: str, y: str, log: str = ""
) -> None:
    """Lines over one axis; `log`: which axes are logarithmic."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "tilewright"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4))
    for name, (places, values) in curves.items():
        axes.plot(places, values, marker="o", markersize=3, linewidth=1, label=name)
    axes.set(xlabel=x, ylabel=y, **{f"{axis}scale": "log" for axis in log})
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)


def cpu_seconds(points: Sequence[ExploredPoint]) -> float:
    return sum(found.cpu_seconds for each in points for _, found in each.layers)


@study
def sunstone_arch(store: Path, plots: Path | None) -> None:
    """Sizes of three L1 buffers: the joint search beside the grid."""
    layers = {
        f"conv{number}": name
        for number, name in zip(range(1, 5), ("conv1", "conv2_x", "conv3_1", "conv4_1"), strict=True)
    }
    rows, curves = [], {}
    for label, name in layers.items():
        words: dict[str, Any] = {"mapper": "sunstone", "constraints": L1_KEPT, "store": store, "progress": False}
        grid = tw.explore(f"sunstone_layers/resnet18_{name}", "sunstone_l1", bounds=False, **words)
        joint = tw.explore(f"sunstone_layers/resnet18_{name}", "sunstone_l1", strategy="sunstone_arch", **words)
        best, found = grid.found[0], joint.found[0]
        sizes = [" / ".join(f"{value}" for value in each.values.values()) for each in (best, found)]
        loss = 100 * (found.of("edp") / best.of("edp") - 1)
        rows.append((label, *sizes, f"{loss:.3f} %", f"{len(joint.found)} of {len(grid.found)}",
                     f"{cpu_seconds(joint.found):.0f} of {cpu_seconds(grid.found):.0f} s"))  # fmt: skip
        curves[label] = (range(len(grid.found)), [each.of("edp") / best.of("edp") for each in grid.found])
    table(("layer", "best of the grid", "best of sunstone_arch", "loss", "triples searched", "CPU time"), rows)
    if plots:
        plotted(plots / "papers-sunstone-arch.svg", curves, "triples, the best first", "EDP / best")


L1_KEPT = {
    "name": "all_kept",
    "variants": [
        {"keep": [{"memory": "L2", "keep": ["Inputs", "Weights", "Outputs"]}, {"memory": "InputL1", "keep": ["Inputs"]},
                  {"memory": "WeightL1", "keep": ["Weights"]}, {"memory": "OutputL1", "keep": ["Outputs"]}]}
    ],
}  # fmt: skip


@study
def union_10(store: Path, plots: Path | None) -> None:
    """EDP per aspect ratio, with a DRAM that is not waited for."""
    for size in ("edge", "cloud"):
        given = tw.architecture_space(f"union_{size}_aspects").to_data()
        given["set"] |= {f"DRAM.{way}_bandwidth_words_per_cycle": f"{ENOUGH:g}" for way in ("read", "write")}
        total = 256 if size == "edge" else 2048
        found: dict[str, list[float]] = {}
        for layer in (*LAYERS, THIN):
            report = tw.explore(f"union_dnn_layers/{layer}" if layer != THIN else THIN, given, constraints="none",
                                mapper="quickflow", evaluations=EVALUATIONS, bounds=False, store=store, progress=False)  # fmt: skip
            found["GEMM 4x2048x2" if layer == THIN else layer] = [each.of("edp") for each in report.points]
        found["one dimension per axis: GEMM 4x2048x2"] = one_per_axis(given, store)
        ratios = [f"{rows}x{total // rows}" for rows in (2**power for power in range(len(next(iter(found.values())))))]
        table(
            (f"{size}: EDP / best", *ratios),
            [(name, *(value / min(values) for value in values)) for name, values in found.items()],
        )
        near = [name for name in LAYERS if found[name][-1] <= NEAR * min(found[name])]
        print(
            f"balanced ({ratios[-1]}) within 2 % of the best: {len(near)} of {len(LAYERS)} layers; not {set(LAYERS) - set(near) or 'none'}"
        )
        thin = found["one dimension per axis: GEMM 4x2048x2"]
        print(
            f"thin GEMM, one dimension per axis: {ratios[thin.index(min(thin))]} is best, {ratios[-1]} costs {thin[-1] / min(thin):.3g} times as much"
        )
        if plots:
            curves = {name: (ratios, [value / min(values) for value in values]) for name, values in found.items()}
            plotted(plots / f"papers-union-10-{size}.svg", curves, "aspect ratio", "EDP / best of the layer")


def one_per_axis(space: dict[str, Any], store: Path) -> list[float]:
    """EDP of the thin product at each ratio, the best of all pairs of different dimensions along the two axes."""
    found = []
    for pair in itertools.permutations("mkn", 2):
        rules = [{"cluster": name, "only": [one]} for name, one in zip(("C3", "C2"), pair, strict=True)]
        chosen = {"name": f"{pair[0]}_{pair[1]}", "variants": [{"spatial": rules}]}
        report = tw.explore(
            THIN,
            space,
            mapper="quickflow",
            constraints=chosen,
            evaluations=EVALUATIONS,
            bounds=False,
            store=store,
            progress=False,
        )
        found.append([each.of("edp") for each in report.points])
    return [min(each) for each in zip(*found, strict=True)]


@study
def union_11(store: Path, plots: Path | None) -> None:
    """EDP per fill bandwidth of sixteen chiplets."""
    rows, curves = [], {}
    for layer in LAYERS:
        report = tw.explore(
            f"union_dnn_layers/{layer}",
            "union_chiplets",
            mapper="quickflow",
            constraints="none",
            evaluations=EVALUATIONS,
            bounds=False,
            store=store,
            progress=False,
        )
        rates = [float(each.values["gigabytes_per_second"]) for each in report.points]
        values = [each.of("edp") for each in report.points]
        flat = min(values)
        # the least bandwidth from which on nothing is far from the best
        knee = rates[next(at for at in range(len(values)) if max(values[at:]) <= 1.05 * flat)]
        rows.append(
            (
                layer,
                *(value / flat for value in values),
                f"{knee:g}",
                COMPULSORY[layer],
                "yes" if knee >= COMPULSORY[layer] else "no",
            )
        )
        curves[layer] = (rates, [value / flat for value in values])
    table(("GB/s", *(f"{rate:g}" for rate in rates), "knee", "compulsory", "knee not below"), rows)
    if plots:
        plotted(
            plots / "papers-union-11.svg", curves, "fill bandwidth of a chiplet, GB/s", "EDP / least of the layer", "xy"
        )


SPATIAL = [{"cluster": "chip", "only": ["m"]}, {"cluster": "Column", "only": ["k"]}]
"""Weights are shared along the rows, and partial sums added along the columns."""
KEPT = [{"memory": "GlobalBuffer", "free": ["input", "weight", "output"]}]
"""The buffer may be passed by."""
ACCELFORGE = {
    "name": "accelforge",
    "variants": [
        {
            "spatial": SPATIAL,
            "keep": KEPT,
            "temporal": [
                {"memory": f"{name}Scratchpad", "only": [one]}
                for name, one in (("Input", "n"), ("Weight", "m"), ("Output", "k"))
            ],
        }
    ],
}
"""The loops that stand inside each scratchpad in all mappings of AccelForge: the one that reuses its tensor."""
ANY_LOOPS = {"name": "any_loops", "factors": "ragged", "variants": [{"spatial": SPATIAL, "keep": KEPT}]}
THEIRS = (
    8.938, 8.938, 8.938, 8.938, 8.938, 8.938, 8.938, 8.938, 8.938, 8.938, 6.857, 5.800, 5.800, 4.866, 4.816, 4.439,
    4.389, 3.955, 4.049, 3.906, 4.069, 4.054, 4.370, 4.673, 5.172, 6.052, 6.899, 7.773, 8.770, 9.700, 10.856, 12.169,
)  # fmt: skip
"""pJ per MAC that AccelForge 1.0.467 finds, hwcomponents 1.0.114, size by size."""
WIDE = {"width": 1_000_000}


@study
def accelforge_buffer(store: Path, plots: Path | None) -> None:
    """Energy per MAC over the size of Eyeriss' buffer, with AccelForge's loops and with all."""
    macs = 4096**3
    words: dict[str, Any] = {"objective": "energy", "bounds": False, "store": store, "progress": False}
    work = ("mk,kn->mn; m=4096 k=4096 n=4096", "accelforge_buffer")
    alike = tw.explore(*work, mapper="optimal", mapper_options=WIDE, constraints=ACCELFORGE, **words)
    free = tw.explore(*work, mapper="quickflow", constraints=ANY_LOOPS, **words)
    sizes = [float(each.values["GlobalBuffer.capacity_words"]) / 1000 for each in alike.points]
    found = [[each.energy_pj / macs for each in report.points] for report in (alike, free)]
    least = [(each.layers[0][1].lower_bound or 0.0) / macs for each in alike.points]
    table(
        ("buffer, kB", "AccelForge", "its loops", "surely not below", "any loops, ragged"),
        [tuple(f"{value:.4g}" for value in row) for row in zip(sizes, THEIRS, found[0], least, found[1], strict=True)],
    )
    for name, energy in zip(("AccelForge", "its loops", "any loops"), (list(THEIRS), *found), strict=True):
        flat = [size for size, value in zip(sizes, energy, strict=True) if value <= FLAT * min(energy)]
        print(
            f"{name}: least at {sizes[energy.index(min(energy))]:.4g} kB: {min(energy):.4g} pJ per MAC; "
            f"within {FLAT - 1:.0%} of it from {flat[0]:.4g} to {flat[-1]:.4g} kB"
        )
    if plots:
        curves = {
            "AccelForge": (sizes, THEIRS),
            "its loops": (sizes, found[0]),
            "any loops, ragged": (sizes, found[1]),
        }
        plotted(plots / "papers-accelforge.svg", curves, "global buffer, kB", "pJ per MAC", "x")


@study
def zigzag_forty(store: Path, plots: Path | None) -> None:
    """Cycles and energy of forty machines for one product."""
    report = tw.explore("mk,kn->mn; m=512 k=512 n=512", "zigzag_forty", mapper="quickflow", objective="cycles", evaluations=EVALUATIONS,
                        constraints="none", bounds=False, store=store, progress=False)  # fmt: skip
    rows, curves = [], {}
    for size in (32, 64, 128, 256, 512):
        mine = [each for each in report.points if each.values["kibibytes"] == size]
        mine.sort(key=lambda each: each.cycles)
        rows.append(
            (
                size,
                *(f"{each.cycles:,.0f}" for each in (mine[0], mine[-1])),
                *(each.energy_pj * 1e-6 for each in (mine[0], mine[-1])),
            )
        )
        curves[f"{size} KiB"] = ([each.cycles for each in mine], [each.energy_pj * 1e-6 for each in mine])
    table(("L1, KiB", "least cycles", "most cycles", "uJ there", "uJ there"), rows)
    print(f"on the front: {', '.join(str(dict(each.values)) for each in report.front)}")
    if plots:
        plotted(plots / "papers-zigzag.svg", curves, "cycles", "uJ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", help=f"some of {', '.join(STUDIES)}; none: all")
    parser.add_argument("--store", type=Path, default=Path("papers.sqlite"))
    parser.add_argument("--plots", type=Path, help="folder for the plots")
    given = parser.parse_args()
    for name in given.studies or STUDIES:
        print(f"## {name}", flush=True)
        STUDIES[name](given.store, given.plots)


if __name__ == "__main__":
    main()
