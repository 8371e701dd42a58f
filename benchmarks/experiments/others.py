"""Explorations of other tools: AccelForge's curve over the size of a buffer, and ZigZag's forty architectures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tilewright as tw
from benchmarks.experiments.framework import Chart, Experiment, Row, Run, distinct, number, table

FLAT = 1.06
"""Where a curve is called flat."""
SPATIAL = [{"cluster": "chip", "only": ["m"]}, {"cluster": "Column", "only": ["k"]}]
"""Weights are shared along the rows, and partial sums added along the columns."""
KEPT = [{"memory": "GlobalBuffer", "free": ["input", "weight", "output"]}]
"""The buffer may be passed by."""
INNER = [
    {"memory": f"{name}Scratchpad", "only": [one]} for name, one in (("Input", "n"), ("Weight", "m"), ("Output", "k"))
]
"""The loops inside each scratchpad in all mappings of AccelForge: the one that reuses its tensor."""
THEIR_LOOPS = {"name": "accelforge", "variants": [{"spatial": SPATIAL, "keep": KEPT, "temporal": INNER}]}
ANY_LOOPS = {"name": "any_loops", "factors": "ragged", "variants": [{"spatial": SPATIAL, "keep": KEPT}]}
THEIRS = (
    8.938, 8.938, 8.938, 8.938, 8.938, 8.938, 8.938, 8.938, 8.938, 8.938, 6.857, 5.800, 5.800, 4.866, 4.816, 4.439,
    4.389, 3.955, 4.049, 3.906, 4.069, 4.054, 4.370, 4.673, 5.172, 6.052, 6.899, 7.773, 8.770, 9.700, 10.856, 12.169,
)  # fmt: skip
"""pJ per MAC that AccelForge 1.0.467 finds, hwcomponents 1.0.114, size by size."""
CURVES = ("AccelForge", "its loops", "any loops, ragged")


def measure_buffer(run: Run) -> Iterator[Row]:
    words: dict[str, Any] = {"objective": "energy", "bounds": False, "store": run.store, "progress": False}
    work = ("mk,kn->mn; m=4096 k=4096 n=4096", "accelforge_buffer")
    alike = tw.explore(
        *work, mapper="optimal", mapper_options={"width": run.pick(200, 1_000)}, constraints=THEIR_LOOPS, **words
    )
    free = tw.explore(*work, mapper="quickflow", constraints=ANY_LOOPS, evaluations=run.pick(20_000, 100_000), **words)
    for one, other, theirs in zip(alike.points, free.points, THEIRS, strict=True):
        layers = [point.layers[0][1] for point in (one, other)]
        yield {
            "kilobytes": float(one.values["GlobalBuffer.capacity_words"]) / 1000,
            "AccelForge": theirs,
            "its loops": one.energy_pj / 4096**3,
            "not below": (layers[0].lower_bound or 0.0) / 4096**3 or None,
            "any loops, ragged": other.energy_pj / 4096**3,
            "cpu_seconds": sum(layer.cpu_seconds for layer in layers),
        }


def show_buffer(rows: list[Row]) -> Iterator[str]:
    columns = ("kilobytes", "AccelForge", "its loops", "not below", "any loops, ragged")
    yield table(("buffer, kB", *columns[1:]), [[number(row, column) for column in columns] for row in rows[::3]])
    lines = []
    for name in CURVES:
        least = min(rows, key=lambda row: number(row, name))
        flat = [number(row, "kilobytes") for row in rows if number(row, name) <= FLAT * number(least, name)]
        lines.append(
            f"* {name}: least at {number(least, 'kilobytes'):.3g} kB, {number(least, name):.4g} pJ per MAC; "
            f"within {FLAT - 1:.0%} of it from {flat[0]:.3g} to {flat[-1]:.3g} kB."
        )
    yield "\n".join(lines)


def chart_buffer(rows: list[Row]) -> Chart:
    sizes = [number(row, "kilobytes") for row in rows]
    curves = {name: (sizes, [number(row, name) for row in rows]) for name in CURVES}
    return Chart("global buffer, kB", "pJ per MAC", curves, "x")


def measure_forty(run: Run) -> Iterator[Row]:
    report = tw.explore(
        "mk,kn->mn; m=512 k=512 n=512", "zigzag_forty", mapper="quickflow", objective="cycles", constraints="none",
        evaluations=20_000, bounds=False, store=run.store, progress=False,
    )  # fmt: skip
    front = {str(point.values) for point in report.front}
    for point in report.points:
        yield {
            "kibibytes": point.values["kibibytes"],
            "cycles": point.cycles,
            "uj": point.energy_pj * 1e-6,
            "front": str(point.values) in front,
            "cpu_seconds": sum(result.cpu_seconds for _, result in point.layers),
        }


def show_forty(rows: list[Row]) -> Iterator[str]:
    lines = []
    for size in sorted(distinct(rows, "kibibytes"), key=float):
        mine = sorted((row for row in rows if row["kibibytes"] == size), key=lambda row: number(row, "cycles"))
        ends = (mine[0], mine[-1])
        lines.append([size, *(number(row, "cycles") for row in ends), *(number(row, "uj") for row in ends)])
    yield table(("L1, KiB", "fewest cycles", "most cycles", "uJ at the fewest", "uJ at the most"), lines)
    front = [row for row in rows if row["front"] == "True"]
    yield f"{len(front)} of {len(rows)} architectures are on the front: L1 of {', '.join(distinct(front, 'kibibytes'))} KiB."


def chart_forty(rows: list[Row]) -> Chart:
    curves = {}
    for size in distinct(rows, "kibibytes"):
        mine = sorted((row for row in rows if row["kibibytes"] == size), key=lambda row: number(row, "cycles"))
        curves[f"{size} KiB"] = ([number(row, "cycles") for row in mine], [number(row, "uj") for row in mine])
    return Chart("cycles", "uJ", curves)


EXPERIMENTS = (
    Experiment(
        "accelforge_buffer",
        "AccelForge",
        "Tutorial",
        "energy over the size of the global buffer",
        "The minimum is around 24 kB, read off a plot. AccelForge 1.0.467, run over its 32 sizes, has it at 43.8 kB.",
        "With AccelForge's loops, 0.052 pJ are sums that AccelForge reads for every operation. `timeloop` does not read where a "
        "sum begins. Below 4 kB and above 1.9 MB, AccelForge waits for DRAM, and everything leaks meanwhile. Here DRAM never "
        "limits the speed. With any loops, ragged tiles use the whole array.",
        "1,000 states of `optimal` (200). Any loops have 100,000 mappings per size "
        "(20,000).",
        measure_buffer,
        show_buffer,
        chart_buffer,
    ),
    Experiment(
        "zigzag_forty",
        "ZigZag",
        "Tutorial",
        "cycles and energy of forty architectures",
        "Five sizes of L1 by eight arrays are compared, in one run.",
        "ZigZag's own run has another product. The array determines the cycles: eight times the elements, an eighth of the cycles. "
        "With a large L1, DRAM no longer limits the largest array.",
        "nothing: with 2,000 mappings per architecture another one is best.",
        measure_forty,
        show_forty,
        chart_forty,
    ),
)  # fmt: skip
