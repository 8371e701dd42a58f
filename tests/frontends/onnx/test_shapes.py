"""Layers behind shapes that operators compute, as exporters write them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from support.onnx_models import Shape, model_of, save
from tilewright.errors import InputError
from tilewright.schema.workload import Workload
from tilewright_frontends import OnnxOptions
from tilewright_frontends.onnx import OnnxFrontend

WHOLE = {
    name: np.array(value, np.int64)
    for name, value in {
        "zero": 0, "two": 2, "zeros": [0], "ones": [1], "twos": [2], "threes": [3], "last": [-1], "half": [2], "four": [4],
    }.items()
}  # fmt: skip
"""Small whole numbers that targets of reshapes are made of."""


def node(operator: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    """An operator; `-` stands for an input left out."""
    return helper.make_node(
        operator, ["" if each == "-" else each for each in inputs.split()], outputs.split(), **attributes
    )


def load(model: ModelProto, folder: Path, batch: int | None = None, **sizes: int) -> Workload:
    return OnnxFrontend(OnnxOptions(batch=batch, sizes=sizes)).load(save(model, folder))


def behind(nodes: list[NodeProto], x: Shape, channels: int, opset: int = 17) -> ModelProto:
    """A model whose operators make `r` of `x`, and a product of `r` with a matrix."""
    constants = {**WHOLE, "w": np.zeros((channels, 5), np.float32)}
    return model_of(
        [*nodes, node("MatMul", "r w", "y", name="behind")], {"x": x}, "y", constants=constants, opset=opset
    )


PADDLE = [
    node("Shape", "x", "s64"),
    node("Cast", "s64", "s32", to=TensorProto.INT32),
    node("Slice", "s32 zeros ones zeros", "n"),
    node("Slice", "s32 twos threes zeros", "h"),
    node("Cast", "ones", "one", to=TensorProto.INT32),
    node("Concat", "n h last32", "t32", axis=0),
    node("Cast", "t32", "t", to=TensorProto.INT64),
    node("Reshape", "x t", "r"),
]
TORCH = [
    node("Shape", "x", "s"),
    node("Gather", "s zero", "n", axis=0),
    node("Gather", "s two", "h", axis=0),
    node("Div", "h two", "m"),
    node("Unsqueeze", "n", "n1", axes=[0]),
    node("Unsqueeze", "m", "m1", axes=[0]),
    node("Concat", "n1 m1 last", "t", axis=0),
    node("Reshape", "x t", "r"),
]
PAD = [  # torch.nn.functional.pad: the list of pads, filled up with zeros and turned round
    node("ConstantOfShape", "six", "more", value=helper.make_tensor("v", TensorProto.INT64, [1], [0])),
    node("Concat", "pads more", "all", axis=0),
    node("Reshape", "all pairs", "by_axis"),
    node("Slice", "by_axis last far zeros last", "back"),
    node("Transpose", "back", "turned", perm=[1, 0]),
    node("Reshape", "turned last", "flat"),
    node("Cast", "flat", "p", to=TensorProto.INT64),
    node("Pad", "x p -", "r", mode="reflect"),
]
EXPAND = [
    node("Shape", "x", "s"),
    node("Slice", "s last four -", "width"),
    node("Concat", "threes width", "t", axis=0),
    node("ConstantOfShape", "t", "filled"),
    node("Expand", "filled t", "wide"),
    node("NonZero", "ones", "where"),
    node("Squeeze", "where ones", "place"),
    node("Gather", "wide place", "r", axis=0),
]
RESIZE = [
    node("Shape", "x", "s"),
    node("Slice", "s twos four zeros", "hw"),
    node("Mul", "hw half", "doubled"),
    node("Slice", "s zeros twos zeros", "nc"),
    node("Concat", "nc doubled", "t", axis=0),
    node("Resize", "x - - t", "r", mode="nearest"),
]


@pytest.mark.parametrize(
    ("nodes", "x", "opset", "dimensions"),
    [
        (PADDLE, ("N", 3, "h", 8), 17, "B0=2 M=6 N=5 K=24"),
        (TORCH, ("N", 3, "h", 8), 12, "B0=2 M=3 N=5 K=48"),
        (PAD, ("N", 3, "h", 8), 17, "B0=2 B1=3 M=6 N=5 K=11"),
        (EXPAND, ("N", 3, "h", 8), 17, "M=1 N=5 K=8"),
        (RESIZE, ("N", 3, "h", 8), 17, "B0=2 B1=3 M=12 N=5 K=16"),
    ],
)
def test_a_layer_behind_a_computed_shape_is_mapped(
    nodes: list[NodeProto], x: Shape, opset: int, dimensions: str, tmp_path: Path
) -> None:
    channels = int(dimensions.rpartition("=")[2])
    model = behind(nodes, x, channels, opset)
    more = {"last32": np.array([-1], np.int32), "six": [6], "pads": [1, 2], "pairs": [-1, 2], "far": [-(2**63) + 1]}
    model.graph.initializer.extend(model_of([], {}, constants=more).graph.initializer)
    workload = load(model, tmp_path, 2, h=6)
    (layer,) = workload.layers
    assert str(layer.problem).partition("; ")[2] == dimensions
    assert len(workload.unmapped) == len(nodes)


def test_dimensions_called_question_mark_are_unnamed(tmp_path: Path) -> None:
    model = behind([node("Identity", "x", "r")], ("?", "?", 8), 8)
    with pytest.raises(InputError) as caught:
        load(model, tmp_path)
    assert caught.value.hint == "give --batch 1 --size x_1=..."
    assert dict(load(model, tmp_path, 2, x_1=3).layers[0].problem.dimensions) == {"B0": 2, "M": 3, "N": 5, "K": 8}


def test_operators_may_be_out_of_order_for_the_sake_of_a_subgraph(tmp_path: Path) -> None:
    """A quantiser of ONNX Runtime sorts operators by their own inputs only."""
    inside = branch("inside", node("Shape", "late", "s"), node("Reshape", "late s", "out"))
    choice = node("If", "flag", "r", then_branch=inside, else_branch=branch("other", node("Relu", "late", "out")))
    model = behind([choice, node("Relu", "x", "late")], (2, 8), 8)
    model.graph.initializer.extend(model_of([], {}, constants={"flag": np.array(True)}).graph.initializer)
    assert str(load(model, tmp_path).layers[0].problem).endswith("M=2 N=5 K=8")


# -- branches --------------------------------------------------------------------------------------------------------


def branch(name: str, *nodes: NodeProto) -> GraphProto:
    """A branch whose result is called `out`, as are those of other branches."""
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)])


def choosing(condition: list[NodeProto], outside: str = "x") -> list[NodeProto]:
    """Squeeze the first dimension if there is one of size 1; the branches contain products, one of them in an `If`."""
    inner = node(
        "If",
        "flag",
        "out",
        then_branch=branch("inner", node("MatMul", f"{outside} v", "a"), node("Relu", "a", "out")),
        else_branch=branch("other", node("MatMul", f"{outside} v", "a"), node("MatMul", "a v", "out")),
    )
    squeezed = branch("squeezed", node("Squeeze", f"{outside} zeros", "a"), node("MatMul", "a v", "out"))
    return [*condition, node("If", "flag", "r", name="choose", then_branch=squeezed, else_branch=branch("kept", inner))]


BY_SHAPE = [node("Shape", "x", "s"), node("Gather", "s zero", "n", axis=0), node("Equal", "n one", "flag")]


@pytest.mark.parametrize(("batch", "dimensions"), [(1, ["M=6", "M=6"]), (2, ["B0=2 M=6"] * 3)])
def test_a_branch_that_a_shape_decides_is_read(batch: int, dimensions: list[str], tmp_path: Path) -> None:
    model = behind(choosing(BY_SHAPE), ("N", 6, 8), 8)
    constants = {"one": np.array(1, np.int64), "v": np.zeros((8, 8), np.float32)}
    model.graph.initializer.extend(model_of([], {}, constants=constants).graph.initializer)
    workload = load(model, tmp_path, batch)
    found = [str(layer.problem).partition("; ")[2].partition(" N=")[0] for layer in workload.layers]
    assert found == dimensions
    assert [len(layer.after or ()) for layer in workload.layers] == [0, *[1] * (len(dimensions) - 1)]
    assert "If" not in {each.operator for each in workload.unmapped}


def test_a_branch_that_a_number_decides_is_read_if_the_number_is_given(tmp_path: Path) -> None:
    model = behind(choosing([node("Equal", "rate high", "flag")]), (1, 6, 8), 8)
    model.graph.input.append(helper.make_tensor_value_info("rate", TensorProto.INT64, []))
    constants = {"high": np.array(16000, np.int64), "v": np.zeros((8, 8), np.float32)}
    model.graph.initializer.extend(model_of([], {}, constants=constants).graph.initializer)
    assert len(load(model, tmp_path, rate=16000).layers) == 2
    assert len(load(model, tmp_path, rate=8000).layers) == 3
    (choose,) = [each for each in load(model, tmp_path).unmapped if each.operator == "If"]
    assert choose.reason == (
        "control flow that sizes do not decide: its subgraphs, with MatMul (4), are not read; --size may set: rate"
        "; --branch choose=then (or else) reads one"
    )
    with pytest.raises(InputError, match="called 'rat'; it has: rate; did you mean 'rate'"):
        load(model, tmp_path, rat=1)


def test_a_branch_that_data_decide_is_read_if_the_user_chooses_it(tmp_path: Path) -> None:
    """The inner `If` has no name: its label is that of its result. A choice for an `If` that is not there is refused."""
    model = behind(
        choosing([node("ReduceMax", "x", "top", keepdims=0), node("Greater", "top zero", "flag")]), (1, 6, 8), 8
    )
    constants = {"zero": np.array(0, np.float32), "v": np.zeros((8, 8), np.float32)}
    kept = [each for each in model.graph.initializer if each.name not in constants]
    del model.graph.initializer[:]
    model.graph.initializer.extend([*kept, *model_of([], {}, constants=constants).graph.initializer])
    file = save(model, tmp_path)

    def read(**branches: str) -> Workload:
        return OnnxFrontend(OnnxOptions.model_validate({"branches": branches})).load(file)

    assert [str(layer.problem).partition("; ")[2] for layer in read(choose="then").layers] == [
        "M=6 N=8 K=8",
        "M=6 N=5 K=8",
    ]
    (inner,) = (each for each in read(choose="else").unmapped if each.operator == "If")
    assert "--branch r.out=then" in inner.reason
    assert len(read(choose="else", **{"r.out": "else"}).layers) == 3
    assert not read().layers  # the shape of its result is unknown
    with pytest.raises(InputError, match="data decide no If called 'chose'; it has: choose; did you mean 'choose'"):
        read(chose="then")
    with pytest.raises(InputError, match="data decide no If called 'r.out'; it has: none"):
        read(choose="then", **{"r.out": "else"})


# -- loops -----------------------------------------------------------------------------------------------------------


def typed(name: str, shape: list[int] | None, element: int = TensorProto.FLOAT) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, element, shape)


def step(*more: NodeProto) -> list[NodeProto]:
    """One step of a recurrent network: `h` becomes `next`."""
    return [
        node("MatMul", "xt wx", "a"),
        node("MatMul", "h wh", "b", name="state"),
        node("Add", "a b", "c"),
        node("Tanh", "c", "next"),
        node("Identity", "next", "yt"),
        *more,
    ]


RECURRENT = {"wx": np.zeros((3, 4), np.float32), "wh": np.zeros((4, 4), np.float32), "h0": np.zeros((2, 4), np.float32)}


def test_the_body_of_a_scan_counts_its_steps(tmp_path: Path) -> None:
    body = helper.make_graph(
        step(), "body", [typed("h", [2, 4]), typed("xt", [2, 3])], [typed("next", None), typed("yt", None)]
    )
    nodes = [node("Scan", "h0 x", "hn ys", body=body, num_scan_inputs=1), node("MatMul", "ys wh", "y", name="behind")]
    workload = load(model_of(nodes, {"x": ("steps", 2, 3)}, "y", constants=RECURRENT), tmp_path, steps=7)
    assert [(layer.count, layer.problem.macs) for layer in workload.layers] == [
        (7, 2 * 3 * 4),
        (7, 2 * 4 * 4),
        (1, 7 * 2 * 4 * 4),
    ]
    assert workload.layers[2].after == (workload.layers[0].name, "state")
    assert sum(each.operations or 0 for each in workload.unmapped if each.operator == "Tanh") == 7 * 2 * 4 * 4


def test_one_step_of_a_scan_changes_the_rank_of_what_a_layer_makes(tmp_path: Path) -> None:
    """A Transpose behind the loop sees an axis of iterations, which the layer in the body has not."""
    body = helper.make_graph(
        step(), "body", [typed("h", [2, 4]), typed("xt", [2, 3])], [typed("next", None), typed("yt", None)]
    )
    nodes = [
        node("MatMul", "x wx3", "made", name="before"),
        node("Scan", "h0 made", "hn ys", body=body, num_scan_inputs=1),
        node("Transpose", "ys", "turned", perm=[2, 0, 1]),
        node("MatMul", "turned w2", "y", name="behind"),
    ]
    constants = RECURRENT | {"wx3": np.zeros((5, 3), np.float32), "w2": np.zeros((2, 6), np.float32)}
    workload = load(model_of(nodes, {"x": (1, 2, 5)}, "y", constants=constants), tmp_path)
    assert [layer.problem.macs for layer in workload.layers] == [2 * 5 * 3, 2 * 3 * 4, 2 * 4 * 4, 4 * 2 * 6]


def looping(*more: NodeProto, keep: str = "again") -> ModelProto:
    steps = step(node("Identity", "again", "keep"), node("Gather", "x i", "xt", axis=0), *more)
    inputs = [typed("i", [], TensorProto.INT64), typed("again", [], TensorProto.BOOL), typed("h", [2, 4])]
    outputs = [typed(keep, [], TensorProto.BOOL), typed("next", None), typed("yt", None)]
    body = helper.make_graph(steps, "body", inputs, outputs)
    loop = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n", axis=0),
        node("Loop", "n - h0", "hn ys", name="loop", body=body),
        node("MatMul", "ys wh", "y", name="behind"),
    ]
    return model_of(loop, {"x": ("steps", 2, 3)}, "y", constants=RECURRENT | WHOLE)


def test_the_body_of_a_loop_counts_its_iterations(tmp_path: Path) -> None:
    workload = load(looping(), tmp_path, steps=7)
    assert [layer.count for layer in workload.layers] == [7, 7, 1]
    assert workload.macs == 7 * 2 * (3 * 4 + 4 * 4) + 7 * 2 * 4 * 4


def test_a_loop_that_may_end_early_is_listed_with_its_products(tmp_path: Path) -> None:
    early = [node("ReduceMax", "next", "most", keepdims=0), node("Less", "most limit", "keep_going")]
    model = looping(*early, keep="keep_going")
    model.graph.initializer.extend(model_of([], {}, constants={"limit": np.float32(1)}).graph.initializer)
    workload = load(model, tmp_path, steps=7)
    (loop,) = [each for each in workload.unmapped if each.operator == "Loop"]
    assert "with MatMul (2), ReduceMax, are not read" in loop.reason


def test_a_state_that_grows_is_not_read_as_if_it_did_not(tmp_path: Path) -> None:
    body = helper.make_graph(
        [node("Concat", "h xt", "next", axis=0), node("MatMul", "next wh", "yt")],
        "body",
        [typed("h", None), typed("xt", [2, 4])],
        [typed("next", None), typed("yt", None)],
    )
    nodes = [node("Scan", "h0 x", "hn ys", body=body, num_scan_inputs=1)]
    workload = load(model_of(nodes, {"x": (7, 2, 4)}, "hn", constants=RECURRENT), tmp_path)
    assert not workload.layers
    assert "with MatMul, are not read" in workload.unmapped[0].reason
