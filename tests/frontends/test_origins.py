"""Origins of layers: names and lines that frontends read stay, whatever the layers are called."""

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

import tilewright as tw
from support import exported
from support.onnx_models import model_of, save
from tilewright.errors import UnknownNameError
from tilewright.schema.mapped import MappedProblem
from tilewright_frontends.mlir.module import read_workload
from tilewright_frontends.mlir.parse import parse
from tilewright_frontends.pt2 import read_file

MLIR = """module {
  func.func @main(%a: tensor<4x16xf32>, %b: tensor<16x8xf32>) -> tensor<4x8xf32> {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    %1 = stablehlo.tanh %0 : tensor<4x8xf32>
    return %1 : tensor<4x8xf32>
  }
}
"""


def network(folder: Path, *names: str) -> str:
    """Products in a chain, with these names of nodes, and a relu."""
    values = ["x", *(f"v{number}" for number in range(len(names)))]
    nodes = [
        helper.make_node("MatMul", [values[number], "w"], [values[number + 1]], name)
        for number, name in enumerate(names)
    ]
    nodes.append(helper.make_node("Relu", [values[-1]], ["y"], "/m/act"))
    return save(model_of(nodes, {"x": (4, 8)}, "y", constants={"w": np.zeros((8, 8), np.float32)}), folder)


def test_nodes_of_onnx_keep_their_names(tmp_path: Path) -> None:
    file = network(tmp_path, "/m/fc", "_m_fc", "m_fc", "m_fc", "")
    workload = tw.load(file, "workload")
    names = {layer.name: (layer.origin.node, layer.origin.output) for layer in workload.layers if layer.origin}
    assert names == {
        "m_fc_2": ("/m/fc", "v0"),
        "m_fc_3": ("_m_fc", "v1"),
        "m_fc": ("m_fc", "v2"),  # a valid name is nobody else's
        "m_fc_4": ("m_fc", "v3"),
        "MatMul_v4": (None, "v4"),
    }
    (relu,) = workload.unmapped
    assert relu.origin is not None and relu.origin.node == "/m/act"
    loaded = {name: tw.load(f"{file}/{name}", "workload").layers[0].name for name in ("/m/fc", "m/fc", "_m_fc", "v3")}
    assert loaded == {"/m/fc": "m_fc_2", "m/fc": "m_fc_2", "_m_fc": "m_fc_3", "v3": "m_fc_4"}
    with pytest.raises(UnknownNameError, match="has no layer '/m/act'"):
        tw.load(f"{file}//m/act", "workload")


def test_results_of_map_have_the_origins(tmp_path: Path) -> None:
    file = network(tmp_path, "/m/fc")
    report = tw.map(
        file, "eyeriss", mapper="random", evaluations=20, cache=False, progress=False, folder=tmp_path / "out"
    )
    origin = {"node": "/m/fc", "output": "v0", "file": Path(file).name}
    assert report.data()["layers"][0]["origins"] == {"m_fc": origin}
    assert report.rows()[0]["origin"] == f"/m/fc, output v0, {Path(file).name}"
    (mapping,) = (tmp_path / "out").glob("0*.yaml")
    assert {name: each.node for name, each in MappedProblem.from_file(mapping).origins.items()} == {"m_fc": "/m/fc"}
    assert "/m/fc, output v0" in (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "/m/fc" in str(report)


def test_operations_of_mlir_keep_their_lines() -> None:
    found = read_workload(parse(MLIR, "folder/net.mlir"), "net", "folder/net.mlir", None, {})
    (layer,) = found.layers
    assert str(layer.origin) == "net.mlir:3:10"
    assert [str(each.origin) for each in found.unmapped] == ["net.mlir:4:10"]
    named = MLIR.replace("tensor<4x8xf32>\n    %1", 'tensor<4x8xf32> loc("/m/fc")\n    %1')
    (layer,) = read_workload(parse(named, "net.mlir"), "net", "net.mlir", None, {}).layers
    assert layer.origin is not None and (layer.origin.node, layer.origin.line) == ("/m/fc", 3)


def test_nodes_of_exported_programs_keep_module_and_result(tmp_path: Path) -> None:
    shapes = {"x": (4, 8), "w": (8, 8), "a": (4, 8), "b": (4, 8)}
    nodes = [
        exported.node("aten.mm.default", "a", "L['self'].blocks.0.fc 1", self="%x", mat2="%w"),
        exported.node("aten.mm.default", "b", self="%a", mat2="%w"),
    ]
    path = Path(exported.save(exported.program(["x"], shapes, nodes), tmp_path / "net.pt2"))
    found = read_file(path, "net.pt2", None, {})
    assert [(layer.name, str(layer.origin)) for layer in found.layers] == [
        ("blocks.0.fc_1", "blocks.0.fc 1, output a, net.pt2"), ("b", "output b, net.pt2")
    ]  # fmt: skip


def test_numbered_operators_are_known_by_their_weights() -> None:
    network = tw.load("resnet50", "workload")
    origins = {layer.name: layer.origin for layer in network.layers}
    first = origins["n4"]
    picked = network.only("gpu_0/res2_0_branch2a_w_0")

    assert first is not None and first.weights == "gpu_0/res2_0_branch2a_w_0" and first.beside("n4") == first.weights
    assert picked.layers[0].problem == network.layer("n4").problem
    assert tw.load("resnet50/gpu_0/res2_0_branch2a_w_0", "problem").name == "n4"
    assert all(origin is not None and origin.weights for origin in origins.values())
    assert first.beside("other") == "n4" and "weights gpu_0/res2_0_branch2a_w_0" in str(first)
