"""Uneven spaces: the map spaces of all orders of the storage entries of a cluster.

An uneven mapping keeps the tensors of one memory, or of memories of one cluster, at different
loops. Each order of the pairs (memory, tensor) of a cluster, its arrangement, gives a map space with
one storage entry per pair. The uneven space is the union of these spaces.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tilewright.errors import InputError
from tilewright.mapspace.counting import count_mappings
from tilewright.mapspace.skeleton import Skeleton
from tilewright.mapspace.space import MapSpace
from tilewright.schema.constraints import StorageRule, StoredTensors

MAX_ARRANGEMENTS = 1024
"""Maximum number of arrangements of a problem on an architecture."""
Pair = tuple[str, str]
"""Memory and tensor."""


def arrangements(space: MapSpace) -> tuple[MapSpace, ...]:
    """Return the map spaces whose union is the uneven space, without empty ones.

    Clusters with a storage rule keep their order.

    >>> from tilewright import space
    >>> even = space("nk,km->nm; n=4 k=2 m=2", "eyeriss", constraints="none")
    >>> len(arrangements(even)), even.size, count_uneven(even)
    (12, 2090, 12208)

    Args:
        space: The space of the standard skeleton.

    Returns:
        The spaces; one empty space if all are empty.

    Raises:
        InputError: There are more than `MAX_ARRANGEMENTS`.
    """
    pairs = _pairs(space)
    count = math.prod(math.factorial(len(pair)) for pair in pairs.values())
    if count > MAX_ARRANGEMENTS:
        raise InputError(
            f"{space.problem.name} on {space.architecture.name} has {count:,} orders of storage entries, at most "
            f"{MAX_ARRANGEMENTS:,} are searched",
            hint="fix the order in some clusters with a `storage` rule in the constraints",
        )
    orders = itertools.product(*(itertools.permutations(pair) for pair in pairs.values()))
    spaces = [_arranged(space, dict(zip(pairs, order, strict=True))) for order in orders]
    return tuple(candidate for candidate in spaces if candidate.factorizations) or tuple(spaces[:1])


def count_uneven(space: MapSpace) -> int:
    """Return the exact number of distinct mappings in the uneven space.

    Two arrangements share the mappings without loops between the entries whose order differs. Let an
    ordered partition of the pairs of a cluster have loops between its groups only, and N mappings.
    By inclusion and exclusion, the union has the sum of N over all ordered partitions, with signs. The
    sign is the product of (-1)^(k - 1) over all groups, of k pairs each.

    Raises:
        InputError: A rule bounds loops between entries of one cluster, which depends on their order.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import count_uneven
        >>> count_uneven(tw.space("nk,km->nm; n=2 k=2 m=2", "eyeriss", constraints="none"))
        1964
    """
    pairs = _pairs(space)
    memories = {memory for pair in pairs.values() for memory, _ in pair}
    for rule in space.rules.temporal:
        if rule.memory in memories:
            raise InputError(
                f"mappings of an uneven space are not counted under a rule for the loops inside memory {rule.memory}"
            )
    total = 0
    for partition in itertools.product(*(tuple(_ordered_partitions(pair)) for pair in pairs.values())):
        sign = math.prod((-1) ** (len(group) - 1) for groups in partition for group in groups)
        total += sign * _count(space, dict(zip(pairs, partition, strict=True)))
    return total << int(space.keeps[1].sum())


def _pairs(space: MapSpace) -> dict[str, list[Pair]]:
    """Return cluster -> pairs (memory, tensor) that it may keep, for clusters with at least two and no rule."""
    pairs: dict[str, list[Pair]] = {}
    fixed = {rule.cluster for rule in space.rules.storage}
    kept = np.logical_or(*space.keeps)
    for entry, row in zip(space.skeleton.entries[1:], kept[1:], strict=True):
        cluster = space.architecture.cluster(entry.target)
        for tensor, on in zip(space.problem.tensors, row, strict=True):
            if on and cluster.name not in fixed:
                memory = cluster.memory_for(tensor)
                assert memory is not None  # `keeps` is computed from it
                pairs.setdefault(cluster.name, []).append((memory.name, tensor.name))
    return {name: members for name, members in pairs.items() if len(members) > 1}


def _arranged(space: MapSpace, orders: dict[str, Sequence[Pair]]) -> MapSpace:
    """Return the space with this order of storage entries.

    Raises:
        InputError: A rule asks for loops inside a memory of these clusters that keeps nothing.
    """
    rules = tuple(
        StorageRule(
            cluster=name, entries=tuple(StoredTensors(memory=memory, tensors=(tensor,)) for memory, tensor in order)
        )
        for name, order in orders.items()
    )
    storage = (*space.rules.storage, *rules)
    # a memory without tensors has no entry here, hence no loops: the rules that bound them hold
    emptied = {memory.name for name in orders for memory in space.architecture.cluster(name).memories}
    emptied -= {memory for order in orders.values() for memory, _ in order}
    temporal = tuple(
        rule
        for rule in space.rules.temporal
        if rule.memory not in emptied or any(trips.min > 1 for trips in rule.factors.values())
    )
    rules_of_all = space.rules.model_copy(update={"storage": storage, "temporal": temporal})
    return replace(space, rules=rules_of_all, skeleton=Skeleton.for_architecture(space.architecture, storage))


def _count(space: MapSpace, partition: dict[str, tuple[tuple[Pair, ...], ...]]) -> int:
    """Return the number of mappings with one order of the pairs, and loops between the groups only."""
    arranged = _arranged(
        space, {name: [pair for group in groups for pair in group] for name, groups in partition.items()}
    )
    closed: set[int] = set()
    for name, groups in partition.items():
        entries = [e for e, entry in enumerate(arranged.skeleton.entries) if entry.target == name and entry.holds]
        first = set(itertools.accumulate((len(group) for group in groups), initial=0))
        closed.update(entry for number, entry in enumerate(entries) if number not in first)
    slots = tuple(slot for slot in arranged.slots if slot.spatial or slot.entry not in closed)
    orders = math.factorial(len(space.problem.dimensions)) ** len(arranged.temporal_slots)
    return count_mappings(space.problem.sizes, slots, space.factors, arranged.factorizations * orders)


def _ordered_partitions(items: Sequence[Pair]) -> Iterator[tuple[tuple[Pair, ...], ...]]:
    """Yield all sequences of disjoint groups that cover the items."""
    if not items:
        yield ()
    for size in range(1, len(items) + 1):
        for group in itertools.combinations(items, size):
            for rest in _ordered_partitions([item for item in items if item not in group]):
                yield (group, *rest)
