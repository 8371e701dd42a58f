"""Reasons why operators are not mapped, and estimates of their scalar operations.

The estimates only serve to show an operator's fraction of the work.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from onnx import GraphProto, NodeProto, helper

if TYPE_CHECKING:
    from tilewright_frontends.onnx.graph import Graph

PLUMBING = frozenset(
    "Constant ConstantOfShape Identity Shape Size Reshape Flatten Squeeze Unsqueeze Transpose Concat Split Slice Gather "
    "GatherElements GatherND ScatterElements ScatterND Expand Tile Pad Cast CastLike Dropout DepthToSpace SpaceToDepth "
    "Range NonZero OneHot EyeLike Compress ReverseSequence Trilu SequenceConstruct SequenceAt".split()
)
WINDOWS = frozenset("MaxPool AveragePool LpPool".split())
REDUCTIONS = frozenset(
    "GlobalAveragePool GlobalMaxPool GlobalLpPool ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 "
    "ReduceLogSum ReduceLogSumExp ReduceSumSquare ArgMax ArgMin".split()
)
CONTROL = frozenset("If Loop Scan SequenceMap".split())
WORK: dict[str, int] = dict.fromkeys(
    "Relu LeakyRelu PRelu ThresholdedRelu Clip Abs Neg Add Sub Mul Div Max Min Sum Mean Mod Pow Sqrt Reciprocal Exp Log "
    "Sin Cos Tan Floor Ceil Round Sign Not And Or Xor Equal Greater Less GreaterOrEqual LessOrEqual Where IsNaN IsInf "
    "BitShift Upsample Resize CumSum".split(),
    1,
) | {
    "BatchNormalization": 2,
    "QuantizeLinear": 2,
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
    "Mish": 6,
    "Softmax": 5,
    "LogSoftmax": 5,
    "LRN": 8,
    "InstanceNormalization": 6,
    "LayerNormalization": 6,
    "GroupNormalization": 6,
}
"""Approximate scalar operations per element of the result."""


def is_standard(node: NodeProto) -> bool:
    """Return whether the operator is of ONNX's own domain."""
    return node.domain in ("", "ai.onnx")


def operator_of(node: NodeProto) -> str:
    """Return the operator's name, with its domain unless that is ONNX's: `com.microsoft.FusedConv`."""
    return node.op_type if is_standard(node) else f"{node.domain}.{node.op_type}"


def attributes_of(node: NodeProto) -> dict[str, Any]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def explain(graph: Graph, node: NodeProto) -> tuple[str, int | None]:
    """Return the reason, and the estimated scalar operations (None if unknown)."""
    operator = operator_of(node)
    result = _elements(graph, node.output[0]) if node.output else None
    if operator in PLUMBING:
        return "moves or names data, computes nothing", 0
    if operator in CONTROL or any(graphs_of(node)):
        return _control(graph, node), None
    if operator in REDUCTIONS:
        return "a reduction without weights", _elements(graph, node.input[0]) if node.input else None
    if operator in WINDOWS:
        window = math.prod(attributes_of(node).get("kernel_shape", ()))
        return "a window without weights", None if result is None else result * window
    if operator in WORK:
        return "works element by element", None if result is None else result * WORK[operator]
    if node.domain not in ("", "ai.onnx"):
        return f"an operator of the unknown domain '{node.domain}'", None
    return "not a product of tensors over affine loops", None


def _control(graph: Graph, node: NodeProto) -> str:
    """Return the reason for control flow, with the operators inside that compute something."""
    counts = Counter(each for each in operators_within(node) if each not in PLUMBING | CONTROL | WORK.keys())
    found = [each if count == 1 else f"{each} ({count})" for each, count in counts.items()]
    inside = f", with {', '.join(found)}," if found else ""
    numbers = f"; --size may set: {', '.join(graph.numbers)}" if graph.numbers else ""
    return f"control flow that sizes do not decide: its subgraphs{inside} are not read{numbers}"


def graphs_of(node: NodeProto) -> Iterator[GraphProto]:
    """Yield the subgraphs of an operator, such as the branches of an `If`."""
    for attribute in node.attribute:
        yield from attribute.graphs
        if attribute.HasField("g"):
            yield attribute.g


def operators_within(node: NodeProto) -> list[str]:
    """Return the names of all operators in the subgraphs of a node."""
    found, waiting = list[str](), list(graphs_of(node))
    while waiting:
        for each in waiting.pop().node:
            found.append(operator_of(each))
            waiting += graphs_of(each)
    return found


def _elements(graph: Graph, value: str) -> int | None:
    return math.prod(graph.shapes[value]) if value in graph.shapes else None
