"""Cycles that Timeloop found for 222 mappings on Gemmini, whose memories share a bandwidth between reads and writes.

`gemmini.csv` has the mappings and `target.cycle` of DOSA's test data (data/firesim_test_data/dataset.csv of ucb-bar/dosa).
"""

import csv
import math
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import tilewright as tw
from tilewright.schema.report import Report

ROWS = list(csv.DictReader((Path(__file__).parents[2] / "data" / "timeloop" / "gemmini.csv").read_text().splitlines()))
LEVELS = {"L3": "DRAM", "L2": "Scratchpad", "L1": "Accumulator", "L0": "Registers"}
TENSORS = {"W": "Weights", "I": "Inputs", "O": "Outputs"}
SHARED = {"DRAM": 8, "Scratchpad": 32, "Accumulator": 2}
"""Words per cycle, read and written together."""


def architecture(row: dict[str, str]) -> dict[str, Any]:
    def memory(name: str, **attributes: Any) -> dict[str, Any]:
        shared = {"shared_bandwidth": SHARED[name]} if name in SHARED else {}
        return {"name": name, "class": "DRAM" if name == "DRAM" else "SRAM", "attributes": attributes | shared}

    rows = {
        "name": "PERows[0..15]",
        "local": [
            memory("Registers", entries=1, instances=256, **{"word-bits": 8}),
            {"name": "MACC", "class": "intmac", "attributes": {"instances": 256, "word-bits": 8}},
        ],
    }
    accumulator = memory("Accumulator", entries=int(row["accumulator"]), instances=16, **{"word-bits": 32})
    columns = {"name": "PECols[0..15]", "local": [accumulator], "subtree": [rows]}
    scratchpad = memory("Scratchpad", entries=int(row["scratchpad"]), instances=1, **{"word-bits": 8})
    chip = {"name": "Chip", "local": [scratchpad], "subtree": [columns]}
    system = {"name": "System", "local": [memory("DRAM", instances=1, **{"word-bits": 8})], "subtree": [chip]}
    return {"architecture": {"version": 0.3, "subtree": [system]}}


def mapping(text: str) -> list[dict[str, Any]]:
    """Directives for `L3[WIO] K48 - L2[WI] N1 K16X - ...`: loops, outermost first; X marks unrolled ones."""
    directives: list[dict[str, Any]] = []
    for part in text.split(" - "):
        head, *loops = part.split()
        level, kept = re.fullmatch(r"(L\d)\[(\w*)\]", head).groups()  # type: ignore[union-attr]
        keep = [TENSORS[each] for each in kept]
        bypass = [each for each in TENSORS.values() if each not in keep]
        directives.append({"target": LEVELS[level], "type": "bypass", "keep": keep, "bypass": bypass})
        kinds = {"temporal": [each for each in loops if not each.endswith("X")]}
        if level in ("L2", "L1"):
            kinds["spatial"] = [each.removesuffix("X") for each in loops if each.endswith("X")]
        for kind, some in kinds.items():
            trips = dict.fromkeys("RSPQCKN", 1) | {each[0]: int(each[1:]) for each in some}
            inner = "".join(each[0] for each in reversed(some))
            order = inner + "".join(each for each in trips if each not in inner)
            factors = " ".join(f"{name}={count}" for name, count in trips.items())
            directives.append({"target": LEVELS[level], "type": kind, "factors": factors, "permutation": order})
    return directives


def evaluated(row: dict[str, str], folder: Path) -> Report:
    sizes = {name: int(row[name]) for name in "CKNPQRS"}
    sizes |= {"Wstride": int(row["stride"]), "Hstride": int(row["stride"]), "Wdilation": 1, "Hdilation": 1}
    files = {
        "arch": architecture(row),
        "problem": {"problem": {"shape": "cnn-layer"} | sizes},
        "map": {"mapping": mapping(row["mapping"])},
    }
    for name, data in files.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    (report,) = tw.evaluate([folder / f"{name}.yaml" for name in files], notation="timeloop").reports
    return report


def with_first_fills(report: Report, outputs: int) -> int:
    """Return the cycles if the first writes of outputs are counted as fills, as before Timeloop 3."""
    level = next(each for each in report.levels if each.name == "Accumulator")
    moved = sum(each.reads + each.fills + each.updates for each in level.tensors.values()) + outputs // level.instances
    return max(report.cycles or 0, math.ceil(moved / SHARED["Accumulator"]))


def check(rows: list[dict[str, str]], folder: Path) -> int:
    """Compare the rows; return how many are equal only with first fills."""
    first_fills = 0
    for row in rows:
        report, recorded = evaluated(row, folder), int(row["cycles"])
        if report.cycles != recorded:
            outputs = math.prod(int(row[name]) for name in "KNPQ")
            assert with_first_fills(report, outputs) == recorded, row
            first_fills += 1
    return first_fills


def test_shared_bandwidth_makes_the_recorded_cycles(tmp_path: Path) -> None:
    assert check(ROWS[:6], tmp_path) == 1


@pytest.mark.exhaustive
def test_all_recorded_cycles(tmp_path: Path) -> None:
    assert (len(ROWS), check(ROWS, tmp_path)) == (222, 22)
