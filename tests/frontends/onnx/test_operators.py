"""Mapped operators: the loop nest, walked, computes what ONNX's own reference computes."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import ModelProto, helper
from onnx.reference import ReferenceEvaluator
from onnx.shape_inference import infer_shapes

from support.onnx_models import Array, extents, model_of, save, walk, whole_numbers
from support.profiles import scaled
from tilewright.errors import InputError
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Workload
from tilewright_frontends import OnnxOptions
from tilewright_frontends.onnx import OnnxFrontend

few = scaled(0.4)


def load(model: ModelProto, **options: Any) -> Workload:
    with tempfile.TemporaryDirectory() as folder:
        return OnnxFrontend(OnnxOptions(**options)).load(save(model, Path(folder)))


def only(model: ModelProto) -> Problem:
    workload = load(model)
    assert not workload.unmapped
    (layer,) = workload.layers
    return layer.problem


def reference(model: ModelProto, **inputs: Array) -> Array:
    """The model's result as ONNX's own evaluator computes it."""
    feed = {name: array.astype(np.float32) for name, array in inputs.items()}
    (result,) = ReferenceEvaluator(model).run(None, feed)
    rounded: Array = np.rint(result).astype(np.int64)
    return rounded


def one(operator: str, inputs: Mapping[str, tuple[int, ...]], **attributes: Any) -> ModelProto:
    return model_of([helper.make_node(operator, list(inputs), ["y"], "op", **attributes)], inputs, "y")


def inferred_shape(model: ModelProto) -> tuple[int, ...]:
    return tuple(size.dim_value for size in infer_shapes(model).graph.output[0].type.tensor_type.shape.dim)


class Window:
    """Attributes and shapes of a random convolution."""

    def __init__(self, data: st.DataObject, transposed: bool = False) -> None:
        draw = data.draw
        self.axes = draw(st.integers(1, 3), label="axes")

        def per_axis(low: int, high: int) -> list[int]:
            return draw(st.lists(st.integers(low, high), min_size=self.axes, max_size=self.axes))

        self.strides, self.dilations, self.kernel = per_axis(1, 3), per_axis(1, 2), per_axis(1, 3)
        self.groups = draw(st.integers(1, 3), label="groups")
        self.inward, self.outward = draw(st.integers(1, 2), label="C"), draw(st.integers(1, 2), label="K")
        least = [1 if transposed else d * (r - 1) + 1 for d, r in zip(self.dilations, self.kernel, strict=True)]
        self.extent = [low + more for low, more in zip(least, per_axis(0, 3), strict=True)]
        self.x = (draw(st.integers(1, 2), label="N"), self.groups * self.inward, *self.extent)
        channels = (self.x[1], self.outward) if transposed else (self.groups * self.outward, self.inward)
        self.w = (*channels, *self.kernel)

    @property
    def attributes(self) -> dict[str, Any]:
        return {"strides": self.strides, "dilations": self.dilations, "group": self.groups}


@few
@given(st.data())
def test_convolutions_compute_what_onnx_computes(data: st.DataObject) -> None:
    window = Window(data)
    model = one("Conv", {"x": window.x, "w": window.w}, **window.attributes)
    problem = only(model)
    x, w = whole_numbers(*window.x), whole_numbers(*window.w)
    inputs, weights = problem.tensor("Inputs"), problem.tensor("Weights")
    box = extents(problem, inputs)
    touched = x[(slice(None), slice(None), *(slice(size) for size in box[len(box) - window.axes :]))]
    result = walk(problem, [touched.reshape(box), w.reshape(extents(problem, weights))])
    np.testing.assert_array_equal(result.reshape(inferred_shape(model)), reference(model, x=x, w=w))


@few
@given(st.data())
def test_transposed_convolutions_compute_what_onnx_computes(data: st.DataObject) -> None:
    window = Window(data, transposed=True)
    model = one("ConvTranspose", {"x": window.x, "w": window.w}, **window.attributes)
    problem = only(model)
    x, w = whole_numbers(*window.x), whole_numbers(*window.w)
    by_group = w.reshape(window.groups, window.inward, window.outward, *window.kernel).swapaxes(1, 2)
    operands = [
        x.reshape(extents(problem, problem.tensor("Inputs"))),
        by_group.reshape(extents(problem, problem.tensor("Weights"))),
    ]
    result = walk(problem, operands).reshape(inferred_shape(model))
    np.testing.assert_array_equal(result, transposed_by_group(window, x, w))


def transposed_by_group(window: Window, x: Array, w: Array) -> Array:
    """ONNX's evaluator knows no groups here, so each is a convolution of its own."""
    parts = [
        {"x": part_x, "w": part_w}
        for part_x, part_w in zip(np.split(x, window.groups, 1), np.split(w, window.groups), strict=True)
    ]
    attributes = window.attributes | {"group": 1}
    model = one("ConvTranspose", {name: array.shape for name, array in parts[0].items()}, **attributes)
    return np.concatenate([reference(model, **part) for part in parts], axis=1)


@few
@given(st.data())
def test_padded_convolutions_have_the_extents_that_onnx_infers(data: st.DataObject) -> None:
    """For any padding, positions are those of the output, and the box fits the padded input."""
    window = Window(data)
    auto = data.draw(st.sampled_from(["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]))
    pads = data.draw(st.lists(st.integers(0, 2), min_size=2 * window.axes, max_size=2 * window.axes))
    padding: dict[str, Any] = {"pads": pads} if auto == "NOTSET" else {"auto_pad": auto}
    model = one("Conv", {"x": window.x, "w": window.w}, **window.attributes, **padding)
    problem = only(model)
    shape = inferred_shape(model)
    assert extents(problem, problem.output)[-window.axes :] == shape[2:]
    assert problem.tensor_words(problem.output) == np.prod(shape)
    assert problem.macs == np.prod(shape) * window.inward * np.prod(window.kernel)
    if auto == "NOTSET":
        for axis, size in enumerate(extents(problem, problem.tensor("Inputs"))[-window.axes :]):
            slack = window.extent[axis] + pads[axis] + pads[axis + window.axes] - size
            assert 0 <= slack < window.strides[axis]


@few
@given(st.data())
def test_gemms_compute_what_onnx_computes(data: st.DataObject) -> None:
    m, n, k = (data.draw(st.integers(1, 4)) for _ in range(3))
    turn_a, turn_b = data.draw(st.booleans()), data.draw(st.booleans())
    shapes = {"a": (k, m) if turn_a else (m, k), "b": (n, k) if turn_b else (k, n)}
    model = one("Gemm", shapes, transA=int(turn_a), transB=int(turn_b))
    problem = only(model)
    assert dict(problem.dimensions) == {"M": m, "N": n, "K": k}
    a, b = whole_numbers(*shapes["a"]), whole_numbers(*shapes["b"])
    result = walk(problem, [a.T if turn_a else a, b.T if turn_b else b])
    np.testing.assert_array_equal(result, reference(model, a=a, b=b))


@few
@given(st.data())
def test_products_with_broadcasts_compute_what_onnx_computes(data: st.DataObject) -> None:
    m, n, k = (data.draw(st.integers(1, 3)) for _ in range(3))
    batches = data.draw(st.lists(st.integers(1, 3), max_size=3))

    def outer() -> tuple[int, ...]:
        """The batches, some of size 1, some left out in front."""
        sizes = [size if data.draw(st.booleans()) else 1 for size in batches]
        return tuple(sizes[data.draw(st.integers(0, len(sizes))) :])

    a_shape = (k,) if data.draw(st.integers(0, 4)) == 0 else (*outer(), m, k)
    b_shape = (k,) if data.draw(st.integers(0, 4)) == 0 else (*outer(), k, n)
    model = one("MatMul", {"a": a_shape, "b": b_shape})
    problem = only(model)
    a, b = whole_numbers(*a_shape), whole_numbers(*b_shape)
    operands = [array.reshape(extents(problem, tensor)) for array, tensor in zip((a, b), problem.operands, strict=True)]
    expected = reference(model, a=a, b=b)
    np.testing.assert_array_equal(walk(problem, operands).reshape(expected.shape), expected)


@few
@given(st.data())
def test_einsums_compute_what_numpy_computes(data: st.DataObject) -> None:
    sizes = {name: data.draw(st.integers(1, 3)) for name in "aBc"}
    texts = data.draw(st.lists(st.text("aBc", min_size=1, max_size=3), min_size=1, max_size=3))
    hidden = data.draw(st.lists(st.integers(1, 3), max_size=2))
    used = sorted(set("".join(texts)))
    output = "".join(data.draw(st.permutations(used)))[: data.draw(st.integers(0, len(used)))]
    shapes = []
    for index, text in enumerate(texts):
        shape = [sizes[letter] for letter in text]
        if data.draw(st.booleans()) and hidden:
            texts[index] = f"...{text}"
            whole = data.draw(st.lists(st.booleans(), min_size=len(hidden), max_size=len(hidden)))
            shape = [size if keep else 1 for size, keep in zip(hidden, whole, strict=True)] + shape
        shapes.append(tuple(shape))
    equation = ",".join(texts)
    if data.draw(st.booleans()):
        equation += "->" + ("..." if "..." in equation else "") + output
    names = [f"x{index}" for index in range(len(texts))]
    problem = only(one("Einsum", dict(zip(names, shapes, strict=True)), equation=equation))
    arrays = [whole_numbers(*shape) for shape in shapes]
    operands = [array.reshape(extents(problem, tensor)) for array, tensor in zip(arrays, problem.operands, strict=True)]
    expected = np.einsum(equation, *arrays)
    np.testing.assert_array_equal(walk(problem, operands).reshape(expected.shape), expected)


def test_a_strided_convolution_reads_as_the_field_writes_it() -> None:
    problem = only(one("Conv", {"x": (1, 3, 224, 224), "w": (64, 3, 7, 7)}, strides=[2, 2], pads=[3, 3, 3, 3]))
    assert str(problem) == (
        "Outputs[N, K, P, Q] += Inputs[N, C, 2*P + R, 2*Q + S] * Weights[K, C, R, S]; N=1 K=64 C=3 P=112 Q=112 R=7 S=7"
    )
    assert problem.operation == "conv2d"


@pytest.mark.parametrize(
    ("x", "w", "groups", "dimensions", "operation"),
    [
        ((1, 4, 8), (6, 4, 3), 1, "N=1 K=6 C=4 P=6 R=3", "conv1d"),
        ((1, 4, 8, 8), (6, 2, 3, 3), 2, "N=1 G=2 K=3 C=2 P=6 Q=6 R=3 S=3", "conv2d"),
        ((1, 4, 8, 8), (4, 1, 3, 3), 4, "N=1 G=4 P=6 Q=6 R=3 S=3", "depthwise_conv2d"),
        ((1, 4, 8, 8), (8, 1, 3, 3), 4, "N=1 G=4 K=2 P=6 Q=6 R=3 S=3", "depthwise_conv2d"),
        ((1, 4, 4, 8, 8), (6, 4, 2, 3, 3), 1, "N=1 K=6 C=4 O=3 P=6 Q=6 T=2 R=3 S=3", "conv3d"),
    ],
)
def test_dimensions_of_convolutions_have_the_names_of_the_field(
    x: tuple[int, ...], w: tuple[int, ...], groups: int, dimensions: str, operation: str
) -> None:
    problem = only(one("Conv", {"x": x, "w": w}, group=groups))
    assert str(problem).partition("; ")[2] == dimensions
    assert problem.operation == operation


def test_a_broadcast_batch_indexes_one_operand_only() -> None:
    problem = only(one("MatMul", {"a": (2, 8, 5, 7), "b": (8, 7, 3)}))
    assert str(problem) == "Z[B0, B1, M, N] += A[B0, B1, M, K] * B[B1, K, N]; B0=2 B1=8 M=5 N=3 K=7"


def test_roles_tell_inputs_from_weights() -> None:
    problem = only(one("Conv", {"x": (1, 3, 8, 8), "w": (4, 3, 3, 3)}))
    assert [(tensor.name, tensor.role) for tensor in problem.tensors] == [
        ("Inputs", "input"),
        ("Weights", "weight"),
        ("Outputs", "output"),
    ]


def test_forms_without_a_loop_nest_are_listed_with_the_reason() -> None:
    shapes = {"x": (1, 2, 4, 4, 4, 4), "w": (2, 2, 1, 1, 1, 1)}
    workload = load(one("Conv", shapes))
    assert not workload.layers
    assert "4 spatial axes" in workload.unmapped[0].reason


def test_empty_operands_are_listed_with_the_reason() -> None:
    nodes = [helper.make_node("MatMul", ["a", "b"], ["y"], "op")]
    workload = load(model_of(nodes, {"b": (3, 2)}, "y", constants={"a": np.zeros((0, 3), np.float32)}))
    assert "dimension M has size 0" in workload.unmapped[0].reason


@pytest.mark.parametrize(
    ("operator", "shapes", "attributes", "reason"),
    [
        ("Conv", {"x": (1, 3, 8, 8), "w": (4, 2, 3, 3)}, {}, "channels of the input and of the weights differ"),
        ("Conv", {"x": (1, 3, 8, 8), "w": (4, 3, 3)}, {}, "different numbers of dimensions"),
        ("Conv", {"x": (1, 4, 8, 8), "w": (3, 2, 3, 3)}, {"group": 2}, "3 channels do not divide into 2 groups"),
        ("Conv", {"x": (1, 4, 8, 8), "w": (4, 4, 3, 3)}, {"group": 0}, "group 0; it must be at least 1"),
        ("Conv", {"x": (1, 4, 8, 8), "w": (4, 4, 3, 3)}, {"strides": [0, 1]}, "strides [0, 1]; each must be"),
        (
            "ConvTranspose",
            {"x": (1, 3, 8, 8), "w": (4, 2, 3, 3)},
            {},
            "channels of the input and of the weights differ",
        ),
        ("ConvTranspose", {"x": (1, 3, 8, 8), "w": (3, 2, 3, 3)}, {"group": 2}, "do not divide into 2 groups"),
        ("Gemm", {"a": (2, 3), "b": (4, 5)}, {}, "the inner sizes differ: 3 and 4"),
        ("Gemm", {"a": (2, 3, 4), "b": (5, 5)}, {}, "the inner sizes differ: 4 and 5"),
        ("Gemm", {"a": (4,), "b": (4, 5)}, {}, "Gemm needs matrices; found 1 and 2 dimensions"),
        ("MatMul", {"a": (2, 3), "b": (4, 5)}, {}, "the inner sizes differ: 3 and 4"),
        ("MatMul", {"a": (2, 2, 3), "b": (5, 3, 4)}, {}, "dimension B0 has sizes 2 and 5"),
        ("MatMul", {"a": (2, 3)}, {}, "malformed"),
        ("Einsum", {"a": (2, 3), "b": (4, 5)}, {"equation": "ij,jk->ik"}, "dimension j has sizes 3 and 4"),
        ("Einsum", {"a": (2, 3), "b": (3, 5)}, {"equation": "ij,jk->iq"}, "in the result only"),
        ("Einsum", {"a": (2, 3), "b": (3, 5)}, {"equation": "ij->i"}, "the equation has 1 operands, the operator 2"),
        ("Einsum", {"a": (2, 3)}, {"equation": "i1->i"}, "cannot read the equation 'i1->i'"),
        ("Einsum", {"a": (2, 3)}, {}, "malformed"),
    ],
)
def test_contradictions_are_input_errors(
    operator: str, shapes: dict[str, tuple[int, ...]], attributes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InputError, match="'op'") as caught:
        load(one(operator, shapes, **attributes))
    assert reason in str(caught.value)
