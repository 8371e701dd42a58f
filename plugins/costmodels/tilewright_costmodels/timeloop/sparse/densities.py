"""Distributions of nonzero values: how many of them a tile holds, and how probably it holds none."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from tilewright.mapspace.batch import Floats

Flags = NDArray[np.bool_]
Counts = NDArray[np.int64] | NDArray[np.int32]
Box = tuple[int, ...]
"""Extents of a tile along the ranks of its tensor."""

MAX_EXACT = 1024
"""Words of a tensor up to which probabilities are ratios of whole binomials."""
MAX_DRAWN = 32
"""Words of a tile up to which they are, too, in tensors of any size."""


class Distribution(ABC):
    """Where the nonzero values of one tensor are.

    Args of methods: `tile`, the tile; `within` and `held`, a surrounding tile and the nonzeros that it is known to hold.
    """

    name: str

    @abstractmethod
    def occupancies(self, tile: Box) -> dict[int, float]:
        """Return number of nonzeros -> probability, ascending, without impossible numbers."""

    @abstractmethod
    def empty(self, tile: Box, within: Box | None = None, held: int = 0) -> float:
        """Return the probability that the tile holds no nonzero."""

    def empties(self, tile: Box, within: Box, held: Sequence[int]) -> Floats:
        """Return `empty` for ascending numbers of nonzeros, [n]."""
        return np.array([self.empty(tile, within, count) for count in held])

    @abstractmethod
    def most(self, tile: Box) -> int:
        """Return the greatest number of nonzeros."""

    @abstractmethod
    def mean(self, tile: Box) -> float:
        """Return the expected number of nonzeros."""

    def may_be_empty(self, tile: Box) -> bool:
        """Return whether Timeloop takes the tile to be possibly empty."""
        return True


class Structured(Distribution):
    """Every tile has the mean number of nonzeros, or a whole number next to it."""

    name = "fixed_structured"

    def __init__(self, density: float) -> None:
        self.density = density

    def occupancies(self, tile: Box) -> dict[int, float]:
        whole, fraction = self._split(tile)
        return {count: part for count, part in ((whole, 1 - fraction), (whole + 1, fraction)) if part}

    def empty(self, tile: Box, within: Box | None = None, held: int = 0) -> float:
        density = self.density if within is None else held / math.prod(within)
        expected = math.prod(tile) * density
        return 1 - expected if expected < 1 else 0.0

    def most(self, tile: Box) -> int:
        whole, fraction = self._split(tile)
        return whole if 1 - fraction >= 1 else whole + 1

    def mean(self, tile: Box) -> float:
        return math.prod(tile) * self.density

    def may_be_empty(self, tile: Box) -> bool:
        return self.mean(tile) < 1

    def _split(self, tile: Box) -> tuple[int, float]:
        expected = self.mean(tile)
        return math.floor(expected), expected - math.floor(expected)


class Uniform(Distribution):
    """A fixed number of nonzeros, anywhere in the tensor with equal probability (hypergeometric)."""

    name = "hypergeometric"

    def __init__(self, density: float, words: int) -> None:
        self.words, self.nonzeros = words, math.ceil(density * words)

    @lru_cache(maxsize=4096)  # noqa: B019 (lives as long as the evaluator)
    def occupancies(self, tile: Box) -> dict[int, float]:
        size = math.prod(tile)
        least, most = max(0, size - (self.words - self.nonzeros)), self.most(tile)
        if most - least > MAX_EXACT:  # terms far from the mean are negligible
            share = size / self.words
            spread = math.sqrt(self.nonzeros * share * (1 - share)) + 1
            least = max(least, math.floor(self.nonzeros * share - 40 * spread))
            most = min(most, math.ceil(self.nonzeros * share + 40 * spread))
        counts = range(least, most + 1)
        if self.words <= MAX_EXACT or size <= MAX_DRAWN:
            terms = [hypergeometric(count, size, self.nonzeros, self.words) for count in counts]
        else:
            terms = self._terms(size, least, most).tolist()
        return {count: term for count, term in zip(counts, terms, strict=True) if term}

    def _terms(self, size: int, least: int, most: int) -> Floats:
        """Return the probabilities of `least` to `most` nonzeros, by the ratio of one to the next."""
        common = min(max(size * self.nonzeros // self.words, least), most)
        counts = np.arange(least, most, dtype=np.float64)
        ratios = (self.nonzeros - counts) * (size - counts) / (counts + 1)
        ratios /= self.words - self.nonzeros - size + counts + 1
        above, below = np.cumprod(ratios[common - least :]), np.cumprod(1 / ratios[: common - least][::-1])[::-1]
        return np.concatenate([below, [1.0], above]) * hypergeometric(common, size, self.nonzeros, self.words)

    def empty(self, tile: Box, within: Box | None = None, held: int = 0) -> float:
        total, marked = (self.words, self.nonzeros) if within is None else (math.prod(within), held)
        return hypergeometric(0, math.prod(tile), marked, total)

    def empties(self, tile: Box, within: Box, held: Sequence[int]) -> Floats:
        total, drawn = math.prod(within), math.prod(tile)
        if len(held) == 0 or total <= MAX_EXACT:
            return super().empties(tile, within, held)
        # one nonzero more leaves (total - held - drawn) / (total - held) of the ways to draw none
        marked = np.arange(held[0], held[-1])
        ratios = np.maximum(total - marked - drawn, 0) / (total - marked)
        shares = self.empty(tile, within, held[0]) * np.concatenate([[1.0], np.cumprod(ratios)])
        return np.asarray(shares[np.asarray(held) - held[0]])

    def most(self, tile: Box) -> int:
        return min(math.prod(tile), self.nonzeros)

    @lru_cache(maxsize=4096)  # noqa: B019
    def mean(self, tile: Box) -> float:
        occupancies = self.occupancies(tile)
        return exact_sum(np.array(list(occupancies)) * list(occupancies.values()))

    def may_be_empty(self, tile: Box) -> bool:
        """Return whether the tile is smaller than the tensor.

        Timeloop's lower limit is zero for all of these tiles, even if zeros do not fill them.
        """
        return math.prod(tile) < self.words or self.nonzeros == 0


class Banded(Distribution):
    """A square matrix whose nonzeros are those at most `width` away from the diagonal."""

    name = "banded"

    def __init__(self, width: int, side: int) -> None:
        self.width, self.side = width, side

    @lru_cache(maxsize=4096)  # noqa: B019
    def occupancies(self, tile: Box) -> dict[int, float]:
        height, _ = tile
        rows, edge = self.side // height, -(-self.width // height)
        histogram = Counter[int]()
        for row in range(min(edge + 1, rows)):
            weight = max(rows - 2 * edge, 0) if row == edge else 1 if edge == rows else 2
            for count in self._row(tile, row):
                histogram[count] += weight
        histogram[0] += 0
        tiles = rows * (self.side // tile[1])
        return {count: histogram[count] / tiles for count in sorted(histogram) if histogram[count]}

    def empty(self, tile: Box, within: Box | None = None, held: int = 0) -> float:
        if within is None:
            return self.occupancies(tile).get(0, 0.0)
        return self._empty_within(tile, within, held)

    def most(self, tile: Box) -> int:
        return max(self._keys(tile))

    def mean(self, tile: Box) -> float:
        return math.prod(tile) * self.density

    @cached_property
    def density(self) -> float:
        """Share of the matrix in the band."""
        inside = self.side + sum(2 * (self.side - offset) for offset in range(1, self.width + 1))
        return inside / self.side**2

    @lru_cache(maxsize=4096)  # noqa: B019
    def _keys(self, tile: Box) -> frozenset[int]:
        """Return every occupancy that Timeloop lists, of tiles without weight as well."""
        rows, edge = self.side // tile[0], -(-self.width // tile[0])
        return frozenset({0, *(count for row in range(min(edge + 1, rows)) for count in self._row(tile, row))})

    @lru_cache(maxsize=4096)  # noqa: B019
    def _row(self, tile: Box, row: int) -> tuple[int, ...]:
        """Return the nonzeros of every tile in a row of tiles."""
        height, breadth = tile
        last = row * height + height - 1 + self.width
        return tuple(
            self._inside(row * height, row * height + height, column * breadth, column * breadth + breadth)
            if column * breadth <= last
            else 0
            for column in range(self.side // breadth)
        )

    def _inside(self, top: int, bottom: int, left: int, right: int) -> int:
        """Return the nonzeros in rows [top, bottom) and columns [left, right)."""
        return sum(max(0, min(right, row + self.width + 1) - max(left, row - self.width)) for row in range(top, bottom))

    @lru_cache(maxsize=4096)  # noqa: B019
    def _empty_within(self, tile: Box, within: Box, held: int) -> float:
        """Return the empty share of a tile's sub-tiles, in the first tile of the grid that holds `held` nonzeros.

        Sub-tiles are displaced as in Timeloop: a sub-tile ends where it would end if the tile were at the origin.
        """
        rows, edge = self.side // within[0], -(-self.width // within[0])
        for row in range(min(edge + 1, rows)):
            for column, count in enumerate(self._row(within, row)):
                if count == held:
                    return self._empty_share(tile, within, row * within[0], column * within[1])
        return 1.0

    def _empty_share(self, tile: Box, within: Box, top: int, left: int) -> float:
        offsets = [(i, j) for i in range(0, within[0], tile[0]) for j in range(0, within[1], tile[1])]
        empty = sum(
            self._inside(top + (top + i), tile[0] + (top + i), left + (left + j), tile[1] + (left + j)) == 0
            for i, j in offsets
        )
        return empty / len(offsets)


MAX_COUNTS = 2**26
"""Maximum number of counts that are kept for one tensor's tiles, apart from those of four tiles."""


class Actual(Distribution):
    """Actual data. Means are over all tiles of the array: disjoint ones if their extent divides it, else over every position."""

    name = "data"

    def __init__(self, nonzero: Flags) -> None:
        self.shape = nonzero.shape
        self.sums = np.zeros(
            [extent + 1 for extent in nonzero.shape], np.int32
        )  # a document has fewer than 2^31 values
        self.sums[(slice(1, None),) * nonzero.ndim] = nonzero
        for axis in range(nonzero.ndim):
            np.cumsum(self.sums, axis=axis, out=self.sums)
        self._counts = lru_cache(max(4, min(256, MAX_COUNTS // self.sums.size)))(self._counted)

    def occupancies(self, tile: Box) -> dict[int, float]:
        counts = self._counts(tile)
        values, times = np.unique(counts, return_counts=True)
        return dict(zip(values.tolist(), (times / counts.size).tolist(), strict=True))

    def empty(self, tile: Box, within: Box | None = None, held: int = 0) -> float:
        counts = self._counts(tile)
        if within is None:
            return float((counts == 0).mean())
        return self._empty_within(tile, within).get(held, 1.0)

    def most(self, tile: Box) -> int:
        return int(self._counts(tile).max())

    def mean(self, tile: Box) -> float:
        return float(self._counts(tile).mean())

    def may_be_empty(self, tile: Box) -> bool:
        """Return whether some tile is empty."""
        return bool((self._counts(tile) == 0).any())

    def _counted(self, tile: Box) -> Counts:
        """Return the nonzeros of all tiles, by position."""
        sums = self.sums
        for axis, (extent, side) in enumerate(zip(self.shape, tile, strict=True)):
            side = min(side, extent)  # blocks of an action may reach beyond the data
            starts = _starts(extent, side)
            sums = sums.take(starts + side, axis) - sums.take(starts, axis)
        return sums

    @lru_cache(maxsize=256)  # noqa: B019
    def _empty_within(self, tile: Box, within: Box) -> dict[int, float]:
        """Return nonzeros of surrounding tiles -> share of their tiles that are empty."""
        empty = self._counts(tile) == 0
        for axis, (extent, side, around) in enumerate(zip(self.shape, tile, within, strict=True)):
            starts, inner = _starts(extent, side), _starts(around, side)
            at = np.searchsorted(starts, _starts(extent, around)[:, None] + inner)
            shape = (*empty.shape[:axis], *at.shape, *empty.shape[axis + 1 :])
            empty = empty.take(np.minimum(at, len(starts) - 1).ravel(), axis).reshape(shape).mean(axis=axis + 1)
        held, index = np.unique(self._counts(within), return_inverse=True)
        shares = np.bincount(index.ravel(), empty.ravel()) / np.bincount(index.ravel())
        return dict(zip(held.tolist(), shares.tolist(), strict=True))


def _starts(extent: int, side: int) -> Counts:
    """Return the positions of tiles along an axis."""
    return np.arange(0, extent - side + 1, side if extent % side == 0 else 1)


def words(tile: Box) -> int:
    """Return the words of a tile."""
    return math.prod(tile)


def exact_sum(parts: Floats) -> float:
    """Return the sum, rounded once. Of probabilities, `fsum` is many times as fast if the largest ones come first."""
    return math.fsum(np.sort(parts)[::-1].tolist())


@lru_cache(maxsize=2**16)
def hypergeometric(hits: int, drawn: int, marked: int, total: int) -> float:
    """Return the probability that `drawn` of `total` values contain `hits` of the `marked` ones.

    Source: C. Loader, Fast and accurate computation of binomial probabilities (2000), for large totals.

    >>> hypergeometric(1, 2, 2, 4)
    0.6666666666666666
    """
    if not max(0, drawn + marked - total) <= hits <= min(drawn, marked):
        return 0.0
    if total <= MAX_EXACT or drawn <= MAX_DRAWN:
        ways = math.comb(marked, hits) * math.comb(total - marked, drawn - hits)
        return ways / math.comb(total, drawn)
    share = drawn / total
    return (
        _binomial(hits, marked, share) * _binomial(drawn - hits, total - marked, share) / _binomial(drawn, total, share)
    )


def _binomial(hits: int, tries: int, share: float) -> float:
    """Return C(tries, hits) share**hits (1 - share)**(tries - hits), by the saddle-point expansion."""
    missed = tries - hits
    if share in (0.0, 1.0):
        return float(hits == tries * share)
    if hits == 0:
        return math.exp(tries * math.log1p(-share))
    if missed == 0:
        return math.exp(tries * math.log(share))
    exponent = _stirling_error(tries) - _stirling_error(hits) - _stirling_error(missed)
    exponent -= _deviance(hits, tries * share) + _deviance(missed, tries * (1 - share))
    return math.exp(exponent) * math.sqrt(tries / (2 * math.pi * hits * missed))


@lru_cache(maxsize=2**16)
def _stirling_error(count: int) -> float:
    """Return log(count!) minus Stirling's formula."""
    if count < 16:
        return math.lgamma(count + 1) - (count + 0.5) * math.log(count) + count - 0.5 * math.log(2 * math.pi)
    square = count * count
    return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / (1188 * square)) / square) / square) / square) / count


def _deviance(count: float, mean: float) -> float:
    """Return count log(count / mean) + mean - count without cancellation."""
    if abs(count - mean) >= 0.1 * (count + mean):
        return count * math.log(count / mean) + mean - count
    ratio = (count - mean) / (count + mean)
    total, term, step = (count - mean) * ratio, 2 * count * ratio, 1
    while True:
        term *= ratio * ratio
        step += 2
        following = total + term / step
        if following == total:
            return total
        total = following
