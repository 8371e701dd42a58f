"""Regular dimensions: both ways to count pieces agree."""

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.compiled import interpreted
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopModel
from tilewright_costmodels.timeloop.ragged.irregular import cut_irregular
from tilewright_costmodels.timeloop.ragged.regular import count_pieces
from tilewright_costmodels.timeloop.ragged.tables import ADVANCE, BEFORE, PLAIN, UNMOVED, Pieces

SPACE = tw.space("nk,km->nm; n=197 k=67 m=100", "eyeriss", factors="ragged")
EVALUATOR = TimeloopModel(TimeloopOptions()).dense(SPACE.problem, SPACE.architecture)
DRAWN = SPACE.sample(np.random.default_rng(1), 300)
RAGGED = (DRAWN.trips.prod(axis=1) != SPACE.problem.sizes).any(axis=1)
FOUND = np.flatnonzero(RAGGED & EVALUATOR.evaluate_candidates(DRAWN).valid)


def cut(index: int) -> Pieces:
    """Return the pieces of one mapping, as the kernel left them."""
    EVALUATOR.evaluate_candidates(DRAWN.take(FOUND[[index % len(FOUND)]]))
    kernel = EVALUATOR.kernel(SPACE.skeleton, SPACE.slots)
    assert kernel is not None
    return kernel.pieces


@given(st.integers(0, 10**6), st.randoms(use_true_random=False))
def test_a_regular_dimension_is_counted_as_an_irregular_one(index: int, random: Random) -> None:
    pieces, count = cut(index), interpreted(count_pieces)
    levels, tensors = len(pieces.first_cut) - 1, len(SPACE.problem.tensors)
    for d in range(len(SPACE.problem.sizes)):
        first, last = int(pieces.first_cut[0, d]), int(pieces.first_cut[random.randint(0, levels), d])
        loops = [int(cut.loop) for cut in pieces.cut[first:last] if cut.temporal]
        mode = random.choice((PLAIN, UNMOVED, ADVANCE, BEFORE) if loops else (PLAIN, UNMOVED))
        limit = random.choice(loops) if mode in (ADVANCE, BEFORE) else random.randint(0, 3 * len(SPACE.slots))
        all_instances, relevant = random.random() < 0.5, random.random() < 0.5
        tensor, shared_from = random.randrange(tensors), random.randint(0, levels)
        arguments = limit, mode, tensor, relevant, all_instances, shared_from, random.randint(first, last)

        def found(d: int = d, last: int = last, arguments: tuple[object, ...] = arguments) -> object:
            pieces_found, iterations, smallest = count(pieces, d, last, *arguments, True)
            sizes = pieces.found[d, : pieces.totals[d].sizes].tolist()
            return pieces_found, iterations, smallest if pieces_found else 0.0, sizes

        assert pieces.regular[d]
        regular = found()
        pieces.regular[d] = False
        here = slice(first, int(pieces.first_cut[-1, d]) + 1)
        cuts, can_stay = pieces.cut[here].copy(), pieces.can_stay.copy()
        interpreted(cut_irregular)(pieces, d)
        for field in ("count", "spatial_count", "temporal_count"):
            assert (cuts[field] == pieces.cut[here][field]).all()
        assert (can_stay == pieces.can_stay).all()
        assert regular == found()
