"""Rank correlations with ties: published values, and the definitions pair by pair."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.application.run.ranks import kendall, ranks, spearman


def column(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


KNOWN = [
    (
        (12, 2, 1, 12, 2),
        (1, 4, 7, 1, 0),
        -0.47140452079103173,
        -0.5407380704358752,
    ),  # computed by SciPy 1.17, and so are the next two
    ((1, 2, 3, 4, 5), (5, 6, 7, 8, 7), 0.7378647873726218, 0.8207826816681233),
    ((1, 2, 3, 4, 5, 6, 7, 8, 9, 10), (3, 4, 1, 2, 5, 7, 8, 10, 6, 9), 0.6444444444444444, 0.8060606060606059),
    ((1, 2, 3), (30, 20, 10), -1.0, -1.0),
    ((1, 1, 2, 2), (5, 5, 5, 7), 0.5773502691896258, 0.5773502691896258),
]


@pytest.mark.parametrize(("first", "second", "tau", "rho"), KNOWN)
def test_known_values(first: tuple[float, ...], second: tuple[float, ...], tau: float, rho: float) -> None:
    assert kendall(column(*first), column(*second)) == pytest.approx(tau, abs=1e-12)
    assert spearman(column(*first), column(*second)) == pytest.approx(rho, abs=1e-12)


@pytest.mark.parametrize("first", [(), (1.0,), (2.0, 2.0, 2.0)])
def test_a_constant_column_has_no_correlation(first: tuple[float, ...]) -> None:
    second = column(*range(len(first)))
    assert kendall(column(*first), second) is spearman(column(*first), second) is None


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(-3, 40)), min_size=2, max_size=40))
def test_both_are_their_definitions(rows: list[tuple[int, int]]) -> None:
    signs = [(np.sign(a - c), np.sign(b - d)) for (a, b), (c, d) in combinations(rows, 2)]
    free = [sum(1 for pair in signs if pair[at]) for at in (0, 1)]
    first, second = column(*(a for a, _ in rows)), column(*(b for _, b in rows))
    tau, rho = kendall(first, second), spearman(first, second)
    if not all(free):
        assert tau is rho is None
        return
    assert tau == pytest.approx(sum(int(a * b) for a, b in signs) / (free[0] * free[1]) ** 0.5)
    means = [[sum((o < v) + (o == v) / 2 for o in values) for v in values] for values in (first, second)]
    assert rho == pytest.approx(np.corrcoef(means)[0, 1])


def test_sums_in_another_order_are_ties() -> None:
    assert ranks(column(0.1 + 0.2, 0.3, 0.3000001, 0.0, 3e9 + 1e-6, 3e9)).tolist() == [1, 1, 2, 0, 3, 3]
