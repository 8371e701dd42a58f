"""Operators of ATen in the torch dialect, mapped as those of exported PyTorch programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright_frontends.mlir.tree import Attribute, Operation, Value
from tilewright_frontends.nests import Shape, Unsupported
from tilewright_frontends.products import Parts
from tilewright_frontends.pt2.operators import Node, builder_of

PREFIX = "torch.aten."
LIST = "torch.prim.ListConstruct"
_CONV = "input weight bias stride padding dilation groups"
_TRANSPOSED = "input weight bias stride padding output_padding groups dilation"
_CONVOLUTION = "input weight bias stride padding dilation transposed output_padding groups"
_ATTENTION = "query key value attn_mask dropout_p is_causal scale enable_gqa"
ARGUMENTS = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _CONV),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _TRANSPOSED),
    **dict.fromkeys(("convolution", "_convolution"), _CONVOLUTION),
    "linear": "input weight bias",
    "mm": "self mat2",
    "bmm": "self mat2",
    "addmm": "self mat1 mat2",
    "baddbmm": "self batch1 batch2",
    "matmul": "self other",
    "mv": "self vec",
    "einsum": "equation tensors",
    "scaled_dot_product_attention": _ATTENTION,
}
"""Product -> names of its operands in order, from ATen's schema."""
MOVED = {
    **dict.fromkeys(("transpose", "swapdims"), "self dim0 dim1"),
    "swapaxes": "self axis0 axis1",
    "permute": "self dims",
    "select": "self dim index",
    "slice": "self dim start end step",
    "narrow": "self dim start length",
    **dict.fromkeys(("cat", "stack"), "tensors dim"),
    "pad": "self pad mode value",
    "constant_pad_nd": "self pad value",
    **dict.fromkeys("softmax _softmax log_softmax _log_softmax".split(), "self dim"),
    **dict.fromkeys(("layer_norm", "native_layer_norm"), "input normalized_shape weight bias"),
    **dict.fromkeys("sum mean amax amin".split(), "self dim keepdim"),
    "batch_norm": "input weight bias running_mean running_var training",
}
"""Operator that moves words or changes values -> names of its operands in order."""


def operator_of(name: str) -> str | None:
    """Return the operator of ATen that is a product, without overload; None if it is none."""
    kind = name.removeprefix(PREFIX).partition(".")[0] if name.startswith(PREFIX) else ""
    return kind if kind in ARGUMENTS or kind.startswith("_scaled_dot_product_") else None


def parts(
    operation: Operation, shapes: Sequence[Shape], name: str, maker: Callable[[Value], Operation | None]
) -> tuple[Parts, dict[str, Value]]:
    """Return the products of an operator, each reading the result of the previous one, and its values by their names there.

    Args:
        operation: an operator for which `operator_of` is not None.
        shapes: shapes of operands and results.
        name: name of the layer.
        maker: returns the operation that produces a value.

    Raises:
        Unsupported: its form is not mapped.
        ArithmeticError, LookupError, TypeError, ValueError: it contradicts itself.
    """
    kind = operator_of(operation.name) or ""
    builder = builder_of(kind.removeprefix("_") if kind == "_convolution" else kind)
    if builder is None:
        raise LookupError(f"{kind} has no loop nest")
    every = [*operation.operands, *operation.results]
    node, values = call(operation, dict(zip(every, shapes, strict=True)).get, maker)
    try:
        return builder(node, name), values
    except KeyError:
        raise Unsupported("the shape of an operand is not known") from None


def call(
    operation: Operation, shape_of: Callable[[Value], Shape | None], maker: Callable[[Value], Operation | None]
) -> tuple[Node, dict[str, Value]]:
    """Return an operator as a call of ATen, and its values by their names there: operands, members of lists, results.

    Args:
        operation: an operator of ATen.
        shape_of: returns the shape of a value; None: not known.
        maker: returns the operation that produces a value.
    """
    kind = operation.name.removeprefix(PREFIX).partition(".")[0]
    values = {f"y{place}": value for place, value in enumerate(operation.results)}
    arguments: dict[str, object] = {}
    names = (ARGUMENTS | MOVED).get(kind, _ATTENTION if "scaled_dot_product" in kind else "self").split()
    names += [f"argument{place}" for place in range(len(names), len(operation.operands))]
    for place, (argument, value) in enumerate(zip(names, operation.operands, strict=False)):
        made = maker(value)
        if value.shape is not None:
            values[f"x{place}"], arguments[argument] = value, f"x{place}"
        elif made is not None and made.name == LIST and any(operand.shape is not None for operand in made.operands):
            listed = {f"x{place}.{number}": operand for number, operand in enumerate(made.operands)}
            values |= listed
            arguments[argument] = list(listed)
        else:
            arguments[argument] = _constant(value, maker)
    shapes = {name: shape for name, value in values.items() if (shape := shape_of(value) or _closed(value)) is not None}
    return Node(kind, "", arguments, shapes, tuple(f"y{place}" for place in range(len(operation.results)))), values


def _constant(value: Value, maker: Callable[[Value], Operation | None]) -> Attribute:
    """Return the number, text or list of numbers that a value holds; None if it holds none."""
    made = maker(value)
    if made is None:
        return None
    if made.name == LIST:
        return tuple(_constant(operand, maker) for operand in made.operands)
    return made.attributes.get("value")


def _closed(value: Value) -> Shape | None:
    sizes = tuple(size for size in value.shape or () if size is not None)
    return None if value.shape is None or len(sizes) < len(value.shape) else sizes
