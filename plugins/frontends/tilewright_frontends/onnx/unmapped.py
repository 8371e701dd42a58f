"""Reasons why operators are not mapped, and estimates of their scalar operations.

The estimates only serve to show an operator's fraction of the work.
"""

from __future__ import annotations

import math
from collections import Counter
from importlib.metadata import version
from typing import TYPE_CHECKING

from onnx import NodeProto, defs

from tilewright_frontends.onnx.microsoft import QUANTISERS
from tilewright_frontends.onnx.node import (
    attributes_of,
    graphs_of,
    is_standard,
    label_of,
    operator_of,
    operators_within,
)

if TYPE_CHECKING:
    from tilewright_frontends.onnx.graph import Graph

PLUMBING = frozenset(
    "Constant ConstantOfShape Identity Shape Size Reshape Flatten Squeeze Unsqueeze Transpose Concat Split Slice Gather "
    "GatherElements GatherND ScatterElements ScatterND Expand Tile Pad Cast CastLike Dropout DepthToSpace SpaceToDepth "
    "Range NonZero OneHot EyeLike Compress ReverseSequence Trilu SequenceConstruct SequenceAt SequenceEmpty SequenceInsert "
    "SequenceErase SequenceLength SplitToSequence ConcatFromSequence Optional OptionalGetElement OptionalHasElement "
    "CenterCropPad TensorScatter Scatter BitCast ExpandDims ReorderInput ReorderOutput".split()
)
WINDOWS = frozenset("MaxPool AveragePool LpPool QLinearAveragePool NhwcMaxPool".split())
REDUCTIONS = frozenset(
    "GlobalAveragePool GlobalMaxPool GlobalLpPool ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 "
    "ReduceLogSum ReduceLogSumExp ReduceSumSquare ArgMax ArgMin QLinearGlobalAveragePool QLinearReduceMean".split()
)
CONTROL = frozenset("If Loop Scan SequenceMap".split())
WORK: dict[str, int] = dict.fromkeys(
    "Relu LeakyRelu PRelu ThresholdedRelu Clip Abs Neg Add Sub Mul Div Max Min Sum Mean Mod Pow Sqrt Reciprocal Exp Log "
    "Sin Cos Tan Floor Ceil Round Sign Not And Or Xor Equal Greater Less GreaterOrEqual LessOrEqual Where IsNaN IsInf "
    "BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Upsample Resize CumSum CumProd QLinearAdd QLinearMul QLinearWhere "
    "BiasAdd BiasDropout GatherBlockQuantized".split(),
    1,
) | {
    "QLinearConcat": 4,
    "BiasSplitGelu": 8,
    "SkipGroupNorm": 7,
    "BatchNormalization": 2,
    "QuantizeLinear": 2,
    "DynamicQuantizeLinear": 4,
    "DequantizeLinear": 2,
    "Sigmoid": 4,
    "HardSigmoid": 3,
    "HardSwish": 4,
    "Tanh": 4,
    "Elu": 3,
    "Selu": 3,
    "Celu": 3,
    "Softplus": 3,
    "Softsign": 3,
    "Erf": 4,
    "Gelu": 6,
    "FastGelu": 6,
    "BiasGelu": 7,
    "QuickGelu": 5,
    "Swish": 5,
    "SwiGLU": 6,
    "Mish": 6,
    "Softmax": 5,
    "LogSoftmax": 5,
    "LRN": 8,
    "InstanceNormalization": 6,
    "LayerNormalization": 6,
    "GroupNormalization": 6,
    "GroupNorm": 6,
    "RMSNormalization": 4,
    "SimplifiedLayerNormalization": 4,
    "SkipSimplifiedLayerNormalization": 5,
    "SkipLayerNormalization": 7,
    "EmbedLayerNormalization": 8,
    "LpNormalization": 4,
    "MeanVarianceNormalization": 6,
    "RotaryEmbedding": 3,
    "QLinearSigmoid": 6,
    "QLinearLeakyRelu": 3,
    "QLinearSoftmax": 7,
    "BiasSoftmax": 6,
}
"""Approximate scalar operations per element of the result."""


def converts(graph: Graph, node: NodeProto) -> bool:
    """Return whether a cast changes the type of elements, as far as it is known."""
    kinds = [graph.elements.get(value, 0) for value in (*node.input[:1], *node.output[:1])]
    return node.op_type in ("Cast", "CastLike") and len(set(kinds)) == 2


def moves(graph: Graph, node: NodeProto) -> bool:
    """Return whether an operator moves or names words, and computes nothing."""
    operator = operator_of(node).removeprefix("com.microsoft.").removeprefix("nchwc.")
    if operator in ("Resize", "Upsample"):
        return bool(attributes_of(node).get("mode", b"nearest") == b"nearest")
    return operator in PLUMBING and not converts(graph, node)


def explain(graph: Graph, node: NodeProto) -> tuple[str, int | None]:
    """Return the reason, and the estimated scalar operations (None if unknown)."""
    operator = operator_of(node).removeprefix("com.microsoft.").removeprefix("nchwc.")
    result = _elements(graph, node.output[0]) if node.output else None
    if moves(graph, node):
        return "moves or names data, computes nothing", 0
    if operator in CONTROL or any(graphs_of(node)):
        return _control(graph, node), None
    if operator in REDUCTIONS:
        return "a reduction without weights", _elements(graph, node.input[0]) if node.input else None
    if operator in WINDOWS:
        window = math.prod(attributes_of(node).get("kernel_shape", ()))
        return "a window without weights", None if result is None else result * window
    if operator in ("Cast", "CastLike"):
        return "works element by element", result
    if operator in WORK:
        return "works element by element", None if result is None else result * WORK[operator]
    if node.op_type in QUANTISERS:
        return "works element by element", None if result is None else result * WORK["DynamicQuantizeLinear"]
    if not is_standard(node):
        return f"an unknown operator of the domain '{node.domain}'; it may contain a product of tensors", None
    if not defs.has(node.op_type):
        return f"unknown to the installed onnx {version('onnx')}; it may contain a product of tensors", None
    return "not a product of tensors over affine loops", None


def _control(graph: Graph, node: NodeProto) -> str:
    """Return the reason for control flow, with the operators inside that compute something."""
    counts = Counter(
        operator for operator in operators_within(node) if operator not in PLUMBING | CONTROL | WORK.keys()
    )
    texts = [operator if count == 1 else f"{operator} ({count})" for operator, count in counts.items()]
    inside = f", with {', '.join(texts)}," if texts else ""
    numbers = f"; --size may set: {', '.join(graph.numbers)}" if graph.numbers else ""
    choice = f"; --branch {label_of(node)}=then (or else) reads one" if node.op_type == "If" else ""
    return f"control flow that sizes do not decide: its subgraphs{inside} are not read{numbers}{choice}"


def _elements(graph: Graph, value: str) -> int | None:
    return math.prod(graph.shapes[value]) if value in graph.shapes else None
