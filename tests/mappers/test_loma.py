"""`loma`: prime factors, their orders, and how loops fill memories."""

import math
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.mappers import FLAT, placement, run
from support.profiles import scaled
from tilewright.mapspace.batch import Ints
from tilewright.mapspace.candidates import Candidates
from tilewright_mappers.loma import allocate, distinct_orders, merged


def test_loop_prime_factors_are_merged_down_to_the_limit() -> None:
    """The two of one dimension with the least product first; one per dimension stays."""
    factors = [(0, 2), (0, 2), (0, 3), (1, 5), (1, 7)]
    assert merged(factors, 4) == [(0, 3), (0, 4), (1, 5), (1, 7)]
    assert merged(factors, 3) == [(0, 12), (1, 5), (1, 7)]
    assert merged(factors, 1) == [(0, 12), (1, 35)]
    assert merged(factors, 9) == sorted(factors)


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([2, 3])), max_size=6))
def test_orders_of_factors_are_all_and_different(factors: list[tuple[int, int]]) -> None:
    orders = list(distinct_orders(factors))
    wanted = math.factorial(len(factors)) // math.prod(math.factorial(n) for n in Counter(factors).values())
    assert len(orders) == len(set(orders)) == wanted


@scaled(0.3)
@given(st.integers(0, 2**32))
def test_loops_fill_memories_from_the_inside(seed: int) -> None:
    """Allocated tiles fit, and no memory could have taken the next loop as well."""
    rng = np.random.default_rng(seed)
    moves = placement(FLAT)
    factors = [(0, 2), (0, 2), (1, 2), (1, 3), (2, 3)]  # of M = 4, N = 6, K = 3
    loops: Ints = np.array([[factors[i] for i in rng.permutation(len(factors))]], dtype=np.int64)
    made = allocate(moves, moves.start, loops)
    assert made.fits().all() and FLAT.contains(made[0])
    trips = made.trips[0].copy()
    inner = trips[1]
    taken = 0
    running = np.ones(3, dtype=np.int64)
    while (running != inner).any():
        running[loops[0, taken, 0]] *= loops[0, taken, 1]
        taken += 1
    if taken < len(factors):
        dim, factor = loops[0, taken]
        trips[1, dim] *= factor
        trips[0, dim] //= factor
        assert not Candidates(FLAT, trips[None]).fits()[0]


def test_loma_ends_when_it_has_seen_all_orders() -> None:
    result = run("loma", FLAT)  # M = 2 x 2, N = 2 x 3, K = 3
    assert (result.stop, result.evaluated, result.valid) == ("finished", 60, 60)
    assert run("loma", FLAT, limit=3).evaluated == 6
