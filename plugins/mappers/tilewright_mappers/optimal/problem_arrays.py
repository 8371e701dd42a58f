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
from tilewright.mapspace.rules.tables import period
from tilewright.schema.problem import Problem, Tensor
from tilewright_mappers.optimal.kernel.structures import ProblemArrays

MAX_TILES = 4096
"""Maximum tiles along one coordinate whose union is computed (Lemma 10)."""


def problem_arrays(problem: Problem, ragged: bool) -> ProblemArrays:
    """Return the problem as arrays."""
    sizes = problem.sizes
    tensors, dims = problem.tensors, len(sizes)
    trips = [_trips(size, ragged) for size in sizes]
    counts = [_tiles(size, ragged) for size in sizes]
    relevant = np.zeros((len(tensors), dims), np.bool_)
    window_index = np.full((len(tensors), dims), -1, np.int64)
    coefficient = np.zeros((len(tensors), dims), np.int64)
    term_start, term_dimension, term_factor, term_last, term_period, unmodelled, windowed_output, ragged_window = (
        [0],
        [],
        [],
        [],
        [],
        [],
        [],
        [],
    )
    union_start, union_stride, union_tables, min_distinct = [], [], [np.zeros(0)], []
    windows = 0
    for t, tensor in enumerate(tensors):
        is_unmodelled = has_windows = is_ragged_window = False
        tables = _union_by_tiles(problem, tensor, ragged)
        min_distinct.append(math.prod(float(table[0]) for table in tables))
        for place, table in zip(tensor.projection, tables, strict=True):
            terms = [(problem.dimension_names.index(name), c) for name, c in place.terms.items()]
            union_start += [sum(map(len, union_tables))] * len(terms)
            union_stride += [math.prod(len(counts[d]) for d, _ in terms[:k]) for k in range(len(terms))]
            union_tables.append(table)
            term_dimension += [d for d, _ in terms]
            term_factor += [c for _, c in terms]
            term_last += [False] * (len(terms) - 1) + [True]
            term_period += [period(terms, number) for number in range(len(terms))]
            real = [(d, c) for d, c in terms if sizes[d] > 1]
            is_unmodelled |= any(window_index[t, d] >= 0 for d, _ in real)
            is_unmodelled |= tensor.is_output and any(relevant[t, d] for d, _ in real)
            has_windows |= tensor.is_output and (len(real) > 1 or any(c > 1 for _, c in real))
            if ragged:  # with ragged tiles these rules hold for equal tiles only
                is_unmodelled |= has_windows or any(relevant[t, d] for d, _ in real)
                is_ragged_window |= len(real) > 1
            if len(real) > 1:
                is_unmodelled |= any(relevant[t, d] for d, _ in real)
                for d, c in real:
                    window_index[t, d], coefficient[t, d] = windows, c
                windows += 1
            for d, _ in terms:
                relevant[t, d] = True
        term_start.append(len(term_dimension))
        unmodelled.append(is_unmodelled)
        windowed_output.append(has_windows and not is_unmodelled)
        ragged_window.append(is_ragged_window and not is_unmodelled)
    return ProblemArrays(
        ragged=ragged,
        sizes=ints(sizes),
        trip=_padded(trips),
        tile_count=_padded(counts),
        stride=ints([math.prod(len(row) for row in counts[:d]) for d in range(dims)]),
        relevant=for_kernel(relevant),
        window_index=for_kernel(window_index),
        coefficient=for_kernel(coefficient),
        term_start=ints(term_start),
        term_dimension=ints(term_dimension),
        term_factor=ints(term_factor),
        term_period=for_kernel(np.array(term_period, np.float64)),
        term_last=for_kernel(np.array(term_last, np.bool_)),
        output=for_kernel(np.array([tensor.is_output for tensor in tensors])),
        unmodelled=for_kernel(np.array(unmodelled)),
        windowed_output=for_kernel(np.array(windowed_output)),
        ragged_window=for_kernel(np.array(ragged_window)),
        values=for_kernel(np.array([problem.tensor_words(tensor) for tensor in tensors], np.float64)),
        union_start=ints(union_start),
        union_stride=ints(union_stride),
        union_values=for_kernel(np.concatenate(union_tables)),
        min_distinct=for_kernel(np.array(min_distinct, np.float64)),
    )


def _union_by_tiles(problem: Problem, tensor: Tensor, ragged: bool) -> list[Floats]:
    """Return the union's values per coordinate and tile counts.

    If coordinates share a dimension, only the one with most values counts; the others get 1.
    """
    terms = [tuple((c, problem.dimensions[name]) for name, c in place.terms.items()) for place in tensor.projection]
    tables = [union_values(term, ragged) for term in terms]
    names = [name for place in tensor.projection for name in place.terms]
    if len(set(names)) < len(names):
        most = int(np.argmax([table[0] for table in tables]))
        tables = [table if k == most else np.ones_like(table) for k, table in enumerate(tables)]
    return tables


@cache
def union_values(terms: tuple[tuple[int, int], ...], ragged: bool) -> Floats:
    """Return how many values of a coordinate its tiles cover together, holes inside tiles included.

    Args:
        terms: (coefficient, size) of each dimension of the coordinate.
        ragged: whether tiles may have any size.

    Returns:
        One number per combination of tile counts, each descending; the first dimension varies
            fastest.
    """
    least = min_values(terms)
    if ragged:
        return np.full(math.prod(len(_tiles(size, ragged)) for _, size in terms), float(least))
    result = []
    for counts in itertools.product(*(_tiles(size, ragged) for _, size in reversed(terms))):
        starts, side = np.zeros(1, np.int64), 1
        for (c, size), count in zip(terms, reversed(counts), strict=True):
            side += c * (size // count - 1)
            if len(starts) * count > MAX_TILES:
                starts = starts[:0]
                break
            starts = np.add.outer(starts, c * (size // count) * np.arange(count)).ravel()
        starts.sort()
        result.append(np.minimum(np.diff(starts), side).sum() + side if len(starts) else least)
    return np.array(result, np.float64)


def _trips(size: int, ragged: bool) -> Sequence[int]:
    """Return the possible trips of a loop over a dimension, ascending."""
    return range(1, size + 1) if ragged else divisors(size)


def _tiles(size: int, ragged: bool) -> Ints:
    """Return the possible tile counts of a dimension, descending."""
    return np.unique(-(-size // np.array(_trips(size, ragged))))[::-1]


def min_values(terms: Sequence[tuple[int, int]]) -> int:
    """Return a lower bound on the distinct values of a coordinate.

    Args:
        terms: (coefficient, size) of each dimension.
    """
    return distinct_values(terms) if len(terms) <= 2 else max(size for _, size in terms)


def _padded(rows: Sequence[Sequence[int] | Ints]) -> Ints:
    """Return rows of integers as one array, padded with zeros."""
    result = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for d, row in enumerate(rows):
        result[d, : len(row)] = row
    return for_kernel(result)


def ints(values: object) -> Ints:
    """Return integers as an array for kernels."""
    return for_kernel(np.array(values, dtype=np.int64))
