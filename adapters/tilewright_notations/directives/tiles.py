"""Translation of directives to a problem, an architecture and a mapping.

The translation exists only for tiles without overlaps and gaps.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as MappingOf
from typing import Any

from tilewright.errors import NotConformableError, Reason
from tilewright.plugin.program import Tiles
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_notations.directives.completion import CompleteLevel, complete
from tilewright_notations.directives.layer import (
    INPUT,
    OUTPUT,
    WINDOWS,
    DirectiveHardware,
    DirectiveLayer,
    Map,
)

L1_ENERGY, L2_ENERGY = 1.68, 18.61
"""Energy of one access, in units of one MAC's energy."""
NJ_PER_MAC = 0.00023
OPERATIONS = {"CONV": "conv2d", "DSCONV": "depthwise_conv2d", "GEMM": "gemm"}
_NAMES = {"Y": "P", "X": "Q"}
"""Names of the output's rows and columns."""


def tiled_layer(layer: DirectiveLayer, hardware: DirectiveHardware) -> Tiles:
    """Translate a layer and its dataflow.

    L2 keeps the tile that its sub-clusters work on together, L1 that of a PE. Directives leave the
    loop order inside a PE open; the translation uses the order of the dimensions. Sub-clusters
    without work are part of the architecture only. Energies are MAESTRO's, which has none for DRAM.

    Raises:
        NotConformableError: a directive is not a tile, or MAESTRO itself refuses the dataflow.
    """
    levels = complete(layer, hardware)
    reasons = [*_unsupported(layer, hardware), *(reason for level in levels for reason in _faults(layer, level))]
    if reasons:
        raise NotConformableError("a mapping of tiles", reasons)
    return Tiles(
        _problem(layer, layer.tensors), _architecture(levels, hardware), _mapping(layer, levels), tuple(_rests(layer))
    )


def _name(letter: str, layer: DirectiveLayer) -> str:
    return letter if layer.type == "GEMM" else _NAMES.get(letter, letter)


def _letters(layer: DirectiveLayer) -> list[str]:
    """Return the letters of the operation; a depthwise layer may list K without using it."""
    return [letter for letter in layer.dimensions if any(letter in table for table in layer.tensors.values())]


def _unsupported(layer: DirectiveLayer, hardware: DirectiveHardware) -> Iterator[Reason]:
    where = f"layer {layer.name}"
    if layer.type not in OPERATIONS:
        yield Reason(code="operation", where=where, message=f"no problem gives the same results as {layer.type}")
    if not layer.macs:
        yield Reason(code="work", where=where, message="its filter is larger than its input: it has no output")
    if hardware.simd_lanes != 1:
        message = f"{hardware.simd_lanes} MACs per PE: directives do not specify them"
        yield Reason(code="lanes", where=where, message=message)


def _rests(layer: DirectiveLayer) -> Iterator[str]:
    for letter, window in WINDOWS.items() if layer.type != "GEMM" else ():
        needed = (layer.outputs(letter) - 1) * layer.stride(letter) + layer.dimensions[window]
        if needed < layer.dimensions[letter]:
            yield f"layer {layer.name}: {layer.dimensions[letter] - needed} of {letter} are ignored, because no window reaches them"


def _diagonal(level: CompleteLevel) -> tuple[Map, Map] | None:
    """Return the directives on a window's position and its filter dimension, if both are spatial."""
    spatial = {directive.dimension: directive for directive in level.maps if directive.spatial}
    pairs = ((spatial.get(letter), spatial.get(window)) for letter, window in WINDOWS.items())
    return next(((directive, piece) for directive, piece in pairs if directive is not None and piece is not None), None)


def _faults(layer: DirectiveLayer, level: CompleteLevel) -> Iterator[Reason]:
    """Yield a reason for each directive of a level that is not a tile."""
    pair = None if layer.type == "GEMM" else _diagonal(level)
    if sum(directive.spatial for directive in level.maps) > 1:
        message = "sub-clusters are on a diagonal" if pair is None else _diagonal_fault(layer, level, *pair)
        if message:
            names = ", ".join(str(directive) for directive in level.maps if directive.spatial)
            yield Reason(code="diagonal", where=f"layer {layer.name}", message=f"{names}: {message}")
            return
    for directive in level.maps:
        message = None if pair and directive in pair else _fault(layer, level, directive)
        if message:
            yield Reason(code="tile", where=f"layer {layer.name}", message=f"{directive} {message}")


def _diagonal_fault(layer: DirectiveLayer, level: CompleteLevel, directive: Map, piece: Map) -> str | None:
    """Return why a diagonal is not a tile, or None.

    Sub-clusters must take equal pieces of the filter, and the inputs that these need for the same outputs.
    """
    filter_size, pieces = level.sizes[piece.dimension], level.sizes[piece.dimension] // piece.size
    if layer.stride(directive.dimension) != 1:
        return "a diagonal with a stride"
    if piece.offset != piece.size or filter_size % piece.size or pieces > level.sub_clusters:
        return f"the filter's {filter_size} are not cut into equal pieces, at most one per sub-cluster"
    outputs = level.sizes[directive.dimension] - filter_size + 1
    if directive.offset != piece.size or directive.size != outputs + piece.size - 1:
        return f"its pieces do not meet the same {outputs} outputs"
    return None


def _fault(layer: DirectiveLayer, level: CompleteLevel, directive: Map) -> str | None:
    if directive.dimension not in layer.dimensions or directive.size >= level.sizes[directive.dimension]:
        return None
    if layer.type == "GEMM" or directive.dimension not in (*WINDOWS, *WINDOWS.values()):
        if directive.offset == directive.size:
            return None
        return "overlaps" if directive.offset < directive.size else "leaves gaps"
    if directive.dimension not in WINDOWS:
        return "cuts the filter, so that its tiles belong to different outputs"
    window, stride = level.sizes[WINDOWS[directive.dimension]], layer.stride(directive.dimension)
    outputs = _outputs(layer, level, directive)
    if outputs < 1:
        return f"is narrower than the {window} of a window"
    # under strides wider than the window, MAESTRO places inner tiles min(stride, window) apart
    offsets = sorted({outputs * stride, outputs * min(stride, window)}, reverse=True)
    if directive.offset not in offsets:
        return f"is {outputs} outputs wide; expected offset {' or '.join(map(str, offsets))}"
    return None


def _outputs(layer: DirectiveLayer, level: CompleteLevel, directive: Map) -> int:
    """Return the number of result rows or columns of a tile.

    Tiles of strided layers are those that MAESTRO has rounded.
    """
    window, stride = level.sizes[WINDOWS[directive.dimension]], layer.stride(directive.dimension)
    return (directive.size - window + stride) // stride if directive.size >= window else 0


def problem_of(layer: DirectiveLayer) -> Problem:
    """Return the problem that a layer computes, independent of its dataflow.

    Raises:
        NotConformableError: the layer is a transposed convolution or has no output.
    """
    if layer.type == "TRCONV" or not layer.macs:
        what = "has no output" if layer.type != "TRCONV" else "TRCONV is not an affine loop nest"
        raise NotConformableError("a problem", [Reason(code="operation", where=f"layer {layer.name}", message=what)])
    tensors = layer.tensors
    if layer.type == "NGCONV":  # MAESTRO counts its results once per channel
        tensors = tensors | {OUTPUT: tensors[OUTPUT].replace("C", "")}
    return _problem(layer, tensors)


def array_of(hardware: DirectiveHardware) -> Architecture:
    """Return the architecture of a hardware file, without a dataflow that cuts it into clusters."""
    return _architecture((CompleteLevel((), {}, hardware.num_pes),), hardware)


def _problem(layer: DirectiveLayer, tables: MappingOf[str, str]) -> Problem:
    def rank(letter: str, tensor: str) -> str:
        if layer.type == "GEMM" or letter not in WINDOWS or tensor == OUTPUT:
            return _name(letter, layer)
        return f"{layer.stride(letter)}*{_name(letter, layer)} + {WINDOWS[letter]}"

    roles = {INPUT: ("Inputs", "input"), "filter": ("Weights", "weight"), OUTPUT: ("Outputs", "output")}
    tensors = [
        {"name": roles[name][0], "role": roles[name][1], "projection": [rank(letter, name) for letter in letters]}
        for name, letters in tables.items()
    ]
    sizes = {_name(letter, layer): layer.outputs(letter) for letter in _letters(layer)}
    operation = OPERATIONS.get(layer.type)
    return Problem.model_validate({"name": layer.name, "operation": operation, "dimensions": sizes, "tensors": tensors})


def _architecture(levels: tuple[CompleteLevel, ...], hardware: DirectiveHardware) -> Architecture:
    unit, plain = NJ_PER_MAC * 1000, DirectiveHardware()

    def memory(name: str, energy: float, words: int | None = None) -> dict[str, Any]:
        return {"name": name, "capacity_words": words, "word_bits": 8,
                "read_energy_pj": energy, "write_energy_pj": energy}  # fmt: skip

    def limit(field: str) -> int | None:
        value: int = getattr(hardware, field)
        return None if value == getattr(plain, field) else value

    network = {"bandwidth_words_per_cycle": limit("noc_bandwidth"), "latency_cycles": hardware.noc_latency}
    dram = memory("DRAM", 0.0) | {"technology": "dram", "read_bandwidth_words_per_cycle": limit("offchip_bandwidth")}
    clusters: list[dict[str, Any]] = [{"name": "DRAM", "memories": [dram]}]
    for number, level in enumerate(levels):
        fanout = {"size": level.sub_clusters, "axis": "XY"[number % 2]}
        if number == 0:
            buffer = memory("L2", round(L2_ENERGY * unit, 6), hardware.l2_size)
            clusters.append({"name": "L2", "memories": [buffer], "fanout": fanout | {"network": network}})
        else:
            clusters.append({"name": _cluster(number), "fanout": fanout})
    register = memory("L1", round(L1_ENERGY * unit, 6), hardware.l1_size)
    clusters.append({"name": "PE", "memories": [register]})
    compute = {"energy_per_operation_pj": unit, "word_bits": 8}
    return Architecture.model_validate({"name": "maestro", "clusters": clusters, "compute": compute})


def _cluster(number: int) -> str:
    return f"Cluster{number}" if number else "L2"


def _mapping(layer: DirectiveLayer, levels: tuple[CompleteLevel, ...]) -> Mapping:
    tensors = ["Inputs", "Weights", "Outputs"]
    tile = {_name(letter, layer): layer.outputs(letter) for letter in _letters(layer)}
    entries: list[dict[str, Any]] = [{"target": "DRAM", "keep": tensors, "temporal_tile_sizes": tile}]
    for number, level in enumerate(levels):
        temporal, spatial, order = dict(tile), dict(tile), []
        pair = None if layer.type == "GEMM" else _diagonal(level)
        for directive in level.maps:
            name = _name(directive.dimension, layer)
            if name not in tile:
                continue
            order.append(name)
            size = tile[name] if pair and directive is pair[0] else _tile(layer, level, directive, tile[name])
            spatial[name] = size
            temporal[name] = min(tile[name], size * level.sub_clusters) if directive.spatial else size
        order += [name for name in tile if name not in order]
        entry = {"target": _cluster(number), "temporal_order": order,
                 "temporal_tile_sizes": temporal, "spatial_tile_sizes": spatial}  # fmt: skip
        entries.append(entry | ({} if number else {"keep": tensors}))
        tile = spatial
    entries.append({"target": "PE", "keep": tensors})
    entries.append({"target": "PE", "temporal_tile_sizes": dict.fromkeys(tile, 1), "temporal_order": list(tile)})
    return Mapping.model_validate({"entries": entries})


def _tile(layer: DirectiveLayer, level: CompleteLevel, directive: Map, incoming: int) -> int:
    """Return the tile of a directive, in results for Y and X."""
    if directive.size >= level.sizes[directive.dimension]:
        return incoming
    if layer.type != "GEMM" and directive.dimension in WINDOWS:
        return min(_outputs(layer, level, directive), incoming)
    return min(directive.size, incoming)
