"""Accesses of one tensor between a memory and the next one inside, and the tiles that they belong to."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tilewright_costmodels.oracle.memories import Connection
from tilewright_costmodels.oracle.sparse.patterns import Flags
from tilewright_costmodels.oracle.trace import Ints, OperationTrace


@dataclass(frozen=True)
class Tiles:
    """Tiles of a tensor that the instances of one entry hold, each until the next one replaces it.

    Attributes:
        of_operation: index of the tile that each operation uses, [n].
        instances: instance of each tile, [tile]. Tiles of an instance are in order of time.
        starts: step in which it arrives, [tile].
        words: its words.
    """

    of_operation: Ints
    instances: Ints
    starts: Ints
    words: tuple[frozenset[int], ...]

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True)
class Accesses:
    """Accesses of a memory from inside, in order of time.

    Attributes:
        words: word of each access, [access].
        access, tile: an access serves inner tiles, pair by pair.
        sums: the partial sum that each access updates, by word and instance, [access]; empty for operands.
        entering: (tile, word) of the words that inner tiles receive.
    """

    words: Ints
    access: Ints
    tile: Ints
    sums: Ints
    entering: tuple[Ints, Ints]

    def __len__(self) -> int:
        return len(self.words)


def tiles_of(trace: OperationTrace, words: Ints, entry: int | None) -> Tiles:
    """Return the tiles that an entry holds. `entry` None: compute, which uses a word per operation."""
    if entry is None:
        single = tuple(frozenset((word,)) for word in words.tolist())
        return Tiles(np.arange(len(words)), trace.unit_indices, trace.time_steps, single)
    instances, steps = trace.instances(entry), trace.steps(entry)
    order = np.lexsort((steps, instances))
    changes = np.flatnonzero(np.diff(instances[order]) | np.diff(steps[order])) + 1
    of_operation = np.empty(len(words), dtype=np.int64)
    held: list[frozenset[int]] = []
    first: list[int] = []
    for part in np.split(order, changes):
        tile = frozenset(words[part].tolist())
        if not held or instances[first[-1]] != instances[part[0]] or held[-1] != tile:
            held.append(tile)
            first.append(int(part[0]))
        of_operation[part] = len(held) - 1
    return Tiles(of_operation, instances[first], steps[first], tuple(held))


def supplied(tiles: Tiles, connection: Connection, keeps: bool) -> Accesses:
    """Return the reads that serve the tiles of an operand.

    Args:
        keeps: the tiles are in a memory, which keeps words from one tile to the next.
    """
    groups: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
    for tile, (instance, start) in enumerate(zip(tiles.instances.tolist(), tiles.starts.tolist(), strict=True)):
        for word in tiles.words[tile] - (_before(tiles, tile) if keeps else frozenset()):
            groups[start, connection.leader(instance), word].append(tile)
    access, tile_of, words = _pairs(groups)
    return Accesses(words, access, tile_of, np.empty(0, dtype=np.int64), (tile_of, words[access]))


def collected(tiles: Tiles, connection: Connection, keeps: bool) -> Accesses:
    """Return the updates that take the partial sums of an output from its tiles."""
    groups: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
    end = int(tiles.starts.max()) + 1
    received: defaultdict[int, set[int]] = defaultdict(set)
    entering: list[tuple[int, int]] = []
    for tile, (instance, start) in enumerate(zip(tiles.instances.tolist(), tiles.starts.tolist(), strict=True)):
        held, leaves, after = tiles.words[tile], start, frozenset[int]()
        if keeps:
            last = tile + 1 == len(tiles) or tiles.instances[tile + 1] != instance
            leaves, after = (end, after) if last else (int(tiles.starts[tile + 1]), tiles.words[tile + 1])
            new = held - _before(tiles, tile)
            entering += [(tile, word) for word in new & received[instance]]
            received[instance] |= new
        for word in held - after:
            groups[leaves, connection.leader(instance), word].append(tile)
    access, tile_of, words = _pairs(groups)
    parents = [connection.parent(leader) for _, leader, _ in sorted(groups)]
    sums = np.unique(np.column_stack([parents, words]), axis=0, return_inverse=True)[1].reshape(-1)
    came = np.array(entering, dtype=np.int64).reshape(-1, 2)
    return Accesses(words, access, tile_of, sums, (came[:, 0], came[:, 1]))


def _before(tiles: Tiles, tile: int) -> frozenset[int]:
    """Return the words of the instance's previous tile."""
    same = tile > 0 and tiles.instances[tile - 1] == tiles.instances[tile]
    return tiles.words[tile - 1] if same else frozenset()


def _pairs(groups: dict[tuple[int, int, int], list[int]]) -> tuple[Ints, Ints, Ints]:
    """Return accesses in order of time as (access, tile) pairs, and the word of each access."""
    ordered = sorted(groups)
    access = np.repeat(np.arange(len(ordered)), [len(groups[key]) for key in ordered])
    tile = np.array([tile for key in ordered for tile in groups[key]], dtype=np.int64)
    return access, tile, np.array([word for _, _, word in ordered], dtype=np.int64)


def any_of(flags: Flags, groups: Ints, count: int) -> Flags:
    """Return whether some flag of each group is set, [group, draw]; False for groups without flags.

    Args:
        flags: [n, draw].
        groups: group of each, [n].
    """
    return sum_of(flags, groups, count) > 0


def sum_of(flags: Flags, groups: Ints, count: int) -> Ints:
    """Return the number of flags of each group that are set, [group, draw]."""
    zeros = np.zeros((count, flags.shape[1]), dtype=np.int64)
    if len(groups):
        order = np.argsort(groups, kind="stable")
        starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
        zeros[groups[order][starts]] = np.add.reduceat(flags[order], starts, axis=0, dtype=np.int64)
    return zeros
