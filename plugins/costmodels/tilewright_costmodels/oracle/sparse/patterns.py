"""Nonzero values of tensors, drawn as their densities declare."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tilewright.schema.density import Density
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright_costmodels.oracle.result import Words
from tilewright_costmodels.oracle.trace import Ints

Flags = NDArray[np.bool_]


def nonzeros(
    problem: Problem, tensor: Tensor, words: Words, visits: Ints, random: np.random.Generator, draws: int
) -> Flags:
    """Return which words of a tensor are nonzero, [word, draw].

    `structured`: as evenly as possible in the order in which the mapping visits the words. A tile of
    v words then holds v times the density, rounded down or up. `uniform`: a fixed number of nonzeros
    anywhere. `banded` and `data`: the same in every draw.

    Args:
        visits: position of each word in the order of first visits, [word].
    """
    density, count = tensor.density, len(words)
    if density is None:
        return np.ones((count, draws), dtype=np.bool_)
    if density.data is not None:
        return np.repeat(density.data.array[tuple(words.coordinates.T)][:, None], draws, axis=1)
    if density.distribution == "banded":
        assert density.band_width is not None
        inside = np.abs(words.coordinates[:, 0] - words.coordinates[:, 1]) <= density.band_width
        return np.repeat(inside[:, None], draws, axis=1)
    assert density.density is not None
    if density.distribution == "uniform":
        total = problem.tensor_words(tensor)
        marked = math.ceil(density.density * total)
        zeros = np.zeros((draws, total), dtype=np.bool_)
        for row in zeros:
            row[random.choice(total, marked, replace=False)] = True
        return np.ascontiguousarray(zeros[:, :count].T)
    starts = random.random(draws)
    edges = np.floor(np.arange(count + 1)[:, None] * density.density + starts)
    even: Flags = np.diff(edges, axis=0) > 0
    return even[visits]


def is_random(density: Density | None) -> bool:
    """Return whether draws of a density differ."""
    return density is not None and density.distribution in ("structured", "uniform")


def order_of_visits(mapping: Mapping, points: Ints, words: Ints) -> Ints:
    """Return the position of each word in the order of first visits, loop by loop, [word].

    Spatial loops count like temporal ones, so that words of a tile are next to one another.

    Args:
        points: iteration of each operation, [n, dimension].
        words: index of the word that it touches, [n].
    """
    key = np.zeros(len(points), dtype=np.int64)
    index = {name: at for at, name in enumerate(mapping.dimension_names)}
    for loop in mapping.loops():
        key = key * loop.trips + points[:, index[loop.dimension]] // loop.tile % loop.trips
    first = np.full(words.max() + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, words, key)
    return np.argsort(np.argsort(first, kind="stable"))
