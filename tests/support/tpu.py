"""Products on a TPU v4, measured and by SCALE-Sim (yutation/SCALE-SIM_Validation), as input of `tilewright calibrate`.

PYTHONPATH=tests python -m support.tpu FOLDER OUTPUT_FOLDER

It reads `data/data_matmul6/kernel_report_updated6_mnk.csv`: 512 products of 128 to 1,024 rows, columns and terms. It writes

* `scale_sim.csv` and `scale_sim.arch.yaml`: the cycles of SCALE-Sim for one array of 128 x 128, and 1, which it leaves out.
  Where M > N the inputs are stationary (224 rows), else the weights.
* `train.csv` (128 rows), `test.csv` (384) and `tpu.arch.yaml`: the mean time of a kernel, at 1.05 GHz. The core has four arrays.
  HBM and the start have first values.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem

SOURCE = "data/data_matmul6/kernel_report_updated6_mnk.csv"
LANES, ARRAYS = 128, 4
CYCLES_PER_US = 1050
Sizes = dict[str, int]
Measured = tuple[str, Problem, Mapping, float]


def problem_of(sizes: Sizes) -> Problem:
    tensors = [
        {"name": "A", "role": "input", "projection": ["M", "K"]},
        {"name": "B", "role": "weight", "projection": ["K", "N"]},
        {"name": "Z", "role": "output", "projection": ["M", "N"]},
    ]
    return Problem.model_validate({"name": name_of(sizes), "dimensions": sizes, "tensors": tensors})


def name_of(sizes: Sizes) -> str:
    return "_".join(f"{name}{size}" for name, size in sizes.items())


def scale_sim() -> Architecture:
    return _architecture("scale_sim", 1, {}, {"fill_drain_cycles": 3 * LANES - 2})


def tpu() -> Architecture:
    rate = {"shared_bandwidth_words_per_cycle": 570.0}
    return _architecture("tpu_v4", ARRAYS, rate, {"fill_drain_cycles": 1, "start_cycles": 500})


def _architecture(name: str, arrays: int, rate: dict[str, Any], compute: dict[str, Any]) -> Architecture:
    price = {"word_bits": 16, "read_energy_pj": 1.0, "write_energy_pj": 1.0}
    clusters = [
        {"name": "HBM", "memories": [{"name": "HBM", "technology": "dram", **price, **rate}]},
        {
            "name": "Core",
            "memories": [{"name": "VMEM", **price, "timing": {"prefetch": "none"}}],
            "fanout": {"size": arrays},
        },
        {"name": "Array", "fanout": {"size": LANES}},
        {"name": "Row", "fanout": {"size": LANES, "axis": "Y"}},
        {"name": "PE", "memories": [{"name": "Register", **price, "holds": ["input", "weight"], "capacity_words": 1}]},
    ]
    units = {"energy_per_operation_pj": 1.0, **compute}
    return Architecture.model_validate({"name": name, "clusters": clusters, "compute": units})


def mapping_of(sizes: Sizes, arrays: int = 1, stationary: str = "B") -> Mapping:
    """Return the mapping that keeps a tile of K and of one more dimension in each array."""
    across, streamed = ("N", "M") if stationary == "B" else ("M", "N")
    tiles = {name: -(-sizes[name] // LANES) for name in (across, "K")}

    def steps(parts: tuple[int, int]) -> int:
        return -(-tiles[across] // parts[0]) * -(-tiles["K"] // parts[1])

    parts = min(((arrays // part, part) for part in (1, 2, 4) if part <= arrays), key=steps)
    whole = {name: LANES * -(-tiles[name] // part) for name, part in zip((across, "K"), parts, strict=True)}
    parted = sizes | {name: min(sizes[name], size) for name, size in whole.items()}
    array = sizes | dict.fromkeys((across, "K"), LANES)
    row, lane = array | {across: 1}, array | {across: 1, "K": 1}

    def entry(target: str, outside: Sizes, inside: Sizes, **given: Any) -> dict[str, Any]:
        return {"target": target, "temporal_tile_sizes": outside, "spatial_tile_sizes": inside, **given}

    entries = [
        entry("HBM", sizes, sizes, keep=["A", "B", "Z"]),
        entry("Core", sizes, parted, keep=["A", "B", "Z"]),
        entry("Array", array, row, temporal_order=[across, "K"]),
        entry("Row", row, lane),
        entry("PE", lane, lane, keep=[stationary]),
        entry("PE", dict.fromkeys(sizes, 1), dict.fromkeys(sizes, 1), temporal_order=[streamed]),
    ]
    return Mapping.model_validate({"entries": entries})


def measured(folder: Path) -> tuple[list[Measured], list[Measured], list[Measured]]:
    """Return the rows of SCALE-Sim, those for the fit, and those that it does not see.

    Rows for the fit have M, N and K with 0 modulo 512 as their sum, which is a quarter of each size.
    """
    simulated, seen, unseen = list[Measured](), list[Measured](), list[Measured]()
    with (folder / SOURCE).open(newline="") as text:
        for row in csv.DictReader(text):
            sizes = {name: int(row[name]) for name in "MNK"}
            problem, stationary = problem_of(sizes), "A" if sizes["M"] > sizes["N"] else "B"
            cycles = float(row["total_cycles"]) + 1
            simulated.append(("scale_sim", problem, mapping_of(sizes, stationary=stationary), cycles))
            cycles = float(row["main_avg"]) * CYCLES_PER_US
            part = unseen if sum(sizes.values()) % 512 else seen
            part.append(("tpu", problem, mapping_of(sizes, ARRAYS), cycles))
    return simulated, seen, unseen


def write(output: Path, name: str, rows: Iterable[Measured]) -> None:
    with (output / f"{name}.csv").open("w", newline="") as text:
        table = csv.writer(text)
        table.writerow(["mapping", "problem", "cycles"])
        for folder, problem, mapping, cycles in rows:
            files = [f"{folder}/{problem.name}.yaml", f"problems/{problem.name}.yaml"]
            for file, document in zip(files, (mapping, problem), strict=True):
                (output / file).parent.mkdir(parents=True, exist_ok=True)
                (output / file).write_text(document.to_yaml())
            table.writerow([*files, f"{cycles:.6g}"])


def main(folder: Path, output: Path) -> None:
    output.mkdir(parents=True, exist_ok=True)
    for architecture in (scale_sim(), tpu()):
        name = "tpu" if architecture.name == "tpu_v4" else architecture.name
        (output / f"{name}.arch.yaml").write_text(architecture.to_yaml())
    for name, rows in zip(("scale_sim", "train", "test"), measured(folder), strict=True):
        write(output, name, rows)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
