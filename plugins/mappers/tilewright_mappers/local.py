"""`local`: one greedy pass; as parallel as can be, then memories filled from the inside, then orders."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.mapspace.batch import Floats, Ints, MappingBatch, Positions
from tilewright.mapspace.constructive.placement import Spreading, reuse_orders, spatial_slots, temporal_slots
from tilewright.mapspace.counting import prime_powers
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.mapper import Proposals, Run, Task
from tilewright_mappers.marvel import words_moved


@dataclass(frozen=True)
class LocalMapper:
    """One mapping, built without asking for a price; one for each choice of what is kept."""

    def search(self, task: Task, run: Run) -> Proposals:
        yield MappingBatch.join([_built(each) for each in Spreading.each(task.space, run.rng)])


def _built(spreading: Spreading) -> MappingBatch:
    space = spreading.space
    row = spreading.start
    for slot in reversed(spatial_slots(space)):
        row = _widest(spreading, row, slot)
    for slot in reversed(temporal_slots(space)[1:]):
        row = _filled(spreading, row, slot)
    return spreading.batch(row, _orders(space, row))


def _widest(spreading: Spreading, row: Ints, slot: int) -> Ints:
    """The row split over one fanout as much as can be; of equals that which reduces least, of large dimensions."""
    names = spreading.space.problem.dimension_names
    reduced = [dim for dim, name in enumerate(names) if name not in spreading.space.problem.output.dimensions]
    rows = spreading.into(slot, row)
    sizes = np.array(spreading.space.problem.sizes)
    rank = np.lexsort(
        ((rows[:, slot] > 1) @ sizes, -rows[:, slot][:, reduced].prod(axis=1), rows[:, slot].prod(axis=1))
    )
    return rows[rank[-1:]]


def _filled(spreading: Spreading, row: Ints, slot: int) -> Ints:
    """The row with prime factors moved into a slot one by one, each time the one that saves most, while one fits."""
    while True:
        rows = np.concatenate([row[:0], *_steps(spreading, row, slot)])
        rows = rows[spreading.fits(rows)]
        if not len(rows):
            return row
        best = int(_words_into(spreading.space, rows, slot).argmin())
        row = rows[best : best + 1]


def _steps(spreading: Spreading, row: Ints, slot: int) -> list[Ints]:
    """The row with one prime factor moved from home into the slot."""
    found = []
    for dim, size in enumerate(spreading.space.problem.sizes):
        source = int(spreading.home[dim])
        for prime, _ in prime_powers(size):
            if source in (-1, slot) or prime == 1 or row[0, source, dim] % prime:
                continue
            after = row.copy()
            after[:, source, dim] //= prime
            after[:, slot, dim] *= prime
            allowed = spreading.space.allowed(after, source, dim) & spreading.space.allowed(after, slot, dim)
            found.append(after[allowed])
    return found


def _words_into(space: MapSpace, rows: Ints, slot: int) -> Floats:
    """Words that move into the tiles around a slot's loops, with the best order outside."""
    tiles = rows[:, slot:].prod(axis=1)
    outside = np.array(space.problem.sizes) // tiles
    words = [words_moved(space.problem, tiles, outside, order) for order in reuse_orders(space.problem)]
    return np.asarray(np.min(words, axis=0))


def _orders(space: MapSpace, row: Ints) -> Positions:
    """In every slot the order that moves the fewest words into the tile within."""
    order = np.empty((1, len(space.skeleton), row.shape[2]), dtype=np.int8)
    order[:] = np.arange(row.shape[2], dtype=np.int8)
    for slot in temporal_slots(space):
        tiles = row[:, slot + 1 :].prod(axis=1)
        choices = reuse_orders(space.problem)
        words = [words_moved(space.problem, tiles, row[:, slot], choice)[0] for choice in choices]
        order[0, space.slots[slot].entry] = choices[int(np.argmin(words))]
    return order
