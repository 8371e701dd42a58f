"""Densities of a product's weights: the fraction of nonzero values in the model."""

from __future__ import annotations

from tilewright.errors import InputError
from tilewright.schema.density import Density
from tilewright.schema.problem import Problem
from tilewright_frontends.onnx.graph import Graph
from tilewright_frontends.onnx.operators import SCALED
from tilewright_frontends.onnx.widths import MOVES
from tilewright_frontends.products import Product


def with_densities(graph: Graph, product: Product, problem: Problem) -> Problem:
    """Return the problem with uniform densities of its weights, if the graph has them.

    Quantised weights get none, because their zero point need not be 0.

    Raises:
        InputError: the weights are stored in another file.
    """
    maker = graph.makers.get(product.values[-1])
    if not graph.fractions or len(problem.tensors) != len(product.values) or maker is None or maker.op_type in SCALED:
        return problem
    tensors = []
    for tensor, value in zip(problem.tensors, product.values, strict=True):
        for _ in range(len(graph.nodes)):
            before = graph.makers.get(value)
            if before is None or before.op_type not in MOVES - {"Slice", "Expand"}:
                break
            value = before.input[0]
        fraction = 1.0
        if not tensor.is_output and value in graph.fractions:
            known = graph.fractions[value]
            if known is None:
                message = f"{graph.name}: the weights '{value}' are stored in another file"
                raise InputError(message, hint="save the model with its weights in one file, or omit --density")
            fraction = known
        density = Density(distribution="uniform", density=fraction) if fraction < 1 else tensor.density
        tensors.append(tensor.model_copy(update={"density": density}))
    return problem.model_copy(update={"tensors": tuple(tensors)})
