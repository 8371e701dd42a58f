"""Rank correlations of two columns of numbers: Kendall's tau-b and Spearman's rho, with ties."""

from __future__ import annotations

import math

import numpy as np

from tilewright.mapspace.batch import Floats, Ints

DIGITS = 12
"""Significant digits by which costs are distinguished, since models add up energies in different orders."""


def ranks(values: Floats) -> Ints:
    """Return the dense rank of each value, int64 [n], from 0; equal values share a rank.

    Values that agree to `DIGITS` significant digits are equal.
    """
    with np.errstate(divide="ignore"):
        power = np.where(values == 0, 0.0, np.floor(np.log10(np.abs(values))))
    scale = 10.0 ** (power - DIGITS + 1)
    return np.unique(np.round(values / scale) * scale, return_inverse=True)[1].astype(np.int64)


def kendall(first: Floats, second: Floats) -> float | None:
    """Return Kendall's tau-b of two columns [n] in O(n log n); None if one of them is constant.

    tau-b = (C - D) / sqrt((N - T1) (N - T2)), with N = n (n - 1) / 2 pairs. C pairs have the same order in both columns, and D
    the opposite one. T1 pairs are equal in the first column, and T2 in the second (Kendall 1945; Knight 1966 counts them).
    """
    one, other = ranks(first), ranks(second)
    pairs = len(one) * (len(one) - 1) // 2
    equal = [_equal_pairs(column) for column in (one, other)]
    both = _equal_pairs(one * (int(other.max(initial=0)) + 1) + other)
    opposite = _inversions(other[np.lexsort((other, one))])
    alike = pairs - sum(equal) + both - opposite
    scale = math.sqrt((pairs - equal[0]) * (pairs - equal[1]))
    return (alike - opposite) / scale if scale else None


def spearman(first: Floats, second: Floats) -> float | None:
    """Return Spearman's rho of two columns [n]: Pearson's correlation of their mean ranks; None if one is constant."""
    middle = (len(first) - 1) / 2
    one, other = (_mean_ranks(ranks(column)) - middle for column in (first, second))
    scale = math.sqrt(float(one @ one) * float(other @ other))
    return float(one @ other) / scale if scale else None


def _mean_ranks(dense: Ints) -> Floats:
    """Return the ranks that equal values would have on average if they were distinct, float64 [n]."""
    counts = np.bincount(dense)
    return np.asarray((np.cumsum(counts) - (counts + 1) / 2)[dense], dtype=np.float64)


def _equal_pairs(dense: Ints) -> int:
    counts = np.unique(dense, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def _inversions(dense: Ints) -> int:
    """Return the number of pairs whose earlier rank is the higher one.

    The ranks are sorted by their bits, the highest first. At each bit, an inversion is a one before a zero of the same
    higher bits.
    """
    total = 0
    for bit in reversed(range(int(dense.max(initial=0)).bit_length())):
        higher, ones = dense >> (bit + 1), (dense >> bit) & 1
        starts = np.flatnonzero(np.diff(higher, prepend=-1))
        before = np.cumsum(ones) - ones
        here = before - np.repeat(before[starts], np.diff(starts, append=len(dense)))
        total += int(here[ones == 0].sum())
        dense = dense[np.argsort(dense >> bit, kind="stable")]
    return total
