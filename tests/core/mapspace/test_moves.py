"""Moves of a space: orders listed, neighbours by one prime or by several equal ones."""

import math
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.mappers import ARRAY


def test_reordered_lists_the_first_orders_of_every_mapping() -> None:
    """All different, all of the space, the factors unchanged; and all orders there are if as many are asked for."""
    batch = ARRAY.sample(np.random.default_rng(2), 40)
    some = ARRAY.reordered(batch, 5)
    found = Counter(row.tobytes() for row in some.trips)
    assert max(found.values()) <= 5 * max(Counter(row.tobytes() for row in batch.trips).values())
    assert all(ARRAY.contains(mapping) for mapping in some)

    one = batch.take(slice(0, 1))
    every = ARRAY.reordered(one, 10**6)
    non_unit = (one.trips > 1)[0, list(ARRAY.temporal_slots)].sum(axis=1)
    assert len(every) == math.prod(math.factorial(int(k)) for k in non_unit)
    assert len({mapping.model_dump_json() for mapping in every}) == len(every)
    assert (every.trips == one.trips).all() and (every.keeps == one.keeps).all()

    outer = ARRAY.reordered(one, 10**6, slice(None, -1))
    assert len(outer) == math.prod(math.factorial(int(k)) for k in non_unit[:-1])
    assert (outer.orders[:, -1] == one.orders[0, -1]).all()


@given(st.integers(0, 2**32))
def test_neighbours_by_powers_are_several_single_moves(seed: int) -> None:
    """They contain the single moves, and differ from their origin in one dimension of two slots."""
    batch = ARRAY.sample(np.random.default_rng(seed), 3)
    single, _ = ARRAY.neighbours(batch)
    several, origin = ARRAY.neighbours(batch, powers=True)
    assert {row.tobytes() for row in single.trips} <= {row.tobytes() for row in several.trips}
    changed = several.trips != batch.trips[origin]
    assert (changed.sum(axis=(1, 2)) == 2).all() and (changed.any(axis=1).sum(axis=1) == 1).all()
    assert all(ARRAY.contains(mapping) for mapping in several)
