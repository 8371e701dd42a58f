"""Products executed on numbers through the layouts of their operands and of their result."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.onnx_models import walk
from tilewright.schema.read import shape_of
from tilewright_frontends.products import Product
from tilewright_frontends.views import Axis, View

Array = NDArray[Any]


def executed(product: Product, operands: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """The value of a product, of which operands and result are in the file's order."""
    problem = product.problem
    tensors = []
    for tensor, array in zip(problem.operands, operands, strict=True):
        read = product.layouts[tensor.name].read(plain(array.shape), problem, tensor.name)
        assert read is not None and read.cut is None, read
        made, words = read.points()
        box = np.zeros(shape_of(problem, tensor.name), array.dtype)
        box[words] = array[made]
        tensors.append(box)
    result = walk(problem, tensors)
    read = product.layouts[problem.output.name].result(problem, shape).read()
    assert read.cut is None, read.cut
    made, words = read.points()
    output = np.zeros(shape, result.dtype)
    output[words] = result[made]
    return output


def plain(shape: tuple[int, ...]) -> View:
    """The words of a value, as if a layer made all of them."""
    sizes = {f"a{place}": size for place, size in enumerate(shape) if size > 1}
    names = [(f"a{place}",) if size > 1 else () for place, size in enumerate(shape)]
    made = tuple(({name: 1 for name in axes}, 0) for axes in names)
    return View("value", sizes, made, tuple(Axis(size, axes) for size, axes in zip(shape, names, strict=True)))


def convolved(
    data: Array,
    weight: Array,
    pads: Sequence[tuple[int, int]],
    strides: Sequence[int],
    dilations: Sequence[int] = (1, 1),
    groups: int = 1,
) -> Array:
    """A convolution of N x C x H x W with K x C/groups x R x S, written out."""
    padded = np.pad(data, [(0, 0), (0, 0), *pads])
    outward, inward, *window = weight.shape
    reach = [(size - 1) * dilation for size, dilation in zip(window, dilations, strict=True)]
    rows, columns = (
        (size - length - 1) // stride + 1 for size, length, stride in zip(padded.shape[2:], reach, strides, strict=True)
    )
    output = np.zeros((len(data), outward, rows, columns), data.dtype)
    for k in range(outward):
        first = k // (outward // groups) * inward
        for p in range(rows):
            for q in range(columns):
                y, x = p * strides[0], q * strides[1]
                part = padded[
                    :, first : first + inward, y : y + reach[0] + 1 : dilations[0], x : x + reach[1] + 1 : dilations[1]
                ]
                output[:, k, p, q] = (part * weight[k]).sum(axis=(1, 2, 3))
    return output
