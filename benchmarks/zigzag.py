"""`optimal` beside the mappings that ZigZag's own searches found: the same layers and accelerators, `timeloop` evaluates both.

    python benchmarks/zigzag.py                             # all recorded searches: one row each, then a summary
    python benchmarks/zigzag.py tpu_like gemm --markdown    # those whose names begin so, and the manual's table

`tests/data/zigzag/searched.json` has ZigZag's mappings. Its searches fixed the unrolling; here it is free. Mappings that have no form
here are left out. The objective is EDP; link transfers are off, because ZigZag has none. Where the best even mapping of perfect factors
costs more than ZigZag's, the uneven space is searched as well. Ragged tiles follow, as ZigZag's unrollings need not divide; then both.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import tilewright as tw
from tilewright.application.run.search import search
from tilewright.application.run.union import search_union
from tilewright.mapspace.arrangements import arrangements
from tilewright.plugin import Budget, CostModelSpec, MapperSpec, Task, installed
from tilewright.plugin.adapter import InputSet
from tilewright.schema.objective import EDP

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from support.zigzag_files import RUNS, searched

COLUMNS = "search accelerator theirs ours ratio space gap cpu_seconds".split()


def measured(name: str, accelerator: str, inputs: InputSet, seconds: float) -> dict[str, str]:
    """One row."""
    assert inputs.problem is not None and inputs.architecture is not None and inputs.mapping is not None
    model = installed().make(CostModelSpec, "timeloop", {"link_transfers": False})
    mapper, budget = installed().make(MapperSpec, "optimal"), Budget(seconds=seconds)
    evaluator = model.bind(inputs.problem, inputs.architecture)
    theirs = float(evaluator.evaluate(inputs.mapping).of(EDP)[0])
    space = tw.space(inputs.problem, arch=inputs.architecture, constraints="none")
    search(mapper, Task(space), evaluator, Budget(evaluations=1))  # compiles
    ragged = tw.space(inputs.problem, arch=inputs.architecture, constraints="none", factors="ragged")
    spaces = {"even": [space], "uneven": arrangements(space), "ragged": [ragged], "both": arrangements(ragged)}
    started = time.process_time()
    for kind, some in spaces.items():
        last, result = kind, search_union(mapper, [Task(part) for part in some], evaluator, budget)
        if result.value <= theirs * (1 + 1e-9):
            break
    figures = f"{theirs:.6g}", f"{result.value:.6g}", f"{result.value / theirs:.4f}", last
    gap = "" if result.gap is None else f"{result.gap:.2g}"
    row = name, accelerator, *figures, gap, f"{time.process_time() - started:.2f}"
    return dict(zip(COLUMNS, row, strict=True))


def summary(rows: Sequence[dict[str, str]]) -> str:
    """Return the manual's table: one row per accelerator."""
    lines = [
        "| accelerator | searches | equal | better | worse | ratio, geometric mean | least | proved | CPU s, mean | most |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for accelerator in (*sorted({row["accelerator"] for row in rows}), "all"):
        some = [row for row in rows if accelerator in (row["accelerator"], "all")]
        ratios = [float(row["ours"]) / float(row["theirs"]) for row in some]
        seconds = [float(row["cpu_seconds"]) for row in some]
        equal, worse = sum(abs(ratio - 1) < 1e-5 for ratio in ratios), sum(ratio >= 1 + 1e-5 for ratio in ratios)
        mean = math.exp(math.fsum(map(math.log, ratios)) / len(some))
        proved = sum(bool(row["gap"]) and float(row["gap"]) < 1e-8 for row in some)
        counts = len(some), equal, len(some) - equal - worse, worse, f"{mean:.3f}", f"{min(ratios):.3f}", proved
        figures = (f"`{accelerator}`", *counts, f"{math.fsum(seconds) / len(some):.2f}", f"{max(seconds):.1f}")
        lines.append(f"|{'|'.join(map(str, figures))}|")
    return "\n".join(lines)


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("searches", nargs="*", default=[""], help="only those whose names begin so")
    parser.add_argument("--seconds", type=float, default=60, help="CPU time of each search")
    parser.add_argument("--markdown", action="store_true", help="only the manual's table")
    given = parser.parse_args()
    table, rows = csv.DictWriter(sys.stderr if given.markdown else sys.stdout, COLUMNS), []
    table.writeheader()
    for run, inputs in searched([run for run in RUNS if run["name"].startswith(tuple(given.searches))]):
        if inputs is not None:
            rows.append(measured(run["name"], run["accelerator"], inputs, given.seconds))
            table.writerow(rows[-1])
            sys.stderr.flush(), sys.stdout.flush()
    print(summary(rows))


if __name__ == "__main__":
    main()
