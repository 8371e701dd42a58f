"""Attention on machines of the sizes in MMEE (arXiv 2604.03446): without fusion and with shared loops.

    python benchmarks/mmee.py                      # all, as a table
    python benchmarks/mmee.py --write              # into benchmarks/mmee.md

Known of the paper are its claims (abstract), and its workloads, buffers and bandwidths: four arrays at 1 GHz with 1 MB and 60 GB/s, or
4 MB and 128 GB/s. Sizes of the arrays and energies were not at hand: here they are assumptions.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

import tilewright as tw

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks import tables

MACHINES = {"edge": (2**20, 60, 32), "cloud": (2**22, 128, 128)}
"""Machine -> bytes of the buffer and GB/s, as in the paper; rows and columns of each of the four arrays, assumed."""
WORKLOADS = {
    "BERT-base, 512 tokens": (12, 512, 64),
    "BERT-base, 4,096 tokens": (12, 4096, 64),
    "BERT-base, 16,384 tokens": (12, 16384, 64),
    "GPT-3 13B, 2,048 tokens": (40, 2048, 128),
}
"""Workload -> heads, tokens, and width of a head; the last length is assumed."""


def group(machine: str, workload: str) -> dict[str, Any]:
    """Return scores and context on a machine, as a file of a group. Values have 8 bits; energies are those of examples/tpu_v4i.yaml."""
    (words, bandwidth, side), (heads, tokens, width) = MACHINES[machine], WORKLOADS[workload]

    def product(name: str, end: str, operands: dict[str, str], result: str) -> dict[str, Any]:
        tensors = [
            {"name": tensor, "role": role, "projection": ["H", *axes]}
            for (tensor, role, axes) in _named(operands, result)
        ]
        return {"name": name, "dimensions": {"H": heads, "T": tokens, "S": tokens, end: width}, "tensors": tensors}

    def memory(name: str, read: float, write: float, **others: Any) -> dict[str, Any]:
        return {"name": name, "word_bits": 8, "read_energy_pj": read, "write_energy_pj": write, **others}

    dram = memory("DRAM", 56.24, 56.24, technology="dram", shared_bandwidth_words_per_cycle=bandwidth)
    clusters = [
        {"name": "Chip", "memories": [dram]},
        {
            "name": "Buffer",
            "memories": [memory("SRAM", 1.992, 2.344, capacity_words=words)],
            "fanout": {"size": 4, "axis": "X"},
        },
        {"name": "Array", "fanout": {"size": side, "axis": "X"}},
        {"name": "Row", "fanout": {"size": side, "axis": "Y"}},
        {
            "name": "PE",
            "memories": [memory("Register", 0, 0, technology="register", capacity_words=1, holds=["weight"])],
        },
    ]
    return {
        "schema_version": 1,
        "kind": "group_mapping",
        "name": workload,
        "edges": [{"tensor": "P", "layers": {"scores": "P", "context": "P"}}],
        "tree": {"entries": [{"target": "Chip"}], "branches": [{"layer": "scores"}, {"layer": "context"}]},
        "layers": [
            product("scores", "D", {"Q": "TD", "K": "SD"}, "P TS"),
            product("context", "E", {"P": "TS", "V": "SE"}, "Z TE"),
        ],
        "architecture": {
            "name": machine,
            "clock_ghz": 1,
            "clusters": clusters,
            "compute": {"energy_per_operation_pj": 0.084, "word_bits": 8},
        },
    }


def _named(operands: dict[str, str], result: str) -> list[tuple[str, str, str]]:
    roles = zip(operands.items(), ("input", "weight"), strict=True)
    name, axes = result.split()
    return [*((tensor, role, places) for (tensor, places), role in roles), (name, "output", axes)]


def row(machine: str, workload: str, seconds: float) -> list[str]:
    """Return the cells of a workload on a machine: energy by the search for it, and cycles by that for cycles."""
    cells = [workload, machine]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "attention.yaml"
        path.write_text(yaml.safe_dump(group(machine, workload), sort_keys=False), encoding="utf-8")
        for objective, scale in (("energy", 1e-9), ("cycles", 1e-6)):
            started = time.process_time()
            fusion = tw.fuse(path, objective=objective, seconds=seconds, model_options={"link_transfers": False})  # type: ignore[arg-type]
            before, after = (report.of(fusion.objective) or 0 for report in (fusion.unfused, fusion.fused))
            gap = (
                "yes" if fusion.proved else "no" if fusion.gap in (None, math.inf) else f"gap {100 * fusion.gap:.3g} %"
            )
            cells += [f"{before * scale:.4g}", f"{after * scale:.4g}", f"{100 * (1 - after / before):.1f}", gap]
            cells.append(f"{time.process_time() - started:.1f}")
    return cells


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="limit of each search")
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/mmee.md")
    given = parser.parse_args()
    row("edge", next(iter(WORKLOADS)), 1)  # compiles
    rows = list[list[str]]()
    for machine in MACHINES:
        for workload in WORKLOADS:
            rows.append(row(machine, workload, given.seconds))
            print(tables.line(rows[-1]), flush=True)
    columns = "attention|machine|unfused, mJ|fused, mJ|saved, %|proved|CPU s|unfused, M cycles|fused, M cycles|saved, %|proved|CPU s"
    text = tables.table(columns.split("|"), rows, 2)
    print(text)
    if given.write:
        tables.replace("mmee.md", "attention", text)


if __name__ == "__main__":
    main()
