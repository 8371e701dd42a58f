"""The limit on a search that nobody limited."""

import pytest

from tilewright.application.run.configuration import DEFAULT_EVALUATIONS, limit_message, limit_of, with_default
from tilewright.plugin.mapper import Budget
from tilewright.plugin.result import Stop
from tilewright.plugin.specs import MapperSpec, lazy

ENDLESS = MapperSpec(name="endless", summary="", factory=lazy(__name__, "Absent"))
ENDING = MapperSpec(name="ending", summary="", factory=lazy(__name__, "Absent"), ends=True)


@pytest.mark.parametrize(
    ("given", "mapper", "evaluations"),
    [
        (Budget(), ENDLESS, DEFAULT_EVALUATIONS),
        (Budget(patience=7), ENDLESS, DEFAULT_EVALUATIONS),
        (Budget(seconds=1.0), ENDLESS, None),
        (Budget(evaluations=5), ENDLESS, 5),
        (Budget(), ENDING, None),
        (Budget(evaluations=5), ENDING, 5),
    ],
)
def test_a_default_limit_is_for_searches_without_end(
    given: Budget, mapper: MapperSpec, evaluations: int | None
) -> None:
    found = with_default(given, mapper)
    assert (found.evaluations, found.seconds, found.patience) == (evaluations, given.seconds, given.patience)


@pytest.mark.parametrize(
    ("stop", "said"),
    [
        ("deadline", "stopped by --seconds 0.5: n0; --seconds 5 lets it go on"),
        ("evaluations", "stopped by --evaluations 30: n0; --evaluations 300 lets it go on"),
        ("patience", "stopped by --patience 7: n0; --patience 70 lets it go on"),
        ("finished", None),
        ("cancelled", None),
    ],
)
def test_a_limit_is_told_as_it_is_typed(stop: Stop, said: str | None) -> None:
    limit = limit_of(stop, Budget(evaluations=30, seconds=0.5, patience=7))
    assert (None if limit is None else limit_message(limit, "n0")) == said


def test_no_time_at_all_is_a_limit_too() -> None:
    assert limit_message("--seconds 0", "") == "stopped by --seconds 0; --seconds 10 lets it go on"


def test_the_default_is_called_so() -> None:
    limit = limit_of("evaluations", with_default(Budget(), ENDLESS))
    assert limit is not None
    assert (
        limit_message(limit, "") == "stopped by --evaluations 100000 (the default); --evaluations 1000000 lets it go on"
    )
