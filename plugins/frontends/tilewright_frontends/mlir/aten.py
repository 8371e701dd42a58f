"""Operators of ATen in the torch dialect, mapped as those of exported PyTorch programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.schema.problem import Problem
from tilewright_frontends.mlir.tree import Attribute, Operation, Value
from tilewright_frontends.nests import Shape, Unsupported
from tilewright_frontends.pt2.operators import Node, builder_of

PREFIX = "torch.aten."
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
"""Operator -> names of its operands in order, from ATen's schema."""


def operator_of(name: str) -> str | None:
    """Return the operator of ATen that is a product, without overload; None if it is none."""
    kind = name.removeprefix(PREFIX).partition(".")[0] if name.startswith(PREFIX) else ""
    return kind if kind in ARGUMENTS or kind.startswith("_scaled_dot_product_") else None


def problems(
    operation: Operation, shapes: Sequence[Shape], name: str, maker: Callable[[Value], Operation | None]
) -> list[Problem]:
    """Return the problems of an operator, each reading the result of the previous one.

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
    tensors = {f"x{place}": shape for place, shape in enumerate(shapes)}
    arguments: dict[str, object] = {}
    names = ARGUMENTS.get(kind, _ATTENTION).split()
    for place, (argument, value) in enumerate(zip(names, operation.operands, strict=False)):
        arguments[argument] = f"x{place}" if value.shape is not None else _constant(value, maker)
    if kind == "einsum":
        listed = maker(operation.operands[1])
        operands = [_closed(value) for value in (listed.operands if listed else ())]
        tensors |= {f"y{place}": shape for place, shape in enumerate(operands)}
        arguments["tensors"] = [f"y{place}" for place in range(len(operands))]
    builder = builder_of(kind.removeprefix("_") if kind == "_convolution" else kind)
    if builder is None:
        raise LookupError(f"{kind} has no loop nest")
    try:
        return builder(Node(kind, "", arguments, tensors, (f"x{len(operation.operands)}",)), name)
    except KeyError:
        raise Unsupported("the shape of an operand is not known") from None


def _constant(value: Value, maker: Callable[[Value], Operation | None]) -> Attribute:
    """Return the number, text or list of numbers that a value holds; None if it holds none."""
    made = maker(value)
    if made is None:
        return None
    if made.name == "torch.prim.ListConstruct":
        return tuple(_constant(each, maker) for each in made.operands)
    return made.attributes.get("value")


def _closed(value: Value) -> Shape:
    if value.shape is None or None in value.shape:
        raise Unsupported("an operand has an open shape")
    return tuple(size for size in value.shape if size is not None)
