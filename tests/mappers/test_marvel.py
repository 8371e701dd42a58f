"""`marvel`: words moved, and the tile that moves least."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.mappers import CONV, FLAT, placement
from support.profiles import scaled
from tilewright.mapspace.batch import Positions
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.placement import reuse_orders
from tilewright.plugin.mapper import Budget, Run, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import MapperSpec
from tilewright.schema.problem import Problem
from tilewright_mappers.marvel import least_traffic, words_moved


@scaled(0.4)
@given(st.integers(0, 2**32), st.sampled_from([FLAT.problem, CONV.problem]))
def test_words_moved_are_those_of_a_walk_over_the_loops(seed: int, problem: Problem) -> None:
    """Tiles are visited individually: a tensor's tile is fetched if it differs from the previous one."""
    rng = np.random.default_rng(seed)
    dims = len(problem.sizes)
    trips = np.array([int(rng.choice([d for d in range(1, size + 1) if size % d == 0])) for size in problem.sizes])
    order = rng.permutation(dims).astype(np.int8)
    tiles = np.array(problem.sizes) // trips
    words = 0.0
    for tensor in problem.tensors:
        mine = [d for d, name in enumerate(problem.dimensions) if name in tensor.dimensions]
        fetched, before = 0, None
        for visit in itertools.product(*(range(int(trips[d])) for d in order)):
            here = tuple(visit[list(order).index(d)] for d in mine)
            fetched += here != before
            before = here
        size = problem.tile_words(tensor, dict(zip(problem.dimensions, tiles.tolist(), strict=True)))
        words += 2 * fetched * size - problem.tensor_words(tensor) if tensor.is_output else fetched * size
    assert words_moved(problem, tiles[None], trips[None], order)[0] == pytest.approx(words)


def test_marvel_fixes_the_tile_that_moves_least() -> None:
    """All its proposals share the loops outside of the chip, and no tile above the threshold moves fewer words."""
    moves = placement(CONV)
    start, order = least_traffic(moves, 0.5)
    mapper = installed().make(MapperSpec, "marvel", {"memory": 0.5})
    outer = CONV.temporal_slots[0]
    for batch in itertools.islice(mapper.search(Task(CONV), Run(np.random.default_rng(0), Budget())), 20):
        assert isinstance(batch, Candidates)
        assert (batch.trips[:, outer] == start.trips[0, outer]).all()

    sizes = np.array(CONV.problem.sizes)

    def words(rows: Candidates, by: Positions) -> float:
        return float(words_moved(CONV.problem, sizes // rows.trips[:, outer], rows.trips[:, outer], by).min())

    rows = moves.into(CONV.temporal_slots[1], moves.start)
    rows = rows.take(moves.fill(rows, CONV.temporal_slots[1]) >= 0.5)
    assert words(start, order) == min(words(rows, each.astype(np.int8)) for each in reuse_orders(CONV.problem))
