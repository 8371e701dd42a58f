"""Loops that a layer of a group executes, and the full form of a group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.mapspace.group_legality import moving_axes, part_at
from tilewright.mapspace.group_padding import existing_words
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.group import GroupMapping, Path
from tilewright.schema.group.full import FullGroup, FullGroupLayer, FullGroupLoop, FullGroupTensor, FullGroupTile
from tilewright.schema.mapping import Mapping
from tilewright.schema.mapping.full import FullMapping
from tilewright.schema.mapping.levels import kept_tiles
from tilewright.schema.problem import Problem


@dataclass(frozen=True)
class Executed:
    """Loops of one layer on its path from the root.

    Other layers may have more steps of a shared loop. `problem` and `mapping` have all steps. The first `skipped` iterations
    of a dimension execute nothing, nor do those after the layer's own.
    """

    problem: Problem
    mapping: Mapping
    skipped: FrozenDict[str, int]


def executed(group: GroupMapping, path: Path) -> Executed:
    """Return the loops that one layer of a legal group executes."""
    places = [part_at(group, place) if at < path.starts[-1] else None for at, (place, _) in enumerate(path.places)]
    late, entries = dict[str, tuple[int, int]](), list(path.mapping.entries)
    dimensions, layer = dict[str, int](), path.problem.name
    for at, part in enumerate(places):
        if part is None:
            break
        for axis in moving_axes(group, path.places[at]):
            name, rows = group.axes[axis][layer], group.rows(axis, layer)
            if name not in late:
                late[name] = (at, group.starts(axis, part.layers())[layer] * rows)
                dimensions[name] = group.extent(axis, part.layers()) * rows
    for at in range(path.starts[-1]):
        sizes = {name: dimensions[name] for name, (first, _) in late.items() if at < first}
        update = {key: {**getattr(entries[at], key), **sizes} for key in ("temporal_tile_sizes", "spatial_tile_sizes")}
        entries[at] = entries[at].model_copy(update={key: FrozenDict(tiles) for key, tiles in update.items()})
    return Executed(
        path.problem.replace({f"dimensions.{name}": size for name, size in dimensions.items()}),
        Mapping(entries=tuple(entries)),
        FrozenDict({name: more for name, (_, more) in late.items() if more}),
    )


def full_group(group: GroupMapping) -> FullGroup:
    """Return the full form of a legal group."""
    return FullGroup(name=group.name, architecture=group.architecture.name, layers=tuple(_layers(group)))


def _layers(group: GroupMapping) -> Iterator[FullGroupLayer]:
    for path in group.paths.values():
        run = executed(group, path)
        full = FullMapping.of(run.mapping, run.problem, group.architecture)
        tiles = FullMapping.of(path.mapping, path.problem, group.architecture).tiles
        below = [tuple(part_at(group, place).layers()) for place, _ in path.places]
        kept = list(kept_tiles(path.mapping, path.problem, group.architecture))
        yield FullGroupLayer(
            name=path.problem.name,
            unit_operation=path.problem.unit_operation,
            dimensions=path.problem.dimensions,
            skipped=run.skipped,
            tensors=tuple(_tensors(group, path, full)),
            adds=tuple(edge.tensor for edge in group.edges if path.problem.name in edge.added),
            ragged=full.ragged,
            loops=tuple(
                FullGroupLoop(**dict(loop), layers=below[step.entry])
                for loop, step in zip(full.loops, run.mapping.loops(), strict=True)
            ),
            tiles=tuple(
                FullGroupTile(
                    **dict(tile) | {"depth": stepped.depth},
                    layers=tuple(name for name in below[entry] if name in group.users[path.names[tile.tensor]]),
                )
                for tile, stepped, (entry, *_) in zip(tiles, full.tiles, kept, strict=True)
            ),
            unicast=full.unicast,
        )


def _tensors(group: GroupMapping, path: Path, full: FullMapping) -> Iterator[FullGroupTensor]:
    for tensor in full.tensors:
        name = path.names[tensor.name]
        edge = group.edge_of(name)
        offsets = None if edge is None else edge.offsets.get(path.problem.name)
        exist = existing_words(group, name)
        yield FullGroupTensor(
            **dict(tensor),
            group_name=name,
            offsets=offsets or (0,) * len(tensor.coordinates),
            existing=None if exist is None else tuple(exist),
        )
