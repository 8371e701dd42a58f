"""Relaxed mappings: real vectors for mappings of one map space, and projection of vectors onto the space."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.space import MapSpace

MIN_GAIN = 1e-9
"""Smallest reduction of the squared distance that counts."""
MAX_MOVES = 200
"""Maximum number of factors tried per projection."""


@dataclass(frozen=True)
class RelaxedSpace:
    """Vectors of the mappings of a space.

    A vector holds log2 of the sizes [dimension] and log2 of the trips [slot, dimension]. Then follow the
    positions of the loops in their blocks from outside [block, dimension], and 1 or 0 for each optional
    kept tensor.
    """

    space: MapSpace

    @cached_property
    def parts(self) -> tuple[slice, slice, slice]:
        """Positions of trips, positions and kept tensors in a vector."""
        dims, slots, blocks = len(self.space.problem.sizes), len(self.space.slots), len(self.space.temporal_slots)
        ends = np.cumsum([dims, slots * dims, blocks * dims, int(self.space.keeps[1].sum())]).tolist()
        return slice(ends[0], ends[1]), slice(ends[1], ends[2]), slice(ends[2], ends[3])

    @property
    def length(self) -> int:
        return int(self.parts[2].stop)

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """Lowest and highest log2 of the trips, [slot, dimension]."""
        lowest, highest, _, most = self.space.bounds
        return np.log2(lowest), np.log2(np.minimum(highest, most[:, None]))

    def vectors(self, rows: Candidates) -> Floats:
        """Return the vectors of candidates, float64 [n, length]."""
        n, dims = len(rows), len(self.space.problem.sizes)
        return np.concatenate(
            [
                np.broadcast_to(np.log2(self.space.problem.sizes), (n, dims)),
                np.log2(rows.trips).reshape(n, -1),
                np.argsort(rows.orders, axis=2).reshape(n, -1),
                rows.keeps[:, self.space.keeps[1]],
            ],
            axis=1,
        )

    def project(self, rows: Candidates, vectors: Floats) -> Candidates:
        """Return mappings near the vectors, reached from `rows` by legal moves of single prime factors.

        Each step makes the move that brings a row nearest to its vector. The moves satisfy all rules of
        the space, and the tiles fit the memories. Loops are sorted by position; kept tensors do not change.
        """
        trips, positions, _ = self.parts
        n, dims = len(rows), len(self.space.problem.sizes)
        order = np.argsort(vectors[:, positions].reshape(n, -1, dims), axis=2, kind="stable").astype(np.int8)
        rows = replace(rows, order=self.space.lawful(order))
        target = vectors[:, trips].reshape(n, -1, dims)
        blocked = np.zeros((n, *self._factors.shape), dtype=np.bool_)
        moving, after = np.arange(n), rows.trips.copy()
        for _ in range(MAX_MOVES):
            gain = np.where(blocked[moving], 0.0, self._gains(after[moving], target[moving])).reshape(len(moving), -1)
            best = gain.argmax(axis=1)
            improving = gain[np.arange(len(moving)), best] > MIN_GAIN
            moving, best = moving[improving], best[improving]
            if not len(moving):
                break
            at = np.unravel_index(best, self._factors.shape)
            moved = replace(rows.take(moving), trips=after[moving]).move(at[2], self._factors[at], at[0], at[1])
            fits = moved.fits()
            after[moving[fits]] = moved.trips[fits]
            blocked[moving[fits]] = False
            blocked[(moving, *at)] = ~fits
        return replace(rows, trips=after)

    @cached_property
    def _factors(self) -> Ints:
        """Prime factor of every move, [source, target, dimension, prime]; 0 pads the primes."""
        slots, dims = len(self.space.slots), len(self.space.problem.sizes)
        primes = [list(self.space.primes(dim)) for dim in range(dims)]
        most = max(1, *map(len, primes))
        table = np.array([prime + [0] * (most - len(prime)) for prime in primes], dtype=np.int64)
        factors = np.broadcast_to(table, (slots, slots, dims, most)).copy()
        factors[np.arange(slots), np.arange(slots)] = 0
        return factors

    def _gains(self, trips: Ints, target: Floats) -> Floats:
        """Return how much each move reduces the squared distance to `target`, [n, *factors]; -inf if a rule forbids it."""
        lowest, highest, least, most = self.space.bounds
        factor, logs = self._factors, np.log2(np.maximum(self._factors, 1))
        used, excess = trips.prod(axis=2), np.log2(trips) - target
        source, sink = trips[:, :, None, :, None], trips[:, None, :, :, None]
        of_source, of_sink = used[:, :, None, None, None], used[:, None, :, None, None]
        allowed: Bools = (factor > 0) & (source % np.maximum(factor, 1) == 0)
        allowed &= (source >= factor * lowest[:, None, :, None]) & (sink * factor <= highest[None, :, :, None])
        allowed &= (of_source >= factor * least[:, None, None, None]) & (of_sink * factor <= most[None, :, None, None])
        gain = 2 * logs * (excess[:, :, None, :, None] - excess[:, None, :, :, None] - logs)
        return np.where(allowed, gain, -np.inf)
