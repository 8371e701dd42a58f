"""Words that move between levels, for many mappings at once, of a tensor whose tiles may overlap."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tilewright.mapspace.batch import Bools, Floats
from tilewright_costmodels.timeloop.operand import Operand

if TYPE_CHECKING:
    from tilewright_costmodels.timeloop.arrays import Chunk

Indices = NDArray[np.intp]


@dataclass
class Flow:
    """Traffic of one tensor between a level and the next; arrays over mappings."""

    content: Floats
    served: Floats
    share: Floats
    links: Floats | None


@dataclass
class Nest:
    """All temporal loops, outermost first; one row per loop position that steps in some mapping.

    `dims` [loop, mapping] says which dimension a mapping has there; `trips` how often; `outside` the product of trips
    of all loops outside; `ends[level]` the number of rows up to and including the level.
    """

    dims: Indices
    trips: Floats
    tiles: Floats
    outside: Floats
    ends: list[int]
    iterations: list[Floats]
    """Per level the product of all trips up to and including it."""

    @cached_property
    def turns(self) -> Bools:
        return self.trips > 1

    @cached_property
    def weights(self) -> Floats:
        """How often each loop advances: (trips - 1) x the trips of all loops outside."""
        return (self.trips - 1) * self.outside


class Moves:
    """Shifts of a tensor whose tiles may overlap (see `nest.shifts` for the rule).

    A shift is a vector, one component per rank; the mixed-radix number that it makes is enough to compare two.
    """

    def __init__(self, chunk: Chunk, operand: Operand) -> None:
        self.chunk = chunk
        self.operand = operand
        nest = chunk.nest
        self.lengths = nest.tiles * nest.turns
        """Iterations that every loop advances by, [loop, mapping]; 0 for loops of one trip."""
        self.steps = operand.radix[nest.dims] * self.lengths
        self.sums = np.cumsum(self.steps, axis=0)
        self.turning = np.where(nest.turns, np.arange(1, len(nest.dims) + 1)[:, None], 0)
        self.moving = np.where(self.steps != 0, self.turning, 0)

    def flow(self, level: int, deliveries: Floats) -> Flow:
        """Traffic to the next level."""
        chunk, operand, nest = self.chunk, self.operand, self.chunk.nest
        end = nest.ends[level]
        children = chunk.splits[level].children
        volume = chunk.volume(operand, level + 1)
        last = self.moving[:end].max(axis=0, initial=0) - 1  # c, or -1
        moved = last >= 0
        if not moved.any():
            return Flow(volume * deliveries, volume * children, volume, None)
        mapping = np.arange(len(chunk.rows))
        step = self._vector(last, mapping) * moved
        again = np.where(moved, nest.trips[last, mapping] - 1, 0.0)
        outside = np.where(moved, nest.outside[last, mapping], 1.0)
        overlap = moved.astype(np.float64)
        for side, move in zip(operand.sides(chunk.tile[chunk.plans[level + 1].start]), step, strict=True):
            overlap = overlap * np.maximum(0.0, side - move)
        # the shift when loop x advances: its step less those of all loops inside it, which start over
        shift = self.steps[:end] + self.sums[:end] - self.sums[end - 1]
        weight = np.where(np.arange(end)[:, None] < last, nest.weights[:end], 0.0)
        zero = shift == 0
        credited = shift == np.where(moved, self.steps[last, mapping], np.nan)
        still = (weight * zero).sum(axis=0)
        same = (weight * credited).sum(axis=0)
        base = volume * (outside * (1 + again) - still) - overlap * (again * outside + same)
        flow = Flow(base * deliveries, base * children, base, None)
        if chunk.pricer.link_transfers and chunk.splits[level].loops:
            innermost = self.turning[:end].max(axis=0, initial=0) - 1
            rows = np.flatnonzero(moved & (last == innermost) & (chunk.splits[level].children > 1))
            if len(rows):
                link = Links(
                    step=step[:, rows],
                    again=again[rows],
                    volume=volume[rows],
                    overlap=overlap[rows],
                    like=np.where(overlap == 0, outside - still, same)[rows],
                    weight=np.where(zero, 0.0, weight)[:, rows],
                    credited=credited[:, rows],
                )
                self._link(flow, level, deliveries, rows, link)
        return flow

    def _vector(self, loop: Indices, mapping: Indices) -> Floats:
        """The step of one loop per mapping, [rank, mapping]."""
        matrix = self.operand.matrix.astype(np.float64)
        return np.asarray(matrix[:, self.chunk.nest.dims[loop, mapping]] * self.lengths[loop, mapping])

    def _link(self, flow: Flow, level: int, deliveries: Floats, rows: Indices, link: Links) -> None:
        """Take off what neighbours pass on, of mappings whose innermost turning loop moves the tensor."""
        chunk, operand = self.chunk, self.operand
        reach = np.zeros((len(operand.ranks), len(rows)))
        for entry, dim, trips in chunk.splits[level].loops:
            if operand.relevant[dim]:
                reach += operand.matrix[:, dim, None] * ((trips - 1) * chunk.split_tile[entry][dim])[rows]
        fresh = link.volume - link.overlap
        links = np.zeros(len(chunk.rows))

        def pass_on(words: Floats, move: Floats, on: Indices) -> None:
            """`words` [row] of each mapping `rows[on]` arrive by the shift `move` [rank, row]."""
            near = (words > 0) & (np.abs(move) <= reach[:, on]).all(axis=0)
            chosen = rows[on[near]]
            if not len(chosen):
                return
            reduced, linked = chunk.sharing(operand, level, chosen, move[:, near])
            flow.content[chosen] -= words[near] * (deliveries[chosen] - reduced)
            flow.served[chosen] -= words[near] * linked
            links[chosen] += words[near] * linked

        pass_on(link.again * fresh * link.like, link.step, np.arange(len(rows)))
        end = chunk.nest.ends[level]
        inner = np.zeros((len(operand.ranks), len(rows)))  # the steps of all loops inside x
        for x in range(end - 1, -1, -1):
            step = self._vector(np.full(len(rows), x), rows)
            on = np.flatnonzero((link.weight[x] > 0) & ((link.overlap == 0) | link.credited[x]))
            if len(on):
                words = link.weight[x, on] * np.where(link.credited[x, on], fresh[on], link.volume[on])
                pass_on(words, step[:, on] - inner[:, on], on)
            inner += step
        if links.any():
            flow.share = flow.served / chunk.splits[level].children
            flow.links = links


@dataclass(frozen=True)
class Links:
    """What `Moves` knows of the mappings in which neighbours may pass words on.

    `step`: of the innermost loop; `again`: its trips less one; `like`: its runs whose first step follows an equal set
    of words; `weight` [loop, mapping]: how often outer loops advance with a shift; `credited`: with the same shift.
    """

    step: Floats
    again: Floats
    volume: Floats
    overlap: Floats
    like: Floats
    weight: Floats
    credited: Bools
