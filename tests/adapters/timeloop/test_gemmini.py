"""Cycles that Timeloop found for 222 mappings on Gemmini, whose memories share a bandwidth between reads and writes.

`gemmini.csv` has the mappings and `target.cycle` of DOSA's test data (data/firesim_test_data/dataset.csv of ucb-bar/dosa).
"""

import csv
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import tilewright as tw

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
        bypass = [tensor for tensor in TENSORS.values() if tensor not in keep]
        directives.append({"target": LEVELS[level], "type": "bypass", "keep": keep, "bypass": bypass})
        kinds = {"temporal": [loop for loop in loops if not loop.endswith("X")]}
        if level in ("L2", "L1"):
            kinds["spatial"] = [loop.removesuffix("X") for loop in loops if loop.endswith("X")]
        for kind, some in kinds.items():
            trips = dict.fromkeys("RSPQCKN", 1) | {each[0]: int(each[1:]) for each in some}
            inner = "".join(each[0] for each in reversed(some))
            order = inner + "".join(trip for trip in trips if trip not in inner)
            factors = " ".join(f"{name}={count}" for name, count in trips.items())
            directives.append({"target": LEVELS[level], "type": kind, "factors": factors, "permutation": order})
    return directives


def cycles(row: dict[str, str], folder: Path, first_fills: bool = True) -> int | None:
    sizes = {name: int(row[name]) for name in "CKNPQRS"}
    sizes |= {"Wstride": int(row["stride"]), "Hstride": int(row["stride"]), "Wdilation": 1, "Hdilation": 1}
    files = {
        "arch": architecture(row),
        "problem": {"problem": {"shape": "cnn-layer"} | sizes},
        "map": {"mapping": mapping(row["mapping"])},
    }
    for name, data in files.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    given = [folder / f"{name}.yaml" for name in files]
    options = {"first_fills": first_fills}
    (report,) = tw.evaluate(given, notation="timeloop", model_options=options).reports
    return report.cycles


def test_shared_bandwidth_makes_the_recorded_cycles(tmp_path: Path) -> None:
    """The recorded version counts first writes of outputs as fills; 22 rows show it, one of them here."""
    recorded = [int(row["cycles"]) for row in ROWS[:6]]
    assert [cycles(row, tmp_path) for row in ROWS[:6]] == recorded
    without = [cycles(row, tmp_path, first_fills=False) for row in ROWS[:6]]
    assert sum(one != other for one, other in zip(without, recorded, strict=True)) == 1


@pytest.mark.exhaustive
def test_all_recorded_cycles(tmp_path: Path) -> None:
    assert len(ROWS) == 222
    for row in ROWS:
        assert cycles(row, tmp_path) == int(row["cycles"]), row
