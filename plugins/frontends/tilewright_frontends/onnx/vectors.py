"""Vector layers of ONNX operators."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from onnx import NodeProto, numpy_helper

from tilewright.schema.origin import Origin
from tilewright.schema.vector import OPERATORS, OperatorWork, VectorLayer
from tilewright_frontends.nests import Shape
from tilewright_frontends.onnx.graph import Graph
from tilewright_frontends.onnx.microsoft import QUANTISERS
from tilewright_frontends.onnx.node import attributes_of, is_standard, operator_of, values_read
from tilewright_frontends.onnx.unmapped import CONTROL, moves
from tilewright_frontends.vectors import (
    CONSTANT,
    NO_ROW,
    NO_SHAPE,
    Fused,
    interpolation,
    unless_contradicting,
    vector_layer,
)

NAMES = {
    "FastGelu": "Gelu",
    "SimplifiedLayerNormalization": "RMSNormalization",
    "NhwcMaxPool": "MaxPool",
    "GroupNorm": "GroupNormalization",
    "CastLike": "Cast",
    "Upsample": "Resize",
    "GatherBlockQuantized": "DequantizeLinear",
    **dict.fromkeys(("BiasAdd", "BiasDropout"), "Sum"),
}
"""Operator -> the name of the same work in the table of operations, if it differs."""
_IN, _OUT = ("DequantizeLinear",), ("QuantizeLinear",)
FUSED = {
    "BiasGelu": Fused(("Add",), "Gelu"),
    "BiasSoftmax": Fused(("Add",), "Softmax"),
    "BiasSplitGelu": Fused(("Add", "Add", "Gelu"), "Mul"),
    "SkipLayerNormalization": Fused(("Add",), "LayerNormalization"),
    "SkipSimplifiedLayerNormalization": Fused(("Add",), "RMSNormalization"),
    "SkipGroupNorm": Fused(("Add",), "GroupNormalization"),
    "EmbedLayerNormalization": Fused(("Add", "Add"), "LayerNormalization"),
    "QLinearAdd": Fused(_IN * 2, "Add", _OUT),
    "QLinearMul": Fused(_IN * 2, "Mul", _OUT),
    "QLinearWhere": Fused(_IN, "Where", _OUT),
    **{
        f"QLinear{name}": Fused(_IN, name, _OUT)
        for name in ("Sigmoid", "LeakyRelu", "Softmax", "AveragePool", "GlobalAveragePool", "ReduceMean")
    },
    "QLinearConcat": Fused((), "DequantizeLinear", _OUT),
    **dict.fromkeys(("Quant", "IntQuant", "FloatQuant", "Trunc"), Fused((), "DequantizeLinear", _OUT)),
    "BipolarQuant": Fused(("Sign",), "Mul"),
}
"""Operator -> the operators whose work it does at once."""
WHOLE = frozenset("QLinearConcat GatherBlockQuantized EmbedLayerNormalization".split())
"""Operators that work on the elements of the result, which they collect from their operands."""
FROM_AXIS = frozenset("LayerNormalization RMSNormalization".split())
ALONG_AXIS = frozenset("Softmax LogSoftmax Hardmax LpNormalization".split())
FLAT = frozenset("Softmax LogSoftmax Hardmax".split())
"""Operators whose rows were all axes from `axis` on, before version 13."""
DATA_DEPENDENT = "its work depends on the data"
WHY = {
    **dict.fromkeys("NonMaxSuppression Unique MaxUnpool".split(), DATA_DEPENDENT),
    **dict.fromkeys(
        "RoiAlign MaxRoiPool GridSample AffineGrid Col2Im".split(), "it reads at positions that are computed"
    ),
    **dict.fromkeys("DFT STFT Det MelWeightMatrix Inverse".split(), "it contains products, which are not mapped"),
    **dict.fromkeys("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss".split(), "a loss, for training"),
    **dict.fromkeys(
        "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Bernoulli Multinomial".split(),
        "it draws random numbers",
    ),
    **dict.fromkeys("BlackmanWindow HammingWindow HannWindow".split(), "its result is a constant"),
    **dict.fromkeys(
        "RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer".split(), "it works on text"
    ),
    "ImageDecoder": "it decodes a file",
}
"""Operator -> why the table of operations has no row for it."""


@unless_contradicting
def vector_of(
    graph: Graph, node: NodeProto, name: str, times: int, computed: Collection[str], origin: Origin
) -> VectorLayer | str:
    """Return the vector layer of an operator, or why it has none; nothing of one that moves words or is control flow.

    Args:
        computed: values that depend on inputs of the network.
    """
    called = operator_of(node).removeprefix("com.microsoft.").removeprefix("nchwc.")
    called = node.op_type if node.op_type in QUANTISERS else called
    operator, shapes = NAMES.get(called, called), graph.shapes
    fused = FUSED.get(called)
    if moves(graph, node) or called in CONTROL:
        return ""
    if fused is None and operator not in OPERATORS and called != "MultiThreshold":
        return WHY.get(called, NO_ROW)
    if not node.output or node.output[0] not in shapes or not node.input or node.input[0] not in shapes:
        return NO_SHAPE
    if node.output[0] in graph.values:
        return "its result follows from sizes and constants"
    if all(value not in computed for value in values_read(node)):
        return CONSTANT
    data, result, attributes = shapes[node.input[0]], shapes[node.output[0]], attributes_of(node)
    inputs = [value for value in node.input if value in shapes]
    operands = [(shapes[value], value not in computed) for value in inputs]
    work = None
    if called == "MultiThreshold":  # a comparison for each threshold, and a sum
        count = shapes[node.input[1]][-1]
        work = OperatorWork.model_validate({"element": {"compare": count, "add": count}, "source": "thresholds"})
        operator, operands = "Relu", operands[:1]
    elif called in WHOLE:
        data, operands = result, [(result, False)]
    elif called == "SkipGroupNorm" and fused is not None:
        operands = [operands[0], operands[3], *operands[1:3]]
    elif called.startswith("Skip") and fused is not None and len(operands) > 4 - ("Simplified" in called):
        fused = Fused((*fused.first, "Add"), fused.main)  # of a bias
    elif called == "BiasSplitGelu":
        operands = [(result, False), *operands]
    if operator == "Pow" and _number(graph, node, 1) == 2:
        operator = "Mul"
    if operator == "RotaryEmbedding":
        operands = [pair for place, pair in enumerate(operands) if not place or len(pair[0]) > 1][:3]
    if operator == "Resize":
        axes = sum(before != after for before, after in zip(data, result, strict=False))
        if attributes.get("mode", b"nearest") not in (b"linear", b"bilinear") or not axes or len(data) != len(result):
            return "it interpolates otherwise than linearly"
        return vector_layer(
            name, operator, operands[:1], result, row=2**axes, count=times, origin=origin, work=interpolation(axes)
        )
    row, first = _row(graph, node, fused.main if fused else operator, data, attributes)
    if not row:
        return "the table of operations has no row for its axes or its exponent"
    return vector_layer(
        name,
        fused or operator,
        operands,
        result,
        row=row,
        first=first,
        count=times,
        origin=origin,
        called=called,
        work=work,
    )


def _row(graph: Graph, node: NodeProto, operator: str, data: Shape, attributes: Mapping[str, Any]) -> tuple[int, int]:
    """Return the elements of a row, and how many of the largest are wanted. A row of 0: the table has no such form."""
    if int(attributes.get("p", 2)) != 2 and operator.startswith(("Lp", "GlobalLp")):
        return 0, 1
    if operator in FROM_AXIS:
        return math.prod(data[int(attributes.get("axis", -1)) % len(data) :]), 1
    if operator in ALONG_AXIS:
        older = operator in FLAT and graph.opset < 13 and is_standard(node) or node.op_type == "BiasSoftmax"
        axis = int(attributes.get("axis", 1 if older else -1)) % len(data)
        return math.prod(data[axis:]) if older else data[axis], 1
    match operator:
        case "CumSum" | "CumProd":
            along = _number(graph, node, 1)
            return (0 if along is None else data[int(along) % len(data)]), 1
        case "DynamicQuantizeLinear":
            return math.prod(data), 1
        case "InstanceNormalization":
            return math.prod(data[2:]), 1
        case "MeanVarianceNormalization":
            return math.prod(data[axis] for axis in attributes.get("axes", (0, 2, 3))), 1
        case "GroupNormalization":
            groups = int(attributes.get("num_groups", attributes.get("groups", 1)))
            return math.prod(data[1:]) // max(groups, 1), 1
        case "MaxPool" | "AveragePool" | "LpPool":
            return math.prod(attributes.get("kernel_shape", ())), 1
        case "LRN":
            return int(attributes["size"]), 1
        case "TopK":
            return 1, graph.shapes[node.output[0]][int(attributes.get("axis", -1))]
    return 1, 1


def _number(graph: Graph, node: NodeProto, place: int) -> float | None:
    """Return the only number of an input, if it is known."""
    known = graph.values.get(node.input[place]) if len(node.input) > place else None
    values = np.ravel(numpy_helper.to_array(known)) if known is not None else np.zeros(0)
    return float(values[0]) if values.size == 1 else None
