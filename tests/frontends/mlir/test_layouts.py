"""Products on numbers in the file's order are convolutions and products in the file's order."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from support.layouts import convolved, executed
from support.onnx_models import whole_numbers
from tilewright_frontends.mlir.operators import builder_of
from tilewright_frontends.mlir.tree import Attribute, Operation, Value


def built(name: str, shapes: Sequence[tuple[int, ...]], places: tuple[int, ...] = (0, 1), **attributes: Any) -> Any:
    """The value of an operation of random operands, and these operands. The last shape is the result's."""
    values = [Value(shape) for shape in shapes]
    operation = Operation(name, tuple(values[:-1]), tuple(values[-1:]), attributes, (), 1, 1)
    builder = builder_of(name)
    assert builder is not None
    product = builder(operation, shapes, "layer")
    assert product.values == (*(f"x{place}" for place in places), "y0")
    operands = [whole_numbers(*shapes[place]) + 0.0 for place in places]
    return executed(product, operands, shapes[-1]), operands


def same(size: int, stride: int, reach: int) -> tuple[int, int]:
    """TensorFlow's padding of an axis."""
    total = max(0, (-(-size // stride) - 1) * stride + reach - size)
    return total // 2, total - total // 2


def test_tosa() -> None:
    shapes = [(2, 6, 7, 3), (4, 3, 2, 3), (2, 3, 8, 4)]
    found, (x, w) = built("tosa.conv2d", shapes, pad=(1, 0, 2, 1), stride=(2, 1), dilation=(1, 2))
    expected = convolved(x.transpose(0, 3, 1, 2), w.transpose(0, 3, 1, 2), [(1, 0), (2, 1)], (2, 1), (1, 2))
    np.testing.assert_array_equal(found, expected.transpose(0, 2, 3, 1))

    found, (x, w) = built("tosa.depthwise_conv2d", [(1, 5, 6, 3), (3, 2, 3, 2), (1, 5, 6, 6)], pad=(1, 1, 0, 1))
    weight = w.transpose(2, 3, 0, 1).reshape(6, 1, 3, 2)
    expected = convolved(x.transpose(0, 3, 1, 2), weight, [(1, 1), (0, 1)], (1, 1), groups=3)
    np.testing.assert_array_equal(found, expected.transpose(0, 2, 3, 1))

    found, (x, w) = built(
        "tosa.transpose_conv2d", [(1, 4, 3, 2), (5, 3, 2, 2), (1, 7, 7, 5)], stride=(2, 3), out_pad=(-1, -1, -1, 0)
    )
    spread = np.zeros((1, 2, 7, 7))
    spread[:, :, ::2, ::3] = x.transpose(0, 3, 1, 2)
    flipped = w.transpose(0, 3, 1, 2)[:, :, ::-1, ::-1]
    expected = convolved(spread, flipped, [(2, 2), (1, 1)], (1, 1))[:, :, 1:-1, 1:]
    np.testing.assert_array_equal(found, expected.transpose(0, 2, 3, 1))

    found, (x, w) = built("tosa.fully_connected", [(3, 4), (5, 4), (3, 5)])
    np.testing.assert_array_equal(found, x @ w.T)


STABLE = "dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"


def stablehlo(shapes: list[tuple[int, ...]], numbers: str = STABLE, **attributes: Any) -> Any:
    layout = numbers.removeprefix("dim_numbers = ")
    return built("stablehlo.convolution", shapes, dimension_numbers=layout, **attributes)


def test_stablehlo() -> None:
    found, (x, w) = stablehlo(
        [(2, 7, 6, 4), (3, 2, 2, 6), (2, 3, 7, 6)],
        padding=(0, 1, 1, 1),
        window_strides=(2, 1),
        rhs_dilation=(1, 1),
        feature_group_count=2,
    )
    expected = convolved(x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), [(0, 1), (1, 1)], (2, 1), groups=2)
    np.testing.assert_array_equal(found, expected.transpose(0, 2, 3, 1))

    found, (x, w) = stablehlo([(4, 5, 5, 3), (2, 2, 3, 6), (2, 4, 4, 6)], batch_group_count=2)
    halves = [
        convolved(
            x[2 * g : 2 * g + 2].transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1)[3 * g : 3 * g + 3], [(0, 0)] * 2, (1, 1)
        )
        for g in range(2)
    ]
    np.testing.assert_array_equal(found, np.concatenate(halves, axis=1).transpose(0, 2, 3, 1))


def test_a_transposed_convolution_of_stablehlo() -> None:
    """The window is reversed, so the layout of the weights is absent; the data and the cut of the result are not."""
    shapes = [(1, 4, 3, 2), (3, 2, 2, 5), (1, 7, 6, 5)]
    values = [Value(shape) for shape in shapes]
    attributes: Mapping[str, Attribute] = {
        "dimension_numbers": STABLE.removeprefix("dim_numbers = "),
        "lhs_dilation": (2, 3),
        "padding": (1, 1, 0, 0),
    }
    builder = builder_of("stablehlo.convolution")
    assert builder is not None
    operation = Operation("stablehlo.convolution", tuple(values[:2]), tuple(values[2:]), attributes, (), 1, 1)
    product = builder(operation, shapes, "layer")
    assert product.layouts.keys() == {"Inputs", "Outputs"}
    x, w = (whole_numbers(*shape) + 0.0 for shape in shapes[:2])
    product.layouts["Weights"] = builder_of("tosa.transpose_conv2d")(  # type: ignore[misc,index]
        Operation(
            "tosa.transpose_conv2d", (Value((1, 4, 3, 2)), Value((5, 3, 2, 2))), (Value((1, 9, 8, 5)),), {}, (), 1, 1
        ),
        [(1, 4, 3, 2), (5, 3, 2, 2), (1, 9, 8, 5)],
        "other",
    ).layouts["Weights"]
    found = executed(product, [x, w[::-1, ::-1].transpose(3, 0, 1, 2)], shapes[2])
    spread = np.zeros((1, 2, 7, 7))
    spread[:, :, ::2, ::3] = x.transpose(0, 3, 1, 2)
    expected = convolved(spread, w.transpose(3, 2, 0, 1), [(1, 1), (0, 0)], (1, 1))
    np.testing.assert_array_equal(found, expected.transpose(0, 2, 3, 1))


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("padding", ["SAME", "VALID", "EXPLICIT"])
def test_tensorflow(first: bool, padding: str) -> None:
    pads = {"SAME": [same(6, 2, 3), same(5, 1, 2)], "VALID": [(0, 0)] * 2, "EXPLICIT": [(2, 1), (0, 1)]}[padding]
    x, w = whole_numbers(2, 4, 6, 5) + 0.0, whole_numbers(3, 2, 2, 6) + 0.0
    expected = convolved(x, w.transpose(3, 2, 0, 1), pads, (2, 1), groups=2)
    kept = (0, 1, 2, 3) if first else (0, 2, 3, 1)
    spatial = [(0, 0), (0, 0), *pads] if first else [(0, 0), *pads, (0, 0)]
    words: dict[str, Attribute] = {
        "data_format": "NCHW" if first else "NHWC",
        "padding": padding,
        "strides": (1, 1, 2, 1) if first else (1, 2, 1, 1),
        "explicit_paddings": tuple(number for pair in spatial for number in pair),
    }
    shapes = [tuple(np.array(each.shape)[list(kept)].tolist()) for each in (x, expected)]
    name = "tf.Conv2D"
    values = [Value(shapes[0]), Value((3, 2, 2, 6)), Value(shapes[1])]
    builder = builder_of(name)
    assert builder is not None
    product = builder(
        Operation(name, tuple(values[:2]), tuple(values[2:]), words, (), 1, 1),
        [shapes[0], (3, 2, 2, 6), shapes[1]],
        "c",
    )
    found = executed(product, [x.transpose(kept), w], shapes[1])
    np.testing.assert_array_equal(found, expected.transpose(kept))


def test_the_gradient_of_a_convolution() -> None:
    """`tf.Conv2DBackpropInput` has the padding of the convolution whose gradient it is: that of 6 x 5 in SAME, by 2 and 1."""
    shapes = [(4,), (3, 2, 3, 2), (1, 3, 5, 2), (1, 6, 5, 3)]
    found, (x, w) = built("tf.Conv2DBackpropInput", shapes, (2, 1), padding="SAME", strides=(1, 2, 1, 1))
    spread = np.zeros((1, 2, 5, 5))
    spread[:, :, ::2] = x.transpose(0, 3, 1, 2)
    full = convolved(spread, w.transpose(2, 3, 0, 1)[:, :, ::-1, ::-1], [(2, 2), (1, 1)], (1, 1))
    tops, lefts = same(6, 2, 3)[0], same(5, 1, 2)[0]
    expected = full[:, :, tops : tops + 6, lefts : lefts + 5]
    np.testing.assert_array_equal(found, expected.transpose(0, 2, 3, 1))


@pytest.mark.parametrize(("turn_a", "turn_b"), [(False, True), (True, False), (True, True)])
def test_turned_products_of_tensorflow(turn_a: bool, turn_b: bool) -> None:
    shapes = [(2, 5, 3) if turn_a else (2, 3, 5), (2, 4, 5) if turn_b else (2, 5, 4), (2, 3, 4)]
    found, (a, b) = built("tf.BatchMatMulV2", shapes, adj_x=turn_a, adj_y=turn_b)
    np.testing.assert_array_equal(found, (a.swapaxes(1, 2) if turn_a else a) @ (b.swapaxes(1, 2) if turn_b else b))


def test_linalg() -> None:
    found, (x, w) = built(
        "linalg.conv_2d_nhwc_hwcf", [(2, 7, 6, 3), (3, 2, 3, 4), (2, 3, 5, 4), (2, 3, 5, 4)], strides=(2, 1)
    )
    expected = convolved(x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), [(0, 0)] * 2, (2, 1))
    np.testing.assert_array_equal(found, expected.transpose(0, 2, 3, 1))

    found, (x, w) = built(
        "linalg.depthwise_conv_2d_nhwc_hwcm", [(1, 5, 6, 3), (3, 2, 3, 2), (1, 3, 5, 3, 2), (1, 3, 5, 3, 2)]
    )
    weight = w.transpose(2, 3, 0, 1).reshape(6, 1, 3, 2)
    expected = convolved(x.transpose(0, 3, 1, 2), weight, [(0, 0)] * 2, (1, 1), groups=3)
    np.testing.assert_array_equal(found, expected.transpose(0, 2, 3, 1).reshape(1, 3, 5, 3, 2))

    found, (x, w) = built(
        "linalg.conv_2d_ngchw_gfchw", [(1, 2, 3, 5, 5), (2, 4, 3, 3, 3), (1, 2, 4, 3, 3), (1, 2, 4, 3, 3)]
    )
    expected = convolved(x.reshape(1, 6, 5, 5), w.reshape(8, 3, 3, 3), [(0, 0)] * 2, (1, 1), groups=2)
    np.testing.assert_array_equal(found, expected.reshape(1, 2, 4, 3, 3))

    found, (a, b) = built("linalg.batch_matmul_transpose_b", [(2, 3, 5), (2, 4, 5), (2, 3, 4), (2, 3, 4)])
    np.testing.assert_array_equal(found, a @ b.swapaxes(1, 2))
