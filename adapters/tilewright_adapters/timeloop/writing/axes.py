"""Unrolling of one dimension along X and Y, by a level between the axes that keeps nothing.

A Timeloop level unrolls a dimension along one axis. Its maintainers name the way out (issue 162 of its repository): a further
level, which all tensors bypass, unrolls the second axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilewright.mapspace.legality import legality
from tilewright.plugin.adapter import InputSet
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Entry, Mapping
from tilewright.schema.problem import Problem
from tilewright_adapters.timeloop.reading.hierarchy import dummy


def with_levels_between(inputs: InputSet) -> InputSet:
    """Return the inputs with a level for each second axis along which a dimension is unrolled again.

    They are unchanged where the level would change a count, and for an illegal mapping.
    """
    problem, architecture, mapping = inputs.problem, inputs.architecture, inputs.mapping
    if problem is None or architecture is None or mapping is None:
        return inputs
    if not legality(problem, architecture, mapping):
        return inputs
    starts = dict(_starts(problem, architecture, mapping))
    if not starts:
        return inputs
    names = {memory.name for memory in architecture.memories} | {cluster.name for cluster in architecture.clusters}
    clusters = list(architecture.clusters)
    for target in starts.values():
        place, name = architecture.cluster_index[target], f"{target}_axis"
        while name in names:
            name += "_"
        names.add(name)
        clusters[place] = clusters[place].model_copy(update={"memories": (dummy(name),)})
    entries: list[Entry] = []
    for index, entry in enumerate(mapping.entries):
        if index in starts:
            whole = entry.temporal_tile_sizes if not entries else entries[-1].spatial_tile_sizes
            entries.append(
                Entry(
                    target=entry.target,
                    keep=(),
                    temporal_order=entry.temporal_order,
                    temporal_tile_sizes=whole,
                    spatial_tile_sizes=whole,
                )
            )
        entries.append(entry)
    return replace(
        inputs,
        architecture=architecture.model_copy(update={"clusters": tuple(clusters)}),
        mapping=mapping.model_copy(update={"entries": tuple(entries)}),
    )


def _starts(problem: Problem, architecture: Architecture, mapping: Mapping) -> Iterator[tuple[int, str]]:
    """Yield the index and the cluster of each entry at which a dimension meets its second axis; the cluster is virtual."""
    unrolled = [{name for name, count in trips.items() if count > 1} for _, trips in mapping.factors()]
    levels = [index for index, entry in enumerate(mapping.entries) if entry.keep is not None]
    for first, end in zip(levels, [*levels[1:], len(mapping.entries)], strict=True):
        if not _costs_the_same(problem, set().union(*unrolled[first:end])):
            continue
        axes = dict[str, str]()
        for index in range(first, end):
            cluster = architecture.cluster(mapping.entries[index].target)
            axis = cluster.fanout.axis
            if cluster.is_virtual and any(axes.get(name, axis) != axis for name in unrolled[index]):
                axes = {}
                yield index, cluster.name
            axes |= dict.fromkeys(unrolled[index], axis)


def _costs_the_same(problem: Problem, unrolled: set[str]) -> bool:
    """Return whether a level between the axes changes no count.

    Each tensor has other words in every sub-cluster, or the same ones in all. Of other tensors, Timeloop's overlap between
    steps depends on the levels.
    """
    return all(
        not tensor.dimensions & unrolled
        or (
            unrolled <= tensor.dimensions
            and all(len(rank.terms) == 1 for rank in tensor.projection if rank.terms.keys() & unrolled)
        )
        for tensor in problem.tensors
    )
