"""Products of an operator: their values in the file, and the words that they read and make."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.schema.frozen import FrozenDict
from tilewright.schema.origin import Origin
from tilewright.schema.problem import Problem
from tilewright.schema.read import shape_of
from tilewright.schema.vector import VectorLayer
from tilewright.schema.workload import Layer, Unmapped
from tilewright_frontends import nests
from tilewright_frontends.nests import Shape, unique_name
from tilewright_frontends.vectors import SOFTMAX, Fused, Vectors, vector_layer
from tilewright_frontends.views import Layout, View, layer_of, result_of

Views = Mapping[str, tuple[View, ...]]
"""Value -> its words that layers make."""


@dataclass(frozen=True)
class Product:
    """A problem of an operator.

    Attributes:
        problem: the loop nest.
        values: names of the operands and of the result in the file; empty if it has no name there.
        count: how often the operator computes it.
        bits: tensor -> bits per value, where the operator's attributes say it.
        layouts: tensor -> its coordinates in the value; a tensor without one has other words.
    """

    problem: Problem
    values: tuple[str, ...]
    count: int = 1
    bits: Mapping[str, int] = field(default_factory=dict)
    layouts: Mapping[str, Layout] = field(default_factory=dict)

    def layer(self, problem: Problem, views: Views, before: Sequence[str], times: int, alone: bool = True) -> Layer:
        """Return the layer with its reads.

        Args:
            problem: the problem, with its name in the workload.
            views: views of the values.
            before: layers whose results reach the operator.
            times: how often the operator is executed.
            alone: whether the operator has no other layer, which may read their results.
        """
        operands = {
            tensor.name: (self.layouts.get(tensor.name), views.get(value, ()) if value else ())
            for tensor, value in zip(problem.operands, self.values, strict=False)
        }
        return layer_of(problem, operands, before, times * self.count, alone)

    def result(self, problem: Problem, shape: Shape | None, times: int) -> tuple[View, ...]:
        """Return the view of the result in a value of that shape; None: that of the problem's tensor."""
        return (result_of(problem, self.layouts.get(problem.output.name), shape, times * self.count),)


def with_inputs(layers: Sequence[Layer], parts: Sequence[Product]) -> list[Layer]:
    """Return the layers with the names of values that several of them read as the same words.

    Only for a format in which a value never changes.

    Args:
        layers: the layers.
        parts: the product of each layer.
    """
    readers = dict[tuple[str, Layout, Shape], list[tuple[int, str]]]()
    for number, (layer, part) in enumerate(zip(layers, parts, strict=True)):
        for operand, value in zip(part.problem.operands, part.values, strict=False):
            if value and operand.name in part.layouts:
                key = value, part.layouts[operand.name], shape_of(layer.problem, operand.name)
                readers.setdefault(key, []).append((number, operand.name))
    names, taken = [dict[str, str]() for _ in layers], set[str]()
    for (value, *_), users in readers.items():
        if len({number for number, _ in users}) > 1:
            name = unique_name(value, taken)
            for number, tensor in users:
                names[number][tensor] = name
    return [
        layer.model_copy(update={"inputs": FrozenDict(own)}) if own else layer
        for layer, own in zip(layers, names, strict=True)
    ]


class Between(Unmapped):
    """Work of an operator before, between or behind its products, such as the softmax of an attention."""

    vector: VectorLayer | str
    """The work for one execution of the operator, or why it is not counted."""


def listed(part: Unmapped, name: str, times: int, origin: Origin) -> tuple[Unmapped, VectorLayer | str]:
    """Return what is no layer under a name in the workload, and its vector layer or why it is none."""
    vector = part.vector if isinstance(part, Between) else ""
    operations = None if part.operations is None else times * part.operations
    reason = f"{part.reason}; {vector}" if isinstance(vector, str) and vector else part.reason
    told = Unmapped(name=name, operator=part.operator, reason=reason, operations=operations, origin=origin)
    if isinstance(vector, VectorLayer):
        changes = {"name": name, "operators": (name,), "origin": origin, "count": times * vector.count}
        vector = vector.model_copy(update=changes)
    return told, vector


def beyond(views: tuple[View, ...], name: str, vector: VectorLayer | str) -> tuple[View, ...]:
    """Return the views of a product's result behind the work that follows it. A softmax needs the words of its rows together."""
    if isinstance(vector, VectorLayer) and vector.operator not in SOFTMAX:
        return views
    return tuple(view.via(name, [len(view.axes) - 1]) for view in views)


def between(
    name: str,
    kind: str | Fused,
    operands: Sequence[Shape],
    result: Shape,
    *,
    operator: str | None = None,
    reason: str = "works element by element",
    row: int = 0,
    count: int = 1,
    weight: bool = False,
) -> Between:
    """Return work of an operator of the table next to products; the arguments are those of `vector_layer`.

    Args:
        operator: the operator in lists; None: as in the table.
        weight: whether the operand is a weight.
    """
    vector = vector_layer(name, kind, [(shape, weight) for shape in operands], result, row=row, count=count)
    operations = None
    if isinstance(vector, VectorLayer):
        operations = count * vector.plain_work.operations(vector.rows, vector.row, None).total()
    told = operator or (kind if isinstance(kind, str) else kind.main)
    return Between(name=name, operator=told, reason=reason, operations=operations, vector=vector)


Parts = Sequence[Product | Unmapped]
"""Products of an operator in order of execution, and what is between them, such as the softmax of an attention."""


@dataclass(frozen=True)
class Connected:
    """Layers of an operator with their reads, and what of it is no layer.

    Attributes:
        views: those of the values, with the results.
        last: name of the last layer.
    """

    layers: Sequence[Layer]
    unmapped: Sequence[Unmapped]
    views: Views
    last: str


def connected(
    parts: Parts,
    read: Collection[str],
    views: Views,
    shapes: Mapping[str, Shape],
    before: Callable[[Sequence[str]], Sequence[str]],
    taken: set[str],
    times: int,
    origin: Origin,
    vectors: Vectors | None = None,
    made: Sequence[Hashable] = (),
    given: Sequence[Hashable] | None = None,
) -> Connected:
    """Return the layers of an operator. What is no layer changes the result of the product before it, row by row.

    Args:
        parts: at least one product.
        read: all values that the operator reads.
        views: views of the values.
        shapes: shapes of the results, where known.
        before: returns the layers whose results reach some values.
        taken: names of layers and other operators so far; new ones are added.
        times: how often the operator is executed.
        origin: its place in the file.
        vectors: collector of vector layers; None: there is none.
        made, given: keys of the results and of what is read in the collector; None: `read`.
    """
    layers, unmapped, passed = list[Layer](), list[Unmapped](), dict(views)
    products = [part for part in parts if isinstance(part, Product)]
    operands = {value for part in products for value in part.values[:-1]}
    lost = {view.maker for value in read if value not in operands for view in views.get(value, ())}
    result = ""
    inner = object()  # a key for what one part passes to the next
    for number, part in enumerate(parts):
        values: list[Hashable] = [*(read if given is None else given), *([inner] if number else [])]
        if isinstance(part, Unmapped):
            name = unique_name(part.name, taken)
            named, vector = listed(part, name, times, origin)
            if vectors is not None:
                vectors.add(vector, values, [inner, *made])
            unmapped.append(named)
            passed[result] = beyond(passed.get(result, ()), name, vector)
            continue
        problem = part.problem.model_copy(update={"name": unique_name(part.problem.name, taken)})
        reached = [*([layers[-1].name] if layers else []), *before(part.values[:-1] if layers else tuple(read))]
        told = f"{problem.name} reads it as a parameter, too"
        known = {
            value: tuple(view.without(told) if view.maker in lost else view for view in passed.get(value, ()))
            for value in part.values[:-1]
        }
        layer = part.layer(problem, known, tuple(dict.fromkeys(reached)), times, alone=len(products) == 1)
        layers.append(layer.model_copy(update={"origin": origin}))
        if vectors is not None:
            vectors.matrix(problem.name, values, [inner, *made])
        result = part.values[-1]
        passed[result] = part.result(problem, shapes.get(result), times)
    return Connected(layers, unmapped, passed, layers[-1].name)


def in_order(problem: Problem, **other: Layout) -> dict[str, Layout]:
    """Return the layouts of tensors with the value's words in the same order, and some others."""
    return dict.fromkeys(problem.tensor_names, Layout()) | other


def read_as(axes: Sequence[Sequence[str]], sizes: Mapping[str, int], order: Sequence[str], *pads: int) -> Layout:
    """Return the layout of an operand.

    Args:
        axes: axes of the value, each with its coordinates in row-major order.
        sizes: coordinate -> its size in the value.
        order: coordinates of the tensor, in order; those that the value lacks have size 1.
        pads: those of `Layout`.
    """
    named = [name for axis in axes for name in axis]
    flat = [*(name for name in order if name not in named), *named]
    return Layout(tuple(sizes[name] for name in flat), tuple(flat.index(name) for name in order), pads)


def made_as(axes: Sequence[Sequence[str]], sizes: Mapping[str, int], order: Sequence[str], *pads: int) -> Layout:
    """Return the layout of a result.

    Args:
        axes: axes of the value, each with its coordinates, which are neighbours in the tensor.
        sizes: coordinate -> its size in the tensor.
        order: coordinates of the tensor, in order.
        pads: those of `Layout`.
    """
    firsts = sorted(range(len(axes)), key=lambda place: order.index(axes[place][0]))
    words = tuple(math.prod(sizes[name] for name in axes[place]) for place in firsts)
    return Layout(words, tuple(firsts.index(place) for place in range(len(axes))), pads)


def transposed_layouts(problem: Problem, groups: int, weight: Shape, cut: Sequence[int] | None) -> dict[str, Layout]:
    """Return the layouts of a transposed convolution with weights of input channels x output channels x window.

    Args:
        problem: its problem, whose result is the whole box.
        groups: groups of channels.
        weight: shape of the weights.
        cut: words at the front of the box that the result lacks, along each axis; None: not known.
    """
    window = [f"R{axis}" for axis in range(len(weight) - 2)]
    sizes = {"G": groups, "C": weight[0] // groups, "K": weight[1]} | dict(zip(window, weight[2:], strict=True))
    weights = read_as([("G", "C"), ("K",), *((axis,) for axis in window)], sizes, ["G", "K", "C", *window])
    layouts = in_order(problem, Weights=weights, Outputs=Layout(pads=tuple(cut or ())))
    if cut is None:
        del layouts["Outputs"]
    return layouts


def attended(
    name: str,
    query: Shape,
    key: Shape,
    value: Shape,
    values: tuple[str, str, str, str],
    layouts: Sequence[Layout] = (),
    operator: str = "Softmax",
) -> list[Product | Unmapped]:
    """Return scores, softmax and context. Shapes are batch, heads, tokens, channels, or have other axes in front.

    Args:
        name: prefix of the names.
        query, key, value: shapes of the operands.
        values: queries, keys, values and result in the file.
        layouts: their layouts, if the operands have their words.
        operator: operator of the softmax.

    Raises:
        Unsupported, ValueError: as `nests.attention`.
    """
    scores, context = nests.attention(name, query, key, value)
    made = shape_of(scores, scores.output.name)
    softmax = between(f"{name}.softmax", "Softmax", [made], made, operator=operator, row=made[-1])
    softmax = softmax.model_copy(update={"operations": 5 * math.prod(query[:-1]) * key[-2]})
    shared = [axis for axis, (mine, other) in enumerate(zip(query[:-2], key[:-2], strict=True)) if mine > other]
    if shared and any(max(query[axis], key[axis]) > 1 for axis in range(shared[0] + 1, len(query) - 2)):
        layouts = ()  # the problems have the axis of the shared operand first
    given = dict(zip("QKVZ", layouts, strict=False))
    first = {operand: given[side] for operand, side in (("A", "Q"), ("B", "K")) if side in given}
    second = {operand: given[side] for operand, side in (("B", "V"), ("Z", "Z")) if side in given}
    inner = f"{name}.scores"  # a value that the file does not have
    return [
        Product(scores, (values[0], values[1], inner), layouts=first | {"Z": Layout()}),
        softmax,
        Product(context, (inner, values[2], values[3]), layouts=second | {"A": Layout()}),
    ]
