"""Completion of directives: from the list a user writes to the full list that MAESTRO derives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.compiled import interpreted
from tilewright.errors import NotConformableError, Reason
from tilewright.notations.directives.program import WINDOWS, DirectiveHardware, DirectiveLayer, Map
from tilewright.notations.directives.table import (
    MAX_LEVELS,
    NOWHERE,
    Table,
    empty_table,
    fill_in,
    letters_of,
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
        spatial = (table.unrolled[level], table.pair[level])
        maps = tuple(
            Map(
                spatial=letter in spatial,
                size=int(table.size[level, letter]),
                offset=int(table.offset[level, letter]),
                dimension=names[letter],
            )
            for letter in table.order[level].tolist()
        )
        sizes = {each.dimension: sizes[each.dimension] for each in maps}
        levels.append(CompleteLevel(maps, sizes, int(table.clusters[level])))
        sizes = {each.dimension: min(each.size, sizes[each.dimension]) for each in maps}
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


def _faults(layer: DirectiveLayer, hardware: DirectiveHardware) -> list[Reason]:
    def reason(code: str, where: str, message: str) -> Reason:
        return Reason(code=code, where=f"layer {layer.name}{', ' if where else ''}{where}", message=message)

    reasons = []
    if len(layer.levels) != len(layer.cluster_sizes) + 1:
        reasons.append(reason("levels", "", "the number of levels is wrong; expected one more than Cluster directives"))
    if len(layer.levels) > MAX_LEVELS:
        message = f"{len(layer.cluster_sizes)} Cluster directives; MAESTRO has at most {MAX_LEVELS - 1}"
        reasons.append(reason("levels", "", message))
    product = math.prod(layer.cluster_sizes)
    if product > hardware.num_pes:
        message = f"Cluster sizes multiply to {product}, more than the {hardware.num_pes} PEs"
        reasons.append(reason("fanout", "", message))
    for index, maps in enumerate(layer.levels):
        where = f"level {index}"
        spatial = sum(each.spatial for each in maps)
        if spatial == 0:
            reasons.append(reason("spatial", where, "no SpatialMap; every level needs one"))
        if spatial > 2:
            reasons.append(reason("spatial", where, f"{spatial} SpatialMaps; at most 2"))
        reasons += [reason(code, where, message) for code, message in _level_faults(layer, maps, index)]
    return reasons


def _level_faults(layer: DirectiveLayer, maps: tuple[Map, ...], index: int) -> list[tuple[str, str]]:
    found = []
    letters = set("".join(layer.tensors.values()))
    names = [each.dimension.rstrip("'") for each in maps]
    for name in sorted({name for name in names if names.count(name) > 1}):
        found.append(("repeated", f"dimension {name} is repeated, which gives wrong counts or none"))
    for each in maps:
        name = each.dimension.rstrip("'")
        if each.dimension != name and (name not in WINDOWS or layer.type == "GEMM"):
            found.append(("dimension", f"{each}: only Y and X have an output form"))
        elif name not in letters and not (name == "K" and layer.type == "DSCONV" and len(layer.levels) == 1):
            found.append(("dimension", f"{each}: tensors of {layer.type} have no dimension {name}"))
        elif name not in layer.dimensions:
            found.append(("dimension", f"{each}: the layer has no dimension {name}"))
        elif each.dimension != name and WINDOWS[name] not in names:
            found.append(
                ("window", f"{each}: this level has no directive on {WINDOWS[name]}, which sets the window's size")
            )
        elif name in WINDOWS.values() and layer.type != "GEMM" and not each.spatial:
            if each.offset != each.size:
                found.append(("window", f"{each}: the offset must equal the size"))
            elif index == 0 and each.size != layer.dimensions[name]:
                found.append(("window", f"{each}: must cover all {layer.dimensions[name]} of {name}"))
    return found


def _write(maps: Sequence[Map], names: Sequence[str], level: int, table: Table) -> None:
    """Write one level into the table.

    `Map(m, o) X'` reads the input columns `Map(m + s - 1, o) X`, where s is the tile of S in the
    same level.
    """
    sizes = {each.dimension: each.size for each in maps}
    for place, each in enumerate(maps):
        name = each.dimension.rstrip("'")
        letter = names.index(name)
        table.order[level, place] = letter
        table.size[level, letter] = each.size + (sizes[WINDOWS[name]] - 1 if each.dimension != name else 0)
        table.offset[level, letter] = each.offset
    spatial = [names.index(each.dimension.rstrip("'")) for each in maps if each.spatial]
    table.unrolled[level], table.pair[level] = (*spatial, NOWHERE)[:2]
