"""Memories that hold explicit sets of words, and their traffic while the operations are executed.

Tensors are executed separately, since they share only time steps. docs/oracle.md states the
conventions.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from tilewright_costmodels.oracle.trace import Ints, OperationTrace, SpatialLoop

Tiles = dict[int, set[int]]
"""Instance -> the words it needs in one step."""
Uses = list[tuple[OperationTrace, Ints]]
"""Operations, and the index of the word that each touches; several layers may share one tile."""


@dataclass
class MemoryTraffic:
    """Words that the instances of one entry move of one tensor, by instance.

    `served` counts accesses from inside by the number of instances or lanes that one access serves.
    """

    entry: int
    instances: int = 0
    tile_words: int = 0
    reads: Counter[int] = field(default_factory=Counter)
    fills: Counter[int] = field(default_factory=Counter)
    first_writes: Counter[int] = field(default_factory=Counter)
    """Words of an output that are new to an instance, and need no fill."""
    updates: Counter[int] = field(default_factory=Counter)
    served: Counter[int] = field(default_factory=Counter)


def execute(
    trace: OperationTrace, words: Ints, keepers: list[int], may_share: Callable[[SpatialLoop], bool], output: bool
) -> list[MemoryTraffic]:
    """Execute one tensor in the memories that keep it.

    Args:
        trace: the operations.
        words: index of the word that each operation touches, [n].
        keepers: storage entries of the tensor, outermost first.
        may_share: whether one access may serve all sub-clusters along a spatial loop, or reduce
            their sums.
        output: partial sums move up, instead of operands down.
    """
    memories = [MemoryTraffic(entry) for entry in keepers]
    for memory in memories:
        memory.instances = len(np.unique(trace.instances(memory.entry)))
        memory.tile_words = largest_tile([(trace, words)], memory.entry)
    for outer, inner in zip(memories, memories[1:], strict=False):
        move([(trace, words)], outer, inner, may_share, output)
    compute(trace, words, memories[-1], may_share, output)
    return memories


def largest_tile(uses: Uses, entry: int) -> int:
    """Return the words of the largest tile that an entry holds in any step."""
    return max(len(tile) for _, tiles in _steps(uses, entry) for tile in tiles.values())


def move(
    uses: Uses,
    outer: MemoryTraffic,
    inner: MemoryTraffic,
    may_share: Callable[[SpatialLoop], bool],
    output: bool,
    steps_per_visit: int = 0,
) -> None:
    """Count the words between a memory and the next one inside.

    Args:
        uses: the operations; their spatial loops between the memories are the same.
        outer, inner: traffic that the counts are added to.
        may_share: see `execute`.
        output: see `execute`.
        steps_per_visit: steps of the inner memory after which it starts empty; 0: never.
    """
    connection = Connection(uses[0][0], outer, inner, may_share)
    (_collect if output else _supply)(uses, connection, inner, steps_per_visit)


def compute(
    trace: OperationTrace,
    words: Ints,
    memory: MemoryTraffic,
    may_share: Callable[[SpatialLoop], bool],
    output: bool,
) -> None:
    """Count the words between a memory and compute, which keeps nothing: each operation moves its own."""
    connection = Connection(trace, memory, None, may_share)
    for _, tiles in _steps([(trace, words)], None):
        (connection.add_sums if output else connection.read)(connection.count_receivers(tiles))


class Connection:
    """Network between the instances of a memory and those of the next memory inside (None: compute)."""

    def __init__(
        self,
        trace: OperationTrace,
        outer: MemoryTraffic,
        inner: MemoryTraffic | None,
        may_share: Callable[[SpatialLoop], bool],
    ) -> None:
        self.outer = outer
        unit = 1 if inner is None else trace.units_per_instance[inner.entry]
        last = len(trace.units_per_instance) if inner is None else inner.entry
        self.subclusters = trace.units_per_instance[outer.entry] // unit
        self.shared_loops = [
            (loop.weight // unit, loop.trips)
            for loop in trace.spatial
            if outer.entry <= loop.entry < last and may_share(loop)
        ]
        self.summed: defaultdict[int, set[int]] = defaultdict(set)
        self.leader = functools.cache(self._first_of_group)

    def parent(self, subcluster: int) -> int:
        """Return the instance of the outer memory that serves a sub-cluster."""
        return subcluster // self.subclusters

    def _first_of_group(self, subcluster: int) -> int:
        """Return the first of the sub-clusters that can share an access with this one."""
        return subcluster - sum(subcluster // weight % trips * weight for weight, trips in self.shared_loops)

    def count_receivers(self, tiles: Tiles) -> Counter[tuple[int, int]]:
        """Return (first of a group of sub-clusters, word) -> number of them whose tile has the word."""
        return Counter((self.leader(subcluster), word) for subcluster, tile in tiles.items() for word in tile)

    def read(self, requests: Counter[tuple[int, int]]) -> None:
        """Read each (group, word) once, for all sub-clusters that request it."""
        for (leader, _), receivers in requests.items():
            self.outer.reads[self.parent(leader)] += 1
            self.outer.served[receivers] += 1

    def add_sums(self, leaving: Counter[tuple[int, int]]) -> None:
        """Update each (group, word) once; the network reduces the partial sums of a group.

        An update reads the word first, except for its first partial sum, which is only written.
        """
        for (leader, word), receivers in leaving.items():
            parent = self.parent(leader)
            self.outer.updates[parent] += 1
            self.outer.served[receivers] += 1
            if word in self.summed[parent]:
                self.outer.reads[parent] += 1
            self.summed[parent].add(word)


def _steps(uses: Uses, entry: int | None) -> Iterator[tuple[int, Tiles]]:
    """Yield (index of the step, words that each instance touches in it), in order of time. `entry` None: compute."""
    time_steps = np.concatenate([trace.time_steps if entry is None else trace.steps(entry) for trace, _ in uses])
    indices = np.concatenate([trace.unit_indices if entry is None else trace.instances(entry) for trace, _ in uses])
    words = np.concatenate([touched for _, touched in uses])
    order = np.argsort(time_steps, kind="stable")
    now, tiles = -1, Tiles()
    for time_step, index, word in zip(
        time_steps[order].tolist(), indices[order].tolist(), words[order].tolist(), strict=True
    ):
        if time_step != now:
            if tiles:
                yield now, tiles
            now, tiles = time_step, {}
        tiles.setdefault(index, set()).add(word)
    yield now, tiles


def _supply(uses: Uses, connection: Connection, inner: MemoryTraffic, steps_per_visit: int) -> None:
    """Move operands: a sub-cluster fetches the words of its tile that its previous tile did not have."""
    held: Tiles = {}
    visit = 0
    for step, tiles in _steps(uses, inner.entry):
        if steps_per_visit and step // steps_per_visit != visit:
            visit, held = step // steps_per_visit, {}
        fetched = {subcluster: tile - held.get(subcluster, set()) for subcluster, tile in tiles.items()}
        inner.fills.update({subcluster: len(new) for subcluster, new in fetched.items()})
        held |= tiles
        connection.read(connection.count_receivers(fetched))


def _collect(uses: Uses, connection: Connection, inner: MemoryTraffic, steps_per_visit: int) -> None:
    """Move partial sums: a word leaves a sub-cluster when its tile moves on, and returns when it is needed again."""
    held: Tiles = {}
    received: defaultdict[int, set[int]] = defaultdict(set)
    trace = uses[0][0]
    outer_steps = _steps(uses, connection.outer.entry)
    outer_step, outer_tiles, visit = -1, Tiles(), 0
    ratio = trace.time_steps_per_tile[connection.outer.entry] // trace.time_steps_per_tile[inner.entry]
    for step, tiles in _steps(uses, inner.entry):
        if steps_per_visit and step // steps_per_visit != visit:
            visit = step // steps_per_visit
            connection.add_sums(connection.count_receivers(held))
            held = {}
        next_tiles: Tiles = dict(tiles)
        if step // ratio != outer_step:
            outer_step, outer_tiles = next(outer_steps)
            for subcluster in held.keys() - tiles.keys():  # idle, while the outer tile may move on
                next_tiles[subcluster] = held[subcluster] & outer_tiles.get(
                    connection.parent(subcluster), held[subcluster]
                )
        leaving: Tiles = {}
        for subcluster, tile in next_tiles.items():
            before = held.get(subcluster, set())
            leaving[subcluster], new = before - tile, tile - before
            inner.fills[subcluster] += len(new & received[subcluster])
            inner.first_writes[subcluster] += len(new - received[subcluster])
            received[subcluster] |= new
            held[subcluster] = tile
        connection.add_sums(connection.count_receivers(leaving))
    connection.add_sums(connection.count_receivers(held))
