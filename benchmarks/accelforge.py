"""A mapper on the machines and layers on which AccelForge's own mapper was measured, beside what that found.

    python benchmarks/accelforge.py                             # `optimal`: all 44 searches with perfect factors
    python benchmarks/accelforge.py --factors ragged --mapper sunstone --seconds 60      # imperfect ones
    python benchmarks/accelforge.py --layers gemm256 --machines eyeriss,simba --seconds 60
    python benchmarks/accelforge.py --uneven --markdown         # all orders of the storage entries; the manual's table
    python benchmarks/accelforge.py --machines v4i_bypass,nvdla # products of TCM's paper (arXiv 2602.15172)

The machines have AccelForge's energies, sizes, bandwidths and rules: what an axis may unroll, and the order of the memories in a unit.
Neighbours pass on nothing, as there. AccelForge is commit 1c1929c28dbf of 12 August 2026, on two busy cores; its EDP is in its own counts,
which are fractions of words and of cycles.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
from collections.abc import Sequence

import tilewright as tw
from tilewright.application.run.search import search
from tilewright.application.run.union import search_union
from tilewright.mapspace.arrangements import arrangements
from tilewright.mapspace.space import MapSpace
from tilewright.plugin import Budget, CostModelSpec, MapperSpec, Task, installed
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Cutting, KeepRule, SpatialRule, Variant
from tilewright.schema.objective import Objective
from tilewright.schema.problem import Tensor

EYERISS = """
name: eyeriss
clusters:
- name: DRAM
  memories:
  - {name: DRAM, technology: dram, read_energy_pj: 200, write_energy_pj: 200,
     read_bandwidth_words_per_cycle: 4, write_bandwidth_words_per_cycle: 4}
- name: GLB
  memories:
  - {name: GLB, capacity_words: 55296, holds: [HELD], read_energy_pj: 6, write_energy_pj: 6,
     read_bandwidth_words_per_cycle: 16, write_bandwidth_words_per_cycle: 16}
  fanout: {size: 14, axis: X}
- name: Column
  fanout: {size: 12, axis: Y}
- name: PE
  memories:
  - {name: ISpad, capacity_words: 12, holds: [input], read_energy_pj: 1, write_energy_pj: 1}
  - {name: WSpad, capacity_words: 224, holds: [weight], read_energy_pj: 1, write_energy_pj: 1}
  - {name: OSpad, capacity_words: 24, holds: [output], read_energy_pj: 1, write_energy_pj: 1}
compute: {energy_per_operation_pj: 1}
"""
SIMBA = """
name: simba
clusters:
- name: DRAM
  memories:
  - {name: DRAM, word_bits: 8, technology: dram, read_energy_pj: 100, write_energy_pj: 100,
     read_bandwidth_words_per_cycle: 16, write_bandwidth_words_per_cycle: 16}
- name: GLB
  memories:
  - {name: GLB, word_bits: 8, capacity_words: 65536, holds: [input, output], read_energy_pj: 3, write_energy_pj: 3,
     read_bandwidth_words_per_cycle: 64, write_bandwidth_words_per_cycle: 64}
  fanout: {size: 16, axis: X}
- name: PE
  memories:
  - {name: IBuf, word_bits: 8, capacity_words: 8192, holds: [input], read_energy_pj: 0.8, write_energy_pj: 0.8}
  - {name: WBuf, word_bits: 8, capacity_words: 32768, holds: [weight], read_energy_pj: 1, write_energy_pj: 1}
  - {name: ABuf, word_bits: 8, capacity_words: 3072, bits_per_value: {output: 24}, holds: [output], read_energy_pj: 0.3, write_energy_pj: 0.3}
  fanout: {size: 8, axis: X}
- name: Lane
  fanout: {size: 8, axis: Y}
- name: MAC
  memories:
  - {name: WReg, word_bits: 8, capacity_words: 1, holds: [weight], read_energy_pj: 0.05, write_energy_pj: 0.05}
compute: {energy_per_operation_pj: 0.3}
"""
TPU = """
name: tpu
clusters:
- name: DRAM
  memories:
  - {name: DRAM, technology: dram, read_energy_pj: 100, write_energy_pj: 100,
     read_bandwidth_words_per_cycle: 43, write_bandwidth_words_per_cycle: 43}
- name: UB
  memories:
  - {name: UB, capacity_words: 25165824, holds: [input, output], read_energy_pj: 10, write_energy_pj: 10,
     read_bandwidth_words_per_cycle: 256, write_bandwidth_words_per_cycle: 256}
- name: ACC
  memories:
  - {name: ACC, capacity_words: 1048576, holds: [output], read_energy_pj: 8, write_energy_pj: 8,
     read_bandwidth_words_per_cycle: 256, write_bandwidth_words_per_cycle: 256}
  fanout: {size: 256, axis: X}
- name: Row
  fanout: {size: 256, axis: Y}
- name: MAC
  memories:
  - {name: WReg, capacity_words: 1, holds: [weight], read_energy_pj: 0.05, write_energy_pj: 0.05}
compute: {energy_per_operation_pj: 0.2}
"""
V4I = """
name: v4i
clusters:
- name: DRAM
  memories:
  - {name: DRAM, word_bits: 16, technology: dram, read_energy_pj: 112.48, write_energy_pj: 112.48, shared_bandwidth_words_per_cycle: 292.380952}
- name: GLB
  memories:
  - {name: GLB, word_bits: 16, capacity_words: 67108864, read_energy_pj: 30.08, write_energy_pj: 37.76,
     read_bandwidth_words_per_cycle: 975.238095, write_bandwidth_words_per_cycle: 487.619048}
  fanout: {size: 4, axis: X}
- name: Core
  memories:
  - {name: Local, word_bits: 16, capacity_words: 2097152, holds: [input, output], read_energy_pj: 3.984, write_energy_pj: 4.688}
  fanout: {size: 128, axis: X}
- name: Row
  fanout: {size: 128, axis: Y}
- name: MAC
  memories:
  - {name: WReg, word_bits: 16, capacity_words: 1, holds: [weight], read_energy_pj: 0, write_energy_pj: 0}
compute: {energy_per_operation_pj: 0.084}
"""
NVDLA = """
name: nvdla
clusters:
- name: DRAM
  memories:
  - {name: DRAM, word_bits: 16, technology: dram, read_energy_pj: 112.48, write_energy_pj: 112.48, shared_bandwidth_words_per_cycle: 19.2}
- name: GLB
  memories:
  - {name: GLB, word_bits: 16, capacity_words: 32768, read_energy_pj: 3.984, write_energy_pj: 4.688,
     read_bandwidth_words_per_cycle: 256, write_bandwidth_words_per_cycle: 64}
  fanout: {size: 32, axis: X}
- name: Row
  fanout: {size: 192, axis: Y}
- name: MAC
  memories:
  - {name: WReg, word_bits: 16, capacity_words: 1, holds: [weight], read_energy_pj: 0, write_energy_pj: 0}
compute: {energy_per_operation_pj: 0.084}
"""
MACHINES = {
    "eyeriss": EYERISS.replace("HELD", "input, output"),
    "eyeriss_free": EYERISS.replace("HELD", "input, output"),
    "eyeriss_bypass": EYERISS.replace("HELD", "input, weight, output"),
    "simba": SIMBA,
    "simba_free": SIMBA,
    "tpu": TPU,
    "tpu_free": TPU,
    "v4i_bypass": V4I,
    "nvdla": NVDLA,
}
SHARED = {
    "eyeriss": {"GLB": "weight", "Column": "output"},
    "simba": {"PE": "output", "Lane": "input"},
    "tpu": {"ACC": "input", "Row": "output"},
    "v4i": {"GLB": "nothing", "Core": "input", "Row": "output"},
    "nvdla": {"GLB": "input", "Row": "output"},
}
"""What sub-clusters along an axis share: only dimensions that do not move it may be unrolled there; if nothing, those that move all."""


LAYERS = {
    "gemm256": "mk,kn->mn; m=256 k=256 n=256",
    "gemm_bert": "mk,kn->mn; m=4096 k=1024 n=4096",
    "gemm_skinny": "mk,kn->mn; m=16 k=4096 n=4096",
    "pw_c64_m256_56": "O[m,p,q] += I[c,p,q] * W[m,c]; m=256 c=64 p=56 q=56",
    "conv_c64_m64_56": "O[m,p,q] += I[c,p+r,q+s] * W[m,c,r,s]; m=64 c=64 p=56 q=56 r=3 s=3",
    "conv_c128_m256_56": "O[m,p,q] += I[c,p+r,q+s] * W[m,c,r,s]; m=256 c=128 p=56 q=56 r=3 s=3",
    "gpt3_q": "O[m,n] += I[m,d] * W[n,d]; m=4194304 n=4096 d=4096",
    "gpt3_qk": "O[g,m,p] += I[g,m,e] * W[g,p,e]; g=2048 m=65536 p=65536 e=128",
    "gpt3_av": "O[g,m,f] += I[g,m,p] * W[g,p,f]; g=2048 m=65536 p=65536 f=128",
    "conv_c256_m512_7_s2": "O[m,p,q] += I[c,2p+r,2q+s] * W[m,c,r,s]; m=512 c=256 p=7 q=7 r=3 s=3",
}
FOUND: tuple[tuple[str, str, str, float, float], ...] = (
    ("eyeriss", "gemm256", "edp", 5.84974546e13, 0.53),
    ("eyeriss", "gemm256", "energy", 223150080, 0.46),
    ("eyeriss", "gemm256", "cycles", 262144, 0.30),
    ("eyeriss", "gemm_bert", "edp", 5.69345065e19, 0.51),
    ("eyeriss", "gemm_skinny", "edp", 2.15863725e16, 0.64),
    ("eyeriss", "gemm_skinny", "energy", 5.10669619e09, 0.46),
    ("eyeriss", "gemm_skinny", "cycles", 4227072, 0.44),
    ("eyeriss", "pw_c64_m256_56", "edp", 3.32766281e14, 1.17),
    ("eyeriss", "pw_c64_m256_56", "energy", 725372928, 0.50),
    ("eyeriss", "pw_c64_m256_56", "cycles", 458752, 0.49),
    ("eyeriss", "conv_c64_m64_56", "edp", 6.87760176e14, 129.56),
    ("eyeriss", "conv_c128_m256_56", "edp", 4.16283171e16, 121.87),
    ("eyeriss", "conv_c256_m512_7_s2", "edp", 4.21961089e15, 100.93),
    ("eyeriss_free", "gemm256", "edp", 5.37558107e13, 1.09),
    ("eyeriss_bypass", "gemm256", "edp", 4.32932703e13, 3.28),
    ("simba", "gemm256", "edp", 6.33185567e11, 1.54),
    ("simba", "gemm256", "energy", 38646580, 1.05),
    ("simba", "gemm256", "cycles", 16384, 0.49),
    ("simba", "gemm_bert", "edp", 5.88282701e17, 2.10),
    ("simba", "gemm_skinny", "edp", 2.02383672e15, 1.62),
    ("simba", "gemm_skinny", "energy", 1.91511923e09, 1.27),
    ("simba", "gemm_skinny", "cycles", 1056768, 0.60),
    ("simba", "pw_c64_m256_56", "edp", 7.81156185e12, 4.12),
    ("simba", "pw_c64_m256_56", "energy", 155568544, 2.93),
    ("simba", "pw_c64_m256_56", "cycles", 50176, 1.06),
    ("simba", "conv_c128_m256_56", "edp", math.inf, 440.0),
    ("simba", "conv_c256_m512_7_s2", "edp", 1.30437143e13, 234.12),
    ("simba_free", "gemm256", "edp", 6.2974958e11, 2.93),
    ("tpu", "gemm256", "edp", 8.39116723e10, 0.59),
    ("tpu", "gemm256", "energy", 27528396, 0.37),
    ("tpu", "gemm256", "cycles", 3048.18604, 0.30),
    ("tpu", "gemm_bert", "edp", 3.48578945e15, 0.49),
    ("tpu", "gemm_skinny", "edp", 7.00347334e14, 0.57),
    ("tpu", "gemm_skinny", "energy", 1.78800563e09, 0.30),
    ("tpu", "gemm_skinny", "cycles", 391691.906, 0.33),
    ("tpu", "pw_c64_m256_56", "edp", 2.75854525e12, 0.73),
    ("tpu", "pw_c64_m256_56", "energy", 147751728, 0.36),
    ("tpu", "pw_c64_m256_56", "cycles", 18670.1387, 0.32),
    ("tpu", "conv_c64_m64_56", "edp", 1.01657023e12, 4.50),
    ("tpu", "conv_c128_m256_56", "edp", 9.73948253e12, 10.04),
    ("tpu", "conv_c128_m256_56", "energy", 517617056, 1.72),
    ("tpu", "conv_c128_m256_56", "cycles", 18816, 2.32),
    ("tpu", "conv_c256_m512_7_s2", "edp", 4.24956173e12, 4.71),
    ("tpu_free", "gemm256", "edp", 8.39116723e10, 0.92),
    ("v4i_bypass", "gpt3_qk", "edp", 3.63634089e25, 12.0),
    ("v4i_bypass", "gpt3_av", "edp", 3.76063832e25, 10.9),
    ("nvdla", "gpt3_q", "edp", 1.3537845e25, 3.2),
    ("nvdla", "gpt3_qk", "edp", 2.1719058e27, 2.5),
    ("nvdla", "gpt3_av", "edp", 3.392352e27, 2.3),
)
"""What AccelForge ended with: machine, layer, objective, value, CPU seconds; inf: nothing in that time."""
FOUND_IMPERFECT: tuple[tuple[str, str, str, float, float], ...] = (
    ("eyeriss", "gemm256", "edp", 2.08277283e13, 1.99),
    ("eyeriss", "pw_c64_m256_56", "edp", 2.20802508e14, 2.86),
)
"""The same with imperfect factors."""
COLUMNS = "machine layer objective theirs their_cpu_seconds ours ratio proved cpu_seconds".split()
UNEVEN_COLUMNS = "uneven uneven_ratio uneven_proved uneven_cpu_seconds".split()


def space_of(machine: str, layer: str, factors: Cutting) -> MapSpace:
    """With the rules of AccelForge's file."""
    problem, architecture = tw.load(LAYERS[layer], "problem"), Architecture.from_yaml(MACHINES[machine])
    tensors: dict[str, Tensor] = {tensor.role: tensor for tensor in problem.tensors}
    shared = {} if machine.endswith("free") else SHARED[machine.partition("_")[0]]
    every = set(problem.dimension_names)
    only = {role: every - set(tensor.dimensions) for role, tensor in tensors.items()}
    only["nothing"] = every.difference(*only.values())
    spatial = tuple(SpatialRule(cluster=cluster, only=tuple(only[role])) for cluster, role in shared.items())
    free = KeepRule(memory="GLB", free=problem.tensor_names)
    rules = Variant(spatial=spatial, keep=(free,) if "bypass" in machine else ())
    return MapSpace.of(problem, architecture, rules, factors=factors)


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", default=",".join(MACHINES), help="which, by comma")
    parser.add_argument("--layers", default=",".join(LAYERS), help="which, by comma")
    parser.add_argument("--objectives", default="edp,energy,cycles", help="which, by comma")
    parser.add_argument("--mapper", default="optimal", help="whose mappings")
    parser.add_argument("--factors", default="perfect", choices=("perfect", "ragged"), help="which tiles")
    parser.add_argument("--seconds", type=float, help="deadline of each search, by the clock; none without it")
    parser.add_argument("--uneven", action="store_true", help="search the uneven space as well")
    parser.add_argument("--markdown", action="store_true", help="print the manual's table")
    given = parser.parse_args()
    model = installed().make(CostModelSpec, "timeloop", {"link_transfers": False})
    mapper = installed().make(MapperSpec, given.mapper)
    columns = [*COLUMNS, *UNEVEN_COLUMNS] if given.uneven else COLUMNS
    write = _markdown if given.markdown else csv.writer(sys.stdout).writerow
    write(columns)
    if given.markdown:
        write(["---"] * 3 + ["---:"] * (len(columns) - 3))
    for machine, layer, objective, theirs, their_seconds in FOUND if given.factors == "perfect" else FOUND_IMPERFECT:
        if (
            machine not in given.machines.split(",")
            or layer not in given.layers.split(",")
            or objective not in given.objectives.split(",")
        ):
            continue
        space = space_of(machine, layer, given.factors)
        evaluator = model.bind(space.problem, space.architecture)
        row = [machine, layer, objective, f"{theirs:.4g}", f"{their_seconds:g}"]
        for spaces in ((space,), arrangements(space))[: 1 + given.uneven]:
            tasks = [Task(part, Objective.named(objective)) for part in spaces]
            search(mapper, tasks[0], evaluator, Budget(evaluations=1))  # compiles
            started = time.process_time()
            result = search_union(mapper, tasks, evaluator, Budget(seconds=given.seconds))
            seconds, proved = time.process_time() - started, result.gap is not None and result.gap < 1e-8
            row += f"{result.value:.4g}", f"{result.value / theirs:.4f}", "yes" if proved else "no", f"{seconds:.2f}"
        write(row)
        sys.stdout.flush()


def _markdown(row: Sequence[str]) -> None:
    print(f"|{'|'.join(row)}|")


if __name__ == "__main__":
    main()
