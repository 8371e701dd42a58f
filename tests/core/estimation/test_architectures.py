"""Architectures with sizes: literals win, what was estimated says by whom, and every fault has its place."""

import copy
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright.errors import InputError
from tilewright.estimation.architectures import read_architecture
from tilewright.estimation.asking import Estimators
from tilewright.plugin import Registry
from tilewright.schema.document import parse_document

SIZED = """\
kind: architecture
name: sized
technology_nm: 45
clock_ghz: 0.2
clusters:
- name: outside
  memories:
  - {name: DRAM, technology: dram, block_words: 4, component: {name: dram, attributes: {kind: LPDDR4}}}
- name: chip
  memories:
  - {name: GLB, capacity_words: 32768, block_words: 4, component: sram}
  fanout: {size: 16}
- name: PE
  memories:
  - {name: RF, technology: register, capacity_words: 16, component: register, area_um2: 2500}
compute: {word_bits: 8, component: mac}
"""


def loaded(text: str = SIZED) -> tw.Architecture:
    return read_architecture(parse_document(text, source="sized.yaml"))


def test_what_is_left_out_is_estimated_and_says_by_whom() -> None:
    dram, buffer, registers = loaded().memories

    assert (dram.read_energy_pj, dram.area_um2) == (512, 0)
    assert (buffer.read_energy_pj, buffer.write_energy_pj, buffer.area_um2) == (25.869, 19.649, 209050)
    assert buffer.leakage_pj_per_cycle == pytest.approx(1.6703e-6 * 1e3 / 0.2, rel=1e-5)
    (told,) = buffer.estimates
    assert told.estimator == "tables" and "CACTI" in told.source and told.cell == "itrs-lstp, 6T"
    assert told.figures == ("read_energy_pj", "write_energy_pj", "area_um2", "leakage_pj_per_cycle")
    assert registers.read_energy_pj == pytest.approx(0.1657, rel=1e-3)


def test_the_area_is_that_of_all_instances() -> None:
    arch = loaded()

    assert arch.compute.area_um2 is not None
    assert arch.area_um2 == pytest.approx(209050 + 16 * (2500 + arch.compute.area_um2))
    assert arch.replace({"RF.area_um2": None}).area_um2 is None


def test_literals_win_and_nobody_is_asked_for_them() -> None:
    text = SIZED.replace("component: sram", "component: sram, read_energy_pj: 7, leakage_pj_per_cycle: 0")
    buffer = loaded(text).memories[1]
    assert (buffer.read_energy_pj, buffer.write_energy_pj, buffer.leakage_pj_per_cycle) == (7, 19.649, 0)
    assert buffer.estimates[0].figures == ("write_energy_pj", "area_um2")

    whole = SIZED.replace("component: sram", "component: abacus, read_energy_pj: 7, write_energy_pj: 8")
    assert (loaded(whole).memories[1].estimates, loaded(whole).memories[1].area_um2) == ((), None)


def test_a_file_with_literals_is_as_it_was() -> None:
    eyeriss = tw.load("eyeriss")

    assert read_architecture(parse_document(eyeriss.to_yaml())) == eyeriss


def test_what_was_estimated_survives_files_where_nobody_estimates() -> None:
    arch, nobody = loaded(), Estimators(registry=Registry())

    assert tw.Architecture.from_yaml(arch.to_yaml()) == arch
    assert read_architecture(parse_document(arch.to_yaml()), nobody) == arch
    with pytest.raises(InputError, match=r"sized.yaml:8:\d+: DRAM: no estimator supports this component"):
        read_architecture(parse_document(SIZED, source="sized.yaml"), nobody)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("component: sram", "component: srom", r"sized.yaml:11:67: GLB: (?s:.*)tables: does not know 'srom'"),
        ("capacity_words: 32768", "capacity_words: 10", "a size of 20 bytes"),
        ("technology_nm: 45\n", "", r"sized.yaml:7:\d+: component dram needs a technology node"),
        ("component: sram", "component: {name: sram, attributes: {width_bits: 16}}", "moves 64 bits"),
        ("component: sram", "component: {name: sram, attributes: {bank: 4}}", "did you mean 'banks'"),
        ("component: sram", "component: {nam: sram}", "unknown key 'nam'; did you mean 'name'"),
        ("component: sram", "component: {name: sram, estimator: table}", "did you mean 'tables'"),
        ("capacity_words: 32768, block_words", "capacity_words: 32768, block_word", "unknown key 'block_word'"),
        ("component: mac}", "}", "'energy_per_operation_pj' is missing"),
    ],
)
def test_faults_are_told_with_their_place(old: str, new: str, told: str) -> None:
    text = SIZED.replace(old, new)
    assert text != SIZED
    with pytest.raises(tw.TilewrightError, match=told):
        loaded(text)


def test_sizes_do_not_change_below_what_was_estimated_for_them() -> None:
    arch = loaded()
    with pytest.raises(InputError, match="read_energy_pj, write_energy_pj, area_um2, .* of GLB were estimated"):
        arch.replace({"GLB.capacity_words": 65536})
    with pytest.raises(InputError, match="energy_per_operation_pj, area_um2 of compute were estimated"):
        arch.replace({"compute.word_bits": 16})

    assert arch.replace({"GLB.multiple_buffering": 2, "clock_ghz": 0.2}).memories[1].usable_words == 16384


def test_a_macro_is_shared_by_its_instances() -> None:
    text = SIZED.replace(
        "capacity_words: 32768, block_words: 4", "capacity_words: 8192, block_words: 1, instances_per_macro: 4"
    )
    shared, alone = loaded(text).memories[1], loaded().memories[1]

    assert shared.read_energy_pj == pytest.approx(alone.read_energy_pj / 4, rel=1e-5)
    assert alone.area_um2 is not None and shared.area_um2 == pytest.approx(alone.area_um2 / 4)


def test_the_front_door_and_the_command_line_read_it(tmp_path: Path) -> None:
    file = tmp_path / "sized.yaml"
    file.write_text(SIZED, encoding="utf-8")
    data: dict[str, Any] = copy.deepcopy(parse_document(SIZED).data)

    assert tw.load(str(file)) == tw.load(data, "architecture") == loaded()
    assert data == parse_document(SIZED).data
    report = tw.map("nk,km->nm; n=16 k=16 m=16", arch=file, evaluations=50, progress=False)
    assert "GOPS/W" in str(report) and "mm2" in str(report)


def test_the_estimators_that_are_named_are_asked() -> None:
    with tw.estimators("tables"):
        assert loaded().memories[0].estimates[0].estimator == "tables"
