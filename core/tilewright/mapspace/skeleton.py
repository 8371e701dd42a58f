"""Skeleton: the fixed part of a family of mappings, over which batches of them are arrays; and its slots for factors."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping


@dataclass(frozen=True)
class SkeletonEntry:
    """Where an entry stands and what it may do.

    `holds`: it is a storage level (its `keep` is a list, perhaps empty). `memories`: those it may use (empty: all of
    the cluster). `steps`, `unrolls`: whether a map space lets it step in time and unroll in space. `inside`: the memory
    whose temporal loops these steps are.
    """

    target: str
    holds: bool
    memories: tuple[str, ...] = ()
    steps: bool = True
    unrolls: bool = True
    inside: str | None = None


@dataclass(frozen=True)
class Skeleton:
    """Entries, outermost first."""

    entries: tuple[SkeletonEntry, ...]

    def __len__(self) -> int:
        return len(self.entries)

    @classmethod
    def of(cls, mapping: Mapping) -> Skeleton:
        """The skeleton that fits one mapping."""
        return cls(tuple(SkeletonEntry(entry.target, entry.keep is not None) for entry in mapping.entries))

    @classmethod
    def for_architecture(cls, architecture: Architecture) -> Skeleton:
        """The standard skeleton: each memory holds its tensors, and has one block of temporal loops inside it.

        The block stands where it changes nothing: before the next hold, or, when the cluster fans out, in an entry
        that holds nothing and unrolls (Timeloop's levels hold, step, then unroll). Siblings hold one after another in file
        order, but those of the outermost cluster at once, for they hold whole tensors.
        """
        entries: list[SkeletonEntry] = []
        owed: str | None = None  # the memory whose loops still need a place
        for index, cluster in enumerate(architecture.clusters):
            last = index == len(architecture.clusters) - 1
            names = tuple(memory.name for memory in cluster.memories)
            for held in [names] if index == 0 else [(name,) for name in names]:
                entries.append(
                    SkeletonEntry(cluster.name, True, held, steps=owed is not None, unrolls=False, inside=owed)
                )
                owed = held[-1]
            if cluster.fanout.size > 1 or last:
                entries.append(SkeletonEntry(cluster.name, False, steps=owed is not None, inside=owed))
                owed = None
        return cls(tuple(entries))


@dataclass(frozen=True)
class Slot:
    """A place for factors. `lowest`, `highest`: bounds on the trips of each dimension; `most`, `least` on their
    product (of an unrolling). `order`: dimension indices whose loops keep this order."""

    entry: int
    spatial: bool
    lowest: tuple[int, ...]
    highest: tuple[int, ...]
    least: int = 1
    most: int | None = None
    order: tuple[int, ...] = ()

    def allows(self, dimension: int, trips: int) -> bool:
        return self.lowest[dimension] <= trips <= self.highest[dimension]
