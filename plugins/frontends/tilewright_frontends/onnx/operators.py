"""The operators that are mapped, each as an affine loop nest.

Dimensions are named as the field names them: N, K, C, P, Q, R, S (G: groups; O, T: depth of three-dimensional
convolutions) and M, N, K for products, with B0, B1, ... for batches. Padding is ignored: a tensor is the bounding box
of what the iterations touch. Biases and scale factors are ignored too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnx import NodeProto

from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem, Rank, Role, Tensor
from tilewright_frontends.einsum import operation_of
from tilewright_frontends.onnx.graph import Graph, Shape, Unsupported
from tilewright_frontends.onnx.unmapped import attributes_of

AXES = {1: ("P",), 2: ("P", "Q"), 3: ("O", "P", "Q")}
OFFSETS = {1: ("R",), 2: ("R", "S"), 3: ("T", "R", "S")}


def _problem(name: str, operation: str | None, sizes: dict[str, int], tensors: Sequence[Tensor]) -> Problem:
    for dimension, size in sizes.items():
        if size < 1:
            raise Unsupported(f"dimension {dimension} has size {size}: there is nothing to compute")
    return Problem(name=name, operation=operation, dimensions=FrozenDict(sizes), tensors=tuple(tensors))


def _tensor(name: str, role: Role, ranks: Sequence[dict[str, int]]) -> Tensor:
    return Tensor(name=name, role=role, projection=tuple(Rank(terms=FrozenDict(terms)) for terms in ranks))


def _plain(names: Sequence[str]) -> list[dict[str, int]]:
    return [{name: 1} for name in names]


def _equal(first: int, second: int, what: str) -> None:
    if first != second:
        raise ValueError(f"{what}: {first} and {second}")


# -- convolutions ------------------------------------------------------------------------------------------------


def _conv(graph: Graph, node: NodeProto, name: str) -> Problem:
    """Y[N, G, K, P, Q] += X[N, G, C, stride P + dilation R, ...] * W[G, K, C, R, S]."""
    data, weight = graph.shape(node.input[0]), graph.shape(node.input[1])
    groups = int(attributes_of(node).get("group", 1))
    _equal(data[1], groups * weight[1], "channels of the input and of the weights differ")
    _equal(weight[0] % groups, 0, f"{weight[0]} channels do not divide into {groups} groups")
    depthwise = groups > 1 and weight[1] == 1
    channels = _channels(groups, weight[0] // groups, weight[1], depthwise)
    axes, offsets, windows = _windows(node, data, weight)
    positions = graph.shape(node.output[0])
    sizes = {"N": data[0]} | channels
    sizes |= dict(zip((*axes, *offsets), (*positions[2:], *weight[2:]), strict=True))
    inner = [each for each in ("G", "C") if each in channels]
    outer = [each for each in ("G", "K") if each in channels]
    tensors = [
        _tensor("Inputs", "input", [*_plain(["N", *inner]), *windows]),
        _tensor("Weights", "weight", _plain([*channels, *offsets])),
        _tensor("Outputs", "output", _plain(["N", *outer, *axes])),
    ]
    return _problem(name, f"{'depthwise_' if depthwise else ''}conv{len(axes)}d", sizes, tensors)


def _conv_transpose(graph: Graph, node: NodeProto, name: str) -> Problem:
    """Y[N, G, K, stride P + dilation R, ...] += X[N, G, C, P, Q] * W[G, K, C, R, S]; P, Q are the input's extents."""
    data, weight = graph.shape(node.input[0]), graph.shape(node.input[1])
    groups = int(attributes_of(node).get("group", 1))
    _equal(data[1], weight[0], "channels of the input and of the weights differ")
    _equal(data[1] % groups, 0, f"{data[1]} channels do not divide into {groups} groups")
    channels = _channels(groups, weight[1], data[1] // groups, groups > 1 and data[1] == groups)
    axes, offsets, windows = _windows(node, data, weight)
    sizes = {"N": data[0]} | channels
    sizes |= dict(zip((*axes, *offsets), (*data[2:], *weight[2:]), strict=True))
    inner = [each for each in ("G", "C") if each in channels]
    outer = [each for each in ("G", "K") if each in channels]
    tensors = [
        _tensor("Inputs", "input", _plain(["N", *inner, *axes])),
        _tensor("Weights", "weight", _plain([*channels, *offsets])),
        _tensor("Outputs", "output", [*_plain(["N", *outer]), *windows]),
    ]
    return _problem(name, f"conv_transpose{len(axes)}d", sizes, tensors)


def _channels(groups: int, outward: int, inward: int, depthwise: bool) -> dict[str, int]:
    """G, K, C per group; a depthwise convolution has no C, and K only if a channel gives several."""
    if depthwise:
        return {"G": groups} | ({"K": outward} if outward > 1 else {})
    return ({"G": groups} if groups > 1 else {}) | {"K": outward, "C": inward}


def _windows(node: NodeProto, data: Shape, weight: Shape) -> tuple[Sequence[str], Sequence[str], list[dict[str, int]]]:
    """Names of the positions and of the filter's offsets, and stride x position + dilation x offset per axis."""
    spatial = len(data) - 2
    _equal(len(data), len(weight), "input and weights have different numbers of dimensions")
    if spatial not in AXES:
        raise Unsupported(f"it has {spatial} spatial axes; 1 to 3 are mapped")
    attributes = attributes_of(node)
    strides = attributes.get("strides") or [1] * spatial
    dilations = attributes.get("dilations") or [1] * spatial
    axes, offsets = AXES[spatial], OFFSETS[spatial]
    windows = [
        {axis: int(stride), offset: int(dilation)}
        for axis, offset, stride, dilation in zip(axes, offsets, strides, dilations, strict=True)
    ]
    return axes, offsets, windows


# -- products ----------------------------------------------------------------------------------------------------


def _gemm(graph: Graph, node: NodeProto, name: str) -> Problem:
    """Z[M, N] += A[M, K] * B[K, N], whichever way the matrices lie in memory."""
    a, b = graph.shape(node.input[0]), graph.shape(node.input[1])
    attributes = attributes_of(node)
    _equal(len(a), 2, "a Gemm takes matrices, not so many dimensions")
    _equal(len(b), 2, "a Gemm takes matrices, not so many dimensions")
    m, k = reversed(a) if attributes.get("transA") else a
    inner, n = reversed(b) if attributes.get("transB") else b
    _equal(k, inner, "the inner sizes differ")
    return _product(name, {"M": m, "N": n, "K": k}, ["M", "K"], ["K", "N"], ["M", "N"])


def _matmul(graph: Graph, node: NodeProto, name: str) -> Problem:
    """Z[B0, .., M, N] += A[B0, .., M, K] * B[B0, .., K, N]; what broadcasts is indexed by the other operand alone."""
    a, b = graph.shape(node.input[0]), graph.shape(node.input[1])
    if not a or not b:
        raise ValueError("a scalar has no inner dimension")
    _equal(a[-1], b[-2] if len(b) > 1 else b[0], "the inner sizes differ")
    depth = max(len(a), len(b), 2) - 2
    batches = [f"B{index}" for index in range(depth)]
    of_a = [*batches[depth - len(a) + 2 :], "M", "K"] if len(a) > 1 else ["K"]
    of_b = [*batches[depth - len(b) + 2 :], "K", "N"] if len(b) > 1 else ["K"]
    of_z = [*batches, *(each for each in ("M", "N") if each in (*of_a, *of_b))]
    sizes = _common_sizes([(of_a, a), (of_b, b)], keep={"M", "N", "K"})
    return _product(
        name,
        {each: sizes[each] for each in (*of_z, "K") if each in sizes},
        _indexing(of_a, a, sizes),
        _indexing(of_b, b, sizes),
        [each for each in of_z if each in sizes],
    )


def _product(name: str, sizes: dict[str, int], of_a: list[str], of_b: list[str], of_z: list[str]) -> Problem:
    tensors = [
        _tensor("A", "input", _plain(of_a)),
        _tensor("B", "weight", _plain(of_b)),
        _tensor("Z", "output", _plain(of_z)),
    ]
    return _problem(name, "gemm", sizes, tensors)


def _common_sizes(operands: Sequence[tuple[Sequence[str], Shape]], keep: set[str]) -> dict[str, int]:
    """Dimension -> size where operands may broadcast; dimensions of size 1 are dropped unless in `keep`."""
    sizes: dict[str, int] = {}
    for names, shape in operands:
        for name, size in zip(names, shape, strict=True):
            known = sizes.get(name, 1)
            if 1 not in (known, size) and known != size:
                raise ValueError(f"dimension {name} has sizes {known} and {size}")
            sizes[name] = size if known == 1 else known
    return {name: size for name, size in sizes.items() if size != 1 or name in keep}


def _indexing(names: Sequence[str], shape: Shape, sizes: dict[str, int]) -> list[str]:
    """The dimensions that really index an operand: not those it broadcasts along."""
    return [name for name, size in zip(names, shape, strict=True) if sizes.get(name) == size]


def _einsum(graph: Graph, node: NodeProto, name: str) -> Problem:
    """As the equation says; the dimensions keep its letters, those of an ellipsis are E0, E1, ..."""
    shapes = [graph.shape(value) for value in node.input]
    equation = attributes_of(node)["equation"].decode().replace(" ", "")
    left, arrow, right = equation.partition("->")
    texts = left.split(",")
    hidden = max(len(shape) - len(text.replace("...", "")) for text, shape in zip(texts, shapes, strict=True))
    ellipsis = [f"E{index}" for index in range(hidden)] if "..." in left else []
    if not arrow:
        letters = left.replace(",", "").replace("...", "")
        right = ("..." if ellipsis else "") + "".join(sorted(each for each in letters if letters.count(each) == 1))
    operands = [_subscripts(text, ellipsis, len(shape)) for text, shape in zip(texts, shapes, strict=True)]
    output = _subscripts(right, ellipsis, None)
    sizes = _common_sizes(list(zip(operands, shapes, strict=True)), keep=set("".join(texts)))
    if set(output) - set().union(*operands):
        raise ValueError(f"'{equation}' names a dimension in the result only")
    if not sizes:
        raise Unsupported("scalars only: there is no loop")
    roles: list[Role] = ["input" if index == 0 else "weight" for index in range(len(operands))]
    tensors = [
        _tensor(chr(ord("A") + index), role, _plain(_indexing(names, shape, sizes)))
        for index, (role, names, shape) in enumerate(zip(roles, operands, shapes, strict=True))
    ]
    tensors.append(_tensor("Z", "output", _plain([each for each in output if each in sizes])))
    problem = _problem(name, None, sizes, tensors)
    return problem.model_copy(update={"operation": operation_of(problem)})


def _subscripts(text: str, ellipsis: list[str], rank: int | None) -> list[str]:
    """The dimensions of one operand (`rank`: how many it has) or of the result, the hidden ones written out."""
    before, dots, after = text.partition("...")
    count = len(ellipsis) if rank is None else rank - len(before) - len(after)
    hidden = ellipsis[len(ellipsis) - count :] if dots and count > 0 else []
    return [*before, *hidden, *after]


Builder = Callable[[Graph, NodeProto, str], Problem]
"""Graph, node, name of the layer -> loop nest.

Raises Unsupported (no affine loop nest, or shapes that cannot be known), InputError (open dimensions), and whatever
Python raises where the node contradicts itself.
"""

BUILDERS: dict[str, Builder] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Einsum": _einsum,
}
