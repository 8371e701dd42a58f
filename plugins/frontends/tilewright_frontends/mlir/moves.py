"""Views of the results of operations that are no layers: operations that move words or change values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tilewright_frontends.mlir.affine import ENDS
from tilewright_frontends.mlir.tree import AffineMap, Linear, OpenShape, Operation, Value, within
from tilewright_frontends.nests import Shape
from tilewright_frontends.views import REPEATED, View, passed

Views = Mapping[Value, tuple[View, ...]]
"""Value -> its words that layers make."""
ShapeOf = Callable[[Value], OpenShape | None]
Makers = Callable[[Value], Operation | None]

ELEMENTWISE = frozenset(
    "add addv2 biasadd subtract sub multiply mul divide div realdiv maximum max minimum min power pow negate neg negf abs "
    "sign exponential exp exponential_minus_one log log_plus_one sqrt rsqrt square reciprocal tanh logistic sigmoid relu "
    "relu6 leakyrelu gelu erf sine sin cosine cos floor ceil round clamp clip convert cast rescale identity select selectv2 "
    "compare and or xor not logical_and logical_or logical_not softmax optimization_barrier".split()
)
"""Operators whose result has the shape of its operands of equal rank."""
RESHAPES = frozenset(
    "stablehlo.reshape mhlo.reshape tosa.reshape tensor.collapse_shape tensor.expand_shape tensor.cast linalg.copy "
    "tf.Reshape tf.Squeeze tf.ExpandDims".split()
)
"""Operators whose result has the words of the first operand in the same order."""
NUMPY = ("arith.", "math.")
"""Dialects whose operators work word by word on tensors of one shape."""


@dataclass(frozen=True)
class Step:
    """An operation that is no layer, with all that is known of its values.

    Attributes:
        name: its name in the workload.
        views: views of the values so far.
        shapes: gives the shape of a value.
        makers: gives the operation that produces a value.
    """

    operation: Operation
    name: str
    views: Views
    shapes: ShapeOf
    makers: Makers

    def shape(self, value: Value) -> Shape:
        """Return the shape of a value. Raises ValueError if it is not known."""
        shape = fixed(self.shapes(value))
        if shape is None:
            raise ValueError("a shape is not known")
        return shape

    @property
    def target(self) -> Value:
        """The only result, or the buffer that the operation changes. Raises ValueError if there are several."""
        if len(self.operation.results) > 1:
            raise ValueError("it has several results")
        return self.operation.results[0] if self.operation.results else self.operation.operands[-1]

    @property
    def inputs(self) -> Sequence[Value]:
        """Operands that it reads; those of linalg lack the value that its result replaces."""
        operation = self.operation
        count = len(operation.results) or 1
        return operation.operands[:-count] if operation.name.startswith("linalg.") else operation.operands

    def numbers(self, *keys: str, place: int | None = None) -> tuple[int, ...]:
        """Return the list of an attribute, or of an operand that is a constant. Raises ValueError if there is none."""
        given = [self.operation.attributes.get(key) for key in keys]
        if place is not None and place < len(self.operation.operands):
            made = self.makers(self.operation.operands[place])
            given += [] if made is None else [made.attributes.get("value"), made.attributes.get("values")]
        for attribute in given:
            items = attribute if isinstance(attribute, tuple) else (attribute,)
            numbers = tuple(number for number in items if type(number) is int and abs(number) < 2**40)
            if len(numbers) == len(items):
                return numbers
        raise ValueError("a number is not known")


def passed_on(
    operation: Operation,
    name: str,
    read: Sequence[Value],
    views: Views,
    shapes: ShapeOf,
    makers: Makers,
    times: int,
) -> dict[Value, tuple[View, ...]]:
    """Return the views of the results of an operation that is no layer, or of the buffer that it fills.

    Args:
        operation: the operation.
        name: its name in the workload.
        read: all values that it reads, those in its regions included.
        views: views of the values so far.
        shapes: gives the shape of a value.
        makers: gives the operation that produces a value.
        times: how often it is executed.
    """
    step = Step(operation, name, views, shapes, makers)
    known = {value: views[value] for value in read if views.get(value)}
    if not known:
        return {}
    kept: Sequence[View] | None = None
    mover = _mover(operation)
    used: set[Value] = set()
    if mover is not None and times == 1:
        try:
            used, kept = set(step.inputs), mover(step)
        except (ArithmeticError, LookupError, TypeError, ValueError):  # a shape or a number is not known
            used, kept = set(), None
    reason = f"{operation.name} '{name}' has coordinates that are not known" if times == 1 else REPEATED
    replaced = set() if kept is None else set(operation.operands) - {*step.inputs}  # linalg overwrites it
    if operation.name == "linalg.generic" and kept is not None and _reads_result(operation):
        replaced, used = set(), {*operation.operands}
    lost = [view.without(reason) for value, part in known.items() if value not in used | replaced for view in part]
    moved_views = passed([*(kept or ()), *lost])
    results = operation.results or ((step.target,) if kept is not None else ())
    return dict.fromkeys(results, moved_views)


def fixed(shape: OpenShape | None) -> Shape | None:
    """Return the shape, or None if a size is open."""
    sizes = tuple(size for size in shape or () if size is not None)
    return None if shape is None or len(sizes) < len(shape) else sizes


# -- operations

Mover = Callable[[Step], Sequence[View]]
"""A function to the views of the result. It raises LookupError, TypeError or ValueError if something is not known."""


def _each(change: Callable[[Step, View], View | None]) -> Mover:
    """Return a mover that changes each view of the first operand. The further ones are parameters."""

    def move(step: Step) -> Sequence[View]:
        first, *rest = step.inputs
        moved = [view if view.cut else change(step, view) for view in step.views.get(first, ())]
        told = f"{step.operation.name} '{step.name}' reads it as a parameter"
        cut = [view.without(told) for value in rest for view in step.views.get(value, ())]
        return [*(view for view in moved if view is not None), *cut]

    return move


def _wordwise(step: Step) -> Sequence[View]:
    if step.operation.regions and step.operation.name != "linalg.map":
        raise ValueError("its contents are not read")
    shape, bias = step.shape(step.target), step.operation.kind.lower() == "biasadd"
    views = []
    for place, value in enumerate(step.inputs):
        for view in step.views.get(value, ()):
            if place and bias:
                views.append(view.without(f"{step.operation.name} '{step.name}' reads it as a parameter"))
            else:
                views.append(view.broadcast(shape).via(step.name))
    return views


def _softmax(step: Step) -> Sequence[View]:
    shape = step.shape(step.target)
    try:
        (axis,) = step.numbers("dimension")
    except ValueError:
        if step.operation.name != "tf.Softmax":
            raise
        axis = -1
    return [view.via(step.name, [axis % len(shape)]) for view in step.views.get(step.inputs[0], ())]


def _normalised(step: Step) -> Sequence[View]:
    if step.operation.attributes.get("is_training"):
        raise ValueError("it needs the words of the batch")
    return _each(lambda step, view: view.via(step.name))(step)


def _turned(step: Step, view: View) -> View:
    order = step.numbers("permutation", "dims", "perms", place=1)
    turned = view.transposed(order)
    if turned.shape != step.shape(step.target):
        raise ValueError("the shapes do not match")
    return turned


def _broadcast(step: Step, view: View) -> View:
    """Return the view after `broadcast_in_dim`, which names the result's dimension of each dimension."""
    try:
        places = step.numbers("broadcast_dimensions", "dims")
    except ValueError:  # an empty list
        places = ()
    return _spread(view, places, step.shape(step.target))


def _added(step: Step, view: View) -> View:
    """Return the view after `linalg.broadcast`, which names the new dimensions."""
    new, shape = step.numbers("dimensions"), step.shape(step.target)
    return _spread(view, [place for place in range(len(shape)) if place not in new], shape)


def _spread(view: View, places: Sequence[int], shape: Shape) -> View:
    """Return the view of a value whose axes are at some places of a shape; it repeats along the others."""
    order = sorted(range(len(places)), key=places.__getitem__)
    sizes = {place: view.axes[axis].size for axis, place in enumerate(places)}
    if len(places) != len(view.axes):
        raise ValueError("the ranks do not match")
    return view.transposed(order).reshaped(tuple(sizes.get(place, 1) for place in range(len(shape)))).broadcast(shape)


def _sliced(step: Step, view: View) -> View | None:
    starts = step.numbers("start_indices", "start", "static_offsets", place=1)
    rank = len(step.shape(step.inputs[0]))
    try:
        strides = step.numbers("strides", "static_strides")
    except ValueError:
        strides = (1,) * rank
    shape = step.shape(step.target)
    sizes = shape
    if len(shape) != rank:
        sizes = step.numbers("static_sizes")
    if not len(starts) == len(strides) == len(sizes) == rank or min(starts) < 0:
        raise ValueError("the ranks do not match")
    part: View | None = view
    for axis, (start, size, stride) in enumerate(zip(starts, sizes, strides, strict=True)):
        part = None if part is None else part.sliced(axis, start, size, stride)
    return None if part is None else part.reshaped(shape)


def _padded(step: Step, view: View) -> View | None:
    try:
        inner = step.numbers("interior_padding", "interior")
    except ValueError:
        inner = ()
    if any(inner):
        raise ValueError("it spreads words")
    try:
        fronts = step.numbers("edge_padding_low", "low", "static_low")
    except ValueError:
        fronts = step.numbers("padding", place=1)[::2]
    shape, padded = step.shape(step.target), view
    if len(fronts) != len(shape):
        raise ValueError("the ranks do not match")
    for axis, (front, size) in enumerate(zip(fronts, shape, strict=True)):
        moved = padded.padded(axis, front, size)
        if moved is None:
            return None
        padded = moved
    return padded


def _reduced(step: Step, view: View) -> View:
    """Return the view after a sum or a maximum along some axes, which the result may keep with size 1."""
    rank = len(step.shape(step.inputs[0]))
    axes = [axis % rank for axis in step.numbers("dimensions", "axis", place=1)]
    return view.summed(axes).via(step.name).reshaped(step.shape(step.target))


def _concatenated(step: Step) -> Sequence[View]:
    """Return the views of concatenated values. The axis of `tf.ConcatV2` is its last operand."""
    result, values = step.shape(step.target), list(step.inputs)
    if step.operation.name == "tf.ConcatV2":
        (axis,) = step.numbers(place=len(values) - 1)
        values.pop()
    else:
        (axis,) = step.numbers("dimension", "dim", "axis")
    axis, start, parts = axis % len(result), 0, list[View]()
    for value in values:
        moved = [view.padded(axis, start, result[axis]) for view in step.views.get(value, ())]
        parts += [view for view in moved if view is not None]
        start += step.shape(value)[axis]
    return parts


def _inserted(step: Step) -> Sequence[View]:
    """Return the views after `insert_slice`: those of the first operand. Words of the second one are partly replaced."""
    source, into = step.inputs[:2]
    shape, starts = step.shape(step.target), step.numbers("static_offsets")
    sizes, strides = step.numbers("static_sizes"), step.numbers("static_strides")
    if set(strides) != {1} or min(starts) < 0 or not len(starts) == len(sizes) == len(shape):
        raise ValueError("it spreads words")
    told = f"{step.operation.name} '{step.name}' replaces some of its words"
    views = [view.without(told) for view in step.views.get(into, ())]
    for view in step.views.get(source, ()):
        moved: View | None = view.reshaped(sizes)
        for axis, (start, size) in enumerate(zip(starts, shape, strict=True)):
            moved = None if moved is None else moved.padded(axis, start, size)
        views += [] if moved is None else [moved]
    return views


def _generic(step: Step) -> Sequence[View]:
    """Return the views after a loop nest of linalg; those of loops that the result lacks are summed."""
    operation, maps = step.operation, step.operation.maps("indexing_maps")
    count = _results(operation)
    written, values = maps[-1], operation.results or operation.operands[-1:]
    loops, shape = _loops(written.results), step.shape(values[0])
    if any(affine_map.results != written.results for affine_map in maps[-count:]) or len(shape) != len(written.results):
        raise ValueError("its results have different subscripts")
    if math.prod(shape) != math.prod(_kept(shape, written)):
        raise ValueError("it writes a part of its result")
    reads = [*zip(operation.operands, maps[:-count], strict=False)]
    if _reads_result(operation):
        reads += [(value, written) for value in operation.operands[-count:]]
    sizes = dict[int, int]()
    for value, read in [*reads, (values[0], written)]:
        sizes |= dict(zip(_loops(read.results), _kept(step.shape(value), read), strict=True))
    every = tuple(sizes[loop] for loop in range(written.operands))
    summed = [loop for loop in range(written.operands) if loop not in loops]
    order = [sorted(loops).index(loop) for loop in loops]
    views = []
    for value, read in reads:
        axes = _loops(read.results)
        for view in step.views.get(value, ()):
            if view.cut:
                views.append(view)
                continue
            placed = _spread(view.reshaped(tuple(sizes[loop] for loop in axes)), axes, every).summed(summed)
            moved = placed.reshaped(tuple(sizes[loop] for loop in sorted(loops))).transposed(order).reshaped(shape)
            views.append(moved if _copies(operation) else moved.via(step.name))
    return views


def _kept(shape: Shape, read: AffineMap) -> list[int]:
    """Return the sizes of the coordinates that are a loop."""
    return [size for size, rank in zip(shape, read.results, strict=True) if isinstance(rank, Linear) and rank.terms]


def _results(operation: Operation) -> int:
    """Return the number of results of a loop nest of linalg. Raises ValueError if its body does not say it."""
    ends = [end for end in operation.body.operations if end.name in ENDS]
    if len(ends) != 1 or not ends[0].operands:
        raise ValueError("it has no results")
    return len(ends[0].operands)


def _reads_result(operation: Operation) -> bool:
    """Return whether the body of a loop nest of linalg uses a word that it replaces."""
    last = operation.body.arguments[-_results(operation) :]
    return any(value in inner.operands for inner in within(operation) for value in last)


def _copies(operation: Operation) -> bool:
    """Return whether a loop nest of linalg only moves words."""
    return all(inner.name in ENDS for inner in operation.body.operations)


def _loops(results: Sequence[object]) -> list[int]:
    """Return the loop of each coordinate; constant 0 is omitted. Raises ValueError if one is no single loop, or repeats."""
    dimensions = []
    for rank in results:
        if not isinstance(rank, Linear) or rank.constant or list(rank.terms.values()) not in ([], [1]):
            raise ValueError("a subscript is no single loop")
        dimensions += list(rank.terms)
    if len(set(dimensions)) < len(dimensions):
        raise ValueError("a loop has two subscripts")
    return dimensions


MOVES: Mapping[str, Mover] = {
    **dict.fromkeys(RESHAPES, _each(lambda step, view: view.reshaped(step.shape(step.target)))),
    **dict.fromkeys(
        "stablehlo.transpose mhlo.transpose tosa.transpose linalg.transpose tf.Transpose".split(), _each(_turned)
    ),
    **dict.fromkeys(("stablehlo.broadcast_in_dim", "mhlo.broadcast_in_dim"), _each(_broadcast)),
    "linalg.broadcast": _each(_added),
    **dict.fromkeys(("stablehlo.slice", "mhlo.slice", "tosa.slice", "tensor.extract_slice"), _each(_sliced)),
    **dict.fromkeys(("stablehlo.pad", "mhlo.pad", "tosa.pad", "tensor.pad", "tf.Pad"), _each(_padded)),
    **dict.fromkeys(
        ("stablehlo.concatenate", "mhlo.concatenate", "tosa.concat", "tensor.concat", "tf.ConcatV2"), _concatenated
    ),
    "tensor.insert_slice": _inserted,
    **dict.fromkeys(
        "stablehlo.reduce mhlo.reduce linalg.reduce tf.Max tf.Min tf.Sum tf.Mean tosa.reduce_max tosa.reduce_min "
        "tosa.reduce_sum tosa.reduce_product".split(),
        _each(_reduced),
    ),
    "linalg.generic": _generic,
    **dict.fromkeys(("tf.Softmax", "linalg.softmax"), _softmax),
    **dict.fromkeys(("stablehlo.batch_norm_inference", "mhlo.batch_norm_inference"), _normalised),
    "linalg.fill": lambda step: (),
}
"""Operation -> the views of its result."""


def _mover(operation: Operation) -> Mover | None:
    if operation.name in MOVES:
        return MOVES[operation.name]
    wordwise = operation.kind.lower() in ELEMENTWISE - {"softmax"} or operation.name == "linalg.map"
    return _wordwise if wordwise or operation.name.startswith(NUMPY) else None
