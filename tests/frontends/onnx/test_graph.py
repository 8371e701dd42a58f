"""ONNX files as graphs: sizes, what is not mapped, what cannot be read, and the networks of the onnx package."""

import contextlib
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, TensorProto, helper
from pydantic import ValidationError

import tilewright_frontends
from support.onnx_models import Shape, model_of, save
from support.profiles import scaled
from tilewright.errors import InputError
from tilewright.schema.workload import Unmapped, Workload
from tilewright_frontends import NETWORKS, OnnxOptions
from tilewright_frontends.onnx import FILES, OnnxFrontend

NETWORK_FIGURES = {
    # layers, distinct layers, multiply-accumulates of one picture
    "resnet50": (54, 24, 4_089_184_256),
    "vgg19": (19, 12, 19_632_062_464),
    "inception_v1": (58, 50, 1_431_556_352),
    "inception_v2": (70, 39, 2_018_851_840),
    "densenet121": (121, 67, 2_834_161_664),
    "squeezenet": (26, 18, 349_151_936),
    "shufflenet": (50, 15, 124_664_528),
    "alexnet": (8, 8, 654_560_384),
    "zfnet": (8, 7, 1_481_727_008),
}
PUBLISHED_GMACS = {"resnet50": 4.09, "vgg19": 19.63, "densenet121": 2.83, "squeezenet": 0.35}
"""10^9 multiply-adds in torchvision's model cards, for the networks that it builds alike (SqueezeNet: version 1.1)."""


def node(operator: str, inputs: str, outputs: str, name: str = "", **attributes: Any) -> NodeProto:
    return helper.make_node(operator, inputs.split(), outputs.split(), name, **attributes)


def load(model: ModelProto, folder: Path, batch: int | None = None, **sizes: int) -> Workload:
    return OnnxFrontend(OnnxOptions(batch=batch, sizes=sizes)).load(save(model, folder))


def convolutional(shape: Shape) -> ModelProto:
    """Input -> convolution -> relu -> flatten -> product."""
    nodes = [
        node("Conv", "x w", "a", "first"),
        node("Relu", "a", "b", "relu"),
        node("GlobalAveragePool", "b", "c", "pool"),
        node("Flatten", "c", "d", "flat"),
        node("Gemm", "d v", "y", "last"),
    ]
    constants = {"w": np.zeros((4, 3, 3, 3), np.float32), "v": np.zeros((4, 10), np.float32)}
    return model_of(nodes, {"x": shape}, "y", constants=constants)


# -- the networks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NETWORKS)
def test_the_networks_load_whole(name: str) -> None:
    workload = OnnxFrontend(OnnxOptions()).load(name)
    assert (len(workload.layers), len(workload.distinct()), workload.macs) == NETWORK_FIGURES[name]
    assert all(each.operations is not None for each in workload.unmapped)
    assert not {each.operator for each in workload.unmapped} & {"Conv", "Gemm", "MatMul"}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_work_is_results_times_the_weights_that_each_needs(name: str) -> None:
    """Counted from the file alone, without a loop nest."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    model = onnx.shape_inference.infer_shapes(onnx.load(folder / FILES[name]), data_prop=True)
    shapes = {
        value.name: [size.dim_value for size in value.type.tensor_type.shape.dim]
        for value in (*model.graph.value_info, *model.graph.input, *model.graph.output)
    }
    work = 0
    for each in model.graph.node:
        if each.op_type == "Conv":
            work += math.prod(shapes[each.output[0]]) * math.prod(shapes[each.input[1]][1:])
        if each.op_type == "Gemm":
            work += shapes[each.output[0]][0] * math.prod(shapes[each.input[1]])
    assert work == NETWORK_FIGURES[name][2]


@pytest.mark.parametrize("name", PUBLISHED_GMACS)
def test_the_networks_have_the_published_work(name: str) -> None:
    assert OnnxFrontend(OnnxOptions()).load(name).macs / 1e9 == pytest.approx(PUBLISHED_GMACS[name], abs=0.006)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_batch_multiplies_the_work_of_every_layer(name: str) -> None:
    one, four = OnnxFrontend(OnnxOptions()).load(name), OnnxFrontend(OnnxOptions(batch=4)).load(name)
    assert [layer.problem.macs * 4 for layer in one.layers] == [layer.problem.macs for layer in four.layers]
    assert [layer.after for layer in one.layers] == [layer.after for layer in four.layers]


@pytest.mark.parametrize("name", NETWORKS)
def test_the_networks_are_connected_in_execution_order(name: str) -> None:
    layers = OnnxFrontend(OnnxOptions()).load(name).layers
    earlier: set[str] = set()
    for index, layer in enumerate(layers):
        assert set(layer.after or ()) <= earlier
        assert bool(layer.after) == (index > 0)
        earlier.add(layer.name)


def test_every_declared_network_has_a_file() -> None:
    assert NETWORKS.keys() == FILES.keys()


def test_a_residual_block_joins_two_branches() -> None:
    graph = OnnxFrontend(OnnxOptions()).load("resnet50").graph
    assert max(degree for _, degree in graph.in_degree()) >= 2


# -- edges and names ---------------------------------------------------------------------------------------------


def test_edges_pass_through_what_is_not_mapped(tmp_path: Path) -> None:
    workload = load(convolutional((1, 3, 8, 8)), tmp_path)
    assert [(layer.name, layer.after) for layer in workload.layers] == [("first", ()), ("last", ("first",))]


def test_optional_results_connect_nothing(tmp_path: Path) -> None:
    """An omitted input and an omitted output are both written as an empty name; they are not the same value."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "first"),
        helper.make_node("MaxPool", ["a"], ["b", ""], "pool", kernel_shape=[1]),
        helper.make_node("Clip", ["x", "", ""], ["c"], "clip"),
        helper.make_node("MatMul", ["c", "w"], ["y"], "second"),
    ]
    workload = load(model_of(nodes, {"x": (2, 3, 4), "w": (4, 4)}, "y"), tmp_path)
    assert workload.layers[1].after == ()


def test_values_that_a_subgraph_takes_from_outside_connect(tmp_path: Path) -> None:
    def branch(name: str) -> object:
        result = helper.make_tensor_value_info(f"{name}_out", TensorProto.FLOAT, None)
        return helper.make_graph([node("Relu", "a", f"{name}_out")], name, [], [result])

    nodes = [
        node("MatMul", "x w", "a", "first"),
        node("If", "flag", "b", "choose", then_branch=branch("yes"), else_branch=branch("no")),
        node("MatMul", "b w", "y", "second"),
    ]
    model = model_of(nodes, {"x": (2, 4), "w": (4, 4), "flag": ()}, "y")
    workload = load(model, tmp_path)
    assert workload.layers[1].after == ("first",)
    (choose,) = workload.unmapped
    assert (choose.operator, choose.operations) == ("If", None)
    assert "control flow" in choose.reason


def test_names_are_safe_and_stand_once(tmp_path: Path) -> None:
    """A layer without a name is called after its operator and result. No layer takes the name of another node."""
    names = ["a/b:0", "a_b_0", "", "//", "MatMul_2"]
    nodes = [node("MatMul", f"v{index} w", f"v{index + 1}", name) for index, name in enumerate(names)]
    workload = load(model_of(nodes, {"v0": (2, 2), "w": (2, 2)}, "v5"), tmp_path)
    assert [layer.name for layer in workload.layers] == ["a_b_0_2", "a_b_0", "MatMul_v3", "layer", "MatMul_2"]


# -- sizes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["N", "batch size", None, 0])
def test_a_dynamic_batch_is_asked_for_and_taken(first: int | str | None, tmp_path: Path) -> None:
    model = convolutional((first, 3, 8, 8))
    with pytest.raises(InputError, match="depends on dynamic dimensions") as caught:
        load(model, tmp_path)
    assert caught.value.hint is not None
    assert "--batch 1" in caught.value.hint
    assert load(model, tmp_path, batch=5).macs == 5 * load(convolutional((1, 3, 8, 8)), tmp_path).macs


def test_named_sizes_are_asked_for_and_taken(tmp_path: Path) -> None:
    model = convolutional(("N", 3, "height", None))
    with pytest.raises(InputError) as caught:
        load(model, tmp_path)
    assert caught.value.hint == "give --batch 1 --size height=... --size x_3=..."
    with pytest.raises(InputError) as caught:
        load(model, tmp_path, batch=2)
    assert caught.value.message.endswith("depends on dynamic dimensions: height, x_3")
    assert caught.value.hint == "give --size height=... --size x_3=..."
    workload = load(model, tmp_path, batch=2, height=8, x_3=10)
    assert dict(workload.layers[0].problem.dimensions) == {"N": 2, "K": 4, "C": 3, "P": 6, "Q": 8, "R": 3, "S": 3}


def test_one_name_stands_for_one_size_everywhere(tmp_path: Path) -> None:
    model = model_of([node("MatMul", "a b", "y")], {"a": ("L", 4), "b": (4, "L")}, "y")
    assert dict(load(model, tmp_path, L=7).layers[0].problem.dimensions) == {"M": 7, "N": 7, "K": 4}
    assert load(model, tmp_path, batch=7) == load(model, tmp_path, L=7)


def test_a_size_nobody_asked_for_is_refused_with_the_names(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="called 'hieght'; it has: N, height; did you mean 'height'"):
        load(convolutional(("N", 3, "height", 8)), tmp_path, hieght=8)
    with pytest.raises(InputError, match="all its sizes are fixed"):
        load(convolutional((1, 3, 8, 8)), tmp_path, N=8)


def test_a_batch_given_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--batch and --size both set N"):
        load(convolutional(("N", 3, 8, 8)), tmp_path, 2, N=3)


@pytest.mark.parametrize("options", [{"batch": 0}, {"sizes": {"N": 0}}, {"sizes": {"N": "many"}}, {"bacth": 1}])
def test_senseless_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        OnnxOptions.model_validate(options)


def reshaping(target: list[int]) -> ModelProto:
    """A product, put into another shape, and another product."""
    nodes = [
        node("MatMul", "x w", "a", "first"),
        node("Reshape", "a shape", "b", "turn"),
        node("MatMul", "b v", "y", "second"),
    ]
    constants = {
        "w": np.zeros((6, 8), np.float32),
        "v": np.zeros((target[-1], 5), np.float32),
        "shape": np.array(target, np.int64),
    }
    return model_of(nodes, {"x": (1, 4, 6)}, "y", constants=constants)


def test_a_fixed_batch_changes_through_reshapes(tmp_path: Path) -> None:
    workload = load(reshaping([1, 2, 16]), tmp_path, batch=3)
    assert dict(workload.layers[1].problem.dimensions) == {"B0": 3, "M": 2, "N": 5, "K": 16}


def test_a_fixed_batch_that_a_reshape_folds_away_is_not_changed_silently(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="made for batch 1: with --batch 3 the shape of 'b' cannot be derived"):
        load(reshaping([2, 16]), tmp_path, batch=3)


def test_the_batch_it_has_changes_nothing(tmp_path: Path) -> None:
    assert load(reshaping([2, 16]), tmp_path, batch=1) == load(reshaping([2, 16]), tmp_path)


# -- what is not mapped ------------------------------------------------------------------------------------------


def unmapped(workload: Workload) -> dict[str, Unmapped]:
    return {each.name: each for each in workload.unmapped}


def test_no_operator_is_dropped(tmp_path: Path) -> None:
    model = convolutional((1, 3, 8, 8))
    workload = load(model, tmp_path)
    assert len(workload.layers) + len(workload.unmapped) == len(model.graph.node)
    found = unmapped(workload)
    assert found["relu"].operations == 4 * 6 * 6
    assert found["pool"].operations == 4 * 6 * 6
    assert found["flat"].operations == 0
    assert all(each.reason for each in found.values())


@pytest.mark.parametrize(
    ("operator", "attributes", "operations"),
    [
        ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2]}, 2 * 3 * 3 * 9),
        ("AveragePool", {"kernel_shape": [2, 2]}, 2 * 6 * 6 * 4),
        ("ReduceMean", {"axes": [2, 3]}, 2 * 7 * 7),
        ("Sigmoid", {}, 2 * 7 * 7 * 4),
        ("Transpose", {}, 0),
        ("Hardmax", {}, None),
    ],
)
def test_the_work_of_other_operators_is_estimated(
    operator: str, attributes: dict[str, object], operations: int | None, tmp_path: Path
) -> None:
    nodes = [node(operator, "x", "a", "other", **attributes), node("MatMul", "w w", "y")]
    workload = load(model_of(nodes, {"x": (1, 2, 7, 7), "w": (2, 2)}, "a", "y"), tmp_path)
    assert unmapped(workload)["other"].operations == operations


def test_operators_of_other_domains_are_listed_with_their_domain(tmp_path: Path) -> None:
    nodes = [node("FusedConv", "x w", "a", "fused", domain="com.example"), node("MatMul", "w w", "y")]
    workload = load(model_of(nodes, {"x": (2, 2), "w": (2, 2)}, "y", domains=["com.example"]), tmp_path)
    fused = unmapped(workload)["fused"]
    assert (fused.operator, fused.operations) == ("com.example.FusedConv", None)
    assert "com.example" in fused.reason


def test_a_layer_behind_an_unknown_operator_is_listed(tmp_path: Path) -> None:
    """Its shape cannot be known, so it is not mapped, and that is said."""
    nodes = [node("Odd", "x", "a", domain="com.example"), node("MatMul", "a w", "y", "behind")]
    workload = load(model_of(nodes, {"x": (2, 2), "w": (2, 2)}, "y", domains=["com.example"]), tmp_path)
    assert not workload.layers
    assert "the shape of 'a' cannot be inferred" in unmapped(workload)["behind"].reason


def test_functions_of_the_model_are_looked_into(tmp_path: Path) -> None:
    body = [node("MatMul", "a b", "c"), node("Relu", "c", "d")]
    function = helper.make_function("own", "Block", ["a", "b"], ["d"], body, [helper.make_opsetid("", 17)])
    model = model_of(
        [node("Block", "x w", "y", domain="own")],
        {"x": (2, 3), "w": (3, 4)},
        "y",
        functions=[function],
        domains=["own"],
    )
    assert load(model, tmp_path).macs == 2 * 3 * 4


# -- files -------------------------------------------------------------------------------------------------------


def test_external_weights_are_never_opened(tmp_path: Path) -> None:
    model = convolutional((1, 3, 8, 8))
    for tensor in model.graph.initializer:
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="no-such-file.bin")
    assert load(model, tmp_path).macs == load(convolutional((1, 3, 8, 8)), tmp_path).macs


def test_weights_do_not_matter_but_their_shapes(tmp_path: Path) -> None:
    heavy = model_of([node("MatMul", "x w", "y")], {"x": (1, 64)}, "y", constants={"w": np.ones((64, 512), np.float32)})
    assert load(heavy, tmp_path).macs == 64 * 512


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "broken.onnx is empty"),
        (b"this is no model", "not a readable ONNX model"),
        (b"\x93\x00\xff" * 50, "not a readable ONNX model"),
        (convolutional((1, 3, 8, 8)).SerializeToString()[:-40], "not a readable ONNX model"),
    ],
)
def test_broken_files_are_input_errors(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        OnnxFrontend(OnnxOptions()).load(str(path))
    assert "broken.onnx" in str(caught.value)


def test_an_absent_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        OnnxFrontend(OnnxOptions()).load(str(tmp_path / "absent.onnx"))
    (tmp_path / "folder.onnx").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        OnnxFrontend(OnnxOptions()).load(str(tmp_path / "folder.onnx"))


def test_every_truncation_is_a_workload_or_an_input_error(tmp_path: Path) -> None:
    whole = model_of([node("MatMul", "x w", "y", "op")], {"x": (2, 3), "w": (3, 4)}, "y").SerializeToString()
    path = tmp_path / "cut.onnx"
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        try:
            OnnxFrontend(OnnxOptions()).load(str(path))
        except InputError:
            continue


@settings(scaled(2), derandomize=True)  # a crash inside onnx would end the whole run
@given(st.data())
def test_changed_bytes_are_a_workload_or_an_input_error(data: st.DataObject) -> None:
    nodes = [
        node("Conv", "x w", "a", "c", strides=[2, 2]),
        node("Reshape", "a s", "b", "r"),
        node("MaxPool", "a", "q", "p", kernel_shape=[2, 2]),
        node("Einsum", "b b", "y", "e", equation="bij,bkj->bik"),
    ]
    constants = {"w": np.zeros((4, 3, 3, 3), np.float32), "s": np.array([1, 4, 16])}
    content = bytearray(model_of(nodes, {"x": (1, 3, 9, 9)}, "y", constants=constants).SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "changed.onnx"
        path.write_bytes(content)
        with contextlib.suppress(InputError):
            OnnxFrontend(OnnxOptions(batch=data.draw(st.sampled_from([None, 3])))).load(str(path))


@pytest.mark.parametrize(
    ("source", "mine"), [("a/b.onnx", True), ("resnet50", True), ("resnet", False), ("x.yaml", False)]
)
def test_files_and_networks_are_recognised(source: str, mine: bool) -> None:
    assert OnnxFrontend(OnnxOptions()).recognises(source) is mine


def test_the_specs_declare_what_the_frontends_read() -> None:
    specs = {spec.name: spec for spec in tilewright_frontends.tilewright_plugins()}
    assert specs["onnx"].suffixes == (".onnx",)
    assert all("onnx package" in text for text in specs["onnx"].library.values())
