"""An ONNX graph with the shapes of its values: sizes for open dimensions, inferred shapes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from onnx.inliner import inline_local_functions
from onnx.shape_inference import infer_shapes

from tilewright.errors import InputError
from tilewright.files import read_bytes
from tilewright.schema.document import suggestion
from tilewright.schema.frozen import FrozenDict
from tilewright.values import grouped
from tilewright_frontends.nests import Shape, Unsupported
from tilewright_frontends.onnx.node import graphs_of, label_of, values_read
from tilewright_frontends.onnx.shapes import Pass, is_small

OpenShape = tuple[int | str | None, ...]
"""A size per dimension, its name if it is open, or None if unknown."""

MAX_BYTES = 2**31
"""Maximum size of a protobuf in bytes."""
DATA: tuple[Literal["raw_data", "float_data", "double_data", "int32_data", "int64_data", "uint64_data"], ...]
DATA = ("raw_data", "float_data", "double_data", "int32_data", "int64_data", "uint64_data")
"""Fields that may hold the numbers of a tensor."""
UNNAMED = ("", "?")
"""Names of dimensions that name nothing; several dimensions may be called `?`."""


@dataclass(frozen=True)
class Graph:
    """Operators in execution order and the shapes of their values.

    Attributes:
        name: name of the model.
        nodes: operators in execution order.
        shapes: value -> shape, if known.
        partial: value -> shape, if only some sizes are known.
        open: names of dimensions that the inputs leave open -> whether one is an input's first
            dimension.
        elements: value -> element type, a number of TensorProto.DataType.
        times: how often each operator is executed; more than once in a loop.
        numbers: inputs of one whole number without a value.
        values: value -> data, if known and small.
        opset: version of ONNX's operators.
        fractions: weights -> fraction of nonzero values, if asked for; None: they are stored in another file.
        ends: the outputs of the network.
    """

    name: str
    nodes: tuple[NodeProto, ...]
    shapes: Mapping[str, Shape]
    partial: Mapping[str, OpenShape]
    open: Mapping[str, bool]
    elements: Mapping[str, int]
    times: tuple[int, ...]
    numbers: tuple[str, ...] = ()
    values: Mapping[str, TensorProto] = field(default_factory=dict)
    opset: int = 0
    fractions: Mapping[str, float | None] = field(default_factory=dict)
    ends: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()

    @cached_property
    def varying(self) -> frozenset[str]:
        """Values that depend on inputs of the network."""
        values = set(self.inputs)
        for node in self.nodes:
            if not values.isdisjoint(values_read(node)):
                values.update(node.output)
        return frozenset(values)

    @cached_property
    def makers(self) -> Mapping[str, NodeProto]:
        """Value -> the operator that produces it."""
        return {value: node for node in self.nodes for value in node.output if value}

    @cached_property
    def readers(self) -> Mapping[str, Sequence[NodeProto]]:
        """Value -> the operators that read it."""
        return grouped((value, node) for node in self.nodes for value in node.input)

    def shape(self, value: str) -> Shape:
        """Return the shape of a value.

        Raises:
            InputError: it depends on open dimensions.
            Unsupported: it cannot be inferred.
        """
        if value in self.shapes:
            return self.shapes[value]
        if not self.open:
            raise Unsupported(f"the shape of '{value}' cannot be inferred")
        partial = self.partial.get(value, ())
        names = [name for name in self.open if name in partial] or list(self.open)
        known = f" ({', '.join(str('?' if size is None else size) for size in partial)})" if partial else ""
        typed = ["--batch 1"] if any(self.open[name] for name in names) else []
        typed += [f"--size {name}=..." for name in names if not self.open[name]]
        raise InputError(
            f"{self.name}: the shape of '{value}'{known} depends on dynamic dimensions: {', '.join(names)}",
            hint=f"give {' '.join(typed)}",
        )


def load_graph(
    path: Path,
    name: str,
    batch: int | None,
    sizes: Mapping[str, int],
    weights: bool = False,
    branches: Mapping[str, str] = FrozenDict(),
) -> Graph:
    """Read a model and infer its shapes.

    Raises:
        InputError: the file is unreadable, a size belongs to no open dimension, or a branch to no `If` that data decide.
    """
    fractions: dict[str, float | None] = {}
    model = read_model(path, fractions if weights else None)
    _check(model.graph, name)
    inputs = _inputs(model.graph)
    for value in (*model.graph.input, *model.graph.value_info, *model.graph.output):
        for dimension in _dimensions(value):
            if (dimension.HasField("dim_param") and dimension.dim_param in UNNAMED) or dimension.dim_value < 0:
                dimension.Clear()
    for value in inputs:
        for index, dimension in enumerate(_dimensions(value)):
            if dimension.dim_value < 1 and not dimension.dim_param:
                dimension.dim_param = f"{value.name}_{index}"
    numbers = [value.name for value in inputs if _is_number(value)]
    given = _given(name, _open(inputs), numbers, batch, sizes)
    for value in (*model.graph.input, *model.graph.value_info, *model.graph.output):
        for dimension in _dimensions(value):
            if dimension.dim_param in given:
                dimension.dim_value = given[dimension.dim_param]
    for value in inputs:
        if value.name in numbers and value.name in given:
            _fix(model.graph, value, given[value.name])
    if batch is not None and not given.keys() - sizes.keys():  # no input leaves its first dimension open
        _change_batch(model, name, inputs, batch)
    missing = tuple(number for number in numbers if number not in given)
    return replace(graph_of(model, name, _open(inputs), branches), numbers=missing, fractions=fractions)


def read_model(path: Path, fractions: dict[str, float | None] | None = None) -> ModelProto:
    """Return the model without external data and large weights, with local functions inlined.

    Args:
        fractions: receives the fractions of nonzero weights (`Graph.fractions`), if not None.

    Raises:
        InputError: the file is unreadable or holds no operators.
    """
    data = read_bytes(path, MAX_BYTES)
    try:
        model = onnx.load_model_from_string(data)
        if model.functions:
            model = inline_local_functions(model)
    except MemoryError:
        raise
    except Exception as error:  # protobuf and onnx raise many exception types for invalid models
        raise InputError(f"{path} is not a readable ONNX model: {error}") from None
    if not model.graph.node:
        raise InputError(f"{path} holds no operators: it is empty or not an ONNX model")
    if fractions is not None:
        fractions |= dict(_fractions(model.graph))
    for tensor in _tensors(model.graph):
        if not is_small(tensor):
            for numbers in DATA:
                tensor.ClearField(numbers)  # shapes are sufficient, and inference copies the model
    return model


def _fractions(graph: GraphProto) -> Iterator[tuple[str, float | None]]:
    """Yield name and fraction of nonzero values of the weights of a graph."""
    constants = [
        (node.output[0], attribute.t)
        for node in graph.node
        if node.op_type == "Constant"
        for attribute in node.attribute
        if attribute.HasField("t")
    ]
    for name, tensor in [*((initializer.name, initializer) for initializer in graph.initializer), *constants]:
        if tensor.data_location == TensorProto.EXTERNAL:
            yield name, None
        elif math.prod(tensor.dims) and tensor.data_type not in (TensorProto.STRING, TensorProto.UNDEFINED):
            yield name, float(np.count_nonzero(numpy_helper.to_array(tensor)) / math.prod(tensor.dims))


def _tensors(graph: GraphProto) -> Iterator[TensorProto]:
    """Yield all tensors in a graph and its subgraphs."""
    yield from graph.initializer
    for node in graph.node:
        yield from (attribute.t for attribute in node.attribute if attribute.HasField("t"))
        for inner in graphs_of(node):
            yield from _tensors(inner)


def _check(graph: GraphProto, name: str) -> None:
    """Refuse models for which the shape inference of onnx (at least 1.17 to 1.20) crashes.

    Raises:
        InputError: the model contains such an operator.
    """
    for node in graph.node:
        for attribute in node.attribute:
            fault = _fault(node, attribute)
            if fault:
                raise InputError(f"{name}: {node.op_type} '{node.name}' is malformed: {fault}")
        for inner in graphs_of(node):
            _check(inner, name)


_SUBSCRIPTS = r"[A-Za-z]*+(?:\.\.\.[A-Za-z]*+)?"
_EQUATION = re.compile(rf"{_SUBSCRIPTS}(?:,{_SUBSCRIPTS})*(?:->{_SUBSCRIPTS})?")


def _fault(node: NodeProto, attribute: AttributeProto) -> str | None:
    if attribute.name in ("strides", "dilations", "kernel_shape") and any(number < 1 for number in attribute.ints):
        return f"{attribute.name} {list(attribute.ints)}; each must be at least 1"
    if attribute.name == "group" and attribute.i < 1:
        return f"group {attribute.i}; it must be at least 1"
    if node.op_type == "Einsum" and attribute.name == "equation":
        equation = attribute.s.decode(errors="replace").replace(" ", "")
        if not _EQUATION.fullmatch(equation):
            return f"cannot read the equation '{equation}': one letter per dimension, like 'ij,jk->ik'"
        count = equation.partition("->")[0].count(",") + 1
        if count != len(node.input):
            return f"the equation has {count} operands, the operator {len(node.input)}"
    return None


Dimension = onnx.TensorShapeProto.Dimension


def _dimensions(value: ValueInfoProto) -> Sequence[Dimension]:
    dimensions: Sequence[Dimension] = value.type.tensor_type.shape.dim
    return dimensions


def _inputs(graph: GraphProto) -> list[ValueInfoProto]:
    """Return the inputs that a caller provides; old models list their weights as inputs, too."""
    weights = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in weights]


def _open(inputs: list[ValueInfoProto]) -> dict[str, bool]:
    """Return name -> whether it is the first dimension of some input."""
    names: dict[str, bool] = {}
    for value in inputs:
        for index, dimension in enumerate(_dimensions(value)):
            if dimension.dim_param:
                names[dimension.dim_param] = names.get(dimension.dim_param, False) or index == 0
    return names


def _is_number(value: ValueInfoProto) -> bool:
    """Return whether an input is one whole number, such as a sampling rate."""
    tensor = value.type.tensor_type
    sizes = [size.dim_value for size in tensor.shape.dim]
    return tensor.elem_type in (TensorProto.INT32, TensorProto.INT64) and tensor.HasField("shape") and set(sizes) <= {1}


def _fix(graph: GraphProto, value: ValueInfoProto, number: int) -> None:
    """Replace an input by a constant."""
    shape = [1] * len(_dimensions(value))
    graph.initializer.append(helper.make_tensor(value.name, value.type.tensor_type.elem_type, shape, [number]))


def _given(
    name: str, known: Mapping[str, bool], numbers: Sequence[str], batch: int | None, sizes: Mapping[str, int]
) -> dict[str, int]:
    """Return name of an open dimension or number -> size, and `batch` for first dimensions."""
    listed = [*known, *numbers]
    for size in sizes:
        if size not in listed:
            has = f"it has: {', '.join(listed)}" if listed else "all its sizes are fixed"
            raise InputError(f"{name} has no dynamic dimension called '{size}'; {has}{suggestion(size, listed)}")
    if batch is None:
        return dict(sizes)
    first = [parameter for parameter, is_first in known.items() if is_first]
    if first and sizes.keys() >= set(first):
        raise InputError(f"{name}: --batch and --size both set {', '.join(first)}", hint="give one of them")
    return dict.fromkeys(first, batch) | dict(sizes)


def graph_of(
    model: ModelProto, name: str, open_sizes: Mapping[str, bool], branches: Mapping[str, str] = FrozenDict()
) -> Graph:
    """Return the graph with all types that can be inferred, and with these branches of `If`s that data decide.

    Raises:
        InputError: a branch belongs to no `If` that data decide.
    """
    try:
        inferred = infer_shapes(model).graph
    except MemoryError:
        raise
    except Exception:  # several types, if inference fails for one operator; the pass below infers the others
        inferred = model.graph
    known = (*inferred.input, *inferred.value_info, *inferred.output)
    inference = Pass(
        list(model.opset_import),
        {entry.name: entry.type for entry in known if entry.type.WhichOneof("value")},
        branches=branches,
    )
    inference.run(model.graph)
    others = [wanted for wanted in branches if wanted not in inference.chosen]
    if others:
        left = [label_of(node) for node in inference.nodes if node.op_type == "If"]
        text = f"{name}: data decide no If called '{others[0]}'; it has: {', '.join(left) or 'none'}"
        raise InputError(text + suggestion(others[0], left))
    shapes: dict[str, Shape] = {}
    partial: dict[str, OpenShape] = {}
    for value, kind in inference.types.items():
        shape = tuple(
            dimension.dim_value if dimension.HasField("dim_value") else dimension.dim_param or None
            for dimension in kind.tensor_type.shape.dim
        )
        sizes = tuple(size for size in shape if isinstance(size, int))
        if kind.tensor_type.HasField("shape"):
            if len(sizes) == len(shape):
                shapes[value] = sizes
            else:
                partial[value] = shape
    elements = {value: kind.tensor_type.elem_type for value, kind in inference.types.items()}
    opset = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)
    nodes, times = tuple(inference.nodes), tuple(inference.times)
    return Graph(
        name,
        nodes,
        shapes,
        partial,
        open_sizes,
        elements,
        times,
        values=inference.values,
        opset=opset,
        ends=tuple(result.name for result in model.graph.output),
        inputs=tuple(value.name for value in _inputs(model.graph)),
    )


# -- another batch size for a model with a fixed one
# ---------------------------------------------------------


def _change_batch(model: ModelProto, name: str, inputs: list[ValueInfoProto], batch: int) -> None:
    """Replace a fixed batch size in the inputs, and in reshapes that repeat it.

    Raises:
        InputError: an operator still depends on the old batch size, so results would be wrong.
    """
    heads = [_dimensions(value)[0] for value in inputs if _dimensions(value)]
    old = heads[0].dim_value if heads else None
    if old is None:
        raise InputError(f"{name} has no input with a first dimension: --batch has no effect; omit it")
    if old == batch:
        return
    before = graph_of(model, name, {}).shapes
    for head in heads:
        if head.dim_value == old:
            head.dim_value = batch
    reshapes = [node for node in _fed(model.graph, inputs) if node.op_type == "Reshape" and len(node.input) > 1]
    constants = _constants(model.graph)
    for node in reshapes:
        target = constants.get(node.input[1])
        if target is not None and before.get(node.input[0], ())[:1] == (old,) and target[:1].tolist() == [old]:
            changed = numpy_helper.from_array(
                np.array([batch, *target[1:]], dtype=np.int64), f"{node.output[0]}__shape"
            )
            model.graph.initializer.append(changed)
            node.input[1] = changed.name
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    after = graph_of(model, name, {}).shapes
    lost = [value for value in before if value not in after]
    lost += [node.output[0] for node in reshapes if _words(after, node.input[0]) != _words(after, node.output[0])]
    if lost:
        raise InputError(
            f"{name} is made for batch {old}: with --batch {batch} the shape of '{lost[0]}' cannot be derived",
            hint="export the model with a dynamic batch dimension",
        )


def _fed(graph: GraphProto, inputs: list[ValueInfoProto]) -> Iterator[NodeProto]:
    """Yield the operators that depend on the inputs."""
    reached = {value.name for value in inputs}
    for node in graph.node:
        if not reached.isdisjoint(values_read(node)):
            reached.update(node.output)
            yield node


def _constants(graph: GraphProto) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    """Return lists of whole numbers in the graph, such as the targets of reshapes."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].type == AttributeProto.TENSOR:
            tensors[node.output[0]] = node.attribute[0].t
    return {
        name: numpy_helper.to_array(tensor)
        for name, tensor in tensors.items()
        if tensor.data_type == TensorProto.INT64
        and len(tensor.dims) == 1
        and tensor.data_location != TensorProto.EXTERNAL
    }


def _words(shapes: Mapping[str, Shape], value: str) -> int | None:
    return math.prod(shapes[value]) if value in shapes else None
