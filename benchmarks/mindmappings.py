"""Mapper `mindmappings` against `random` with the same number of evaluations: EDP on ten layers, three seeds.

    python benchmarks/mindmappings.py -o results.csv      # a few minutes; trained surrogates are kept in the cache
    python benchmarks/mindmappings.py --architectures eyeriss --layers V VI

`mindmappings` does not evaluate mappings that do not fit the memories. `random` does, so `random_fitting` leaves them out as
well. `random` also runs with as many evaluations as search and training together. One surrogate serves all layers of a class, so
this counts its training for each layer as a whole. A row of the CSV is one layer, architecture and seed.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw
from tilewright import library
from tilewright.application.run.search import search
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.result import Result
from tilewright.plugin.specs import CostModelSpec, MapperSpec

WORKLOAD = "quickflow_convs"
LAYERS = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")
FIGURES = ("training_mappings", "training_cpu_seconds", "training_error", "search_cpu_seconds", "moved", "improvement")
OTHERS = ("random", "random_fitting", "random_with_training", "quickflow")


def result(space: MapSpace, mapper: str, seed: int, evaluations: int | None = None) -> Result:
    evaluator = installed().make(CostModelSpec, "timeloop").bind(space.problem, space.architecture)
    return search(installed().make(MapperSpec, mapper), Task(space), evaluator, Budget(evaluations), seed=seed)


def best_fitting(space: MapSpace, seed: int, count: int) -> float:
    """Return the lowest EDP of `count` random mappings that fit."""
    evaluator = installed().make(CostModelSpec, "timeloop").bind(space.problem, space.architecture)
    rng, best = np.random.default_rng(seed), math.inf
    while count > 0:
        rows = space.sample(rng, 8192)
        rows = rows.take(np.flatnonzero(rows.fits())[:count])
        best = min(best, float(evaluator.evaluate_batch(rows.batch()).edp.min(initial=math.inf)))
        count -= len(rows)
    return best


def row(layer: str, architecture: str, space: MapSpace, seed: int) -> dict[str, Any]:
    """Return the EDP of all searches of one space, and the figures of `mindmappings`."""
    learned = result(space, "mindmappings", seed)
    training = int(learned.figures["training_mappings"])
    return {
        "layer": layer,
        "architecture": architecture,
        "seed": seed,
        "evaluations": learned.evaluated,
        "mindmappings": learned.value,
        "random": result(space, "random", seed, learned.evaluated).value,
        "random_fitting": best_fitting(space, seed, learned.evaluated),
        "random_with_training": result(space, "random", seed, learned.evaluated + training).value,
        "quickflow": result(space, "quickflow", seed).value,
        **{name: learned.figures[name] for name in FIGURES},
    }


def summary(rows: list[dict[str, Any]]) -> str:
    """Return the median EDP of every layer over the seeds, and geometric means of their ratios."""
    lines = ["layer architecture mindmappings " + " ".join(f"/{name}" for name in OTHERS)]
    ratios: dict[str, list[float]] = {name: [] for name in OTHERS}
    for key in dict.fromkeys((record["layer"], record["architecture"]) for record in rows):
        same = [record for record in rows if (record["layer"], record["architecture"]) == key]
        median = {name: statistics.median(record[name] for record in same) for name in ("mindmappings", *OTHERS)}
        for name in OTHERS:
            ratios[name].append(median["mindmappings"] / median[name])
        shown = " ".join(f"{ratios[name][-1]:.3f}" for name in OTHERS)
        lines.append(f"{' '.join(key)} {median['mindmappings']:.4g} {shown}")
    for name, values in ratios.items():
        mean = math.exp(math.fsum(map(math.log, values)) / len(values))
        lines.append(
            f"over {name}: {mean:.3f} (geometric mean), lower on {sum(r < 1 for r in values)} of {len(values)}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, help="CSV file")
    parser.add_argument("--layers", nargs="+", default=LAYERS, help=f"of {WORKLOAD}")
    parser.add_argument("--architectures", nargs="+", default=("eyeriss", "simba"))
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    problems = {layer.problem.name: layer.problem for layer in library.workload(WORKLOAD).layers}
    for architecture in given.architectures:
        for layer in given.layers:
            space = tw.space(problems[layer], arch=architecture)
            rows += [row(layer, architecture, space, seed) for seed in range(given.seeds)]
            print(layer, architecture, *(f"{name}={rows[-1][name]:.4g}" for name in FIGURES), flush=True)
            if given.output:
                with given.output.open("w", newline="") as file:
                    writer = csv.DictWriter(file, rows[0].keys())
                    writer.writeheader()
                    writer.writerows(rows)
    print(summary(rows))


if __name__ == "__main__":
    main()
