"""`onnx`: the convolutions and matrix products of an ONNX graph; every other operator is listed with its reason.

Dimensions are named as the field names them: N, K, C, P, Q, R, S (G: groups; O, T: depth of three-dimensional
convolutions) and M, N, K for products, with B0, B1, ... for batches. Padding is ignored: a tensor is the bounding box
of what the iterations touch.
"""

from __future__ import annotations

import importlib.resources
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, helper, shape_inference

from tilewright.errors import InputError, TilewrightError
from tilewright.frozen import FrozenDict
from tilewright.problem import Problem, Rank, Tensor
from tilewright.workload import Layer, Unmapped, Workload
from tilewright_frontends.einsum import parse_einsum

FILES = {
    "resnet50": "light_resnet50.onnx",
    "vgg19": "light_vgg19.onnx",
    "inception_v1": "light_inception_v1.onnx",
    "inception_v2": "light_inception_v2.onnx",
    "densenet121": "light_densenet121.onnx",
    "squeezenet": "light_squeezenet.onnx",
    "shufflenet": "light_shufflenet.onnx",
    "alexnet": "light_bvlc_alexnet.onnx",
    "zfnet": "light_zfnet512.onnx",
}

Shape = tuple[int, ...]


class Unsupported(Exception):
    """A mapped operator in a form that has no affine loop nest; the message is the reason."""


class OnnxFrontend:
    """Loads .onnx files and the networks that ship with the onnx package."""

    def __init__(self, batch: int | None = None, sizes: Mapping[str, int] | None = None) -> None:
        self.batch = batch
        self.sizes = dict(sizes or {})

    def recognises(self, source: str) -> bool:
        return source.endswith(".onnx") or source in FILES

    def load(self, source: str) -> Workload:
        """Raises InputError: unreadable files, sizes that are missing or do not exist in the model."""
        if source in FILES:
            folder = importlib.resources.files("onnx") / "backend" / "test" / "data" / "light"
            with importlib.resources.as_file(folder / FILES[source]) as path:
                model = _read(path)
            return _Reader(model, source, self.batch, self.sizes).workload()
        return _Reader(_read(Path(source)), Path(source).stem, self.batch, self.sizes).workload()


def _read(path: Path) -> ModelProto:
    try:
        model = onnx.load_model(str(path), load_external_data=False)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}", hint="check the path") from None
    except Exception as error:  # protobuf raises many kinds for what is not a model
        raise InputError(f"{path} is not a readable ONNX model: {type(error).__name__}: {error}") from None
    if not model.graph.node:
        raise InputError(f"{path} holds no operators: it is empty or not an ONNX model")
    return model


class _Reader:
    def __init__(self, model: ModelProto, name: str, batch: int | None, sizes: dict[str, int]) -> None:
        self.name = name
        self.model = self._sized(model, batch, sizes)
        self.graph: GraphProto = self.model.graph
        self.open = self._dynamic_names(self.model)
        self.constants = {tensor.name: tensor for tensor in self.graph.initializer}
        for node in self.graph.node:
            if node.op_type == "Constant":
                for attribute in node.attribute:
                    if attribute.type == AttributeProto.TENSOR:
                        self.constants[node.output[0]] = attribute.t
        self.shapes = self._infer()

    # -- sizes -----------------------------------------------------------------------------------------------

    def _sized(self, model: ModelProto, batch: int | None, sizes: dict[str, int]) -> ModelProto:
        """A copy with the given sizes put in for dynamic dimensions."""
        names = self._dynamic_names(model)
        for name in sizes:
            if name not in names:
                known = ", ".join(sorted(names)) or "none"
                raise InputError(f"{self.name} has no dynamic dimension called '{name}'; it has: {known}")
        copy = ModelProto()
        copy.CopyFrom(model)
        initial = {tensor.name for tensor in copy.graph.initializer}
        for value in copy.graph.input:
            if value.name in initial:
                continue
            for index, dimension in enumerate(value.type.tensor_type.shape.dim):
                fixed = dimension.WhichOneof("value") == "dim_value" and dimension.dim_value > 0
                if dimension.dim_param in sizes:
                    dimension.dim_value = sizes[dimension.dim_param]
                elif index == 0 and batch is not None:
                    dimension.dim_value = batch
                elif not fixed and not dimension.dim_param:
                    dimension.dim_param = f"{value.name}_{index}"
        if batch is not None:  # recorded shapes still speak of the old batch
            del copy.graph.value_info[:]
            for value in copy.graph.output:
                value.type.tensor_type.ClearField("shape")
        return copy

    @staticmethod
    def _dynamic_names(model: ModelProto) -> set[str]:
        names = set()
        for value in model.graph.input:
            for dimension in value.type.tensor_type.shape.dim:
                if dimension.dim_param:
                    names.add(dimension.dim_param)
        return names

    def _infer(self) -> dict[str, Shape]:
        try:
            inferred = shape_inference.infer_shapes(self.model, data_prop=True)
        except Exception as error:  # onnx raises several kinds
            raise InputError(f"{self.name}: shape inference failed: {error}") from None
        shapes: dict[str, Shape] = {}
        for value in [*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output]:
            if value.type.HasField("tensor_type") and value.type.tensor_type.HasField("shape"):
                dims = value.type.tensor_type.shape.dim
                if all(dimension.WhichOneof("value") == "dim_value" for dimension in dims):
                    shapes[value.name] = tuple(dimension.dim_value for dimension in dims)
        for name, tensor in self.constants.items():
            shapes[name] = tuple(tensor.dims)
        return shapes

    def shape(self, name: str) -> Shape:
        """Raises Unsupported or InputError when it is not known."""
        if name in self.shapes:
            return self.shapes[name]
        if self.open:
            names = " ".join(f"--size {each}=N" for each in sorted(self.open))
            raise InputError(
                f"{self.name}: the shape of '{name}' depends on dynamic dimensions: {', '.join(sorted(self.open))}",
                hint=f"give --batch N, or {names}",
            )
        raise Unsupported(f"the shape of '{name}' cannot be inferred")

    # -- the graph -------------------------------------------------------------------------------------------

    def workload(self) -> Workload:
        layers: list[Layer] = []
        unmapped: list[Unmapped] = []
        origin: dict[str, tuple[str, ...]] = {}
        taken: set[str] = set()
        for index, node in enumerate(self.graph.node):
            name = _unique(node.name or f"{node.op_type}_{index}", taken)
            before = tuple(dict.fromkeys(layer for value in node.input for layer in origin.get(value, ())))
            problem, skipped = self._read_node(node, name)
            if problem is not None:
                layers.append(Layer(problem=problem, after=before))
                before = (name,)
            if skipped is not None:
                unmapped.append(skipped)
            for value in node.output:
                origin[value] = before
        source = f"ONNX graph {self.graph.name or self.name}"
        return Workload(name=self.name, source=source, layers=tuple(layers), unmapped=tuple(unmapped))

    def _read_node(self, node: NodeProto, name: str) -> tuple[Problem | None, Unmapped | None]:
        operator = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
        build = BUILDERS.get(operator)
        if build is None:
            reason, operations = self._work(node, operator)
            return None, Unmapped(name=name, operator=operator, reason=reason, operations=operations)
        try:
            return build(self, node, name), None
        except Unsupported as error:
            return None, Unmapped(name=name, operator=operator, reason=str(error), operations=None)

    def _work(self, node: NodeProto, operator: str) -> tuple[str, int | None]:
        """Why an operator is not mapped, and an estimate of its scalar operations."""
        if operator in PLUMBING:
            return "moves or names data, computes nothing", 0
        if any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in node.attribute):
            return "control flow: its subgraph is not looked into", None
        sizes = [math.prod(self.shapes[value]) for value in node.output if value in self.shapes]
        elements = sum(sizes) if sizes else None
        if operator in POOLING:
            attributes = _attributes(node)
            window = math.prod(attributes.get("kernel_shape", ()))
            if operator.startswith("Global") and node.input and node.input[0] in self.shapes:
                return "a reduction without weights", math.prod(self.shapes[node.input[0]])
            return "a window without weights", None if elements is None else elements * window
        work = WORK.get(operator)
        if work is None:
            return "not a tensor product of loops", None
        return "works element by element", None if elements is None else elements * work


def _unique(name: str, taken: set[str]) -> str:
    """A name that is safe in files and stands once."""
    safe = re.sub(r"[^A-Za-z0-9_.\-]+", "_", name).strip("_.") or "layer"
    candidate, number = safe, 2
    while candidate in taken:
        candidate, number = f"{safe}_{number}", number + 1
    taken.add(candidate)
    return candidate


def _attributes(node: NodeProto) -> dict[str, Any]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def _tensor(name: str, role: str, ranks: list[dict[str, int]]) -> Tensor:
    return Tensor.model_validate(
        {"name": name, "role": role, "projection": tuple(Rank(terms=FrozenDict(terms)) for terms in ranks)}
    )


def _problem(name: str, operation: str, sizes: dict[str, int], tensors: list[Tensor]) -> Problem:
    if any(size < 1 for size in sizes.values()):
        raise Unsupported(f"it has an empty dimension: {sizes}")
    return Problem(name=name, operation=operation, dimensions=FrozenDict(sizes), tensors=tuple(tensors))


AXES = {1: ("P",), 2: ("P", "Q"), 3: ("O", "P", "Q")}
OFFSETS = {1: ("R",), 2: ("R", "S"), 3: ("T", "R", "S")}


def _conv(reader: _Reader, node: NodeProto, name: str) -> Problem:
    data, weight = reader.shape(node.input[0]), reader.shape(node.input[1])
    output = reader.shape(node.output[0])
    return _convolution(node, name, data, weight, output, transposed=False)


def _conv_transpose(reader: _Reader, node: NodeProto, name: str) -> Problem:
    data, weight = reader.shape(node.input[0]), reader.shape(node.input[1])
    return _convolution(node, name, data, weight, reader.shape(node.output[0]), transposed=True)


def _convolution(node: NodeProto, name: str, data: Shape, weight: Shape, output: Shape, *, transposed: bool) -> Problem:
    """Sliding indices are stride x position + dilation x offset: of the input, or, transposed, of the output (where
    the positions are then the input's)."""
    spatial = len(data) - 2
    if spatial not in AXES:
        raise Unsupported(f"{spatial} spatial axes; 1 to 3 are mapped")
    attributes = _attributes(node)
    groups = int(attributes.get("group", 1))
    strides = attributes.get("strides") or [1] * spatial
    dilations = attributes.get("dilations") or [1] * spatial
    axes, offsets = AXES[spatial], OFFSETS[spatial]
    depthwise = groups > 1 and (weight[0] == groups if transposed else weight[1] == 1)
    if transposed:
        outward, inward = weight[1], data[1] // groups
    else:
        outward, inward = weight[0] // groups, weight[1]
    sizes = {"N": data[0]}
    if groups > 1:
        sizes["G"] = groups
    if not depthwise or outward > 1:
        sizes["K"] = outward
    if not depthwise:
        sizes["C"] = inward
    positions = data if transposed else output
    sizes |= dict(zip(axes, positions[2:], strict=True)) | dict(zip(offsets, weight[2:], strict=True))

    def present(*names: str) -> list[dict[str, int]]:
        return [{each: 1} for each in names if each in sizes]

    windows = [
        {axis: int(stride), offset: int(dilation)}
        for axis, offset, stride, dilation in zip(axes, offsets, strides, dilations, strict=True)
    ]
    plain = present(*axes)
    tensors = [
        _tensor("Inputs", "input", [*present("N", "G", "C"), *(plain if transposed else windows)]),
        _tensor("Weights", "weight", present("G", "K", "C", *offsets)),
        _tensor("Outputs", "output", [*present("N", "G", "K"), *(windows if transposed else plain)]),
    ]
    kind = "conv_transpose" if transposed else "depthwise_conv" if depthwise else "conv"
    return _problem(name, f"{kind}{spatial}d", sizes, tensors)


def _gemm(reader: _Reader, node: NodeProto, name: str) -> Problem:
    attributes = _attributes(node)
    a, b = reader.shape(node.input[0]), reader.shape(node.input[1])
    if len(a) != 2 or len(b) != 2:
        raise Unsupported(f"operands of {len(a)} and {len(b)} dimensions; a Gemm takes two matrices")
    m, k = reversed(a) if attributes.get("transA") else a
    n = b[0] if attributes.get("transB") else b[1]
    return _product(name, {}, [], [], [], m, n, k)


def _matmul(reader: _Reader, node: NodeProto, name: str) -> Problem:
    a, b = reader.shape(node.input[0]), reader.shape(node.input[1])
    if not a or not b:
        raise Unsupported("an operand is a scalar")
    m = a[-2] if len(a) > 1 else None
    n = b[-1] if len(b) > 1 else None
    outer_a, outer_b = a[:-2], b[:-2]
    depth = max(len(outer_a), len(outer_b))
    padded_a, padded_b = (1,) * (depth - len(outer_a)) + outer_a, (1,) * (depth - len(outer_b)) + outer_b
    sizes: dict[str, int] = {}
    of_a, of_b, of_both = [], [], []
    for index, (x, y) in enumerate(zip(padded_a, padded_b, strict=True)):
        batch = f"B{index}"
        if max(x, y) == 1:
            continue
        sizes[batch] = max(x, y)
        of_both.append(batch)
        if x > 1:
            of_a.append(batch)
        if y > 1:
            of_b.append(batch)
    return _product(name, sizes, of_a, of_b, of_both, m, n, a[-1])


def _product(
    name: str,
    batches: dict[str, int],
    of_a: list[str],
    of_b: list[str],
    of_both: list[str],
    m: int | None,
    n: int | None,
    k: int,
) -> Problem:
    """Z[..., M, N] += A[..., M, K] * B[..., K, N]; a vector lacks M or N."""
    sizes = batches | ({} if m is None else {"M": m}) | ({} if n is None else {"N": n}) | {"K": k}

    def ranks(names: list[str]) -> list[dict[str, int]]:
        return [{each: 1} for each in names if each in sizes]

    tensors = [
        _tensor("A", "input", ranks([*of_a, "M", "K"])),
        _tensor("B", "weight", ranks([*of_b, "K", "N"])),
        _tensor("Z", "output", ranks([*of_both, "M", "N"])),
    ]
    return _problem(name, "gemm", sizes, tensors)


def _einsum(reader: _Reader, node: NodeProto, name: str) -> Problem:
    equation = _attributes(node)["equation"].decode().replace(" ", "")
    if "..." in equation:
        raise Unsupported("an ellipsis hides dimensions")
    left, arrow, right = equation.partition("->")
    if not arrow:
        right = "".join(sorted(letter for letter in set(left) - {","} if left.count(letter) == 1))
    sizes: dict[str, int] = {}
    for letters, value in zip(left.split(","), node.input, strict=True):
        sizes |= dict(zip(letters, reader.shape(value), strict=True))
    try:
        problem = parse_einsum(f"{left}->{right}; " + " ".join(f"{each}={size}" for each, size in sizes.items()))
    except TilewrightError as error:
        raise Unsupported(str(error)) from None
    return problem.model_copy(update={"name": name})


BUILDERS: dict[str, Callable[[_Reader, NodeProto, str], Problem]] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Einsum": _einsum,
}

PLUMBING = frozenset(
    "Constant ConstantOfShape Identity Shape Size Reshape Flatten Squeeze Unsqueeze Transpose Concat Split Slice Gather "
    "GatherElements GatherND ScatterElements ScatterND Expand Tile Pad Cast CastLike Dropout DepthToSpace SpaceToDepth "
    "Range NonZero OneHot EyeLike Compress ReverseSequence".split()
)
POOLING = frozenset(
    "MaxPool AveragePool LpPool GlobalAveragePool GlobalMaxPool GlobalLpPool MaxRoiPool RoiAlign".split()
)
WORK: dict[str, int] = dict.fromkeys(
    "Relu LeakyRelu PRelu ThresholdedRelu Clip Abs Neg Add Sub Mul Div Max Min Sum Mean Mod Pow Sqrt Reciprocal Exp Log "
    "Sin Cos Tan Floor Ceil Round Sign Not And Or Xor Equal Greater Less GreaterOrEqual LessOrEqual Where IsNaN IsInf "
    "BitShift Upsample Resize".split(),
    1,
) | {
    "BatchNormalization": 2,
    "Sigmoid": 4,
    "HardSigmoid": 3,
    "HardSwish": 4,
    "Tanh": 4,
    "Elu": 3,
    "Selu": 3,
    "Celu": 3,
    "Softplus": 3,
    "Softsign": 3,
    "Erf": 4,
    "Gelu": 6,
    "Mish": 6,
    "Softmax": 5,
    "LogSoftmax": 5,
    "LRN": 8,
    "InstanceNormalization": 6,
    "LayerNormalization": 6,
    "GroupNormalization": 6,
}
"""Scalar operations per element of the result, roughly; for the share of the work only."""
