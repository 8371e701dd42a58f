"""Quantised, fused and recurrent operators, and attention: the products in them, and their widths."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, defs, helper
from onnx.reference import ReferenceEvaluator

from support.onnx_models import extents, model_of, save, walk, whole_numbers
from tilewright.errors import InputError
from tilewright.schema.workload import Layer, Workload
from tilewright_frontends import OnnxOptions
from tilewright_frontends.onnx import OnnxFrontend

MICROSOFT = "com.microsoft"
SCALE, ZERO, SHORT = np.float32(0.5), np.uint8(3), np.int8(0)


def load(model: ModelProto, **options: Any) -> Workload:
    with tempfile.TemporaryDirectory() as folder:
        return OnnxFrontend(OnnxOptions(**options)).load(save(model, Path(folder)))


def node(operator: str, inputs: str, outputs: str = "y", domain: str = "", **attributes: Any) -> NodeProto:
    """An operator called `op`; `-` stands for an input or output left out."""
    read, made = ([each.replace("-", "") for each in text.split()] for text in (inputs, outputs))
    return helper.make_node(operator, read, made, "op", domain=domain, **attributes)


def layers(workload: Workload) -> list[str]:
    """`name count: sizes` of each layer."""
    return [f"{layer.name} {layer.count}: {str(layer.problem).partition('; ')[2]}" for layer in workload.layers]


QUANTISED: dict[str, tuple[str, str, dict[str, Any], str, str]] = {
    "QLinearConv": (
        "q s z w s zw s z",
        "",
        {"pads": [1, 1, 1, 1]},
        "N=1 K=6 C=4 P=8 Q=8 R=3 S=3",
        "Inputs 8, Weights 8, Outputs 8",
    ),
    "com.microsoft.QLinearConv": (
        "l s z w s zw s z",
        MICROSOFT,
        {"pads": [1, 1, 1, 1], "channels_last": 1},
        "N=1 K=6 C=4 P=8 Q=8 R=3 S=3",
        "Inputs 8, Weights 8, Outputs 8",
    ),
    "ConvInteger": ("q w z zw", "", {}, "N=1 K=6 C=4 P=6 Q=6 R=3 S=3", "Inputs 8, Weights 8, Outputs 32"),
    "MatMulInteger": ("a b z zw", "", {}, "B0=2 M=5 N=7 K=16", "A 8, B 8, Z 32"),
    "QLinearMatMul": ("a s z b s zw s z", "", {}, "B0=2 M=5 N=7 K=16", "A 8, B 8, Z 8"),
    "QGemm": ("m s z t s zw - s z", MICROSOFT, {"transB": 1}, "M=5 N=7 K=16", "A 8, B 8, Z 8"),
    "MatMulIntegerToFloat": ("a b s s z zw", MICROSOFT, {}, "B0=2 M=5 N=7 K=16", "A 8, B 8, Z 32"),
    "DynamicQuantizeMatMul": ("f b s zw", MICROSOFT, {}, "B0=2 M=5 N=7 K=16", "A 32, B 8, Z 32"),
    "MatMulNBits": (
        "f packed scales",
        MICROSOFT,
        {"K": 16, "N": 7, "bits": 4, "block_size": 16},
        "B0=2 M=5 N=7 K=16",
        "A 32, B 4, Z 32",
    ),
}
CONSTANTS = {
    "q": np.zeros((1, 4, 8, 8), np.uint8),
    "l": np.zeros((1, 8, 8, 4), np.uint8),
    "w": np.zeros((6, 4, 3, 3), np.int8),
    "a": np.zeros((2, 5, 16), np.uint8),
    "m": np.zeros((5, 16), np.uint8),
    "b": np.zeros((16, 7), np.int8),
    "t": np.zeros((7, 16), np.int8),
    "packed": np.zeros((7, 1, 8), np.uint8),
    "scales": np.zeros(7, np.float32),
    "s": SCALE,
    "z": ZERO,
    "zw": SHORT,
}


def bits(layer: Layer) -> str:
    return ", ".join(f"{tensor.name} {tensor.bits}" for tensor in layer.problem.tensors if tensor.bits)


@pytest.mark.parametrize("operator", QUANTISED)
def test_quantised_operators_are_convolutions_and_products_with_widths(operator: str) -> None:
    inputs, domain, attributes, sizes, widths = QUANTISED[operator]
    made = node(operator.rpartition(".")[2], inputs, domain=domain, **attributes)
    model = model_of([made], {"f": (2, 5, 16)}, constants=CONSTANTS, domains=[MICROSOFT])
    workload = load(model)
    assert layers(workload) == [f"op 1: {sizes}"]
    assert (workload.layers[0].problem.source or "").endswith(operator.rpartition(".")[2])
    assert bits(workload.layers[0]) == widths


def test_dequantised_data_have_the_width_of_the_quantised(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["qx"]),
        helper.make_node("DequantizeLinear", ["qx", "s", "z"], ["dx"]),
        helper.make_node("DequantizeLinear", ["t4", "s"], ["dw"]),
        helper.make_node("Transpose", ["dw"], ["w"], perm=[1, 0]),
        node("MatMul", "dx w"),
        helper.make_node("QuantizeLinear", ["y", "s", "z"], ["qy"]),
    ]
    model = model_of(nodes, {"x": (5, 16)}, constants={"s": SCALE, "z": ZERO}, opset=21)
    model.graph.initializer.append(helper.make_tensor("t4", TensorProto.INT4, [7, 16], [0] * 112))
    (layer,) = load(model).layers
    assert layer.problem.source == "MatMul" and bits(layer) == "A 8, B 4, Z 8"


def test_single_precision_is_not_worth_a_note() -> None:
    model = model_of([node("MatMul", "x w")], {"x": (5, 16), "w": (16, 7)}, "y")
    assert load(model).layers[0].problem.source is None


# -- fused operators -------------------------------------------------------------------------------------------------

FUSED: dict[str, tuple[Mapping[str, tuple[int, ...]], dict[str, Any], list[str]]] = {
    "FusedConv": (
        {"x": (1, 4, 8, 8), "w": (6, 4, 3, 3)},
        {"activation": "Relu", "strides": [2, 2]},
        ["op 1: N=1 K=6 C=4 P=3 Q=3 R=3 S=3"],
    ),
    "FusedMatMul": ({"a": (2, 16, 5), "b": (2, 7, 16)}, {"transA": 1, "transB": 1}, ["op 1: B0=2 M=5 N=7 K=16"]),
    "TransposeMatMul": ({"a": (2, 5, 16), "b": (2, 7, 16)}, {"transB": 1}, ["op 1: B0=2 M=5 N=7 K=16"]),
    "FusedGemm": ({"a": (16, 5), "b": (16, 7)}, {"transA": 1, "activation": "Relu"}, ["op 1: M=5 N=7 K=16"]),
    "Attention": (
        {"x": (2, 9, 32), "w": (32, 96), "b": (96,)},
        {"num_heads": 4},
        ["op.qkv 1: M=18 N=96 K=32", "op.scores 1: B0=2 B1=4 M=9 N=9 K=8", "op.context 1: B0=2 B1=4 M=9 N=8 K=9"],
    ),
    "MultiHeadAttention": (
        {"q": (2, 9, 32), "k": (2, 11, 32), "v": (2, 11, 64)},
        {"num_heads": 4},
        ["op.scores 1: B0=2 B1=4 M=9 N=11 K=8", "op.context 1: B0=2 B1=4 M=9 N=16 K=11"],
    ),
    "GroupQueryAttention": (
        {"q": (2, 1, 32), "k": (2, 1, 16), "v": (2, 1, 16), "pk": (2, 2, 10, 8), "pv": (2, 2, 10, 8)},
        {"num_heads": 4, "kv_num_heads": 2},
        ["op.scores 1: B0=2 B1=2 R1=2 M=1 N=11 K=8", "op.context 1: B0=2 B1=2 R1=2 M=1 N=8 K=11"],
    ),
}


@pytest.mark.parametrize("operator", FUSED)
def test_fused_operators_are_their_products_and_what_follows_is_not_lost(operator: str) -> None:
    shapes, attributes, expected = FUSED[operator]
    after = helper.make_node("MatMul", ["y", "last"], ["z"], "behind")
    width = {"FusedConv": 3, "MultiHeadAttention": 64, "Attention": 32, "GroupQueryAttention": 32}.get(operator, 7)
    constants = {"last": np.zeros((width, 3), np.float32)}
    nodes = [node(operator, " ".join(shapes), domain=MICROSOFT, **attributes), after]
    workload = load(model_of(nodes, shapes, "z", constants=constants, domains=[MICROSOFT]))
    *found, behind = layers(workload)
    assert found == expected
    assert behind.startswith("behind 1: ")
    softmax = ["Softmax"] if "Attention" in operator else []
    assert [each.operator for each in workload.unmapped] == (
        [attributes["activation"]] if "activation" in attributes else softmax
    )
    assert all(each.operations for each in workload.unmapped)


def test_packed_queries_keys_and_values_are_taken_apart() -> None:
    grouped = node("GroupQueryAttention", "x - -", domain=MICROSOFT, num_heads=4, kv_num_heads=2)
    packed = node("MultiHeadAttention", "x", domain=MICROSOFT, num_heads=4)
    expected = "M=9 N=9 K=8"
    for made, shape in ((grouped, (2, 9, 64)), (packed, (2, 9, 4, 3, 8))):
        (scores, _) = layers(load(model_of([made], {"x": shape}, "y", domains=[MICROSOFT])))
        assert scores.endswith(expected)


def test_a_chain_of_fused_operators_keeps_its_shapes() -> None:
    """As ONNX Runtime's optimizer writes a block of BERT."""
    steps: list[tuple[str, str, str, dict[str, Any]]] = [
        ("EmbedLayerNormalization", "ids segments words places segment g g", "a mask sum", {}),
        ("Attention", "a qkv g3 mask", "b", {"num_heads": 4}),
        ("MatMul", "b square", "c", {}),
        ("SkipLayerNormalization", "c a g g g", "d - - e", {}),
        ("MatMul", "d up", "f", {}),
        ("BiasGelu", "f wide", "h", {}),
        ("MatMul", "h down", "i", {}),
        ("SkipSimplifiedLayerNormalization", "i e g", "j", {}),
        ("QuickGelu", "j", "k", {}),
        ("MatMul", "k square", "y", {}),
    ]
    nodes = [
        helper.make_node(
            kind,
            inputs.split(),
            [each.replace("-", "") for each in outputs.split()],
            domain="" if kind == "MatMul" else MICROSOFT,
            **more,
        )
        for kind, inputs, outputs, more in steps
    ]
    sizes: dict[str, tuple[int, ...]] = {
        "words": (99, 32),
        "places": (64, 32),
        "segment": (2, 32),
        "qkv": (32, 96),
        "square": (32, 32),
    }
    sizes |= {"up": (32, 128), "down": (128, 32), "g": (32,), "g3": (96,), "wide": (128,)}
    constants = {name: np.zeros(shape, np.float32) for name, shape in sizes.items()}
    model = model_of(nodes, {"ids": ("N", 9), "segments": ("N", 9)}, "y", constants=constants, domains=[MICROSOFT])
    workload = load(model, batch=2)
    assert workload.macs == 2 * 9 * (32 * 96 + 2 * 32 * 32 + 2 * 32 * 128 + 2 * 9 * 32)
    assert len(workload.layers) == 7
    assert all(each.operations for each in workload.unmapped)


def test_operators_on_blocks_of_channels_keep_their_shapes() -> None:
    """As ONNX Runtime writes optimised models; three channels are padded to eight."""
    blocked = f"{MICROSOFT}.nchwc"
    nodes = [
        helper.make_node("ReorderInput", ["x"], ["a"], domain=blocked),
        helper.make_node("Conv", ["a", "w"], ["b"], "first", domain=blocked, pads=[1, 1, 1, 1], activation="Relu"),
        helper.make_node("MaxPool", ["b"], ["c"], domain=blocked, kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Upsample", ["c"], ["d"], domain=blocked, scales=[1, 1, 2, 2]),
        helper.make_node("ReorderOutput", ["d"], ["e"], domain=blocked, channels=12),
        helper.make_node("Conv", ["e", "v"], ["y"], "second"),
    ]
    constants = {"w": np.zeros((16, 8, 3, 3), np.float32), "v": np.zeros((6, 12, 1, 1), np.float32)}
    workload = load(model_of(nodes, {"x": (1, 3, 8, 8)}, "y", constants=constants, domains=[MICROSOFT, blocked]))
    assert layers(workload) == [
        "first 1: N=1 K=16 C=8 P=8 Q=8 R=3 S=3",
        "second 1: N=1 K=6 C=12 P=8 Q=8 R=1 S=1",
    ]


def test_quantised_data_are_put_together() -> None:
    nodes = [
        helper.make_node("QLinearConcat", ["s", "z", "q", "s", "z", "q", "s", "z"], ["j"], domain=MICROSOFT, axis=1),
        node("QLinearConv", "j s z v s zw s z"),
    ]
    constants = CONSTANTS | {"v": np.zeros((6, 8, 1, 1), np.int8)}
    assert layers(load(model_of(nodes, {}, constants=constants, domains=[MICROSOFT]))) == [
        "op 1: N=1 K=6 C=8 P=8 Q=8 R=1 S=1"
    ]


# -- attention and recurrent cells of ONNX ---------------------------------------------------------------------------


@pytest.mark.skipif(not defs.has("Attention"), reason="needs opset 23")
@pytest.mark.parametrize(("heads", "groups"), [(4, 4), (4, 2), (4, 1)])
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("past", [0, 3])
def test_scores_are_those_of_onnx(heads: int, groups: int, flat: bool, past: int) -> None:
    batch, queries, keys, width = 2, 3, 5, 2
    shapes = {"q": (batch, heads, queries, width), "k": (batch, groups, keys, width), "v": (batch, groups, keys, width)}
    cache = {"pk": (batch, groups, past, width), "pv": (batch, groups, past, width)} if past else {}
    arrays = {name: whole_numbers(*shape) for name, shape in (shapes | cache).items()}
    feed = {
        name: array.swapaxes(1, 2).reshape(batch, array.shape[2], -1) if flat and name in shapes else array
        for name, array in arrays.items()
    }
    attributes: dict[str, Any] = {"q_num_heads": heads, "kv_num_heads": groups} if flat else {}
    made = node("Attention", "q k v" + (" - pk pv" if past else ""), "y pk2 pv2 scores", scale=1.0, **attributes)
    model = model_of([made], {name: array.shape for name, array in feed.items()}, "y", "scores", opset=23)
    scores, context = (layer.problem for layer in load(model).layers)
    key = np.concatenate([arrays["pk"], arrays["k"]], 2) if past else arrays["k"]
    grouped = arrays["q"].reshape(batch, groups, heads // groups, queries, width)
    query, all_keys = scores.operands
    result = walk(scores, [grouped.reshape(extents(scores, query)), key.reshape(extents(scores, all_keys))])
    results = ReferenceEvaluator(model).run(None, {name: array.astype(np.float32) for name, array in feed.items()})
    expected = np.rint(np.asarray(list(results)[1]))
    np.testing.assert_array_equal(result.reshape(expected.shape), expected)
    assert context.macs == batch * heads * queries * (keys + past) * width


@pytest.mark.parametrize(("operator", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize(("direction", "directions"), [("forward", 1), ("bidirectional", 2)])
@pytest.mark.parametrize("layout", [0, 1])
def test_recurrent_cells_are_the_products_of_their_gates(
    operator: str, gates: int, direction: str, directions: int, layout: int
) -> None:
    steps, batch, inward, hidden = 6, 2, 5, 4
    x = (batch, steps, inward) if layout else (steps, batch, inward)
    shapes = {"x": x, "w": (directions, gates * hidden, inward), "r": (directions, gates * hidden, hidden)}
    made = node(operator, "x w r", "y", hidden_size=hidden, direction=direction, layout=layout)
    assert layers(load(model_of([made], shapes, "y"))) == [
        f"op.input {directions}: M={steps * batch} N={gates * hidden} K={inward}",
        f"op.state {directions * steps}: M={batch} N={gates * hidden} K={hidden}",
    ]


def test_a_quantised_cell_has_turned_weights() -> None:
    constants = {"w": np.zeros((2, 5, 16), np.int8), "r": np.zeros((2, 4, 16), np.int8)}
    made = node("DynamicQuantizeLSTM", "x w r", domain=MICROSOFT, hidden_size=4, direction="bidirectional")
    behind = helper.make_node("MatMul", ["y", "last"], ["z"], "behind")
    constants["last"] = np.zeros((4, 3), np.float32)
    workload = load(model_of([made, behind], {"x": (6, 1, 5)}, "z", constants=constants, domains=[MICROSOFT]))
    assert layers(workload)[:2] == ["op.input 2: M=6 N=16 K=5", "op.state 12: M=1 N=16 K=4"]
    assert workload.layers[0].problem.source == "com.microsoft.DynamicQuantizeLSTM"
    assert bits(workload.layers[0]) == "A 32, B 8"


def test_weights_of_another_cell_are_refused() -> None:
    shapes = {"x": (6, 2, 5), "w": (1, 16, 5), "r": (1, 12, 4)}
    with pytest.raises(InputError, match="LSTM 'op' is malformed: the recurrent weights"):
        load(model_of([node("LSTM", "x w r", hidden_size=4)], shapes, "y"))


@pytest.mark.skipif(not defs.has("CausalConvWithState"), reason="needs opset 27")
def test_a_causal_convolution_is_depthwise() -> None:
    shapes = {"x": (2, 6, 9), "w": (6, 1, 4)}
    made = node("CausalConvWithState", "x w", "y state")
    assert layers(load(model_of([made], shapes, "y", opset=27))) == ["op 1: N=2 G=6 P=9 R=4"]


# -- what may be a product -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", ["com.example", MICROSOFT, ""])
def test_an_unknown_operator_may_contain_a_product(domain: str) -> None:
    model = model_of(
        [node("Novelty", "x w", domain=domain)], {"x": (5, 16), "w": (16, 7)}, domains=[MICROSOFT, "com.example"]
    )
    (found,) = load(model).unmapped
    assert "it may contain a product of tensors" in found.reason
    assert found.operations is None


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_a_deformable_convolution_is_a_product_of_samples(groups: int) -> None:
    """With the samples that offsets of zero take, the product is the ordinary convolution."""
    shapes = {"x": (2, 4, 6, 5), "w": (8, 4 // groups, 3, 2), "o": (2, 12, 4, 4)}
    workload = load(model_of([node("DeformConv", "x w o", group=groups)], shapes, "y", opset=19))
    (layer,), (samples,) = workload.layers, workload.unmapped
    x, w = whole_numbers(*shapes["x"]), whole_numbers(*shapes["w"])
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 2), axis=(2, 3))  # N, C, P, Q, R, S
    split = [groups, 4 // groups] if groups > 1 else [4]
    kept = [each for each in split if each > 1]
    made = walk(
        layer.problem,
        [
            windows.reshape(2, *kept, 4, 4, 3, 2),
            w.reshape(*([groups] if groups > 1 else []), 8 // groups, *([] if groups == 4 else [4 // groups]), 3, 2),
        ],
    )
    ordinary = helper.make_model(
        helper.make_graph(
            [node("Conv", "x w", group=groups)],
            "g",
            [helper.make_tensor_value_info(each, TensorProto.INT64, shapes[each]) for each in "xw"],
            [helper.make_tensor_value_info("y", TensorProto.INT64, None)],
        )
    )
    (expected,) = ReferenceEvaluator(ordinary).run(None, {"x": x, "w": w})
    assert np.array_equal(made.reshape(np.shape(expected)), expected)
    assert (samples.name, samples.operator, samples.operations) == ("op.samples", "DeformConv", 8 * windows.size)
    assert samples.reason == "reads the input at positions from memory, and interpolates"


@pytest.mark.parametrize("turned", [0, 1])
def test_a_gemm_with_batches_is_a_batched_product(turned: int) -> None:
    """ONNX does not allow it, but programs write it."""
    shapes = {"a": (3, 5, 4), "b": (5, 6) if turned else (4, 6)}
    (layer,) = load(model_of([node("Gemm", "a b", transA=turned)], shapes, "y")).layers
    m, k = (4, 5) if turned else (5, 4)
    assert str(layer.problem).partition("; ")[2] == f"B0=3 M={m} N=6 K={k}"


def test_values_have_the_bits_of_their_quantiser() -> None:
    """QONNX: `Quant` says the bits in its fourth input, and `BipolarQuant` has one."""
    domain = "qonnx.custom_op.general"
    nodes = [
        helper.make_node("Quant", ["x", "s", "z", "eight"], ["p"], "data", domain=domain),
        helper.make_node("BipolarQuant", ["w", "s"], ["q"], "weights", domain=domain),
        helper.make_node("Conv", ["p", "q"], ["r"], "conv"),
        helper.make_node("Quant", ["r", "s", "z", "four"], ["y"], "result", domain=domain),
    ]
    numbers = {"s": 0.5, "z": 0.0, "eight": 8.0, "four": 4.0}
    constants = {name: np.array(number, np.float32) for name, number in numbers.items()}
    workload = load(model_of(nodes, {"x": (1, 3, 8, 8), "w": (4, 3, 3, 3)}, "y", constants=constants, domains=[domain]))
    (layer,) = workload.layers
    assert str(layer.problem).partition("; ")[2] == "N=1 K=4 C=3 P=6 Q=6 R=3 S=3"
    assert [tensor.bits for tensor in layer.problem.tensors] == [8, 1, 4]
    assert [(each.name, each.reason, each.operations) for each in workload.unmapped] == [
        ("data", "works element by element", 4 * 3 * 8 * 8),
        ("weights", "works element by element", 4 * 4 * 3 * 3 * 3),
        ("result", "works element by element", 4 * 4 * 6 * 6),
    ]


def test_weights_give_their_densities_on_request(tmp_path: Path) -> None:
    """The fraction of nonzeros, through reshapes; dense weights, and operands that are computed, have none."""
    filters, matrix = np.ones((2, 3, 3, 3), np.float32), np.zeros((8, 32), np.float32)
    filters[0, 0], matrix[::4] = 0, 1
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["y"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["x", "v"], ["u"], "dense", pads=[1, 1, 1, 1]),
        helper.make_node("Flatten", ["y"], ["f"], "flat"),
        helper.make_node("Transpose", ["m"], ["t"], "turned"),
        helper.make_node("MatMul", ["f", "t"], ["z"], "product"),
    ]
    constants = {"w": filters, "v": np.ones((2, 3, 3, 3), np.float32), "m": matrix}
    path = save(model_of(nodes, {"x": [1, 3, 4, 4]}, "z", "u", constants=constants), tmp_path)
    plain = OnnxFrontend(OnnxOptions()).load(path)
    assert not any(layer.problem.sparse_tensors for layer in plain.layers)
    asked = OnnxFrontend(OnnxOptions(density="from-weights")).load(path)
    found = {
        layer.name: [str(each.density) for each in layer.problem.tensors if each.density] for layer in asked.layers
    }
    assert found == {"conv": ["0.833333 uniform"], "dense": [], "product": ["0.25 uniform"]}
