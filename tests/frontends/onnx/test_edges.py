"""Reads of ONNX networks: the words that layers read from one another are those that the graph moves."""

import tempfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from onnx import NodeProto, helper

from support.edges import edges
from support.networks import along_reads, drawn, executed
from support.onnx_models import Array, model_of, save
from support.profiles import scaled
from tilewright.schema.workload import Workload
from tilewright_frontends import OnnxOptions
from tilewright_frontends.onnx import OnnxFrontend, read_file


@scaled(1)
@given(seed=st.integers(0, 2**32))
def test_a_network_along_its_reads_computes_what_the_graph_computes(seed: int) -> None:
    model = drawn(Random(seed))
    with tempfile.TemporaryDirectory() as folder:
        workload = read_file(Path(save(model, Path(folder))), "drawn", "test", None, {})
    cuts = [read.cut for _, _, read in workload.edges if read.cut is not None]
    assert all("mixes coordinates" in each or "a slice through a reshaped" in each for each in cuts)
    assume(not cuts)
    values = executed(model)
    named = dict[str, list[Array]]()
    results = along_reads(model, workload, values, named)
    for operands in named.values():  # words of one name are equal
        assert len(operands) > 1
        for operand in operands[1:]:
            np.testing.assert_array_equal(operand, operands[0])
    for layer in workload.layers:
        node = next((each for each in model.graph.node if each.name == layer.name), None)
        if node is not None:  # an attention has two layers
            expected, found = values[node.output[0]], results[layer.name]
            np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-9, atol=1e-6)
    assert Workload.from_yaml(workload.to_yaml()) == workload


def small(folder: Path, *nodes: NodeProto, **constants: Array) -> Workload:
    model = model_of(nodes, {"x": (1, 4, 8, 8)}, "y", constants=constants, opset=17)
    return OnnxFrontend(OnnxOptions()).load(save(model, folder))


def node(operator: str, inputs: str, output: str, name: str = "", **attributes: Any) -> NodeProto:
    return helper.make_node(operator, inputs.split(), [output], name or output, **attributes)


@pytest.mark.parametrize(
    ("between", "reason"),
    [
        (node("MaxPool", "a", "b", "pool", kernel_shape=[1, 1]), "MaxPool 'pool' has no coordinates: a window without"),
        (node("LRN", "a", "b", "norm", size=3), "LRN 'norm' needs words in other places"),
        (node("Reshape", "a shape", "b"), "a reshape from 1 x 6 x 8 x 8 to 1 x 8 x 6 x 8 mixes coordinates"),
        (node("DepthToSpace", "a", "b", "blocks", blocksize=1), "DepthToSpace 'blocks' has no coordinates: moves or"),
        (node("Pad", "a pads", "b", "edge", mode="edge"), "Pad 'edge' repeats words"),
    ],
)
def test_what_cannot_be_shared_says_why(between: NodeProto, reason: str, tmp_path: Path) -> None:
    constants = {
        "w": np.zeros((6, 4, 1, 1), np.float32),
        "v": np.zeros((1, 8 if between.op_type == "Reshape" else 6, 1, 1), np.float32),
        "shape": np.array([1, 8, 6, 8]),
        "pads": np.array([0, 0, 1, 0, 0, 0, 0, 0]),
    }
    found = small(tmp_path, node("Conv", "x w", "a"), between, node("Conv", "b v", "y"), **constants)
    ((layer, tensor, read),) = found.edges
    assert (layer, tensor, read.maker) == ("y", "Inputs", "a")
    assert read.cut is not None and read.cut.startswith(reason)


def test_a_window_with_stride_and_padding(tmp_path: Path) -> None:
    nodes = [
        node("Conv", "x w", "a", pads=[1, 1, 1, 1]),
        node("Relu", "a", "b"),
        node("Conv", "b w", "y", strides=[2, 2], pads=[1, 1, 1, 1]),
    ]
    found = small(tmp_path, *nodes, w=np.zeros((4, 4, 3, 3), np.float32))
    ((_, _, read),) = found.edges
    assert read.through == ("b",)
    assert [str(each) for each in read.made or ()] == ["0", "k", "p", "q"]
    assert [str(each) for each in read.read or ()] == ["0", "k", "p + 1", "q + 1"]


@pytest.mark.parametrize(
    ("ends", "returned"),
    [
        ("y", []),
        ("y a", ["a"]),
        ("y b", ["a"]),
        ("y a c", ["a", "c"]),
        ("c", ["c"]),
        ("y s", ["a"]),
    ],
)
def test_a_result_that_the_network_returns_is_marked(ends: str, returned: list[str], tmp_path: Path) -> None:
    nodes = [
        node("MatMul", "x w", "a"),
        node("Relu", "a", "b"),
        node("ReduceSum", "b", "s"),
        node("MatMul", "b w", "c"),
        node("MatMul", "c w", "y"),
    ]
    model = model_of(nodes, {"x": (4, 8)}, "y", constants={"w": np.zeros((8, 8), np.float32)}, opset=17)
    del model.graph.output[:]
    model.graph.output.extend(helper.make_tensor_value_info(each, 1, None) for each in ends.split())
    workload = OnnxFrontend(OnnxOptions()).load(save(model, tmp_path))
    assert [layer.name for layer in workload.layers if layer.returned] == returned
    assert all(read.cut is None for _, _, read in workload.edges)
    (read,) = workload.picked(["a", "c"])[1].reads["A"]
    assert read.cut == ("the network returns the result of a" if "a" in returned else None)
    assert Workload.from_yaml(workload.to_yaml()) == workload


def test_the_result_of_a_transposed_convolution_lacks_the_words_that_padding_cuts(tmp_path: Path) -> None:
    nodes = [
        node("ConvTranspose", "x w", "a", strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Conv", "a v", "y", pads=[1, 1, 1, 1]),
    ]
    found = small(tmp_path, *nodes, w=np.zeros((4, 6, 4, 4), np.float32), v=np.zeros((2, 6, 3, 3), np.float32))
    assert edges(found) == ["y.Inputs = a[0, k, x2 + 1, x3 + 1] at [0, k, x2 + 1, x3 + 1]"]


@pytest.mark.parametrize("swapped", [False, True])
def test_values_that_a_loop_passes_on_are_unknown(swapped: bool, tmp_path: Path) -> None:
    """After an even number of iterations, swapped values are those before."""
    values = [helper.make_tensor_value_info(each, 1, (4, 4)) for each in "pq"]
    state = helper.make_tensor_value_info("go", 9, ())
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"])],
        "body",
        [helper.make_tensor_value_info("i", 7, ()), state, *values],
        [helper.make_tensor_value_info("on", 9, ()), *(values[::-1] if swapped else values)],
    )
    nodes = [
        node("MatMul", "x w", "a"),
        node("MatMul", "a w", "b"),
        helper.make_node("Loop", ["count", "", "a", "b"], ["c", "d"], "loop", body=body),
        node("MatMul", "c w", "y"),
    ]
    weights = {"w": np.zeros((4, 4), np.float32), "count": np.array(4)}
    model = model_of(nodes, {"x": (4, 4)}, "y", constants=weights, opset=17)
    workload = OnnxFrontend(OnnxOptions()).load(save(model, tmp_path))
    maker = "b" if swapped else "a"
    assert edges(workload)[1:] == [f"y.A = {maker}? the layer is executed several times"]


def test_words_of_concatenated_channels_stay_known_in_blocks(tmp_path: Path) -> None:
    """Two halves of channels become two groups; a reshape across the halves would mix them."""
    nodes = [
        node("Conv", "x w", "a"),
        node("Conv", "x w", "b"),
        node("Concat", "a b", "c", axis=1),
        node("Reshape", "c groups", "d"),
        node("Reshape", "d back", "e"),
        node("Conv", "e v", "y"),
    ]
    weights = {"w": np.zeros((6, 4, 1, 1), np.float32), "v": np.zeros((2, 12, 1, 1), np.float32)}
    shapes = {"groups": np.array([1, 4, 3, 8, 8]), "back": np.array([1, 12, 8, 8])}
    found = small(tmp_path, *nodes, **weights, **shapes)
    assert edges(found) == [
        "y.Inputs = a[0, 3*ko + ki, p, q] at [0, 3*ko + ki, p, q]",
        "y.Inputs = b[0, 3*ko + ki, p, q] at [0, 3*ko + ki + 6, p, q]",
    ]


def test_a_normalisation_of_single_operators_needs_rows_whole(tmp_path: Path) -> None:
    nodes = [
        node("MatMul", "x w", "a"),
        node("ReduceMean", "a", "m", axes=[-1]),
        node("Sub", "a m", "b"),
        node("MatMul", "b w", "y"),
    ]
    model = model_of(nodes, {"x": (4, 6)}, "y", constants={"w": np.zeros((6, 6), np.float32)}, opset=17)
    workload = OnnxFrontend(OnnxOptions()).load(save(model, tmp_path))
    assert edges(workload) == ["y.A = a[m, n] at [m, n] via m b whole n"]


def test_layers_that_read_the_same_words_of_a_value_name_it(tmp_path: Path) -> None:
    """Padding makes other words. What a pooling has made needs no known maker."""
    nodes = [
        node("Conv", "x w", "a"),
        node("Conv", "x v", "b"),
        node("Conv", "x big", "c", pads=[1, 1, 1, 1]),
        node("MaxPool", "a", "pooled", kernel_shape=[1, 1]),
        node("Conv", "pooled u", "d"),
        node("Conv", "pooled t", "e"),
        node("Sum", "b c d e", "y"),
    ]
    shapes = {"w": (6, 4, 1, 1), "v": (2, 4, 1, 1), "big": (2, 4, 3, 3), "u": (2, 6, 1, 1), "t": (2, 6, 1, 1)}
    found = small(tmp_path, *nodes, **{name: np.zeros(shape, np.float32) for name, shape in shapes.items()})
    named = {layer.name: dict(layer.inputs) for layer in found.layers}
    assert named == {
        "a": {"Inputs": "x"},
        "b": {"Inputs": "x"},
        "c": {},
        "d": {"Inputs": "pooled"},
        "e": {"Inputs": "pooled"},
    }
