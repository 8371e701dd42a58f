"""Network operators as affine loop nests, derived from shapes; shared by the frontends of networks.

Convolutions use N, K, C, P, Q, R, S, with G for groups, and O, T for the depth of three-dimensional
ones. Products use M, N, K, with B0, B1, ... for batches. Padding is ignored: a tensor is the
bounding box of the words that iterations access. Biases and scale factors are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated

from pydantic import Field, ValidationError

from tilewright.errors import InputError
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem, Rank, Role, Tensor
from tilewright.values import plain_fault
from tilewright_frontends import MAX_SIZE
from tilewright_frontends.einsum import operation_of

Shape = tuple[int, ...]
Extent = Annotated[int, Field(ge=1, le=MAX_SIZE, strict=True)]
"""Size or stride in a list of layers."""

SINGLE = 32
"""Bits of a value in single precision, which is not worth a note."""
AXES = {1: ("P",), 2: ("P", "Q"), 3: ("O", "P", "Q")}
OFFSETS = {1: ("R",), 2: ("R", "S"), 3: ("T", "R", "S")}


class Unsupported(Exception):
    """Error: an operator has no affine loop nest, or a form that is not mapped.

    The message is the reason.
    """


def problem_of(name: str, operation: str | None, sizes: Mapping[str, int], tensors: Sequence[Tensor]) -> Problem:
    """Return a problem. Raises Unsupported if a dimension has no iterations."""
    for dimension, size in sizes.items():
        if size < 1:
            raise Unsupported(f"dimension {dimension} has size {size}: there is nothing to compute")
    return Problem(name=name, operation=operation, dimensions=FrozenDict(sizes), tensors=tuple(tensors))


def tensor_of(name: str, role: Role, ranks: Sequence[Mapping[str, int]]) -> Tensor:
    return Tensor(name=name, role=role, projection=tuple(Rank(terms=FrozenDict(terms)) for terms in ranks))


def plain(names: Sequence[str]) -> list[dict[str, int]]:
    """Return coordinates of one dimension each."""
    return [{name: 1} for name in names]


def equal(first: int, second: int, what: str) -> None:
    """Check that two sizes are equal. Raises ValueError."""
    if first != second:
        raise ValueError(f"{what}: {first} and {second}")


# -- convolutions
# ------------------------------------------------------------------------------------------------


def convolution(
    name: str,
    batch: int,
    groups: int,
    channels: tuple[int, int],
    positions: Shape,
    window: Shape,
    strides: Sequence[int],
    dilations: Sequence[int],
    transposed: bool = False,
) -> Problem:
    """Return a convolution.

        Outputs[N, G, K, P, Q] += Inputs[N, G, C, stride P + dilation R, ...] * Weights[G, K, C, R, S]

    A transposed convolution:

        Outputs[N, G, K, stride P + dilation R, ...] += Inputs[N, G, C, P, Q] * Weights[G, K, C, R, S]

    Args:
        name: name of the problem.
        batch: N.
        groups: G.
        channels: K and C, per group; depthwise convolutions have no C.
        positions: sizes of the output; of the input if transposed.
        window: sizes of the filter.
        strides: stride per axis.
        dilations: dilation per axis.
        transposed: whether the convolution is transposed.
    """
    axes, offsets = AXES[len(positions)], OFFSETS[len(positions)]
    outward, inward = channels
    depthwise = groups > 1 and inward == 1
    extra = ({"G": groups} if groups > 1 else {}) | ({} if depthwise and outward == 1 else {"K": outward})
    extra |= {} if depthwise else {"C": inward}
    sizes = {"N": batch} | extra | dict(zip((*axes, *offsets), (*positions, *window), strict=True))
    windows = [
        {axis: int(stride), offset: int(dilation)}
        for axis, offset, stride, dilation in zip(axes, offsets, strides, dilations, strict=True)
    ]
    inner = plain(["N", *(letter for letter in ("G", "C") if letter in extra)])
    outer = plain(["N", *(letter for letter in ("G", "K") if letter in extra)])
    tensors = [
        tensor_of("Inputs", "input", [*inner, *(plain(axes) if transposed else windows)]),
        tensor_of("Weights", "weight", plain([*extra, *offsets])),
        tensor_of("Outputs", "output", [*outer, *(windows if transposed else plain(axes))]),
    ]
    kind = "conv_transpose" if transposed else f"{'depthwise_' if depthwise else ''}conv"
    return problem_of(name, f"{kind}{len(axes)}d", sizes, tensors)


def sampled_convolution(
    name: str, batch: int, groups: int, channels: tuple[int, int], positions: Shape, window: Shape
) -> Problem:
    """Return a convolution of samples, which has one input word per position and offset.

        Outputs[N, G, K, P, Q] += Inputs[N, G, C, P, Q, R, S] * Weights[G, K, C, R, S]

    Arguments are those of `convolution`.
    """
    ones = [1] * len(positions)
    problem = convolution(name, batch, groups, channels, positions, window, ones, ones)
    samples, *others = problem.tensors
    ranks = [dict(rank.terms) for rank in samples.projection]
    split = [
        {dimension: 1} for place in (0, 1) for rank in ranks if len(rank) == 2 for dimension in [list(rank)[place]]
    ]
    samples = tensor_of(samples.name, samples.role, [*(rank for rank in ranks if len(rank) == 1), *split])
    return problem.model_copy(update={"operation": None, "tensors": (samples, *others)})


def positions_within(inputs: Sequence[int], window: Sequence[int], strides: Sequence[int]) -> Shape:
    """Return how many windows lie within an input, along each axis. The input contains its padding.

    Raises Unsupported if the window is larger.

    >>> positions_within((224, 227), (11, 11), (4, 4))
    (54, 55)
    """
    if any(inner > outer for inner, outer in zip(window, inputs, strict=True)):
        high, whole = (" x ".join(map(str, sizes)) for sizes in (window, inputs))
        raise Unsupported(f"a filter of {high} is larger than its input of {whole}")
    return tuple((outer - inner) // stride + 1 for outer, inner, stride in zip(inputs, window, strides, strict=True))


def check_axes(count: int) -> None:
    """Check the number of spatial axes. Raises Unsupported."""
    if count not in AXES:
        raise Unsupported(f"it has {count} spatial axes; 1 to 3 are mapped")


# -- products
# ----------------------------------------------------------------------------------------------------


def gemm(name: str, a: Shape, b: Shape) -> Problem:
    """Return Z[M, N] += A[M, K] * B[K, N]."""
    equal(a[1], b[0], "the inner sizes differ")
    return _product(name, {"M": a[0], "N": b[1], "K": a[1]}, ["M", "K"], ["K", "N"], ["M", "N"])


def matmul(name: str, a: Shape, b: Shape) -> Problem:
    """Return Z[B0, .., M, N] += A[B0, .., M, K] * B[B0, .., K, N].

    A batch dimension along which one operand broadcasts indexes only the other one.
    """
    if not a or not b:
        raise ValueError("a scalar has no inner dimension")
    equal(a[-1], b[-2] if len(b) > 1 else b[0], "the inner sizes differ")
    depth = max(len(a), len(b), 2) - 2
    batches = [f"B{index}" for index in range(depth)]
    of_a = [*batches[depth - len(a) + 2 :], "M", "K"] if len(a) > 1 else ["K"]
    of_b = [*batches[depth - len(b) + 2 :], "K", "N"] if len(b) > 1 else ["K"]
    of_z = [*batches, *(letter for letter in ("M", "N") if letter in (*of_a, *of_b))]
    sizes = _common_sizes([(of_a, a), (of_b, b)], keep={"M", "N", "K"})
    return _product(
        name,
        {letter: sizes[letter] for letter in (*of_z, "K") if letter in sizes},
        _indexing(of_a, a, sizes),
        _indexing(of_b, b, sizes),
        [letter for letter in of_z if letter in sizes],
    )


def attention(name: str, query: Shape, key: Shape, value: Shape) -> list[Problem]:
    """Return the scores and the context of an attention, counted in full even if masked.

        Scores[.., M, N] += Query[.., M, K] * Key[.., N, K] Context[.., M, N] += Scores[.., M, K] * Value[.., K, N].

    If there are fewer key heads than query heads, several query heads R read each.

    Args:
        name: prefix of the names.
        query: shape, with tokens and channels last, after batch and heads.
        key: the same.
        value: the same.

    Raises:
        Unsupported: the shapes differ in rank.
        ValueError: the shapes contradict each other.
    """
    if not len(query) == len(key) == len(value) >= 2:
        raise Unsupported("query, key and value have different numbers of dimensions")
    equal(query[-1], key[-1], "channels of query and key differ")
    equal(key[-2], value[-2], "tokens of key and value differ")
    sizes, of_all, of_query = dict[str, int](), list[str](), list[str]()
    for axis, (mine, shared) in enumerate(zip(query[:-2], key[:-2], strict=True)):
        equal(mine % shared, 0, f"{mine} heads do not divide into {shared}")
        if shared > 1:
            sizes[f"B{axis}"] = shared
            of_all.append(f"B{axis}")
        if mine > shared:
            sizes[f"R{axis}"] = mine // shared
            of_query.append(f"R{axis}")
    both = [*of_all, *of_query]
    return [
        contraction(
            f"{name}.scores",
            sizes | {"M": query[-2], "N": key[-2], "K": query[-1]},
            [plain([*both, "M", "K"]), plain([*of_all, "N", "K"])],
            plain([*both, "M", "N"]),
        ),
        contraction(
            f"{name}.context",
            sizes | {"M": query[-2], "N": value[-1], "K": key[-2]},
            [plain([*both, "M", "K"]), plain([*of_all, "K", "N"])],
            plain([*both, "M", "N"]),
        ),
    ]


def _product(name: str, sizes: dict[str, int], of_a: list[str], of_b: list[str], of_z: list[str]) -> Problem:
    tensors = [
        tensor_of("A", "input", plain(of_a)),
        tensor_of("B", "weight", plain(of_b)),
        tensor_of("Z", "output", plain(of_z)),
    ]
    return problem_of(name, "gemm", sizes, tensors)


def _common_sizes(operands: Sequence[tuple[Sequence[str], Shape]], keep: set[str]) -> dict[str, int]:
    """Return dimension -> size for operands that may broadcast.

    Dimensions of size 1 are dropped unless in `keep`.
    """
    sizes: dict[str, int] = {}
    for names, shape in operands:
        for name, size in zip(names, shape, strict=True):
            known = sizes.get(name, 1)
            if 1 not in (known, size) and known != size:
                raise ValueError(f"dimension {name} has sizes {known} and {size}")
            sizes[name] = size if known == 1 else known
    return {name: size for name, size in sizes.items() if size != 1 or name in keep}


def _indexing(names: Sequence[str], shape: Shape, sizes: dict[str, int]) -> list[str]:
    """Return the dimensions that index an operand, without those it broadcasts along."""
    return [name for name, size in zip(names, shape, strict=True) if sizes.get(name) == size]


def einsum(name: str, equation: str, shapes: Sequence[Shape]) -> Problem:
    """Return the contraction of an equation, which names the dimensions.

    Dimensions of an ellipsis are E0, E1, ...
    """
    equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    texts = left.split(",")
    hidden = max(len(shape) - len(text.replace("...", "")) for text, shape in zip(texts, shapes, strict=True))
    ellipsis = [f"E{index}" for index in range(hidden)] if "..." in left else []
    if not arrow:
        letters = left.replace(",", "").replace("...", "")
        right = ("..." if ellipsis else "") + "".join(
            sorted(letter for letter in letters if letters.count(letter) == 1)
        )
    operands = [_subscripts(text, ellipsis, len(shape)) for text, shape in zip(texts, shapes, strict=True)]
    output = _subscripts(right, ellipsis, None)
    sizes = _common_sizes(list(zip(operands, shapes, strict=True)), keep=set("".join(texts)))
    if set(output) - set().union(*operands):
        raise ValueError(f"'{equation}' names a dimension in the result only")
    if not sizes:
        raise Unsupported("scalars only: there is no loop")
    indexed = [plain(_indexing(names, shape, sizes)) for names, shape in zip(operands, shapes, strict=True)]
    return contraction(name, sizes, indexed, plain([letter for letter in output if letter in sizes]))


def _subscripts(text: str, ellipsis: list[str], rank: int | None) -> list[str]:
    """Return the dimensions of an operand with `rank` dimensions, or of the result (None).

    Dimensions of an ellipsis are included.
    """
    before, dots, after = text.partition("...")
    count = len(ellipsis) if rank is None else rank - len(before) - len(after)
    hidden = ellipsis[len(ellipsis) - count :] if dots and count > 0 else []
    return [*before, *hidden, *after]


def contraction(
    name: str, sizes: Mapping[str, int], operands: Sequence[list[dict[str, int]]], output: list[dict[str, int]]
) -> Problem:
    """Return Z += A * B * ...; the first operand is the input, the others are weights."""
    tensors = [
        tensor_of(chr(ord("A") + index), "weight" if index else "input", ranks) for index, ranks in enumerate(operands)
    ]
    problem = problem_of(name, None, sizes, [*tensors, tensor_of("Z", "output", output)])
    return problem.model_copy(update={"operation": operation_of(problem)})


# -- layers of a network
# -------------------------------------------------------------------------------------------


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Convert the Python errors that malformed files cause to InputError."""
    try:
        yield
    except InputError:
        raise
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(map(str, fault["loc"]))
        raise InputError(f"{what}: {f'{place}: ' if place else ''}{plain_fault(fault)}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"{what}: {error}") from None


def unique_name(name: str, taken: set[str], others: Collection[str] = ()) -> str:
    """Return a unique name that is valid in files, and add it to `taken`.

    A changed name is none of `others`, the names of all operators: those that are valid keep theirs.
    """
    safe = re.sub(r"[^A-Za-z0-9_.\-]+", "_", name).strip("_.") or "layer"
    candidate, number = safe, 2
    while candidate in taken or (candidate != name and candidate in others):
        candidate, number = f"{safe}_{number}", number + 1
    taken.add(candidate)
    return candidate
