"""Memories that hold explicit sets of words, and what they do while the operations are executed.

One tensor at a time, for tensors share nothing but moments. docs/oracle.md states the conventions.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from tilewright_costmodels.oracle.trace import Ints, SpatialLoop, Trace

Tiles = dict[int, set[int]]
"""Instance -> the words it needs in one step."""


@dataclass
class Memory:
    """What the instances of one entry did with one tensor: instance -> words. `served`: how many instances or lanes
    one access from inside served -> accesses."""

    entry: int
    instances: int = 0
    tile_words: int = 0
    reads: Counter[int] = field(default_factory=Counter)
    fills: Counter[int] = field(default_factory=Counter)
    updates: Counter[int] = field(default_factory=Counter)
    served: Counter[int] = field(default_factory=Counter)


def execute(
    trace: Trace, words: Ints, keepers: list[int], shares: Callable[[SpatialLoop], bool], output: bool
) -> list[Memory]:
    """Run one tensor through the memories that keep it.

    Args:
        trace: the operations.
        words: number of the word that each operation touches, [n].
        keepers: entries that keep the tensor, outermost first.
        shares: whether one access may serve (or collect from) all sub-clusters along a loop in space.
        output: partial sums go up, instead of operands down.
    """
    memories = [Memory(entry) for entry in keepers]
    for memory in memories:
        memory.instances = len(np.unique(trace.instances(memory.entry)))
        memory.tile_words = max(len(tile) for _, tiles in _steps(trace, words, memory.entry) for tile in tiles.values())
    for outer, inner in zip(memories, memories[1:], strict=False):
        (_collect if output else _supply)(trace, words, _Link(trace, outer, inner, shares), inner)
    link = _Link(trace, memories[-1], None, shares)
    # compute keeps nothing: every operation reads its operand or sends a sum
    for _, tiles in _steps(trace, words, None):
        (link.add if output else link.read)(link.heads(tiles))
    return memories


class _Link:
    """The network between the instances of a memory and those of the next one inside (None: compute)."""

    def __init__(
        self, trace: Trace, outer: Memory, inner: Memory | None, shares: Callable[[SpatialLoop], bool]
    ) -> None:
        self.outer = outer
        unit = 1 if inner is None else trace.places_per_instance[inner.entry]
        last = len(trace.places_per_instance) if inner is None else inner.entry
        self.children = trace.places_per_instance[outer.entry] // unit
        self.shared = [
            (loop.weight // unit, loop.trips)
            for loop in trace.spatial
            if outer.entry <= loop.entry < last and shares(loop)
        ]
        self.drained: defaultdict[int, set[int]] = defaultdict(set)
        self._head = functools.cache(self._first)

    def parent(self, child: int) -> int:
        return child // self.children

    def _first(self, child: int) -> int:
        """Of the children that can share an access with this one."""
        return child - sum(child // weight % trips * weight for weight, trips in self.shared)

    def heads(self, tiles: Tiles) -> Counter[tuple[int, int]]:
        """(First of the children that can share an access, word) -> how many of them have it in their tiles."""
        return Counter((self._head(child), word) for child, tile in tiles.items() for word in tile)

    def read(self, wanted: Counter[tuple[int, int]]) -> None:
        """One read per (head, word), which goes to as many children as want it."""
        for (head, _), children in wanted.items():
            self.outer.reads[self.parent(head)] += 1
            self.outer.served[children] += 1

    def add(self, leaving: Counter[tuple[int, int]]) -> None:
        """One update per (head, word), for the partial sums of a group are added on the way. Adding to a word reads
        it, but the first sum that arrives has nothing to be added to."""
        for (head, word), children in leaving.items():
            parent = self.parent(head)
            self.outer.updates[parent] += 1
            self.outer.served[children] += 1
            if word in self.drained[parent]:
                self.outer.reads[parent] += 1
            self.drained[parent].add(word)


def _steps(trace: Trace, words: Ints, entry: int | None) -> Iterator[tuple[int, Tiles]]:
    """In order of time: (number of the step, the words that each instance touches in it). `entry` None: compute."""
    moments = trace.moments if entry is None else trace.steps(entry)
    places = trace.places if entry is None else trace.instances(entry)
    order = np.argsort(moments, kind="stable")
    now, tiles = -1, Tiles()
    for moment, place, word in zip(moments[order].tolist(), places[order].tolist(), words[order].tolist(), strict=True):
        if moment != now:
            if tiles:
                yield now, tiles
            now, tiles = moment, {}
        tiles.setdefault(place, set()).add(word)
    yield now, tiles


def _supply(trace: Trace, words: Ints, link: _Link, inner: Memory) -> None:
    """Operands: a child fetches what its tile needs and its own tile before did not have."""
    held: Tiles = {}
    for _, tiles in _steps(trace, words, inner.entry):
        wanted = {child: tile - held.get(child, set()) for child, tile in tiles.items()}
        inner.fills.update({child: len(new) for child, new in wanted.items()})
        held |= tiles
        link.read(link.heads(wanted))


def _collect(trace: Trace, words: Ints, link: _Link, inner: Memory) -> None:
    """Partial sums: a word leaves a child when its tile moves on, and comes back when the child needs it again."""
    held: Tiles = {}
    known: defaultdict[int, set[int]] = defaultdict(set)
    outer_steps = _steps(trace, words, link.outer.entry)
    outer_step, outer_tiles = -1, Tiles()
    ratio = trace.moments_per_step[link.outer.entry] // trace.moments_per_step[inner.entry]
    for step, tiles in _steps(trace, words, inner.entry):
        next_tiles: Tiles = dict(tiles)
        if step // ratio != outer_step:
            outer_step, outer_tiles = next(outer_steps)
            for child in held.keys() - tiles.keys():  # idle, while the tile it works for may move on
                next_tiles[child] = held[child] & outer_tiles.get(link.parent(child), held[child])
        leaving: Tiles = {}
        for child, tile in next_tiles.items():
            before = held.get(child, set())
            leaving[child], new = before - tile, tile - before
            inner.fills[child] += len(new & known[child])
            known[child] |= new
            held[child] = tile
        link.add(link.heads(leaving))
    link.add(link.heads(held))
