"""AccelForge's Eyeriss and its product of 256 x 256 x 256, mapped with perfect factors and with ragged ones.

    python benchmarks/imperfect.py [CPU_SECONDS]

The machine has AccelForge's energies, sizes and bandwidths: rows of the input lie along X, which shares weights, and steps of the sum
along Y, which adds outputs. AccelForge itself finds 5.850e13 pJ x cycles with perfect factors, and 2.083e13 with imperfect ones.
"""

from __future__ import annotations

import sys
import time

import tilewright as tw
from tilewright.plugin import Budget, CostModelSpec, MapperSpec, Task, installed
from tilewright.run.search import search
from tilewright.schema.constraints import Cutting

MACHINE = tw.Architecture.from_yaml("""
name: accelforge_eyeriss
clusters:
- name: DRAM
  memories:
  - {name: DRAM, technology: dram, read_energy_pj: 200, write_energy_pj: 200,
     read_bandwidth_words_per_cycle: 4, write_bandwidth_words_per_cycle: 4}
- name: GLB
  memories:
  - {name: GLB, capacity_words: 55296, holds: [input, output], read_energy_pj: 6, write_energy_pj: 6,
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
""")
UNROLLINGS = tw.Constraints.from_yaml("""
name: shared_along_axes
variants:
- spatial:
  - {cluster: GLB, only: [m]}
  - {cluster: Column, only: [k]}
  - {cluster: PE, only: []}
""")


def main(seconds: float) -> None:
    """One line for either space."""
    problem = tw.load("mk,kn->mn; m=256 k=256 n=256", "problem")
    factors: tuple[Cutting, ...] = ("perfect", "ragged")
    for each in factors:
        space = tw.space(problem, MACHINE, constraints=UNROLLINGS, factors=each)
        evaluator = installed().make(CostModelSpec, "timeloop").bind(problem, space.architecture)
        mapper = installed().make(MapperSpec, "sunstone")
        found = search(mapper, Task(space), evaluator, Budget(seconds=seconds), clock=time.process_time)
        print(f"{each}: {found.value:.4g} pJ x cycles, {found.cpu_seconds:.1f} CPU s")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
