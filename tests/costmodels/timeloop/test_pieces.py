"""Pieces of dimensions whose tiles divide one another are counted as those of any others are."""

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.compiled import interpreted
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopModel
from tilewright_costmodels.timeloop.ragged import pieces as parts
from tilewright_costmodels.timeloop.ragged.cuts import ADVANCE, BEFORE, PLAIN, QUIET, Pieces
from tilewright_costmodels.timeloop.ragged.remainders import cut_any

SPACE = tw.space("nk,km->nm; n=197 k=67 m=100", "eyeriss", factors="ragged")
EVALUATOR = TimeloopModel(TimeloopOptions()).bind(SPACE.problem, SPACE.architecture)
DRAWN = SPACE.sample(np.random.default_rng(1), 300)
RAGGED = (DRAWN.trips.prod(axis=1) != SPACE.problem.sizes).any(axis=1)
FOUND = np.flatnonzero(RAGGED & EVALUATOR.evaluate_candidates(DRAWN).valid)


def cut(index: int) -> Pieces:
    """The pieces of a mapping, as the kernel left them."""
    EVALUATOR.evaluate_candidates(DRAWN.take(FOUND[[index % len(FOUND)]]))
    room = EVALUATOR.room(SPACE.skeleton, SPACE.slots)
    assert room is not None
    return room.pieces


@given(st.integers(0, 10**6), st.randoms(use_true_random=False))
def test_a_chain_is_counted_as_any_other_dimension(index: int, random: Random) -> None:
    pieces, walk = cut(index), interpreted(parts.walk)
    levels, tensors = len(pieces.cuts) - 1, len(SPACE.problem.tensors)
    for d in range(len(SPACE.problem.sizes)):
        first, last = int(pieces.cuts[0, d]), int(pieces.cuts[random.randint(0, levels), d])
        steps = [int(cut.place) for cut in pieces.cut[first:last] if cut.steps]
        mode = random.choice((PLAIN, QUIET, ADVANCE, BEFORE) if steps else (PLAIN, QUIET))
        limit = random.choice(steps) if mode in (ADVANCE, BEFORE) else random.randint(0, 3 * len(SPACE.slots))
        every, moves = random.random() < 0.5, random.random() < 0.5
        tensor, within = random.randrange(tensors), random.randint(0, levels)
        given = limit, mode, tensor, moves, every, within, random.randint(first, last)

        def found(d: int = d, last: int = last, given: tuple[object, ...] = given) -> object:
            count, iterations, least = walk(pieces, d, last, *given, True)
            return count, iterations, least if count else 0.0, pieces.share[d, : pieces.shares[d].number].tolist()

        assert pieces.chain[d]
        chain = found()
        pieces.chain[d] = False
        here = slice(first, int(pieces.cuts[-1, d]) + 1)
        cuts, calm = pieces.cut[here].copy(), pieces.calm.copy()
        interpreted(cut_any)(pieces, d)
        for count in ("many", "lanes", "turns"):
            assert (cuts[count] == pieces.cut[here][count]).all()
        assert (calm == pieces.calm).all()
        assert chain == found()
