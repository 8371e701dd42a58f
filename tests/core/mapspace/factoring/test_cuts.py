"""Sizes without useful divisors, and what `map` says about them."""

import pytest

import tilewright as tw
from tilewright.mapspace.factoring.cuts import has_few_divisors


def test_few_divisors_are_those_of_a_large_prime_times_at_most_four() -> None:
    assert [n for n in range(1, 80) if has_few_divisors(n)] == [
        17, 19, 23, 29, 31, 34, 37, 38, 41, 43, 46, 47, 51, 53, 57, 58, 59, 61, 62, 67, 68, 69, 71, 73, 74, 76, 79
    ]  # fmt: skip


@pytest.mark.parametrize("factors", ["perfect", "ragged"])
def test_a_prime_size_is_named_with_its_divisors(factors: str) -> None:
    report = tw.map(
        "mk,kn->mn; m=197 k=4 n=4", "eyeriss", mapper="random", factors=factors, evaluations=100, cache=False
    )
    note = "note: tiles that divide 197 (m of einsum) are 1, 197; --factors ragged allows others"
    assert (note in report.messages()) == (factors == "perfect")
