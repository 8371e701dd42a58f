"""Completion of directives: from the list a user writes to the full list that MAESTRO derives."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilewright.compiled import interpreted
from tilewright.errors import NotConformableError, Reason
from tilewright_notations.directives.layer import WINDOWS, DirectiveHardware, DirectiveLayer, Map
from tilewright_notations.directives.table import (
    MAX_LEVELS,
    NOWHERE,
    Table,
    empty_table,
    fill_in,
    letters_of,
    maps_of,
    names_of,
)


@dataclass(frozen=True)
class CompleteLevel:
    """One cluster level: a directive for every dimension of input and filter, sizes, sub-clusters.

    `sizes` maps each dimension to its size in the enclosing level's tile.
    """

    maps: tuple[Map, ...]
    sizes: dict[str, int]
    sub_clusters: int


def complete(layer: DirectiveLayer, hardware: DirectiveHardware) -> tuple[CompleteLevel, ...]:
    """Return the complete levels, outermost first.

    Raises:
        NotConformableError: MAESTRO would stop, crash or guess; every reason is listed.
    """
    table, names = complete_table(layer, hardware), names_of(layer)
    sizes = dict(layer.dimensions)
    levels: list[CompleteLevel] = []
    for level in range(len(layer.levels)):
        maps = maps_of(table, level, names)
        sizes = {directive.dimension: sizes[directive.dimension] for directive in maps}
        levels.append(CompleteLevel(maps, sizes, int(table.clusters[level])))
        sizes = {directive.dimension: min(directive.size, sizes[directive.dimension]) for directive in maps}
    return tuple(levels)


def complete_table(layer: DirectiveLayer, hardware: DirectiveHardware) -> Table:
    """Return the complete levels as arrays.

    Raises:
        NotConformableError: MAESTRO would stop, crash or guess; every reason is listed.
    """
    reasons = list(_faults(layer, hardware))
    if reasons:
        raise NotConformableError("MAESTRO", reasons)
    names = names_of(layer)
    table = empty_table(len(names))
    table.levels[0], table.lanes[0] = len(layer.levels), hardware.simd_lanes
    counts = (hardware.num_pes // math.prod(layer.cluster_sizes), *layer.cluster_sizes)
    for level, (maps, count) in enumerate(zip(layer.levels, counts, strict=True)):
        table.clusters[level] = count
        _write(maps, names, level, table)
    interpreted(fill_in)(letters_of(layer), table)
    return table


def _faults(layer: DirectiveLayer, hardware: DirectiveHardware) -> Iterator[Reason]:
    name = f"layer {layer.name}"
    if len(layer.levels) != len(layer.cluster_sizes) + 1:
        message = "the number of levels is wrong; expected one more than Cluster directives"
        yield Reason(code="levels", where=name, message=message)
    if len(layer.levels) > MAX_LEVELS:
        message = f"{len(layer.cluster_sizes)} Cluster directives; MAESTRO has at most {MAX_LEVELS - 1}"
        yield Reason(code="levels", where=name, message=message)
    product = math.prod(layer.cluster_sizes)
    if product > hardware.num_pes:
        message = f"Cluster sizes multiply to {product}, more than the {hardware.num_pes} PEs"
        yield Reason(code="fanout", where=name, message=message)
    for index, maps in enumerate(layer.levels):
        for code, message in _level_faults(layer, maps, index):
            yield Reason(code=code, where=f"{name}, level {index}", message=message)


def _level_faults(layer: DirectiveLayer, maps: tuple[Map, ...], index: int) -> Iterator[tuple[str, str]]:
    spatial = sum(directive.spatial for directive in maps)
    if spatial == 0:
        yield "spatial", "no SpatialMap; every level needs one"
    if spatial > 2:
        yield "spatial", f"{spatial} SpatialMaps; at most 2"
    letters = set("".join(layer.tensors.values()))
    names = [directive.dimension.rstrip("'") for directive in maps]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield "repeated", f"dimension {name} is repeated, which gives wrong counts or none"
    for directive in maps:
        name = directive.dimension.rstrip("'")
        if directive.dimension != name and (name not in WINDOWS or layer.type == "GEMM"):
            yield "dimension", f"{directive}: only Y and X have an output form"
        elif name not in letters and not (name == "K" and layer.type == "DSCONV" and len(layer.levels) == 1):
            yield "dimension", f"{directive}: tensors of {layer.type} have no dimension {name}"
        elif name not in layer.dimensions:
            yield "dimension", f"{directive}: the layer has no dimension {name}"
        elif directive.dimension != name and WINDOWS[name] not in names:
            yield "window", f"{directive}: this level has no directive on {WINDOWS[name]}, which sets the window's size"
        elif name in WINDOWS.values() and layer.type != "GEMM" and not directive.spatial:
            if directive.offset != directive.size:
                yield "window", f"{directive}: the offset must equal the size"
            elif index == 0 and directive.size != layer.dimensions[name]:
                yield "window", f"{directive}: must cover all {layer.dimensions[name]} of {name}"


def _write(maps: Sequence[Map], names: Sequence[str], level: int, table: Table) -> None:
    """Write one level into the table.

    `Map(m, o) X'` reads the input columns `Map(m + s - 1, o) X`, where s is the tile of S in the same level.
    """
    sizes = {directive.dimension: directive.size for directive in maps}
    for place, directive in enumerate(maps):
        name = directive.dimension.rstrip("'")
        letter = names.index(name)
        table.order[level, place] = letter
        table.size[level, letter] = directive.size + (sizes[WINDOWS[name]] - 1 if directive.dimension != name else 0)
        table.offset[level, letter] = directive.offset
    spatial = [names.index(directive.dimension.rstrip("'")) for directive in maps if directive.spatial]
    table.unrolled[level], table.pair[level] = (*spatial, NOWHERE)[:2]
