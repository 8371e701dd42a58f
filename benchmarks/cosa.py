"""Mapper `cosa` and CoSA's own schedules, on the 44 layers that those were recorded for, evaluated by one model.

    python benchmarks/cosa.py                          # all layers, some two minutes
    python benchmarks/cosa.py input.5 wu_ --option objective_form=published
    python benchmarks/cosa.py input.5 --mesh 4         # CoSA's traffic term, compared with a mesh of 4 words per cycle and link

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
from tilewright_mappers import CosaOptions
from tilewright_mappers.cosa.mapper import Cosa

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.recorded.cosa import CosaLayer, layers

DRAWN = 100
FORMS = ("head", "isca")


def ratios(layer: CosaLayer, evaluator: Evaluator, result: Result) -> dict[str, float]:
    """Ours over the authors', by form; nan where theirs is invalid."""
    found = {}
    for form in FORMS:
        costs = evaluator.evaluate_batch(layer.mapping(form, layer.space))
        found[form] = result.value / float(costs.edp[0]) if costs.valid[0] else math.nan
    return found


def on_mesh(layer: CosaLayer, words_per_cycle: float, options: dict[str, str], seconds: float) -> str:
    """The layer on Simba with its 16 elements on a 4 x 4 mesh, as one line.

    For 100 random valid mappings: Spearman's rank correlation of CoSA's traffic with the words over all links, and with
    those of the busiest one. Then the cycles and the busiest link of the mapping that `cosa` finds.
    """
    architecture = meshed(layer.space.architecture, words_per_cycle)
    space, registry = MapSpace.of(layer.problem, architecture, rules=None), installed()
    evaluator = registry.make(CostModelSpec, "timeloop").bind(layer.problem, architecture)
    plain = registry.make(CostModelSpec, "timeloop").bind(layer.problem, meshed(layer.space.architecture, None))
    task, rng, found = Task(space), np.random.default_rng(0), list[tuple[float, int, int]]()
    while len(found) < DRAWN:
        batch = space.sample(rng, 4096).batch()
        valid = np.flatnonzero(plain.evaluate_batch(batch).valid)
        for mapping in batch.take(valid[: DRAWN - len(found)]):
            loads = evaluator.explain(mapping).meshes[0].loads.values()
            found.append((Cosa(CosaOptions()).figures(task, mapping)["traffic"], sum(loads), max(loads)))
    ranks = np.array(found).argsort(axis=0).argsort(axis=0)
    hops, busiest = (float(np.corrcoef(ranks[:, 0], ranks[:, other])[0, 1]) for other in (1, 2))
    result = search(registry.make(MapperSpec, "cosa", options), task, evaluator, Budget(seconds=seconds))
    assert result.best is not None
    report = evaluator.explain(result.best)
    link, words = next(iter(report.meshes[0].loads.items()))
    return f"{layer.name:42} {hops:9.2f} {busiest:12.2f} {report.cycles:12,} {words:12,}  {link}"


def meshed(architecture: Architecture, words_per_cycle: float | None) -> Architecture:
    """Return the architecture with its 16 elements on a 4 x 4 mesh; None: on rows and columns without one."""
    data = architecture.model_dump(mode="json")
    at = architecture.cluster_index["Array"]
    mesh = [{"link_words_per_cycle": words_per_cycle}] if words_per_cycle else []
    data["clusters"][at]["fanout"] |= {"size": 4, "network": {"meshes": mesh}}
    data["clusters"].insert(at + 1, {"name": "Column", "fanout": {"size": 4, "axis": "Y"}})
    return Architecture.model_validate(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of layers' names; none: all layers")
    parser.add_argument("--option", action="append", default=[], help="of the mapper, NAME=VALUE")
    parser.add_argument("--seconds", type=float, default=30.0, help="per layer, at most")
    parser.add_argument("--mesh", type=float, metavar="WORDS", help="a mesh with links of so many words per cycle")
    given = parser.parse_args()
    registry, rows, most = installed(), [], 0.0
    options = dict(each.split("=", 1) for each in given.option)
    if given.mesh:
        print(f"{'layer':42} {'word-hops':>9} {'busiest link':>12} {'cycles':>12} {'words':>12}  busiest link of cosa")
        for layer in layers():
            if not given.names or any(name in layer.name for name in given.names):
                print(on_mesh(layer, given.mesh, options, given.seconds), flush=True)
        return
    print(f"{'layer':42} {'EDP, pJ x cycles':>17} {'/head':>6} {'/isca':>6} {'CPU s':>6}  stop")
    for layer in layers():
        if given.names and not any(name in layer.name for name in given.names):
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
