"""How many mappings `timeloop` and `maestro` evaluate per second, in one run on one core.

    OMP_NUM_THREADS=1 python benchmarks/pricing.py [SECONDS_PER_FIGURE]

Mappings per second of CPU time, the full check of validity included. Columns: the whole search of `random`, drawing
included; candidates as a search has them, drawn uniformly and as neighbours of good ones; valid mappings only; the same
as tile sizes; of the ragged space, drawn ones, valid ones, and these over valid perfect ones (of timeloop only); drawn and valid ones
where every hop of the NoCs costs energy (of timeloop only), and the lesser of these two over the same without; one mapping at a time,
with its full report. All but the search are evaluated in turns, so that what else the machine does changes no share.
The last rows are valid mappings of sparse hardware: mappings per second, and the share of the rate of the same hardware
without its sparse parts, after a first run that fills the memo of what tiles hold.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

import tilewright as tw
from tilewright.application.run.search import search
from tilewright.interrupts import preserving_results
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.space import MapSpace
from tilewright.plugin import Budget, CostModelSpec, Evaluator, MapperSpec, Task, installed
from tilewright.plugin.costmodel import CandidateEvaluator, Costs
from tilewright.schema.density import Density

ARRAY = tw.Architecture.from_yaml("""
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
DATAFLOW = tw.Constraints.from_yaml("""
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
TIMELOOP = (
    ("quickflow_convs/IV", "eyeriss"),
    ("quickflow_convs/V", "eyeriss"),
    ("quickflow_convs/VI", "eyeriss"),
    ("quickflow_convs/I", "eyeriss"),
    ("quickflow_convs/I", "simba"),
    ("factorflow_gemms/KQV", "tpu_v1"),
)
SPARSE = ("quickflow_convs/IV", "eyeriss_gating"), ("quickflow_convs/VI", "eyeriss_gating")
MAESTRO = ("quickflow_convs/IV", "quickflow_convs/V", "quickflow_convs/VI", "quickflow_convs/I")
HEADS = (
    "search",
    "drawn",
    "neighbours",
    "valid",
    "as tiles",
    "ragged",
    "its valid",
    "its share",
    "NoC drawn",
    "NoC valid",
    "NoC share",
    "single",
)
BATCH = 16384


Work = tuple[Callable[[], object], int]
"""A run, and of how many mappings."""


def rates(work: dict[str, Work], seconds: float) -> dict[str, float]:
    """Mappings per CPU second of each, run in turns, for so many seconds each on average."""
    spent = dict.fromkeys(work, 0.0)
    for run, _ in work.values():
        run()
    turns = 0
    with preserving_results():  # as in a search, which sets up once how Ctrl-C is heard
        while sum(spent.values()) < seconds * len(work):
            turns += 1
            for name, (run, _) in work.items():
                started = time.process_time()
                run()
                spent[name] += time.process_time() - started
    return {name: turns * mappings / spent[name] for name, (_, mappings) in work.items()}


def asked(evaluator: Evaluator) -> Callable[[Candidates], Costs]:
    """How a search asks for the costs of candidates."""
    if isinstance(evaluator, CandidateEvaluator):
        return evaluator.evaluate_candidates
    return lambda candidates: evaluator.evaluate_batch(candidates.batch())


def with_noc_energy(architecture: tw.Architecture) -> tw.Architecture:
    """Every hop of every NoC costs energy."""
    changes = {f"{cluster.name}.fanout.network.energy_per_hop_pj": 0.1 for cluster in architecture.clusters}
    return architecture.replace(changes)


def figures(space: MapSpace, model: str, seconds: float) -> dict[str, float]:
    """One row."""

    def bound(architecture: tw.Architecture) -> Evaluator:
        return installed().make(CostModelSpec, model).bind(space.problem, architecture)

    evaluator = bound(space.architecture)
    costs = asked(evaluator)
    drawn = space.sample(np.random.default_rng(1), BATCH)
    first = costs(drawn)
    good = drawn.take(np.resize(np.flatnonzero(first.valid), BATCH))
    best = drawn.take(np.argsort(first.edp)[:256])
    near, _ = space.neighbours(best)
    near = near.take(slice(0, BATCH))
    result = search(installed().make(MapperSpec, "random"), Task(space), evaluator, Budget(seconds=seconds))
    singles = [good[index] for index in range(40)]
    work: dict[str, Work] = {
        "drawn": (partial(costs, drawn), BATCH),
        "neighbours": (partial(costs, near), len(near)),
        "valid": (partial(costs, good), BATCH),
        "as tiles": (partial(evaluator.evaluate_batch, good.batch()), BATCH),
        "single": (lambda: [evaluator.explain(mapping) for mapping in singles], len(singles)),
    }
    if model == "timeloop":
        ragged = replace(space, factors="ragged").sample(np.random.default_rng(1), BATCH)
        whole = ragged.take(np.resize(np.flatnonzero(costs(ragged).valid), BATCH))
        costly = asked(bound(with_noc_energy(space.architecture)))
        work |= {
            "ragged": (partial(costs, ragged), BATCH),
            "its valid": (partial(costs, whole), BATCH),
            "NoC drawn": (partial(costly, drawn), BATCH),
            "NoC valid": (partial(costly, good), BATCH),
        }
    row = rates(work, seconds) | {"search": result.evaluated / result.cpu_seconds}
    if model == "timeloop":
        row["its share"] = row["its valid"] / row["valid"]
        row["NoC share"] = min(row[f"NoC {which}"] / row[which] for which in ("drawn", "valid"))
    return row


def show(title: str, row: dict[str, float]) -> None:
    """A line of the table."""
    cells = [f"{row[head]:12,.{2 if 'share' in head else 0}f}" if head in row else f"{'-':>12}" for head in HEADS]
    print(f"{title:40}" + "".join(cells), flush=True)


def sparse_figures(layer: str, name: str, seconds: float) -> dict[str, float]:
    """One row of sparse hardware."""
    problem = tw.space(layer, name).problem
    tensors = [
        tensor
        if tensor.is_output
        else tensor.model_copy(update={"density": Density(density=0.4, distribution="uniform")})
        for tensor in problem.tensors
    ]
    problem, architecture = problem.model_copy(update={"tensors": tuple(tensors)}), tw.library.architecture(name)
    plain = architecture.with_memories(lambda memory: memory.model_copy(update={"sparse": None}))
    plain = plain.model_copy(update={"compute": plain.compute.model_copy(update={"sparse": None})})
    bind = installed().make(CostModelSpec, "timeloop").bind
    sparse, dense = (asked(bind(problem, hardware)) for hardware in (architecture, plain))
    drawn = tw.space(problem, architecture).sample(np.random.default_rng(1), BATCH)
    good = drawn.take(np.resize(np.flatnonzero(sparse(drawn).valid), BATCH))
    row = rates({"valid": (partial(sparse, good), BATCH), "dense": (partial(dense, good), BATCH)}, seconds)
    return {"valid": row["valid"], "its share": row["valid"] / row["dense"]}


def main(seconds: float) -> None:
    """Print one row per case."""
    print(f"{'timeloop':40}" + "".join(f"{head:>12}" for head in HEADS))
    for layer, name in TIMELOOP:
        show(f"{layer} on {name}", figures(tw.space(layer, name), "timeloop", seconds))
    print(f"{'timeloop, sparse':40}" + "".join(f"{head:>12}" for head in HEADS))
    for layer, name in SPARSE:
        show(f"{layer} on {name}", sparse_figures(layer, name, seconds))
    print(f"{'maestro, partitioned over K and C':40}" + "".join(f"{head:>12}" for head in HEADS))
    for layer in MAESTRO:
        show(layer, figures(tw.space(layer, ARRAY, constraints=DATAFLOW), "maestro", seconds))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 3.0)
