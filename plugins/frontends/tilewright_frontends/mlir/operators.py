"""Mapped operators of StableHLO, TOSA, TensorFlow, linalg and COMET: conversion to loop nests of `nests`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tilewright.schema.problem import Problem
from tilewright_frontends import nests
from tilewright_frontends.mlir import comet
from tilewright_frontends.mlir.tree import Operation, result_name
from tilewright_frontends.nests import Shape, Unsupported, equal
from tilewright_frontends.products import Product, in_order, made_as, read_as
from tilewright_frontends.views import Layout

Shapes = Sequence[Shape]
"""Shapes of the operands, then of the results."""
Builder = Callable[[Operation, Shapes, str], Product]
"""A function from operation, shapes and layer name to a product of the operands `x0`, `x1`, ...

It raises Unsupported for forms that are not mapped, and a Python error if the operation contradicts
itself.
"""


def _product(
    operation: Operation, problem: Problem, layouts: Mapping[str, Layout], places: Sequence[int] = (0, 1)
) -> Product:
    """Return the product of the operands at these places."""
    return Product(problem, (*(f"x{place}" for place in places), result_name(operation)), layouts=layouts)


def _plain(operation: Operation, problem: Problem) -> Product:
    """Return the product of the first operands, whose words have the order of the problem's tensors."""
    return _product(operation, problem, in_order(problem), range(len(problem.tensors) - 1))


@dataclass(frozen=True)
class _Convolved:
    """Axes of a convolution's tensors in the file: N, G, C, K, and the letters of the picture.

    Attributes:
        data, weight, result: each axis with its coordinates in row-major order.
        sizes: sizes of N, G, C and K.
        picture: sizes of the axes of the data.
        window: sizes of the weights.
        positions: sizes of the axes of the result; those of the whole box, if the convolution is transposed.
        pads: words of padding in front of the data, along each axis.
        cut: words of a transposed convolution's box that the result lacks in front.
    """

    data: Sequence[Sequence[str]]
    weight: Sequence[Sequence[str]]
    result: Sequence[Sequence[str]]
    sizes: Mapping[str, int]
    picture: Shape
    window: Shape
    positions: Shape
    pads: Sequence[int] = ()
    cut: Sequence[int] = ()

    def layouts(self) -> dict[str, Layout]:
        """Return the layouts of the problem's tensors."""
        letters = "DHW"[3 - len(self.picture) :]

        def along(sizes: Shape) -> dict[str, int]:
            return dict(self.sizes) | dict(zip(letters, sizes, strict=True))

        return {
            "Inputs": read_as(self.data, along(self.picture), ["N", "G", "C", *letters], *self.pads),
            "Weights": read_as(self.weight, along(self.window), ["G", "K", "C", *letters]),
            "Outputs": made_as(self.result, along(self.positions), ["N", "G", "K", *letters], *self.cut),
        }


def _axes(letters: str, **other: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the axes of a tensor by its letters. `other` has those with several coordinates."""
    return [other.get(letter, (letter,)) for letter in letters]


def _before(mode: object, sizes: Shape, positions: Shape, reaches: Sequence[int], strides: Sequence[int]) -> Shape:
    """Return TensorFlow's padding in front of each axis. `reaches`: from the first to the last position of the window."""
    if mode != "SAME":
        return (0,) * len(sizes)
    rows = zip(sizes, positions, reaches, strides, strict=True)
    return tuple(max(0, (position - 1) * stride + reach + 1 - size) // 2 for size, position, reach, stride in rows)


# -- StableHLO
# -----------------------------------------------------------------------------------------------------

_LAYOUT = re.compile(r"\[([\w, ]*)\]x\[([\w, ]*)\]->\[([\w, ]*)\]")
_RAW = re.compile(r"(\w+_dimensions?) = (\d+|\[[\d, ]*\])")
_DIGITS = re.compile(r"\d+")
_LIST = re.compile(r"(\w+) = \[([\d, ]*)\]")


def _stablehlo_convolution(operation: Operation, shapes: Shapes, name: str) -> Product:
    data, weight, result = shapes[0], shapes[1], shapes[-1]
    of_data, of_weight, of_result = _layouts(operation.text("dimension_numbers"), (data, weight, result))
    axes = [str(axis) for axis in range(len(data) - 2)]
    nests.check_axes(len(axes))
    batch, channels = data[of_data["b"]], data[of_data["f"]]
    inward, outward = weight[of_weight["i"]], weight[of_weight["o"]]
    groups, batches = (operation.integers(key, 1)[0] for key in ("feature_group_count", "batch_group_count"))
    if groups > 1 and batches > 1:
        raise Unsupported("groups of channels and of the batch at once")
    equal(channels, groups * inward, "channels of the input and of the weights differ")
    for count, what in ((outward, "channels"), (batch if batches > 1 else 0, "pictures")):
        equal(count % (groups * batches), 0, f"{count} {what} do not divide into {groups * batches} groups")
    strides, stretched, dilations = (
        operation.integers(key, len(axes)) for key in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    transposed = max(stretched) > 1
    if transposed and max(strides) > 1:
        raise Unsupported("strides and a dilated input at once")
    padding = operation.integers("padding", 2 * len(axes), 0)
    inputs = tuple(data[of_data[axis]] for axis in axes)
    window = tuple(weight[of_weight[axis]] for axis in axes)
    outputs = tuple(result[of_result[axis]] for axis in axes)
    padded = [
        (size - 1) * factor + 1 + padding[2 * axis] + padding[2 * axis + 1]
        for axis, (size, factor) in enumerate(zip(inputs, stretched, strict=True))
    ]
    _check_positions(outputs, padded, window, strides, dilations)
    every = groups * batches
    problem = nests.convolution(
        name,
        batch // batches,
        every,
        (outward // every, inward),
        inputs if transposed else outputs,
        window,
        stretched if transposed else strides,
        dilations,
        transposed,
    )
    letters = {str(axis): "DHW"[3 - len(axes) :][axis] for axis in range(len(axes))}

    def named(places: Mapping[str, int], **other: tuple[str, ...]) -> list[tuple[str, ...]]:
        return [
            other.get(letter, (letters.get(letter, ""),))
            for letter, _ in sorted(places.items(), key=lambda pair: pair[1])
        ]

    fronts = padding[::2]
    reaches = [(size - 1) * dilation for size, dilation in zip(window, dilations, strict=True)]
    convolved = _Convolved(
        data=named(of_data, b=("G", "N") if batches > 1 else ("N",), f=("C",) if batches > 1 else ("G", "C")),
        weight=named(of_weight, i=("C",), o=("G", "K")),
        result=named(of_result, b=("N",), f=("G", "K")),
        sizes={"N": batch // batches, "G": every, "C": inward, "K": outward // every},
        picture=inputs,
        window=window,
        positions=_box(inputs, stretched, window, dilations) if transposed else outputs,
        pads=() if transposed else fronts,
        cut=[reach - front for reach, front in zip(reaches, fronts, strict=True)] if transposed else (),
    )
    layouts = convolved.layouts()
    if transposed or any(operation.integers("window_reversal", len(axes), 0)):
        del layouts["Weights"]  # the window is reversed
    return _product(operation, problem, layouts)


def _layouts(text: str, shapes: Shapes) -> list[dict[str, int]]:
    """Return letter -> position for input, weights and result, from either notation."""
    if layout := _LAYOUT.search(text):
        return [_places(part, shape) for part, shape in zip(layout.groups(), shapes, strict=True)]
    if "raw" not in text:
        raise ValueError("dimension_numbers cannot be read")
    numbers_by_key = {key: [int(number) for number in _DIGITS.findall(numbers)] for key, numbers in _RAW.findall(text)}
    kinds = {
        "input": ("batch", "feature"),
        "kernel": ("output_feature", "input_feature"),
        "output": ("batch", "feature"),
    }
    layouts = []
    for (tensor, pair), letters in zip(kinds.items(), ("bf", "oi", "bf"), strict=True):
        axes = numbers_by_key[f"{tensor}_spatial_dimensions"]
        named = {
            letter: numbers_by_key[f"{tensor}_{kind}_dimension"][0] for letter, kind in zip(letters, pair, strict=True)
        }
        layouts.append(named | {str(axis): place for axis, place in enumerate(axes)})
    return layouts


def _places(text: str, shape: Shape) -> dict[str, int]:
    letters = [letter.strip() for letter in text.split(",")]
    equal(len(letters), len(shape), "dimension_numbers and shape differ in rank")
    return {letter: place for place, letter in enumerate(letters)}


def _check_positions(
    positions: Shape, padded: Sequence[int], window: Shape, strides: Sequence[int], dilations: Sequence[int]
) -> None:
    """Check the result's size against the number of window positions in the padded input.

    Raises:
        ValueError: they differ.
    """
    for position, size, offsets, stride, dilation in zip(positions, padded, window, strides, dilations, strict=True):
        if min(stride, dilation) < 1:
            raise ValueError(f"stride {stride} and dilation {dilation}; each must be at least 1")
        left = size - (offsets - 1) * dilation - 1
        equal(
            position,
            left // stride + 1 if left >= 0 else 0,
            "the result's size and the number of window positions differ",
        )


def _dot_general(operation: Operation, shapes: Shapes, name: str) -> Product:
    lists = {
        key: [int(place) for place in places.split(",") if place.strip()]
        for key, places in _LIST.findall(operation.text("dot_dimension_numbers"))
    }
    batches, contracted = (
        [lists.get(f"{side}_{kind}_dimensions", []) for side in ("lhs", "rhs")] for kind in ("batching", "contracting")
    )
    if not contracted[0]:
        raise Unsupported("nothing is contracted: an outer product")
    names: list[list[str]] = []
    for side, free in enumerate("MN"):
        shape = shapes[side]
        left = [place for place in range(len(shape)) if place not in (*batches[side], *contracted[side])]
        letters = _numbered("B", batches[side], always=True) | _numbered("K", contracted[side]) | _numbered(free, left)
        if len(letters) != len(shape):
            raise ValueError(f"dot_dimension_numbers name {len(letters)} of {len(shape)} dimensions")
        names.append([letters[place] for place in range(len(shape))])
    output = [
        *(letter for letter in names[0] if letter.startswith("B")),
        *(letter for letter in names[0] if letter.startswith("M")),
        *(letter for letter in names[1] if letter.startswith("N")),
    ]
    return _plain(operation, _contracted(name, names, shapes[:2], output))


def _numbered(letter: str, places: Sequence[int], always: bool = False) -> dict[int, str]:
    """Return position -> name: M for a single one, M0, M1, ... for several."""
    alone = len(places) == 1 and not always
    return {place: letter if alone else f"{letter}{index}" for index, place in enumerate(places)}


def _contracted(name: str, operands: Sequence[Sequence[str]], shapes: Shapes, output: Sequence[str]) -> Problem:
    """Return a contraction with plain coordinates; batches of size 1 are omitted, as for ONNX."""
    sizes: dict[str, int] = {}
    for names, shape in zip(operands, shapes, strict=True):
        for letter, size in zip(names, shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                raise ValueError(f"dimension {letter} has sizes {sizes[letter]} and {size}")
    kept = {letter: size for letter, size in sizes.items() if size != 1 or not letter.startswith("B")}
    order = [*output, *(letter for letter in sizes if letter not in output)]
    ranks = [nests.plain([letter for letter in names if letter in kept]) for names in (*operands, output)]
    return nests.contraction(name, {letter: kept[letter] for letter in order if letter in kept}, ranks[:-1], ranks[-1])


def _dot(operation: Operation, shapes: Shapes, name: str) -> Product:
    left = ["M", "K"] if len(shapes[0]) == 2 else ["K"]
    right = ["K", "N"] if len(shapes[1]) == 2 else ["K"]
    output = [letter for letter in "MN" if letter in (*left, *right)]
    return _plain(operation, _contracted(name, [left, right], shapes[:2], output))


# -- TOSA
# ------------------------------------------------------------------------------------------------------------


def _tosa_convolution(operation: Operation, shapes: Shapes, name: str) -> Product:
    """Return a convolution with layouts NHWC and OHWI; rocMLIR's TOSA has groups."""
    data, weight, result = shapes[0], shapes[1], shapes[-1]
    axes, (groups,) = len(data) - 2, operation.integers("group", 1)
    nests.check_axes(axes)
    equal(data[-1], groups * weight[-1], "channels of the input and of the weights differ")
    equal(weight[0] % groups, 0, f"{weight[0]} channels do not divide into {groups} groups")
    equal(result[-1], weight[0], "channels of the result and of the weights differ")
    strides, dilations, padding = (
        operation.integers("stride", axes),
        operation.integers("dilation", axes),
        operation.integers("pad", 2 * axes, 0),
    )
    padded = [data[1 + axis] + padding[2 * axis] + padding[2 * axis + 1] for axis in range(axes)]
    _check_positions(result[1:-1], padded, weight[1:-1], strides, dilations)
    channels = weight[0] // groups, weight[-1]
    problem = nests.convolution(name, data[0], groups, channels, result[1:-1], weight[1:-1], strides, dilations)
    letters = "DHW"[3 - axes :]
    convolved = _Convolved(
        data=_axes(f"N{letters}C", C=("G", "C")),
        weight=_axes(f"K{letters}C", K=("G", "K")),
        result=_axes(f"N{letters}K", K=("G", "K")),
        sizes={"N": data[0], "G": groups, "K": channels[0], "C": channels[1]},
        picture=data[1:-1],
        window=weight[1:-1],
        positions=result[1:-1],
        pads=padding[::2],
    )
    return _product(operation, problem, convolved.layouts())


def _tosa_depthwise(operation: Operation, shapes: Shapes, name: str) -> Product:
    """Return a depthwise convolution with layouts NHWC and HWCM."""
    data, weight, result = shapes[0], shapes[1], shapes[-1]
    equal(data[3], weight[2], "channels of the input and of the weights differ")
    equal(result[3], weight[2] * weight[3], "channels of the result and of the weights differ")
    strides, dilations = operation.integers("stride", 2), operation.integers("dilation", 2)
    padding = operation.integers("pad", 4, 0)
    padded = [data[1 + axis] + padding[2 * axis] + padding[2 * axis + 1] for axis in range(2)]
    _check_positions(result[1:3], padded, weight[:2], strides, dilations)
    problem = nests.convolution(name, data[0], data[3], (weight[3], 1), result[1:3], weight[:2], strides, dilations)
    return _product(operation, problem, _depthwise(data, weight, result, padding[::2]).layouts())


def _depthwise(data: Shape, weight: Shape, result: Shape, pads: Sequence[int], first: bool = False) -> _Convolved:
    """Return the axes of a depthwise convolution: NHWC, or NCHW if channels are `first`, and HWCM.

    The shapes are those with channels last.
    """
    letters = "{}HW" if first else "HW{}"
    return _Convolved(
        data=_axes(f"N{letters.format('G')}"),
        weight=_axes("HWGK"),
        result=_axes(f"N{letters.format('K')}", K=("G", "K")),
        sizes={"N": data[0], "G": data[3], "K": weight[3], "C": 1},
        picture=data[1:3],
        window=weight[:2],
        positions=result[1:3],
        pads=pads,
    )


def _tosa_transposed(operation: Operation, shapes: Shapes, name: str) -> Product:
    """Return a transposed convolution with layouts NHWC and OHWI."""
    data, weight, result = shapes[0], shapes[1], shapes[-1]
    equal(data[3], weight[3], "channels of the input and of the weights differ")
    equal(result[3], weight[0], "channels of the result and of the weights differ")
    strides, padding = operation.integers("stride", 2), operation.integers("out_pad", 4, 0)
    problem = nests.convolution(
        name, data[0], 1, (weight[0], weight[3]), data[1:3], weight[1:3], strides, (1, 1), transposed=True
    )
    convolved = _Convolved(
        data=_axes("NHWC", C=("G", "C")),
        weight=_axes("KHWC", K=("G", "K")),
        result=_axes("NHWK", K=("G", "K")),
        sizes={"N": data[0], "G": 1, "K": weight[0], "C": weight[3]},
        picture=data[1:3],
        window=weight[1:3],
        positions=_box(data[1:3], strides, weight[1:3], (1, 1)),
        cut=[-front for front in padding[::2]],
    )
    return _product(operation, problem, convolved.layouts())


def _box(sizes: Shape, strides: Sequence[int], window: Shape, dilations: Sequence[int]) -> Shape:
    """Return the size of a transposed convolution's result before it is cut."""
    rows = zip(sizes, strides, window, dilations, strict=True)
    return tuple((size - 1) * stride + (offsets - 1) * dilation + 1 for size, stride, offsets, dilation in rows)


def _matmul(operation: Operation, shapes: Shapes, name: str) -> Product:
    return _plain(operation, nests.matmul(name, shapes[0], shapes[1]))


def _tosa_dense(operation: Operation, shapes: Shapes, name: str) -> Product:
    """Return a product with weights N x K, of TOSA before 1.0."""
    problem = nests.gemm(name, shapes[0], shapes[1][::-1])
    return _product(operation, problem, in_order(problem, B=Layout(order=(1, 0))))


# -- TensorFlow
# ------------------------------------------------------------------------------------------------------


def _tf_spatial(operation: Operation, key: str) -> tuple[int, int]:
    """Return strides or dilations of the two spatial axes, from a list over all four."""
    numbers = operation.integers(key, 4)
    first = 2 if _channels_first(operation) else 1
    if math.prod(numbers) != numbers[first] * numbers[first + 1]:
        raise Unsupported(f"{key} {list(numbers)} over batch or channels")
    return numbers[first], numbers[first + 1]


def _channels_first(operation: Operation) -> bool:
    return operation.attributes.get("data_format") == "NCHW"


def _channels_last(operation: Operation, shape: Shape) -> Shape:
    """Return the shape as N, H, W, C, for either data format. Raises ValueError."""
    n, *rest = shape
    equal(len(rest), 3, "a picture has a batch, two axes and channels; dimensions")
    return (n, *rest[1:], rest[0]) if _channels_first(operation) else shape


def _tf_conv(operation: Operation, shapes: Shapes, name: str) -> Product:
    """Return a convolution with weights in layout HWIO."""
    data, weight, result = _channels_last(operation, shapes[0]), shapes[1], _channels_last(operation, shapes[-1])
    groups = data[3] // weight[2]
    equal(data[3], groups * weight[2], "channels of the input and of the weights differ")
    equal(weight[3] % groups, 0, f"{weight[3]} channels do not divide into {groups} groups")
    strides, dilations = _tf_spatial(operation, "strides"), _tf_spatial(operation, "dilations")
    channels = weight[3] // groups, weight[2]
    problem = nests.convolution(name, data[0], groups, channels, result[1:3], weight[:2], strides, dilations)
    letters = "{}HW" if _channels_first(operation) else "HW{}"
    convolved = _Convolved(
        data=_axes(f"N{letters.format('C')}", C=("G", "C")),
        weight=_axes("HWCK", K=("G", "K")),
        result=_axes(f"N{letters.format('K')}", K=("G", "K")),
        sizes={"N": data[0], "G": groups, "K": channels[0], "C": channels[1]},
        picture=data[1:3],
        window=weight[:2],
        positions=result[1:3],
        pads=_tf_pads(operation, data, result, weight, strides, dilations),
    )
    return _product(operation, problem, convolved.layouts())


def _tf_pads(
    operation: Operation, data: Shape, result: Shape, weight: Shape, strides: Sequence[int], dilations: Sequence[int]
) -> Shape:
    """Return the padding in front of both axes of the data. Shapes have channels last, weights begin with the window."""
    if operation.attributes.get("padding") == "EXPLICIT":
        padding = operation.integers("explicit_paddings", 8, 0)
        first = 2 if _channels_first(operation) else 1
        return padding[2 * first], padding[2 * first + 2]
    reaches = [(size - 1) * dilation for size, dilation in zip(weight[:2], dilations, strict=True)]
    return _before(operation.attributes.get("padding"), data[1:3], result[1:3], reaches, strides)


def _tf_depthwise(operation: Operation, shapes: Shapes, name: str) -> Product:
    """Return a depthwise convolution with weights in layout HWCM."""
    data, weight, result = _channels_last(operation, shapes[0]), shapes[1], _channels_last(operation, shapes[-1])
    equal(data[3], weight[2], "channels of the input and of the weights differ")
    strides, dilations = _tf_spatial(operation, "strides"), _tf_spatial(operation, "dilations")
    problem = nests.convolution(name, data[0], data[3], (weight[3], 1), result[1:3], weight[:2], strides, dilations)
    pads = _tf_pads(operation, data, result, weight, strides, dilations)
    return _product(operation, problem, _depthwise(data, weight, result, pads, _channels_first(operation)).layouts())


def _tf_transposed(operation: Operation, shapes: Shapes, name: str) -> Product:
    """Return a transposed convolution with weights in layout HWOI; the input is the third operand."""
    weight, data = shapes[1], _channels_last(operation, shapes[2])
    equal(data[3], weight[3], "channels of the input and of the weights differ")
    strides, dilations = _tf_spatial(operation, "strides"), _tf_spatial(operation, "dilations")
    channels, result = (weight[2], weight[3]), _channels_last(operation, shapes[-1])
    problem = nests.convolution(name, data[0], 1, channels, data[1:3], weight[:2], strides, dilations, transposed=True)
    letters = "{}HW" if _channels_first(operation) else "HW{}"
    convolved = _Convolved(
        data=_axes(f"N{letters.format('C')}", C=("G", "C")),
        weight=_axes("HWKC", K=("G", "K")),
        result=_axes(f"N{letters.format('K')}", K=("G", "K")),
        sizes={"N": data[0], "G": 1, "K": channels[0], "C": channels[1]},
        picture=data[1:3],
        window=weight[:2],
        positions=_box(data[1:3], strides, weight[:2], dilations),
        cut=_tf_pads(operation, result, data, weight, strides, dilations),  # it is the gradient of a convolution
    )
    return _product(operation, problem, convolved.layouts(), (2, 1))


def _tf_matmul(operation: Operation, shapes: Shapes, name: str) -> Product:
    turned = [
        any(operation.attributes.get(key) for key in keys)
        for keys in (("transpose_a", "adj_x"), ("transpose_b", "adj_y"))
    ]
    a, b = (
        (*shape[:-2], shape[-1], shape[-2]) if turn else shape for shape, turn in zip(shapes[:2], turned, strict=True)
    )
    problem = nests.matmul(name, a, b)
    orders = [(*range(len(shape) - 2), len(shape) - 1, len(shape) - 2) for shape in shapes[:2]]
    layouts = {operand: Layout(order=order) for operand, order, turn in zip("AB", orders, turned, strict=True) if turn}
    return _product(operation, problem, in_order(problem, **layouts))


def _tf_einsum(operation: Operation, shapes: Shapes, name: str) -> Product:
    return _plain(operation, nests.einsum(name, operation.text("equation"), shapes[:-1]))


# -- linalg
# ----------------------------------------------------------------------------------------------------------

_LINALG_CONV = re.compile(r"(depthwise_)?conv_([123])d(?:_([a-z]+)_([a-z]+?))?(?:_q)?")
PRODUCTS = {
    "matmul": "mk,kn->mn",
    "matmul_transpose_a": "km,kn->mn",
    "matmul_transpose_b": "mk,nk->mn",
    "quantized_matmul": "mk,kn->mn",
    "batch_matmul": "bmk,bkn->bmn",
    "batch_matmul_transpose_a": "bkm,bkn->bmn",
    "batch_matmul_transpose_b": "bmk,bnk->bmn",
    "quantized_batch_matmul": "bmk,bkn->bmn",
    "batch_reduce_matmul": "bmk,bkn->mn",
    "matvec": "mk,k->m",
    "vecmat": "k,kn->n",
    "batch_matvec": "bmk,bk->bm",
    "batch_vecmat": "bk,bkn->bn",
    "dot": "k,k->",
}
"""Named contractions of linalg -> equation."""
_BATCH = {"B": "B0"}


def _linalg_convolution(operation: Operation, shapes: Shapes, name: str) -> Product:
    """Return a convolution whose name lists the layouts by letters.

    The letters are n, g, c, f (m: multiplier per channel), and d, h, w.
    """
    match = _LINALG_CONV.fullmatch(operation.kind)
    if match is None:
        raise Unsupported("the convolution's name lists no known layout of linalg")
    axes = "dhw"[3 - int(match[2]) :]
    of_data, of_weight = match[3] or axes, match[4] or axes
    data, weight = _letters(of_data, shapes[0]), _letters(of_weight, shapes[1])
    depthwise = match[1] is not None
    of_result = of_data.replace("c", "c" if depthwise else "f") + ("m" if "m" in of_weight else "")
    if "g" in of_data and "f" in of_result:
        of_result = of_data.replace("c", "f")
    result = _letters(of_result, shapes[-1])
    positions, window = tuple(result[axis] for axis in axes), tuple(weight[axis] for axis in axes)
    strides, dilations = operation.integers("strides", len(axes)), operation.integers("dilations", len(axes))
    for axis, position, offsets, stride, dilation in zip(axes, positions, window, strides, dilations, strict=True):
        if (position - 1) * stride + (offsets - 1) * dilation >= data[axis]:
            raise ValueError(f"the window leaves the input along {axis}")
    for letter in set(data) & set(weight) - set(axes):
        equal(data[letter], weight[letter], f"'{letter}' of the input and of the weights differ")
    groups = data.get("c", 1) if depthwise else data.get("g", 1)
    outward = weight.get("m" if depthwise else "f", 1)
    inward = 1 if depthwise else data.get("c", 1)
    problem = nests.convolution(
        name, data.get("n", 1), groups, (outward, inward), positions, window, strides, dilations
    )
    named = {"n": "N", "g": "G", "c": "G" if depthwise else "C", "f": "K", "m": "K"} | {
        axis: axis.upper() for axis in axes
    }

    convolved = _Convolved(
        data=[(named[place],) for place in of_data],
        weight=[(named[place],) for place in of_weight],
        result=[(named[place],) for place in of_result],
        sizes={"N": data.get("n", 1), "G": groups, "K": outward, "C": inward},
        picture=tuple(data[axis] for axis in axes),
        window=window,
        positions=positions,
        pads=(0,) * len(axes),
    )
    return _product(operation, problem, convolved.layouts())


def _letters(letters: str, shape: Shape) -> dict[str, int]:
    equal(len(letters), len(shape), f"the shape of '{letters}' has a different rank")
    return dict(zip(letters, shape, strict=True))


def _linalg_product(operation: Operation, shapes: Shapes, name: str) -> Product:
    left, _, right = PRODUCTS[operation.kind].upper().partition("->")
    operands = [[_BATCH.get(letter, letter) for letter in text] for text in left.split(",")]
    output = [_BATCH.get(letter, letter) for letter in right]
    return _plain(operation, _contracted(name, operands, shapes[:2], output))


BUILDERS: dict[str, Builder] = {
    comet.PRODUCT: comet.product,
    "stablehlo.convolution": _stablehlo_convolution,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.dot": _dot,
    "tosa.conv2d": _tosa_convolution,
    "tosa.conv3d": _tosa_convolution,
    "tosa.depthwise_conv2d": _tosa_depthwise,
    "tosa.transpose_conv2d": _tosa_transposed,
    "tosa.matmul": _matmul,
    "tosa.fully_connected": _tosa_dense,
    "tf.Conv2D": _tf_conv,
    "tf.DepthwiseConv2dNative": _tf_depthwise,
    "tf.Conv2DBackpropInput": _tf_transposed,
    "tf.MatMul": _tf_matmul,
    "tf.BatchMatMul": _tf_matmul,
    "tf.BatchMatMulV2": _tf_matmul,
    "tf.Einsum": _tf_einsum,
}


def builder_of(name: str) -> Builder | None:
    """Return the builder of a named operator, or None."""
    if name.startswith("linalg."):
        kind = name.removeprefix("linalg.")
        if kind in PRODUCTS:
            return _linalg_product
        return _linalg_convolution if "conv_" in kind else None
    return BUILDERS.get(name.replace("mhlo.", "stablehlo.", 1))
