"""Mapper `cosa` and CoSA's own schedules, on the 44 layers that those were recorded for, evaluated by one model.

    python benchmarks/cosa.py                          # all layers, some two minutes
    python benchmarks/cosa.py input.5 wu_ --option objective_form=published
    python benchmarks/cosa.py input.5 --mesh 4         # CoSA's traffic term, compared with a mesh of 4 words per cycle and link
    python benchmarks/cosa.py --dram                   # Figure 10's DRAM: rows that miss, and tiles that wait

EDP is ours over theirs; `-` where their tiles do not fit the memories. The authors' programs were solved elsewhere, so
their seconds are told beside ours, not compared.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

import numpy as np

from tilewright.application.run.search import search
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Evaluator
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.result import Result
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.objective import CYCLES
from tilewright_mappers import CosaOptions
from tilewright_mappers.cosa.mapper import Cosa

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.recorded.cosa import CosaLayer, layers

DRAWN = 100
FORMS = ("head", "isca")


def ratios(layer: CosaLayer, evaluator: Evaluator, result: Result) -> dict[str, float]:
    """Ours over the authors', by form; nan where theirs is invalid."""
    values = {}
    for form in FORMS:
        costs = evaluator.evaluate_batch(layer.mapping(form, layer.space))
        values[form] = result.value / float(costs.edp[0]) if costs.valid[0] else math.nan
    return values


def on_mesh(layer: CosaLayer, words_per_cycle: float, options: dict[str, str], seconds: float) -> str:
    """The layer on Simba with its 16 elements on a 4 x 4 mesh, as one line.

    For 100 random valid mappings: Spearman's rank correlation of CoSA's traffic with the words over all links, and with
    those of the busiest one. Then the cycles and the busiest link of the mapping that `cosa` finds.
    """
    architecture = meshed(layer.space.architecture, words_per_cycle)
    space, registry = MapSpace.of(layer.problem, architecture, rules=None), installed()
    evaluator = registry.make(CostModelSpec, "timeloop").bind(layer.problem, architecture)
    plain = registry.make(CostModelSpec, "timeloop").bind(layer.problem, meshed(layer.space.architecture, None))
    task, rng, rows = Task(space), np.random.default_rng(0), list[tuple[float, int, int]]()
    while len(rows) < DRAWN:
        batch = space.sample(rng, 4096).batch()
        valid = np.flatnonzero(plain.evaluate_batch(batch).valid)
        for mapping in batch.take(valid[: DRAWN - len(rows)]):
            loads = evaluator.explain(mapping).meshes[0].loads.values()
            rows.append((Cosa(CosaOptions()).figures(task, mapping)["traffic"], sum(loads), max(loads)))
    ranks = np.array(rows).argsort(axis=0).argsort(axis=0)
    hops, busiest = (float(np.corrcoef(ranks[:, 0], ranks[:, other])[0, 1]) for other in (1, 2))
    result = search(registry.make(MapperSpec, "cosa", options), task, evaluator, Budget(seconds=seconds))
    assert result.best is not None
    report = evaluator.explain(result.best)
    link, words = next(iter(report.meshes[0].loads.items()))
    return f"{layer.name:42} {hops:9.2f} {busiest:12.2f} {report.cycles:12,} {words:12,}  {link}"


DRAM = {"rows": {"words": 2048, "miss_cycles": 40, "banks": 4}, "burst_words": 64, "latency_cycles": 40}
"""Assumed: rows of 2 KiB, a miss of 40 cycles, four groups of banks, bursts of 64 bytes."""
RANDOM = 1000
"""Evaluations of `random`, of which few are valid; the other searches stop by themselves."""
RIVALS = ("random", "timeloop_hybrid", "cosa")


def in_dram(layer: CosaLayer, options: dict[str, str], seconds: float) -> dict[str, tuple[int, int]]:
    """Cycles of the mapping of each mapper: those of `timeloop`, and those with rows, latency and double buffering."""
    plain = layer.space.architecture
    changes: dict[str, object] = {f"{memory.name}.timing": {"prefetch": "next"} for memory in plain.memories[1:]}
    slow = plain.replace(changes | {f"{plain.memories[0].name}.timing": DRAM})
    registry, cycles = installed(), dict[str, tuple[int, int]]()
    counting, waiting = (
        registry.make(CostModelSpec, name).bind(layer.problem, hardware)
        for name, hardware in (("timeloop", plain), ("pipelined", slow))
    )
    for name in RIVALS:
        mapper = registry.make(MapperSpec, name, options if name == "cosa" else {})
        best = search(
            mapper, Task(layer.space, objective=CYCLES), counting, Budget(evaluations=5000, seconds=seconds)
        ).best
        assert best is not None
        reports = [model.explain(best) for model in (counting, waiting)]
        cycles[name] = reports[0].cycles or 0, reports[1].cycles or 0
    return cycles


def meshed(architecture: Architecture, words_per_cycle: float | None) -> Architecture:
    """Return the architecture with its 16 elements on a 4 x 4 mesh; None: on rows and columns without one."""
    data = architecture.model_dump(mode="json")
    at = architecture.cluster_index["Array"]
    mesh = [{"link_words_per_cycle": words_per_cycle}] if words_per_cycle else []
    data["clusters"][at]["fanout"] |= {"size": 4, "network": {"meshes": mesh}}
    data["clusters"].insert(at + 1, {"name": "Column", "fanout": {"size": 4, "axis": "Y"}})
    return Architecture.model_validate(data)


def _named(layer: CosaLayer, names: list[str]) -> bool:
    return not names or any(name in layer.name for name in names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of layers' names; none: all layers")
    parser.add_argument("--option", action="append", default=[], help="of the mapper, NAME=VALUE")
    parser.add_argument("--seconds", type=float, default=30.0, help="per layer, at most")
    parser.add_argument("--mesh", type=float, metavar="WORDS", help="a mesh with links of so many words per cycle")
    parser.add_argument("--dram", action="store_true", help="cycles with a DRAM of rows, beside those of other mappers")
    given = parser.parse_args()
    registry, rows, most = installed(), [], 0.0
    options = dict(option.split("=", 1) for option in given.option)
    if given.dram:
        told = [in_dram(layer, options, given.seconds) for layer in layers() if _named(layer, given.names)]
        for number, what in enumerate(("timeloop", "with DRAM's rows")):
            for rival in RIVALS[:-1]:
                factors = [math.log(row[rival][number] / row["cosa"][number]) for row in told]
                print(
                    f"{what}: {rival} takes {math.exp(sum(factors) / len(factors)):.2f} times cosa's cycles, {len(told)} layers"
                )
        return
    if given.mesh:
        print(f"{'layer':42} {'word-hops':>9} {'busiest link':>12} {'cycles':>12} {'words':>12}  busiest link of cosa")
        for layer in layers():
            if _named(layer, given.names):
                print(on_mesh(layer, given.mesh, options, given.seconds), flush=True)
        return
    print(f"{'layer':42} {'EDP, pJ x cycles':>17} {'/head':>6} {'/isca':>6} {'CPU s':>6}  stop")
    for layer in layers():
        if not _named(layer, given.names):
            continue
        evaluator = registry.make(CostModelSpec, "timeloop").bind(layer.problem, layer.space.architecture)
        task, budget = Task(layer.space), Budget(seconds=given.seconds)
        result = search(registry.make(MapperSpec, "cosa", options), task, evaluator, budget)
        rows.append(ratios(layer, evaluator, result))
        most = max(most, result.cpu_seconds)
        shown = " ".join("     -" if math.isnan(value) else f"{value:6.3f}" for value in rows[-1].values())
        print(f"{layer.name:42} {result.value:17.6g} {shown} {result.cpu_seconds:6.1f}  {result.stop}", flush=True)
    for form in FORMS:
        known = [math.log(row[form]) for row in rows if not math.isnan(row[form])]
        if known:
            mean = math.exp(sum(known) / len(known))
            print(f"geometric mean over {form}: {mean:.3f}, of {len(known)} layers that fit, of {len(rows)}")
    print(f"most CPU seconds for one layer: {most:.1f}")


if __name__ == "__main__":
    main()
