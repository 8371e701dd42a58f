"""Problem as arrays for the kernels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from tilewright.compiled import for_kernel
from tilewright.mapspace.batch import Floats, Ints
from tilewright.mapspace.counting import distinct_values
from tilewright.mapspace.factoring.cuts import divisors
from tilewright.schema.problem import Problem, Tensor
from tilewright_mappers.optimal.kernel.tables import Shape

MOST_TILES = 4096
"""Maximum tiles along one coordinate whose union is computed (Lemma 10)."""


def shape_of(problem: Problem, ragged: bool) -> Shape:
    """Return the problem as arrays."""
    sizes = problem.sizes
    tensors, dims = problem.tensors, len(sizes)
    trips = [_trips(size, ragged) for size in sizes]
    lefts = [_tiles(size, ragged) for size in sizes]
    moves = np.zeros((len(tensors), dims), np.bool_)
    rank = np.full((len(tensors), dims), -1, np.int64)
    coefficient = np.zeros((len(tensors), dims), np.int64)
    start, dimension, factor, last, odd, vague, blind = [0], [], [], [], [], [], []
    first, step, covered, least = [], [], [np.zeros(0)], []
    windows = 0
    for t, tensor in enumerate(tensors):
        strange = unclear = sliding = False
        tables = _covered_by_tiles(problem, tensor, ragged)
        least.append(math.prod(float(table[0]) for table in tables))
        for place, table in zip(tensor.projection, tables, strict=True):
            terms = [(problem.dimension_names.index(name), c) for name, c in place.terms.items()]
            first += [sum(map(len, covered))] * len(terms)
            step += [math.prod(len(lefts[d]) for d, _ in terms[:k]) for k in range(len(terms))]
            covered.append(table)
            dimension += [d for d, _ in terms]
            factor += [c for _, c in terms]
            last += [False] * (len(terms) - 1) + [True]
            real = [(d, c) for d, c in terms if sizes[d] > 1]
            strange |= any(rank[t, d] >= 0 for d, _ in real)
            strange |= tensor.is_output and any(moves[t, d] for d, _ in real)
            unclear |= tensor.is_output and (len(real) > 1 or any(c > 1 for _, c in real))
            if ragged:  # with ragged tiles these rules hold for equal tiles only
                strange |= unclear or any(moves[t, d] for d, _ in real)
                sliding |= len(real) > 1
            if len(real) > 1:
                strange |= any(moves[t, d] for d, _ in real)
                for d, c in real:
                    rank[t, d], coefficient[t, d] = windows, c
                windows += 1
            for d, _ in terms:
                moves[t, d] = True
        start.append(len(dimension))
        odd.append(strange)
        vague.append(unclear and not strange)
        blind.append(sliding and not strange)
    return Shape(
        ragged=ragged,
        sizes=ints(sizes),
        trip=_padded(trips),
        left=_padded(lefts),
        stride=ints([math.prod(len(row) for row in lefts[:d]) for d in range(dims)]),
        moves=for_kernel(moves),
        rank=for_kernel(rank),
        coefficient=for_kernel(coefficient),
        start=ints(start),
        dimension=ints(dimension),
        factor=ints(factor),
        last=for_kernel(np.array(last, np.bool_)),
        output=for_kernel(np.array([tensor.is_output for tensor in tensors])),
        odd=for_kernel(np.array(odd)),
        vague=for_kernel(np.array(vague)),
        blind=for_kernel(np.array(blind)),
        whole=for_kernel(np.array([problem.tensor_words(tensor) for tensor in tensors], np.float64)),
        first=ints(first),
        step=ints(step),
        covered=for_kernel(np.concatenate(covered)),
        least=for_kernel(np.where(blind, 0.0, least)),
    )


def _covered_by_tiles(problem: Problem, tensor: Tensor, ragged: bool) -> list[Floats]:
    """Return the union's values per coordinate and tile counts.

    If coordinates share a dimension, only the one with most values counts; the others get 1.
    """
    terms = [tuple((c, problem.dimensions[name]) for name, c in place.terms.items()) for place in tensor.projection]
    tables = [covered_values(each, ragged) for each in terms]
    names = [name for place in tensor.projection for name in place.terms]
    if len(set(names)) < len(names):
        most = int(np.argmax([table[0] for table in tables]))
        tables = [table if k == most else np.ones_like(table) for k, table in enumerate(tables)]
    return tables


@cache
def covered_values(terms: tuple[tuple[int, int], ...], ragged: bool) -> Floats:
    """Return how many values of a coordinate its tiles cover together, holes inside tiles included.

    Args:
        terms: (coefficient, size) of each dimension of the coordinate.
        ragged: whether tiles may have any size.

    Returns:
        One number per combination of tile counts, each descending; the first dimension varies
            fastest.
    """
    least = least_values(terms)
    if ragged:
        return np.full(math.prod(len(_tiles(size, ragged)) for _, size in terms), float(least))
    result = []
    for lefts in itertools.product(*(_tiles(size, ragged) for _, size in reversed(terms))):
        starts, side = np.zeros(1, np.int64), 1
        for (c, size), left in zip(terms, reversed(lefts), strict=True):
            side += c * (size // left - 1)
            if len(starts) * left > MOST_TILES:
                starts = np.zeros(0, np.int64)
            starts = np.add.outer(starts, c * (size // left) * np.arange(left)).ravel()
        starts.sort()
        result.append(np.minimum(np.diff(starts), side).sum() + side if len(starts) else least)
    return np.array(result, np.float64)


def _trips(size: int, ragged: bool) -> Sequence[int]:
    """Return the possible trips of a loop over a dimension, ascending."""
    return range(1, size + 1) if ragged else divisors(size)


def _tiles(size: int, ragged: bool) -> Ints:
    """Return the possible tile counts of a dimension, descending."""
    return np.unique(-(-size // np.array(_trips(size, ragged))))[::-1]


def least_values(terms: Sequence[tuple[int, int]]) -> int:
    """Return a lower bound on the distinct values of a coordinate.

    Args:
        terms: (coefficient, size) of each dimension.
    """
    return distinct_values(terms) if len(terms) <= 2 else max(size for _, size in terms)


def _padded(rows: Sequence[Sequence[int] | Ints]) -> Ints:
    result = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for d, row in enumerate(rows):
        result[d, : len(row)] = row
    return for_kernel(result)


def ints(values: object) -> Ints:
    return for_kernel(np.array(values, dtype=np.int64))
