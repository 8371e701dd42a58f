"""Frontends that state the same words have the same fused figures; words that they cannot tell are unknown."""

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from support.exported import node, program
from support.exported import save as save_program
from support.fused_networks import prepared
from support.onnx_models import model_of, save
from tilewright.schema.workload import Workload
from tilewright_frontends import OnnxOptions
from tilewright_frontends.mlir.module import read_workload
from tilewright_frontends.mlir.parse import parse
from tilewright_frontends.onnx import OnnxFrontend
from tilewright_frontends.pt2 import read_file

ROWS, SIZES = 4, (8, 6, 10, 4)
MEMORY = {"name": "Buffer", "read_energy_pj": 1, "write_energy_pj": 1, "capacity_words": 128}
ARCH = {
    "name": "small",
    "clusters": [
        {"name": "DRAM", "memories": [{"name": "DRAM", "read_energy_pj": 100, "write_energy_pj": 100}]},
        {"name": "Buffer", "memories": [MEMORY]},
    ],
    "compute": {"energy_per_operation_pj": 0.5},
}
VALUES, WEIGHTS = "xabc", "uvw"


def onnx(folder: Path) -> Workload:
    nodes = [helper.make_node("MatMul", [VALUES[at], WEIGHTS[at]], [VALUES[at + 1]], VALUES[at + 1]) for at in range(3)]
    weights = {WEIGHTS[at]: np.zeros(SIZES[at : at + 2], np.float32) for at in range(3)}
    model = model_of(nodes, {"x": (ROWS, SIZES[0])}, "c", constants=weights)
    return OnnxFrontend(OnnxOptions()).load(save(model, folder))


def pt2(folder: Path, between: str = "") -> Workload:
    shapes = {VALUES[at]: (ROWS, SIZES[at]) for at in range(4)} | {WEIGHTS[at]: SIZES[at : at + 2] for at in range(3)}
    nodes = [node("aten.mm.default", VALUES[at + 1], self=f"%{VALUES[at]}", mat2=f"%{WEIGHTS[at]}") for at in range(3)]
    if between:
        nodes[1] = node("aten.mm.default", "b", self="%m", mat2="%v")
        nodes.insert(1, node(f"aten.{between}.default", "m", self="%a"))
        shapes["m"] = (ROWS, SIZES[1])
    data = program(["x"], shapes, nodes)
    data["graph_module"]["graph"]["outputs"] = [{"as_tensor": {"name": "c"}}]
    return read_file(Path(save_program(data, folder / "small.pt2")), "small.pt2", None, {})


def kind(*sizes: int) -> str:
    return f"tensor<{'x'.join(map(str, sizes))}xf32>"


def mlir(lines: list[str]) -> Workload:
    arguments = [f"%x: {kind(ROWS, SIZES[0])}", *(f"%{WEIGHTS[at]}: {kind(*SIZES[at : at + 2])}" for at in range(3))]
    arguments += [f"%z{at}: {kind(ROWS, SIZES[at + 1])}" for at in range(3)]
    result = kind(ROWS, SIZES[3])
    body = [f"func.func @main({', '.join(arguments)}) -> {result} {{", *lines, f"return %c : {result}", "}"]
    return read_workload(parse("\n".join(body), "small.mlir"), "small", "small.mlir", None, {})


def stablehlo(at: int, value: str = "") -> str:
    types = f"({kind(ROWS, SIZES[at])}, {kind(*SIZES[at : at + 2])}) -> {kind(ROWS, SIZES[at + 1])}"
    read = f"%{value or VALUES[at]}, %{WEIGHTS[at]}"
    return f"%{VALUES[at + 1]} = stablehlo.dot_general {read}, contracting_dims = [1] x [0] : {types}"


def linalg(at: int, value: str = "", first: str = "") -> str:
    read = f"ins(%{value or VALUES[at]}, %{WEIGHTS[at]} : {kind(ROWS, SIZES[at])}, {kind(*SIZES[at : at + 2])})"
    result = kind(ROWS, SIZES[at + 1])
    return f"%{VALUES[at + 1]} = linalg.matmul {read} outs(%{first or f'z{at}'} : {result}) -> {result}"


def tensorflow(at: int, turned: str = "false") -> str:
    types = f"({kind(ROWS, SIZES[at])}, {kind(*SIZES[at : at + 2])}) -> {kind(ROWS, SIZES[at + 1])}"
    return f'%{VALUES[at + 1]} = "tf.MatMul"(%{VALUES[at]}, %{WEIGHTS[at]}) {{transpose_a = {turned}}} : {types}'


def cuts(workload: Workload) -> list[str | None]:
    return [read.cut for _, _, read in workload.edges]


def test_a_chain_of_three_products_has_the_same_fused_figures_in_every_notation(tmp_path: Path) -> None:
    known = onnx(tmp_path)
    expected = prepared(known, ARCH, "energy").place()
    assert len(expected.residents) == 2
    modules = [mlir([line(at) for at in range(3)]) for line in (stablehlo, linalg, tensorflow)]
    for found in (pt2(tmp_path), *modules):
        assert cuts(found) == [None, None] == cuts(known)
        placed = prepared(found, ARCH, "energy").place()
        assert (placed.value, placed.bound, len(placed.residents)) == (expected.value, expected.bound, 2)


def test_operators_that_change_values_pass_words() -> None:
    size = kind(ROWS, SIZES[1])
    found = mlir([stablehlo(0), f"%m = stablehlo.tanh %a : {size}", stablehlo(1, "m"), stablehlo(2)])
    assert cuts(found) == [None, None]
    assert found.edges[0][2].through == (found.unmapped[0].name,)


def test_a_reshape_passes_words_in_order() -> None:
    size, flat = kind(ROWS, SIZES[1]), kind(ROWS * SIZES[1])
    there, back = f"%f = stablehlo.reshape %a : ({size}) -> {flat}", f"%m = stablehlo.reshape %f : ({flat}) -> {size}"
    assert cuts(mlir([stablehlo(0), there, back, stablehlo(1, "m"), stablehlo(2)])) == [None, None]


@pytest.mark.parametrize("operator", ["reverse", "iota"])
def test_words_behind_other_operations_are_unknown(operator: str) -> None:
    size = kind(ROWS, SIZES[1])
    line = f"%m = stablehlo.{operator} %a, dims = [0] : {size}"
    if operator == "iota":
        line = f"%m = stablehlo.iota dim = 0 : {size}"
    first, *others = cuts(mlir([stablehlo(0), line, stablehlo(1, "m"), stablehlo(2)]))
    assert (first, *others) == (None,) if operator == "iota" else first is not None and others == [None]


def test_first_partial_sums_that_a_layer_makes_are_unknown() -> None:
    size = kind(ROWS, SIZES[1])
    lines = [linalg(0), linalg(0, first="a").replace("%a =", "%m =", 1), linalg(1, "m"), linalg(2)]
    assert size in lines[1]
    found = mlir(lines)
    assert found.layers[1].after == (found.layers[0].name,)
    assert [bool(each) for each in cuts(found)] == [True, False, False]


@pytest.mark.parametrize(("operator", "known"), [("relu", True), ("clone", True), ("flip", False), ("softmax", False)])
def test_operators_of_programs(operator: str, known: bool, tmp_path: Path) -> None:
    assert [each is None for each in cuts(pt2(tmp_path, operator))] == [known, True]


def test_linear_layers_read_weights_by_columns(tmp_path: Path) -> None:
    """The weights of `linear` have the shape N x K. The words of a square result are not those of the problem's matrix."""
    shapes = {"x": (4, 4), "u": (4, 4), "a": (4, 4), "y": (4, 4)}
    nodes = [
        node("aten.mm.default", "a", self="%x", mat2="%u"),
        node("aten.linear.default", "y", input="%x", weight="%a"),
    ]
    path = Path(save_program(program(["x"], shapes, nodes), tmp_path / "small.pt2"))
    ((_, tensor, read),) = read_file(path, "small.pt2", None, {}).edges
    assert tensor == "B" and read.made is not None and read.read is not None
    assert [str(each) for each in read.made] == [str(each) for each in read.read[::-1]]
