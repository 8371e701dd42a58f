"""Attributes of memories: which figures they change, and which are refused."""

from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright.errors import InputError
from tilewright.reports import Report
from tilewright.schema.objective import CYCLES, EDP, ENERGY
from tilewright_adapters.timeloop import TimeloopAdapter

MATMUL = """
architecture:
  version: 0.3
  subtree:
  - name: system
    local:
    - name: DRAM
      class: DRAM
      attributes: {width: 64, block-size: 4, word-bits: 16}
    subtree:
    - name: chip
      local:
      - name: GLB
        class: SRAM
        attributes: {depth: 4096, width: 64, block-size: 4, word-bits: 16, ATTRIBUTES}
      - name: "RF[0..3]"
        class: regfile
        attributes: {depth: 64, width: 16, word-bits: 16}
      - name: "MACC[0..3]"
        class: intmac
        attributes: {datawidth: 16}
problem:
  shape:
    name: gemm
    dimensions: [M, N, K]
    data-spaces:
    - {name: A, projection: [[[M]], [[K]]]}
    - {name: B, projection: [[[K]], [[N]]]}
    - {name: Z, projection: [[[M]], [[N]]], read-write: True}
  instance: {M: 8, N: 8, K: 8}
mapping:
- {target: DRAM, type: temporal, factors: "M=1 N=1 K=1", permutation: MNK}
- {target: GLB, type: temporal, factors: "M=2 N=8 K=1", permutation: MNK}
- {target: GLB, type: spatial, factors: M=4 N=1 K=1, permutation: MNK, split: 1}
- {target: RF, type: temporal, factors: "M=1 N=1 K=8", permutation: KMN}
"""


def evaluated(folder: Path, attributes: str) -> Report:
    path = folder / "matmul.yaml"
    path.write_text(MATMUL.replace("ATTRIBUTES", attributes))
    (report,) = tw.evaluate([path], notation="timeloop").reports
    return report


@pytest.mark.parametrize(
    ("attributes", "cycles"),
    [
        ("bandwidth: 1", 1152),  # 576 reads at a half per cycle; 192 writes at a half are hidden
        ("read_bandwidth: 0.5, write_bandwidth: 0.5", 1152),
        ("shared_bandwidth: 0.5", 1536),
        ("bandwidth: 1, shared_bandwidth: 0.5", 1536),
        ("bandwidth: 1, read_bandwidth: 9", 384),
    ],
)
def test_the_old_bandwidth_is_halved_and_is_not_shared(tmp_path: Path, attributes: str, cycles: int) -> None:
    assert evaluated(tmp_path, attributes).cycles == cycles


def test_the_sample_has_no_shared_bandwidth() -> None:
    sample = Path(__file__).parents[4] / "examples/timeloop/sample.cfg"
    architecture = TimeloopAdapter().parse([sample]).architecture
    assert architecture is not None
    found = [
        (m.name, m.read_bandwidth_words_per_cycle, m.shared_bandwidth_words_per_cycle) for m in architecture.memories
    ]
    assert found == [("DRAM", 2.0, None), ("Buffer", None, None), ("Scratchpad", None, None)]


@pytest.mark.parametrize(
    "name", ["network_fill_latency", "network_drain_latency", "fill_latency", "drain_latency", "fill_drain_latency"]
)
def test_cycles_that_timeloop_adds_are_refused_with_the_next_step(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=f"{name} = 16 of GLB is not supported") as raised:
        evaluated(tmp_path, f"{name}: 16")
    assert raised.value.hint is not None and "add them to the printed cycles" in raised.value.hint
    assert evaluated(tmp_path, f"{name}: 0").cycles == 128


@pytest.mark.parametrize(
    ("attribute", "told"),
    [
        ("latency: 100ns", "latency_cycles of timing"),
        ("has_power_gating: True", "power_gated_at names the level"),
        ("read_bandwith: 1", "unknown attribute read_bandwith; did you mean 'read_bandwidth'?"),
    ],
)
def test_what_timeloop_does_not_read_is_told(tmp_path: Path, attribute: str, told: str) -> None:
    path = tmp_path / "matmul.yaml"
    path.write_text(MATMUL.replace("ATTRIBUTES", attribute))
    found = [text for text in TimeloopAdapter().parse([path]).warnings if told in text]
    assert len(found) == 1 and "ignored, as in Timeloop" in found[0]


@pytest.mark.parametrize(
    ("written", "told"),
    [('"True"', None), ('"false"', "0 data-spaces are read-write"), ("maybe", "read-write must be True or False")],
)
def test_truth_values_may_be_quoted(tmp_path: Path, written: str, told: str | None) -> None:
    path = tmp_path / "matmul.yaml"
    path.write_text(MATMUL.replace("ATTRIBUTES", "n_banks: 2").replace("True", written))
    if told is None:
        problem = TimeloopAdapter().parse([path]).problem
        assert problem is not None and problem.tensor("Z").is_output
        return
    with pytest.raises(InputError, match=told):
        TimeloopAdapter().parse([path])


CONTAINER = """
architecture:
  version: 0.4
  nodes:
  - !Container {name: system, attributes: {technology: "45nm", datawidth: 8, lanes: 2}}
  - !Component {name: DRAM, class: DRAM, attributes: {width: 32, datawidth: datawidth}}
  - !Component {name: Buffer, class: SRAM, attributes: {depth: 64, width: wide, wide: words * datawidth, words: lanes + 2}}
  - !Component {name: Spare, class: SRAM, enabled: "False", attributes: {depth: 64}}
  - !Container {name: PE, attributes: {datawidth: datawidth * 2}, spatial: {meshX: lanes}}
  - !Component {name: Registers, class: regfile, attributes: {depth: 4, width: datawidth}}
  - !Component {name: MAC, class: intmac}
"""


def test_attributes_of_the_containers_around_are_in_scope(tmp_path: Path) -> None:
    path = tmp_path / "arch.yaml"
    path.write_text(CONTAINER)
    arch = TimeloopAdapter().parse([path]).architecture
    assert arch is not None
    assert [(memory.name, memory.word_bits, memory.block_words) for memory in arch.memories] == [
        ("DRAM", 8, 4),
        ("Buffer", 8, 4),
        ("inter_PE_spatial", 16, 1),
        ("Registers", 16, 1),
    ]
    assert arch.compute_instances == 2 and arch.compute.word_bits == 16
    path.write_text(CONTAINER.replace("lanes: 2", "other: 2"))
    with pytest.raises(InputError, match="must be a whole number") as raised:
        TimeloopAdapter().parse([path])
    assert raised.value.hint is not None and "the containers around it" in raised.value.hint


COMPONENTS = """{{add_to_path('.')}}
# of the estimator
components:
- name: wires
  attributes: {width: {{ WIDTH }}}
{% if WIDE %}
- name: wide
{% endif %}
"""


def test_templates_of_sections_that_are_not_read_need_no_values(tmp_path: Path) -> None:
    (tmp_path / "arch.yaml").write_text(CONTAINER)
    beside = tmp_path / "components.yaml"
    beside.write_text(COMPONENTS)
    inputs = TimeloopAdapter().parse([tmp_path])
    assert inputs.architecture is not None
    assert f"{beside}: components (Accelergy's component descriptions) is ignored" in inputs.warnings
    for read in ("variables: {a: 1}\n", "{{include('other.yaml')}}\n", "{{ NAME }}: {a: 1}\n"):
        beside.write_text(COMPONENTS + read)
        with pytest.raises(InputError, match=r"needs a value|there is no file"):
            TimeloopAdapter().parse([tmp_path])


def mapper_file(folder: Path, metrics: str) -> Path:
    path = folder / "all.yaml"
    path.write_text(MATMUL.replace("ATTRIBUTES", "n_banks: 2") + f"mapper: {{algorithm: random, {metrics}}}\n")
    return path


@pytest.mark.parametrize(
    ("metrics", "objective", "told"),
    [
        ("timeout: 1", None, "search) is ignored"),
        (
            "optimization-metrics: [delay, energy]",
            "cycles",
            "objective: cycles, unless --objective is given; energy",
        ),
        ("optimization_metric: energy", "energy", "objective: energy"),
        ("optimization-metrics: [edp]", "edp", "objective: edp"),
        ("optimization-metrics: [last-level-accesses]", "last-level-accesses", "objective: last-level-accesses"),
    ],
)
def test_the_first_metric_of_a_mapper_is_the_objective(
    tmp_path: Path, metrics: str, objective: str | None, told: str
) -> None:
    inputs = TimeloopAdapter().parse([mapper_file(tmp_path, metrics)])
    assert inputs.objective == objective and inputs.mapping is not None
    assert any(told in text for text in inputs.warnings)


def test_a_second_mapper_with_another_metric_is_refused(tmp_path: Path) -> None:
    path, other = mapper_file(tmp_path, "optimization-metrics: [edp]"), tmp_path / "other.yaml"
    other.write_text("mapper: {optimization-metrics: [delay]}\n")
    with pytest.raises(InputError, match="optimization_metrics is repeated: cycles after edp"):
        TimeloopAdapter().parse([path, other])


def test_map_takes_the_objective_of_the_files_unless_one_is_given(tmp_path: Path) -> None:
    path = mapper_file(tmp_path, "optimization-metrics: [delay]")
    settings: dict[str, Any] = {
        "mapper": "timeloop_random",
        "evaluations": 20,
        "notation": "timeloop",
        "cache": False,
        "progress": False,
    }
    assert tw.map([path], [path], **settings).configuration.objective == CYCLES
    assert tw.map([path], [path], objective="energy", **settings).configuration.objective == ENERGY
    mapper_file(tmp_path, "optimization-metrics: [last-level-accesses]")
    with pytest.raises(InputError, match="minimise last-level-accesses, which is no objective") as raised:
        tw.map([path], [path], **settings)
    assert raised.value.hint == "give --objective with one of edp, ed2p, energy, cycles"
    mapper_file(tmp_path, "timeout: 1")
    assert tw.map([path], [path], **settings).configuration.objective == EDP
