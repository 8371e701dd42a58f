"""Legality: Union's four rules (section IV-D), generalised; every broken rule is reported with its numbers.

One mapping is judged by `legality`, a batch by `legal`; a property test holds them together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import Reason, Verdict
from tilewright.mapspace.batch import Bools, Ints, MappingBatch
from tilewright.schema.architecture import Architecture, Cluster, Memory
from tilewright.schema.document import suggestion
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor

EXACT = 2**53
"""Below this a product of positive integers is exact in float64; above, it at least stays above."""

Numbers = NDArray[Any]
"""float64, or Python's integers where limits are beyond EXACT."""


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


def legal(problem: Problem, architecture: Architecture, batch: MappingBatch) -> Bools:
    """Which mappings of a batch are legal, bool [n]: the array form of `legality`.

    Arrays no mapping object could stand for (a tile below 1, an order that leaves a dimension out) are illegal too.
    """
    targets = [entry.target for entry in batch.skeleton.entries]
    if batch.problem.dimension_names != problem.dimension_names or batch.problem.tensor_names != problem.tensor_names:
        return np.zeros(len(batch), dtype=np.bool_)
    if any(target not in architecture.cluster_index for target in targets):
        return np.zeros(len(batch), dtype=np.bool_)
    positions = [architecture.cluster_index[target] for target in targets]
    if positions != sorted(positions):
        return np.zeros(len(batch), dtype=np.bool_)
    good = np.ones(len(batch), dtype=np.bool_)
    good &= (batch.temporal >= 1).all(axis=(1, 2)) & (batch.spatial >= 1).all(axis=(1, 2))
    good &= (batch.temporal[:, 0] == np.array(problem.sizes)).all(axis=1) & (batch.spatial[:, -1] == 1).all(axis=1)
    good &= (batch.temporal <= batch.incoming).all(axis=(1, 2)) & (batch.spatial <= batch.temporal).all(axis=(1, 2))
    good &= _are_orders(batch.order) if batch.spatial_order is None else _are_orders(batch.order, batch.spatial_order)
    good &= _splits_fit(architecture, batch)
    good &= _keeps_allowed(architecture, batch)
    good &= fits(architecture, batch)
    return good


def _are_orders(*orders: NDArray[np.int8]) -> Bools:
    """Whether every row is a permutation of the dimensions."""
    good = np.ones(len(orders[0]), dtype=np.bool_)
    for order in orders:
        good &= (np.sort(order, axis=2) == np.arange(order.shape[2])).all(axis=(1, 2))
    return good


def _splits_fit(architecture: Architecture, batch: MappingBatch) -> Bools:
    good = np.ones(len(batch), dtype=np.bool_)
    targets = [entry.target for entry in batch.skeleton.entries]
    for index, target in enumerate(targets):
        last = target not in targets[index + 1 :]
        size = architecture.clusters[architecture.cluster_index[target]].fanout.size if last else 1
        trips = -(-batch.temporal[:, index] // np.maximum(batch.spatial[:, index], 1))
        good &= (_exactly(trips, size).prod(axis=1) <= size).astype(np.bool_)
    return good


def _keeps_allowed(architecture: Architecture, batch: MappingBatch) -> Bools:
    good = np.ones(len(batch), dtype=np.bool_)
    good &= (batch.keep[:, 0] & batch.skeleton.entries[0].holds).all(axis=1)
    kept: dict[str, Ints] = {}
    for index, entry in enumerate(batch.skeleton.entries):
        if not entry.holds:
            continue
        cluster = architecture.clusters[architecture.cluster_index[entry.target]]
        if cluster.is_virtual:
            return np.zeros(len(batch), dtype=np.bool_)
        able = np.array([_only_memory(cluster, tensor) is not None for tensor in batch.problem.tensors])
        good &= (able | ~batch.keep[:, index]).all(axis=1)
        before = kept.get(entry.target, np.zeros(batch.keep[:, index].shape, dtype=np.int64))
        kept[entry.target] = before + batch.keep[:, index]
    for times in kept.values():
        good &= (times <= 1).all(axis=1)
    return good


def _only_memory(cluster: Cluster, tensor: Tensor) -> str | None:
    """The memory that holds a tensor, if exactly one may."""
    able = [memory.name for memory in cluster.memories if memory.may_hold(tensor)]
    return able[0] if len(able) == 1 else None


def fits(architecture: Architecture, batch: MappingBatch) -> Bools:
    """Whether the tiles fit the memories, bool [n]; all entries of one memory share its capacity."""
    good = np.ones(len(batch), dtype=np.bool_)
    for memory in architecture.memories:
        if memory.usable_words is not None:
            good &= (words_needed(architecture, batch, memory) <= memory.usable_words).astype(np.bool_)
    return good


def words_needed(architecture: Architecture, batch: MappingBatch, memory: Memory) -> Numbers:
    """Words [n] that the tiles take in a memory; they compare with its usable words as if exact."""
    limit = memory.usable_words or 0
    cluster = next(each for each in architecture.clusters if memory in each.memories)
    need: Numbers = _exactly(np.zeros(len(batch), dtype=np.int64), limit)
    for index, entry in enumerate(batch.skeleton.entries):
        if entry.target != cluster.name or not entry.holds:
            continue
        for number, tensor in enumerate(batch.problem.tensors):
            if _only_memory(cluster, tensor) == memory.name and batch.keep[:, index, number].any():
                words = _tile_words(batch.problem, tensor, _exactly(batch.temporal[:, index], limit))
                need = need + words * batch.keep[:, index, number]
    return need


def _exactly(values: Ints, limit: int) -> Numbers:
    """The same numbers in a type in which sums and products compare with `limit` as if exact."""
    return values.astype(np.float64) if limit < EXACT else values.astype(np.object_)


def _tile_words(problem: Problem, tensor: Tensor, extents: Numbers) -> Numbers:
    """Words of the bounding boxes [n] that tiles of `extents` [n, dimension] span (as `Problem.tile_words`)."""
    words = np.ones(len(extents), dtype=extents.dtype)
    for rank in tensor.projection:
        along = np.ones(len(extents), dtype=extents.dtype)
        for name, coefficient in rank.terms.items():
            along += coefficient * (extents[:, problem.dimension_names.index(name)] - 1)
        words *= along
    return words
