"""Vector layers that frontends emit for operators without a product."""

from pathlib import Path
from typing import Any

import pytest
from onnx import helper

import tilewright as tw
from support import onnx_models
from support.exported import node, program, save
from support.onnx_models import model_of
from support.profiles import first
from tilewright.errors import InputError
from tilewright.schema.vector import OPERATORS, VectorLayer
from tilewright.schema.workload import Workload
from tilewright_frontends import OnnxOptions
from tilewright_frontends.mlir import read_file as read_mlir
from tilewright_frontends.onnx import OnnxFrontend
from tilewright_frontends.pt2 import read_file

DATA = (2, 6, 8, 8)
"""Shape of the operand x; the convolution of every file keeps it."""


def load(
    tmp_path: Path, operator: str, extra: dict[str, tuple[int, ...]], domain: str = "", **attributes: Any
) -> Workload:
    """Return a file of a convolution, the operator, and a second convolution that reads its result if it has one operand."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["h"], "first"),
        helper.make_node(operator, ["h", *extra], ["y"], "op", domain=domain, **attributes),
    ]
    inputs = {"x": DATA, "w": (6, 6, 1, 1), **extra}
    return OnnxFrontend(OnnxOptions()).load(onnx_models.save(model_of(nodes, inputs, "y"), tmp_path))


ELEMENTS = 2 * 6 * 8 * 8
WORDWISE = "Relu LeakyRelu Sigmoid Tanh Elu Softplus Erf Exp Log Sqrt Neg Abs Floor Ceil Round HardSigmoid HardSwish"
BINARY = "Add Sub Mul Div Max Min Pow"


@pytest.mark.parametrize("operator", WORDWISE.split())
def test_activations(tmp_path: Path, operator: str) -> None:
    (vector,) = load(tmp_path, operator, {}).vectors
    assert (vector.operator, vector.elements, vector.result) == (operator, ELEMENTS, ELEMENTS)
    assert vector.after == ("first",) and vector.operators == ("op",)


@pytest.mark.parametrize("operator", BINARY.split())
def test_two_operands(tmp_path: Path, operator: str) -> None:
    (vector,) = load(tmp_path, operator, {"z": DATA}).vectors
    assert [operand.words for operand in vector.operands] == [ELEMENTS, ELEMENTS] and vector.elements == ELEMENTS
    (vector,) = load(tmp_path, operator, {"z": (8,)}).vectors
    assert [(operand.words, operand.shared) for operand in vector.operands] == [(ELEMENTS, False), (8, True)]


ROWS: list[tuple[str, dict[str, tuple[int, ...]], dict[str, Any], tuple[int, int]]] = [
    ("Softmax", {}, {"axis": 1}, (128, 6)),
    ("LogSoftmax", {}, {}, (96, 8)),
    ("LayerNormalization", {"s": (8,), "b": (8,)}, {"axis": -1}, (96, 8)),
    ("InstanceNormalization", {"s": (6,), "b": (6,)}, {}, (12, 64)),
    ("BatchNormalization", {"s": (6,), "b": (6,), "m": (6,), "v": (6,)}, {}, (12, 64)),
    ("ReduceMean", {}, {"keepdims": 0}, (1, ELEMENTS)),
    ("MaxPool", {}, {"kernel_shape": [2, 2], "strides": [2, 2]}, (192, 4)),
    ("AveragePool", {}, {"kernel_shape": [3, 3]}, (432, 9)),
    ("GlobalAveragePool", {}, {}, (12, 64)),
    ("GlobalMaxPool", {}, {}, (12, 64)),
    ("LRN", {}, {"size": 3}, (ELEMENTS, 3)),
    ("LpNormalization", {}, {"axis": 1}, (128, 6)),
    ("MeanVarianceNormalization", {}, {}, (6, 128)),
    ("Hardmax", {}, {}, (96, 8)),
]


@pytest.mark.parametrize(("operator", "extra", "attributes", "sizes"), ROWS)
def test_rows(
    tmp_path: Path, operator: str, extra: dict[str, tuple[int, ...]], attributes: dict[str, Any], sizes: tuple[int, int]
) -> None:
    (vector,) = load(tmp_path, operator, extra, **attributes).vectors
    assert (vector.operator, vector.rows, vector.row) == (operator, *sizes)
    assert vector.operands[0].words == ELEMENTS


def test_what_is_no_vector_layer_stays_listed(tmp_path: Path) -> None:
    work = load(tmp_path, "GridSample", {"g": (2, 4, 4, 2)})
    (part,) = work.unmapped
    assert not work.vectors and part.operator == "GridSample" and part.reason.endswith("positions that are computed")


def test_dependences_look_through_operators_that_move_words(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["h"], "first"),
        helper.make_node("Relu", ["h"], ["r"], "relu"),
        helper.make_node("Identity", ["r"], ["i"], "same"),
        helper.make_node("Conv", ["i", "w"], ["k"], "second"),
        helper.make_node("Add", ["k", "r"], ["y"], "sum"),
    ]
    work = OnnxFrontend(OnnxOptions()).load(
        onnx_models.save(model_of(nodes, {"x": DATA, "w": (6, 6, 1, 1)}, "y"), tmp_path)
    )
    relu, total = work.vectors
    assert (relu.after, relu.before) == (("first",), ("second",)) and total.after == ("second", "relu")


def named(work: Workload) -> dict[str, VectorLayer]:
    return {vector.name: vector for vector in work.vectors}


def test_a_decoder_block() -> None:
    """Llama 3 8B, 64 tokens: 32 query heads, 8 of keys, 4,096 channels, an MLP of 14,336."""
    work = tw.load("llama3_8b", kind="workload", sizes={"seq": 64})
    vectors = named(work)
    assert {name: (one.operator, one.elements, one.count) for name, one in vectors.items()} == {
        "decoder.attention.softmax": ("Softmax", 32 * 64 * 64, 32),
        "decoder.attention.rotary_q": ("RotaryEmbedding", 64 * 4096, 32),
        "decoder.attention.rotary_k": ("RotaryEmbedding", 64 * 1024, 32),
        "decoder.norm1": ("RMSNormalization", 64 * 4096, 32),
        "decoder.attention.out.residual": ("Add", 64 * 4096, 32),
        "decoder.mlp.activation": ("SwiGLU", 64 * 14336, 32),
        "decoder.norm2": ("RMSNormalization", 64 * 4096, 32),
        "decoder.mlp.residual": ("Add", 64 * 4096, 32),
        "norm": ("RMSNormalization", 64 * 4096, 1),
    }
    assert vectors["decoder.norm1"].before == ("decoder.attention.q", "decoder.attention.k", "decoder.attention.v")
    assert vectors["decoder.norm2"].before == ("decoder.mlp.up", "decoder.mlp.gate")
    assert vectors["decoder.mlp.residual"].after == ("decoder.mlp.down", "decoder.attention.out.residual")
    counted = {name for vector in work.vectors for name in vector.operators}
    assert {part.operator for part in work.unmapped if part.name not in counted} == {"Gather"}


@pytest.mark.parametrize("network", ["bert_base", "vit_b16", "mixtral_8x7b", "whisper_small", "deepseek_v3", "gpt2"])
def test_norms_softmax_and_activations_of_transformers_are_vector_layers(network: str) -> None:
    work = tw.load(network, kind="workload")
    counted = {name for vector in work.vectors for name in vector.operators}
    left = {part.name for part in work.unmapped if part.operator in ("Softmax", "Gelu", "SiLU")} - counted
    assert not left and all(vector.operator in OPERATORS for vector in work.vectors)


def test_the_router_of_experts_takes_the_best_of_its_scores() -> None:
    vectors = named(tw.load("mixtral_8x7b", kind="workload", sizes={"seq": 16}))
    best = vectors["decoder.mlp.topk"]
    assert (best.rows, best.row, best.operands[0].words, best.result) == (16, 2 * 8, 16 * 8, 16 * 2)


@pytest.mark.parametrize(
    ("file", "operators"),
    [
        ("pt2/net.pt2", ["Relu"]),
        ("mlir/mlp.stablehlo.generic.mlir", ["Add", "Max", "Add"]),
        ("mlir/onnx.torch.mlir", ["Relu", "MaxPool", "AveragePool", "ReduceL2"]),
        ("mlir/attention_scores.tosa.generic.mlir", ["ReduceMax", "Sub", "Exp", "ReduceSum", "Reciprocal", "Mul"]),
    ],
)
def test_pytorch_and_mlir(file: str, operators: list[str]) -> None:
    work = tw.load(str(Path(__file__).parents[1] / "data" / file), kind="workload")
    assert sorted(vector.operator for vector in work.vectors) == sorted(operators)
    names = {layer.name for layer in work.layers} | {vector.name for vector in work.vectors}
    assert all(vector.after is not None and names >= {*vector.after, *vector.before} for vector in work.vectors)
    assert {name for vector in work.vectors for name in vector.operators} <= {part.name for part in work.unmapped}


FORMS = {
    "stablehlo.reduce": """
    %r = stablehlo.reduce(%x init: %c) applies stablehlo.maximum across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
""",
    "stablehlo.reduce_window": """
    %r = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x4xf32>
""",
    "stablehlo.convert": "    %r = stablehlo.convert %x : (tensor<4x8xf32>) -> tensor<4x8xi32>\n",
    "stablehlo.log_plus_one": "    %r = stablehlo.log_plus_one %x : tensor<4x8xf32>\n",
    "stablehlo.fft": "    %r = stablehlo.fft %x, type = FFT, length = [8] : (tensor<4x8xf32>) -> tensor<4x8xf32>\n",
    "tosa.avg_pool2d": """
    %r = tosa.avg_pool2d %p {kernel = array<i64: 2, 2>, stride = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>} : (tensor<1x4x4x3xf32>) -> tensor<1x2x2x3xf32>
""",
    "tosa.rescale": "    %r = tosa.rescale %x {scale32 = true} : (tensor<4x8xf32>) -> tensor<4x8xi8>\n",
}
COUNTED = {
    "stablehlo.reduce": ("ReduceMax", 4, 8, {"compare": 1}),
    "stablehlo.reduce_window": ("reduce_window", 16, 2, {"add": 1}),
    "stablehlo.convert": ("Cast", 32, 1, {"convert": 1}),
    "stablehlo.log_plus_one": ("stablehlo.log_plus_one", 32, 1, {"add": 1, "exponential": 1}),
    "stablehlo.fft": "it contains products, which are not mapped",
    "tosa.avg_pool2d": ("AveragePool", 12, 4, {"add": 1}),
    "tosa.rescale": ("QuantizeLinear", 32, 1, {"multiply": 1, "convert": 1, "add": 1, "compare": 2}),
}


@pytest.mark.parametrize("name", first(3, *FORMS))
def test_forms_of_mlir(name: str, tmp_path: Path) -> None:
    """A product, and one operation behind it."""
    file = tmp_path / "small.mlir"
    file.write_text(
        f"""module {{
  func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %p: tensor<1x4x4x3xf32>, %c: tensor<f32>) -> tensor<4x8xf32> {{
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
{FORMS[name].lstrip(chr(10))}    return %y : tensor<4x8xf32>
  }}
}}
"""
    )
    work = read_mlir(file, "small", "small.mlir", None, {})
    (part,) = work.unmapped
    expected = COUNTED[name]
    if isinstance(expected, str):
        assert not work.vectors and part.reason.endswith(expected)
        return
    (vector,) = work.vectors
    assert (vector.operator, vector.rows, vector.row, dict(vector.plain_work.element)) == expected
    assert vector.operators == (part.name,)


MODULES = Path(__file__).parents[1] / "data" / "mlir"


def test_bodies_of_linalg() -> None:
    """Element by element, and sums of rows, as torch-mlir lowers an attention."""
    file = MODULES / "torch_attention.linalg.generic.mlir"
    attention = read_mlir(file, "attention", file.name, None, {})
    counts = {vector.operator: vector for vector in attention.vectors}
    assert {"Exp", "ReduceSum", "Div", "Sub", "Mul"} <= counts.keys()
    assert (counts["ReduceSum"].rows, counts["ReduceSum"].row) == (2 * 4 * 16, 16)


FILES = ["torch_convnet.affine.generic.mlir", *(path.name for path in sorted(MODULES.glob("*.mlir")))]


@pytest.mark.parametrize("name", first(1, *dict.fromkeys(FILES)))
def test_operations_of_modules_are_counted_or_say_why_not(name: str) -> None:
    try:
        work = read_mlir(MODULES / name, "small", name, None, {})
    except InputError as error:
        assert "nothing" in str(error) or "no tensor product" in str(error)
        return
    counted = [operator for vector in work.vectors for operator in vector.operators]
    assert len(counted) == len(set(counted))
    left = [part for part in work.unmapped if part.name not in counted and part.operations != 0]
    vague = ("a reduction without weights", "not a product of tensors over affine loops")
    assert all(not part.reason.endswith(vague) for part in left)
    if "affine" in name and "torch" in name:
        assert not left and all(vector.after is None for vector in work.vectors)


ATEN: list[tuple[str, tuple[int, ...], dict[str, Any], str, tuple[int, int]]] = [
    ("aten.var.correction", (4, 1), {"dim": [1]}, "ReduceVariance", (4, 8)),
    ("aten.std.correction", (4, 1), {"dim": [1]}, "std", (4, 8)),
    ("aten.max.dim", (4,), {"dim": 1}, "ReduceMax", (4, 8)),
    ("aten.cumsum.default", (4, 8), {"dim": 1}, "CumSum", (4, 8)),
    ("aten.log1p.default", (4, 8), {}, "log1p", (32, 1)),
    ("aten.eq.Scalar", (4, 8), {"other": float("-inf")}, "Equal", (32, 1)),
    ("aten.sort.default", (4, 8), {}, "its work depends on the data", (0, 0)),
]


@pytest.mark.parametrize(("target", "result", "words", "operator", "sizes"), first(3, *ATEN))
def test_forms_of_pytorch(
    target: str, result: tuple[int, ...], words: dict[str, Any], operator: str, sizes: tuple[int, int], tmp_path: Path
) -> None:
    calls = [node("aten.mm.default", "h", self="%x", mat2="%w"), node(target, "y", self="%h", **words)]
    data = program(["x", "w"], {"x": (4, 8), "w": (8, 8), "h": (4, 8), "y": result}, calls)
    work = read_file(Path(save(data, tmp_path / "small.pt2")), "small.pt2", None, {})
    (part,) = work.unmapped
    if not sizes[0]:
        assert part.reason.endswith(operator) and not work.vectors
        return
    (vector,) = work.vectors
    assert (vector.operator, vector.rows, vector.row, vector.operators) == (operator, *sizes, (part.name,))


def test_long_bodies_and_contradictions_are_read(tmp_path: Path) -> None:
    """A body of 600 additions, and an axis that does not exist."""
    sums = "".join(f"      %s{n + 1} = stablehlo.add %s{n}, %b : tensor<f32>\n" for n in range(600))
    body = f"    ^bb0(%s0: tensor<f32>, %b: tensor<f32>):\n{sums}      stablehlo.return %s600 : tensor<f32>\n"
    file = tmp_path / "long.mlir"
    file.write_text(
        f"""module {{
  func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %c: tensor<f32>) -> tensor<4x8xf32> {{
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %r = "stablehlo.reduce"(%x, %c) <{{dimensions = array<i64: 1>}}> ({{
{body}    }}) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    return %y : tensor<4x8xf32>
  }}
}}
"""
    )
    (vector,) = read_mlir(file, "long", "long.mlir", None, {}).vectors
    assert vector.plain_work.element["add"] == 600
    work = load(tmp_path, "SkipGroupNorm", {"z": (6,)}, domain="com.microsoft")
    assert not work.vectors and work.unmapped[0].reason.endswith("contradict its shapes")
    several: dict[str, tuple[int, ...]] = {f"z{n}": DATA for n in range(120)}
    assert load(tmp_path, "Sum", several).unmapped[0].reason.endswith("more than 100 operands")
