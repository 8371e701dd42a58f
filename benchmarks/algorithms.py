"""Union's Figures 8 and 9: six tensor contractions, natively and through TTGT, on the cloud accelerator.

    python benchmarks/algorithms.py                    # all six, some minutes
    python benchmarks/algorithms.py intensli2_16

First as the hardware allows: several dimensions share an axis of the array. Then with one dimension per axis, another for each, as the
paper's mappings have it: every pair of dimensions is searched by a constraint of its own, and the best of all is shown with the
processing elements that it uses. Both with the library's DRAM (4 words a cycle) and with one that is never waited for. `moved` adds
what TTGT transposes; the paper's figure is without.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from typing import Any

import tilewright as tw
from tilewright.application.run.network import MappedLayer
from tilewright.schema.constraints import NO_CONSTRAINTS, Constraints, SpatialRule, Variant

CONTRACTIONS = ("intensli2_16", "intensli2_64", "ccsd7_16", "ccsd7_64", "ccsd-t4_16", "ccsd-t4_32")
AXES = ("C3", "C2")
"""Clusters whose fanouts are the rows and the columns of the array."""
SLOW, FAST = 4.0, 4096.0
"""Words per cycle, each way."""


def cloud(rate: float) -> tw.Architecture:
    """The accelerator with a DRAM of this bandwidth."""
    paths = ("DRAM.read_bandwidth_words_per_cycle", "DRAM.write_bandwidth_words_per_cycle")
    return tw.load("union_cloud", kind="architecture").replace(dict.fromkeys(paths, rate))


def one_per_axis(problem: tw.Problem) -> Iterator[Constraints]:
    """One dimension along each axis, not the same along both: every pair."""
    for pair in itertools.permutations(problem.dimensions, 2):
        rules = tuple(SpatialRule(cluster=name, only=(one,)) for name, one in zip(AXES, pair, strict=True))
        yield Constraints(name="one_per_axis", variants=(Variant(spatial=rules),))


def best(name: str, algorithm: str, rate: float, alone: bool, **budget: Any) -> tuple[MappedLayer, float]:
    """(the best mapping of the algorithm's one step, EDP with what is moved); `budget`: settings of `map`."""
    problem = tw.load(f"union_tensor_contractions/{name}", kind="problem")
    arch = cloud(rate)
    every = [NO_CONSTRAINTS]
    if alone:
        first = tw.map(problem, arch, constraints=NO_CONSTRAINTS, algorithms=algorithm, evaluations=1, progress=False)
        every = list(one_per_axis(first.layers[0].problem))
    results = []
    for constraints in every:
        report = tw.map(problem, arch, constraints=constraints, algorithms=algorithm, progress=False, **budget)
        if report.edp is not None:
            results.append((report.layers[0], report.edp))
    return min(results, key=lambda pair: pair[0].edp or 0)


def partition(layer: MappedLayer) -> str:
    """What runs along rows and columns, and how many processing elements it uses."""
    assert layer.mapping is not None
    loops = [loop for loop in layer.mapping.loops() if loop.spatial]
    used = 1
    for loop in loops:
        used *= loop.trips
    return f"{' '.join(f'{loop.dimension}{loop.trips}' for loop in loops) or '-'} = {used:,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(CONTRACTIONS)}; none: all")
    given = parser.parse_args()
    head = f"{'problem':14} {'DRAM':>5} {'axes':7} {'native':>9} {'TTGT':>9} {'moved':>9}  {'PEs of native':26} PEs of TTGT"
    print(head, flush=True)
    for name in given.names or CONTRACTIONS:
        for rate, alone in itertools.product((SLOW, FAST), (False, True)):
            native, _ = best(name, "native", rate, alone)
            ttgt, moved = best(name, "ttgt", rate, alone)
            figures = f"{native.edp:9.3g} {ttgt.edp:9.3g} {moved:9.3g}"
            axes = "one" if alone else "shared"
            print(f"{name:14} {rate:5.0f} {axes:7} {figures}  {partition(native):26} {partition(ttgt)}", flush=True)


if __name__ == "__main__":
    main()
