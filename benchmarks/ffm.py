"""`--fuse` beside FFM (arXiv 2602.15166), AccelForge's mapper of fused layers: attention of GPT-3 6.7B on TPU-v4i, line by line.

    python benchmarks/ffm.py             # search, and compare the words of each tensor at each memory
    python benchmarks/ffm.py --write     # into benchmarks/fusion.md

ffm/gpt3_attention.csv has the words that FFM's best mapping by energy moves: AccelForge 1.0.467, gpt3_6.7B with 2,048 tokens, einsums
QK, QK_softmax and AV on tpu_v4i, in one process. Its conventions, which are taken over here:

* Values have 16 bits. Operands of the first layer and the last result are on chip, in the global buffer.
* The scores pass the global buffer before and after the softmax, which takes one operation an element.
* The four cores share no word and all work, so a core has 8 of the 32 heads. The search is for one core, with a quarter of the
  global buffer and of the bandwidths.
* A sum is read when it leaves a memory, so a result is read as often as written. `timeloop` does not count the last reads.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import yaml

import tilewright as tw

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks import tables

FOLDER = Path(__file__).resolve().parent
EXAMPLE = FOLDER.parent / "examples/flash_attention.yaml"
FFM_MJ, FFM_MS, FFM_SECONDS = 28.56435, 0.7739489, 76.4
"""What FFM's best mapping takes, and the CPU seconds of its search, measured on a loaded host."""
BITS, PER_BIT = 16, {"GlobalBuffer": (1.88, 2.36), "LocalBuffer": (0.249, 0.293)}
"""Bits of a value; pJ of a bit read and written, of AccelForge's tpu_v4i.yaml."""
CORES, OUTSIDE = 4, 4 * 32 * 2048 * 128
"""Number of cores; words of Q, K, V and Z, which stay in the global buffer."""
Lines = dict[tuple[str, str, str], tuple[float, float]]
"""Layer, memory and tensor -> words read and written."""


def group() -> dict[str, Any]:
    """Return a core's share of both products and the softmax, on the machine with 16 bits a word, as a file of a group."""
    data = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    del data["axes"]
    data["tree"] = {"entries": [{"target": "Chip"}], "branches": [{"layer": "scores"}, {"layer": "context"}]}
    data["vectors"] = [{"name": "softmax", "operator": "Exp", "tensor": "P"}]
    for layer in data["layers"]:
        layer["dimensions"]["H"] //= CORES
    words = BITS // 8  # the example has words of 8 bits
    for cluster in data["architecture"]["clusters"]:
        for memory in cluster.get("memories", ()):
            memory["word_bits"] = BITS
            for key in memory.keys() & {"read_energy_pj", "write_energy_pj"}:
                memory[key] *= words
            for key in memory.keys() - {"capacity_words"}:
                if key.endswith("_words_per_cycle"):
                    memory[key] /= words * CORES
            if memory["name"] != "Register" and "capacity_words" in memory:
                memory["capacity_words"] //= words
    shared = data["architecture"]["clusters"][1]
    shared["memories"][0]["capacity_words"] = (shared["memories"][0]["capacity_words"] - OUTSIDE) // CORES
    del shared["fanout"]
    data["architecture"]["compute"]["word_bits"] = BITS
    return data  # type: ignore[no-any-return]


def searched(seconds: float) -> tuple[tw.FusionReport, float]:
    """Return the report of the search, and its CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "attention.yaml"
        path.write_text(yaml.safe_dump(group(), sort_keys=False), encoding="utf-8")
        started = time.process_time()
        report = tw.fuse(path, objective="energy", seconds=seconds, model_options={"link_transfers": False})
        return report, time.process_time() - started


def lines_of(report: tw.FusionReport) -> Lines:
    """Return the words of all cores by FFM's conventions; MainMemory's count at the global buffer."""
    words = defaultdict[tuple[str, str, str], list[float]](lambda: [0.0, 0.0])
    for access in report.fused.accesses:
        tensor = access.tensor.rpartition(".")[2]
        reads, writes = access.reads.total, access.fills.total + access.updates.total
        _add(words, str(access.layer), access.level, tensor, reads, writes)
        if access.level == "LocalBuffer" and access.updates.total:
            _add(words, str(access.layer), access.level, tensor, writes - reads, 0)
    assert report.units is not None, "the group has a vector layer"
    for vector in report.units.vectors:
        for part in vector.parts:
            for level in part.report.levels:
                for name, counts in level.tensors.items():
                    times = part.times * counts.instances
                    read, written = times * counts.reads, times * (counts.fills + counts.updates)
                    _add(words, "softmax", level.name, "S" if name == "Outputs" else name, read, written)
    return {key: (CORES * read, CORES * written) for key, (read, written) in words.items()}


def _add(words: dict[tuple[str, str, str], list[float]], layer: str, memory: str, tensor: str, *moved: float) -> None:
    place = "GlobalBuffer" if memory == "MainMemory" else memory
    if place in PER_BIT:
        total = words[layer, place, "S" if layer == "context" and tensor == "P" else tensor]
        total[0], total[1] = total[0] + moved[0], total[1] + moved[1]


def recorded() -> Lines:
    """Return FFM's words."""
    with (FOLDER / "ffm/gpt3_attention.csv").open(encoding="utf-8", newline="") as file:
        return {
            (row["layer"], row["memory"], row["tensor"]): (int(row["reads"]), int(row["writes"]))
            for row in csv.DictReader(file)
        }


def millijoules(memory: str, words: tuple[float, float]) -> float:
    """Return the energy of words read and written."""
    return BITS * sum(price * moved for price, moved in zip(PER_BIT[memory], words, strict=True)) * 1e-9


def compared(report: tw.FusionReport) -> tuple[str, float]:
    """Return the table of lines, and the energy by FFM's conventions in mJ."""
    here, there = lines_of(report), recorded()
    rows, sums = list[list[object]](), [0.0, 0.0]
    for key in [*there, *(key for key in here if key not in there)]:
        words = there.get(key, (0, 0)), here.get(key, (0, 0))
        energies = [millijoules(key[1], pair) for pair in words]
        sums = [total + energy for total, energy in zip(sums, energies, strict=True)]
        moved = (f"{count / 2**20:.0f}" for pair in words for count in pair)
        rows.append([*key, *moved, *(f"{energy:.4f}" for energy in energies), f"{energies[1] - energies[0]:+.4f}"])
    compute = CORES * (report.fused.compute_energy_pj or 0.0) * 1e-9
    rows.append(["", "MAC", "", *[""] * 4, f"{compute:.4f}", f"{compute:.4f}", "+0.0000"])
    sums = [total + compute for total in sums]
    rows.append(["all", "", "", *[""] * 4, *(f"{total:.4f}" for total in sums), f"{sums[1] - sums[0]:+.4f}"])
    columns = "layer|memory|tensor|FFM reads|writes|here reads|writes|FFM, mJ|here, mJ|difference"
    return tables.table(columns.split("|"), rows, 3), sums[1]


def main() -> None:
    """Search, and print the lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="limit of the search")
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/fusion.md")
    given = parser.parse_args()
    searched(1)  # compiles
    report, seconds = searched(given.seconds)
    text, energy = compared(report)
    assert report.units is not None and report.units.sequential_cycles is not None
    milliseconds = report.units.sequential_cycles / (report.mapping.architecture.clock_ghz or 1.0) * 1e-6
    rows = [["FFM", f"{FFM_MJ:.3f}", f"{FFM_MS:.4f}", f"{FFM_SECONDS:.0f}", "yes, says FFM"]]
    rows.append(
        ["`--fuse`", f"{energy:.3f}", f"{milliseconds:.4f}", f"{seconds:.1f}", "yes" if report.proved else "no"]
    )
    text = f"{tables.table(['search', 'mJ', 'ms, in sequence', 'CPU s', 'proved'], rows)}\n\n{text}"
    print(report, text, sep="\n\n")
    if given.write:
        tables.replace("fusion.md", "FFM", text)


if __name__ == "__main__":
    main()
