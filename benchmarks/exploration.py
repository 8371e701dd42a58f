"""Shared searches of an exploration: the exact front of 50 machines beside the front under a gap.

    python benchmarks/exploration.py --layers n42                 # without a dataflow, one layer
    python benchmarks/exploration.py --dataflow                   # ResNet-50, row stationary
    python benchmarks/exploration.py --dataflow --array 28 16

The machines are those of `examples/thousand_machines.yaml` with one array: five global buffers, five weight registers, two
bandwidths. Both explorations search every point in this process; CPU times include everything but imports and compilation.
Distance: the least factor by which some machine of the front under a gap is no worse in energy, cycles and area, for the machine
of the exact front that is farthest away.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

import tilewright as tw

EXAMPLES = Path(__file__).parents[1] / "examples"


def machines(columns: int, rows: int) -> dict[str, Any]:
    """Return the space of the machines with one array."""
    space: dict[str, Any] = yaml.safe_load((EXAMPLES / "thousand_machines.yaml").read_text(encoding="utf-8"))
    space["choices"] |= {"columns": [columns], "rows": [rows]}
    return space | {"name": f"fifty_machines_{columns}x{rows}"}


def explored(
    layers: Sequence[str], space: dict[str, Any], dataflow: bool, gap: str | None
) -> tuple[tw.ExplorationReport, float]:
    """Return the report on all points, and its CPU seconds."""
    began = time.process_time()
    constraints = EXAMPLES / "row_stationary.yaml" if dataflow else "none"
    report = tw.explore(
        list(layers), space, constraints=constraints, gap=gap, bounds=False, cache=False, progress=False
    )
    return report, time.process_time() - began


def distance(exact: tw.ExplorationReport, other: tw.ExplorationReport) -> float:
    """Return the factor by which the front of one report is behind that of another."""
    return max(
        min(max(mine / its for mine, its in zip(near.costs, one.costs, strict=True)) for near in other.front)
        for one in exact.front
    )


def searches(report: tw.ExplorationReport) -> int:
    """Return the number of mappings that the searches of their own machine found."""
    return sum(result.shared_from is None for point in report.found for _, result in point.layers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", nargs="*", default=[], help="layers of ResNet-50; none: all")
    parser.add_argument("--array", nargs=2, type=int, default=(14, 14), metavar=("COLUMNS", "ROWS"))
    parser.add_argument("--dataflow", action="store_true", help="row stationary, in place of all mappings")
    parser.add_argument("--gap", default="1%")
    asked = parser.parse_args()
    layers, space = [f"resnet50/{name}" for name in asked.layers] or ["resnet50"], machines(*asked.array)
    smallest = {
        name: [values["first"]] if isinstance(values, dict) else values[:1] for name, values in space["choices"].items()
    }
    explored(["resnet50/n174"], space | {"choices": smallest}, asked.dataflow, asked.gap)  # compiles
    exact, all_seconds = explored(layers, space, asked.dataflow, None)
    near, seconds = explored(layers, space, asked.dataflow, asked.gap)
    for name, report, took in (("exact", exact, all_seconds), (f"gap {asked.gap}", near, seconds)):
        proved = "nothing" if report.behind is None else f"{report.behind:.2%}"
        print(
            f"{name}: {searches(report)} mappings searched, {took:.1f} CPU s, {len(report.front)} machines on the front, proved {proved}"
        )
    print(f"ratio of CPU time {all_seconds / seconds:.2f}; the front is at most {distance(exact, near) - 1:.3%} behind")


if __name__ == "__main__":
    main()
