"""Small random ONNX networks, and their execution on numbers along the reads of a workload."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from support.onnx_models import extents, model_of, walk
from tilewright.schema.read import Read
from tilewright.schema.workload import Workload

Array = NDArray[Any]


@dataclass
class Drawn:
    """A network in the making: operators, weights, and the shapes of values."""

    random: Random
    nodes: list[NodeProto] = field(default_factory=list)
    weights: dict[str, Array] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def add(self, operator: str, inputs: list[str], shape: tuple[int, ...] | None, **attributes: Any) -> str:
        name = f"{operator.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [f"{name}.value"], name, **attributes))
        self.shapes[f"{name}.value"] = shape or self.shapes[inputs[0]]
        return f"{name}.value"

    def weight(self, *shape: int) -> str:
        name = f"w{len(self.weights)}"
        rng = np.random.default_rng(self.random.randrange(2**32))
        self.weights[name] = rng.integers(-2, 3, shape).astype(np.float32)
        return name

    def constant(self, *numbers: int) -> str:
        name = f"c{len(self.weights)}"
        self.weights[name] = np.array(numbers, np.int64)
        return name

    def convolution(self, value: str, outward: int | None = None, same: bool = False) -> str:
        """A convolution with random window, stride, padding and groups; `same` keeps the picture's size."""
        batch, channels, *picture = self.shapes[value]
        draw = self.random
        groups = draw.choice([divisor for divisor in (1, 2, channels) if channels % divisor == 0])
        outward = outward or groups * draw.randint(1, 3)
        groups = groups if outward % groups == 0 else 1
        window = [draw.choice([1, 3] if same else [1, 2, 3]) for _ in picture]
        dilations = [1 if same or size < 7 else draw.choice([1, 1, 2]) for size in picture]
        reach = [d * (r - 1) + 1 for d, r in zip(dilations, window, strict=True)]
        heads = [(r - 1) // 2 if same else draw.randint(0, r - 1) for r in reach]
        tails = [(r - 1) // 2 if same else draw.randint(0, r - 1) for r in reach]
        strides = [1 if same else draw.choice([1, 1, 2]) for _ in picture]
        result = [
            (size + head + tail - r) // stride + 1
            for size, head, tail, r, stride in zip(picture, heads, tails, reach, strides, strict=True)
        ]
        if min(result) < 1:
            return value
        weight = self.weight(outward, channels // groups, *window)
        return self.add(
            "Conv",
            [value, weight],
            (batch, outward, *result),
            group=groups,
            pads=[*heads, *tails],
            strides=strides,
            dilations=dilations,
        )

    def product(self, value: str, width: int) -> str:
        *rest, inward = self.shapes[value]
        if len(rest) == 1 and self.random.random() < 0.5:
            return self.add("Gemm", [value, self.weight(width, inward)], (*rest, width), transB=1)
        return self.add("MatMul", [value, self.weight(inward, width)], (*rest, width))

    def reshaped(self, value: str, *shape: int) -> str:
        return self.add("Reshape", [value, self.constant(*shape)], shape)

    def transposed(self, value: str, *order: int) -> str:
        shape = self.shapes[value]
        return self.add("Transpose", [value], tuple(shape[axis] for axis in order), perm=list(order))

    def change(self, value: str) -> str:
        """Perhaps a ReLU."""
        return self.add("Relu", [value], None) if self.random.random() < 0.4 else value

    def picture(self) -> tuple[dict[str, tuple[int, ...]], str]:
        """Convolutions with residuals, concatenations, shuffled channels, slices and padding."""
        draw = self.random
        shape = (draw.randint(1, 2), draw.randint(1, 4), draw.randint(4, 9), draw.randint(4, 9))
        self.shapes["x"] = shape
        value = self.convolution("x", same=True)
        for _ in range(draw.randint(1, 4)):
            batch, channels, *picture = self.shapes[value]
            kind = draw.choice("chain chain residual branches shuffle slice pad split".split())
            if kind == "chain":
                value = self.convolution(value)
            elif kind == "residual":
                other = self.convolution(self.change(self.convolution(value, same=True)), channels, same=True)
                value = self.add("Add", [value, other], None)
            elif kind == "branches":
                both = [self.convolution(value, draw.randint(1, 3), same=True) for _ in range(2)]
                total = sum(self.shapes[branch][1] for branch in both)
                value = self.add("Concat", both, (batch, total, *picture), axis=1)
            elif kind == "shuffle":
                part = draw.choice([divisor for divisor in range(1, channels + 1) if channels % divisor == 0])
                value = self.reshaped(value, batch, part, channels // part, *picture)
                value = self.reshaped(self.transposed(value, 0, 2, 1, 3, 4), batch, channels, *picture)
            elif kind == "slice":
                start, step = draw.randint(0, picture[0] - 1), draw.choice([1, 2])
                size = -(-(picture[0] - start) // step)
                cuts = [self.constant(number) for number in (start, picture[0], 2, step)]
                value = self.add("Slice", [value, *cuts], (batch, channels, size, picture[1]))
            elif kind == "pad":
                first, last = draw.randint(0, 2), draw.randint(0, 2)
                pads = self.constant(0, 0, 0, first, 0, 0, 0, last)
                value = self.add("Pad", [value, pads], (batch, channels, picture[0], picture[1] + first + last))
            elif channels > 1:
                first = draw.randint(1, channels - 1)
                kept = [(batch, size, *picture) for size in (first, channels - first)]
                inputs = [value, self.constant(first, channels - first)]
                name = f"split{len(self.nodes)}"
                outputs = [f"{name}.a", f"{name}.b"]
                self.nodes.append(helper.make_node("Split", inputs, outputs, name, axis=1))
                self.shapes |= dict(zip(outputs, kept, strict=True))
                value = self.add("Concat", outputs[::-1], (batch, channels, *picture), axis=1)
            value = self.change(value)
        value = self.convolution(value, draw.randint(1, 3), same=True)
        if draw.random() < 0.5:
            batch, *rest = self.shapes[value]
            flat = self.add("Flatten", [value], (batch, int(np.prod(rest))))
            value = self.product(flat, draw.randint(1, 4))
        return {"x": shape}, value

    def attention(self) -> tuple[dict[str, tuple[int, ...]], str]:
        """Attention with heads by reshapes, or by the operator, with an MLP and residuals after it."""
        draw = self.random
        batch, tokens, heads, head = draw.randint(1, 2), draw.randint(2, 4), draw.randint(1, 3), draw.randint(1, 3)
        width = heads * head
        self.shapes["x"] = (batch, tokens, width)
        value = self.product("x", width)
        if draw.random() < 0.3:
            q, k, v = (self.product(value, width) for _ in range(3))
            sizes = {"q_num_heads": heads, "kv_num_heads": heads, "scale": 1.0}
            context = self.add("Attention", [q, k, v], (batch, tokens, width), **sizes)
        else:
            if draw.random() < 0.5:
                packed = self.product(value, 3 * width)
                parts = self.reshaped(packed, batch, tokens, 3, heads, head)
                turned = self.transposed(parts, 2, 0, 3, 1, 4)
                shape = (batch, heads, tokens, head)
                self.weights |= {f"place{place}": np.array(place, np.int64) for place in range(3)}
                q, k, v = (self.add("Gather", [turned, f"place{place}"], shape, axis=0) for place in range(3))
            else:
                q, k, v = (
                    self.transposed(self.reshaped(self.product(value, width), batch, tokens, heads, head), 0, 2, 1, 3)
                    for _ in range(3)
                )
            scores = self.add("MatMul", [q, self.transposed(k, 0, 1, 3, 2)], (batch, heads, tokens, tokens))
            if draw.random() < 0.5:
                scores = self.add("Softmax", [scores], None, axis=-1)
            context = self.add("MatMul", [scores, v], (batch, heads, tokens, head))
            context = self.reshaped(self.transposed(context, 0, 2, 1, 3), batch, tokens, width)
        value = self.add("Add", [self.product(context, width), value], None)
        hidden = self.change(self.product(value, draw.randint(1, 6)))
        value = self.add("Add", [value, self.product(hidden, width)], None)
        return {"x": (batch, tokens, width)}, self.product(value, draw.randint(1, 4))

    def mlp(self) -> tuple[dict[str, tuple[int, ...]], str]:
        """Products one after another, of which some are gated."""
        draw = self.random
        shape = (draw.randint(1, 4), draw.randint(1, 5))
        self.shapes["x"] = shape
        value = self.product("x", draw.randint(1, 6))
        for _ in range(draw.randint(1, 3)):
            width = draw.randint(1, 6)
            if draw.random() < 0.3:
                value = self.add("Mul", [self.product(value, width), self.product(value, width)], None)
            value = self.product(self.change(value), width)
        return {"x": shape}, value


def drawn(random: Random) -> ModelProto:
    """A random network of one input, which the first layer alone reads."""
    made = Drawn(random)
    inputs, last = random.choice([made.picture, made.attention, made.mlp])()
    return model_of(made.nodes, inputs, last, constants=made.weights, opset=23)


def executed(model: ModelProto) -> Mapping[str, Array]:
    """All values of the graph, by onnx's reference implementation in double precision, of whole numbers."""
    exact = ModelProto()
    exact.CopyFrom(model)
    for weight in exact.graph.initializer:
        array = numpy_helper.to_array(weight)
        if array.dtype == np.float32:
            weight.CopyFrom(numpy_helper.from_array(array.astype(np.float64), weight.name))
    rng = np.random.default_rng(len(model.graph.node))
    given: dict[str, Array] = {
        item.name: rng.integers(-3, 4, [size.dim_value for size in item.type.tensor_type.shape.dim]).astype(np.float64)
        for item in model.graph.input
    }
    results: Any = ReferenceEvaluator(exact).run(None, given, intermediate=True)
    weights = {weight.name: numpy_helper.to_array(weight) for weight in exact.graph.initializer}
    return weights | given | dict(results)


def along_reads(
    model: ModelProto,
    workload: Workload,
    values: Mapping[str, Array],
    named: dict[str, list[Array]] | None = None,
) -> Mapping[str, Array]:
    """Execute every layer on the words that its reads bring, and on inputs and weights: layer -> result.

    `named` gets the operands of each named value.
    """
    nodes = {node.name: node for node in model.graph.node}
    operators = {item.name: item.operator for item in workload.unmapped}
    order = {item.name: place for place, item in enumerate(workload.unmapped)}
    results: dict[str, Array] = {}
    parts: dict[tuple[str, str], list[Part]] = {}
    for name, operand, read in workload.edges:
        parts.setdefault((name, operand), []).append(Part(read, [*read.through]))
    for layer in workload.layers:
        operands = []
        for tensor in layer.problem.operands:
            box = extents(layer.problem, tensor)
            if (layer.name, tensor.name) not in parts:
                operands.append(from_outside(nodes[layer.name], tensor.name, box, values))
                continue
            for part in parts[layer.name, tensor.name]:
                assert part.read.cut is None, part.read.cut
                made, words = part.read.points()
                part.array = np.zeros(box)
                part.array[words] = results[part.read.maker][made]
            operands.append(joined(parts[layer.name, tensor.name], operators, order))
        results[layer.name] = walk(layer.problem, operands)
        for tensor, array in zip(layer.problem.operands, operands, strict=True):
            if named is not None and tensor.name in layer.inputs:
                named.setdefault(layer.inputs[tensor.name], []).append(array)
    return results


def from_outside(node: NodeProto, tensor: str, box: tuple[int, ...], values: Mapping[str, Array]) -> Array:
    """An operand that no layer makes, as the layer reads it."""
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    array = values[node.input[tensor in ("B", "Weights")]]
    if tensor == "Inputs":
        spatial = array.ndim - 2
        padded = np.pad(array, [(0, 0), (0, 0), *zip(*np.reshape(attributes["pads"], (2, spatial)), strict=True)])
        kept: tuple[Any, ...] = (..., *(slice(size) for size in box[-spatial:]))
        part: Array = padded[kept].reshape(box)
        return part
    return (array.T if tensor == "B" and attributes.get("transB") else array).reshape(box)


@dataclass
class Part:
    """Words of an operand from one maker, and the operators that they still have to pass."""

    read: Read
    chain: list[str]
    array: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def rows(self) -> tuple[int, ...]:
        """Axes of the operand that an operator needs together."""
        return tuple(
            place
            for place, index in enumerate(self.read.read or ())
            if not index.terms.keys().isdisjoint(self.read.whole)
        )


def joined(parts: list[Part], operators: Mapping[str, str], order: Mapping[str, int]) -> Array:
    """One operand from the words of several makers: operators in order, and at the end pieces side by side."""
    while any(part.chain for part in parts):
        first = min((part.chain[0] for part in parts if part.chain), key=order.__getitem__)
        mine = [part for part in parts if part.chain[:1] == [first]]
        for part in mine:
            del part.chain[0]
        match operators[first]:
            case "Add":
                mine[0].array = sum((part.array for part in mine[1:]), mine[0].array)
            case "Mul":
                mine[0].array = np.prod([part.array for part in mine], axis=0)
            case "Relu":
                for part in mine:
                    part.array = np.maximum(part.array, 0)
                continue
            case "Softmax":
                for part in mine:
                    powers = np.exp(part.array - part.array.max(axis=part.rows or None, keepdims=True))
                    part.array = powers / powers.sum(axis=part.rows, keepdims=True)
                continue
            case other:
                raise AssertionError(other)
        parts = [part for part in parts if all(part is not piece for piece in mine[1:])]
    return sum((part.array for part in parts[1:]), parts[0].array)
