"""MAESTRO's layer types: which dimensions index which tensor, and what a layer truly needs."""

from __future__ import annotations

import math

from tilewright.directives import DirectiveLayer

INPUT, FILTER, OUTPUT = "input", "filter", "output"
SLIDES = {"X": "S", "Y": "R"}
"""Input coordinate -> the filter dimension that slides along it."""

_TENSORS = {
    "CONV": {INPUT: "CYX", FILTER: "KCRS", OUTPUT: "KYX"},
    "TRCONV": {INPUT: "CYX", FILTER: "KCRS", OUTPUT: "KYX"},
    "DSCONV": {INPUT: "CYX", FILTER: "CRS", OUTPUT: "CYX"},
    "NGCONV": {INPUT: "GCYX", FILTER: "GKCRS", OUTPUT: "GKCYX"},
    "GEMM": {INPUT: "MK", FILTER: "KN", OUTPUT: "MN"},
}
_NEEDED = {"CONV": "KCRSYX", "TRCONV": "KCRSYX", "DSCONV": "CRSYX", "NGCONV": "GKCRSYX", "GEMM": "MNK"}


def needed(layer: DirectiveLayer) -> str:
    """The dimensions a layer of this type must have."""
    return _NEEDED[layer.type]


def tensors(layer: DirectiveLayer) -> dict[str, str]:
    """Tensor -> letters of its dimensions. For an output, Y and X stand for its own rows and columns."""
    table = dict(_TENSORS[layer.type])
    if layer.type != "GEMM" and "N" in layer.dimensions:
        for name in (INPUT, OUTPUT):
            table[name] = "N" + table[name]
    return table


def output_size(layer: DirectiveLayer, dimension: str) -> int:
    """How many outputs there are along a dimension of the output (X: along its columns), strides counted."""
    size = layer.dimensions[dimension]
    if layer.type == "GEMM" or dimension not in SLIDES:
        return size
    return max(0, (size - layer.dimensions[SLIDES[dimension]]) // layer.stride(dimension) + 1)


def true_macs(layer: DirectiveLayer) -> int:
    """Operations the layer really needs."""
    table = tensors(layer)
    letters = set("".join(table.values()))
    return math.prod(output_size(layer, letter) for letter in letters)


def words_needed(layer: DirectiveLayer, tensor: str) -> int:
    """Elements of a tensor that any execution must move at least once."""
    letters = tensors(layer)[tensor]
    if tensor == OUTPUT:
        # sums over C are not part of the result of a grouped convolution
        return math.prod(output_size(layer, d) for d in letters if not (layer.type == "NGCONV" and d == "C"))
    return math.prod(_touched(layer, d) if tensor == INPUT else layer.dimensions[d] for d in letters)


def _touched(layer: DirectiveLayer, dimension: str) -> int:
    """Input indices that some output reads; strides may leave gaps and a rest."""
    if layer.type == "GEMM" or dimension not in SLIDES:
        return layer.dimensions[dimension]
    window, count = layer.dimensions[SLIDES[dimension]], output_size(layer, dimension)
    return window + (count - 1) * min(window, layer.stride(dimension)) if count else 0
