"""Shapes of all values of a graph, including those that operators compute from other shapes.

onnx's inference does not evaluate operators, so it stops at a Reshape, Pad or Resize whose target
is computed. Here one pass in execution order infers each operator and evaluates the small ones:
`Shape -> Gather -> Concat -> Reshape`. An `If` whose condition is known is replaced by its branch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, OperatorSetIdProto, TensorProto, TypeProto, defs, helper, numpy_helper
from onnx.shape_inference import infer_node_outputs

from tilewright_frontends.onnx import microsoft
from tilewright_frontends.onnx.node import attributes_of, graphs_of, in_order, is_standard, label_of

SMALL = 1024
"""Maximum number of elements of a value that is evaluated; targets of reshapes have a few."""
RANDOM = frozenset("RandomNormal RandomNormalLike RandomUniform RandomUniformLike Bernoulli Multinomial".split())


def size_of(value_type: TypeProto) -> int | None:
    """Return the number of elements of a tensor, or None if a size is open."""
    tensor = value_type.tensor_type
    if not tensor.HasField("shape") or not all(size.HasField("dim_value") for size in tensor.shape.dim):
        return None
    return math.prod(int(size.dim_value) for size in tensor.shape.dim)


def is_small(tensor: TensorProto) -> bool:
    """Return whether the tensor's data are in the file and small enough to evaluate."""
    return math.prod(tensor.dims) <= SMALL and tensor.data_location != TensorProto.EXTERNAL


@dataclass
class Pass:
    """One pass over the operators.

    Attributes:
        opsets: versions of the model's operators.
        types: value -> type; sizes may be open.
        values: value -> data, if known and small.
        nodes: operators met so far, with the branches of decided `If`s in their place.
        times: how often each of them is executed.
        branches: label of an `If` that data decide -> the branch to read, `then` or `else`.
        chosen: labels of the `If`s whose branch was chosen so.
    """

    opsets: list[OperatorSetIdProto]
    types: dict[str, TypeProto]
    values: dict[str, TensorProto] = field(default_factory=dict)
    nodes: list[NodeProto] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    branches: Mapping[str, str] = field(default_factory=dict)
    chosen: set[str] = field(default_factory=set)

    def run(self, graph: GraphProto) -> None:
        """Read a graph, and the branches it decides on."""
        self._add(graph.initializer)
        self._run(in_order(graph.node))

    def _run(self, nodes: Sequence[NodeProto]) -> None:
        waiting = list(reversed(nodes))
        while waiting:
            node = waiting.pop()
            branch = self._branch(node)
            if branch is not None:
                waiting += reversed(self._inlined(node, branch))
            elif not self._repeated(node):
                self._read(node)

    def _add(self, tensors: Iterable[TensorProto]) -> None:
        for tensor in tensors:
            self.types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
            if is_small(tensor):
                self.values[tensor.name] = tensor

    def _list(self, *nodes: NodeProto) -> None:
        self.nodes += nodes
        self.times += [1] * len(nodes)

    # -- one operator

    def _read(self, node: NodeProto) -> None:
        self._list(node)
        read = [value for value in node.input if value]
        made = [value for value in node.output if value]
        unknown = any(value not in self.types or size_of(self.types[value]) is None for value in made)
        if unknown and all(value in self.types for value in read):
            for value, value_type in self._inferred(node).items():
                old = self.types.get(value)
                if old is None or size_of(value_type) is not None or not old.tensor_type.HasField("shape"):
                    self.types[value] = value_type
        if self._is_evaluated(node, read, made):
            self._evaluate(node, read)

    def _inferred(self, node: NodeProto) -> Mapping[str, TypeProto]:
        """Return the types of the results that can be inferred."""
        types = self._of_schema(node) if is_standard(node) else {}
        if types and all(size_of(value_type) is not None for value_type in types.values()):
            return types
        return {**types, **microsoft.inferred(node, self.types)}

    def _of_schema(self, node: NodeProto) -> Mapping[str, TypeProto]:
        versions = {opset.domain: opset.version for opset in self.opsets}
        version = versions.get("", versions.get("ai.onnx", defs.onnx_opset_version()))
        types = self.types if any(graphs_of(node)) else {value: self.types[value] for value in node.input if value}
        try:
            inferred: Mapping[str, TypeProto] = infer_node_outputs(
                defs.get_schema(node.op_type, min(version, defs.onnx_opset_version()), ""),
                node,
                types,
                {value: self.values[value] for value in node.input if value in self.values},
                opset_imports=[helper.make_opsetid("", version)],
            )
        except MemoryError:
            raise
        except Exception:  # onnx raises several types; an operator that needs the shape is reported
            return {}
        return inferred

    def _is_evaluated(self, node: NodeProto, read: list[str], made: list[str]) -> bool:
        if not is_standard(node) or node.op_type in RANDOM or any(graphs_of(node)):
            return False
        if node.op_type in ("Shape", "Size"):
            return size_of(self.types.get(read[0], TypeProto())) is not None
        if any(value not in self.values for value in read):
            return False
        sizes = [size_of(self.types.get(value, TypeProto())) for value in made]
        return node.op_type == "NonZero" or all(size is not None and size <= SMALL for size in sizes)

    def _evaluate(self, node: NodeProto, read: list[str]) -> None:
        """Compute the results of an operator with onnx's reference implementation."""
        from onnx.reference import ReferenceEvaluator  # imported here because most models need no evaluation

        if node.op_type in ("Shape", "Size"):  # the data do not matter
            shape = [size.dim_value for size in self.types[read[0]].tensor_type.shape.dim]
            data: dict[str, NDArray[np.generic]] = {read[0]: np.broadcast_to(np.float32(0), shape)}
        else:
            data = {value: numpy_helper.to_array(self.values[value]) for value in read}
        try:
            made = [value for value in node.output if value]
            graph = helper.make_graph(
                [node],
                "one",
                [helper.make_value_info(value, self.types[value]) for value in data],
                [helper.make_value_info(value, TypeProto()) for value in made],
            )
            model = helper.make_model(graph, opset_imports=self.opsets)  # an operator alone loses its version
            results = ReferenceEvaluator(model).run(made, data)
            tensors = [
                numpy_helper.from_array(np.asarray(result), name) for name, result in zip(made, results, strict=True)
            ]
        except MemoryError:
            raise
        except Exception:  # the evaluator raises many types, such as for an operator it lacks
            return
        self._add(tensors)

    # -- branches

    def _branch(self, node: NodeProto) -> GraphProto | None:
        """Return the branch of an `If` whose condition is known, or that the user chose."""
        if node.op_type != "If" or not is_standard(node) or not node.input:
            return None
        if node.input[0] in self.values:
            way = "then" if numpy_helper.to_array(self.values[node.input[0]]).any() else "else"
        elif label_of(node) in self.branches:
            way = self.branches[label_of(node)]
            self.chosen.add(label_of(node))
        else:
            return None
        return next((attribute.g for attribute in node.attribute if attribute.name == f"{way}_branch"), None)

    def _inlined(self, node: NodeProto, branch: GraphProto) -> list[NodeProto]:
        """Return the operators of a branch, and one Identity for each result of the `If`.

        Values of the branch get new names, because another branch may use the same ones.
        """
        names = self._renaming(node, branch)
        results = [names.get(output.name, output.name) for output in branch.output]
        ends = [
            helper.make_node("Identity", [inside], [outside], f"{node.name or 'If'}_{index}")
            for index, (inside, outside) in enumerate(zip(results, node.output, strict=False))
            if outside
        ]
        for end in ends:
            self.types.pop(end.output[0], None)  # the branches may differ in shape
        return [*(_renamed(inner, names) for inner in in_order(branch.node)), *ends]

    def _renaming(self, node: NodeProto, graph: GraphProto) -> dict[str, str]:
        """Return new names for the values of a subgraph, and add its constants under them."""
        prefix = next((value for value in node.output if value), node.name)
        made = (value for child in graph.node for value in child.output)
        inner = [*(value.name for value in (*graph.input, *graph.initializer)), *made]
        names = {value: f"{prefix}.{value}" for value in inner if value}
        for tensor in graph.initializer:
            renamed = TensorProto()
            renamed.CopyFrom(tensor)
            renamed.name = names[tensor.name]
            self._add([renamed])
        return names

    # -- loops

    def _repeated(self, node: NodeProto) -> bool:
        """Read the body of a loop once and return True, if all iterations are alike and their number is known."""
        if node.op_type not in ("Loop", "Scan") or not is_standard(node):
            return False
        attributes = attributes_of(node)
        body = attributes.get("body")
        scanned = int(attributes.get("num_scan_inputs", 0))
        axes = attributes.get("scan_input_axes") or [0] * scanned
        if body is None or any(attributes.get("scan_output_axes", ())):
            return False
        first = 2 if node.op_type == "Loop" else 0
        outer = list(node.input[first:])
        times = self._trips(node, body) if first else self._steps(outer[len(outer) - scanned :], axes)
        types = [self.types.get(value) for value in outer]
        if not times or any(value_type is None or size_of(value_type) is None for value_type in types):
            return False
        inner = Pass(self.opsets, dict(self.types), dict(self.values), branches=self.branches, chosen=self.chosen)
        names = inner._renaming(node, body)
        inside = [names[entry.name] for entry in body.input[first:]]
        states = len(outer) - scanned
        for place, (value, value_type) in enumerate(zip(inside, types, strict=False)):
            shape = [size.dim_value for size in value_type.tensor_type.shape.dim] if value_type else []
            if place >= states:
                del shape[axes[place - states]]
            inner.types[value] = helper.make_tensor_type_proto(
                value_type.tensor_type.elem_type if value_type else 0, shape
            )
        for value in body.input[:first]:
            inner.types[names[value.name]] = value.type
        inner._run([_renamed(inner_node, names) for inner_node in in_order(body.node)])
        results = [names.get(entry.name, entry.name) for entry in body.output[first // 2 :]]
        if any(inner.types.get(new) != inner.types[old] for new, old in zip(results, inside[:states], strict=False)):
            return False  # a state that grows: the iterations differ
        for place, (value, result) in enumerate(zip(node.output, results, strict=False)):
            value_type = inner.types.get(result)
            if value and value_type is not None and size_of(value_type) is not None:
                shape = [times] * (place >= states) + [size.dim_value for size in value_type.tensor_type.shape.dim]
                self.types[value] = helper.make_tensor_type_proto(value_type.tensor_type.elem_type, shape)
        label = node.name or node.op_type
        links = [_links(outer, inside, f"{label}_input"), _links(results, node.output, f"{label}_output")]
        self.nodes += [*links[0], *inner.nodes, *links[1]]
        self.times += [times * count for count in (*[1] * len(links[0]), *inner.times, *[1] * len(links[1]))]
        self.types = inner.types | self.types
        return True

    def _steps(self, scanned: list[str], axes: Sequence[int]) -> int | None:
        """Return the number of iterations of a Scan: the size of what it scans."""
        sizes = [
            self.types[value].tensor_type.shape.dim[axis].dim_value
            for value, axis in zip(scanned, axes, strict=True)
            if value in self.types and size_of(self.types[value]) is not None
        ]
        return sizes[0] if len(sizes) == len(scanned) and sizes else None

    def _trips(self, node: NodeProto, body: GraphProto) -> int | None:
        """Return the number of iterations of a Loop whose condition always holds."""
        count, condition = self.values.get(node.input[0]), self.values.get(node.input[1])
        if count is None or (node.input[1] and (condition is None or not numpy_helper.to_array(condition).all())):
            return None
        makers = {value: maker for maker in body.node for value in maker.output}
        kept = body.output[0].name
        while kept in makers and makers[kept].op_type in ("Identity", "Cast"):
            kept = makers[kept].input[0]
        constants = Pass(self.opsets, {}, dict(self.values))
        constants._add(body.initializer)
        constants._run([makers[kept]] if kept in makers else [])
        always = constants.values.get(kept)
        if kept != body.input[1].name and (always is None or not numpy_helper.to_array(always).all()):
            return None
        return int(numpy_helper.to_array(count).reshape(-1)[0])


def _links(values: Iterable[str], names: Iterable[str], label: str) -> list[NodeProto]:
    """Return operators that connect values inside and outside of a loop."""
    return [
        helper.make_node("Identity", [value], [name], f"{label}_{place}")
        for place, (value, name) in enumerate(zip(values, names, strict=False))
        if value and name
    ]


def _renamed(node: NodeProto, names: Mapping[str, str]) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    waiting = [copy]
    while waiting:
        current = waiting.pop()
        current.input[:] = [names.get(value, value) for value in current.input]
        current.output[:] = [names.get(value, value) for value in current.output]
        for graph in graphs_of(current):
            waiting += graph.node
            for value in graph.output:
                value.name = names.get(value.name, value.name)
    return copy
