"""Counting against enumeration: values of affine indices, sizes of map spaces."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import SpaceTooLargeError
from tilewright.mapspace import counting
from tilewright.mapspace.counting import distinct_values, prime_powers
from tilewright.mapspace.space import MapSpace
from tilewright.schema.architecture import Architecture, Cluster, Compute, Fanout, Memory
from tilewright.schema.problem import Problem
from tilewright.testing.strategies import problems


def listed(terms: list[tuple[int, int]]) -> int:
    """Return the number of values by enumeration."""
    ranges = [range(0, coefficient * extent, coefficient) for coefficient, extent in terms]
    return len({sum(values) for values in itertools.product(*ranges)})


def test_the_closed_count_of_two_terms_is_the_enumerated_one() -> None:
    """All strides, dilations and extents up to 12."""
    for stride, dilation in itertools.product(range(1, 13), repeat=2):
        for outputs, weights in itertools.product(range(1, 13), repeat=2):
            terms = [(stride, outputs), (dilation, weights)]
            assert distinct_values(terms) == listed(terms), terms


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 7)), max_size=4))
def test_any_number_of_terms(terms: list[tuple[int, int]]) -> None:
    count = distinct_values(terms)
    assert count == listed(terms)
    box = 1 + sum(coefficient * (extent - 1) for coefficient, extent in terms)
    assert count <= min(box, math.prod(extent for _, extent in terms))


def test_large_counts_are_exact() -> None:
    assert distinct_values([(2**31, 2**40), (1, 2**40)]) == (2**40 - 1) * 2**31 + 2**40
    assert distinct_values([(3, 10**6), (6, 10**6), (9, 10**6)]) == 1 + (1 + 2 + 3) * (10**6 - 1)


def test_what_cannot_be_counted_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        distinct_values([(0, 3)])
    monkeypatch.setattr(counting, "MAX_INDEX", 1000)
    with pytest.raises(SpaceTooLargeError, match="3 terms reaches 1094"):
        distinct_values([(1, 100), (5, 100), (5, 101), (7, 1)])


def unbounded(problem: Problem, memories: int) -> MapSpace:
    """Memories without limits, one below the other, and a fanout that no problem fills: one level more."""
    clusters = [
        Cluster(name=f"C{n}", memories=(Memory(name=f"M{n}", read_energy_pj=1, write_energy_pj=1),))
        for n in range(memories)
    ]
    wide = Fanout(size=1).model_copy(update={"size": 2**40})  # wider than files may say
    clusters[-1] = clusters[-1].model_copy(update={"fanout": wide})
    compute = Compute(energy_per_operation_pj=1)
    return MapSpace.of(problem, Architecture(name="wide", clusters=tuple(clusters), compute=compute), rules=None)


def ways(sizes: Sequence[int], levels: int) -> int:
    """To place the prime factors of all sizes over levels."""
    return math.prod(
        math.comb(power + levels - 1, levels - 1) for size in sizes for prime, power in prime_powers(size) if prime > 1
    )


def test_a_map_space_is_as_large_as_published() -> None:
    """QuickFlow, section III-D: five levels, four of them memories, six dimensions of five factors: beyond 10**21."""
    tensors = [
        {"name": "I", "role": "input", "projection": list("ABC")},
        {"name": "O", "role": "output", "projection": list("DEF")},
    ]
    problem = Problem.model_validate({"name": "six", "dimensions": dict.fromkeys("ABCDEF", 32), "tensors": tensors})
    space = unbounded(problem, memories=4)
    assert space.factorizations == ways([32] * 6, levels=5) == math.comb(9, 4) ** 6
    assert space.factorizations * math.factorial(6) ** 4 > 10**21


@given(problems(max_dimensions=4, max_macs=300))
def test_factors_of_a_space_that_nothing_bounds(problem: Problem) -> None:
    space = unbounded(problem, memories=2)
    assert [slot.spatial for slot in space.slots] == [False, False, True]
    assert space.factorizations == ways(space.problem.sizes, levels=3)
    assert space.size <= space.factorizations * math.factorial(len(space.problem.sizes)) ** 2


def test_the_example_of_ways() -> None:
    """The table at the head of the module: size 4, one slot left and two slots left."""
    start, after = np.array([0, 1, 3, 6]), np.array([0, 1, 0, 2, 1, 0])
    ways, result = np.ones((1, 3, 1)), np.zeros((1, 3, 1))
    counting.add_up(start, np.ones(6), after, math.inf, ways, result)
    assert result.ravel().tolist() == [1, 2, 3]
