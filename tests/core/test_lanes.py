"""Rows of numbers side by side: compiled, every operation does what NumPy does."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import TypingError
from numpy.typing import NDArray

from tilewright.compiled import (
    FEW,
    LANES,
    compiled,
    floats,
    integers,
    interpreted,
    lanes,
    load8,
    load_padded8,
    pack_bits,
    prefetch,
    product,
    splat8,
    splat16,
    total,
    transpose_to_lanes,
    unpack_bits,
)

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False) | st.sampled_from((0.0, 1.0, np.inf, np.nan))
WHOLE = st.integers(-(2**31), 2**31)


def row(numbers: st.SearchStrategy[Any], kind: type, length: int = LANES) -> st.SearchStrategy[NDArray[Any]]:
    return st.lists(numbers, min_size=length, max_size=length).map(lambda found: np.array(found, kind))


@compiled
def of_floats(a: NDArray[Any], b: NDArray[Any], number: float, found: NDArray[Any], truths: NDArray[Any]) -> bool:
    x, y = lanes(a), lanes(b)
    found[0][:], found[1][:], found[2][:], found[3][:] = x + y, x - number, number * y, x / y
    found[4][:], found[5][:] = np.minimum(x, number), np.maximum(x, y)
    found[6][:], found[7][:] = np.floor(x), np.ceil(y)
    found[8][:], found[9][:] = np.where(x < y, x, number), splat16(number)
    truths[0][:], truths[1][:], truths[2][:] = x < y, x <= number, x > y
    truths[3][:], truths[4][:], truths[5][:] = number >= y, x == y, x != y
    truths[6][:] = (x < y) | ~(y < number) & (x != number)
    return bool(np.any(x < y))


@compiled
def of_integers(
    a: NDArray[Any], b: NDArray[Any], number: int, whole: NDArray[Any], found: NDArray[Any], truths: NDArray[Any]
) -> None:
    x, y = lanes(a), lanes(b)
    whole[:] = x
    found[0][:], found[1][:], found[2][:] = x + y, x - number, x * y
    found[3][:], found[4][:], found[5][:] = x & y, x | number, 1 << (y & 63)
    found[8][:], found[9][:] = x ^ y, number >> (y & 63)
    found[6][:], found[7][:] = np.where(x < number, 1, y), integers(lanes(whole))
    truths[0][:], truths[1][:], truths[2][:], truths[3][:] = x < y, x >= number, x == y, (x & y) != 0
    truths[4][:] = lanes(truths[0]) & (number < y)


@compiled
def of_eight(
    a: NDArray[Any], b: NDArray[Any], short: NDArray[Any], number: int, found: NDArray[Any], ones: NDArray[Any]
) -> float:
    x, y = load8(a), load8(b)
    found[0][:], found[1][:], found[2][:], found[3][:] = x // y, number // y, x // 7, load_padded8(short)
    found[4][:], found[5][:] = splat8(number), np.where(unpack_bits(number), x, 0)
    ones[0], ones[1], ones[2] = total(x), pack_bits(x < y), x[number & 7]
    ones[3], ones[4] = product(x & 63), number if np.any(x == y) else 0
    return float(product(floats(x & 7)) + total(floats(x)))


@compiled
def turned(
    numbers: NDArray[Any],
    bytes: NDArray[Any],
    truths: NDArray[Any],
    first: int,
    found: NDArray[Any],
    rest: NDArray[Any],
) -> None:
    prefetch(numbers[0, 0])
    transpose_to_lanes(numbers[first : first + LANES], found)
    transpose_to_lanes(bytes[first : first + LANES], rest)
    transpose_to_lanes(bytes[first : first + LANES, 1:2], rest[1:])
    transpose_to_lanes(truths[first : first + LANES], rest.view(np.bool_)[2:])


@given(row(NUMBERS, np.float64), row(NUMBERS, np.float64), NUMBERS)
def test_floats(a: NDArray[Any], b: NDArray[Any], number: float) -> None:
    ours, theirs = np.zeros((2, 10, LANES))
    true, truths = np.zeros((2, 7, LANES), np.bool_)
    some = of_floats(a, b, number, ours, true)
    with np.errstate(all="ignore"):
        assert some == interpreted(of_floats)(a, b, number, theirs, truths)
    nan = np.isnan(a) | np.isnan(b) | np.isnan(number)
    theirs[4:6, nan], ours[4:6, nan] = 0.0, 0.0  # of what is no number, either may be the least
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(true, truths)


@given(row(WHOLE, np.int64), row(WHOLE, np.int64), WHOLE)
def test_integers(a: NDArray[Any], b: NDArray[Any], number: int) -> None:
    ours, theirs = np.zeros((2, 10, LANES), np.int64)
    true, truths = np.zeros((2, 5, LANES), np.bool_)
    whole, numbers = np.zeros((2, LANES))
    of_integers(a, b, number, whole, ours, true)
    interpreted(of_integers)(a, b, number, numbers, theirs, truths)
    np.testing.assert_array_equal(whole, numbers)
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(true, truths)


@given(
    row(st.integers(-(2**52), 2**52), np.int64, FEW),
    row(st.integers(1, 2**40) | st.integers(1, 9), np.int64, FEW),
    st.integers(1, FEW),
    st.integers(0, 2**45),
)
def test_eight(a: NDArray[Any], b: NDArray[Any], length: int, number: int) -> None:
    ours, theirs = np.zeros((2, 6, FEW), np.int64)
    one, other = np.zeros((2, 5), np.int64)
    fraction = of_eight(a, b, a[:length], number, ours, one)
    assert fraction == interpreted(of_eight)(a, b, a[:length], number, theirs, other)
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(one, other)
    assert ours[0].tolist() == [x // y for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert pack_bits(unpack_bits(number)) == number % 2**FEW


@given(st.integers(2, 9), st.integers(1, 8), st.integers(0, 4), st.randoms(use_true_random=False))
def test_turned(slots: int, dims: int, first: int, random: Any) -> None:
    shape = 20, slots, dims
    numbers = np.array([random.randrange(-(10**9), 10**9) for _ in range(20 * slots * dims)]).reshape(shape)
    bytes = (numbers % 256).astype(np.uint8)
    ours, theirs = np.zeros((2, slots + 1, dims, LANES))
    some, others = np.zeros((2, slots + 3, dims, LANES), np.uint8)
    turned(numbers, bytes, bytes > 99, first, ours, some)
    interpreted(turned)(numbers, bytes, bytes > 99, first, theirs, others)
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(some, others)
    np.testing.assert_array_equal(ours[:slots, :, 3], numbers[first + 3])


def test_a_number_of_another_kind_is_refused() -> None:
    @compiled
    def halves(row: NDArray[Any]) -> None:
        row[:] = lanes(row) * 0.5

    halves(np.ones(LANES))
    with pytest.raises(TypingError):
        halves(np.ones(LANES, np.int64))
