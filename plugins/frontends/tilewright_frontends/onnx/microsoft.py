"""Shapes of the results of `com.microsoft` operators and of quantisers, which onnx's inference does not know.

Sources: ONNX Runtime's list of contributed operators (docs/ContribOperators.md), QONNX's (docs/qonnx-custom-ops).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from onnx import NodeProto, TensorProto, TypeProto, defs, helper
from onnx.shape_inference import infer_node_outputs

from tilewright_frontends.nests import Shape
from tilewright_frontends.onnx.node import attributes_of

DOMAINS = ("com.microsoft", "")
"""Domains of the operators; ONNX Runtime writes some into ONNX's own domain."""
BLOCKED = "com.microsoft.nchwc"
"""Domain of operators on blocks of channels, which are padded to a multiple of the block."""
QUANTISERS = frozenset("Quant IntQuant BipolarQuant Trunc FloatQuant MultiThreshold".split())
"""Operators of QONNX and Brevitas whose floating-point results are those of few bits."""
SAME = (
    frozenset(
        "Gelu FastGelu QuickGelu BiasGelu BiasAdd BiasSoftmax BiasDropout LayerNormalization SkipLayerNormalization "
        "SimplifiedLayerNormalization SkipSimplifiedLayerNormalization GroupNorm GroupNormalization SkipGroupNorm "
        "MeanVarianceNormalization RotaryEmbedding QLinearSigmoid QLinearLeakyRelu QLinearSoftmax QuantizeLinear DequantizeLinear Inverse Swish".split()
    )
    | QUANTISERS
)
"""Operators whose first result (and fourth, a sum) has the shape of the first input."""
STANDARD = {
    "QLinearAdd": ("Add", slice(0, 4, 3)),
    "QLinearMul": ("Mul", slice(0, 4, 3)),
    "QLinearConcat": ("Concat", slice(2, None, 3)),
    "QLinearAveragePool": ("AveragePool", slice(0, 1)),
    "NhwcMaxPool": ("MaxPool", slice(0, 1)),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", slice(0, 1)),
    "QLinearReduceMean": ("ReduceMean", slice(0, 1)),
    "QLinearConv": ("Conv", slice(0, 4, 3)),
    "FusedConv": ("Conv", slice(0, 2)),
    "FusedGemm": ("Gemm", slice(0, 2)),
    "GemmFastGelu": ("MatMul", slice(0, 2)),
    "QGemm": ("Gemm", slice(0, 4, 3)),
    "DynamicQuantizeMatMul": ("MatMul", slice(0, 2)),
    "MatMulIntegerToFloat": ("MatMul", slice(0, 2)),
    "MatMulInteger16": ("MatMul", slice(0, 2)),
}
"""Operator -> the operator of ONNX with the same result shape, and the inputs it has."""
FLOATING = frozenset(
    "MatMulIntegerToFloat QAttention EmbedLayerNormalization QEmbedLayerNormalization DequantizeLinear "
    "GatherBlockQuantized".split()
)
"""Operators with a float result and other inputs; elsewhere the result has the first input's type."""
_OPSET = 13

Inputs = Sequence[Shape | None]
"""Shapes of the inputs; None: left out, or not known."""
Shapes = Sequence[Shape | None]
"""Shapes of the first results; None: not known."""


def inferred(node: NodeProto, types: Mapping[str, TypeProto]) -> Mapping[str, TypeProto]:
    """Return the types of the results that are known."""
    kind = node.op_type
    shapes: Shapes
    try:
        inputs = [_shape(types[value]) if value else None for value in node.input]
        typed = types[node.input[0]].tensor_type.elem_type
        if node.domain == BLOCKED:
            shapes = [_of_blocks(node, inputs)]
        elif node.domain not in DOMAINS and kind not in QUANTISERS:
            return {}
        elif kind in STANDARD:
            standard, places = STANDARD[kind]
            typed = types[node.input[places][0]].tensor_type.elem_type
            shapes = [_of_standard(standard, node, inputs[places])]
        elif kind in SAME:
            shapes = [inputs[0], None, None, inputs[0]]
        elif kind in SPECIAL:
            shapes = SPECIAL[kind](node, inputs)
        else:
            return {}
    except MemoryError:
        raise
    except Exception:  # a malformed operator is reported when it is mapped
        return {}
    if kind == "QuantizeLinear":
        typed = types[node.input[2]].tensor_type.elem_type if len(node.input) > 2 else TensorProto.UINT8
    return {
        value: helper.make_tensor_type_proto(TensorProto.FLOAT if kind in FLOATING else typed, shape)
        for value, shape in zip(node.output, shapes, strict=False)
        if value and shape is not None
    }


def _shape(value_type: TypeProto) -> Shape | None:
    sizes = value_type.tensor_type.shape.dim
    if not value_type.tensor_type.HasField("shape") or not all(size.HasField("dim_value") for size in sizes):
        return None
    return tuple(size.dim_value for size in sizes)


def _of_standard(kind: str, node: NodeProto, inputs: Sequence[Shape | None]) -> Shape:
    """Return the shape of the result of ONNX's operator with the same attributes."""
    attributes = attributes_of(node)
    turned = bool(attributes.pop("channels_last", node.op_type.startswith("Nhwc"))) and kind != "Concat"
    schema = defs.get_schema(kind, _OPSET, "")
    attributes = {name: value for name, value in attributes.items() if name in schema.attributes}
    shapes = [_given(shape) for shape in inputs]
    shapes[0] = channels_first(shapes[0]) if turned else shapes[0]
    given = {f"x{place}": helper.make_tensor_type_proto(TensorProto.FLOAT, shape) for place, shape in enumerate(shapes)}
    plain = helper.make_node(kind, list(given), ["y"], **attributes)
    outputs = infer_node_outputs(schema, plain, given, opset_imports=[helper.make_opsetid("", _OPSET)])
    result = _given(_shape(outputs["y"]))
    return (result[0], *result[2:], result[1]) if turned else result


def _of_blocks(node: NodeProto, inputs: Sequence[Shape | None]) -> Shape:
    """Return the shape of the result of an operator on blocks of channels."""
    attributes, data = attributes_of(node), _given(inputs[0])
    match node.op_type:
        case "ReorderInput":
            return channels_first(data) if attributes.get("channels_last") else data
        case "ReorderOutput":
            result = (data[0], int(attributes["channels"]), *data[2:])
            return (result[0], *result[2:], result[1]) if attributes.get("channels_last") else result
        case "Upsample":
            return tuple(size * int(scale) for size, scale in zip(data, attributes["scales"], strict=True))
    return _of_standard(node.op_type, node, inputs[: 2 if node.op_type == "Conv" else 1])


def channels_first(shape: Shape) -> Shape:
    """Return a shape N, ..., C as N, C, ..."""
    return (shape[0], shape[-1], *shape[1:-1])


def fused_operands(node: NodeProto, a: Shape, b: Shape) -> tuple[Shape, Shape]:
    """Return the shapes of a FusedMatMul's operands after the transpositions in its attributes."""
    attributes = attributes_of(node)

    def turned(shape: Shape, side: str) -> Shape:
        if attributes.get(f"transBatch{side}"):
            shape = (*shape[1:-1], shape[0], shape[-1])
        return (*shape[:-2], shape[-1], shape[-2]) if attributes.get(f"trans{side}") else shape

    return turned(a, "A"), turned(b, "B")


def _given(shape: Shape | None) -> Shape:
    if shape is None:
        raise ValueError("the shape is not known")
    return shape


def _fused_matmul(node: NodeProto, inputs: Inputs) -> Shapes:
    a, b = fused_operands(node, _given(inputs[0]), _given(inputs[1]))
    return [(*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])]


def _with_width(name: str) -> Callable[[NodeProto, Inputs], Shapes]:
    def shapes(node: NodeProto, inputs: Inputs) -> Shapes:
        return [(*_given(inputs[0])[:-1], int(attributes_of(node)[name]))]

    return shapes


def _attention(node: NodeProto, inputs: Inputs) -> Shapes:
    batch, tokens, _ = _given(inputs[0])
    widths = attributes_of(node).get("qkv_hidden_sizes")
    return [(batch, tokens, int(widths[2]) if widths else _given(inputs[1])[1] // 3)]


def _multi_head(node: NodeProto, inputs: Inputs) -> Shapes:
    query = _given(inputs[0])
    value = inputs[2] if len(inputs) > 2 else None
    if len(query) == 5:  # queries, keys and values in one tensor: batch, tokens, heads, 3, channels
        return [(query[0], query[1], query[2] * query[4])]
    width = query[2] if value is None else value[2] if len(value) == 3 else value[1] * value[3]
    return [(query[0], query[1], width)]


def _grouped(node: NodeProto, inputs: Inputs) -> Shapes:
    (batch, tokens, width), attributes = _given(inputs[0]), attributes_of(node)
    heads, groups = int(attributes["num_heads"]), int(attributes["kv_num_heads"])
    head = width // heads if inputs[1] is not None else width // (heads + 2 * groups)
    past = inputs[3][2] if len(inputs) > 3 and inputs[3] is not None else 0
    present = (batch, groups, past + tokens, head)
    return [(batch, tokens, heads * head), present, present]


def _embedding(node: NodeProto, inputs: Inputs) -> Shapes:
    result = (*_given(inputs[0]), _given(inputs[2])[-1])
    return [result, result[:1], result]


def _gather(node: NodeProto, inputs: Inputs) -> Shapes:
    attributes, data, indices = attributes_of(node), _given(inputs[0]), _given(inputs[1])
    axis = int(attributes.get("gather_axis", 0)) % len(data)
    rest = list(data[axis + 1 :])
    scales = _given(inputs[2])
    block = int(attributes.get("block_size", 128))
    if rest and rest[-1] * 2 <= scales[-1] * block:  # two values of 4 bits in a byte
        rest[-1] *= 2
    return [(*data[:axis], *indices, *rest)]


def _lstm(node: NodeProto, inputs: Inputs) -> Shapes:
    (steps, batch, _), recurrent = _given(inputs[0]), _given(inputs[2])
    last = (recurrent[0], batch, recurrent[1])
    return [(steps, recurrent[0], batch, recurrent[1]), last, last]


def _half(node: NodeProto, inputs: Inputs) -> Shapes:
    shape = _given(inputs[0])
    return [(*shape[:-1], shape[-1] // 2)]


SPECIAL: dict[str, Callable[[NodeProto, Inputs], Shapes]] = {
    "FusedMatMul": _fused_matmul,
    "TransposeMatMul": _fused_matmul,
    "MatMulNBits": _with_width("N"),
    "MatMulBnb4": _with_width("N"),
    "Attention": _attention,
    "QAttention": _attention,
    "MultiHeadAttention": _multi_head,
    "GroupQueryAttention": _grouped,
    "EmbedLayerNormalization": _embedding,
    "GatherBlockQuantized": _gather,
    "DynamicQuantizeLSTM": _lstm,
    "BiasSplitGelu": _half,
}
