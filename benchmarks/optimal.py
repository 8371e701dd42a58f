"""`optimal` on the twenty convolutions of QuickFlow and the accelerators of its authors, with their constraints and without.

    python benchmarks/optimal.py                   # all 120 spaces, some minutes
    python benchmarks/optimal.py V VII --constraints default --seconds 60 --factors ragged
    python benchmarks/optimal.py --workloads resnet50,mobilenetv2 --archs eyeriss,simba,tpu_v1,gemmini --constraints default \
        --seconds 5 --factors ragged

One line of CSV per space: what is proved, CPU seconds from a warm start, mappings evaluated, states; then what they come to, and the
share that is proved of layers with windows and of others.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import sys
import time

import tilewright as tw
from tilewright.application.run.search import search
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.schema.problem import Problem

ARCHITECTURES = ("eyeriss", "simba", "tpu_v1")
COLUMNS = ("workload", "layer", "architecture", "constraints", "edp", "gap", "cpu_seconds", "evaluated", "states")


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layers", nargs="*", help="such as VII; all without a word")
    parser.add_argument("--seconds", type=float, help="CPU time of each search; no limit without it")
    parser.add_argument("--constraints", choices=("default", "none"), help="only with these; with both without a word")
    parser.add_argument("--factors", choices=("perfect", "ragged"), default="perfect", help="whether tiles divide")
    parser.add_argument("--workloads", default="quickflow_convs", help="which, by comma")
    parser.add_argument("--archs", default=",".join(ARCHITECTURES), help="which, by comma")
    parser.add_argument("--every", type=int, default=1, help="only every so many distinct layers")
    arguments = parser.parse_args()
    model, mapper = installed().make(CostModelSpec, "timeloop"), installed().make(MapperSpec, "optimal")
    table = csv.writer(sys.stdout)
    table.writerow(COLUMNS)
    seconds: list[float] = []
    gaps: dict[tuple[str, str, bool], list[float]] = {}
    layers = [
        (workload, layer.layers[0], layer.problem)
        for workload in arguments.workloads.split(",")
        for layer in tw.load(workload, "workload").distinct()[:: arguments.every]
    ]
    for constraints in (arguments.constraints,) if arguments.constraints else ("default", "none"):
        for workload, name, problem in layers:
            for place in arguments.archs.split(","):
                if arguments.layers and name not in arguments.layers:
                    continue
                chosen = None if constraints == "default" else constraints
                space = tw.space(problem, arch=place, constraints=chosen, factors=arguments.factors)
                evaluator = model.bind(space.problem, space.architecture)
                search(mapper, Task(space), evaluator, Budget(evaluations=1))  # compiles
                started = time.process_time()
                result = search(
                    mapper, Task(space), evaluator, Budget(seconds=arguments.seconds), clock=time.process_time
                )
                seconds.append(time.process_time() - started)
                gaps.setdefault((workload, place, _has_windows(problem)), []).append(
                    math.inf if result.gap is None else result.gap
                )
                gap = "" if result.gap is None else f"{result.gap:.3g}"
                figures = f"{result.value:.6g}", gap, f"{seconds[-1]:.2f}", result.evaluated
                table.writerow((workload, name, place, constraints, *figures, int(result.figures.get("states", 0))))
                sys.stdout.flush()
    for (workload, place, windows), some in sorted(gaps.items()):
        kind, median = "with windows" if windows else "others", statistics.median(some)
        print(f"| {workload} | `{place}` | {kind} | {len(some)} | {_proved(some)} | {median:.1%} |")
    if seconds:
        mean = math.exp(sum(map(math.log, seconds)) / len(seconds))
        proved = sum(map(_proved, gaps.values()))
        print(f"# {proved} of {len(seconds)} proved; CPU seconds: geometric mean {mean:.2f}, most {max(seconds):.1f}")


def _proved(gaps: list[float]) -> int:
    return sum(gap < 1e-8 for gap in gaps)


def _has_windows(problem: Problem) -> bool:
    """Return whether several dimensions above 1 share a coordinate of a tensor."""
    places = (place for tensor in problem.tensors for place in tensor.projection)
    return any(sum(problem.dimensions[name] > 1 for name in place.terms) > 1 for place in places)


if __name__ == "__main__":
    main()
