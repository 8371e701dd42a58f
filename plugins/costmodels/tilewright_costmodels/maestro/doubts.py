"""Where MAESTRO's figures cannot be what happens: said beside them, never corrected."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tilewright.errors import Reason
from tilewright.notations.directives import OUTPUT
from tilewright_costmodels.maestro.figures import Figures
from tilewright_costmodels.maestro.operation import words_needed


def doubts(figures: Figures) -> Iterator[str]:
    """One sentence per figure that contradicts the layer itself."""
    layer = figures.layer
    if figures.num_macs != layer.macs:
        yield f"MAESTRO counts {figures.num_macs} operations; the layer has {layer.macs}"
    for name, tensor in figures.tensors.items():
        moved = tensor.l2_write if name == OUTPUT else tensor.l2_read
        needed = words_needed(layer, name)
        if moved < needed:
            way = "up to" if name == OUTPUT else "down from"
            yield f"MAESTRO sends {moved} elements of the {name} {way} L2; any execution needs {needed}"
    pes, clusters = figures.hardware.num_pes, math.prod(layer.cluster_sizes)
    if pes % clusters:
        yield f"{pes % clusters} of {pes} PEs are in no cluster of {clusters}; MAESTRO passes over them"
    if len(layer.levels) > 1:
        yield "the CSV's energy leaves out this layer's L1 accesses, as MAESTRO does with 2 levels or more"


def shortages(figures: Figures) -> Iterator[str]:
    """Bandwidths below what MAESTRO says would be needed to hide all transfers."""
    hardware = figures.hardware
    for name, need, given in (
        ("NoC", figures.peak_bandwidth, hardware.noc_bandwidth),
        ("off-chip", figures.offchip_bw_req, hardware.offchip_bandwidth),
    ):
        if need > given:
            yield f"the {name} bandwidth is {given} elements per cycle; MAESTRO asks for {need}"


def overflows(figures: Figures) -> Iterator[Reason]:
    """Buffers that MAESTRO's own requirement (two copies of a tile) does not fit."""
    for name, need, given in (
        ("L1", figures.l1_size_req, figures.hardware.l1_size),
        ("L2", figures.l2_size_req, figures.hardware.l2_size),
    ):
        if given is not None and need > given:
            yield Reason(code="capacity", where=name, message=f"the tiles need {need} elements, {given} fit")
