"""The estimate of an exploration's time."""

import pytest

from tilewright.application.exploration.pace import Pace


@pytest.mark.parametrize(
    ("points", "done", "searched", "expected"),
    [
        (1000, 1.0, 24, "24 searches in 64 s: the other points take about 17.8 hours if none is left out; stop"),
        (100, 50.5, 40, "40 searches in 64 s: the other points take about 32 minutes if none is left out; stop"),
        (100, 95.0, 40, None),
        (1000, 0.0, 0, None),
    ],
)
def test_the_rest_is_told_once_after_a_minute(points: int, done: float, searched: int, expected: str | None) -> None:
    seconds = iter([0.0, 59.0, 64.0, 70.0])
    pace = Pace(points, 24, lambda: next(seconds))
    assert pace.told(0.0, 0, "stop") is None and pace.told(0.5, 12, "stop") is None
    assert pace.told(done, searched, "stop") == expected
    assert not searched or pace.told(done + 1, searched + 24, "stop") is None
