"""Compiled choice of loop orders, one mapping at a time.

Orders of a block with the loops m x 2, n x 4, k x 2. The problem is a matrix product A[m, k] B[k, n]. A row is a class:

    row   order, outermost first    stationary                 pJ moved
    0     m, n, k                   Z over k                   40 + 40 + 20 / 2 = 90
    1     m, k, n                   A over n                   40 / 4 + 40 + 20 = 70
    2     n, k, m                   B over m                   40 + 40 / 2 + 20 = 80

Here A and B would cost 40 pJ and Z 20 pJ if nothing stayed in place. `choose` takes row 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.compiled import compiled
from tilewright.mapspace.batch import Bools, Floats, Ints, Positions
from tilewright.mapspace.rules.tables import NONE, Terms, tile_words


class Blocks(NamedTuple):
    """Constants of a map space. Axes: S slots, B blocks, E entries, T tensors, D dimensions."""

    terms: Terms
    slot: Ints
    """[B]: slot of each block of loops."""
    slot_entry: Ints
    """[S]."""
    spatial: Bools
    """[S]."""
    indexes: Bools
    """[T, D]: the dimension indexes the tensor."""
    read_pj: Floats
    """[E, T]: pJ per word read; 0 where the entry may not keep the tensor."""
    write_pj: Floats
    """[E, T]: pJ per word written."""


class OrderCatalog(NamedTuple):
    """Catalogue of K loop orders; orders of one block and one set of non-unit loops are consecutive."""

    first: Ints
    """[C]: index of the first order of each block and set of non-unit loops."""
    choices: Ints
    """[C]: number of orders."""
    orders: Positions
    """[K, D]."""
    stationary: Bools
    """[K, T, D]: the tensor is stationary while the loop runs."""
    slides: Ints
    """[K, T]: dimension of the window that the tensor slides along; -1 if none."""


class OrderScratch(NamedTuple):
    """Scratch arrays for one mapping."""

    reusable: Bools
    """[T]: kept by an inner entry and not moved since, so that it may be stationary."""
    energy: Floats
    """[T]: pJ of all words that move if the tensor is not stationary; 0 if irrelevant."""
    words: Floats
    """[T]: words of the inner tile."""
    inside: Ints
    """[1, D]: sizes of the inner tile."""


@compiled
def choose(
    blocks: Blocks,
    catalog: OrderCatalog,
    numbers: Ints,
    trips: Ints,
    keep: Bools,
    order: Positions,
    scratch: OrderScratch,
) -> None:
    """Write the order [n, B, D] of every block, innermost first, that moves words of minimum energy.

    Args:
        numbers: [n, B]: place of the block's loops in the catalogue.
    """
    tensors, dims = blocks.indexes.shape
    for n in range(len(trips)):
        for t in range(tensors):
            scratch.reusable[t] = False
        for d in range(dims):
            scratch.inside[0, d] = 1
        inner_slot, inner_entry = trips.shape[1], keep.shape[1]
        for block in range(len(blocks.slot) - 1, -1, -1):
            slot = blocks.slot[block]
            entry = blocks.slot_entry[slot]
            while inner_slot > slot + 1:
                inner_slot -= 1
                for d in range(dims):
                    scratch.inside[0, d] *= trips[n, inner_slot, d]
            for t in range(tensors):
                for e in range(entry, inner_entry):
                    scratch.reusable[t] |= keep[n, e, t]
            inner_entry = entry
            first, count = catalog.first[numbers[n, block]], catalog.choices[numbers[n, block]]
            best = first
            if count > 1:
                for t in range(tensors):
                    scratch.energy[t] = 0.0
                    if scratch.reusable[t]:
                        scratch.words[t] = tile_words(blocks.terms, t, scratch.inside, NONE)
                        scratch.energy[t] = scratch.words[t] * _word_pj(blocks, n, slot, entry, t, trips, keep)
                least = np.inf
                for row in range(first, first + count):
                    moved = _moved(blocks, catalog, row, n, slot, trips, scratch)
                    if moved < least:
                        best, least = row, moved
            for d in range(dims):
                order[n, block, d] = catalog.orders[best, d]
                if trips[n, slot, d] > 1:
                    for t in range(tensors):
                        if blocks.indexes[t, d]:
                            scratch.reusable[t] = False


@compiled
def _moved(
    blocks: Blocks, catalog: OrderCatalog, row: int, n: int, slot: int, trips: Ints, scratch: OrderScratch
) -> float:
    """Return the pJ of the words that move into the inner tiles while a block runs once."""
    total = 0.0
    for t in range(len(scratch.energy)):
        if scratch.energy[t] > 0:
            stays = 1.0
            for d in range(trips.shape[2]):
                if catalog.stationary[row, t, d]:
                    stays *= trips[n, slot, d]
            part = scratch.energy[t] / stays
            window = catalog.slides[row, t]
            if window >= 0:
                trip_count = trips[n, slot, window]
                scratch.inside[0, window] *= trip_count
                part *= tile_words(blocks.terms, t, scratch.inside, NONE) / (scratch.words[t] * trip_count)
                scratch.inside[0, window] //= trip_count
            total += part
    return total


@compiled
def _word_pj(blocks: Blocks, n: int, slot: int, entry: int, tensor: int, trips: Ints, keep: Bools) -> float:
    """Return pJ per word that moves into the tiles inside a block, both memories, over all instances."""
    kept, supplier = entry, entry - 1
    while not keep[n, kept, tensor]:
        kept += 1
    while not keep[n, supplier, tensor]:
        supplier -= 1
    suppliers = between = instances = 1.0  # `between`: sub-clusters of one supplier that need different words
    for outer in range(slot):
        if blocks.spatial[outer]:
            beyond = blocks.slot_entry[outer] < supplier
            for d in range(trips.shape[2]):
                instances *= trips[n, outer, d]
                if beyond:
                    suppliers *= trips[n, outer, d]
                elif blocks.indexes[tensor, d]:
                    between *= trips[n, outer, d]
    given: float = blocks.read_pj[supplier, tensor] * suppliers * between
    taken: float = blocks.write_pj[kept, tensor] * instances
    return given + taken
