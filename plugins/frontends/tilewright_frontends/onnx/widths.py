"""Bits per value of a product's tensors, from the element types in the graph.

Dequantised values have the width of the quantised data, and results that are quantised at once
have the width after that.
"""

from __future__ import annotations

import re

from onnx import NodeProto, TensorProto, numpy_helper

from tilewright.schema.problem import Problem
from tilewright_frontends.nests import SINGLE
from tilewright_frontends.onnx.graph import Graph
from tilewright_frontends.onnx.microsoft import QUANTISERS
from tilewright_frontends.products import Product

QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
MOVES = frozenset("Reshape Transpose Flatten Squeeze Unsqueeze Identity Slice Expand".split())
"""Operators between the quantised data and the product that do not change values."""
_WIDTH = re.compile(r"[A-Z]+?(\d+)")
_OTHER = {"FLOAT": 32, "DOUBLE": 64}


def with_widths(graph: Graph, product: Product) -> Problem:
    """Return the product's problem with the bits of its tensors; unchanged if all known widths are 32."""
    names, values = [tensor.name for tensor in product.problem.tensors], product.values
    widths: dict[str, int | None] = {}
    if len(names) == len(values):
        *operands, result = values
        bits = [*(_of_operand(graph, value) for value in operands), _of_result(graph, result)]
        widths = dict(zip(names, bits, strict=True)) | dict(product.bits)
    known = {name: bits for name, bits in widths.items() if bits is not None}
    if set(known.values()) <= {SINGLE}:
        return product.problem
    tensors = (tensor.model_copy(update={"bits": known.get(tensor.name)}) for tensor in product.problem.tensors)
    return product.problem.model_copy(update={"tensors": tuple(tensors)})


def _of_operand(graph: Graph, value: str) -> int | None:
    for _ in range(len(graph.nodes)):
        maker = graph.makers.get(value)
        if maker is not None and maker.op_type in QUANTISERS:
            return _of_quantiser(graph, maker)
        if maker is None or maker.op_type not in (*MOVES, DEQUANTIZE):
            break
        value = maker.input[0]
        if maker.op_type == DEQUANTIZE:
            break
    return _of_element(graph, value)


def _of_result(graph: Graph, value: str) -> int | None:
    readers = graph.readers.get(value, ())
    if readers and all(reader.op_type == QUANTIZE for reader in readers):
        value = readers[0].output[0]
    if readers and all(reader.op_type in QUANTISERS for reader in readers):
        return _of_quantiser(graph, readers[0])
    return _of_element(graph, value)


def _of_quantiser(graph: Graph, node: NodeProto) -> int | None:
    """Return the bits of a result of `Quant` or `BipolarQuant`; None if they are not known."""
    if node.op_type == "BipolarQuant":
        return 1
    known = graph.values.get(node.input[3]) if node.op_type in ("Quant", "IntQuant") and len(node.input) > 3 else None
    bits = 0 if known is None else float(numpy_helper.to_array(known).reshape(-1)[0])
    return int(bits) if bits in range(1, 65) else None


def _of_element(graph: Graph, value: str) -> int | None:
    name = TensorProto.DataType.Name(graph.elements.get(value, TensorProto.UNDEFINED))
    match = _WIDTH.match(name)
    return int(match[1]) if match else _OTHER.get(name)
