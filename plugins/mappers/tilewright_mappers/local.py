"""`local`: one greedy pass; as parallel as can be, then memories filled from the inside, then orders."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilewright.mapspace.batch import Floats, Positions
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.placement import Placement, moves_of, reuse_orders
from tilewright.plugin import Proposals, Run, Task
from tilewright_mappers.marvel import words_moved


class Local:
    """Construction of one mapping without cost evaluations, for each choice of kept tensors."""

    def search(self, task: Task, run: Run) -> Proposals:
        yield Candidates.join([built(placement) for placement in Placement.each(task.space, run.rng)])


def built(placement: Placement) -> Candidates:
    """Return the mapping for one choice of kept tensors."""
    row = placement.start
    for slot in reversed(placement.space.spatial_slots):
        row = _widest(placement, row, slot)
    for slot in reversed(placement.space.temporal_slots[1:]):
        row = _filled(placement, row, slot)
    return replace(row, order=_orders(row))


def _widest(placement: Placement, row: Candidates, slot: int) -> Candidates:
    """The row unrolled over one fanout as much as can be; of equals that which reduces least, of large dimensions.

    Where the number of unrolled loops is limited, the fewest loops go before large dimensions: other fanouts need some, too.
    """
    problem = placement.space.problem
    reduced = [dim for dim, name in enumerate(problem.dimension_names) if name not in problem.output.dimensions]
    rows = placement.into(slot, row)
    trips = rows.trips[:, slot]
    loops = np.zeros(len(rows)) if placement.space.max_unrolled_loops is None else (trips > 1).sum(axis=1)
    keys = (trips > 1) @ np.array(problem.sizes), -loops, -trips[:, reduced].prod(axis=1), trips.prod(axis=1)
    rank = np.lexsort(keys)
    return rows.take(rank[-1:])


def _filled(placement: Placement, row: Candidates, slot: int) -> Candidates:
    """Return the row after moving prime factors into a slot while one fits, each time the one that saves most."""
    while True:
        rows = Candidates.join([row.take(slice(0, 0)), *_steps(placement, row, slot)])
        rows = rows.take(rows.fits())
        if not len(rows):
            return row
        best = int(_words_into(rows, slot).argmin())
        row = rows.take(slice(best, best + 1))


def _steps(placement: Placement, row: Candidates, slot: int) -> list[Candidates]:
    """The row with one prime factor moved from its source slot into the slot."""
    return [
        moves_of(row, dim, [prime], source, slot)
        for dim, source in enumerate(placement.source_slot.tolist())
        for prime in placement.space.primes(dim)
        if source not in (-1, slot)
    ]


def _words_into(rows: Candidates, slot: int) -> Floats:
    """Words that move into the tiles around a slot's loops, with the best order outside."""
    problem = rows.space.problem
    tiles = rows.trips[:, slot:].prod(axis=1)
    outside = -(-np.array(problem.sizes) // tiles)
    return np.asarray(np.min([words_moved(problem, tiles, outside, order) for order in reuse_orders(problem)], axis=0))


def _orders(row: Candidates) -> Positions:
    """In every block the order that moves the fewest words into the tile within."""
    space, choices = row.space, reuse_orders(row.space.problem)
    blocks = []
    for slot in space.temporal_slots:
        tiles = row.trips[:, slot + 1 :].prod(axis=1)
        words = [words_moved(space.problem, tiles, row.trips[:, slot], choice)[0] for choice in choices]
        blocks.append(choices[int(np.argmin(words))])
    order = np.array(blocks, dtype=np.int8).reshape(1, len(blocks), row.trips.shape[2])
    return space.lawful(order)
