"""Legality: Union's four rules (section IV-D), generalised; every broken rule is reported with its numbers.

One mapping is judged by `legality`, a batch by `tilewright.batch`; a property test holds them together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from tilewright.architecture import Architecture
from tilewright.conformability import Reason, Verdict
from tilewright.document import suggestion
from tilewright.mapping import Mapping
from tilewright.problem import Problem


def legality(problem: Problem, architecture: Architecture, mapping: Mapping) -> Verdict:
    """Every rule that the mapping breaks.

    Codes: `dimension`, `target`, `tensor` (a name nobody knows), `order` (targets not outermost to innermost),
    `coverage` (iterations left out or done twice), `nesting` (a tile larger than the tile it is cut from),
    `fanout` (more sub-clusters than exist), `split` (a split that is not the cluster's last), `keep` (a tensor where it may
    not be, or twice in a cluster), `backing` (a tensor that the outermost entry does not keep), `capacity`.
    """
    names = tuple(_unknown_names(problem, architecture, mapping))
    if names:  # nothing else can be judged
        return Verdict(reasons=names)
    return Verdict(
        reasons=(
            *_coverage(problem, mapping),
            *_nesting(mapping),
            *_fanouts(architecture, mapping),
            *_keeps(problem, architecture, mapping),
            *capacity_faults(problem, architecture, mapping),
        )
    )


def place(mapping: Mapping, index: int) -> str:
    """How messages name an entry."""
    return f"entry {index} on {mapping.entries[index].target}"


def _unknown_names(problem: Problem, architecture: Architecture, mapping: Mapping) -> Iterator[Reason]:
    for name in sorted(set(problem.dimensions).symmetric_difference(mapping.dimension_names)):
        whose = "the mapping has no tile sizes for it" if name in problem.dimensions else "the problem has none of it"
        yield Reason(code="dimension", where=f"dimension {name}", message=whose)
    for index, entry in enumerate(mapping.entries):
        if entry.target not in architecture.cluster_index:
            hint = suggestion(entry.target, architecture.cluster_index)
            yield Reason(
                code="target",
                where=f"entry {index}",
                message=f"{architecture.name} has no cluster '{entry.target}'{hint}",
            )
        for name in (*(entry.keep or ()), *entry.unicast):
            if name not in problem.tensor_names:
                hint = suggestion(name, problem.tensor_names)
                yield Reason(code="tensor", where=place(mapping, index), message=f"no tensor '{name}'{hint}")


def _coverage(problem: Problem, mapping: Mapping) -> Iterator[Reason]:
    first, last = mapping.entries[0], mapping.entries[-1]
    for name, size in problem.dimensions.items():
        whole = first.temporal_tile_sizes[name]
        if whole != size:
            yield Reason(
                code="coverage",
                where=f"dimension {name}",
                message=f"the tiles cover {whole} iterations, the problem has {size}",
            )
        rest = last.spatial_tile_sizes[name]
        if rest != 1:
            yield Reason(
                code="coverage",
                where=f"dimension {name}",
                message=f"the innermost tile still has {rest} iterations; compute does one at a time",
            )


def _nesting(mapping: Mapping) -> Iterator[Reason]:
    incoming = mapping.entries[0].temporal_tile_sizes
    for index, entry in enumerate(mapping.entries):
        for name, temporal in entry.temporal_tile_sizes.items():
            for what, inner, outer in (
                ("temporal", temporal, incoming[name]),
                ("spatial", entry.spatial_tile_sizes[name], temporal),
            ):
                if inner > outer:
                    yield Reason(
                        code="nesting",
                        where=f"{place(mapping, index)}, dimension {name}",
                        message=f"{what} tile of {inner} is cut from a tile of {outer}",
                    )
        incoming = entry.spatial_tile_sizes


def _fanouts(architecture: Architecture, mapping: Mapping) -> Iterator[Reason]:
    position = 0
    factors = mapping.factors()
    for index, entry in enumerate(mapping.entries):
        target = architecture.cluster_index[entry.target]
        if target < position:
            yield Reason(
                code="order",
                where=place(mapping, index),
                message=f"comes after {architecture.clusters[position].name}, which lies inside it",
            )
        position = max(position, target)
        used = math.prod(factors[index][1].values())
        size = architecture.clusters[target].fanout.size
        if used > size:
            yield Reason(
                code="fanout",
                where=place(mapping, index),
                message=f"uses {used} sub-clusters, it has {size}",
            )
        again = any(later.target == entry.target for later in mapping.entries[index + 1 :])
        if used > 1 and again:
            yield Reason(
                code="split",
                where=place(mapping, index),
                message=f"splits over {used} sub-clusters, but only the last entry on a cluster may split",
            )


def _keeps(problem: Problem, architecture: Architecture, mapping: Mapping) -> Iterator[Reason]:
    seen: set[tuple[str, str]] = set()
    for index, entry in enumerate(mapping.entries):
        cluster = architecture.clusters[architecture.cluster_index[entry.target]]
        if entry.keep is not None and cluster.is_virtual:
            yield Reason(code="keep", where=place(mapping, index), message="the cluster is virtual: it has no memory")
            continue
        for name in entry.keep or ():
            if (entry.target, name) in seen:
                yield Reason(code="keep", where=place(mapping, index), message=f"{name} is kept there already")
            seen.add((entry.target, name))
            try:
                memory = cluster.memory_for(problem.tensor(name))
            except ValueError as error:
                yield Reason(code="keep", where=place(mapping, index), message=str(error))
                continue
            if memory is None:
                role = problem.tensor(name).role
                yield Reason(
                    code="keep", where=place(mapping, index), message=f"no memory there may hold {name} ({role})"
                )
    for name in problem.tensor_names:
        if name not in (mapping.entries[0].keep or ()):
            kept = any(name in (entry.keep or ()) for entry in mapping.entries)
            message = "is bypassed in all memories" if not kept else "is not kept by the outermost entry"
            yield Reason(code="backing", where=f"tensor {name}", message=message)


def capacity_faults(problem: Problem, architecture: Architecture, mapping: Mapping) -> Iterator[Reason]:
    """One reason per memory whose tiles do not fit; all entries of one memory share its capacity."""
    need: dict[str, int] = {}
    for entry in mapping.entries:
        cluster = architecture.clusters[architecture.cluster_index[entry.target]]
        for name in entry.keep or ():
            tensor = problem.tensor(name)
            able = [memory for memory in cluster.memories if memory.may_hold(tensor)]
            if len(able) == 1:
                words = problem.tile_words(tensor, entry.temporal_tile_sizes)
                need[able[0].name] = need.get(able[0].name, 0) + words
    for memory in architecture.memories:
        usable = memory.usable_words
        if usable is not None and need.get(memory.name, 0) > usable:
            yield Reason(
                code="capacity",
                where=memory.name,
                message=f"the tiles need {need[memory.name]} words, {usable} fit",
            )
