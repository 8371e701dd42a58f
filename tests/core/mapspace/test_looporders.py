"""Loop orders by reuse and tiling trees: the figures of Sunstone's paper, and what their rules promise."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.mapspace.constructive.tiling import fitting, leaves, maximal, tile_tree
from tilewright.mapspace.looporders import distinct_reuse_orders, ordering_trie, promising
from tilewright.mapspace.space import MapSpace
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem

PLAIN = {"read_energy_pj": 1.0, "write_energy_pj": 1.0}


def problem(output: str, *operands: str, **sizes: int) -> Problem:
    """A problem from ranks as text, `n c p+r`."""
    tensors = [
        {"name": f"T{index}", "role": role, "projection": ranks.split()}
        for index, (role, ranks) in enumerate([("input", operands[0]), *(("weight", o) for o in operands[1:])])
    ]
    tensors.append({"name": "Z", "role": "output", "projection": output.split()})
    names = dict.fromkeys("".join(ch if ch.isalpha() else " " for ch in " ".join((*operands, output))).split())
    return Problem.model_validate(
        {"name": "p", "dimensions": {name: sizes.get(name, 2) for name in names}, "tensors": tensors}
    )


KERNELS = {
    "conv1d": (problem("k p", "c p+r", "k c r"), 4),
    "conv2d": (problem("n k p q", "n c p+r q+s", "k c r s"), 8),
    "mttkrp": (problem("i j", "i k l", "k j", "l j"), 7),
    "ttmc": (problem("i l m", "i j k", "j l", "k m"), 10),
    "sddmm": (problem("i j", "i j", "i k", "k j"), 3),
    "tcl": (problem("l m n", "i j k", "i l", "j m", "k n"), 36),
}


@pytest.mark.parametrize("name", KERNELS)
def test_orders_kept_are_as_many_as_the_paper_counts(name: str) -> None:
    kernel, count = KERNELS[name]
    assert len(promising(ordering_trie(kernel))) == count
    assert len(distinct_reuse_orders(kernel)) == count


def test_the_orders_of_the_one_dimensional_convolution_are_those_of_figure_4() -> None:
    kernel, _ = KERNELS["conv1d"]
    prefixes = {"".join(kernel.dimension_names[dim] for dim in node.loops) for node in promising(ordering_trie(kernel))}
    assert prefixes == {"kp", "kr", "p", "rc"}


def reuse(kernel: Problem, order: Sequence[int]) -> set[tuple[int, int]]:
    """(tensor, dimension) reused by a whole order, outermost first, from the definition."""
    found = set()
    for number, tensor in enumerate(kernel.tensors):
        for dim in reversed(order):
            name = kernel.dimension_names[dim]
            if name not in tensor.dimensions:
                found.add((number, dim))
                continue
            if any(len(rank.terms) > 1 and name in rank.terms for rank in tensor.projection):
                found.add((number, dim))
            break
    return found


@pytest.mark.parametrize("name", ["conv1d", "mttkrp", "ttmc", "sddmm", "tcl"])
def test_no_order_reuses_what_no_kept_order_does(name: str) -> None:
    kernel, _ = KERNELS[name]
    kept = [reuse(kernel, [int(d) for d in order]) for order in distinct_reuse_orders(kernel)]
    for order in itertools.permutations(range(len(kernel.dimensions))):
        assert any(reuse(kernel, order) <= best for best in kept)
    for index, one in enumerate(kept):
        assert not any(one <= other for number, other in enumerate(kept) if number != index)


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


def tree(kernel: Problem, words: int, letters: str) -> tuple[MapSpace, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    space = MapSpace.of(kernel, two_levels(words))
    start = np.ones((1, len(space.slots), len(kernel.sizes)), dtype=np.int64)
    start[0, 0] = kernel.sizes
    dims = [kernel.dimension_names.index(letter) for letter in letters]
    return space, tile_tree(space, start, 0, 1, dims)


def test_figure_5_has_one_maximal_tile_for_the_order_xxcr_and_four_over_all_dimensions() -> None:
    kernel = problem("k p", "c p+r", "k c r", p=14, k=4, c=4, r=3)
    space, tiles = tree(kernel, 8, "pk")
    best = tiles[maximal(space, tiles, 0, 1, [kernel.dimension_names.index(letter) for letter in "pk"])]
    named = [dict(zip(kernel.dimension_names, row[1].tolist(), strict=True)) for row in best]
    assert named == [{"p": 2, "k": 2, "c": 1, "r": 1}]

    space, tiles = tree(kernel, 8, "pkcr")
    assert len(tiles) == 8
    best = tiles[maximal(space, tiles, 0, 1, range(4))]
    order = [kernel.dimension_names.index(letter) for letter in "pkcr"]
    assert {tuple(row[1, order].tolist()) for row in best} == {(2, 2, 1, 1), (2, 1, 2, 1), (1, 2, 2, 1), (1, 1, 1, 3)}


@given(st.lists(st.integers(1, 24), min_size=4, max_size=4), st.integers(3, 200))
def test_a_tree_has_every_tile_that_fits_and_its_leaves_have_no_fitting_child(sizes: list[int], words: int) -> None:
    kernel = problem("k p", "c p+r", "k c r", **dict(zip("pkcr", sizes, strict=True)))
    space, tiles = tree(kernel, words, "pkcr")
    found = {tuple(row[1].tolist()) for row in tiles}
    every = itertools.product(*([d for d in range(1, size + 1) if size % d == 0] for size in kernel.sizes))
    fits = set()
    for tile in every:
        extent = dict(zip(kernel.dimension_names, tile, strict=True))
        if sum(kernel.tile_words(tensor, extent) for tensor in kernel.tensors) <= words:
            fits.add(tile)
    assert found == fits
    leaf = maximal(space, tiles, 0, 1, range(4))
    for row, is_leaf in zip(tiles, leaf, strict=True):
        tile = tuple(row[1].tolist())
        larger = [
            other
            for other in fits
            if sum(a != b for a, b in zip(tile, other, strict=True)) == 1
            and min(b - a for a, b in zip(tile, other, strict=True)) >= 0
        ]
        assert is_leaf == (not larger)
    assert fitting(space, tiles).all()
    start = np.ones((1, len(space.slots), 4), dtype=np.int64)
    start[0, 0] = kernel.sizes
    grown = {tuple(row[1].tolist()) for row in leaves(space, start, 0, 1, range(4))}
    assert grown == {tuple(row[1].tolist()) for row in tiles[leaf]}
