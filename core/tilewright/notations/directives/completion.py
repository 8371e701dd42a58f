"""From the directives a user writes to the complete list of every level, as MAESTRO fills it in."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.errors import NotConformableError, Reason
from tilewright.notations.directives.program import FILTER, INPUT, WINDOWS, DirectiveHardware, DirectiveLayer, Map
from tilewright.notations.directives.translation import MAX_LEVELS


@dataclass(frozen=True)
class CompleteLevel:
    """One level of clusters: a directive for every dimension of input and filter, nominal sizes, sub-clusters."""

    maps: tuple[Map, ...]
    sizes: dict[str, int]
    sub_clusters: int


def complete(layer: DirectiveLayer, hardware: DirectiveHardware) -> tuple[CompleteLevel, ...]:
    """The levels, outermost first. Raises NotConformableError with every reason MAESTRO stops, crashes or guesses."""
    reasons = list(_faults(layer, hardware))
    if reasons:
        raise NotConformableError("MAESTRO", reasons)
    product = math.prod(layer.cluster_sizes)
    counts = (hardware.num_pes // product, *layer.cluster_sizes)
    sizes = dict(layer.dimensions)
    outer: tuple[Map, ...] = ()
    levels: list[CompleteLevel] = []
    for given, count in zip(layer.levels, counts, strict=True):
        maps = _strided(filled(inherited(_input_centric(given), outer), layer, sizes), layer, inner=bool(levels))
        sizes = {each.dimension: sizes[each.dimension] for each in maps}
        levels.append(CompleteLevel(maps, sizes, count))
        sizes = {each.dimension: min(each.size, sizes[each.dimension]) for each in maps}
        outer = maps
    return tuple(levels)


def _faults(layer: DirectiveLayer, hardware: DirectiveHardware) -> list[Reason]:
    def reason(code: str, where: str, message: str) -> Reason:
        return Reason(code=code, where=f"layer {layer.name}{', ' if where else ''}{where}", message=message)

    reasons = []
    if len(layer.levels) != len(layer.cluster_sizes) + 1:
        reasons.append(reason("levels", "", "there must be one level more than Cluster directives"))
    if len(layer.levels) > MAX_LEVELS:
        message = f"{len(layer.cluster_sizes)} Cluster directives; at most {MAX_LEVELS - 1} are known"
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
        found.append(("repeated", f"dimension {name} is listed twice, which gives wrong counts or none"))
    for each in maps:
        name = each.dimension.rstrip("'")
        if each.dimension != name and (name not in WINDOWS or layer.type == "GEMM"):
            found.append(("dimension", f"{each}: only Y and X have an output form"))
        elif name not in letters and not (name == "K" and layer.type == "DSCONV" and len(layer.levels) == 1):
            found.append(("dimension", f"{each}: tensors of {layer.type} have no dimension {name}"))
        elif name not in layer.dimensions:
            found.append(("dimension", f"{each}: the layer has no dimension {name}"))
        elif each.dimension != name and WINDOWS[name] not in names:
            found.append(("window", f"{each}: no directive on {WINDOWS[name]} in this level says how wide a window is"))
        elif name in WINDOWS.values() and layer.type != "GEMM" and not each.spatial:
            if each.offset != each.size:
                found.append(("window", f"{each}: the offset must equal the size"))
            elif index == 0 and each.size != layer.dimensions[name]:
                found.append(("window", f"{each}: must take all {layer.dimensions[name]} of {name}"))
    return found


def _input_centric(maps: tuple[Map, ...]) -> tuple[Map, ...]:
    """`Map(m, o) X'` reads the input columns `Map(m + s - 1, o) X`, s being the tile of S in the same level."""
    sizes = {each.dimension: each.size for each in maps}
    result = []
    for each in maps:
        name = each.dimension.rstrip("'")
        wider = sizes[WINDOWS[name]] - 1 if each.dimension != name else 0
        result.append(each.model_copy(update={"dimension": name, "size": each.size + wider}))
    return tuple(result)


def inherited(maps: tuple[Map, ...], outer: tuple[Map, ...]) -> tuple[Map, ...]:
    """What the outer level has and this one does not goes in front, last first, in time."""
    own = {each.dimension for each in maps}
    missing = [each.model_copy(update={"spatial": False}) for each in outer if each.dimension not in own]
    return (*reversed(missing), *maps)


def filled(maps: tuple[Map, ...], layer: DirectiveLayer, sizes: dict[str, int]) -> tuple[Map, ...]:
    """What no level names is taken whole, innermost."""
    table = layer.tensors
    missing = sorted(set(table[INPUT] + table[FILTER]) - {each.dimension for each in maps})
    return (*maps, *(Map(spatial=False, size=sizes[n], offset=sizes[n], dimension=n) for n in missing))


def _strided(maps: tuple[Map, ...], layer: DirectiveLayer, inner: bool) -> tuple[Map, ...]:
    """With a stride, tiles at least a window wide are rounded and their offsets replaced."""
    result = []
    for each in maps:
        stride = layer.stride(each.dimension)
        window = layer.dimensions[WINDOWS[each.dimension]] if each.dimension in WINDOWS and stride > 1 else 0
        if stride == 1 or not window or each.size < window:
            result.append(each)
            continue
        steps = (each.size + stride - window) // stride
        size = steps * min(stride, window) + max(window - stride, 0)
        offset = steps * (min(stride, window) if inner else stride)
        result.append(each.model_copy(update={"size": size, "offset": offset}))
    return tuple(result)
