"""`loop_over_gemm`: loops around a matrix product of slices; no tensor is transposed or copied.

M, N and K are each a run of adjacent dimensions, with the same order in both tensors that have
them. The largest run is taken. All other dimensions are loops around the product. If such a loop
reduces, partial sums of the result are read again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.schema.alternative import Alternative, Movement
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Layer, Workload
from tilewright_algorithms.gemm import Names, Product
from tilewright_algorithms.ttgt import contraction, grouped

NAME = "loop_over_gemm"


class LoopOverGemm:
    """The algorithm: the largest product that reads all tensors in place."""

    def alternatives(self, problem: Problem) -> list[Alternative]:
        """Return one alternative.

        Raises:
            NotConformableError: the problem is not a contraction of two tensors with plain coordinates.
        """
        a, b, z = contraction(NAME, problem)
        groups, _ = grouped(problem)
        by_letter = {
            "G": (),
            "M": _longest_run(problem, groups["M"], a, z),
            "N": _longest_run(problem, groups["N"], b, z),
            "K": _longest_run(problem, groups["K"], a, b),
        }
        product = Product(FrozenDict(by_letter), ())
        inside = {name for names in by_letter.values() for name in names}
        around = [name for name in dict.fromkeys((*a, *b)) if name not in inside]
        step = Layer(problem=product.problem(problem), count=_size(problem, around))
        return [
            Alternative(
                name=NAME,
                steps=Workload(name=problem.name, layers=(step,)),
                dimensions=product.dimensions,
                movements=_partial_sums(problem, [name for name in around if name not in z]),
            )
        ]


def _longest_run(problem: Problem, group: Names, first: Names, second: Names) -> Names:
    """Return the largest run of group dimensions that are adjacent in both layouts.

    Size is the product of the dimensions' sizes. On a tie, the first run is returned.
    """
    runs = [
        first[begin:end]
        for begin in range(len(first))
        for end in range(begin + 1, len(first) + 1)
        if set(first[begin:end]) <= set(group) and _stands_in(first[begin:end], second)
    ]
    return max(runs, key=lambda run: _size(problem, run), default=())


def _stands_in(run: Names, names: Names) -> bool:
    return any(names[at : at + len(run)] == run for at in range(len(names)))


def _size(problem: Problem, names: Sequence[str]) -> int:
    return math.prod(problem.dimensions[name] for name in names)


def _partial_sums(problem: Problem, summing: Sequence[str]) -> tuple[Movement, ...]:
    """Return the movement that reads partial sums, once per product after the first.

    The steps themselves count the writes.
    """
    again = _size(problem, summing) - 1
    if not again:
        return ()
    output = problem.output
    words = problem.tensor_words(output) * again
    reason = f"partial sums over {', '.join(summing)} are read again"
    return (Movement(tensor=output.name, words_read=words, words_written=0, reason=reason),)
