"""Warnings about MAESTRO metrics that contradict the layer. The metrics themselves stay unchanged."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tilewright_costmodels.maestro import tables as at
from tilewright_costmodels.maestro.figures import Figures
from tilewright_costmodels.maestro.machine import TENSORS
from tilewright_notations.directives import INPUT, OUTPUT, WINDOWS, DirectiveLayer


def consistency_warnings(figures: Figures) -> Iterator[str]:
    """Yield one sentence per metric that contradicts the layer."""
    layer = figures.layer
    if figures.macs != layer.macs:
        yield f"MAESTRO counts {figures.macs} operations; the layer has {layer.macs}"
    for tensor, name in enumerate(TENSORS):
        moved = figures.counts[at.L2][tensor][at.UPDATES if name == OUTPUT else at.READS]
        needed = words_needed(layer, name)
        if moved < needed:
            way = "up to" if name == OUTPUT else "down from"
            yield f"MAESTRO sends {moved} elements of the {name} {way} L2; any execution needs {needed}"
    pes, clusters = figures.hardware.num_pes, math.prod(layer.cluster_sizes)
    if pes % clusters:
        yield f"{pes % clusters} of {pes} PEs are in no cluster of {clusters}; MAESTRO ignores them"
    if len(layer.levels) > 1:
        yield "the CSV's energy does not include this layer's L1 accesses, as in MAESTRO with 2 or more levels"


def bandwidth_warnings(figures: Figures) -> Iterator[str]:
    """Yield bandwidths below MAESTRO's requirement for hiding all transfers."""
    hardware = figures.hardware
    for name, required, available in (
        ("NoC", figures.peak_bandwidth, hardware.noc_bandwidth),
        ("off-chip", figures.offchip_bandwidth(), hardware.offchip_bandwidth),
    ):
        if required > available:
            yield f"the {name} bandwidth is {available} elements per cycle; MAESTRO requires {required}"


def words_needed(layer: DirectiveLayer, tensor: str) -> int:
    """Return the elements of a tensor that any execution moves at least once."""
    dimensions = layer.tensors[tensor]
    if tensor == OUTPUT:
        # the result of a grouped convolution does not include C
        return math.prod(layer.outputs(d) for d in dimensions if not (layer.type == "NGCONV" and d == "C"))
    return math.prod(_touched(layer, d) if tensor == INPUT else layer.dimensions[d] for d in dimensions)


def _touched(layer: DirectiveLayer, dimension: str) -> int:
    """Return the input indices that some output reads. Strides may leave gaps and a remainder."""
    if layer.type == "GEMM" or dimension not in WINDOWS:
        return layer.dimensions[dimension]
    window, count = layer.dimensions[WINDOWS[dimension]], layer.outputs(dimension)
    return window + (count - 1) * min(window, layer.stride(dimension)) if count else 0
