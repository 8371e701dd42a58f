"""Comparison with ZigZag itself, if it is installed.

Both read the same loops in the same memories and return the same figures. ZigZag does not
evaluate files that Tilewright refuses.
"""

import json
import logging
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, event, given
from zigzag.api import get_hardware_performance_zigzag
from zigzag.opt.loma.engine import LomaEngine, NoValidLoopOrderingFoundException
from zigzag.opt.loma.memory_allocator import MemoryHierarchyTooSmallException, MemoryTooSmallException

from support import DATA
from support.zigzag_files import RUNS, SEARCHED, Files, files, searched
from tilewright.application.conversion.conversion import write_files
from tilewright.errors import InputError
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.schema.document import dump_yaml, parse_document
from tilewright_adapters.zigzag import ZigZagAdapter

NAMES = ("workload.yaml", "accelerator.yaml", "mapping.yaml")
ADAPTER = ZigZagAdapter()


class SearchedError(Exception):
    """ZigZag does not take the order of loops as it stands."""


@pytest.fixture(autouse=True)
def no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    logging.disable(logging.WARNING)

    def run(self: LomaEngine) -> None:
        raise SearchedError

    monkeypatch.setattr(LomaEngine, "run", run)


@dataclass(frozen=True)
class Answer:
    energy_pj: float
    cycles: float


def ask(folder: Path) -> Answer | None:
    """ZigZag's figures for the files of a folder; None: it finds no place, or would search for an order itself."""
    try:
        energy, cycles, _ = get_hardware_performance_zigzag(
            *(str(folder / name) for name in NAMES), dump_folder=str(folder / "out"), loma_show_progress_bar=False
        )
    except (
        MemoryTooSmallException,
        MemoryHierarchyTooSmallException,
        NoValidLoopOrderingFoundException,
        SearchedError,
    ) as error:
        event(type(error).__name__)
        return None
    except AssertionError:  # of its own: loads that wait for a port of parts of a value
        event("ZigZag ends with an assertion")
        assume(False)
    return Answer(energy, cycles)


def truncated(found: Files) -> float:
    """What ZigZag may lose: it cuts accesses of parts of a port to whole numbers, once per operand and direction."""
    memories = found["accelerator.yaml"]["memories"].values()
    return math.fsum(
        2 * len(memory["operands"]) * (memory["r_cost"] + memory["w_cost"])
        for memory in memories
        if any(port["bandwidth_min"] != port["bandwidth_max"] for port in memory["ports"])
    )


@given(found=files())
def test_the_same_figures_or_no_place_for_either(folder: Path, found: Files) -> None:
    paths = write_files(folder, {name: dump_yaml(data) for name, data in found.items()})
    assume(found["mapping.yaml"][0]["temporal_ordering"])  # ZigZag cannot show a mapping without loops in time
    theirs = ask(folder)
    try:
        inputs = ADAPTER.parse(paths)
    except InputError as error:
        assert theirs is None or "this mapping cannot be expressed" in error.message
        return
    assert theirs is not None and inputs.problem and inputs.architecture and inputs.mapping
    report = installed().make(CostModelSpec, "zigzag").bind(inputs.problem, inputs.architecture).explain(inputs.mapping)
    if any("AssertionError: Reduction" in reason.message for reason in report.reasons):
        event("ZigZag ends with an assertion")  # of its own, as above
        return
    if not report.valid:
        assert {reason.code for reason in report.reasons} == {"capacity"}
        return
    _agree(report.energy_pj, theirs.energy_pj, truncated(found))
    texts = ADAPTER.render(inputs) if ADAPTER.expressible(inputs) else {}
    if not texts:
        return
    write_files(folder / "written", texts)
    again = ask(folder / "written")
    assert again is not None
    _agree(report.energy_pj, again.energy_pj, truncated(found))
    memories = parse_document(texts["accelerator.yaml"]).data["memories"].values()
    if all(memory["operands"] == sorted(memory["operands"]) for memory in memories):  # its cycles depend on that order
        event("cycles compared")
        assert report.cycles == math.ceil(again.cycles)


RECORDED = json.loads((DATA / "zigzag/runs.json").read_text())


@pytest.mark.parametrize("run", RECORDED["runs"], ids=lambda run: f"{run['conv']}-{run['engine']}")
def test_what_zigzag_found_costs_what_it_cost(tmp_path: Path, run: dict[str, Any]) -> None:
    """Convolutions with words of 8 bits, sums of 16. Cycles of one run differ by 8.3 %, of the others by less than 0.05 %."""
    (x, y), (u, v) = run["stride"], run["dilation"]
    layer = {
        "id": 0,
        "name": "conv",
        "operator_type": "Conv",
        "equation": "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]",
        "dimension_relations": [f"ix={x}*ox+{u}*fx", f"iy={y}*oy+{v}*fy"],
        "loop_dims": list(run["sizes"]),
        "loop_sizes": list(run["sizes"].values()),
        "operand_precision": RECORDED["bits"],
    }
    said = {"name": "default", "spatial_mapping": run["spatial"], "temporal_ordering": run["ordering"]}
    contents = zip(NAMES, ([layer], RECORDED["accelerator"], [said]), strict=True)
    inputs = ADAPTER.parse(write_files(tmp_path, {name: dump_yaml(data) for name, data in contents}))
    assert inputs.problem and inputs.architecture and inputs.mapping
    report = installed().make(CostModelSpec, "zigzag").bind(inputs.problem, inputs.architecture).explain(inputs.mapping)
    assert report.valid and report.cycles is not None
    assert report.energy_pj == pytest.approx(run["energy_pj"], rel=2e-6)
    assert report.cycles == pytest.approx(run["cycles"], rel=0.084)


@pytest.mark.parametrize(
    ("accelerator", "energy_pj", "cycles"), [("gemm_l1", 511_349.76, 8191), ("gemm_l1_l3", 19_769_466.88, 8704)]
)
def test_ports_of_different_widths_cost_what_they_cost_in_zigzag(
    tmp_path: Path, accelerator: str, energy_pj: float, cycles: int
) -> None:
    """A product of 128 x 128 x 128 by a fixed order of loops; figures that ZigZag 3.9.1 printed for its own files."""
    layer = {
        "id": 0,
        "name": "gemm",
        "operator_type": "Gemm",
        "equation": "O[d0][d1]+=I[d0][d2]*W[d2][d1]",
        "loop_dims": ["D0", "D1", "D2"],
        "loop_sizes": [128, 128, 128],
        "operand_precision": {"W": 8, "I": 8, "O": 32, "O_final": 8},
    }
    said = {
        "name": "default",
        "spatial_mapping": {"D1": ["D0, 8"], "D2": ["D2, 8"], "D3": ["D1, 8"]},
        "temporal_ordering": [["D1", 16], ["D2", 16], ["D0", 16]],
    }
    contents = zip(NAMES, ([layer], SEARCHED["accelerators"][accelerator], [said]), strict=True)
    inputs = ADAPTER.parse(write_files(tmp_path, {name: dump_yaml(data) for name, data in contents}))
    assert inputs.problem and inputs.architecture and inputs.mapping
    report = installed().make(CostModelSpec, "zigzag").bind(inputs.problem, inputs.architecture).explain(inputs.mapping)
    assert report.energy_pj == pytest.approx(energy_pj, rel=1e-9) and report.cycles == cycles


def test_what_its_searches_find_costs_the_same() -> None:
    """The figures of docs/zigzag.md: what differs by more is explained there by class."""
    energies, cycles = [], []
    for run, inputs in searched(RUNS):
        if inputs is None:
            continue
        assert inputs.problem and inputs.architecture and inputs.mapping
        model = installed().make(CostModelSpec, "zigzag").bind(inputs.problem, inputs.architecture)
        report = model.explain(inputs.mapping)
        assert report.valid and report.energy_pj and report.cycles
        energies.append(abs(report.energy_pj / run["energy_pj"] - 1))
        cycles.append(abs(report.cycles / run["cycles"] - 1))
    assert len(energies) == 149
    assert [sum(energy <= most for energy in energies) for most in (0.0001, 0.001)] == [118, 149]
    assert [sum(cycle <= most for cycle in cycles) for most in (0, 0.01, 0.05)] == [124, 149, 149]


def _agree(ours: float | None, theirs: float, lost: float) -> None:
    assert ours is not None
    assert theirs <= ours * (1 + 1e-9) and ours - theirs <= lost + 1e-9 * ours
