"""Tiling trees: the figure of Sunstone's paper, and every tile that fits."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.problems import problem_of
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.tiling import leaves, maximal, tile_tree
from tilewright.mapspace.space import MapSpace
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem

PLAIN = {"read_energy_pj": 1.0, "write_energy_pj": 1.0}


def two_levels(words: int) -> Architecture:
    return Architecture.model_validate(
        {
            "name": "two",
            "clusters": [
                {"name": "DRAM", "memories": [{"name": "DRAM", **PLAIN}]},
                {"name": "L1", "memories": [{"name": "L1", "capacity_words": words, **PLAIN}]},
            ],
            "compute": {"energy_per_operation_pj": 1.0},
        }
    )


def outside(kernel: Problem, words: int) -> Candidates:
    """All factors in the outermost loops."""
    space = MapSpace.of(kernel, two_levels(words), rules=None)
    trips = np.ones((1, len(space.slots), len(kernel.sizes)), dtype=np.int64)
    trips[0, 0] = kernel.sizes
    return Candidates(space, trips)


def tree(kernel: Problem, words: int, letters: str) -> Candidates:
    return tile_tree(outside(kernel, words), 0, 1, [kernel.dimension_names.index(letter) for letter in letters])


def test_figure_5_has_one_maximal_tile_for_the_order_xxcr_and_four_over_all_dimensions() -> None:
    kernel = problem_of("k p", "c p+r", "k c r", p=14, k=4, c=4, r=3)
    tiles = tree(kernel, 8, "pk")
    best = tiles.take(maximal(tiles, 0, 1, [kernel.dimension_names.index(letter) for letter in "pk"]))
    named = [dict(zip(kernel.dimension_names, row[1].tolist(), strict=True)) for row in best.trips]
    assert named == [{"p": 2, "k": 2, "c": 1, "r": 1}]

    tiles = tree(kernel, 8, "pkcr")
    assert len(tiles) == 8
    best = tiles.take(maximal(tiles, 0, 1, range(4)))
    order = [kernel.dimension_names.index(letter) for letter in "pkcr"]
    assert {tuple(row[1, order].tolist()) for row in best.trips} == {
        (2, 2, 1, 1),
        (2, 1, 2, 1),
        (1, 2, 2, 1),
        (1, 1, 1, 3),
    }


@given(st.lists(st.integers(1, 24), min_size=4, max_size=4), st.integers(3, 200))
def test_a_tree_has_every_tile_that_fits_and_its_leaves_have_no_fitting_child(sizes: list[int], words: int) -> None:
    kernel = problem_of("k p", "c p+r", "k c r", **dict(zip("pkcr", sizes, strict=True)))
    tiles = tree(kernel, words, "pkcr")
    found = {tuple(row[1].tolist()) for row in tiles.trips}
    every = itertools.product(*([d for d in range(1, size + 1) if size % d == 0] for size in kernel.sizes))
    fits = set()
    for tile in every:
        extent = dict(zip(kernel.dimension_names, tile, strict=True))
        if sum(kernel.tile_words(tensor, extent) for tensor in kernel.tensors) <= words:
            fits.add(tile)
    assert found == fits
    leaf = maximal(tiles, 0, 1, range(4))
    for row, is_leaf in zip(tiles.trips, leaf, strict=True):
        tile = tuple(row[1].tolist())
        larger = [
            other
            for other in fits
            if sum(a != b for a, b in zip(tile, other, strict=True)) == 1
            and min(b - a for a, b in zip(tile, other, strict=True)) >= 0
        ]
        assert is_leaf == (not larger)
    assert tiles.fits().all()
    grown = {tuple(row[1].tolist()) for row in leaves(outside(kernel, words), 0, 1, range(4)).trips}
    assert grown == {tuple(row[1].tolist()) for row in tiles.trips[leaf]}
