"""Totals of networks with vector layers, on machines with and without vector units."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright.errors import InputError
from tilewright.plugin import AccessBatch, ComposedModel, CycleLimit
from tilewright.schema.architecture import Architecture
from tilewright.schema.workload import Workload

MACHINE = """
name: small
clock_ghz: 1
clusters:
- {name: D, memories: [{name: DRAM, technology: dram, read_energy_pj: 10, write_energy_pj: 10, shared_bandwidth_words_per_cycle: 8}]}
- {name: B, memories: [{name: Buffer, capacity_words: 4096, read_energy_pj: 1, write_energy_pj: 1}]}
compute: {energy_per_operation_pj: 1}
"""
UNIT = """
units:
- {name: VPU, lanes: 4, memory: Buffer, energy_pj: {add: 1, multiply: 1, exponential: 2, compare: 1, divide: 2, convert: 1}}
"""
ATTENTION = """
name: attention
layers:
- problem: &scores
    name: scores
    dimensions: {M: 8, N: 8, K: 4}
    tensors:
    - {name: A, role: input, projection: [M, K]}
    - {name: B, role: weight, projection: [K, N]}
    - {name: Z, role: output, projection: [M, N]}
  after: []
- problem:
    name: context
    dimensions: {M: 8, N: 4, K: 8}
    tensors:
    - {name: A, role: input, projection: [M, K]}
    - {name: B, role: weight, projection: [K, N]}
    - {name: Z, role: output, projection: [M, N]}
  after: [scores]
unmapped: [{name: softmax_0, operator: Softmax, reason: works element by element, operations: 320}]
vectors:
- name: softmax
  operator: Softmax
  rows: 8
  row: 8
  operands: [{name: X, words: 64}]
  result: 64
  after: [scores]
  before: [context]
  operators: [softmax_0]
- {name: gate, operator: Swish, rows: 64, row: 1, operands: [{name: X, words: 64}], result: 64, after: [scores]}
"""


def mapped(machine: str = MACHINE + UNIT, work: str = ATTENTION, **settings: Any) -> tw.MappingReport:
    chosen: dict[str, Any] = {"cache": False, "progress": False, "evaluations": 200} | settings
    return tw.map(Workload.from_yaml(work), Architecture.from_yaml(machine), **chosen)


def test_totals_have_vector_layers() -> None:
    """The unit executes 328 operations of the softmax and 256 of the gate, four a cycle; the array works alongside the gate."""
    report = mapped()
    totals, cycles = report.data()["totals"], {layer.name: layer.cycles or 0 for layer in report.layers}
    assert totals["vector_cycles"] == 82 + 64
    assert totals["sequential_cycles"] == totals["cycles"] + 146
    assert totals["overlapped_cycles"] == cycles["scores"] + 82 + max(cycles["context"], 64)
    assert totals["network_energy_pj"] == totals["energy_pj"] + totals["vector_energy_pj"]
    rows = report.data()["vectors"]
    assert [(row["name"], row["unit"], row["operations"], row["cycles"]) for row in rows] == [
        ("softmax", "VPU", 328, 82),
        ("gate", "VPU", 256, 64),
    ]
    assert [row["roofline"]["macs_per_word"] for row in rows] == [
        328 / 128,
        256 / 128,
    ]  # words read and written, by one port
    assert [row["roofline"]["limited_by"] for row in rows] == ["VPU", "VPU"]
    text = str(report)
    assert "vector layers" in text and "cycles, overlapped: " in text and "not counted" not in text


def test_totals_name_what_they_lack(tmp_path: Path) -> None:
    """Nothing counts the samples of a grid; the softmax is counted, and the other one moves words."""
    more = "{name: grid, operator: GridSample, reason: it reads at positions that are computed, operations: 9}"
    moved = "{name: same, operator: Identity, reason: moves words, operations: 0}"
    work = ATTENTION.replace("operations: 320}]", f"operations: 320}}, {more}, {moved}]")
    report = mapped(work=work, folder=tmp_path)
    assert "these totals are without GridSample, which are not counted" in str(report)
    assert {row["name"]: row["counted"] for row in report.data()["unmapped"]} == {
        "softmax_0": True,
        "grid": False,
        "same": False,
    }
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "operators not counted" in page and "works element by element" not in page and "GridSample" in page
    assert not any(row["counted"] for row in mapped(MACHINE, work).data()["unmapped"])


def test_units_in_parallel_wait_for_the_port_that_they_share() -> None:
    """DRAM at 1/8 word a cycle: a chain or not, all words of all layers pass it."""
    slow = MACHINE.replace("shared_bandwidth_words_per_cycle: 8", "shared_bandwidth_words_per_cycle: 0.125")
    report = mapped(slow + UNIT)
    totals = report.data()["totals"]
    limits = [limit for layer in report.layers for limit in (layer.report.limits if layer.report else ())]
    limits += [limit for vector in report.vectors for limit in vector.report.limits]
    dram = sum(limit.cycles for limit in limits if limit.name == "DRAM")
    assert totals["overlapped_cycles"] == dram == totals["sequential_cycles"]


def test_files_without_units_have_the_figures_of_before() -> None:
    report, alone = mapped(MACHINE), mapped(MACHINE, ATTENTION.partition("vectors:")[0])
    assert report.data()["layers"] and report.cycles == alone.cycles and report.energy_pj == alone.energy_pj
    totals = report.data()["totals"]
    assert totals["vector_cycles"] is None and totals["sequential_cycles"] is None and not report.data()["vectors"]
    assert "not mapped" in str(report) and "the architecture has no vector unit" in str(report)


class Plain(ComposedModel):
    """A model of one's own, which counts layers only."""

    name = "plain"

    def limits(self, counts: AccessBatch) -> Iterator[CycleLimit]:
        yield CycleLimit("bus", "wait", counts.reads.sum(axis=(1, 2)) / 1e9)


def test_pipelined_counts_vector_layers() -> None:
    """Without timings it takes the cycles of `timeloop`."""
    assert [row["cycles"] for row in mapped(model="pipelined").data()["vectors"]] == [82, 64]


def test_a_model_without_vector_layers_says_so() -> None:
    """The totals have no zero in their place."""
    report = mapped(MACHINE.replace("shared_", "read_") + UNIT, model=Plain())
    assert report.data()["totals"]["vector_cycles"] is None
    assert all(row["cycles"] is None for row in report.data()["vectors"])
    told = "vector layers are not accepted; these models accept them: oracle, pipelined, timeloop"
    assert {row["reason"] for row in report.data()["vectors"]} == {told}
    assert "not counted" in str(report) and "vector layers are not" in str(report)


def test_oracle_executes_them() -> None:
    report = mapped(model="oracle", mapper="random", evaluations=20)
    assert [row["cycles"] for row in report.data()["vectors"]] == [82, 64]


def test_a_missing_operation_is_the_reason() -> None:
    report = mapped(MACHINE + UNIT.replace("exponential: 2, ", ""))
    told = "VPU has no exponential; expected an energy_pj of each"
    assert [row["reason"] for row in report.data()["vectors"]] == [told, told]


def test_layers_that_wait_for_each_other_are_refused_before_the_search() -> None:
    with pytest.raises(InputError, match="wait for each other"):
        mapped(work=ATTENTION.replace("after: [scores]\n  before: [context]", "after: [context]\n  before: [context]"))


def test_the_page_and_the_plot_show_units_over_time(tmp_path: Path) -> None:
    report = mapped(folder=tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Units over time" in page and "softmax" in page and "cycles, overlapped" in page
    rows = (tmp_path / "vectors.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0].startswith("name,operator,unit,") and rows[1].startswith("softmax,Softmax,VPU,8,8,1,328,")
    bars = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))["timeline"]
    assert [bar["unit"] for bar in bars] == ["MAC", "VPU", "VPU", "MAC"]
    drawn = tw.plot(tmp_path, tmp_path / "units.svg", kind="timeline").read_text(encoding="utf-8")
    assert (
        "VPU, softmax: " in drawn and "DRAM bandwidth, softmax: 0" not in drawn and "DRAM bandwidth, softmax: " in drawn
    )
    assert report.plot.kinds[-1] == "timeline"


@pytest.mark.parametrize("command", ["compare", "front", "explore"])
def test_other_commands_say_that_they_count_none(command: str, caplog: pytest.LogCaptureFixture) -> None:
    work, machine = Workload.from_yaml(ATTENTION), Architecture.from_yaml(MACHINE + UNIT)
    settings: dict[str, Any] = {"cache": False, "progress": False}
    if command == "compare":
        told = tw.compare(work, machine, mappers=["random"], evaluations=20, **settings).messages()
    elif command == "front":
        told = tw.front(work, machine, points=2, **settings).messages()
    else:
        tw.explore(
            work,
            arch=machine,
            vary={"Buffer.capacity_words": [2048, 4096]},
            evaluations=20,
            mapper="random",
            **settings,
        )
        told = caplog.messages
    assert any("vector layers are not counted here; `tilewright map` counts them" in one for one in told)
