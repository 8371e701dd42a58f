"""Matrix products that replace a problem: groups of dimensions, and tensors to be rearranged.

Z[G, M, N] += A[G, M, K] * B[G, K, N]. A is the problem's first operand, B its second. G, M, N and K are groups of its
dimensions, whose sizes multiply. A tensor fits in place if its dimensions are those of G, followed by its two groups in
either order. Each group must have the same order in all tensors. Dimensions of size 1 are ignored.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.errors import NotConformableError, Reason
from tilewright.schema.alternative import Movement
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem, Rank, Tensor

Names = tuple[str, ...]
GROUPS = "GMNK"
SIDES = ("MK", "KN", "MN")
"""Groups of A, B and Z, in addition to G."""


def refusal(algorithm: str, problem: Problem, code: str, message: str) -> NotConformableError:
    """Return the error that the algorithm does not apply."""
    return NotConformableError(f"algorithm {algorithm}", [Reason(code=code, where=problem.name, message=message)])


def operands(algorithm: str, problem: Problem) -> tuple[Tensor, Tensor]:
    """Return the two operands.

    Raises:
        NotConformableError: there are more or fewer than two.
    """
    if problem.operand_count != 2:
        raise refusal(algorithm, problem, "operands", f"it has {problem.operand_count} operands; expected two")
    return problem.operands[0], problem.operands[1]


def layout(problem: Problem, tensor: Tensor) -> Names | None:
    """Return the tensor's dimensions longer than 1, outermost first.

    None if a coordinate is a sum or a multiple, or a dimension is repeated.
    """
    names: list[str] = []
    for rank in tensor.projection:
        terms = [(name, c) for name, c in rank.terms.items() if problem.dimensions[name] > 1]
        if len(terms) > 1 or any(c > 1 for _, c in terms):
            return None
        names += [name for name, _ in terms]
    return tuple(names) if len(set(names)) == len(names) else None


@dataclass(frozen=True)
class Product:
    """Groups of dimensions, in order, and the tensors (0: A, 1: B, 2: Z) that do not fit in place."""

    groups: FrozenDict[str, Names]
    moved: tuple[int, ...]

    @property
    def dimensions(self) -> FrozenDict[str, Names]:
        """Groups as an alternative lists them: G only if it has dimensions."""
        return FrozenDict({group: names for group, names in self.groups.items() if names or group != "G"})

    def problem(self, original: Problem, names: Sequence[str] | None = None) -> Problem:
        """Return the matrix product; its tensors keep the original's names or get `names`."""
        sizes = {group: math.prod(original.dimensions[name] for name in of) for group, of in self.dimensions.items()}
        tensors = [
            Tensor(name=name, role=tensor.role, projection=plain([*("G" * ("G" in sizes)), *side]))
            for tensor, side, name in zip(
                (*original.operands, original.output), SIDES, names or _names(original), strict=True
            )
        ]
        return Problem(
            name=original.name,
            source=original.source,
            operation="gemm",
            unit_operation=original.unit_operation,
            dimensions=FrozenDict(sizes),
            tensors=tuple(tensors),
        )


def plain(names: Sequence[str]) -> tuple[Rank, ...]:
    """Return coordinates of one dimension each."""
    return tuple(Rank(terms=FrozenDict({name: 1})) for name in names)


def best_product(groups: Mapping[str, Sequence[str]], layouts: Sequence[Names | None], words: Sequence[int]) -> Product:
    """Return the order of each group's dimensions for which the fewest words must be moved.

    On a tie, the first order is returned. Only orders that occur in some tensor are tried; with any
    other order, no tensor of that group fits in place.

    Args:
        groups: group -> its dimensions.
        layouts: of A, B and Z; None: never fits in place.
        words: of A, B and Z.
    """
    candidates = [_orders(groups[group], layouts) for group in GROUPS]
    products = [
        Product(
            FrozenDict(dict(zip(GROUPS, orders, strict=True))),
            tuple(at for at, names in enumerate(layouts) if not _lies_right(names, SIDES[at], orders)),
        )
        for orders in itertools.product(*candidates)
    ]
    return min(products, key=lambda product: sum(words[at] for at in product.moved))


def _orders(group: Sequence[str], layouts: Sequence[Names | None]) -> list[Names]:
    """Return the orders of a group's dimensions in the tensors that have all of them."""
    as_they_lie = [tuple(name for name in names if name in group) for names in layouts if names is not None]
    return list(dict.fromkeys([*(order for order in as_they_lie if len(order) == len(group)), tuple(group)]))


def _lies_right(names: Names | None, side: str, orders: Sequence[Names]) -> bool:
    of = dict(zip(GROUPS, orders, strict=True))
    first, second = (of[group] for group in side)
    return names in ((*of["G"], *first, *second), (*of["G"], *second, *first))


def transposition(problem: Problem, tensor: Tensor, side: str) -> Movement:
    """Return the movement that reads and writes a tensor once."""
    words = problem.tensor_words(tensor)
    order = "written from" if tensor.is_output else "laid out as"
    return Movement(
        tensor=tensor.name, words_read=words, words_written=words, reason=f"{order} a matrix of {' x '.join(side)}"
    )


def _names(problem: Problem) -> list[str]:
    return [*(tensor.name for tensor in problem.operands), problem.output.name]


def long(problem: Problem, names: Sequence[str]) -> Names:
    """Return the names longer than 1, in the problem's order."""
    return tuple(name for name in problem.dimensions if name in names and problem.dimensions[name] > 1)
