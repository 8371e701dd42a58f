"""The arrays of a problem."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tilewright.compiled import for_kernel
from tilewright.mapspace.batch import Ints
from tilewright.mapspace.counting import distinct_values
from tilewright.mapspace.factoring.cuts import divisors
from tilewright.schema.problem import Problem
from tilewright_mappers.optimal.kernel.tables import Shape


def shape_of(problem: Problem, ragged: bool) -> Shape:
    """The problem as arrays."""
    sizes = problem.sizes
    tensors, dims = problem.tensors, len(sizes)
    trips = [range(1, size + 1) if ragged else divisors(size) for size in sizes]
    lefts = [np.unique(-(-size // np.array(row)))[::-1] for size, row in zip(sizes, trips, strict=True)]
    moves = np.zeros((len(tensors), dims), np.bool_)
    rank = np.full((len(tensors), dims), -1, np.int64)
    coefficient = np.zeros((len(tensors), dims), np.int64)
    start, dimension, factor, last, odd, vague, blind = [0], [], [], [], [], [], []
    windows = 0
    for t, tensor in enumerate(tensors):
        strange = unclear = sliding = False
        for place in tensor.projection:
            terms = [(problem.dimension_names.index(name), c) for name, c in place.terms.items()]
            dimension += [d for d, _ in terms]
            factor += [c for _, c in terms]
            last += [False] * (len(terms) - 1) + [True]
            real = [(d, c) for d, c in terms if sizes[d] > 1]
            strange |= any(rank[t, d] >= 0 for d, _ in real)
            strange |= tensor.is_output and any(moves[t, d] for d, _ in real)
            unclear |= tensor.is_output and (len(real) > 1 or any(c > 1 for _, c in real))
            if ragged:  # what is known of these holds where all tiles are alike
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
        least=for_kernel(np.array([0.0 if blind[t] else _least_words(problem, t) for t in range(len(tensors))])),
    )


def _least_words(problem: Problem, t: int) -> float:
    """Words without holes; of coordinates that share a dimension, the one of most words."""
    tensor = problem.tensors[t]
    counts = [
        least_values([(c, problem.dimensions[name]) for name, c in place.terms.items()]) for place in tensor.projection
    ]
    names = [name for place in tensor.projection for name in place.terms]
    return float(math.prod(counts) if len(set(names)) == len(names) else max(counts))


def least_values(terms: Sequence[tuple[int, int]]) -> int:
    """Of a coordinate, given as (coefficient, size) of its dimensions: values that it takes at least."""
    return distinct_values(terms) if len(terms) <= 2 else max(size for _, size in terms)


def _padded(rows: Sequence[Sequence[int] | Ints]) -> Ints:
    result = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for d, row in enumerate(rows):
        result[d, : len(row)] = row
    return for_kernel(result)


def ints(values: object) -> Ints:
    return for_kernel(np.array(values, dtype=np.int64))
