"""Mapped operators of ONNX and ONNX Runtime: conversion to loop nests of `nests`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnx import NodeProto

from tilewright.schema.problem import Problem
from tilewright.schema.vector import VectorLayer
from tilewright.schema.workload import Unmapped
from tilewright_frontends import nests
from tilewright_frontends.nests import Shape, Unsupported, equal
from tilewright_frontends.onnx.graph import Graph
from tilewright_frontends.onnx.microsoft import BLOCKED, channels_first, fused_operands
from tilewright_frontends.onnx.node import attributes_of, operator_of
from tilewright_frontends.products import Product, attended, between, in_order, transposed_layouts
from tilewright_frontends.views import Layout


def _operands(node: NodeProto) -> tuple[str, str]:
    """Return the names of input and weights; QLinear operators have scales in between."""
    return node.input[0], node.input[3 if node.op_type in SCALED else 1]


SCALED = frozenset({"QLinearConv", "QLinearMatMul", "QGemm"})
"""Operators whose inputs are input, scale, zero point, weights, scale, zero point."""


def _product(
    node: NodeProto, problem: Problem, layouts: Mapping[str, Layout], bits: Mapping[str, int] | None = None
) -> list[Product | Unmapped]:
    return [Product(problem, (*_operands(node), node.output[0]), bits=bits or {}, layouts=layouts)]


# -- convolutions and products


def _conv(graph: Graph, node: NodeProto, name: str) -> list[Product | Unmapped]:
    data, weight = (graph.shape(value) for value in _operands(node))
    attributes, last = attributes_of(node), bool(attributes_of(node).get("channels_last"))
    data = channels_first(data) if last else data
    if node.domain == BLOCKED:
        data = (data[0], weight[1] * int(attributes.get("group", 1)), *data[2:])  # channels are padded in blocks
    groups = data[1] if node.op_type == "CausalConvWithState" else int(attributes.get("group", 1))
    strides, dilations = _windows(node, data, weight)
    equal(data[1], groups * weight[1], "channels of the input and of the weights differ")
    equal(weight[0] % groups, 0, f"{weight[0]} channels do not divide into {groups} groups")
    channels, result = (weight[0] // groups, weight[1]), graph.shape(node.output[0])
    positions = result[1:-1] if last else result[2:]
    problem = nests.convolution(name, data[0], groups, channels, positions, weight[2:], strides, dilations)
    if last or node.domain == BLOCKED or node.op_type == "CausalConvWithState":
        return _product(node, problem, {})
    pads = _pads(attributes, data[2:], positions, weight[2:], strides, dilations)
    return _product(node, problem, in_order(problem, Inputs=Layout(pads=pads)))


def _finished(builder: Builder) -> Builder:
    """Return a builder with the work that an operator does on its result: an activation, or a change of the type."""

    def build(graph: Graph, node: NodeProto, name: str) -> list[Product | Unmapped]:
        activation = attributes_of(node).get("activation", b"").decode()
        kind = ACTIVATIONS.get(activation, activation) or LAST.get(node.op_type, "")
        parts, result = builder(graph, node, name), graph.shapes.get(node.output[0])
        if not kind or result is None:
            return parts
        return [*parts, between(f"{name}.{kind.lower()}", kind, [result], result)]

    return build


LAST = {
    **dict.fromkeys(("QLinearConv", "QLinearMatMul", "QGemm"), "QuantizeLinear"),
    **dict.fromkeys(("DynamicQuantizeMatMul", "MatMulIntegerToFloat"), "DequantizeLinear"),
    "GemmFastGelu": "Gelu",
}
"""Operator -> what it does with its sums."""
ACTIVATIONS = {"silu": "Swish", "swish": "Swish", "none": ""}
"""Activation -> its name in the table of operations, if it differs."""


def _quantised(builder: Builder) -> Builder:
    """Return a builder with the quantisation of the first operand."""

    def build(graph: Graph, node: NodeProto, name: str) -> list[Product | Unmapped]:
        data, parts = graph.shape(node.input[0]), builder(graph, node, name)
        return [between(f"{name}.quantise", "DynamicQuantizeLinear", [data], data, row=math.prod(data)), *parts]

    return build


def _pads(
    attributes: Mapping[str, Any],
    data: Shape,
    positions: Shape,
    window: Shape,
    strides: Sequence[int],
    dilations: Sequence[int],
) -> tuple[int, ...]:
    """Return the padding in front of each spatial axis."""
    mode = attributes.get("auto_pad", b"NOTSET")
    if mode == b"VALID":
        return (0,) * len(data)
    if mode == b"NOTSET":
        return tuple(attributes.get("pads") or [0] * len(data))[: len(data)]
    spare = (
        max(0, (position - 1) * stride + (width - 1) * dilation + 1 - size)
        for size, position, width, stride, dilation in zip(data, positions, window, strides, dilations, strict=True)
    )
    return tuple((number + (mode == b"SAME_LOWER")) // 2 for number in spare)


def _deformed(graph: Graph, node: NodeProto, name: str) -> list[Product | Unmapped]:
    """Return the sampling of the input at computed positions, and the product of samples and weights."""
    data, weight, result = *(graph.shape(value) for value in node.input[:2]), graph.shape(node.output[0])
    groups = int(attributes_of(node).get("group", 1))
    equal(data[1], groups * weight[1], "channels of the input and of the weights differ")
    equal(weight[0] % groups, 0, f"{weight[0]} channels do not divide into {groups} groups")
    channels = weight[0] // groups, weight[1]
    positions, window = result[2:], weight[2:]
    nests.check_axes(len(positions))
    samples = data[0] * data[1], math.prod(positions), math.prod(window)
    reason, kind = "reads the input at positions from memory, and interpolates", operator_of(node)
    sampling = between(f"{name}.samples", "Resize", [data], samples, operator=kind, reason=reason, row=4)
    sampling = sampling.model_copy(update={"operations": 8 * math.prod(samples)})
    problem = nests.sampled_convolution(name, data[0], groups, channels, positions, window)
    return [sampling, Product(problem, ("", node.input[1], node.output[0]), layouts={"Outputs": Layout()})]


def _conv_transpose(graph: Graph, node: NodeProto, name: str) -> list[Product | Unmapped]:
    data, weight = (graph.shape(value) for value in _operands(node))
    groups = int(attributes_of(node).get("group", 1))
    strides, dilations = _windows(node, data, weight)
    equal(data[1], weight[0], "channels of the input and of the weights differ")
    equal(data[1] % groups, 0, f"{data[1]} channels do not divide into {groups} groups")
    channels = weight[1], data[1] // groups
    problem = nests.convolution(
        name, data[0], groups, channels, data[2:], weight[2:], strides, dilations, transposed=True
    )
    return _product(
        node, problem, transposed_layouts(problem, groups, weight, _cut(attributes_of(node), len(data) - 2))
    )


def _cut(attributes: Mapping[str, Any], axes: int) -> Sequence[int] | None:
    """Return the words at the front of the box that the result of a ConvTranspose lacks; None: not known."""
    if attributes.get("auto_pad", b"NOTSET") != b"NOTSET" or "output_shape" in attributes:
        return None
    pads: Sequence[int] = attributes.get("pads") or [0] * axes
    return pads[:axes]


def _windows(node: NodeProto, data: Shape, weight: Shape) -> tuple[Sequence[int], Sequence[int]]:
    """Return strides and dilations, one per spatial axis."""
    spatial = len(data) - 2
    equal(len(data), len(weight), "input and weights have different numbers of dimensions")
    nests.check_axes(spatial)
    attributes = attributes_of(node)
    return attributes.get("strides") or [1] * spatial, attributes.get("dilations") or [1] * spatial


def _unsupported(reason: str) -> Builder:
    def build(graph: Graph, node: NodeProto, name: str) -> list[Product | Unmapped]:
        raise Unsupported(reason)

    return build


def _gemm(graph: Graph, node: NodeProto, name: str) -> list[Product | Unmapped]:
    """Return a matrix product; the attributes may transpose either matrix.

    Some programs give it batches, which ONNX does not allow; they are those of MatMul.
    """
    a, b = (graph.shape(value) for value in _operands(node))
    attributes = attributes_of(node)
    turned = [bool(attributes.get(key)) for key in ("transA", "transB")]
    if len(a) < 2 or len(b) < 2:
        raise ValueError(f"Gemm needs matrices; found {len(a)} and {len(b)} dimensions")
    a, b = ((*shape[:-2], *shape[:-3:-1]) if turn else shape for shape, turn in zip((a, b), turned, strict=True))
    if max(len(a), len(b)) > 2:
        problem = nests.matmul(name, a, b)
        return _product(node, problem, {} if any(turned) else in_order(problem))
    problem = nests.gemm(name, a, b)
    layouts = {operand: Layout(order=(1, 0)) for operand, turn in zip("AB", turned, strict=True) if turn}
    return _product(node, problem, in_order(problem, **layouts))


def _matmul(graph: Graph, node: NodeProto, name: str) -> list[Product | Unmapped]:
    a, b = (graph.shape(value) for value in _operands(node))
    if node.op_type in ("FusedMatMul", "TransposeMatMul"):
        turned = fused_operands(node, a, b)
        problem = nests.matmul(name, *turned)
        return _product(node, problem, {} if any(attributes_of(node).values()) else in_order(problem))
    problem = nests.matmul(name, a, b)
    return _product(node, problem, in_order(problem))


def _packed_matmul(graph: Graph, node: NodeProto, name: str) -> list[Product | Unmapped]:
    """Return a product whose weights are packed: K x N values of 2 to 8 bits."""
    attributes = attributes_of(node)
    shape = int(attributes["K"]), int(attributes["N"])
    problem = nests.matmul(name, graph.shape(node.input[0]), shape)
    layouts = {"A": Layout(), "Z": Layout()}
    unpacked = between(f"{name}.dequantise", "DequantizeLinear", [shape], shape)
    return [unpacked, *_product(node, problem, layouts, {"B": int(attributes.get("bits", 4))})]


def _einsum(graph: Graph, node: NodeProto, name: str) -> list[Product | Unmapped]:
    equation = attributes_of(node)["equation"].decode()
    problem = nests.einsum(name, equation, [graph.shape(value) for value in node.input])
    return [Product(problem, (*node.input, node.output[0]), layouts=in_order(problem))]


# -- recurrent cells

GATES = {"LSTM": 4, "DynamicQuantizeLSTM": 4, "GRU": 3, "RNN": 1}


def _recurrent(graph: Graph, node: NodeProto, name: str) -> list[Product | Unmapped]:
    """Return the products of all gates: with the inputs of all steps, and with the state of each."""
    data, weight, recurrent = (graph.shape(value) for value in node.input[:3])
    equal(len(data), 3, f"{node.op_type} needs steps, batch and channels; dimensions found and expected")
    steps, batch = (data[1], data[0]) if attributes_of(node).get("layout") else data[:2]
    directions, inward, outward = weight if node.op_type.startswith("Dynamic") else (weight[0], weight[2], weight[1])
    hidden = outward // GATES[node.op_type]
    equal(data[2], inward, "channels of the input and of the weights differ")
    equal(
        math.prod(recurrent),
        directions * outward * hidden,
        "the recurrent weights have another size; found and expected",
    )
    if not steps:
        raise Unsupported("it has no steps: there is nothing to compute")
    x, w, r = node.input[:3]
    kind, state = node.op_type.removeprefix("DynamicQuantize"), (batch, hidden)
    operands = {"LSTM": 9, "GRU": 7, "RNN": 2}[kind]
    result = (batch, 2 * hidden) if kind == "LSTM" else state  # of an LSTM: state and cell
    gates = between(
        f"{name}.gates", kind, [state] * operands, state, operator=f"{kind}.gates", count=directions * steps
    )
    if isinstance(gates.vector, VectorLayer):
        gates = gates.model_copy(update={"vector": gates.vector.model_copy(update={"result": math.prod(result)})})
    if "activations" in attributes_of(node):
        gates = gates.model_copy(update={"vector": "it may have other activations than those of the table"})
    return [
        Product(nests.gemm(f"{name}.input", (steps * batch, inward), (inward, outward)), (x, w, ""), directions),
        Product(nests.gemm(f"{name}.state", (batch, hidden), (hidden, outward)), ("", r, ""), directions * steps),
        gates,
    ]


# -- attention


def _heads(shape: Shape, count: int) -> Shape:
    """Return batch, heads, tokens, channels, from that or from batch, tokens, all channels."""
    if len(shape) == 4:
        return shape
    batch, tokens, width = shape
    equal(width % count, 0, f"{width} channels do not divide into {count} heads")
    return batch, count, tokens, width // count


def _of_heads(shape: Shape) -> Layout:
    """Return the layout of batch, heads, tokens, channels in batch, tokens, all channels."""
    batch, heads, tokens, channels = shape
    return Layout((batch, tokens, heads, channels), (0, 2, 1, 3))


def _inputs(graph: Graph, node: NodeProto) -> list[Shape | None]:
    """Return the shapes of all inputs; None: left out."""
    return [graph.shape(value) if value else None for value in node.input] + [None] * (8 - len(node.input))


def _after(past: Shape | None, now: Shape) -> Shape:
    """Return the shape of cached and new tokens: batch, heads, tokens, channels."""
    return now if past is None else (*now[:2], past[-2] + now[2], now[3])


def _attention(graph: Graph, node: NodeProto, name: str) -> list[Product | Unmapped]:
    """Return ONNX's Attention: queries, keys and values with three or four dimensions."""
    query, key, value = (graph.shape(operand) for operand in node.input[:3])
    attributes = attributes_of(node)
    layouts = [Layout()] * 4
    if len(query) == 3:
        query = _heads(query, int(attributes["q_num_heads"]))
        key, value = (_heads(shape, int(attributes["kv_num_heads"])) for shape in (key, value))
        layouts = [_of_heads(shape) for shape in (query, key, value)]
        layouts.append(Layout((*query[:3], value[3]), (0, 2, 1, 3)))
    pasts = [graph.shape(past) if past else None for past in node.input[4:6]] or [None, None]
    key, value = _after(pasts[0], key), _after(pasts[-1], value)
    q, k, v = node.input[:3]
    return attended(name, query, key, value, (q, k, v, node.output[0]), layouts)


def _projected_attention(graph: Graph, node: NodeProto, name: str) -> list[Product | Unmapped]:
    """Return com.microsoft's Attention and QAttention, which project their input first."""
    (batch, tokens, inward), weight = graph.shape(node.input[0]), graph.shape(node.input[1])
    attributes = attributes_of(node)
    heads, widths = int(attributes["num_heads"]), attributes.get("qkv_hidden_sizes") or [weight[1] // 3] * 3
    equal(sum(widths), weight[1], "the sizes of queries, keys and values differ from the weights")
    past = node.input[8 if node.op_type == "QAttention" else 4 :][:1]
    shapes = [_heads((batch, tokens, width), heads) for width in widths]
    cached = graph.shape(past[0]) if past and past[0] else None
    key, value = (_after(cached, shape) for shape in shapes[1:])
    projection, made = nests.gemm(f"{name}.qkv", (batch * tokens, inward), weight), (batch * tokens, weight[1])
    scaled = [between(f"{name}.scaled", "DequantizeLinear", [made], made)] if node.op_type == "QAttention" else []
    return [
        Product(projection, (node.input[0], node.input[1], "")),
        *scaled,
        *attended(name, shapes[0], key, value, ("", "", "", node.output[0])),
    ]


def _multi_head(graph: Graph, node: NodeProto, name: str) -> list[Product | Unmapped]:
    """Return com.microsoft's MultiHeadAttention; keys and values may be packed or cached."""
    query, key, value, *_, past, past_value = _inputs(graph, node)[:8]
    heads, q, k, v = int(attributes_of(node)["num_heads"]), *[*node.input, "", ""][:3]
    if query is None:
        raise ValueError("it has no query")
    if len(query) == 5:  # batch, tokens, heads, 3, channels
        query = key = value = (query[0], query[2], query[1], query[4])
    elif key is not None and len(key) == 5:  # batch, tokens, heads, 2, channels
        key = value = (key[0], key[2], key[1], key[4])
    if key is None or value is None:
        raise ValueError("it has no keys or values")
    key, value = _after(past, _heads(key, heads)), _after(past_value, _heads(value, heads))
    return attended(name, _heads(query, heads), key, value, (q, k, v, node.output[0]))


def _grouped(graph: Graph, node: NodeProto, name: str) -> list[Product | Unmapped]:
    """Return com.microsoft's GroupQueryAttention; queries, keys and values may be packed."""
    query, key, value, past, past_value = _inputs(graph, node)[:5]
    attributes, (q, k, v) = attributes_of(node), node.input[:3]
    heads, groups = int(attributes["num_heads"]), int(attributes["kv_num_heads"])
    if query is None:
        raise ValueError("it has no query")
    if key is None or value is None:
        batch, _, tokens, head = _heads(query, heads + 2 * groups)
        query, key = (batch, heads, tokens, head), (batch, groups, tokens, head)
        value = key
    query, key = _heads(query, heads), _heads(key, groups)
    turned = [
        between(f"{name}.rotary_{side}", "RotaryEmbedding", [shape, shape[-2:], shape[-2:]], shape)
        for side, shape in (("q", query), ("k", key))
        if attributes.get("do_rotary")
    ]
    key, value = _after(past, key), _after(past_value, _heads(value, groups))
    return [*turned, *attended(name, query, key, value, (q, k, v, node.output[0]))]


Builder = Callable[[Graph, NodeProto, str], list[Product | Unmapped]]
"""A function from graph, node and layer name to products, each reading the previous one's result.

It raises Unsupported if there is no affine loop nest or a shape is unknown. It raises InputError
for open dimensions, and a Python error if the node contradicts itself.
"""

_MICROSOFT: dict[str, Builder] = {
    **dict.fromkeys(("FusedConv", "QLinearConv"), _finished(_conv)),
    **dict.fromkeys(("FusedGemm", "QGemm"), _finished(_gemm)),
    **dict.fromkeys(("FusedMatMul", "TransposeMatMul", "MatMulInteger16"), _matmul),
    **dict.fromkeys(("GemmFastGelu", "MatMulIntegerToFloat"), _finished(_matmul)),
    "DynamicQuantizeMatMul": _quantised(_finished(_matmul)),
    **dict.fromkeys(("MatMulNBits", "MatMulBnb4"), _packed_matmul),
    **dict.fromkeys(("Attention", "QAttention"), _projected_attention),
    "MultiHeadAttention": _multi_head,
    "GroupQueryAttention": _grouped,
    "DynamicQuantizeLSTM": _quantised(_recurrent),
}
_ONNX: dict[str, Builder] = {
    **dict.fromkeys(("Conv", "ConvInteger"), _conv),
    **dict.fromkeys(("QLinearConv", "CausalConvWithState"), _finished(_conv)),
    "ConvTranspose": _conv_transpose,
    "DeformConv": _deformed,
    "LinearAttention": _unsupported("products in a recurrence, which are not mapped"),
    "Gemm": _gemm,
    **dict.fromkeys(("MatMul", "MatMulInteger"), _matmul),
    "QLinearMatMul": _finished(_matmul),
    "Einsum": _einsum,
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
    "Attention": _attention,
    "ai.onnx.preview.FlexAttention": _attention,
}
BUILDERS = (
    _ONNX
    | {f"{BLOCKED}.Conv": _finished(_conv)}
    | {f"com.microsoft.{kind}": builder for kind, builder in _MICROSOFT.items()}
)
"""Operator, with its domain unless that is ONNX's -> builder."""


def builder_of(node: NodeProto) -> Builder | None:
    """Return the builder of an operator, or None if it is no product."""
    return BUILDERS.get(operator_of(node))
