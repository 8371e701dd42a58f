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
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor

SOURCES = {"train": "firesim_training_data/firesim_results.csv", "test": "firesim_test_data/dataset.csv"}
LANES = 16
LINE, SETS, WAYS, SLACK = 64, 1024, 8, 1.39
"""Bytes of a line, and shape of the cache between DRAM and the scratchpad, which all transfers pass."""
STEPS = "KRSC", "NQP"
"""Loops over a tile in the scratchpad: over the weights in the array, and of each of them."""
TENSORS = "Inputs", "Weights", "Outputs"
FITTED = (
    "Cache.shared_bandwidth_words_per_cycle",
    "Cache.timing.requests.cycles",
    "Cache.timing.requests.return_cycles",
    "Scratchpad.timing.requests.cycles",
    "Scratchpad.timing.step_cycles",
    "Accumulator.timing.requests.cycles",
)
Row = dict[str, str]
Sizes = dict[str, int]
Loops = Sequence[tuple[str, int]]


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

    runs = {"words": LINE, "cycles": 1}
    passed = {"prefetch": "through", "requests": runs | {"along": ["K", "C"], "cycles": 6, "return_cycles": 30}}
    fetched = {"requests": runs | {"along": ["K", "C"]}, "reload": True, "prefetch": "next", "step_cycles": 256}
    stored = {"requests": runs | {"along": ["K"], "words": LANES, "cycles": 4}}
    operands = memory("Scratchpad", 8, None, ["input", "weight"]) | {"timing": fetched}
    clusters = [
        {"name": "System", "memories": [memory("DRAM", 8, None) | {"technology": "dram"}]},
        {"name": "L2", "memories": [memory("Cache", 8, 10.0) | {"timing": passed}]},
        {"name": "Chip", "memories": [operands], "fanout": {"size": LANES}},
        {
            "name": "PECols",
            "memories": [memory("Accumulator", 32, None, ["output"]) | {"timing": stored}],
            "fanout": {"size": LANES, "axis": "Y"},
        },
        {"name": "PERows", "memories": [memory("Registers", 8, None, ["weight"])]},
    ]
    instruction = {"memory": "Scratchpad", "dimensions": ["P"], "iterations": LANES, "cycles": 4}
    instruction |= {"load_cycles": LANES, "issue_cycles": 8}
    compute = {"energy_per_operation_pj": 1.0, "word_bits": 8, "instruction": instruction}
    return Architecture.model_validate({"name": "gemmini", "clusters": clusters, "compute": compute})


def mapping_of(row: Row, problem: Problem) -> Mapping:
    """Read the loops outside the scratchpad of `L3[WIO] K48 - L2[WI] N1 K16X - ...`, and the tile there.

    The array divides a tile by itself: up to 16 channels and filters, and then the loops of `STEPS`. The cache keeps the largest
    tiles that fit and that inner loops of DRAM visit again. If all tensors fit, they are there since the run before. Other
    tensors pass through the cache in each step.
    """
    tile = {name: int(row[f"prob.{name}"]) for name in "RSPQCKN"}
    entries: list[dict[str, Any]] = []

    def enter(target: str, keep: Sequence[str] | None, loops: Loops, unrolled: Loops = ()) -> None:
        outer, inner = (divided(tile, loops), divided(tile, [*loops, *unrolled]))
        sizes = {"temporal_tile_sizes": outer, "spatial_tile_sizes": inner}
        entries.append({"target": target, "keep": keep, "temporal_order": [name for name, _ in loops], **sizes})
        tile.update(inner)

    loops = [(word[0], int(word[1:])) for word in row["mapping.mapping"].split(" - ")[0].split()[1:]]
    cached, around, inside = cached_tiles(problem, tile, loops)
    streamed = [name for name in TENSORS if name not in cached]
    enter("System", TENSORS if around or streamed else (), ())
    enter("L2", cached, around)
    if streamed:
        enter("L2", streamed, inside)
    step = divided(tile, () if streamed else inside)
    lanes = {name: max(part for part in range(1, LANES + 1) if step[name] % part == 0) for name in "CK"}
    enter("Chip", TENSORS[:2], () if streamed else inside, [("K", lanes["K"])])
    enter("PECols", TENSORS[2:], (), [("C", lanes["C"])])
    enter("PERows", TENSORS[1:2], [(name, tile[name]) for name in STEPS[0]])
    enter("PERows", None, [(name, tile[name]) for name in STEPS[1]])
    return Mapping.model_validate({"entries": entries})


def divided(tile: Sizes, loops: Loops) -> Sizes:
    """Return the tile inside loops."""
    inside = dict(tile)
    for name, trips in loops:
        assert inside[name] % trips == 0
        inside[name] //= trips
    return inside


def cached_tiles(problem: Problem, sizes: Sizes, loops: Loops) -> tuple[list[str], Loops, Loops]:
    """Return the tensors that the cache keeps, and the loops outside and inside of their tiles."""
    inside, around, tile = [*loops], list[tuple[str, int]](), dict(sizes)
    step = divided(tile, loops)
    kept = [tensor for tensor in problem.tensors if fits(problem, [tensor], step)]
    while inside and not fits(problem, kept, tile):
        name, trips = inside.pop(0)
        tile[name] //= trips
        line = max(
            part for part in range(1, trips + 1) if trips % part == 0 and part * tile[name] <= max(tile[name], LINE)
        )
        wide = tile | {name: tile[name] * line}
        if name in "CK" and fits(problem, kept, wide):  # tiles of neighbouring steps share lines
            inside, trips = [(name, line), *inside], trips // line
            return [tensor.name for tensor in kept], [*around, (name, trips)], inside
        around.append((name, trips))
    return [tensor.name for tensor in kept], around, inside


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


def fits(problem: Problem, tensors: Sequence[Tensor], tile: Sizes) -> bool:
    """Return whether the cache has room for tiles of these sizes.

    A tile fills whole lines. If it is narrow and the rows of its tensor are far apart, they share few of the sets. A word to be
    used again is then evicted at random: with `SLACK` times the lines of the cache, half of them.
    """
    used = 0
    for tensor in tensors:
        along = "C" if tensor.role == "input" else "K"
        run, row, words = tile[along], problem.dimensions[along], problem.tile_words(tensor, tile)
        lines, sets = -(-words // LINE), SETS
        if run < row:
            lines = words // run * -(-run // LINE)
            sets = min(SETS, -(-run // LINE) * (LINE * SETS // math.gcd(row, LINE * SETS)))
        if lines > SLACK * WAYS * sets:
            return False
        used += lines
    return used <= SLACK * WAYS * SETS


def measured(dosa: Path, name: str) -> Iterator[tuple[int, Problem, Mapping, float]]:
    """Yield the number of each row of a source, its problem, mapping and cycles; of `train` those that are stated."""
    with (dosa / "data" / SOURCES[name]).open(newline="") as text:
        for number, row in enumerate(csv.DictReader(text)):
            if name == "test" or is_stated(row):
                problem = problem_of(row)
                yield number, problem, mapping_of(row, problem), float(row["target.gemmini_cycle"])


def main(dosa: Path, output: Path) -> None:
    (output / "problems").mkdir(parents=True, exist_ok=True)
    (output / "gemmini.arch.yaml").write_text(architecture().to_yaml())
    for name in SOURCES:
        (output / name).mkdir(exist_ok=True)
        with (output / f"{name}.csv").open("w", newline="") as text:
            table = csv.writer(text)
            table.writerow(["mapping", "problem", "cycles"])
            for number, problem, mapping, cycles in measured(dosa, name):
                files = f"{name}/{number}.yaml", f"problems/{problem.name}.yaml"
                for file, document in zip(files, (mapping, problem), strict=True):
                    (output / file).write_text(document.to_yaml())
                table.writerow([*files, cycles])


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
