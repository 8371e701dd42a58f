"""How fast `maestro` prices convolutions partitioned over K and C, batches beside single mappings, in one run on one core.

    OMP_NUM_THREADS=1 python benchmarks/pricing_maestro.py [SECONDS_PER_FIGURE]

Mappings per second of CPU time, the full check of validity included. Columns: batches as drawn from the map space;
batches of valid mappings only; one mapping at a time; the ratio of the batches of valid mappings to that; and the share
of drawn mappings that are valid.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from tilewright import library
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints

ARRAY = Architecture.from_yaml("""
name: kc_array
clusters:
- name: DRAM
  memories: [{name: DRAM, technology: dram, read_energy_pj: 100, write_energy_pj: 100, read_bandwidth_words_per_cycle: 64}]
- name: L2
  memories: [{name: L2, capacity_words: 524288, read_energy_pj: 4.28, write_energy_pj: 4.28}]
  fanout: {size: 16, network: {bandwidth_words_per_cycle: 64, latency_cycles: 1}}
- name: Row
  fanout: {size: 16, axis: Y}
- name: PE
  memories: [{name: L1, capacity_words: 2048, read_energy_pj: 0.39, write_energy_pj: 0.39}]
compute: {energy_per_operation_pj: 0.23}
""")
DATAFLOW = Constraints.from_yaml("""
name: kc_partitioned
variants:
- structure: conv
  temporal:
  - {memory: DRAM, only: [N, K, C, P, Q]}
  - {memory: L2, only: []}
  spatial:
  - {cluster: L2, only: [K]}
  - {cluster: Row, only: [C]}
  - {cluster: PE, only: []}
""")
CASES = (
    ("3x3, 64 channels, 56x56", "quickflow_convs", "IV"),
    ("3x3, 128 channels, 28x28", "quickflow_convs", "V"),
    ("3x3, 256 channels, 14x14", "quickflow_convs", "VI"),
    ("3x3, convolution I", "quickflow_convs", "I"),
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
    evaluator = installed().make(CostModelSpec, "maestro").bind(space.problem, space.architecture)
    drawn = space.sample(np.random.default_rng(1), BATCH).batch()
    valid = np.flatnonzero(evaluator.evaluate_batch(drawn).valid)
    good = drawn.take(np.resize(valid, BATCH))
    rates = [rate(partial(evaluator.evaluate_batch, batch), BATCH, seconds) for batch in (drawn, good)]
    singles = [good[index] for index in range(min(40, len(valid)))]
    one = rate(lambda: [evaluator.explain(mapping) for mapping in singles], len(singles), seconds)
    return [*rates, one, rates[1] / one, 100 * len(valid) / BATCH]


def main(seconds: float) -> None:
    """Print one row per case."""
    heads = ("drawn", "valid", "single", "ratio", "valid %")
    print(f"{'problem':26}" + "".join(f"{head:>12}" for head in heads))
    for title, workload, layer in CASES:
        problem = next(each.problem for each in library.workload(workload).layers if each.name == layer)
        space = MapSpace.of(problem, ARRAY, DATAFLOW.rules_for(problem, ARRAY))
        print(f"{title:26}" + "".join(f"{figure:12,.0f}" for figure in measure(space, seconds)), flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 3.0)
