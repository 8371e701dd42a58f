"""Measurements of DOSA (ucb-bar/dosa) as input of `tilewright calibrate`.

PYTHONPATH=tests python -m support.gemmini DOSA_FOLDER OUTPUT_FOLDER

It writes `train.csv` (data/firesim_training_data), `test.csv` (data/firesim_test_data), their mappings and problems, and
`gemmini.arch.yaml`: the memories of DOSA's file, the array, and parameters with first values.

The measured programs are public, too (ucb-bar/gemmini-rocc-tests, branch `dosa`). They differ from some mappings:

* Each training mapping ran on the smallest array of 2, 4, ... 64 lanes that holds its unrolled loops.
* Convolutions have as many rows as columns, and filters of even size one more position.
* Matrix products round tiles to multiples of the array.
* Partial sums that leave the accumulator are lost. Only the last ones are stored.

`train.csv` has the measurements on the array of 16 lanes to which none of this applies. `test.csv` has all.
"""

from __future__ import annotations

import csv
import math
import re
import sys
from pathlib import Path
from typing import Any

from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem

SOURCES = {"train": "firesim_training_data/firesim_results.csv", "test": "firesim_test_data/dataset.csv"}
TARGETS = {"L3": "System", "L2": "Chip", "L1": "PECols", "L0": "PERows"}
LINE, SETS, WAYS = 64, 1024, 8
"""Bytes of a line, and shape, of the cache between DRAM and the scratchpad, which all transfers pass."""
ORDER = "KRSCNQP"
"""Loops over a tile in the scratchpad, outermost first. The hardware ignores the order of the mapping."""
TENSORS = {"W": "Weights", "I": "Inputs", "O": "Outputs"}
Row = dict[str, str]


def problem_of(row: Row) -> Problem:
    sizes = {name: int(row[f"prob.{name}"]) for name in "RSPQCKN"}
    stride = int(row["prob.Wstride"])
    return Problem.model_validate(
        {
            "name": "_".join(f"{name}{size}" for name, size in {**sizes, "stride": stride}.items()),
            "operation": "conv2d",
            "dimensions": sizes,
            "tensors": [
                {"name": "Inputs", "role": "input", "projection": ["N", "C", f"{stride}*P + R", f"{stride}*Q + S"]},
                {"name": "Weights", "role": "weight", "projection": ["C", "K", "R", "S"]},
                {"name": "Outputs", "role": "output", "projection": ["N", "K", "P", "Q"]},
            ],
        }
    )


def architecture() -> Architecture:
    def memory(name: str, bits: int, rate: float | None, holds: list[str] | None = None) -> dict[str, Any]:
        energies = {"read_energy_pj": 1.0, "write_energy_pj": 1.0}
        shared = {"shared_bandwidth_words_per_cycle": rate} if rate else {}
        return {"name": name, "word_bits": bits, "holds": holds, **energies, **shared}

    runs = {"words": 64, "cycles": 1}
    fetched = {"requests": runs | {"along": ["K", "C"]}, "reload": True, "prefetch": "next", "step_cycles": 256}
    stored = {"requests": runs | {"along": ["K"], "words": 16}}
    operands = memory("Scratchpad", 8, None, ["input", "weight"]) | {"timing": fetched}
    clusters = [
        {"name": "System", "memories": [memory("DRAM", 8, 8.0) | {"technology": "dram"}]},
        {"name": "L2", "memories": [memory("Cache", 8, 8.0) | {"timing": {"prefetch": "none"}}]},
        {"name": "Chip", "memories": [operands], "fanout": {"size": 16}},
        {
            "name": "PECols",
            "memories": [memory("Accumulator", 32, 2.0, ["output"]) | {"timing": stored}],
            "fanout": {"size": 16, "axis": "Y"},
        },
        {"name": "PERows", "memories": [memory("Registers", 8, None, ["weight"])]},
    ]
    instruction = {"memory": "Scratchpad", "dimensions": ["P"], "iterations": 16, "cycles": 4}
    compute = {"energy_per_operation_pj": 1.0, "word_bits": 8, "instruction": instruction}
    return Architecture.model_validate({"name": "gemmini", "clusters": clusters, "compute": compute})


def mapping_of(row: Row, problem: Problem) -> Mapping:
    """Read `L3[WIO] K48 - L2[WI] N1 K16X - ...`: loops of each level, outermost first; X marks unrolled ones.

    The cache keeps the largest tiles that fit and that inner loops of DRAM visit again.
    """
    tile = {name: int(row[f"prob.{name}"]) for name in "RSPQCKN"}
    entries: list[dict[str, Any]] = []
    outside: list[tuple[str, int]] = []
    around: list[tuple[str, int]] = []

    def divide(loops: list[tuple[str, int]]) -> dict[str, int]:
        for name, trips in loops:
            assert tile[name] % trips == 0
            tile[name] //= trips
        return dict(tile)

    for part in row["mapping.mapping"].split(" - "):
        head, *words = part.split()
        level, kept = re.fullmatch(r"(L\d)\[(\w*)\]", head).groups()  # type: ignore[union-attr]
        loops = [(word[0], int(word[1:].removesuffix("X")), word.endswith("X")) for word in words]
        entry: dict[str, Any] = {"target": TARGETS[level], "keep": [TENSORS[each] for each in kept]}
        while level == "L2" and not fits(problem, tile, outside):
            around.append(outside.pop(0))
            divide(around[-1:])
        if level == "L2":
            cached: dict[str, Any] = {"target": "L2", "keep": [*TENSORS.values()]}
            cached |= {"temporal_order": [name for name, _ in around], "temporal_tile_sizes": dict(tile)}
            entries.append(cached | {"spatial_tile_sizes": dict(tile)})
        entry |= {"temporal_order": [name for name, _ in outside], "temporal_tile_sizes": divide(outside)}
        entry["spatial_tile_sizes"] = divide([(name, trips) for name, trips, unrolled in loops if unrolled])
        entries.append(entry)
        outside = [(name, trips) for name, trips, unrolled in loops if not unrolled]
        if level != "L3":
            outside.sort(key=lambda loop: ORDER.index(loop[0]))
    last = {"target": "PERows", "temporal_order": [name for name, _ in outside], "temporal_tile_sizes": divide(outside)}
    return Mapping.model_validate({"entries": [*entries, last]})


def is_stated(row: Row) -> bool:
    """Return whether a training measurement is one of its problem and mapping, on 16 x 16 lanes."""
    size = {name: int(row[f"prob.{name}"]) for name in "RSPQCKN"}
    tile, words = dict(size), row["mapping.mapping"].split(" - ")
    outside = [(word[0], int(word[1:])) for word in words[0].split()[1:] if word[1:] != "1"]
    for name, trips in outside:
        tile[name] //= trips
    unrolled = [int(word[1:-1]) for part in words for word in part.split() if word.endswith("X")]
    inner = "".join(name for name, _ in outside).lstrip("NKPQ")  # from the first loop that sums up
    if not 8 < max([1, *unrolled]) <= 16 or set(inner) & set("NKPQ"):
        return False
    if size["Q"] == size["R"] == size["S"] == 1:
        return size["P"] > 1 and all(tile[name] % 16 == 0 for name in "CKP")
    return size["P"] == size["Q"] > 1 and size["R"] == size["S"] and size["R"] % 2 == 1


def fits(problem: Problem, tile: dict[str, int], loops: list[tuple[str, int]]) -> bool:
    """Return whether all tiles of these sizes fit in the cache, or no loop is left to visit them again.

    A tile fills whole lines. Those of narrow tiles share few of the sets, if the rows of the tensor are far apart.
    """
    used = 0
    for tensor in problem.tensors:
        along = "C" if tensor.role == "input" else "K"
        run, row = tile[along], problem.dimensions[along]
        words = problem.tile_words(tensor, tile)
        lines = words // run * -(-run // LINE) if run < row else -(-words // LINE)
        sets = min(SETS, -(-run // LINE) * (LINE * SETS // math.gcd(row, LINE * SETS))) if run < row else SETS
        if lines > WAYS * sets:
            return not loops
        used += lines
    return not loops or used <= WAYS * SETS


def main(dosa: Path, output: Path) -> None:
    (output / "problems").mkdir(parents=True, exist_ok=True)
    (output / "gemmini.arch.yaml").write_text(architecture().to_yaml())
    for name, source in SOURCES.items():
        (output / name).mkdir(exist_ok=True)
        with (dosa / "data" / source).open(newline="") as text, (output / f"{name}.csv").open("w", newline="") as found:
            table = csv.writer(found)
            table.writerow(["mapping", "problem", "cycles"])
            for number, row in enumerate(csv.DictReader(text)):
                if name == "train" and not is_stated(row):
                    continue
                problem = problem_of(row)
                mapping = f"{name}/{number}.yaml"
                (output / mapping).write_text(mapping_of(row, problem).to_yaml())
                (output / "problems" / f"{problem.name}.yaml").write_text(problem.to_yaml())
                table.writerow([mapping, f"problems/{problem.name}.yaml", float(row["target.gemmini_cycle"])])


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
