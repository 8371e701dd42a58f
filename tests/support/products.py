"""Networks of matrix products that read one another's results."""

import itertools
from collections.abc import Sequence
from typing import Any


def products(rows: int, sizes: Sequence[int], makers: Sequence[int] = (), reads: bool = True) -> dict[str, Any]:
    """Return a workload of products with matrices of these sizes.

    Args:
        makers: for each layer but the first, the layer whose result it reads; empty: the one before.
        reads: whether the workload states which words are read.
    """
    layers: list[dict[str, Any]] = []
    for number, (inward, outward) in enumerate(itertools.pairwise(sizes)):
        tensors = [
            {"name": "A", "role": "input", "projection": ["M", "K"]},
            {"name": "B", "role": "weight", "projection": ["K", "N"]},
            {"name": "C", "role": "output", "projection": ["M", "N"]},
        ]
        dimensions = {"M": rows, "K": inward, "N": outward}
        layer: dict[str, Any] = {"problem": {"name": f"L{number}", "dimensions": dimensions, "tensors": tensors}}
        if number:
            maker = f"L{makers[number - 1] if makers else number - 1}"
            layer |= {"after": [maker], "reads": {"A": [{"maker": maker}]} if reads else {}}
        layers.append(layer)
    return {"schema_version": 1, "kind": "workload", "name": "products", "layers": layers}
