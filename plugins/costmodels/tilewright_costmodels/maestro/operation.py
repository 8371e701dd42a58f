"""Words of a layer's tensors: what it truly needs, however it is executed, and what MAESTRO counts."""

from __future__ import annotations

import math

from tilewright.notations.directives import INPUT, OUTPUT, WINDOWS, DirectiveLayer


def words_needed(layer: DirectiveLayer, tensor: str) -> int:
    """Elements of a tensor that any execution must move at least once."""
    letters = layer.tensors[tensor]
    if tensor == OUTPUT:
        # sums over C are not part of the result of a grouped convolution
        return math.prod(layer.outputs(d) for d in letters if not (layer.type == "NGCONV" and d == "C"))
    return math.prod(_touched(layer, d) if tensor == INPUT else layer.dimensions[d] for d in letters)


def words_held(layer: DirectiveLayer, tensor: str) -> int:
    """Elements of a whole tensor as MAESTRO counts them: outputs regardless of strides."""
    sizes = dict(layer.dimensions)
    for position, window in WINDOWS.items() if tensor == OUTPUT and layer.type != "GEMM" else ():
        sizes[position] -= sizes[window] - 1
    return math.prod(sizes[d] for d in layer.tensors[tensor])


def _touched(layer: DirectiveLayer, dimension: str) -> int:
    """Input indices that some output reads; strides may leave gaps and a rest."""
    if layer.type == "GEMM" or dimension not in WINDOWS:
        return layer.dimensions[dimension]
    window, count = layer.dimensions[WINDOWS[dimension]], layer.outputs(dimension)
    return window + (count - 1) * min(window, layer.stride(dimension)) if count else 0
