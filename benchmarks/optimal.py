"""`optimal` on the twenty convolutions of QuickFlow and the accelerators of its authors, with their constraints and without.

    python benchmarks/optimal.py                   # all 120 spaces, some minutes
    python benchmarks/optimal.py V VII --constraints default --seconds 60 --factors ragged

One line of CSV per space: what is proved, CPU seconds from a warm start, mappings evaluated, states; then what they come to.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time

import tilewright as tw
from tilewright import library
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.run.search import search

ARCHITECTURES = ("eyeriss", "simba", "tpu_v1")
COLUMNS = ("layer", "architecture", "constraints", "edp", "gap", "cpu_seconds", "evaluated", "states")


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layers", nargs="*", help="such as VII; all without a word")
    parser.add_argument("--seconds", type=float, help="CPU time of each search; no limit without it")
    parser.add_argument("--constraints", choices=("default", "none"), help="only with these; with both without a word")
    parser.add_argument("--factors", choices=("perfect", "ragged"), default="perfect", help="whether tiles divide")
    arguments = parser.parse_args()
    model, mapper = installed().make(CostModelSpec, "timeloop"), installed().make(MapperSpec, "optimal")
    table = csv.writer(sys.stdout)
    table.writerow(COLUMNS)
    seconds: list[float] = []
    proved = 0
    for constraints in (arguments.constraints,) if arguments.constraints else ("default", "none"):
        for layer in library.workload("quickflow_convs").layers:
            for place in ARCHITECTURES:
                name = layer.problem.name
                if arguments.layers and name not in arguments.layers:
                    continue
                chosen = None if constraints == "default" else constraints
                space = tw.space(layer.problem, arch=place, constraints=chosen, factors=arguments.factors)
                evaluator = model.bind(space.problem, space.architecture)
                search(mapper, Task(space), evaluator, Budget(evaluations=1))  # compiles
                started = time.process_time()
                result = search(
                    mapper, Task(space), evaluator, Budget(seconds=arguments.seconds), clock=time.process_time
                )
                seconds.append(time.process_time() - started)
                proved += result.proved == "yes"
                gap = "" if result.gap is None else f"{result.gap:.3g}"
                figures = f"{result.value:.6g}", gap, f"{seconds[-1]:.2f}", result.evaluated
                table.writerow((name, place, constraints, *figures, int(result.figures.get("states", 0))))
                sys.stdout.flush()
    if seconds:
        mean = math.exp(sum(map(math.log, seconds)) / len(seconds))
        print(f"# {proved} of {len(seconds)} proved; CPU seconds: geometric mean {mean:.2f}, most {max(seconds):.1f}")


if __name__ == "__main__":
    main()
