"""How fast `timeloop` prices, batches beside single mappings, in one run on one core.

    OMP_NUM_THREADS=1 python benchmarks/pricing.py [SECONDS_PER_FIGURE]

Mappings per second of CPU time. Columns: the whole search of `random`, drawing included; batches as drawn and batches
of valid mappings only, by the compiled loop (needs numba) and by NumPy; one mapping at a time; and the ratio of the
compiled loop to that, for valid mappings. Every figure includes the full check of validity.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from tilewright import library
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.run.search import search

CASES = (
    ("3x3, 64 channels, 56x56", "quickflow_convs", "IV", "eyeriss"),
    ("3x3, 128 channels, 28x28", "quickflow_convs", "V", "eyeriss"),
    ("3x3, 256 channels, 14x14", "quickflow_convs", "VI", "eyeriss"),
    ("3x3, convolution I", "quickflow_convs", "I", "eyeriss"),
    ("3x3, convolution I", "quickflow_convs", "I", "simba"),
    ("GEMM KQV", "factorflow_gemms", "KQV", "tpu_v1"),
)
BATCH = 16384


def rate(run: Callable[[], object], mappings: int, seconds: float) -> float:
    """Mappings per CPU second of a run of so many, repeated."""
    run()
    done, started = 0, time.process_time()
    while time.process_time() - started < seconds:
        run()
        done += mappings
    return done / (time.process_time() - started)


def measure(space: MapSpace, seconds: float) -> list[float]:
    """The figures of one row."""
    registry = installed()
    evaluators = [
        registry.make(CostModelSpec, "timeloop", {"arrays": arrays}).bind(space.problem, space.architecture)
        for arrays in ("numba", "numpy")
    ]
    drawn = space.sample(np.random.default_rng(1), BATCH).batch()
    valid = np.flatnonzero(evaluators[0].evaluate_batch(drawn).valid)
    good = drawn.take(np.resize(valid, BATCH))
    found = search(registry.make(MapperSpec, "random"), Task(space), evaluators[0], Budget(seconds=seconds))
    figures = [found.evaluated / found.cpu_seconds]
    for evaluator in evaluators:
        for batch in (drawn, good):
            figures.append(rate(partial(evaluator.evaluate_batch, batch), BATCH, seconds))
    singles = [good[index] for index in range(min(40, len(valid)))]
    one = rate(lambda: [evaluators[0].explain(mapping) for mapping in singles], len(singles), seconds)
    return [*figures, one, figures[2] / one]


def main(seconds: float) -> None:
    """Print one row per case."""
    heads = ("search", "drawn", "valid", "NumPy drawn", "NumPy valid", "single", "ratio")
    print(f"{'problem':26}{'architecture':14}" + "".join(f"{head:>13}" for head in heads))
    for title, workload, layer, name in CASES:
        architecture = library.architecture(name)
        problem = next(each.problem for each in library.workload(workload).layers if each.name == layer)
        dataflow = library.default_constraints(name)
        space = MapSpace.of(problem, architecture, dataflow.rules_for(problem, architecture) if dataflow else None)
        print(f"{title:26}{name:14}" + "".join(f"{figure:13,.0f}" for figure in measure(space, seconds)), flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 3.0)
