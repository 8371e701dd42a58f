"""Bits per value of a product's tensors, from the element types of operands and results."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.schema.problem import Problem
from tilewright_frontends.mlir.tree import Value
from tilewright_frontends.nests import SINGLE
from tilewright_frontends.products import Product


def with_widths(product: Product, values: Mapping[str, Value]) -> Problem:
    """Return a product's problem with the bits of its tensors; unchanged if all known widths are 32.

    Args:
        product: the product.
        values: values by their names in the product.
    """
    problem = product.problem
    bits = [values[name].bits if name in values else None for name in product.values]
    if not set(bits) - {None, SINGLE}:
        return problem
    inner = [name not in values for name in product.values]  # the scores of an attention are as wide as its operands
    if any(inner):
        common = set(bits) - {None}
        bits = [*common] * len(bits) if len(common) == 1 else [None] * len(bits)
    tensors = zip(problem.tensors, bits, strict=True)
    update = {"tensors": tuple(tensor.model_copy(update={"bits": width}) for tensor, width in tensors)}
    return problem.model_copy(update=update)
