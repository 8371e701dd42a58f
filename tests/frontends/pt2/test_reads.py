"""Which words the layers of an exported program read: expected coordinates are written by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.edges import edges
from support.exported import Size, node, program, save
from support.layouts import convolved, executed
from support.onnx_models import whole_numbers
from tilewright.schema.workload import Workload
from tilewright_frontends.products import Product
from tilewright_frontends.pt2 import read_file
from tilewright_frontends.pt2.operators import Node, builder_of


def load(
    folder: Path, shapes: Mapping[str, Sequence[Size]], nodes: Sequence[dict[str, Any]], ends: Sequence[str] = ()
) -> Workload:
    data = program(["x"], shapes, nodes)
    data["graph_module"]["graph"]["outputs"] = [{"as_tensor": {"name": each}} for each in ends]
    return read_file(Path(save(data, folder / "net.pt2")), "net.pt2", None, {})


def several(target: str, results: Sequence[str], **arguments: Any) -> dict[str, Any]:
    found = node(target, results[0], **arguments)
    found["outputs"] = [{"as_tensors": [{"name": result} for result in results]}]
    return found


@pytest.mark.parametrize(
    ("second", "shape", "words"),
    [
        ({"padding": [1, 1]}, (1, 4, 8, 8), "at [0, k, p + 1, q + 1]"),
        ({"padding": 1}, (1, 4, 8, 8), "at [0, k, p + 1, q + 1]"),
        ({"padding": "same"}, (1, 4, 8, 8), "at [0, k, p + 1, q + 1]"),
        ({"padding": "valid"}, (1, 4, 6, 6), "at [0, k, p, q]"),
        ({"padding": [1, 0], "stride": [2, 2]}, (1, 4, 4, 3), "at [0, k, p + 1, q]"),
        ({"padding": [0, 0]}, (1, 4, 8, 8), None),  # it contradicts the shapes
    ],
)
def test_convolutions(second: dict[str, Any], shape: tuple[int, ...], words: str | None, tmp_path: Path) -> None:
    shapes = {"x": (1, 3, 8, 8), "w": (6, 3, 3, 3), "v": (4, 6, 3, 3), "a": (1, 6, 8, 8), "r": (1, 6, 8, 8), "y": shape}
    nodes = [
        node("aten.conv2d.default", "a", input="%x", weight="%w", padding=[1, 1]),
        node("aten.relu.default", "r", self="%a"),
        node("aten.conv2d.default", "y", input="%r", weight="%v", **second),
    ]
    (found,) = edges(load(tmp_path, shapes, nodes))
    if words is None:
        assert found == "y.Inputs = a? y reads Inputs in another order"
    elif "q + 1" in words or "valid" in second.values():
        assert found == f"y.Inputs = a[0, k, p, q] {words} via r"
    else:
        assert found == "y.Inputs = a[0, k, p, q] at [0, k, p + 1, q] via r"  # the last column is not read


def test_transposed_convolutions_and_numbers() -> None:
    x, w = whole_numbers(1, 4, 3, 4) + 0.0, whole_numbers(4, 3, 2, 3) + 0.0
    shapes = {"x": x.shape, "w": w.shape, "y": (1, 6, 4, 7)}
    words = {"stride": [2, 2], "padding": [1, 1], "groups": 2}
    call = Node("conv_transpose2d", "input", {"input": "x", "weight": "w"} | words, shapes, ("y",))
    builder = builder_of("conv_transpose2d")
    assert builder is not None
    (product,) = builder(call, "layer")
    assert isinstance(product, Product)
    expected = np.zeros((1, 6, 6, 9))
    for c, k, p, q in np.ndindex(4, 3, 3, 4):
        expected[0, c // 2 * 3 + k, 2 * p : 2 * p + 2, 2 * q : 2 * q + 3] += x[0, c, p, q] * w[c, k]
    np.testing.assert_array_equal(executed(product, [x, w], (1, 6, 4, 7)), expected[:, :, 1:-1, 1:-1])

    data, weight = whole_numbers(2, 4, 6, 5) + 0.0, whole_numbers(6, 2, 3, 2) + 0.0
    known = {"x": data.shape, "w": weight.shape, "y": (2, 6, 6, 5)}
    call = Node("conv2d", "padding", {"input": "x", "weight": "w", "padding": "same", "groups": 2}, known, ("y",))
    builder = builder_of("conv2d")
    assert builder is not None
    (product,) = builder(call, "layer")
    assert isinstance(product, Product)
    found = executed(product, [data, weight], (2, 6, 6, 5))
    np.testing.assert_array_equal(found, convolved(data, weight, [(1, 1), (0, 1)], (1, 1), groups=2))


def test_einsums(tmp_path: Path) -> None:
    shapes = {"x": (2, 6, 8), "w": (8, 2, 4), "q": (2, 6, 2, 4), "s": (2, 2, 6, 6)}
    nodes = [
        node("aten.einsum.default", "q", equation="btd,dhk->bthk", tensors=["%x", "%w"]),
        node("aten.einsum.default", "s", equation="bthk,bshk->bhts", tensors=["%q", "%q"]),
    ]
    assert edges(load(tmp_path, shapes, nodes)) == [
        "s.A = q[b, t, h, k] at [b, t, h, k]",
        "s.B = q[b, t, h, k] at [b, t, h, k]",
    ]


def test_an_attention_whose_heads_share_keys(tmp_path: Path) -> None:
    """Four heads of two channels; two share keys and values, which are pieces of one product."""
    shapes: dict[str, tuple[int, ...]] = {"x": (1, 6, 8), "w": (8, 8), "u": (8, 8), "q": (1, 6, 8), "kv": (1, 6, 8)}
    shapes |= {"q4": (1, 6, 4, 2), "qt": (1, 4, 6, 2), "k": (1, 6, 4), "v": (1, 6, 4)}
    shapes |= {f"{each}4": (1, 6, 2, 2) for each in "kv"} | {f"{each}t": (1, 2, 6, 2) for each in "kv"}
    shapes |= {"a": (1, 4, 6, 2), "b": (1, 6, 4, 2), "c": (1, 6, 8), "y": (1, 6, 8)}
    nodes = [
        node("aten.linear.default", "q", input="%x", weight="%w"),
        node("aten.linear.default", "kv", input="%x", weight="%u"),
        several("aten.split.Tensor", ["k", "v"], self="%kv", split_size=4, dim=-1),
        node("aten.view.default", "q4", self="%q", size=[1, 6, 4, 2]),
        node("aten.permute.default", "qt", self="%q4", dims=[0, 2, 1, 3]),
        *(node("aten.view.default", f"{each}4", self=f"%{each}", size=[1, 6, 2, 2]) for each in "kv"),
        *(node("aten.transpose.int", f"{each}t", self=f"%{each}4", dim0=1, dim1=2) for each in "kv"),
        node("aten.scaled_dot_product_attention.default", "a", query="%qt", key="%kt", value="%vt", enable_gqa=True),
        node("aten.transpose.int", "b", self="%a", dim0=1, dim1=2),
        node("aten.reshape.default", "c", self="%b", shape=[1, 6, 8]),
        node("aten.linear.default", "y", input="%c", weight="%w"),
    ]
    workload = load(tmp_path, shapes, nodes, ["y", "kt"])
    assert edges(workload) == [
        "a.scores.A = q[m, ni + 4*noo + 2*noi] at [noo, noi, m, ni]",
        "a.scores.B = kv[m, 2*no + ni] at [no, m, ni]",
        "a.context.A = a.scores[b1, r1, m, n] at [b1, r1, m, n] via a.softmax whole n",
        "a.context.B = kv[m, 2*no + ni + 4] at [no, m, ni]",
        "y.A = a.context[b1, r1, m, n] at [m, 4*b1 + 2*r1 + n]",
    ]
    assert [layer.name for layer in workload.layers if layer.returned] == ["kv"]


@pytest.mark.parametrize(
    ("operator", "arguments", "shape", "words"),
    [
        ("add.Tensor", {"self": "%a", "other": "%p"}, (4, 6), "[m, n] at [m, n] via b"),
        ("layer_norm.default", {"input": "%a", "normalized_shape": [6]}, (4, 6), "[m, n] at [m, n] via b whole n"),
        ("softmax.int", {"self": "%a", "dim": -1}, (4, 6), "[m, n] at [m, n] via b whole n"),
        ("batch_norm.default", {"input": "%a", "training": True}, (4, 6), "?"),
        ("slice.Tensor", {"self": "%a", "dim": 0, "start": 1, "end": 3}, (2, 6), "[m + 1, n] at [m, n]"),
        ("constant_pad_nd.default", {"self": "%a", "pad": [0, 0, 2, 1], "value": 0}, (7, 6), "[m, n] at [m + 2, n]"),
        ("cat.default", {"tensors": ["%x", "%a"], "dim": 0}, (8, 6), "[m, n] at [m + 4, n]"),
        ("stack.default", {"tensors": ["%x", "%a"], "dim": 0}, (2, 4, 6), "[m, n] at [1, m, n]"),
        ("expand.default", {"self": "%a", "size": [3, 4, 6]}, (3, 4, 6), "[m, n] at [x0, m, n]"),
        ("flip.default", {"self": "%a", "dims": [0]}, (4, 6), "?"),
        ("cumsum.default", {"self": "%a", "dim": 0}, (4, 6), "?"),
    ],
)
def test_operators_between_products(
    operator: str, arguments: dict[str, Any], shape: tuple[int, ...], words: str, tmp_path: Path
) -> None:
    shapes = {"x": (4, 6), "w": (6, 6), "p": (6,), "a": (4, 6), "b": shape, "y": (*shape[:-1], 6)}
    nodes = [
        node("aten.mm.default", "a", self="%x", mat2="%w"),
        node(f"aten.{operator}", "b", **arguments),
        node("aten.matmul.default", "y", self="%b", other="%w"),
    ]
    (found,) = edges(load(tmp_path, shapes, nodes))
    assert found.startswith(f"y.A = a{words}")


def test_what_an_operator_changes_in_place_is_unknown_under_its_other_names(tmp_path: Path) -> None:
    """`b` is a view of `a`, so `relu_` changes both. Its result has known words, `a` has other ones by then."""
    shapes = dict.fromkeys(("x", "w", "a", "b", "c", "y", "z"), (6, 6))
    nodes = [
        node("aten.mm.default", "a", self="%x", mat2="%w"),
        node("aten.view.default", "b", self="%a", size=[6, 6]),
        node("aten.relu_.default", "c", self="%b"),
        node("aten.mm.default", "y", self="%c", mat2="%w"),
        node("aten.mm.default", "z", self="%a", mat2="%y"),
    ]
    assert edges(load(tmp_path, shapes, nodes)) == [
        "y.A = a[m, n] at [m, n] via c",
        "z.A = a? relu_ 'c' changes it in place",
        "z.B = y[m, n] at [m, n]",
    ]


def test_what_is_added_in_place_is_read_under_the_other_name(tmp_path: Path) -> None:
    shapes = dict.fromkeys(("x", "w", "a", "b", "c", "y"), (6, 6))
    nodes = [
        node("aten.mm.default", "a", self="%x", mat2="%w"),
        node("aten.view.default", "b", self="%x", size=[6, 6]),
        node("aten.add_.Tensor", "c", self="%b", other="%a"),
        node("aten.mm.default", "y", self="%x", mat2="%w"),
    ]
    workload = load(tmp_path, shapes, nodes)
    assert workload.layers[1].after == ("a",)
    assert edges(workload) == ["y.A = a? add_ 'c' changes it in place"]


def test_a_bias_that_a_layer_makes_is_unknown(tmp_path: Path) -> None:
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("x", "w", "a", "b", "y"), (6, 6))
    nodes = [
        node("aten.mm.default", "a", self="%x", mat2="%w"),
        node("aten.relu.default", "b", self="%a"),
        node("aten.addmm.default", "y", self="%b", mat1="%a", mat2="%w"),
    ]
    assert edges(load(tmp_path, shapes, nodes)) == ["y.A = a? y reads it as a parameter, too"]


def test_a_normalisation_of_single_operators_needs_rows_whole(tmp_path: Path) -> None:
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("x", "w", "a", "b", "d", "y"), (6, 6))
    shapes |= {"m": (6, 1), "s": (6,), "t": (6, 1)}
    nodes = [
        node("aten.mm.default", "a", self="%x", mat2="%w"),
        node("aten.amax.default", "m", self="%a", dim=[-1], keepdim=True),
        node("aten.sub.Tensor", "b", self="%a", other="%m"),
        node("aten.sum.dim_IntList", "s", self="%b", dim=[1]),
        node("aten.unsqueeze.default", "t", self="%s", dim=1),
        node("aten.div.Tensor", "d", self="%b", other="%t"),
        node("aten.mm.default", "y", self="%d", mat2="%w"),
    ]
    assert edges(load(tmp_path, shapes, nodes)) == ["y.A = a[m, n] at [m, n] via m b s d whole n"]
