"""How fast `random` with `timeloop` goes, batches beside single mappings, in one run on one core.

    OMP_NUM_THREADS=1 python benchmarks/pricing.py [SECONDS_PER_FIGURE]

Columns: mappings drawn and priced per second by the whole search; priced only, as drawn; priced only, valid ones; one
at a time; and the ratio of the last two.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from tilewright import library
from tilewright.costmodel import CostModel
from tilewright.mapper import Budget, Mapper, Task
from tilewright.mapspace import MapSpace
from tilewright.plugin import CostModelSpec, MapperSpec
from tilewright.registry import installed
from tilewright.search import search

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
    """Mappings per second of a run of so many, repeated."""
    run()
    done, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        run()
        done += mappings
    return done / (time.perf_counter() - started)


def measure(space: MapSpace, mapper: Mapper, model: CostModel, seconds: float) -> tuple[float, float, float, float]:
    """(search, as drawn, valid, single) mappings per second."""
    evaluator = model.bind(space.problem, space.architecture)
    started = time.perf_counter()
    found = search(mapper, Task(space), evaluator, Budget(seconds=seconds))
    searched = found.evaluated / (time.perf_counter() - started)
    drawn = space.sample(np.random.default_rng(1), BATCH)
    valid = np.flatnonzero(evaluator.evaluate_batch(drawn).valid)
    good = drawn.take(np.resize(valid, BATCH))
    singles = [good[index] for index in range(min(40, len(valid)))]
    return (
        searched,
        rate(lambda: evaluator.evaluate_batch(drawn), BATCH, seconds),
        rate(lambda: evaluator.evaluate_batch(good), BATCH, seconds),
        rate(lambda: [evaluator.explain(mapping) for mapping in singles], len(singles), seconds),
    )


def main(seconds: float) -> None:
    """Print one row per case."""
    registry = installed()
    model, mapper = registry.make(CostModelSpec, "timeloop"), registry.make(MapperSpec, "random")
    print(
        f"{'problem':26}{'architecture':14}{'search/s':>12}{'drawn/s':>12}{'valid/s':>12}{'single/s':>10}{'ratio':>8}"
    )
    for title, workload, layer, name in CASES:
        architecture = library.architecture(name)
        problem = next(each.problem for each in library.workload(workload).layers if each.name == layer)
        dataflow = library.default_constraints(name)
        space = MapSpace.of(problem, architecture, dataflow.rules_for(problem, architecture) if dataflow else None)
        searched, drawn, valid, single = measure(space, mapper, model, seconds)
        print(f"{title:26}{name:14}{searched:12,.0f}{drawn:12,.0f}{valid:12,.0f}{single:10,.0f}{valid / single:8,.0f}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 3.0)
