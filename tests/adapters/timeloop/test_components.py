"""Files without an energy table: component classes are queried only from the estimators that the user names."""

from pathlib import Path

import pytest

import tilewright as tw
from support import fake_cacti
from tilewright.errors import InputError
from tilewright.plugin import AdapterSpec, InputSet, installed

ARCH = """\
architecture:
  version: 0.4
  nodes:
  - !Container {name: system, attributes: {technology: "45nm"}}
  - !Component {name: DRAM, class: DRAM, attributes: {type: LPDDR4, width: 64, datawidth: 8}}
  - !Component {name: buffer, class: smartbuffer_SRAM, attributes: {depth: 2048, width: 256, datawidth: 8}}
  - !Component {name: plain, class: SRAM, attributes: {depth: 2048, width: 256, datawidth: 8}}
  - !Component {name: registers, class: regfile, attributes: {depth: 16, width: 8, datawidth: 8}}
  - !Component {name: mac, class: intmac, attributes: {multiplier_width: 8, adder_width: 16, datawidth: 8}}
"""


def read(text: str, folder: Path, *named: str) -> InputSet:
    file = folder / "arch.yaml"
    file.write_text(text, encoding="utf-8")
    options = {"cacti": {"program": fake_cacti.program()}} if "cacti" in named else {}
    with tw.estimators(*named, **options):
        return installed().make(AdapterSpec, "timeloop").parse([file])


def test_the_exercises_buffer_by_cacti(tmp_path: Path) -> None:
    inputs = read(ARCH, tmp_path, "cacti")
    arch = inputs.architecture
    assert arch is not None
    dram, buffer, plain, registers = (arch.memories[at] for at in range(4))

    assert dram.read_energy_pj == 512 and dram.block_words == 8
    assert (plain.read_energy_pj, plain.write_energy_pj, plain.area_um2) == (51.7987, 66.2387, 198942)
    assert plain.read_energy_pj < buffer.read_energy_pj < 1.02 * plain.read_energy_pj
    assert [part.estimates[0].estimator for part in arch.parts] == ["tables", "cacti", "cacti", "tables", "tables"]
    assert arch.compute.energy_per_operation_pj == pytest.approx(1.033, rel=1e-3) and arch.area_um2
    assert any("DRAM, registers, mac are estimates of tables" in warning for warning in inputs.warnings)


def test_without_a_name_timeloops_own_table_estimates(tmp_path: Path) -> None:
    inputs = read(ARCH, tmp_path)

    assert inputs.architecture is not None and inputs.architecture.area_um2 is None
    assert any("Timeloop's estimates" in warning for warning in inputs.warnings)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("smartbuffer_SRAM", "storage", "unknown class storage for estimators"),
        ('technology: "45nm"', "x: 1", "has no technology node"),
        ("depth: 2048", "depth: 2", "buffer: no estimator supports this component"),
        ("type: LPDDR4", "type: DDR9", "kind is 'DDR9'; known: LPDDR4"),
    ],
)
def test_what_nobody_can_estimate_is_told(old: str, new: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=told):
        read(ARCH.replace(old, new), tmp_path, "tables")
