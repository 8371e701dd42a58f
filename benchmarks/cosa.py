"""Mapper `cosa` and CoSA's own schedules, on the 44 layers that those were recorded for, evaluated by one model.

    python benchmarks/cosa.py                          # all layers, some two minutes
    python benchmarks/cosa.py input.5 wu_ --option objective_form=published

EDP is ours over theirs; `-` where their tiles do not fit the memories. The authors' programs were solved elsewhere, so
their seconds are told beside ours, not compared.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from tilewright.plugin.costmodel import Evaluator
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.result import Result
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.run.search import search

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.recorded.cosa import CosaLayer, layers

FORMS = ("head", "isca")


def ratios(layer: CosaLayer, evaluator: Evaluator, result: Result) -> dict[str, float]:
    """Ours over the authors', by form; nan where theirs is invalid."""
    found = {}
    for form in FORMS:
        costs = evaluator.evaluate_batch(layer.mapping(form, layer.space))
        found[form] = result.value / float(costs.edp[0]) if costs.valid[0] else math.nan
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of layers' names; none: all layers")
    parser.add_argument("--option", action="append", default=[], help="of the mapper, NAME=VALUE")
    parser.add_argument("--seconds", type=float, default=30.0, help="per layer, at most")
    given = parser.parse_args()
    registry, rows, most = installed(), [], 0.0
    options = dict(each.split("=", 1) for each in given.option)
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
