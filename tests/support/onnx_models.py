"""Small ONNX models, and what a problem's loop nest computes when it is walked."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tilewright.schema.problem import Problem, Tensor

Array = NDArray[Any]
Shape = Sequence[int | str | None]


def model_of(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Shape],
    *outputs: str,
    constants: Mapping[str, Any] | None = None,
    opset: int = 17,
    functions: Sequence[Any] = (),
    domains: Sequence[str] = (),
) -> ModelProto:
    """A model whose inputs have these shapes; constants are arrays."""
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()],
    )
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=8)


def save(model: ModelProto, folder: Path, name: str = "small.onnx") -> str:
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return str(path)


def extents(problem: Problem, tensor: Tensor) -> tuple[int, ...]:
    """Shape of the box that the iterations touch."""
    return tuple(
        1 + sum(c * (problem.dimensions[name] - 1) for name, c in rank.terms.items()) for rank in tensor.projection
    )


def walk(problem: Problem, operands: Sequence[Array]) -> Array:
    """Do every iteration: add the product of the operands' words to the result's word."""
    points = np.indices(problem.sizes).reshape(len(problem.sizes), -1)
    kind = np.result_type(np.int64, *operands)
    result = np.zeros(extents(problem, problem.output), dtype=kind)
    product = np.ones(points.shape[1], dtype=kind)
    for tensor, array in zip(problem.operands, operands, strict=True):
        assert array.ndim == len(tensor.projection)
        product *= array[tuple(problem.projection_matrix(tensor) @ points)]
    places = tuple(problem.projection_matrix(problem.output) @ points)
    np.add.at(result, places or (np.newaxis,), product.sum() if not places else product)
    return result


def whole_numbers(*shape: int) -> Array:
    """A small different number in every place."""
    return np.random.default_rng(len(shape)).integers(-4, 5, shape)
