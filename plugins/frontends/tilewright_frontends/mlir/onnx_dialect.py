"""Operators of ONNX, in the dialect of onnx-mlir or wrapped by the torch dialect, read as those of ONNX files."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from onnx import NodeProto, TensorProto, ValueInfoProto, defs, helper

from tilewright.schema.workload import Unmapped
from tilewright_frontends.mlir.tree import OpenShape, Operation, Value
from tilewright_frontends.onnx import read_operator
from tilewright_frontends.onnx.graph import Graph, graph_of
from tilewright_frontends.onnx.operators import BUILDERS
from tilewright_frontends.onnx.widths import with_widths
from tilewright_frontends.products import Parts

PREFIX, MICROSOFT = "onnx.", "com.microsoft"
ABSENT = ("onnx.NoValue", "torch.constant.none")
"""Operations in place of an optional operand that is absent."""
LOWERED = ("krnl", "zhigh", "zlow")
"""Dialects to which onnx-mlir lowers ONNX; they are not read."""
EMIT = "give the .onnx file, or print it before it is lowered: onnx-mlir --EmitONNXIR FILE.onnx"
_ELEMENTS = {
    1: TensorProto.BOOL,
    4: TensorProto.INT4,
    8: TensorProto.INT8,
    16: TensorProto.FLOAT16,
    32: TensorProto.FLOAT,
    64: TensorProto.DOUBLE,
}
"""Bits -> an element type of that width; shapes and widths are all that counts."""


def is_product(name: str) -> bool:
    """Return whether an operation is an operator of ONNX that has products."""
    kind = name.removeprefix(PREFIX)
    return name.startswith(PREFIX) and (f"{_domain(kind)}.{kind}" in BUILDERS or kind in BUILDERS)


def _domain(kind: str) -> str:
    """Return the domain of an operator: importers drop it. The name is ONNX's if that has such an operator."""
    return MICROSOFT if not defs.has(kind) and f"{MICROSOFT}.{kind}" in BUILDERS else ""


def graph(
    operation: Operation,
    shapes: Sequence[OpenShape | None],
    maker: Callable[[Value], Operation | None],
    name: str,
    where: str,
) -> Graph:
    """Return an ONNX graph of one operator, with the shapes of its operands and of its results, as far as they follow.

    Operands are `x0`, `x1`, ..., results `y0`, `y1`, ...

    Args:
        operation: an operator of the dialect.
        shapes: shapes of operands, then of results.
        maker: returns the operation that produces a value.
        name: name of the operator.
        where: start of messages.
    """
    absent = [(made := maker(value)) is not None and made.name in ABSENT for value in operation.operands]
    inputs = ["" if is_absent else f"x{place}" for place, is_absent in enumerate(absent)]
    outputs = [f"y{place}" for place in range(len(operation.results))]
    node = helper.make_node(
        operation.kind, inputs, outputs, name=name, domain=_domain(operation.kind), **_attributes(operation)
    )
    values = zip([*inputs, *outputs], [*operation.operands, *operation.results], shapes, strict=True)
    known = [_info(label, value.bits, shape) for label, value, shape in values if label and shape is not None]
    types = {info.name: info for info in known}
    model = helper.make_model(
        helper.make_graph(
            [node],
            name,
            [types[label] for label in inputs if label in types],
            [types[output] for output in outputs if output in types],
            list(_constants(operation, maker)),
        )
    )
    return graph_of(model, where, {})


def parts(graph: Graph, node: NodeProto, name: str) -> Parts:
    """Return the products of an operator, and what of it is not mapped. Raises InputError."""
    return [
        part if isinstance(part, Unmapped) else replace(part, problem=with_widths(graph, part))
        for part in read_operator(graph, node, name)
    ]


def _constants(operation: Operation, maker: Callable[[Value], Operation | None]) -> Iterator[TensorProto]:
    """Yield the operands that are small lists of whole numbers, such as the axes of a slice."""
    for place, value in enumerate(operation.operands):
        made = maker(value)
        constant = None if made is None else made.attributes.get("value")
        numbers = [number for number in constant if isinstance(number, int)] if isinstance(constant, tuple) else []
        sizes = [size for size in value.shape or () if size is not None]
        if value.shape is not None and len(sizes) == len(value.shape) and math.prod(sizes) == len(numbers) > 0:
            yield helper.make_tensor(f"x{place}", TensorProto.INT64, sizes, numbers)


def _attributes(operation: Operation) -> dict[str, Any]:
    """Return the attributes that are whole numbers, text, or lists of whole numbers."""
    return {
        key: value
        for key, value in operation.attributes.items()
        if key not in ("name", "domain", "overload", "doc_string", "onnx_node_name")
        and (
            isinstance(value, (int, str)) or (isinstance(value, tuple) and all(isinstance(item, int) for item in value))
        )
    }


def _info(name: str, bits: int | None, shape: OpenShape) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, _ELEMENTS.get(bits or 0, TensorProto.FLOAT), shape)
