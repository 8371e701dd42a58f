"""The estimate of an exploration's time."""

import pytest

from tilewright.application.exploration.pace import Pace


@pytest.mark.parametrize(
    ("left", "searched", "expected"),
    [
        (23976, 24, "24 searches in 64 s: the other points take about 17.8 hours if none is left out; stop"),
        (1188, 40, "40 searches in 64 s: the other points take about 32 minutes if none is left out; stop"),
        (120, 40, None),
        (24000, 0, None),
    ],
)
def test_the_rest_is_told_once_after_a_minute_of_searches(left: int, searched: int, expected: str | None) -> None:
    seconds = iter([0.0, 500.0, 559.0, 564.0, 570.0])
    pace = Pace(clock=lambda: next(seconds))
    assert pace.told(0, lambda: 0, "stop") is None and pace.told(0, lambda: 0, "stop") is None  # bounds of points
    assert not searched or pace.told(12, lambda: left + 12, "stop") is None
    assert pace.told(searched, lambda: left, "stop") == expected
    assert not searched or pace.told(searched + 24, lambda: left - 24, "stop") is None


def test_the_estimate_of_shared_searches_is_that_of_the_first_ones_and_says_what_it_leaves_out() -> None:
    seconds = iter([0.0, 60.0])
    pace = Pace(shares=True, clock=lambda: next(seconds))
    assert pace.told(0, lambda: 2400, "stop") is None
    assert pace.told(100, lambda: 2300, "stop") == (
        "100 first searches of families in 60 s: the others take about 23 minutes if none is left out, "
        "and searches of single machines follow; stop"
    )
