"""Words that layers of a module read from one another: those of tensors, in the same order or behind exact operations.

Buffers change in place, so their words are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tilewright.schema.problem import Problem
from tilewright.schema.workload import Layer
from tilewright_frontends.mlir import affine
from tilewright_frontends.mlir.operators import PRODUCTS
from tilewright_frontends.mlir.tree import OpenShape, Operation, Value
from tilewright_frontends.views import Layout, Operands, View, layer_of, result_of
from tilewright_frontends.views import passed as kept

Views = Mapping[Value, tuple[View, ...]]
"""Value -> its words that layers make."""
ShapeOf = Callable[[Value], OpenShape | None]

ELEMENTWISE = frozenset(
    "add addv2 biasadd subtract sub multiply mul divide div maximum max minimum min power pow negate neg abs sign exponential "
    "exp log log_plus_one sqrt rsqrt tanh logistic sigmoid relu relu6 gelu erf floor ceil round clamp clip convert cast identity "
    "select selectv2 compare and or xor not softmax optimization_barrier".split()
)
"""Operators whose result has the shape of its operands of equal rank."""
RESHAPES = frozenset(
    {"stablehlo.reshape", "mhlo.reshape", "tosa.reshape", "tensor.collapse_shape", "tensor.expand_shape"}
)
"""Operators whose result has the words of the first operand in the same order."""
IN_ORDER = frozenset(
    {"stablehlo.dot_general", "mhlo.dot_general", "stablehlo.dot", "mhlo.dot", "tosa.matmul"}
    | {"tf.MatMul", "tf.BatchMatMul", "tf.BatchMatMulV2"}
    | {f"linalg.{kind}" for kind in PRODUCTS}
)
"""Products whose first two operands and result have the words of the problem's tensors in the same order."""
TURNED = ("transpose_a", "transpose_b", "adj_x", "adj_y")
"""Attributes of TensorFlow's products that transpose an operand."""


def values_of(operation: Operation) -> Sequence[Value] | None:
    """Return the values of the operands of an operation with one problem.

    None: the order of their words is not known, or its result is a buffer.
    """
    if len(operation.results) != 1:
        return None
    if operation.name != "affine.for" and affine.has_maps(operation):
        return [operation.operands[place] for place in affine.factor_places(operation)]
    if operation.name == "tf.Einsum":
        return operation.operands
    turned = any(operation.attributes.get(key) for key in TURNED)
    return operation.operands[:2] if operation.name in IN_ORDER and not turned else None


def layer(
    operation: Operation,
    problem: Problem,
    known: Sequence[Value] | None,
    views: Views,
    before: Sequence[str],
    count: int,
) -> Layer:
    """Return a layer with its reads. `known`: its operands' values, as `values_of` gives them."""
    if known is None:
        return layer_of(problem, {}, before, count)
    others = [value for value in operation.operands if value not in known]  # such as the first partial sums
    lost = {
        view.maker: f"{problem.name} reads it as a parameter, too" for value in others for view in views.get(value, ())
    }

    def seen(value: Value) -> list[View]:
        found = views.get(value, ())
        return [view.without(lost[view.maker]) if view.maker in lost else view for view in found]

    pairs = zip(problem.operands, known, strict=True)
    operands: Operands = {tensor.name: (Layout(), seen(value)) for tensor, value in pairs}
    return layer_of(problem, operands, before, count)


def results(
    operation: Operation, problem: Problem, known: Sequence[Value] | None, shape_of: ShapeOf, count: int
) -> dict[Value, tuple[View, ...]]:
    """Return the views of a layer's results."""
    found = dict[Value, tuple[View, ...]]()
    for value in operation.results:
        sizes = _fixed(shape_of(value))
        exact = known is not None and sizes is not None
        found[value] = (result_of(problem, Layout() if exact else None, sizes, count),)
    return found


def passed(
    operation: Operation, name: str, read: Sequence[Value], views: Views, shape_of: ShapeOf
) -> dict[Value, tuple[View, ...]]:
    """Return the views of the results of an operation that is no layer.

    Args:
        operation: the operation.
        name: its name in the workload.
        read: all values that it reads.
        views: views of the values so far.
        shape_of: gives the shape of a value.
    """
    sizes = _fixed(shape_of(operation.results[0])) if len(operation.results) == 1 else None
    wordwise = operation.kind.lower() in ELEMENTWISE - {"softmax"} and not operation.regions

    def after(value: Value, view: View) -> View:
        if sizes is not None and wordwise and _fixed(shape_of(value)) == sizes:
            return view.via(name)
        if sizes is not None and operation.name in RESHAPES and value is operation.operands[0]:
            return view.reshaped(sizes)
        return view.without(f"{operation.name} '{name}' has coordinates that are not known")

    found = kept(after(value, view) for value in read for view in views.get(value, ()))
    return dict.fromkeys(operation.results, found) if found else {}


def _fixed(shape: OpenShape | None) -> tuple[int, ...] | None:
    sizes = tuple(size for size in shape or () if size is not None)
    return None if shape is None or len(sizes) < len(shape) else sizes
