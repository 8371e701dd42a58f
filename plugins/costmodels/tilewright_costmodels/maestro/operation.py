"""MAESTRO's layer types: which dimensions index which tensor, and what a layer truly needs."""

from __future__ import annotations

import math

from tilewright.directives import WINDOWS, DirectiveLayer
from tilewright.directives.roles import FILTER, INPUT, OUTPUT

_TENSORS = {
    "CONV": {INPUT: "CYX", FILTER: "KCRS", OUTPUT: "KYX"},
    "TRCONV": {INPUT: "CYX", FILTER: "KCRS", OUTPUT: "KYX"},
    "DSCONV": {INPUT: "CYX", FILTER: "CRS", OUTPUT: "CYX"},
    "NGCONV": {INPUT: "GCYX", FILTER: "GKCRS", OUTPUT: "GKCYX"},
    "GEMM": {INPUT: "MK", FILTER: "KN", OUTPUT: "MN"},
}


def tensors(layer: DirectiveLayer) -> dict[str, str]:
    """Tensor -> letters of its dimensions. For an output, Y and X stand for its own rows and columns."""
    table = dict(_TENSORS[layer.type])
    if layer.type != "GEMM" and "N" in layer.dimensions:
        for name in (INPUT, OUTPUT):
            table[name] = "N" + table[name]
    return table


def words_needed(layer: DirectiveLayer, tensor: str) -> int:
    """Elements of a tensor that any execution must move at least once."""
    letters = tensors(layer)[tensor]
    if tensor == OUTPUT:
        # sums over C are not part of the result of a grouped convolution
        return math.prod(layer.outputs(d) for d in letters if not (layer.type == "NGCONV" and d == "C"))
    return math.prod(_touched(layer, d) if tensor == INPUT else layer.dimensions[d] for d in letters)


def _touched(layer: DirectiveLayer, dimension: str) -> int:
    """Input indices that some output reads; strides may leave gaps and a rest."""
    if layer.type == "GEMM" or dimension not in WINDOWS:
        return layer.dimensions[dimension]
    window, count = layer.dimensions[WINDOWS[dimension]], layer.outputs(dimension)
    return window + (count - 1) * min(window, layer.stride(dimension)) if count else 0
