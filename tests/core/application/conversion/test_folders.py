"""A folder whose files are one input has one workload; a folder of layers has several layers."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

import tilewright as tw
from support.timeloop_inputs import SHAPE
from tilewright.errors import InputError

EXAMPLES = Path(__file__).parents[4] / "examples"
ARCH = """\
architecture:
  version: 0.3
  subtree:
  - name: chip
    local:
    - {name: DRAM, class: DRAM, attributes: {word-bits: 8, width: 8}}
    - {name: Buffer, class: SRAM, attributes: {word-bits: 8, width: 8, entries: 512}}
    - {name: mac, class: intmac, attributes: {datawidth: 8}}
"""
RULES = "constraints:\n- {target: Buffer, type: temporal, permutation: MNK}\n"
MAPPER = "mapper: {algorithm: random_pruned, optimization-metrics: [energy]}\n"
COMPONENTS = "compound_components:\n  version: 0.3\n  classes: []\n"
MAPPING = "mapping:\n- {target: DRAM, type: temporal, factors: M=8 N=4 K=6}\n- {target: Buffer, type: temporal}\n"
PARTS = {
    "arch": ARCH,
    "problem": SHAPE.replace("SIZE", "6"),
    "rules": RULES,
    "mapper": MAPPER,
    "components": COMPONENTS,
    "mapping": MAPPING,
}


def folder_of(path: Path, *names: str, **texts: str) -> Path:
    """Return a folder with these parts, and with further files."""
    path.mkdir()
    for name, text in {name: PARTS[name] for name in names}.items() | texts.items():
        (path / f"{name}.yaml").write_text(text)
    return path


def macs(work: object, arch: object, **words: object) -> tuple[int, int | None]:
    """Return the number of layers that a random search maps, and their operations."""
    report = tw.map(work, arch, mapper="random", evaluations=5, cache=False, **words)  # type: ignore[arg-type]
    return sum(layer.count for layer in report.layers), report.macs


@pytest.mark.parametrize(
    "others", [("components",), ("rules", "mapper"), ("mapping", "components"), ("mapping", "rules")]
)
def test_files_of_one_input_are_one_layer(tmp_path: Path, others: tuple[str, ...]) -> None:
    folder = folder_of(tmp_path / "input", "arch", "problem", *others)
    (folder / "README.md").write_text("No layer.\n")
    apart = [folder / f"{name}.yaml" for name in ("arch", *others)]
    assert macs(folder, folder) == macs(folder / "problem.yaml", apart) == (1, 8 * 4 * 6)
    assert macs(folder / "problem.yaml", folder) == macs(folder, apart) == (1, 8 * 4 * 6)


def test_the_best_of_a_folder_is_the_best_of_its_files(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "input", "arch", "problem", "rules", "components")
    files = [folder / f"{name}.yaml" for name in ("arch", "rules", "components")]
    one, other = (
        tw.map(work, arch, mapper="exhaustive", cache=False)
        for work, arch in ((folder, folder), (folder / "problem.yaml", files))
    )
    assert one.layers[0].report is not None and one.layers[0].report == other.layers[0].report
    assert one.configuration.constraints == other.configuration.constraints


@pytest.mark.parametrize("call", ["compare", "explore", "front", "fuse_network", "space"])
def test_all_functions_see_one_layer(tmp_path: Path, call: str) -> None:
    folder = folder_of(tmp_path / "input", "arch", "problem", "components")
    words = {"evaluations": 5, "cache": False}
    if call == "compare":
        assert len(tw.compare(folder, folder, mappers="random", **words).rows()) == 1  # type: ignore[arg-type]
    elif call == "explore":
        vary = {"Buffer.capacity_words": [256, 512]}
        one, other = (
            tw.explore(work, arch=arch, vary=vary, mapper="random", **words)  # type: ignore[arg-type]
            for work, arch in ((folder, folder), (folder / "problem.yaml", folder / "arch.yaml"))
        )
        assert one.rows() == other.rows()
    elif call == "front":
        (front,) = tw.front(folder, folder, points=2, mapper="random", **words).fronts  # type: ignore[arg-type]
        assert front.distinct.count == 1
    elif call == "fuse_network":
        assert len(tw.fuse_network(folder, folder, mapper="random", **words).workload.layers) == 1  # type: ignore[arg-type]
    else:
        assert tw.space(folder, folder).size > 0


NOTATIONS = ("timeloop", "timeloop_v4", "accelforge", "zigzag", "union", "tilewright", "loopnest")


@pytest.mark.parametrize("notation", NOTATIONS)
def test_folders_of_each_notation_are_one_workload(tmp_path: Path, notation: str) -> None:
    folder = tmp_path / notation
    files = [EXAMPLES / "timeloop" / f"{name}.yaml" for name in ("arch", "ERT", "problem", "map")]
    tw.convert(files, target=notation, lossy=True).save(folder)
    alone = [tw.load(folder, "workload"), tw.load(folder, "architecture")]
    report = tw.map(folder, folder, mapper="random", evaluations=5, cache=False)
    assert [layer.count for layer in report.layers] == [1] and report.macs == 16 * 8 * 28 * 3
    assert report.configuration.architecture == alone[1]
    assert tw.map(folder, "eyeriss", mapper="random", evaluations=5, cache=False).macs == report.macs
    if notation != "zigzag":  # which cannot express this mapping
        assert tw.evaluate(folder).reports[0].energy_pj == pytest.approx(tw.evaluate(files).reports[0].energy_pj)


def test_folders_of_several_layers_in_a_file(tmp_path: Path) -> None:
    """The mapping of AccelForge's example is of one layer; without it, both are mapped."""
    assert macs(EXAMPLES / "zigzag", EXAMPLES / "zigzag") == (2, 14_336)
    assert macs(EXAMPLES / "maestro", EXAMPLES / "maestro") == (2, 163_072)
    with pytest.raises(InputError, match="no variable n0") as raised:
        macs(EXAMPLES / "accelforge", EXAMPLES / "accelforge")
    given = f"{EXAMPLES / 'accelforge' / 'workload.yaml'} --arch {EXAMPLES / 'accelforge' / 'arch.yaml'}"
    assert f"tilewright map {given}" in str(raised.value.hint)
    folder = tmp_path / "accelforge"
    shutil.copytree(EXAMPLES / "accelforge", folder)
    (folder / "mapping.yaml").unlink()
    assert macs(folder, folder) == (2, 6_144)
    assert len(tw.load(folder, "architecture").memories) > 1  # its folder has several layers


def test_files_without_a_layer_are_told_and_not_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = folder_of(tmp_path / "input", "arch", "problem", "mapper", "mapping")
    with caplog.at_level(logging.WARNING, "tilewright"):
        assert tw.load(folder, "problem").macs == 8 * 4 * 6
    assert "no layer is in arch.yaml, mapper.yaml, mapping.yaml; --arch reads" in caplog.text


def test_layers_of_equal_sizes_count_as_often(tmp_path: Path) -> None:
    layers = folder_of(tmp_path / "layers", conv1=PARTS["problem"], conv2=PARTS["problem"], conv10=PARTS["problem"])
    hardware = folder_of(tmp_path / "hardware", "arch", "rules")
    assert macs(layers, hardware) == (3, 3 * 8 * 4 * 6)
    assert [layer.name for layer in tw.load(layers, "workload").layers] == ["conv1", "conv2", "conv10"]
    (layers / "hardware.yaml").write_text(ARCH)
    assert macs(layers, layers / "hardware.yaml") == (3, 3 * 8 * 4 * 6)
    with pytest.raises(InputError, match="has layers in 3 files .conv1.yaml, conv2.yaml, conv10.yaml.") as raised:
        macs(layers, layers)
    assert f"tilewright map {layers} --arch {layers / 'hardware.yaml'}" in str(raised.value.hint)


def test_a_named_file_without_a_layer_is_refused(tmp_path: Path) -> None:
    """As `map FOLDER/*.yaml --arch FOLDER` names them."""
    folder = folder_of(tmp_path / "input", "arch", "problem", "mapping")
    for name in ("arch", "mapping"):
        with pytest.raises(InputError, match=f"{name}.yaml: the file has no problem; the files after --arch") as raised:
            macs([folder / f"{name}.yaml", folder / "problem.yaml"], folder)
        assert f"leave {folder / name}.yaml out" in str(raised.value.hint)


@pytest.mark.parametrize(
    ("texts", "said", "hint"),
    [
        ({"whole": ARCH + PARTS["problem"], "problem": PARTS["problem"]}, "may be the same layer", "tilewright map"),
        ({"layers": "- a\n", "a": PARTS["problem"]}, "lists layers whose files are in", "give the list"),
        ({"arch": ARCH, "rules": RULES}, "no file has a problem", "by --arch"),
        ({"a": PARTS["problem"], "b": "problem: {shape: 3}\n"}, "b.yaml", "name those with layers: tilewright map"),
        ({"a": PARTS["problem"], "b": PARTS["problem"], "mapping": MAPPING}, "mapping.yaml", "name those with layers"),
        (
            {"arch": ARCH, "old": ARCH.replace("512", "256"), "a": PARTS["problem"], "mapping": MAPPING},
            "is not one input: .*old.yaml.*architecture is repeated.*mapping.yaml.*needs its architecture",
            "name those with layers",
        ),
    ],
)
def test_an_unclear_folder_is_refused(tmp_path: Path, texts: dict[str, str], said: str, hint: str) -> None:
    folder = folder_of(tmp_path / "input", **texts)
    with pytest.raises(InputError, match=said) as raised:
        tw.load(folder, "workload")
    assert hint in str(raised.value.hint)


def test_networks_in_a_folder_are_told_to_be_given_alone(tmp_path: Path) -> None:
    (tmp_path / "net.csv").write_text("Layer,M,N,K,\nGEMM0,4,8,16,\n")
    (tmp_path / "scale.cfg").write_text("[general]\nrun_name = x\n")
    with pytest.raises(InputError, match=r"net.csv is a network, which only frontends read") as raised:
        macs(tmp_path, "eyeriss")
    assert f"tilewright map {tmp_path / 'net.csv'} --arch FILE" in str(raised.value.hint)


def test_a_folder_needs_a_kind_and_is_no_constraints(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "input", "arch", "problem")
    with pytest.raises(InputError, match="may have several parts"):
        tw.load(folder)
    with pytest.raises(InputError, match="is a folder; expected a name or a file of constraints"):
        macs(folder, folder, constraints=folder)
