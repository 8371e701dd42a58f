"""Vector layers of operations of MLIR: of the dialects `onnx` and `torch`, and word by word of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.errors import TilewrightError
from tilewright.schema.origin import Origin
from tilewright.schema.vector import VectorLayer
from tilewright_frontends.mlir import aten, comet, moves, onnx_dialect
from tilewright_frontends.mlir.tree import OpenShape, Operation, Value
from tilewright_frontends.onnx.vectors import vector_of as of_onnx
from tilewright_frontends.pt2.vectors import vector_of as of_aten
from tilewright_frontends.vectors import NO_ROW, NO_SHAPE, vector_layer

NAMES = {
    **{name: name.capitalize() for name in "add sub mul div erf exp log sigmoid tanh floor ceil abs softmax".split()},
    "subtract": "Sub",
    "multiply": "Mul",
    "elews_mul": "Mul",
    "divide": "Div",
    "maximum": "Max",
    "minimum": "Min",
    "max": "Max",
    "min": "Min",
    "exponential": "Exp",
    "cosine": "Cos",
    "sine": "Sin",
    "logistic": "Sigmoid",
    "power": "Pow",
    "pow": "Pow",
    "negate": "Neg",
    "rsqrt": "Sqrt",
    "sqrt": "Sqrt",
    "reciprocal": "Reciprocal",
    "clamp": "Clip",
    "select": "Where",
    "reduce_max": "ReduceMax",
    "reduce_min": "ReduceMin",
    "reduce_sum": "ReduceSum",
    "reduce_prod": "ReduceProd",
    "reduce_product": "ReduceProd",
}
"""Operation of `stablehlo`, `mhlo`, `tosa` or `ta` -> the name of the same work in the table of operations."""
DIALECTS = ("stablehlo.", "mhlo.", "tosa.", comet.PREFIX)


def vector_of(
    operation: Operation,
    name: str,
    shape_of: Callable[[Value], OpenShape | None],
    maker: Callable[[Value], Operation | None],
    times: int,
    origin: Origin,
) -> VectorLayer | str:
    """Return the vector layer of an operation, or why it has none."""
    if operation.regions or not operation.results:
        return NO_ROW
    if operation.name.startswith(onnx_dialect.PREFIX):
        shapes = [shape_of(value) for value in (*operation.operands, *operation.results)]
        try:
            graph = onnx_dialect.graph(operation, shapes, maker, name, name)
        except TilewrightError as error:
            return str(error)
        computed = {f"x{place}" for place, value in enumerate(operation.operands) if not _is_constant(maker(value))}
        return of_onnx(graph, graph.nodes[0], name, times, computed, origin) if graph.nodes else NO_SHAPE
    if operation.name.startswith(aten.PREFIX):
        node, _ = aten.call(operation, lambda value: moves.fixed(shape_of(value)), maker)
        return of_aten(node.operator, node.arguments, node.shapes.get, node.results, name, origin, times)
    kind = NAMES.get(operation.kind.lower()) if operation.name.startswith(DIALECTS) else None
    result = moves.fixed(shape_of(operation.results[0]))
    operands = operation.operands[:2] if operation.name.startswith(comet.PREFIX) else operation.operands  # then labels
    given = [moves.fixed(shape_of(value)) for value in operands if not value.buffer]
    known = [shape for shape in given if shape is not None]
    if kind in (None, "Softmax"):
        return NO_ROW
    if result is None or len(known) < len(given):
        return NO_SHAPE
    return vector_layer(name, kind or "", [(shape, False) for shape in known], result, count=times, origin=origin)


def _is_constant(operation: Operation | None) -> bool:
    return operation is not None and operation.kind.lower() in ("constant", "const")


def unordered(layers: Sequence[VectorLayer]) -> tuple[VectorLayer, ...]:
    """Return vector layers that do not state what they read, as in a module with buffers, which are written in place."""
    return tuple(layer.model_copy(update={"after": None, "before": ()}) for layer in layers)
