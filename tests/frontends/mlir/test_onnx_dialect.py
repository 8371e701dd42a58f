"""Operators of ONNX in MLIR, against ONNX itself: in the dialect of onnx-mlir, and wrapped by the torch dialect."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tilewright.errors import InputError
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Workload
from tilewright_frontends.mlir.module import read_workload
from tilewright_frontends.mlir.parse import parse
from tilewright_frontends.onnx import read_file

NETWORK = """
module attributes {"onnx-mlir.symbol-postfix" = "net"} {
  func.func @main_graph(%arg0: tensor<2x3x16x16xf32> {onnx.name = "x"}) -> (tensor<2x10xf32> {onnx.name = "y"}) {
    %0 = onnx.Constant dense<[2, -1]> : tensor<2xi64>
    %1 = onnx.Constant dense_resource<__elided__> : tensor<8x3x3x3xf32>
    %2 = onnx.Constant dense<0.5> : tensor<8x1x5x5xf32>
    %3 = onnx.Constant dense<1.0> : tensor<512x10xf32>
    %4 = onnx.Constant dense<1.0> : tensor<10xf32>
    %5 = "onnx.NoValue"() {value} : () -> none
    %6 = "onnx.Conv"(%arg0, %1, %5) {auto_pad = "SAME_UPPER", group = 1 : si64, onnx_node_name = "stem", strides = [2, 2]}
        : (tensor<2x3x16x16xf32>, tensor<8x3x3x3xf32>, none) -> tensor<*xf32>
    %7 = "onnx.Relu"(%6) {onnx_node_name = "act"} : (tensor<*xf32>) -> tensor<*xf32>
    %8 = "onnx.Conv"(%7, %2, %5) {auto_pad = "NOTSET", group = 8 : si64, pads = [2, 2, 2, 2], onnx_node_name = "depthwise"}
        : (tensor<*xf32>, tensor<8x1x5x5xf32>, none) -> tensor<*xf32>
    %9 = "onnx.Reshape"(%8, %0) {allowzero = 0 : si64} : (tensor<*xf32>, tensor<2xi64>) -> tensor<2x512xf32>
    %10 = "onnx.Gemm"(%9, %3, %4) {alpha = 1.0 : f32, beta = 1.0 : f32, transA = 0 : si64, transB = 0 : si64}
        : (tensor<2x512xf32>, tensor<512x10xf32>, tensor<10xf32>) -> tensor<2x10xf32>
    onnx.Return %10 : tensor<2x10xf32>
  }
  "onnx.EntryPoint"() {func = @main_graph} : () -> ()
}
"""


def read(text: str, batch: int | None = None) -> Workload:
    return read_workload(parse(text, "net.mlir"), "net", "net.mlir", batch, {})


def function(operation: str, arguments: dict[str, str]) -> str:
    kinds = ", ".join(f"%{name}: {kind}" for name, kind in arguments.items())
    return f'func.func private @f({kinds}) -> none {{\n  {operation}\n  "func.return"() : () -> ()\n}}'


def vector(shape: Sequence[int], element: str = "f32") -> str:
    return f"!torch.vtensor<[{','.join(map(str, shape))}],{element}>"


def typed(value: int | list[int]) -> str:
    """Return whole numbers as torch-mlir's importer prints them."""
    numbers = ", ".join(f"{number} : si64" for number in value) if isinstance(value, list) else ""
    return f"[{numbers}]" if numbers else f"{value} : si64"


def unnamed(problem: Problem) -> Problem:
    return problem.model_copy(update={"name": ""})


def test_a_network_has_the_layers_of_its_onnx_file() -> None:
    workload = read(NETWORK)
    assert [(layer.name, layer.problem.macs, layer.after) for layer in workload.layers] == [
        ("stem", 2 * 8 * 8 * 8 * 27, ()),
        ("depthwise", 2 * 8 * 8 * 8 * 25, ("stem",)),
        ("Gemm_16", 2 * 512 * 10, ("depthwise",)),
    ]
    assert [(each.name, each.operator) for each in workload.unmapped] == [
        ("act", "onnx.Relu"),
        ("Reshape_15", "onnx.Reshape"),
    ]
    assert workload.unmapped[0].operations == 2 * 8 * 8 * 8


@pytest.mark.parametrize(
    ("kind", "shapes", "attributes"),
    [
        ("ConvTranspose", [(1, 6, 8, 14), (6, 4, 4, 4)], {"group": 3, "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ("MatMul", [(5, 4, 8), (8, 16)], {}),
        ("Gemm", [(8, 4), (16, 8)], {"transA": 1, "transB": 1}),
        ("Einsum", [(5, 4, 8), (5, 8, 3)], {"equation": "bij,bjk->bik"}),
        ("LSTM", [(10, 2, 16), (1, 128, 16), (1, 128, 32)], {"hidden_size": 32}),
        ("GRU", [(10, 2, 16), (2, 96, 16), (2, 96, 32)], {"hidden_size": 32, "direction": "bidirectional"}),
    ],
)
def test_an_operator_is_read_as_in_an_onnx_file(kind, shapes, attributes, tmp_path) -> None:  # type: ignore[no-untyped-def]
    names = [f"a{place}" for place in range(len(shapes))]
    node = helper.make_node(kind, names, ["y"], name="it", **attributes)
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in zip(names, shapes, strict=True)
    ]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    onnx.save(helper.make_model(helper.make_graph([node], "g", infos, [result])), tmp_path / "g.onnx")
    said = [f'{key} = "{each}"' if isinstance(each, str) else f"{key} = {each}" for key, each in attributes.items()]
    kinds = [f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in shapes]
    operands = ", ".join(f"%{name}" for name in names)
    operation = f'%0 = "onnx.{kind}"({operands}) {{onnx_node_name = "it", {", ".join(said)}}} : ({", ".join(kinds)}) -> tensor<*xf32>'
    ours = read(function(operation.replace(", }", "}"), dict(zip(names, kinds, strict=True))))
    theirs = read_file(tmp_path / "g.onnx", "g", "g", None, {})
    said = [
        f'torch.onnx.{key} = "{each}"' if isinstance(each, str) else f"torch.onnx.{key} = {typed(each)}"
        for key, each in attributes.items()
    ]
    kinds = [vector(shape) for shape in shapes]
    operation = f'%0 = torch.operator "onnx.{kind}"({operands}) {{{", ".join(said)}}} : ({", ".join(kinds)}) -> !torch.vtensor<*,f32>'
    wrapped = read(function(operation, dict(zip(names, kinds, strict=True))))
    expected = [(unnamed(layer.problem), layer.count) for layer in theirs.layers]
    for workload in (ours, wrapped):
        assert [(unnamed(layer.problem), layer.count) for layer in workload.layers] == expected
    assert [layer.name for layer in ours.layers] == [layer.name for layer in theirs.layers]
    assert math.prod(ours.layers[0].problem.sizes) > 1


def test_integers_have_their_widths() -> None:
    kinds = {"a": "tensor<16x32xui8>", "b": "tensor<32x64xi8>"}
    operation = f'%0 = "onnx.MatMulInteger"(%a, %b) : ({", ".join(kinds.values())}) -> tensor<16x64xi32>'
    (layer,) = read(function(operation, kinds)).layers
    assert [tensor.bits for tensor in layer.problem.tensors] == [8, 8, 32]


def test_open_sizes_are_asked_for() -> None:
    kinds = {"a": "tensor<?x32xf32>", "b": "tensor<32x64xf32>"}
    operation = f'%0 = "onnx.MatMul"(%a, %b) : ({", ".join(kinds.values())}) -> tensor<*xf32>'
    with pytest.raises(InputError, match=r"net.mlir:2:3: operand 0 of onnx.MatMul has an open shape, \? x 32"):
        read(function(operation, kinds))
    assert read(function(operation, kinds), batch=4).layers[0].problem.macs == 4 * 32 * 64


@pytest.mark.parametrize(
    "operation", ["%0:3 = krnl.define_loops 3", '%0 = "zhigh.Stick"(%a) : (tensor<4xf32>) -> tensor<4xf16>']
)
def test_lowered_forms_name_the_command_that_prints_a_readable_one(operation: str) -> None:
    with pytest.raises(InputError) as told:
        read(function(operation, {"a": "tensor<4xf32>"}))
    assert told.value.hint is not None and "onnx-mlir --EmitONNXIR" in told.value.hint


WRAPPED = (Path(__file__).parents[2] / "data" / "mlir" / "onnx.torch.mlir").read_text(encoding="utf-8")


def generic(text: str) -> str:
    """Return the operators in generic form."""
    lines = ['"builtin.module"() ({', "^bb0:", '"func.func"() <{sym_name = "main_graph", function_type = () -> ()}> ({']
    lines.append("^bb0(%arg0: !torch.vtensor<[2,3,16,16],f32>, %arg1: !torch.vtensor<[8,3,3,3],f32>):")
    for line in text.splitlines():
        if "torch.operator" in line:
            result, _, rest = line.strip().partition(' = torch.operator "')
            name, _, rest = rest.partition('"')
            operands, _, rest = rest.partition(")")
            inside, _, types = rest.rpartition("} : ") if "{" in rest else ("", "", rest.removeprefix(" : "))
            attributes = ", ".join(filter(None, [f'name = "{name}"', inside.strip(" {")]))
            lines.append(f'{result} = "torch.operator"{operands}) {{{attributes}}} : {types}')
        elif "torch.constant.none" in line:
            lines.append('%none = "torch.constant.none"() : () -> !torch.none')
    return "\n".join(
        [*lines, '"func.return"(%5) : (!torch.vtensor<[2,10],f32>) -> ()', "}) : () -> ()", "}) : () -> ()"]
    )


@pytest.mark.parametrize("form", [str, generic])
def test_operators_that_the_torch_dialect_wraps_are_those_of_onnx(form: Callable[[str], str]) -> None:
    workload = read(form(WRAPPED))
    conv, product = workload.layers
    assert (conv.problem.macs, product.problem.macs) == (2 * 8 * 8 * 8 * 27, 2 * 512 * 10)
    assert product.after == (conv.name,) and product.reads["A"][0].cut is None
    said = {part.operator: part.reason.partition(": ")[2] for part in workload.unmapped}
    assert said == {
        "onnx.Relu": "works element by element",
        "onnx.Reshape": "moves or names data, computes nothing",
        "onnx.MaxPool": "a window without weights",
        "onnx.AveragePool": "a window without weights",
        "onnx.ReduceL2": "a reduction without weights",
    }


def test_an_operator_of_microsoft_is_known_without_its_domain() -> None:
    """The importer of torch-mlir drops domains; `Attention` is that of ONNX."""
    kinds = {"a": vector((2, 12, 8, 4)), "b": vector((2, 12, 8, 4))}
    types = f"({', '.join(kinds.values())}) -> {vector((2, 12, 8, 8))}"
    operation = f'%0 = torch.operator "onnx.FusedMatMul"(%a, %b) {{torch.onnx.transB = 1 : si64}} : {types}'
    (layer,) = read(function(operation, kinds)).layers
    assert layer.problem.macs == 2 * 12 * 8 * 8 * 4


def test_a_stride_beyond_the_limit_is_refused_in_plain_words() -> None:
    text = WRAPPED.replace("strides = [2 : si64", "strides = [999999999999 : si64")
    with pytest.raises(
        InputError, match=r"Conv 'Conv_7' is malformed: terms.P: expected a value less than or equal to 2147483648"
    ) as told:
        read(text)
    assert "pydantic" not in str(told.value)
