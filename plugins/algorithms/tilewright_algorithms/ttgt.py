"""`ttgt`: transpose, transpose, matrix product, transpose (COMET; Union, section II).

G are the dimensions that all three tensors have. M are in the first operand and the result, N in the second operand and
the result, K in both operands only. Dimensions of one operand only are summed in an earlier step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.schema.alternative import Alternative
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.workload import Layer, Workload
from tilewright_algorithms.gemm import (
    SIDES,
    Names,
    Product,
    best_product,
    layout,
    long,
    operands,
    plain,
    refusal,
    transposition,
)

NAME = "ttgt"


class Ttgt:
    """The algorithm; it orders the groups so that the fewest words are moved."""

    def alternatives(self, problem: Problem) -> list[Alternative]:
        """Return one alternative.

        Raises:
            NotConformableError: the problem is not a contraction of two tensors with plain coordinates.
        """
        layouts = contraction(NAME, problem)
        groups, alone = grouped(problem)
        tensors = (*problem.operands, problem.output)
        kept = [
            tuple(name for name in names if name not in part) for names, part in zip(layouts, (*alone, ()), strict=True)
        ]
        product = best_product(groups, kept, [problem.tensor_words(tensor) for tensor in tensors])
        return [_alternative(problem, product, layouts, alone)]


def contraction(algorithm: str, problem: Problem) -> tuple[Names, Names, Names]:
    """Return the layouts of the two operands and of the result.

    Raises:
        NotConformableError: a layout is not plain, the result has a dimension that no operand has,
            or a dimension indexes no tensor.
    """
    first, second = operands(algorithm, problem)
    groups = []
    for tensor in (first, second, problem.output):
        names = layout(problem, tensor)
        if names is None:
            text = f"{tensor.name} has a repeated dimension, or a coordinate that is a sum or a multiple"
            raise refusal(algorithm, problem, "affine", text)
        groups.append(names)
    lost = set(groups[2]) - {*groups[0], *groups[1]}
    if lost:
        text = f"{', '.join(sorted(lost))} is in {problem.output.name} only"
        raise refusal(algorithm, problem, "result_only", text)
    idle = set(long(problem, tuple(problem.dimensions))) - {*groups[0], *groups[1]}
    if idle:
        raise refusal(algorithm, problem, "idle", f"{', '.join(sorted(idle))} indexes no tensor")
    return groups[0], groups[1], groups[2]


def grouped(problem: Problem) -> tuple[dict[str, Names], tuple[Names, Names]]:
    """Return the groups G, M, N and K, and the dimensions of the first and the second operand only.

    Dimensions of size 1 are omitted.
    """
    a, b = (tensor.dimensions for tensor in problem.operands)
    z = problem.output.dimensions
    groups = {"G": a & b & z, "M": (a & z) - b, "N": (b & z) - a, "K": (a & b) - z}
    return {group: long(problem, tuple(names)) for group, names in groups.items()}, (
        long(problem, tuple(a - b - z)),
        long(problem, tuple(b - a - z)),
    )


def _alternative(
    problem: Problem, product: Product, layouts: Sequence[Names], alone: tuple[Names, Names]
) -> Alternative:
    """Return the alternative: sums, the product, and movements of tensors that do not fit in place."""
    tensors = (*problem.operands, problem.output)
    names = [tensor.name for tensor in tensors]
    dimensions = dict(product.dimensions)
    layers = list[Layer]()
    moved = set(product.moved)
    for at, part in enumerate(alone):
        if not part:
            continue
        letter, side = f"X{at}", SIDES[at]
        dimensions[letter] = part
        names[at] = _free_name(f"{names[at]}_summed", problem.tensor_names)
        layers.append(Layer(problem=_sum(problem, tensors[at], product, side, letter, part, names[at])))
        moved.discard(at)
        if not _in_blocks(layouts[at], [*(product.groups[group] for group in f"G{side}"), part]):
            moved.add(at)
    gemm = product.problem(problem, names)
    layers.append(Layer(problem=gemm.model_copy(update={"name": "product"})))
    movements = [transposition(problem, tensors[at], _side(product, at, alone)) for at in sorted(moved)]
    return Alternative(
        name=NAME,
        steps=Workload(name=problem.name, layers=tuple(layers)),
        dimensions=FrozenDict(dimensions),
        movements=tuple(movements),
    )


def _side(product: Product, at: int, alone: tuple[Names, Names]) -> str:
    summed = "X" if at < 2 and alone[at] else ""
    return f"{'G' if product.groups['G'] else ''}{SIDES[at]}{summed}"


def _sum(problem: Problem, tensor: Tensor, product: Product, side: str, letter: str, part: Names, name: str) -> Problem:
    """Return the step that sums an operand over the dimensions that only it has."""
    groups = [*("G" * bool(product.groups["G"])), *side]
    sizes = {
        key: math.prod(problem.dimensions[one] for one in (part if key == letter else product.groups[key]))
        for key in (*groups, letter)
    }
    return Problem(
        name=f"sum_{tensor.name}",
        unit_operation=problem.unit_operation,
        dimensions=FrozenDict(sizes),
        tensors=(
            tensor.model_copy(update={"projection": plain([*groups, letter])}),
            Tensor(name=name, role="output", projection=plain(groups)),
        ),
    )


def _in_blocks(names: Names, blocks: Sequence[Names]) -> bool:
    """Return whether a layout consists of these groups, each contiguous, in any order."""
    rest = list(names)
    while rest:
        block = next(
            (candidate for candidate in blocks if candidate and tuple(rest[: len(candidate)]) == candidate), None
        )
        if block is None:
            return False
        rest = rest[len(block) :]
    return True


def _free_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name
