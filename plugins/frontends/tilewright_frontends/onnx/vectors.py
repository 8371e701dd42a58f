"""Vector layers of ONNX operators."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
from onnx import NodeProto, numpy_helper

from tilewright.schema.origin import Origin
from tilewright.schema.vector import VectorLayer
from tilewright_frontends.onnx.graph import Graph
from tilewright_frontends.onnx.node import attributes_of, operator_of
from tilewright_frontends.vectors import NORMS, SOFTMAX, vector_layer

NAMES = {
    "FastGelu": "Gelu",
    "SimplifiedLayerNormalization": "RMSNormalization",
    "NhwcMaxPool": "MaxPool",
    "GroupNorm": "GroupNormalization",
}
"""Operator -> the name of the same work in the table of operations, if it differs."""


def vector_of(
    graph: Graph, node: NodeProto, name: str, times: int, computed: Collection[str], origin: Origin
) -> VectorLayer | None:
    """Return the vector layer of an operator; None: it has none, or a shape is not known.

    Args:
        computed: values that depend on inputs of the network.
    """
    operator = operator_of(node).removeprefix("com.microsoft.").removeprefix("nchwc.")
    operator = NAMES.get(operator, operator)
    shapes = graph.shapes
    if not node.output or node.output[0] not in shapes or not node.input or node.input[0] not in shapes:
        return None
    data, attributes = shapes[node.input[0]], attributes_of(node)
    if operator == "DequantizeLinear" and node.input[0] not in computed:
        return None  # weights, which are stored once
    if operator == "Pow" and _number(graph, node, 1) == 2:
        operator = "Mul"
    row = first = 1
    if operator in SOFTMAX or operator in ("LayerNormalization", "RMSNormalization"):
        older = operator in SOFTMAX and graph.opset < 13
        axis = int(attributes.get("axis", 1 if older else -1)) % max(len(data), 1)
        row = math.prod(data[axis:]) if older or operator in NORMS else data[axis]
    elif operator == "InstanceNormalization":
        row = math.prod(data[2:])
    elif operator == "GroupNormalization":
        groups = int(attributes.get("num_groups", attributes.get("groups", 1)))
        row = math.prod(data[1:]) // max(groups, 1)
    elif operator in ("MaxPool", "AveragePool"):
        row = math.prod(attributes.get("kernel_shape", ()))
    elif operator == "TopK":
        first = shapes[node.output[0]][int(attributes.get("axis", -1))]
    inputs = [value for value in node.input if value in shapes]
    if operator == "RotaryEmbedding":
        inputs = [value for place, value in enumerate(inputs) if not place or len(shapes[value]) > 1][:3]
    if operator in ("Sum", "Max", "Min") and len(inputs) > 2:
        return None
    operands = [(shapes[value], value not in computed) for value in inputs]
    return vector_layer(
        name, operator, operands, shapes[node.output[0]], row=row, first=first, count=times, origin=origin
    )


def _number(graph: Graph, node: NodeProto, place: int) -> float | None:
    """Return the only number of an input, if it is known."""
    known = graph.values.get(node.input[place]) if len(node.input) > place else None
    values = np.ravel(numpy_helper.to_array(known)) if known is not None else np.zeros(0)
    return float(values[0]) if values.size == 1 else None
