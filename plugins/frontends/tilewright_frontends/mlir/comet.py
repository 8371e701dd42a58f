"""Operations of COMET's dialect `ta`: products with the labels of their tensors as affine maps, and assignments.

    %2 = "ta.mul"(%0, %1, labels...) {indexing_maps = [A, B, result], semiring = "plusxy_times"}
    "ta.set_op"(%2, %tensor)

docs/frontends.md says how comet-opt prints them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright_frontends.mlir.affine import linalg_nest
from tilewright_frontends.mlir.tree import Operation, Value
from tilewright_frontends.nests import Shape, Unsupported
from tilewright_frontends.products import Product

PREFIX = "ta."
PRODUCT = "ta.mul"
SEMIRING = "plusxy_times"
"""The semiring of a sum of products."""


def product(operation: Operation, shapes: Sequence[Shape], name: str) -> Product:
    """Return the product of `ta.mul`.

    Raises:
        Unsupported: its semiring is another one, or a mask selects words.
        ValueError: it contradicts itself.
    """
    semiring, mask = operation.attributes.get("semiring", SEMIRING), operation.attributes.get("MaskType", "none")
    if semiring != SEMIRING:
        raise Unsupported(f"semiring {semiring} is no sum of products")
    if mask != "none":
        raise Unsupported(f"mask {mask}: which words are computed depends on data")
    if len(operation.maps("indexing_maps")) != 3:
        raise ValueError("it has no three indexing_maps")
    return linalg_nest(operation, [*shapes[:2], shapes[-1]], name)


def assigned(operation: Operation) -> tuple[Value, Sequence[Value]] | None:
    """Return the tensor that an operation writes, and the values whose words it gets; None: it writes none."""
    if operation.name == "ta.set_op" and len(operation.operands) == 2:
        return operation.operands[1], operation.operands[:1]
    return (operation.operands[0], ()) if operation.name == "ta.fill" and operation.operands else None
