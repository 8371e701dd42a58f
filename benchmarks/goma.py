"""`optimal` on the matrix products and machines of GOMA (arXiv 2603.07962), beside the optima that its authors published.

    python benchmarks/goma.py                                    # all 192 products, two searches of each
    python benchmarks/goma.py --machines a100 --tokens 2048      # some
    python benchmarks/goma.py --rivals cosa,factorflow,loma,salsa,timeloop_hybrid --tokens 1024,2048 --seconds 5
    python benchmarks/goma.py --write                            # into benchmarks/goma.md

goma/optima.csv has the products and the optima in pJ per MAC, as the authors' repository records them (ywlywl6/GOMA,
solver_evidence/solver_instances.csv at 29c8044e). GOMA takes mappings that use all units, and counts no limit of a memory's
bandwidth, so its EDP is its energy times MACs / units.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
from collections import defaultdict
from pathlib import Path
from statistics import geometric_mean

import tilewright as tw
from tilewright.application.run.search import search
from tilewright.mapspace.space import MapSpace
from tilewright.plugin import Budget, CostModelSpec, MapperSpec, Task, installed
from tilewright.plugin.result import Result
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import KeepRule, Variant
from tilewright.schema.objective import Objective

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks import tables

OPTIMA = Path(__file__).parent / "goma/optima.csv"
PAGE = "goma.md"
MACHINE = """
name: {name}
clusters:
- name: DRAM
  memories: [{{name: DRAM, technology: dram, read_energy_pj: {dram}, write_energy_pj: {dram}}}]
- name: Buffer
  memories: [{{name: SRAM, capacity_words: {words}, read_energy_pj: {read}, write_energy_pj: {write}}}]
  fanout: {{size: {units}, axis: X}}
- name: PE
  memories: [{{name: RF, capacity_words: {file}, read_energy_pj: {file_read}, write_energy_pj: {file_write}}}]
compute: {{energy_per_operation_pj: {mac}}}
"""
SIZES = "units words file dram read write file_read file_write mac".split()
MACHINES = {
    "eyeriss": (256, 165888, 424, 64, 8.4828375, 6.9588625, 2.59913, 2.48611, 1.40883),
    "gemmini": (256, 589824, 1, 64, 1.680075, 1.342475, 0.016863, 0.0147795, 0.665768),
    "a100": (65536, 37748736, 128, 31.2, 7.457375, 7.0744375, 0.0657375, 0.057146, 0.107093),
    "tpu_v1": (65536, 31457280, 2, 560, 21.367875, 20.56225, 0.0186618, 0.0164213, 0.416924),
}
"""Machine -> sizes, and energies of a word of 8 bits in pJ.

Sizes and DRAM are those of the authors' architecture/*_like.yaml, and the energies of `a100` those of practical_case_from_logs.json.
The other energies are not published. They were solved from ten recorded optima of each machine, so that the rest are a check.
On `eyeriss` only the sum of a MAC and a read of RF follows; the MAC is that of the authors' main.py.
"""
CLAIMED = {"cosa": 2.24, "factorflow": 3.91, "loma": 4.17, "salsa": 4.24, "timeloop_hybrid": 98.5}
"""Geometric means of EDP / GOMA's over the 24 cases, as the paper states them."""
Row = dict[str, str]


def space_of(row: Row) -> MapSpace:
    """Return the map space of a product: any tensor may bypass SRAM and RF."""
    sizes = dict(zip(SIZES, MACHINES[row["machine"]], strict=True))
    problem = tw.load("mk,kn->mn; m={x} n={y} k={z}".format(**row), "problem")
    rules = Variant(keep=tuple(KeepRule(memory=memory, free=problem.tensor_names) for memory in ("SRAM", "RF")))
    return MapSpace.of(
        problem, Architecture.from_yaml(MACHINE.format(name=row["machine"], **sizes)), rules, factors="perfect"
    )


def solution(row: Row, objective: str, mapper: str = "optimal", seconds: float | None = None) -> tuple[Result, float]:
    """Return the result of a search and its CPU seconds."""
    space, model = space_of(row), installed().make(CostModelSpec, "timeloop", {"link_transfers": False})
    evaluator, chosen = model.bind(space.problem, space.architecture), installed().make(MapperSpec, mapper)
    started = time.process_time()
    result = search(
        chosen, Task(space, Objective.named(objective)), evaluator, Budget(seconds=seconds), clock=time.process_time
    )
    return result, time.process_time() - started


def theirs(row: Row) -> tuple[float, float]:
    """Return GOMA's energy in pJ, and EDP in pJ x cycles."""
    macs = math.prod(int(row[axis]) for axis in "xyz")
    energy = float(row["pj_per_mac"]) * macs
    return energy, energy * macs / MACHINES[row["machine"]][0]


def compared(rows: list[Row], seconds: float | None) -> str:
    """Return the table of `optimal`: a line for each machine and kind of product."""
    groups = defaultdict[tuple[str, str], list[tuple[float, ...]]](list)
    for row in rows:
        energy, edp = theirs(row)
        (by_edp, edp_time), (by_energy, energy_time) = (
            solution(row, name, seconds=seconds) for name in ("edp", "energy")
        )
        proved = sum(result.proved == "yes" for result in (by_edp, by_energy))
        cells = by_edp.value / edp, by_energy.value / energy, edp_time, energy_time, proved
        kind = {"score": "attention", "context": "attention", "lm_head": "lm_head"}.get(row["gemm"], "projections")
        groups[row["machine"], kind].append(cells)
        print(*row.values(), *(f"{cell:.10g}" for cell in cells), flush=True)
    lines = list[list[object]]()
    for key, some in groups.items():
        edps, energies, *times, proofs = zip(*some, strict=True)
        lines.append(
            [*key, len(some), f"{min(edps):.6f}", f"{max(edps):.6f}", f"{min(energies):.4f}", f"{max(energies):.4f}"]
            + [f"{sum(proofs):.0f} of {2 * len(some)}", *(f"{sum(column) / len(column):.2f}" for column in times)]
        )
    columns = (
        "machine|products|number|EDP / GOMA's, least|most|energy / GOMA's, least|most|proved|CPU s, EDP|CPU s, energy"
    )
    return tables.table(columns.split("|"), lines, 2)


def rivals(rows: list[Row], names: list[str], seconds: float) -> str:
    """Return the table of other mappers: geometric means of EDP / GOMA's."""
    ratios = defaultdict[str, dict[str, list[float]]](lambda: defaultdict(list))
    for row in rows:
        for name in names:
            ratio = solution(row, "edp", name, seconds)[0].value / theirs(row)[1]
            ratios[name][row["machine"]].append(ratio)
            print(*row.values(), name, f"{ratio:.4g}", flush=True)
    machines = list(dict.fromkeys(row["machine"] for row in rows))
    lines = [
        [
            f"`{name}`",
            CLAIMED.get(name, "-"),
            _mean(sum(by.values(), [])),
            *(_mean(by[machine]) for machine in machines),
        ]
        for name, by in ratios.items()
    ]
    return tables.table(["mapper", "paper, 24 cases", "here, all", *machines], lines)


def _mean(ratios: list[float]) -> str:
    some = [ratio for ratio in ratios if ratio < math.inf]
    missing = f" ({len(ratios) - len(some)} none)" if len(some) < len(ratios) else ""
    return f"{geometric_mean(some):.2f}{missing}" if some else "none"


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", default=",".join(MACHINES), help="which, by comma")
    parser.add_argument("--tokens", help="which lengths, by comma; all without it")
    parser.add_argument("--rivals", help="other mappers in place of `optimal`, by comma")
    parser.add_argument("--seconds", type=float, help="CPU seconds of each search; no limit without it")
    parser.add_argument("--write", action="store_true", help=f"put the table into benchmarks/{PAGE}")
    given = parser.parse_args()
    with OPTIMA.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["machine"] in given.machines.split(",")]
    rows = [row for row in rows if not given.tokens or row["tokens"] in given.tokens.split(",")]
    if given.rivals:
        text, mark = rivals(rows, given.rivals.split(","), given.seconds or 10), "rivals"
    else:
        solution(rows[0], "edp")  # compiles
        text, mark = compared(rows, given.seconds), "optima"
    print(text)
    if given.write:
        tables.replace(PAGE, mark, text)


if __name__ == "__main__":
    main()
