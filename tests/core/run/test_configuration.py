"""The limit on a search that nobody limited."""

import pytest

from tilewright.plugin.mapper import Budget
from tilewright.plugin.specs import MapperSpec, lazy
from tilewright.run.configuration import DEFAULT_EVALUATIONS, with_default

ENDLESS = MapperSpec(name="endless", summary="", factory=lazy(__name__, "Absent"))
ENDING = MapperSpec(name="ending", summary="", factory=lazy(__name__, "Absent"), exhausts=True)


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
