"""Component classes: the figures that AccelForge's own tests expect of its Eyeriss and its Simba, and what is refused."""

from pathlib import Path

import pytest

import tilewright as tw
from support import fake_cacti
from tilewright.errors import InputError
from tilewright.plugin import AdapterSpec, InputSet, installed

EYERISS = """\
arch:
  extra_attributes_for_all_component_models: {tech_node: 65e-9}
  nodes:
  - !Memory {name: DRAM, component_class: LPDDR4, size: inf, tensors: {keep: All}}
  - !Memory
    name: GLB
    component_class: SmartBufferSRAM
    size: 1024 * 1024
    extra_attributes_for_component_model: {n_banks: 32}
    actions: [{name: read, bits_per_action: 64}, {name: write, bits_per_action: 64}]
    tensors: {keep: ~weight}
  - !Memory {name: Inputs, component_class: SmartBufferSRAM, size: 12 * 16, tensors: {keep: input}}
  - !Memory {name: Weights, component_class: SmartBufferSRAM, size: 192 * 16, tensors: {keep: weight}}
  - !Memory {name: Outputs, component_class: SmartBufferSRAM, size: 16 * 16, tensors: {keep: output}}
  - !Compute
    name: MAC
    component_class: IntMAC
    extra_attributes_for_component_model: {multiplier_width: 8, adder_width: 16}
"""
SIMBA = """\
arch:
  extra_attributes_for_all_component_models: {tech_node: 16e-9}
  nodes:
  - !Memory {name: DRAM, component_class: LPDDR4, size: inf, tensors: {keep: All}}
  - !Memory
    name: GLB
    component_class: SmartBufferSRAM
    size: 524288
    extra_attributes_for_component_model: {n_banks: 2, n_rw_ports: 2}
    tensors: {keep: input | output}
  - !Memory {name: Inputs, component_class: SmartBufferSRAM, size: 65536, tensors: {keep: input}}
  - !Memory
    name: Weights
    component_class: SmartBufferSRAM
    size: 262144
    extra_attributes_for_component_model: {n_banks: 8}
    tensors: {keep: weight}
  - !Memory {name: Outputs, component_class: SmartBufferSRAM, size: 24576, tensors: {keep: output}}
  - !Memory {name: Register, component_class: Dummy, size: 64, tensors: {keep: weight}}
  - !Compute
    name: MAC
    component_class: IntMAC
    extra_attributes_for_component_model: {multiplier_width: 8, adder_width: 16}
"""


def read(text: str, folder: Path, *others: Path) -> InputSet:
    file = folder / "arch.yaml"
    file.write_text(text, encoding="utf-8")
    with tw.estimators("cacti", cacti={"program": fake_cacti.program()}):
        return installed().make(AdapterSpec, "accelforge").parse([file, *others])


def per_bit(arch: tw.Architecture, name: str) -> tuple[float, float]:
    (memory,) = (each for each in arch.memories if each.name == name)
    bits = memory.block_words * memory.word_bits
    return memory.read_energy_pj / bits, memory.write_energy_pj / bits


ROWS = """\
  - !Container
    name: PE
    spatial: [{name: X, fanout: 4, reuse: weight, min_usage: 1}, {name: Y, fanout: 2, reuse: output, min_usage: 1}]
"""
WORKLOAD = """\
workload:
  iteration_space_shape: {m: 0 <= m < 8, k: 0 <= k < 8, n: 0 <= n < 8}
  bits_per_value: {All: 8}
  einsums:
  - name: Product
    tensor_accesses: [{name: A, projection: [m, k]}, {name: B, projection: [k, n]}, {name: Z, projection: [m, n], output: true}]
    renames: {input: A, weight: B, output: Z}
"""


@pytest.mark.parametrize("text", [EYERISS, SIMBA], ids=["eyeriss", "simba"])
def test_its_machines_are_searched(text: str, tmp_path: Path) -> None:
    workload = tmp_path / "workload.yaml"
    workload.write_text(WORKLOAD, encoding="utf-8")
    inputs = read(text.replace("  - !Memory {name: Inputs", f"{ROWS}  - !Memory {{name: Inputs"), tmp_path, workload)
    assert inputs.problem and inputs.architecture and inputs.constraints

    (layer,) = tw.map(
        inputs.problem,
        inputs.architecture,
        constraints=inputs.constraints,
        evaluations=200,
        cache=False,
        progress=False,
    ).layers

    assert layer.report and layer.report.busy_units == 8
    estimated = {memory.name: memory.read_energy_pj for memory in inputs.architecture.memories}
    assert all(estimated[name] > 0 for name in ("DRAM", "GLB", "Inputs", "Weights", "Outputs"))


@pytest.mark.parametrize(
    ("total_latency", "words_per_cycle", "warned"),
    [
        ("sum(a.n_calls for a in actions) / 32 / 200e6", 256, None),
        ("1e-9 * sum( a.n_calls for a in actions )", 40, None),
        ("5 + sum(a.n_calls for a in actions)", None, "total_latency of GLB is ignored: the throughputs apply"),
        ("max(a.n_calls for a in actions)", None, "total_latency of GLB is ignored: the throughputs apply"),
    ],
)
def test_a_latency_of_all_actions_is_a_bandwidth(
    total_latency: str, words_per_cycle: int | None, warned: str | None, tmp_path: Path
) -> None:
    clock = "\n    total_latency: sum(a.n_calls for a in actions) / 200e6"
    timed = EYERISS.replace("    size: 1024 * 1024", f"    size: 1024 * 1024\n    total_latency: {total_latency}")
    inputs = read(timed.replace("component_class: IntMAC", f"component_class: IntMAC{clock}"), tmp_path)
    assert inputs.architecture is not None

    assert inputs.architecture.clock_ghz == 0.2
    buffer = next(memory for memory in inputs.architecture.memories if memory.name == "GLB")
    assert buffer.read_bandwidth_words_per_cycle == buffer.write_bandwidth_words_per_cycle == words_per_cycle
    assert buffer.shared_bandwidth_words_per_cycle == words_per_cycle
    assert any(warning.startswith(warned or "leakage") for warning in inputs.warnings) == (warned is not None)

    unclocked = read(timed, tmp_path)
    assert unclocked.architecture is not None and unclocked.architecture.clock_ghz is None
    buffer = next(memory for memory in unclocked.architecture.memories if memory.name == "GLB")
    assert buffer.read_bandwidth_words_per_cycle is None
    assert any("total_latency of GLB is ignored" in warning for warning in unclocked.warnings)


@pytest.mark.parametrize(
    ("text", "expected", "mac"),
    [
        (
            EYERISS,
            {
                "DRAM": (8, 8, 0),
                "GLB": (90.5643 / 64, 91.2235 / 64, 6.85745e6),
                "Inputs": (0.0227339, 0.0315548, 387.366),
                "Weights": (0.040153, 0.0623557, 3534.39),
                "Outputs": (0.0262474, 0.0372873, 456.134),
            },
            (1.28138, 1174.80),
        ),
        (
            SIMBA,
            {
                "GLB": (0.0829488, 0.0903439, None),
                "Inputs": (0.00964559, 0.0206884, None),
                "Weights": (0.0668197, 0.0687309, None),
                "Outputs": (0.00707477, 0.013827, None),
                "Register": (0, 0, None),
            },
            (0.179244, 147.160),
        ),
    ],
    ids=["eyeriss", "simba"],
)
def test_the_figures_that_accelforge_expects(
    text: str, expected: dict[str, tuple[float, float, float | None]], mac: tuple[float, float], tmp_path: Path
) -> None:
    arch = read(text, tmp_path).architecture
    assert arch is not None

    for name, (reading, writing, area) in expected.items():
        assert per_bit(arch, name) == pytest.approx((reading, writing), rel=5e-6), name
        if area is not None:
            assert next(each.area_um2 for each in arch.memories if each.name == name) == pytest.approx(area, rel=2e-6)
    assert (arch.compute.energy_per_operation_pj, arch.compute.area_um2) == mac
    assert {each.estimates[0].estimator for each in arch.memories if each.name not in ("DRAM", "Register")} == {"cacti"}


def test_what_was_read_comes_back_with_its_estimates(tmp_path: Path) -> None:
    adapter = installed().make(AdapterSpec, "accelforge")
    arch = read(EYERISS, tmp_path).architecture
    (tmp_path / "again").mkdir()
    for name, text in adapter.render(InputSet(architecture=arch)).items():
        (tmp_path / "again" / name).write_text(text, encoding="utf-8")

    assert adapter.parse(sorted((tmp_path / "again").iterdir())).architecture == arch


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("component_class: LPDDR4", "component_class: Abacus", "DRAM: unknown class Abacus"),
        ("{tech_node: 65e-9}", "{}", "needs tech_node"),
        ("size: 12 * 16", "size: inf", "needs a size in bits"),
        ("n_banks: 32", "n_banks: 33", "GLB: no estimator supports this component.*33 banks"),
    ],
)
def test_what_cannot_be_estimated_is_told(old: str, new: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=told):
        read(EYERISS.replace(old, new), tmp_path)


def test_a_literal_wins(tmp_path: Path) -> None:
    given = "{name: Inputs, actions: [{name: read, energy: 3e-12, throughput: inf}], component_class"
    arch = read(EYERISS.replace("{name: Inputs, component_class", given), tmp_path).architecture
    assert arch is not None

    assert per_bit(arch, "Inputs")[0] == 3 and per_bit(arch, "Inputs")[1] == pytest.approx(0.0315548, rel=5e-6)
