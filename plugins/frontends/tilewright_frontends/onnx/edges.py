"""Views of the results of ONNX operators that are no layers: operators that move words or change values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from onnx import NodeProto, numpy_helper

from tilewright_frontends.nests import Shape, Unsupported
from tilewright_frontends.onnx.graph import Graph
from tilewright_frontends.onnx.node import attributes_of, operator_of, values_read
from tilewright_frontends.onnx.unmapped import WORK
from tilewright_frontends.products import Views
from tilewright_frontends.views import REPEATED, View, joined

SOFTMAX = frozenset("Softmax LogSoftmax".split())
ROWS = frozenset("LayerNormalization RMSNormalization".split())
"""Normalisations over the last axes, from attribute `axis` on."""
PLANES: Mapping[str, int] = {"InstanceNormalization": 2, "GroupNormalization": 1}
"""Normalisation -> the first axis whose words it needs together."""
OTHER = frozenset(
    "Upsample Resize CumSum CumProd RotaryEmbedding LRN SwiGLU DynamicQuantizeLinear QLinearConcat BiasSplitGelu "
    "GatherBlockQuantized".split()
) | {operator for operator in WORK if "Norm" in operator or "Softmax" in operator}
"""Operators with a known amount of work that need words in other places, too."""
WORDWISE = frozenset(WORK) - OTHER | {"BatchNormalization", "Cast", "CastLike"}
"""Operators whose results depend on the operands' words in the same place."""


def results(graph: Graph, node: NodeProto, name: str, views: Views, reason: str, times: int = 1) -> Views:
    """Return the views of an operator's results.

    Args:
        graph: the graph.
        node: an operator that is no layer.
        name: its name in the workload.
        views: views of the values so far.
        reason: why it is no layer.
        times: how often it is executed.
    """
    read = [view for value in values_read(node) for view in views.get(value, ())]
    if not read:
        return {}
    if times > 1:  # a loop may pass it what an earlier iteration made
        return dict.fromkeys(filter(None, node.output), joined(view.without(REPEATED) for view in read))
    passed: Views | None = None
    try:
        moved = MOVES.get(operator_of(node))
        if moved is not None:
            passed = moved(graph, node, views)
            if passed and operator_of(node).startswith("Reduce"):
                passed = {value: tuple(view.via(name) for view in old_views) for value, old_views in passed.items()}
        elif operator_of(node) in WORDWISE or operator_of(node) in SOFTMAX | ROWS | PLANES.keys():
            passed = {node.output[0]: _changed(graph, node, name, views)}
    except Unsupported:  # a shape is unknown
        passed = None
    cut = joined(view.without(f"{operator_of(node)} '{name}' {_told(operator_of(node), reason)}") for view in read)
    passed = passed or {}
    return {value: passed.get(value, cut) for value in node.output if value}


def _told(operator: str, reason: str) -> str:
    if operator in MOVES or operator in WORDWISE:
        return "has coordinates that are not known"
    return "needs words in other places" if operator in OTHER else f"has no coordinates: {reason}"


def _changed(graph: Graph, node: NodeProto, name: str, views: Views) -> tuple[View, ...]:
    """Return the views after an operator that changes words, and may need some words together."""
    shape, kind, attributes = graph.shape(node.output[0]), operator_of(node), attributes_of(node)
    whole: Sequence[int] = ()
    if kind in ROWS or kind in SOFTMAX:
        axis = int(attributes.get("axis", -1)) % len(shape)
        older = kind in SOFTMAX and graph.opset < 13
        if older:
            axis = int(attributes.get("axis", 1)) % len(shape)
        whole = range(axis, len(shape)) if kind in ROWS or older else [axis]
    elif kind in PLANES:
        whole = range(PLANES[kind], len(shape))
    wordwise = kind in WORDWISE and kind != "BatchNormalization" and "broadcast" not in attributes
    changed = list[View]()
    for place, value in enumerate(node.input):
        for view in views.get(value, ()):
            if place and not wordwise:
                changed.append(view.without(f"{kind} '{name}' reads it as a parameter"))
            else:
                changed.append(view.broadcast(shape).via(name, whole))
    return joined(changed)


# -- operators that move words

Mover = Callable[[Graph, NodeProto, Views], Views | None]
"""A function to the views of the results; None: coordinates are not known."""


def _each(change: Callable[[Graph, NodeProto, View], View | None]) -> Mover:
    """Return a mover that changes each view of the first operand."""

    def move(graph: Graph, node: NodeProto, views: Views) -> Views:
        moved = (change(graph, node, view) for view in views.get(node.input[0], ()))
        return {node.output[0]: joined(view for view in moved if view is not None)}

    return move


def _numbers(graph: Graph, node: NodeProto, place: int, attribute: str) -> list[int] | None:
    """Return whole numbers of an input or attribute; None: there are none.

    Raises:
        Unsupported: the input is not known.
    """
    if len(node.input) > place and node.input[place]:
        known = graph.values.get(node.input[place])
        if known is None:
            raise Unsupported(f"the input '{node.input[place]}' is not known")
        return [int(number) for number in np.ravel(numpy_helper.to_array(known))]
    given = attributes_of(node).get(attribute)
    return None if given is None else [int(number) for number in np.ravel(given)]


def _transposed(graph: Graph, node: NodeProto, view: View) -> View:
    rank = len(graph.shape(node.input[0]))
    return view.transposed(attributes_of(node).get("perm") or range(rank)[::-1])


def _sliced(graph: Graph, node: NodeProto, view: View) -> View | None:
    shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
    starts = _numbers(graph, node, 1, "starts") or []
    axes = _numbers(graph, node, 3, "axes") or list(range(len(starts)))
    steps = _numbers(graph, node, 4, "steps") or [1] * len(starts)
    part: View | None = view
    for axis, start, step in zip(axes, starts, steps, strict=True):
        size = shape[axis]
        first = max(0, min(start + size if start < 0 else start, size))
        part = None if part is None else part.sliced(axis % len(shape), first, result[axis], step)
    return part


def _gathered(graph: Graph, node: NodeProto, view: View) -> View | None:
    """Return the view of one place along an axis."""
    shape, axis = graph.shape(node.input[0]), int(attributes_of(node).get("axis", 0))
    places = _numbers(graph, node, 1, "")
    if places is None or len(places) != 1:
        return view.without(f"Gather '{node.name}' collects several places")
    part = view.sliced(axis % len(shape), places[0] % shape[axis], 1)
    return None if part is None else part.reshaped(graph.shape(node.output[0]))


def _reduced(graph: Graph, node: NodeProto, view: View) -> View:
    """Return the view after a sum or a maximum along some axes, which the result may keep with size 1."""
    rank, axes = len(graph.shape(node.input[0])), _numbers(graph, node, 1, "axes")
    if not axes and attributes_of(node).get("noop_with_empty_axes"):
        return view
    summed = view.summed([axis % rank for axis in axes] if axes else range(rank))
    return summed.reshaped(graph.shape(node.output[0]))


def _padded(graph: Graph, node: NodeProto, view: View) -> View | None:
    result, pads = graph.shape(node.output[0]), _numbers(graph, node, 1, "pads")
    axes = _numbers(graph, node, 3, "") or list(range(len(result)))
    if pads is None or attributes_of(node).get("mode", b"constant") != b"constant":
        return view.without(f"Pad '{node.name}' repeats words")
    padded: View | None = view
    for axis, before in zip(axes, pads, strict=False):
        padded = None if padded is None else padded.padded(axis % len(result), before, result[axis])
    return padded


def _split(graph: Graph, node: NodeProto, views: Views) -> Views:
    axis = int(attributes_of(node).get("axis", 0)) % len(graph.shape(node.input[0]))
    pieces, start = dict[str, tuple[View, ...]](), 0
    for value in node.output:
        size = graph.shape(value)[axis]
        parts = (view.sliced(axis, start, size) for view in views.get(node.input[0], ()))
        pieces[value] = joined(view for view in parts if view is not None)
        start += size
    return pieces


def _concatenated(graph: Graph, node: NodeProto, views: Views) -> Views:
    result = graph.shape(node.output[0])
    axis = int(attributes_of(node)["axis"]) % len(result)
    parts, start = list[View](), 0
    for value in node.input:
        moved = [view.padded(axis, start, result[axis]) for view in views.get(value, ())]
        parts += [view for view in moved if view is not None]
        start += graph.shape(value)[axis]
    return {node.output[0]: joined(parts)}


def _shape(graph: Graph, node: NodeProto) -> Shape:
    return graph.shape(node.output[0])


MOVES: Mapping[str, Mover] = {
    **dict.fromkeys(
        ("Reshape", "Flatten", "Squeeze", "Unsqueeze"),
        _each(lambda graph, node, view: view.reshaped(_shape(graph, node))),
    ),
    # an Identity that brings a value into a loop, or out of it, may drop or add the axis of the iterations
    **dict.fromkeys(
        ("Identity", "Dropout"),
        _each(lambda graph, node, view: view.reshaped(graph.shapes.get(node.output[0], view.shape))),
    ),
    "Expand": _each(lambda graph, node, view: view.broadcast(_shape(graph, node))),
    "Transpose": _each(_transposed),
    "Slice": _each(_sliced),
    "Gather": _each(_gathered),
    "Pad": _each(_padded),
    **dict.fromkeys(
        "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSumExp ReduceSumSquare".split(),
        _each(_reduced),
    ),
    "Split": _split,
    "Concat": _concatenated,
}
"""Operator -> the views of its results."""
