"""Ragged tiles beside perfect factors: the EDP that one mapper finds in either space, on the published layers and four machines.

    python benchmarks/ragged.py --quick                    # the four matrix products
    python benchmarks/ragged.py -o FILE.csv                # all layers; start it again and it goes on where it was

The search of perfect factors ends by itself; that of the ragged space may take twice its CPU time, and no more. Both spaces are
those under the published dataflow, both are evaluated by `timeloop`. A ratio below 1 is what ragged tiles spare.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from collections.abc import Iterator
from pathlib import Path

import tilewright as tw
from tilewright.application.run.search import search
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.result import Result
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.schema.problem import Problem

ARCHITECTURES = ("eyeriss", "simba", "tpu_v1", "gemmini")
GEMMS = {
    "256 x 256 x 256": "nk,km->nm; n=256 k=256 m=256",
    "197 x 768 x 2304": "nk,km->nm; n=197 k=768 m=2304",
    "50257 x 768 x 128": "nk,km->nm; n=128 k=768 m=50257",
    "577 x 1024 x 4096": "nk,km->nm; n=577 k=1024 m=4096",
}
WORKLOADS = ("quickflow_convs", "alexnet", "inception_v2")
FIELDS = ("workload", "layer", "architecture", "mapper", "perfect_edp", "ragged_edp", "perfect_cpu_s", "ragged_cpu_s")


def layers(quick: bool) -> Iterator[tuple[str, str, Problem]]:
    """(workload, layer, problem)."""
    for name, formula in GEMMS.items():
        yield "gemms", name, tw.load(formula, "problem")
    for workload in () if quick else WORKLOADS:
        for distinct in tw.load(workload, "workload").distinct():
            yield workload, distinct.layers[0], distinct.problem


def result(problem: Problem, architecture: str, mapper: str, factors: str, seconds: float | None) -> Result:
    """What the mapper finds; `seconds` of CPU time."""
    registry, space = installed(), tw.space(problem, arch=architecture, factors=factors)
    evaluator = registry.make(CostModelSpec, "timeloop").bind(problem, space.architecture)
    budget = Budget(seconds=seconds)
    return search(registry.make(MapperSpec, mapper), Task(space), evaluator, budget, clock=time.process_time)


def measured(workload: str, layer: str, problem: Problem, architecture: str, mapper: str) -> dict[str, str]:
    """One row."""
    perfect = result(problem, architecture, mapper, "perfect", None)
    ragged = result(problem, architecture, mapper, "ragged", 2 * perfect.cpu_seconds)
    figures = (perfect.value, ragged.value, perfect.cpu_seconds, ragged.cpu_seconds)
    words = (workload, layer, architecture, mapper, *(f"{figure:.6g}" for figure in figures))
    return dict(zip(FIELDS, words, strict=True))


def summary(rows: list[dict[str, str]]) -> Iterator[str]:
    """A table: the ratios of every workload on every machine, geometric mean and worst."""
    yield "| workload | machine | layers | ragged / perfect EDP | least | most |"
    yield "| --- | --- | ---: | ---: | ---: | ---: |"
    for workload, architecture in dict.fromkeys((row["workload"], row["architecture"]) for row in rows):
        here = [row for row in rows if (row["workload"], row["architecture"]) == (workload, architecture)]
        ratios = [float(row["ragged_edp"]) / float(row["perfect_edp"]) for row in here]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        yield f"| {workload} | `{architecture}` | {len(here)} | {mean:.3f} | {min(ratios):.3f} | {max(ratios):.3f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("ragged.csv"), help="one row per layer and machine")
    parser.add_argument("--mapper", default="sunstone")
    parser.add_argument("--quick", action="store_true", help="the four matrix products only")
    parser.add_argument("--arch", action="append", help="one of the machines; may be repeated")
    given = parser.parse_args()
    rows = list(csv.DictReader(given.output.open())) if given.output.exists() else []
    known = {tuple(row[name] for name in FIELDS[:4]) for row in rows}
    with given.output.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not rows:
            writer.writeheader()
        for workload, layer, problem in layers(given.quick):
            for architecture in given.arch or ARCHITECTURES:
                if (workload, layer, architecture, given.mapper) not in known:
                    rows.append(measured(workload, layer, problem, architecture, given.mapper))
                    writer.writerow(rows[-1])
                    file.flush()
                    print(*rows[-1].values(), flush=True)
    print("\n".join(summary(rows)))


if __name__ == "__main__":
    main()
