"""Fast paths of the count of pieces agree with the general ones, and the pictures in the modules are right."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.compiled import interpreted
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopModel
from tilewright_costmodels.timeloop.ragged import windows
from tilewright_costmodels.timeloop.ragged.irregular import _cut_sizes, cut_irregular
from tilewright_costmodels.timeloop.ragged.regular import _cut, count_pieces
from tilewright_costmodels.timeloop.ragged.tables import (
    ADVANCE,
    BEFORE,
    NO_INDEX,
    PLAIN,
    SECOND,
    UNMOVED,
    Movement,
    Pieces,
    Query,
    Selection,
    pieces_of,
)
from tilewright_costmodels.timeloop.ragged.traffic import _distinct_words, _moved_words, _repetitions
from tilewright_costmodels.timeloop.tables import Tables

SPACE = tw.space("nk,km->nm; n=197 k=67 m=100", "eyeriss", factors="ragged")
EVALUATOR = TimeloopModel(TimeloopOptions()).dense(SPACE.problem, SPACE.architecture)
DRAWN = SPACE.sample(np.random.default_rng(1), 300)
RAGGED = (DRAWN.trips.prod(axis=1) != SPACE.problem.sizes).any(axis=1)
FOUND = np.flatnonzero(RAGGED & EVALUATOR.evaluate_candidates(DRAWN).valid)


WINDOWS = tw.space(
    tw.Problem.from_yaml(
        "{name: convolution, dimensions: {P: 11, R: 5, K: 3}, tensors: [{name: I, role: input, projection: [P + R]}, "
        "{name: W, role: weight, projection: [K, R]}, {name: O, role: output, projection: [K, P]}]}"
    ),
    tw.Architecture.from_yaml(
        "{name: grid, clusters: [{name: DRAM, memories: [{name: DRAM, read_energy_pj: 1, write_energy_pj: 1}]}, "
        "{name: L2, memories: [{name: L2, read_energy_pj: 1, write_energy_pj: 1}], fanout: {size: 6, axis: X}}, "
        "{name: Row, fanout: {size: 4, axis: Y}}, "
        "{name: PE, memories: [{name: L1, read_energy_pj: 1, write_energy_pj: 1}]}], "
        "compute: {energy_per_operation_pj: 1}}"
    ),
    factors="ragged",
)
DRAWN_WINDOWS = WINDOWS.sample(np.random.default_rng(1), 300)
OF_WINDOWS = TimeloopModel(TimeloopOptions()).dense(WINDOWS.problem, WINDOWS.architecture)


def cut(index: int) -> Pieces:
    """Return the pieces of one mapping, as the kernel left them."""
    EVALUATOR.evaluate_candidates(DRAWN.take(FOUND[[index % len(FOUND)]]))
    kernel = EVALUATOR.kernel(SPACE.skeleton, SPACE.slots)
    assert kernel is not None
    return kernel.pieces


def windows_cut(index: int) -> tuple[Pieces, Tables]:
    """Return the pieces of one mapping of a convolution, and the tables of its kernel."""
    ragged = (DRAWN_WINDOWS.trips.prod(axis=1) != WINDOWS.problem.sizes).any(axis=1)
    rows = np.flatnonzero(ragged & OF_WINDOWS.evaluate_candidates(DRAWN_WINDOWS).valid)
    OF_WINDOWS.evaluate_candidates(DRAWN_WINDOWS.take(rows[[index % len(rows)]]))
    kernel = OF_WINDOWS.kernel(WINDOWS.skeleton, WINDOWS.slots)
    assert kernel is not None
    return kernel.pieces, kernel.tables


@given(st.integers(0, 10**6), st.randoms(use_true_random=False))
def test_a_regular_dimension_is_counted_as_an_irregular_one(index: int, random: Random) -> None:
    pieces, count = cut(index), interpreted(count_pieces)
    levels, tensors = len(pieces.first_cut) - 1, len(SPACE.problem.tensors)
    for d in range(len(SPACE.problem.sizes)):
        first, last = int(pieces.first_cut[0, d]), int(pieces.first_cut[random.randint(0, levels), d])
        loops = [int(cut.loop) for cut in pieces.cut[first:last] if cut.temporal]
        mode = random.choice((PLAIN, UNMOVED, SECOND, ADVANCE, BEFORE) if loops else (PLAIN, UNMOVED, SECOND))
        limit = random.choice(loops) if mode in (ADVANCE, BEFORE) else random.randint(0, 3 * len(SPACE.slots))
        all_instances, relevant = random.random() < 0.5, random.random() < 0.5
        tensor, shared_from = random.randrange(tensors), random.randint(0, levels)
        query = Query(
            Movement(tensor, levels, random.randint(0, levels), all_instances, shared_from), mode, limit, relevant
        )

        def counted(d: int = d, last: int = last, query: Query = query) -> object:
            number, iterations, smallest = count(pieces, query, d, last, True)
            sizes = pieces.results[["iterations", "count"]][d, : pieces.totals[d].sizes].tolist()
            return number, iterations, smallest if number else 0.0, sizes

        assert pieces.regular[d]
        regular = counted()
        pieces.regular[d] = False
        here = slice(first, int(pieces.first_cut[-1, d]) + 1)
        cuts, can_stay = pieces.cut[here].copy(), pieces.can_stay.copy()
        interpreted(cut_irregular)(pieces, d)
        for field in ("count", "spatial_count", "temporal_count"):
            assert (cuts[field] == pieces.cut[here][field]).all()
        assert (can_stay == pieces.can_stay).all()
        assert regular == counted()


@given(st.integers(0, 10**6), st.randoms(use_true_random=False))
def test_equal_boxes_of_two_loops_are_counted_as_those_of_any_loops(index: int, random: Random) -> None:
    """`windows._fraction_of_two_loops` is the fast path of `_fraction_of_any_loops`."""
    pieces, tables = windows_cut(index)
    levels, both, general = len(pieces.first_cut) - 1, [], interpreted(windows._fraction_of_any_loops)
    start = random.randint(0, levels - 1)
    movement = Movement(0, random.randint(start + 1, levels), 0, random.random() < 0.5, start)

    def compared(pieces: Pieces, projection: object, movement: Movement, group: int, *dimensions: int) -> float:
        fast = interpreted(windows._fraction_of_two_loops)(pieces, projection, movement, group, *dimensions)
        both.append((fast, general(pieces, tables.tensors, movement, group)))
        return float(fast)

    fraction = interpreted(windows._fraction_of_group)
    fraction.__globals__["_fraction_of_two_loops"] = compared
    for group in range(2, tables.tensors.info[0].groups):
        fraction(pieces, tables.tensors, movement, group)
    for fast, slow in both:
        assert fast == pytest.approx(slow, rel=1e-12)


@given(st.integers(0, 10**6), st.randoms(use_true_random=False))
def test_sums_of_sides_are_counted_as_all_boxes(index: int, random: Random) -> None:
    """Along one coordinate `_distinct_words` adds up sides; `window_words` goes through all boxes."""
    pieces, tables = windows_cut(index)
    levels, words = len(pieces.first_cut) - 1, interpreted(_distinct_words)
    instances = random.random() < 0.5
    movement = Movement(0, random.randint(0, levels), 0, instances, random.randint(0, levels))
    selection = Selection(PLAIN, len(pieces.can_stay), NO_INDEX, False, NO_INDEX, 0.0)
    projection = tables.tensors.projection.copy()
    projection["one_coordinate"] = False
    assert words(pieces, tables.tensors, movement, selection) == pytest.approx(
        words(pieces, tables.tensors._replace(projection=projection), movement, selection), rel=1e-12
    )


def cut_as(sizes: dict[str, int], projection: list[str], cuts: list[tuple[int, int, bool]]) -> tuple[Pieces, Tables]:
    """Return the pieces of a problem of these sizes, and its tables.

    Args:
        cuts: dimension, iterations of a tile, and whether the loop is temporal; cut i belongs to slot i of level 0.
    """
    problem = tw.Problem.model_validate(
        {
            "name": "picture",
            "dimensions": sizes,
            "tensors": [
                {"name": "I", "role": "input", "projection": projection},
                {"name": "O", "role": "output", "projection": list(sizes)},
            ],
        }
    )
    space = tw.space(problem, WINDOWS.architecture, factors="ragged")
    kernel = TimeloopModel(TimeloopOptions()).dense(problem, WINDOWS.architecture).kernel(space.skeleton, space.slots)
    assert kernel is not None
    pieces, loop = pieces_of(kernel.tables), 0
    pieces.regular[:] = True
    pieces.first_cut[1:] = pieces.first_cut[0]
    for slot, (d, tile, temporal) in enumerate(cuts):
        trips = -(-int(pieces.cut[pieces.first_cut[1, d]].full) // tile)
        interpreted(_cut)(pieces, 0, slot, d, temporal, loop, float(trips), float(tile))
        pieces.first_cut[2:, d] = pieces.first_cut[1, d]
        loop += temporal
    return pieces, kernel.tables


def test_the_picture_of_a_regular_dimension() -> None:
    pieces, _ = cut_as({"A": 9}, ["A"], [(0, 4, True), (0, 2, True)])
    fields = ["full", "full_count", "remainder", "count"]
    assert pieces.cut[fields][:3].tolist() == [(9, 0, 9, 1), (4, 2, 1, 3), (2, 4, 1, 5)]
    assert pieces.cut[["trips", "remainder_full", "remainder_partial"]][:2].tolist() == [(3, 2, 1), (2, 0, 1)]
    counted = {}
    for mode, limit in ((PLAIN, 2), (PLAIN, 1), (BEFORE, 1), (ADVANCE, 1), (UNMOVED, 1), (SECOND, 1)):
        query = Query(Movement(0, 1, 0, True, 1), mode, limit, True)
        interpreted(count_pieces)(pieces, query, 0, 2, True)
        counted[int(mode), limit] = pieces.results[["iterations", "count"]][0, : pieces.totals[0].sizes].tolist()
    assert counted == {
        (PLAIN, 2): [(2, 4), (1, 1)],
        (PLAIN, 1): [(2, 2), (1, 1)],
        (BEFORE, 1): [(2, 2)],
        (ADVANCE, 1): [(2, 2)],
        (UNMOVED, 1): [(1, 1)],
        (SECOND, 1): [(2, 2)],
    }


def test_the_picture_of_an_irregular_dimension() -> None:
    pieces, _ = cut_as({"A": 10}, ["A"], [(0, 4, True), (0, 3, True)])
    assert not pieces.regular[0]
    interpreted(cut_irregular)(pieces, 0)
    assert [pieces.size[["iterations", "full", "remainder"]][k, : pieces.size_count[k]].tolist() for k in (0, 1)] == [
        [(10, 2, 1)],
        [(4, 1, 1), (2, 0, 2)],
    ]
    assert pieces.size["iterations"][2, :3].tolist() == [3, 1, 2]
    weight = np.array([[1.0, 0, 0], [0, 0, 0]])
    weights = []
    for k in range(2):
        interpreted(_cut_sizes)(pieces, k, True, weight[k % 2], weight[1 - k % 2])
        weights.append(weight[1 - k % 2].tolist())
    assert weights == [[2, 1, 0], [2, 2, 1]]


def test_the_picture_of_equal_boxes() -> None:
    pieces, tables = cut_as({"P": 5, "R": 4}, ["P + R"], [(0, 2, False), (1, 2, False)])
    movement = Movement(0, 1, 0, True, 0)
    group = int(tables.tensors.projection[0, 0].group)
    for path in (windows._fraction_of_group, windows._fraction_of_any_loops):
        assert interpreted(path)(pieces, tables.tensors, movement, group) == 13 / 16


@pytest.mark.parametrize(
    ("sizes", "cuts", "words"),
    [
        ((4, 3), [(0, 2, True), (1, 2, True)], [3, 1, 1, 1]),  # the tile before is 2 .. 3, and the next one 2 .. 4
        ((4, 3), [(1, 2, True), (0, 2, True)], [3, 2, 1, 1]),  # the short tile 2 .. 3 after 2 .. 4 costs nothing
        ((5, 4), [(0, 4, True), (1, 2, True), (0, 2, True)], [3, 2, 0, 2, 0, 2]),  # 6 .. 7 after 4 .. 5
        ((5, 3), [(0, 2, True), (1, 2, True)], [3, 1, 1, 1, 1, 0]),
    ],
)
def test_words_after_a_short_tile(sizes: tuple[int, int], cuts: list[tuple[int, int, bool]], words: list[int]) -> None:
    """A step counts all words that the tile before did not have, however short that was."""
    pieces, tables = cut_as({"P": sizes[0], "R": sizes[1]}, ["P + R"], cuts)
    movement = Movement(0, 1, 0, True, 1)
    assert interpreted(_moved_words)(pieces, tables.tensors, movement, len(cuts) - 1, True) == (sum(words), sum(words))


def test_the_picture_of_moving_tiles() -> None:
    for cuts, c, times in (([(0, 4, True), (2, 1, True)], 0, 1), ([(2, 1, True), (0, 4, True)], 1, 5)):
        pieces, tables = cut_as({"A": 9, "B": 3, "C": 5}, ["A", "B"], cuts)
        movement = Movement(0, 1, 0, True, 1)
        selection = Selection(PLAIN, len(pieces.can_stay), NO_INDEX, False, NO_INDEX, 0.0)
        assert interpreted(_distinct_words)(pieces, tables.tensors, movement, selection) == 27
        assert interpreted(_repetitions)(pieces, tables.tensors, movement, c + 1, NO_INDEX) == (times, times)
        assert interpreted(_moved_words)(pieces, tables.tensors, movement, c, False) == (27 * times, 27 * times)
