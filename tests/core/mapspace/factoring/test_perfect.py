"""Tables of factorisations: counted before they are listed, and listed in one sequence."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import SpaceTooLargeError
from tilewright.mapspace.factoring.perfect import factorizations

BOUNDS = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 24)), max_size=4)


@given(st.sampled_from([1, 6, 12, 24, 60, 97]), BOUNDS)
def test_all_within_bounds_the_last_slot_slowest(size: int, bounds: list[tuple[int, int]]) -> None:
    every = itertools.product(*(range(low, high + 1) for low, high in reversed(bounds)))
    wanted = [list(reversed(trips)) for trips in every if math.prod(trips) == size]
    assert factorizations(size, bounds).tolist() == wanted


def test_too_many_are_counted_and_not_listed() -> None:
    """2**4 over 119 slots: C(122, 4)."""
    assert math.comb(122, 4) == 8_783_390
    with pytest.raises(SpaceTooLargeError, match="size 16 has 8,783,390 factorisations over 119 slots"):
        factorizations(16, [(1, 16)] * 119)
    with pytest.raises(SpaceTooLargeError, match="over 2000 slots"):
        factorizations(2**40, [(1, 2**40)] * 2000)
