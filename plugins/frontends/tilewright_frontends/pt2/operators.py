"""Mapped operators of ATen. Absent arguments have the defaults of ATen's schema."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.schema.problem import Problem
from tilewright.schema.workload import Unmapped
from tilewright_frontends import nests
from tilewright_frontends.nests import Shape, Unsupported, equal
from tilewright_frontends.products import Product, attended, in_order, transposed_layouts
from tilewright_frontends.views import Layout

Parts = list[Product | Unmapped]


@dataclass(frozen=True)
class Node:
    """One call: `arguments` hold tensors by name, `shapes` those of all tensors read and produced."""

    operator: str
    overload: str
    arguments: Mapping[str, Any]
    shapes: Mapping[str, Shape]
    results: tuple[str, ...]

    def shape(self, argument: str) -> Shape:
        """Return the shape of a tensor argument. Raises LookupError."""
        return self.shapes[self.arguments[argument]]

    @property
    def result(self) -> Shape:
        return self.shapes[self.results[0]]

    def numbers(self, argument: str, default: int, count: int) -> list[int]:
        """Return one number per axis; a single one is repeated."""
        given = self.arguments.get(argument)
        numbers = [default] if given is None else [given] if isinstance(given, int) else list(given)
        return [int(number) for number in (numbers * count if len(numbers) == 1 else numbers)]

    def product(self, problem: Problem, keys: Sequence[str], layouts: Mapping[str, Layout]) -> Parts:
        """Return the product of some arguments."""
        return [Product(problem, (*(self.arguments[key] for key in keys), self.results[0]), layouts=layouts)]


def _conv(node: Node, name: str) -> Parts:
    """Return the problem of `conv1d`, `conv2d`, `conv3d` or `convolution`; shapes imply padding."""
    data, weight, groups = node.shape("input"), node.shape("weight"), int(node.arguments.get("groups") or 1)
    axes = len(weight) - 2
    nests.check_axes(axes)
    if node.arguments.get("transposed"):
        return _conv_transpose(node, name)
    if len(data) == axes + 1:  # no batch dimension
        data, result = (1, *data), (1, *node.result)
    else:
        result = node.result
    equal(len(data), len(weight), "input and weights have different numbers of dimensions")
    equal(data[1], groups * weight[1], "channels of the input and of the weights differ")
    equal(weight[0] % groups, 0, f"{weight[0]} channels do not divide into {groups} groups")
    strides, dilations = node.numbers("stride", 1, axes), node.numbers("dilation", 1, axes)
    channels = weight[0] // groups, weight[1]
    problem = nests.convolution(name, data[0], groups, channels, result[2:], weight[2:], strides, dilations)
    reaches = [(size - 1) * dilation for size, dilation in zip(weight[2:], dilations, strict=True)]
    layouts = in_order(problem)
    if (pads := _pads(node, reaches)) is None or not all(
        (size + 2 * pad - reach - 1) // stride + 1 == position or node.arguments.get("padding") == "same"
        for size, pad, reach, stride, position in zip(data[2:], pads, reaches, strides, result[2:], strict=True)
    ):
        del layouts["Inputs"]
    else:
        layouts["Inputs"] = Layout(pads=pads)
    return node.product(problem, ("input", "weight"), layouts)


def _pads(node: Node, reaches: Sequence[int]) -> tuple[int, ...] | None:
    """Return the padding in front of each axis; None: not known.

    Args:
        node: the convolution.
        reaches: distance of the first and the last position of the window, along each axis.
    """
    padding = node.arguments.get("padding")
    if padding in ("same", "valid"):
        return tuple(reach // 2 if padding == "same" else 0 for reach in reaches)
    pads = [padding] if not isinstance(padding, list | tuple) else padding
    if padding is not None and not all(type(pad) is int for pad in pads):
        return None
    return tuple(node.numbers("padding", 0, len(reaches)))


def _conv_transpose(node: Node, name: str) -> Parts:
    data, weight, groups = node.shape("input"), node.shape("weight"), int(node.arguments.get("groups") or 1)
    axes = len(weight) - 2
    nests.check_axes(axes)
    data = (1, *data) if len(data) == axes + 1 else data
    equal(len(data), len(weight), "input and weights have different numbers of dimensions")
    equal(data[1], weight[0], "channels of the input and of the weights differ")
    equal(data[1] % groups, 0, f"{data[1]} channels do not divide into {groups} groups")
    strides, dilations = node.numbers("stride", 1, axes), node.numbers("dilation", 1, axes)
    channels = weight[1], data[1] // groups
    problem = nests.convolution(
        name, data[0], groups, channels, data[2:], weight[2:], strides, dilations, transposed=True
    )
    layouts = transposed_layouts(problem, groups, weight, _pads(node, [0] * axes))
    return node.product(problem, ("input", "weight"), layouts)


def _linear(node: Node, name: str) -> Parts:
    """Return a product with weights N x K; all leading dimensions of the input are rows."""
    data, weight = node.shape("input"), node.shape("weight")
    if len(weight) != 2:
        raise Unsupported("its weights are not a matrix")
    problem = nests.gemm(name, (math.prod(data[:-1]), data[-1]), weight[::-1])
    return node.product(problem, ("input", "weight"), in_order(problem, B=Layout(order=(1, 0))))


def _product(first: str, second: str) -> Builder:
    def build(node: Node, name: str) -> Parts:
        problem = nests.matmul(name, node.shape(first), node.shape(second))
        return node.product(problem, (first, second), in_order(problem))

    return build


def _einsum(node: Node, name: str) -> Parts:
    tensors = node.arguments["tensors"]
    problem = nests.einsum(name, str(node.arguments["equation"]), [node.shapes[tensor] for tensor in tensors])
    return [Product(problem, (*tensors, node.results[0]), layouts=in_order(problem))]


def _attention(node: Node, name: str) -> Parts:
    shapes = [node.shape(operand) for operand in ("query", "key", "value")]
    q, k, v = (node.arguments[operand] for operand in ("query", "key", "value"))
    values = q, k, v, node.results[0]
    return attended(name, shapes[0], shapes[1], shapes[2], values, [Layout()] * 4, f"{node.operator}.softmax")


Builder = Callable[[Node, str], Parts]
"""A function from node and layer name to products, each reading the result of the previous one.

It raises Unsupported for forms that are not mapped, and a Python error if the node contradicts itself.
"""
BUILDERS: Mapping[str, Builder] = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution"), _conv),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _conv_transpose),
    "linear": _linear,
    "mm": _product("self", "mat2"),
    "bmm": _product("self", "mat2"),
    "addmm": _product("mat1", "mat2"),
    "baddbmm": _product("batch1", "batch2"),
    "matmul": _product("self", "other"),
    "mv": _product("self", "vec"),
    "einsum": _einsum,
    "scaled_dot_product_attention": _attention,
}


def builder_of(operator: str) -> Builder | None:
    """Return the builder of an operator, or None.

    Attention kernels that a decomposition chooses share their first arguments with attention.
    """
    return BUILDERS.get(_attention_of(operator))


def _attention_of(operator: str) -> str:
    return "scaled_dot_product_attention" if operator.startswith("_scaled_dot_product_") else operator


def names_of(arguments: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return argument -> value: tensors as names or lists of names, numbers and texts unchanged."""
    return {str(argument["name"]): _plain(argument["arg"]) for argument in arguments}


def _plain(argument: Mapping[str, Any]) -> Any:
    ((kind, value),) = argument.items()
    match kind:
        case "as_none":
            return None
        case "as_float":
            return float(value)  # infinity is a text
        case "as_tensor":
            return value["name"]
        case "as_tensors":
            return [item["name"] for item in value]
        case "as_sym_int":
            return value.get("as_int", value.get("as_name"))
        case "as_sym_ints":
            return [item.get("as_int", item.get("as_name")) for item in value]
        case "as_optional_tensor":
            return value["as_tensor"]["name"] if "as_tensor" in value else None
    return value
