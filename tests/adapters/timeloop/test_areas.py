"""Accelergy's area reference table: read next to the energy table, written from known areas, and read back."""

import math
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.errors import InputError
from tilewright.plugin import AdapterSpec, InputSet, installed

ART = """\
ART:
  version: '0.4'
  tables:
  - {name: system.DRAM, area: 0}
  - {name: 'system.chip.GLB[1..1]', area: 209046}
  - {name: 'system.chip.PE[1..16].MAC[1..1]', area: 783.2}
"""
ARCH = """\
architecture:
  version: 0.3
  subtree:
  - name: system
    local:
    - {name: DRAM, class: DRAM, attributes: {word-bits: 16, width: 64, block-size: 4}}
    - {name: GLB, class: SRAM, attributes: {word-bits: 16, depth: 8192, width: 64, block-size: 4}}
    - {name: 'MAC[0..15]', class: intmac, attributes: {word-bits: 16}}
"""
ERT = """\
ERT:
  version: '0.4'
  tables:
  - {name: system.DRAM, actions: [{name: read, energy: 512}, {name: write, energy: 512}]}
  - {name: system.GLB, actions: [{name: read, energy: 25.87}, {name: write, energy: 19.65}]}
  - {name: 'system.MAC[0..15]', actions: [{name: compute, energy: 1.03}]}
"""


def read(folder: Path, **texts: str) -> tw.Architecture:
    files = []
    for name, text in texts.items():
        files.append(folder / f"{name}.yaml")
        files[-1].write_text(text, encoding="utf-8")
    arch = installed().make(AdapterSpec, "timeloop").parse(files).architecture
    assert arch is not None
    return arch


def test_areas_are_read_by_the_last_part_of_their_names(tmp_path: Path) -> None:
    arch = read(tmp_path, arch=ARCH, ert=ERT, art=ART)

    assert [memory.area_um2 for memory in arch.memories] == [0, 209046] and arch.compute.area_um2 == 783.2
    assert arch.area_um2 == pytest.approx(209046 + 16 * 783.2)


def test_a_table_of_zeros_says_nothing(tmp_path: Path) -> None:
    zeros = ART.replace("209046", "0").replace("783.2", "0")

    assert read(tmp_path, arch=ARCH, ert=ERT, art=zeros) == read(tmp_path, arch=ARCH, ert=ERT)


@pytest.mark.parametrize("name", ["timeloop", "timeloop_v4"])
def test_areas_are_written_and_come_back(name: str, tmp_path: Path) -> None:
    arch, adapter = read(tmp_path, arch=ARCH, ert=ERT, art=ART), installed().make(AdapterSpec, name)
    files = adapter.render(InputSet(architecture=arch))
    again = tmp_path / "again"
    again.mkdir()
    for file, text in files.items():
        if file != "tilewright.yaml":
            (again / file).write_text(text, encoding="utf-8")
    copy = adapter.parse(sorted(again.iterdir())).architecture

    assert "area: 209046" in files["ART.yaml"] and copy is not None
    areas = [part.area_um2 for part in copy.parts if part.area_um2 is not None]  # v4 has levels that only unroll
    assert areas == [part.area_um2 for part in arch.parts] and copy.area_um2 == arch.area_um2


def test_an_odd_area_is_told_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"art.yaml:5:\d+: .*area"):
        read(tmp_path, arch=ARCH, ert=ERT, art=ART.replace("209046", "-1"))


WIRE = "  - {name: system.wire, actions: [{name: transfer_random, energy: 0.24}]}\n"


def test_wires_are_as_long_as_the_side_of_what_is_inside(tmp_path: Path) -> None:
    inputs = read(tmp_path, arch=ARCH, ert=ERT + WIRE, art=ART)
    hops = [cluster.fanout.network.energy_per_hop_pj for cluster in inputs.clusters]
    sides = [math.sqrt(209046 + 16 * 783.2) / 1000, math.sqrt(783.2) / 1000]  # in mm

    assert hops == pytest.approx([16 * 0.24 * side for side in sides])
    own = ARCH.replace("depth: 8192", "depth: 8192, energy-per-hop: 0.5")
    hop = read(tmp_path, arch=own, ert=ERT + WIRE, art=ART).clusters[1].fanout.network.energy_per_hop_pj
    assert hop == 0.5
    free = read(tmp_path, arch=ARCH, ert=ERT + WIRE.replace("0.24", "0"), art=ART)
    assert free == read(tmp_path, arch=ARCH, ert=ERT, art=ART)


def test_a_stated_width_is_the_length_of_a_hop(tmp_path: Path) -> None:
    wide = ARCH.replace("block-size: 4}", "block-size: 4, tile_width: 250, network_word_bits: 8}")
    hops = [cluster.fanout.network.energy_per_hop_pj for cluster in read(tmp_path, arch=wide, ert=ERT + WIRE).clusters]

    assert hops == pytest.approx([8 * 0.24 * 0.25] * 2)


def test_components_may_state_their_areas_and_the_table_counts_first(tmp_path: Path) -> None:
    stated = ARCH.replace("depth: 8192", "depth: 8192, cluster_area: 1000").replace(
        "word-bits: 16}}\n", "word-bits: 16, area: 7}}\n"
    )
    arch = read(tmp_path, arch=stated, ert=ERT)

    assert [memory.area_um2 for memory in arch.memories] == [None, 1000] and arch.compute.area_um2 == 7
    assert read(tmp_path, arch=stated, ert=ERT, art=ART) == read(tmp_path, arch=ARCH, ert=ERT, art=ART)


def test_wires_without_areas_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="MAC has no area") as raised:
        read(tmp_path, arch=ARCH, ert=ERT + WIRE)
    assert raised.value.location is not None and raised.value.hint is not None and "ART" in raised.value.hint
