"""Skeleton: the structure that all mappings of a map space share, and its slots for trips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.constraints import StorageRule
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Tensor


@dataclass(frozen=True)
class SkeletonEntry:
    """Role of one entry in a skeleton.

    Attributes:
        target: Name of the cluster.
        holds: Whether the entry is a storage level, so that its `keep` is a list (possibly empty).
        memories: Memories of the cluster that the entry may use. Empty: all of them.
        tensors: Names or roles of the tensors that the entry may keep. None: all of them.
        steps: Whether a map space allows temporal loops here.
        unrolls: Whether a map space allows spatial loops here.
        inside: Memory whose temporal loops the entry contains.
    """

    target: str
    holds: bool
    memories: tuple[str, ...] = ()
    tensors: tuple[str, ...] | None = None
    steps: bool = True
    unrolls: bool = True
    inside: str | None = None

    def may_keep(self, memory: Memory, tensor: Tensor) -> bool:
        """Return whether the entry may keep a tensor in a memory of its cluster."""
        named = self.tensors is None or tensor.name in self.tensors or tensor.role in self.tensors
        return named and (not self.memories or memory.name in self.memories)


@dataclass(frozen=True)
class Skeleton:
    """Entries of a mapping without their tile sizes, outermost first.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import Skeleton
        >>> [entry.target for entry in Skeleton.for_architecture(tw.load("eyeriss", "architecture")).entries][:2]
        ['DRAM', 'GlobalBuffer']
    """

    entries: tuple[SkeletonEntry, ...]

    def __len__(self) -> int:
        return len(self.entries)

    @classmethod
    def of(cls, mapping: Mapping) -> Skeleton:
        """Return the skeleton of one mapping."""
        return cls(tuple(SkeletonEntry(entry.target, entry.keep is not None) for entry in mapping.entries))

    @classmethod
    def for_architecture(cls, architecture: Architecture, storage: Sequence[StorageRule] = ()) -> Skeleton:
        """Return the standard skeleton of an architecture.

        Every memory has one storage entry and one block of temporal loops inside it. That block
        belongs to the next storage entry. If the cluster has a fanout, the block belongs to an
        unrolling entry without storage, as in Timeloop.

        Memories of one cluster get separate entries in file order, or those of its rule in
        `storage`. Those of the outermost cluster share one entry, because they hold whole tensors.
        """
        ruled = {rule.cluster: [((entry.memory,), entry.tensors) for entry in rule.entries] for rule in storage}
        entries: list[SkeletonEntry] = []
        owed: str | None = None  # memory that has no entry for its loops yet
        for index, cluster in enumerate(architecture.clusters):
            last = index == len(architecture.clusters) - 1
            names = tuple(memory.name for memory in cluster.memories)
            plain: list[tuple[tuple[str, ...], tuple[str, ...] | None]] = [((name,), None) for name in names]
            for held, tensors in [(names, None)] if index == 0 else ruled.get(cluster.name, plain):
                entries.append(
                    SkeletonEntry(cluster.name, True, held, tensors, steps=owed is not None, unrolls=False, inside=owed)
                )
                owed = held[-1]
            if cluster.fanout.size > 1 or last:
                entries.append(SkeletonEntry(cluster.name, False, steps=owed is not None, inside=owed))
                owed = None
        return cls(tuple(entries))


@dataclass(frozen=True)
class OrderRule:
    """Order that the loops of a slot must have, as dimension indices, outermost first.

    Attributes:
        outermost: Dimensions whose loops surround all others, in this order.
        relative: Dimensions whose loops keep this order, with any others between them.
        innermost: Dimensions whose loops are inside all others, in this order.
    """

    outermost: tuple[int, ...] = ()
    relative: tuple[int, ...] = ()
    innermost: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.outermost or self.relative or self.innermost)

    @property
    def named(self) -> tuple[int, ...]:
        """All dimensions of the rule."""
        return (*self.outermost, *self.relative, *self.innermost)

    def among(self, dimensions: Sequence[int]) -> OrderRule:
        """Return the rule for these dimensions alone."""
        parts = (tuple(d for d in part if d in dimensions) for part in (self.outermost, self.relative, self.innermost))
        return OrderRule(*parts)

    def renumbered(self, numbers: Sequence[int]) -> OrderRule:
        """Return the rule on the positions that its dimensions have in `numbers`."""
        parts = (tuple(map(numbers.index, part)) for part in (self.outermost, self.relative, self.innermost))
        return OrderRule(*parts)

    def before(self, dimension: int, count: int) -> tuple[int, ...]:
        """Return the dimensions, of `count`, whose loops must be outside the loop of this dimension."""
        for part in (self.outermost, self.relative, self.innermost):
            if dimension in part:
                sequence = part[: part.index(dimension)]
                break
        else:
            return self.outermost
        if part is self.innermost:
            return (*(d for d in range(count) if d not in self.innermost), *sequence)
        return sequence if part is self.outermost else (*self.outermost, *sequence)


@dataclass(frozen=True)
class Slot:
    """Loops of one kind, temporal or spatial, at one entry.

    Attributes:
        entry: Index of the entry.
        spatial: Whether the loops are spatial.
        lowest, highest: Bounds on the trips of each dimension.
        least, most: Bounds on the product of the trips, for spatial slots.
        order: Order that the loops must have.
    """

    entry: int
    spatial: bool
    lowest: tuple[int, ...]
    highest: tuple[int, ...]
    least: int = 1
    most: int | None = None
    order: OrderRule = OrderRule()

    def allows(self, dimension: int, trips: int) -> bool:
        return self.lowest[dimension] <= trips <= self.highest[dimension]
