"""Vector layers of operations of MLIR: of the dialects `onnx` and `torch`, and word by word of others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.errors import TilewrightError
from tilewright.schema.origin import Origin
from tilewright.schema.vector import OPERATORS, VectorLayer
from tilewright_frontends.mlir import aten, bodies, comet, moves, onnx_dialect
from tilewright_frontends.mlir.tree import Operation, Value
from tilewright_frontends.nests import Shape
from tilewright_frontends.onnx.vectors import vector_of as of_onnx
from tilewright_frontends.pt2.vectors import vector_of as of_aten
from tilewright_frontends.vectors import NO_ROW, NO_SHAPE, unless_contradicting, vector_layer

Makers = Callable[[Value], Operation | None]
REDUCTIONS = {
    **{f"reduce_{name}": f"Reduce{name.capitalize()}" for name in ("max", "min", "sum", "prod")},
    "reduce_product": "ReduceProd",
    **dict.fromkeys(("reduce_all", "reduce_any"), "ReduceMax"),
    "argmax": "ArgMax",
}
"""Reduction of `tosa` -> the name of the same work in the table of operations."""
POOLS = {"max_pool2d": "MaxPool", "avg_pool2d": "AveragePool"}
OF_TENSORFLOW = {"max": "ReduceMax", "min": "ReduceMin", "sum": "ReduceSum", "mean": "ReduceMean", "prod": "ReduceProd"}
DIALECTS = ("stablehlo.", "mhlo.", "chlo.", "tosa.", "tf.", "linalg.", "torch.prims.", comet.PREFIX)
WITH_BODY = frozenset("linalg.generic linalg.map linalg.reduce affine.for".split()) | {
    f"{dialect}.{kind}" for dialect in ("stablehlo", "mhlo") for kind in ("reduce", "reduce_window", "map")
}
WHY = {
    **dict.fromkeys("sort top_k topk".split(), "its work depends on how it is sorted"),
    **dict.fromkeys("fft rfft2d fft2d cholesky triangular_solve".split(), "it contains products, which are not mapped"),
    **dict.fromkeys("rng rng_bit_generator".split(), "it draws random numbers"),
    **dict.fromkeys(
        "all_reduce all_gather all_to_all reduce_scatter collective_permute".split(), "it joins several machines"
    ),
    "select_and_scatter": "it works backwards, for training",
    "table": "it looks values up",
}
"""Operation -> why the table of operations has no row for it."""


@unless_contradicting
def vector_of(
    operation: Operation,
    name: str,
    shape_of: bodies.Shapes,
    maker: Makers,
    times: int,
    origin: Origin,
) -> VectorLayer | str:
    """Return the vector layer of an operation, or why it has none."""
    if (kind := operation.kind.lower()) in WHY:
        return WHY[kind]
    if operation.name in WITH_BODY:
        return bodies.vector_of(operation, name, shape_of, lambda value: _is_constant(maker(value)), times, origin)
    if not operation.name.startswith("linalg.") and (operation.regions or not operation.results):
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
    return _of_dialect(operation, name, shape_of, maker, {"count": times, "origin": origin})


def _of_dialect(
    operation: Operation, name: str, shape_of: bodies.Shapes, maker: Makers, plain: Mapping[str, Any]
) -> VectorLayer | str:
    """Return the vector layer of an operation without a body; `plain` has its count and origin."""
    kind = operation.kind.lower()
    if not operation.name.startswith(DIALECTS):
        return NO_ROW
    made = operation.results[0] if operation.results else operation.operands[-1]  # a buffer that it writes
    result = moves.fixed(shape_of(made))
    given = [moves.fixed(shape_of(value)) for value in operation.operands if value.shape is not None]
    known = [shape for shape in given if shape is not None]
    if result is None or not known or len(known) < len(given):
        return NO_SHAPE
    reductions = REDUCTIONS | (OF_TENSORFLOW if operation.name.startswith("tf.") else {})
    if kind in reductions:
        return vector_layer(name, reductions[kind], [(known[0], False)], result, **plain)
    if kind in POOLS or kind.startswith("pooling_"):
        return _pooled(operation, name, known, result, plain)
    if kind == "softmax":
        axis = operation.attributes.get("dimension", -1)
        row = known[0][axis] if isinstance(axis, int) and -len(known[0]) <= axis < len(known[0]) else 0
        return vector_layer(name, "Softmax", [(known[0], False)], result, row=row, **plain)
    if operation.name.startswith("linalg."):
        known = known[:-1] or known  # the last one receives the result
    if kind in ("batch_norm_inference", "fusedbatchnormv3"):
        order = [(shape, place > 0) for place, shape in enumerate(known)]
        return vector_layer(name, "BatchNormalization", order, result, **plain)
    if kind in ("biasadd", "rescale"):
        return vector_layer(
            name, "Add" if kind == "biasadd" else "QuantizeLinear", [(one, False) for one in known], result, **plain
        )
    if kind in ("dot", "dot_general") and math.prod(known[0]) * math.prod(known[-1]) == math.prod(result):
        return vector_layer(name, "Mul", [(one, False) for one in known], result, **plain)  # an outer product
    parts = bodies.parts_of(kind)
    if not parts:
        return NO_ROW
    pairs = [(shape, _is_constant(maker(value))) for shape, value in zip(known, operation.operands, strict=False)]
    if len(parts) == 1:
        return vector_layer(name, parts[0], pairs, result, **plain)
    return vector_layer(name, parts[0], pairs, result, called=operation.name, work=bodies.work_of(parts), **plain)


def _pooled(
    operation: Operation, name: str, known: Sequence[Shape], result: Shape, plain: Mapping[str, Any]
) -> VectorLayer | str:
    """Return the vector layer of a pooling: of `tosa`, or of `linalg`, whose second operand has the shape of the window."""
    kind = operation.kind.lower()
    window = operation.attributes.get("kernel")
    sizes = tuple(size for size in window if isinstance(size, int)) if isinstance(window, tuple) else ()
    row = math.prod(sizes or (known[1] if len(known) > 1 else ()))
    pool = POOLS.get(kind) or ("AveragePool" if kind.endswith("sum") else "MaxPool")
    work = OPERATORS["ReduceSum"] if kind.endswith("sum") else None
    return vector_layer(name, pool, [(known[0], False)], result, row=row, called=operation.name, work=work, **plain)


def _is_constant(operation: Operation | None) -> bool:
    return operation is not None and operation.kind.lower() in ("constant", "const")


def unordered(layers: Sequence[VectorLayer]) -> tuple[VectorLayer, ...]:
    """Return vector layers that do not state what they read, as in a module with buffers, which are written in place."""
    return tuple(layer.model_copy(update={"after": None, "before": ()}) for layer in layers)
