"""`im2col`: a convolution as one matrix product over the windows of its input.

M are the positions (N, P, Q), N the output channels, K the input channels and the window (C, R, S), G the groups.
Explicit: the input is read and its windows are written as a matrix. Implicit: the product gathers windows while reading
and nothing is moved. A matrix product has no halos, so its metrics then count the words of every window again.
"""

from __future__ import annotations

import math

from tilewright.mapspace.counting import distinct_values
from tilewright.schema.alternative import Alternative, Movement
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.structure import recognise
from tilewright.schema.workload import Workload
from tilewright_algorithms.gemm import SIDES, Product, best_product, layout, long, operands, refusal, transposition

NAME = "im2col"
GATHERED = (
    "windows are gathered while reading; metrics count each window's words again, because a matrix product has no halos"
)


class Im2col:
    """The algorithm, with two alternatives: the matrix of windows is written, or gathered."""

    def alternatives(self, problem: Problem) -> list[Alternative]:
        """Return the explicit and the implicit alternative.

        Raises:
            NotConformableError: the problem is not a convolution of two operands.
        """
        operands(NAME, problem)
        structure = recognise(problem)
        if structure is None or structure.kind != "conv":
            kind = "not a convolution" if structure is None else f"a {structure.kind}"
            raise refusal(NAME, problem, "structure", f"it is {kind}; expected a convolution")
        parts = structure.parts
        letters = {"G": "G", "M": "NPQ", "N": "K", "K": "CRS"}
        groups = {
            group: long(problem, tuple(name for letter in of for name in parts.get(letter, ())))
            for group, of in letters.items()
        }
        data = next(tensor for tensor in problem.operands if tensor.role == "input")
        side = problem.operands.index(data)
        if side:  # the matrix product's first operand is the problem's first
            groups["M"], groups["N"] = groups["N"], groups["M"]
        tensors = (*problem.operands, problem.output)
        layouts = [layout(problem, tensor) for tensor in tensors]
        product = best_product(groups, layouts, [problem.tensor_words(tensor) for tensor in tensors])
        others = tuple(transposition(problem, tensors[at], _side(product, at)) for at in product.moved if at != side)
        in_place = side not in product.moved
        copied = () if in_place else (_windows(problem, data, product, side),)
        steps, dimensions = Workload.of(product.problem(problem)), product.dimensions
        return [
            Alternative(name=f"{NAME}.explicit", steps=steps, dimensions=dimensions, movements=(*copied, *others)),
            Alternative(
                name=f"{NAME}.implicit",
                steps=steps,
                dimensions=dimensions,
                movements=others,
                exact=in_place,
                remark=None if in_place else GATHERED,
            ),
        ]


def _side(product: Product, at: int) -> str:
    return f"{'G' if product.groups['G'] else ''}{SIDES[at]}"


def _windows(problem: Problem, data: Tensor, product: Product, side: int) -> Movement:
    """Return the movement that reads each word in a window once and writes the matrix."""
    read = math.prod(
        distinct_values([(c, problem.dimensions[name]) for name, c in rank.terms.items()]) for rank in data.projection
    )
    groups = [product.groups[group] for group in f"G{SIDES[side]}"]
    written = math.prod(problem.dimensions[name] for names in groups for name in names)
    return Movement(
        tensor=data.name,
        words_read=read,
        words_written=written,
        reason=f"windows copied to a matrix of {' x '.join(_side(product, side))}",
    )
