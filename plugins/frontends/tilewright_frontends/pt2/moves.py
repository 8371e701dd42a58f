"""Views of the results of ATen's operators that are no layers: operators that move words or change values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tilewright_frontends.nests import Shape
from tilewright_frontends.products import Views
from tilewright_frontends.pt2.operators import Node
from tilewright_frontends.views import View, passed

ACTIVATIONS = frozenset(
    "relu relu6 gelu silu sigmoid tanh leaky_relu elu hardtanh hardsigmoid hardswish mish softplus".split()
)
ARITHMETIC = frozenset(
    "add sub rsub mul div neg abs exp log sqrt rsqrt reciprocal square pow sin cos erf floor ceil round".split()
)
SELECTING = frozenset(
    "clamp clamp_min clamp_max maximum minimum where masked_fill eq ne lt le gt ge logical_not logical_and logical_or".split()
)
WORDWISE = ACTIVATIONS | ARITHMETIC | SELECTING
"""Operators whose results depend on the operands' words in the same place. Operands may be broadcast."""
RESHAPES = frozenset(
    "view _unsafe_view reshape view_as reshape_as flatten unflatten squeeze unsqueeze clone contiguous alias detach "
    "dropout feature_dropout native_dropout _to_copy to type_as lift_fresh_copy".split()
)
"""Operators whose first result has the words of the first operand in the same order."""
ALIASING = RESHAPES | frozenset(
    "transpose swapaxes swapdims permute t numpy_T mT movedim expand expand_as broadcast_to select slice narrow split "
    "split_with_sizes chunk unbind tensor_split as_strided diagonal unfold view_as_real view_as_complex getitem".split()
)
"""Operators whose result may share memory with the first operand."""


def reads(node: Node) -> list[str]:
    """Return the tensors that a call reads."""
    return list(tensors_in(node.arguments.values()))


def tensors_in(values: Iterable[Any]) -> Iterable[str]:
    """Yield the names of tensors among values of arguments."""
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict) and isinstance(value.get("name"), str):
            yield value["name"]
        elif isinstance(value, list | tuple):
            yield from tensors_in(value)


def changes(node: Node) -> bool:
    """Return whether a call changes its first operand in place, as `relu_` does."""
    return node.operator.endswith("_") and not node.operator.endswith("__")


def passed_on(node: Node, name: str, views: Views) -> Views:
    """Return the views of a call's results.

    Args:
        node: a call that is no layer; unknown shapes are absent.
        name: its name in the workload.
        views: views of the values so far.
    """
    read = [value for value in reads(node) if views.get(value)]
    if not read:
        return {}
    moved: Views = {}
    kind = node.operator.rstrip("_") if changes(node) else node.operator
    mover = MOVES.get(kind)
    if mover is not None:
        try:
            moved = mover(node, name, views)
        except (ArithmeticError, LookupError, TypeError, ValueError):  # a shape or a number is not known
            moved = {}
    told = f"{node.operator or 'an operator'} '{name}' has coordinates that are not known"
    cut = passed(view.without(told) for value in read for view in views[value])
    return {result: passed(moved[result]) if result in moved else cut for result in node.results}


# -- operators

Mover = Callable[[Node, str, Views], Views]
"""A function to the views of results. It raises LookupError, TypeError or ValueError if something is not known."""


def _first(node: Node) -> str:
    return reads(node)[0]


def _others_cut(node: Node, name: str, views: Views) -> list[View]:
    """Return the words of all operands but the first, which are parameters."""
    first = _first(node)
    told = f"{node.operator} '{name}' reads it as a parameter"
    return [view.without(told) for value in reads(node) if value != first for view in views.get(value, ())]


def _each(change: Callable[[Node, View], View | None]) -> Mover:
    """Return a mover that changes each view of the first operand."""

    def move(node: Node, name: str, views: Views) -> Views:
        moved = [view if view.cut else change(node, view) for view in views.get(_first(node), ())]
        kept = [view for view in moved if view is not None]
        return {node.results[0]: (*kept, *_others_cut(node, name, views))}

    return move


def _through(whole: Callable[[Node, Shape], Sequence[int]]) -> Mover:
    """Return a mover through an operator that changes values, and needs the words along some axes together."""

    def move(node: Node, name: str, views: Views) -> Views:
        axes = whole(node, node.result)
        kept = [view.via(name, axes) for view in views.get(_first(node), ()) if view.cut or view.shape == node.result]
        if len(kept) < len(views.get(_first(node), ())):
            raise ValueError("the operator changes the shape")
        return {node.results[0]: (*kept, *_others_cut(node, name, views))}

    return move


def _wordwise(node: Node, name: str, views: Views) -> Views:
    shape = node.result
    return {
        node.results[0]: tuple(
            view.broadcast(shape).via(name) for value in reads(node) for view in views.get(value, ())
        )
    }


def _number(node: Node, key: str, default: int | None = None) -> int:
    given = node.arguments.get(key, default)
    given = default if given is None else given
    if type(given) is not int:
        raise ValueError(f"{key} is not known")
    return given


def _numbers(node: Node, key: str) -> list[int]:
    given = node.arguments[key]
    if not isinstance(given, list | tuple) or not all(type(item) is int for item in given):
        raise ValueError(f"{key} is not known")
    return list(given)


def _axis(node: Node, key: str = "dim", default: int | None = None, rank: int | None = None) -> int:
    return _number(node, key, default) % (len(node.shapes[_first(node)]) if rank is None else rank)


def _turned(node: Node, view: View) -> View:
    """Return the view after `t`, `transpose`, `permute` and the like."""
    order = list(range(len(view.axes)))
    if node.operator == "permute":
        order = [number % len(order) for number in _numbers(node, "dims")]
    elif node.operator in ("t", "numpy_T"):
        order = order[::-1]
    elif node.operator == "mT":
        order[-2:] = order[:-3:-1]
    else:
        keys = ("axis0", "axis1") if node.operator == "swapaxes" else ("dim0", "dim1")
        first, second = (_axis(node, key) for key in keys)
        order[first], order[second] = order[second], order[first]
    return view.transposed(order)


def _selected(node: Node, view: View) -> View | None:
    axis = _axis(node)
    size = node.shapes[_first(node)][axis]
    part = view.sliced(axis, _number(node, "index") % size, 1)
    return None if part is None else part.reshaped(node.result)


def _sliced(node: Node, view: View) -> View | None:
    axis = _axis(node, default=0)
    size = node.shapes[_first(node)][axis]
    start = _number(node, "start", 0)
    first = max(0, min(start + size if start < 0 else start, size))
    return view.sliced(axis, first, node.result[axis], _number(node, "step", 1))


def _padded(node: Node, view: View) -> View | None:
    if node.arguments.get("mode", "constant") != "constant":
        raise ValueError("it repeats words")
    pads, padded = _numbers(node, "pad"), view
    for place in range(len(pads) // 2):
        axis = len(node.result) - 1 - place
        moved = padded.padded(axis, pads[2 * place], node.result[axis])
        if moved is None:
            return None
        padded = moved
    return padded


def _reduced(node: Node, view: View) -> View:
    """Return the view after a sum or a maximum along some axes, which the result may keep with size 1."""
    given, rank = node.arguments.get("dim"), len(node.shapes[_first(node)])
    axes = range(rank) if given is None else [given] if isinstance(given, int) else _numbers(node, "dim")
    return view.summed([axis % rank for axis in axes]).reshaped(node.result)


def _split(node: Node, name: str, views: Views) -> Views:
    """Return the views of the pieces along an axis; those of `unbind` lack it."""
    axis, start = _axis(node, default=0), 0
    pieces = dict[str, tuple[View, ...]]()
    for result in node.results:
        shape = node.shapes[result]
        size = 1 if node.operator == "unbind" else shape[axis]
        parts = [view.sliced(axis, start, size) for view in views.get(_first(node), ())]
        pieces[result] = tuple(part.reshaped(shape) for part in parts if part is not None)
        start += size
    return pieces


def _joined(node: Node, name: str, views: Views) -> Views:
    """Return the view of concatenated or stacked tensors."""
    result, new = node.result, node.operator == "stack"
    axis, start, parts = _axis(node, default=0, rank=len(result)), 0, list[View]()
    for value in node.arguments["tensors"]:
        shape = node.shapes[value]
        shape = (*shape[:axis], 1, *shape[axis:]) if new else shape
        moved = [view.reshaped(shape).padded(axis, start, result[axis]) for view in views.get(value, ())]
        parts += [view for view in moved if view is not None]
        start += shape[axis]
    return {node.results[0]: tuple(parts)}


def _last(node: Node, shape: Shape) -> Sequence[int]:
    return range(len(shape) - len(_numbers(node, "normalized_shape")), len(shape))


def _none(node: Node, shape: Shape) -> Sequence[int]:
    if node.arguments.get("training"):
        raise ValueError("it needs the words of the batch")
    return ()


def _through_reduction(node: Node, name: str, views: Views) -> Views:
    reduced = _each(_reduced)(node, name, views)
    return {node.results[0]: tuple(view if view.cut else view.via(name) for view in reduced[node.results[0]])}


MOVES: Mapping[str, Mover] = {
    **dict.fromkeys(WORDWISE, _wordwise),
    **dict.fromkeys("sum mean amax amin prod var std logsumexp".split(), _through_reduction),
    **dict.fromkeys(RESHAPES, _each(lambda node, view: view.reshaped(node.result))),
    **dict.fromkeys("t transpose swapaxes swapdims permute numpy_T mT".split(), _each(_turned)),
    **dict.fromkeys(("expand", "expand_as", "broadcast_to"), _each(lambda node, view: view.broadcast(node.result))),
    "select": _each(_selected),
    "slice": _each(_sliced),
    "narrow": _each(lambda node, view: view.sliced(_axis(node), _number(node, "start"), node.result[_axis(node)])),
    **dict.fromkeys(("pad", "constant_pad_nd"), _each(_padded)),
    **dict.fromkeys("split split_with_sizes chunk unbind".split(), _split),
    **dict.fromkeys("cat concat concatenate stack".split(), _joined),
    **dict.fromkeys("softmax _softmax log_softmax _log_softmax".split(), _through(lambda node, shape: [_axis(node)])),
    **dict.fromkeys("layer_norm native_layer_norm rms_norm _fused_rms_norm".split(), _through(_last)),
    **dict.fromkeys(("batch_norm", "_native_batch_norm_legit_no_training"), _through(_none)),
    **dict.fromkeys(("group_norm", "native_group_norm"), _through(lambda node, shape: range(1, len(shape)))),
}
"""Operator -> the views of its results."""
