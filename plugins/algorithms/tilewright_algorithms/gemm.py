"""Matrix products in place of a problem: which dimensions become which, and which tensors lie as the product reads them.

Z[G, M, N] += A[G, M, K] * B[G, K, N]: A is the problem's first operand, B its second, and G, M, N, K are groups of its
dimensions whose sizes multiply. A tensor lies right if its dimensions are those of G and then of its two groups, one group
after the other, in the orders that the other tensors have, too. Dimensions of size 1 are passed over.
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
"""Groups of the first and second operand and of the result, beside G."""


def refusal(algorithm: str, problem: Problem, code: str, message: str) -> NotConformableError:
    """The algorithm does not apply."""
    return NotConformableError(f"algorithm {algorithm}", [Reason(code=code, where=problem.name, message=message)])


def operands(algorithm: str, problem: Problem) -> tuple[Tensor, Tensor]:
    """The two operands. Raises NotConformableError: there are more or fewer."""
    if problem.operand_count != 2:
        raise refusal(algorithm, problem, "operands", f"it has {problem.operand_count} operands; two are taken")
    return problem.operands[0], problem.operands[1]


def layout(problem: Problem, tensor: Tensor) -> Names | None:
    """The tensor's dimensions longer than 1, outermost first; None: a coordinate is a sum or a multiple, or a dimension
    stands twice."""
    found: list[str] = []
    for rank in tensor.projection:
        terms = [(name, c) for name, c in rank.terms.items() if problem.dimensions[name] > 1]
        if len(terms) > 1 or any(c > 1 for _, c in terms):
            return None
        found += [name for name, _ in terms]
    return tuple(found) if len(set(found)) == len(found) else None


@dataclass(frozen=True)
class Product:
    """The groups, in order, and which of the three tensors (by position: A, B, Z) do not lie right."""

    groups: FrozenDict[str, Names]
    moved: tuple[int, ...]

    @property
    def dimensions(self) -> FrozenDict[str, Names]:
        """As an alternative tells them: G only if there is one."""
        return FrozenDict({group: names for group, names in self.groups.items() if names or group != "G"})

    def problem(self, original: Problem, names: Sequence[str] | None = None) -> Problem:
        """The matrix product; its tensors are called as the original's, or by `names`."""
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
    """Coordinates of one dimension each."""
    return tuple(Rank(terms=FrozenDict({name: 1})) for name in names)


def best_product(groups: Mapping[str, Sequence[str]], layouts: Sequence[Names | None], words: Sequence[int]) -> Product:
    """The orders of the groups' dimensions under which the fewest words lie wrong; the first of several.

    Only orders in which some tensor has them are tried: with any other, the tensors of that group lie wrong anyway.

    Args:
        layouts: of A, B and Z; None: it never lies right.
        words: of A, B and Z.
    """
    candidates = [_orders(groups[group], layouts) for group in GROUPS]
    found = [
        Product(
            FrozenDict(dict(zip(GROUPS, orders, strict=True))),
            tuple(at for at, names in enumerate(layouts) if not _lies_right(names, SIDES[at], orders)),
        )
        for orders in itertools.product(*candidates)
    ]
    return min(found, key=lambda product: sum(words[at] for at in product.moved))


def _orders(group: Sequence[str], layouts: Sequence[Names | None]) -> list[Names]:
    """The orders of a group's dimensions in the tensors that have them all."""
    as_they_lie = [tuple(name for name in names if name in group) for names in layouts if names is not None]
    return list(dict.fromkeys([*(each for each in as_they_lie if len(each) == len(group)), tuple(group)]))


def _lies_right(names: Names | None, side: str, orders: Sequence[Names]) -> bool:
    of = dict(zip(GROUPS, orders, strict=True))
    first, second = (of[group] for group in side)
    return names in ((*of["G"], *first, *second), (*of["G"], *second, *first))


def transposition(problem: Problem, tensor: Tensor, side: str) -> Movement:
    """A tensor read and written once."""
    words = problem.tensor_words(tensor)
    order = "written from" if tensor.is_output else "laid out as"
    return Movement(
        tensor=tensor.name, words_read=words, words_written=words, reason=f"{order} a matrix of {' x '.join(side)}"
    )


def _names(problem: Problem) -> list[str]:
    return [*(tensor.name for tensor in problem.operands), problem.output.name]


def long(problem: Problem, names: Sequence[str]) -> Names:
    """Those longer than 1, in the problem's order."""
    return tuple(name for name in problem.dimensions if name in names and problem.dimensions[name] > 1)
