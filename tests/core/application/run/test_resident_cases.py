"""What is left of the home beside results that stay."""

import pytest

import tilewright as tw
from support.products import products
from tilewright.application.run.resident_cases import Case, left_of
from tilewright.schema.architecture import Memory


@pytest.mark.parametrize(
    ("buffering", "reserved", "left"),
    [(1, 0, 32), (1, 16, 16), (1, 31, 1), (1, 32, 0), (1, 33, None), (2, 8, 8), (2, 16, 0), (2, 17, None)],
)
def test_results_that_stay_take_their_room(buffering: int, reserved: int, left: int | None) -> None:
    """Of 32 words, double buffering leaves 16."""
    home = Memory.model_validate(
        {"name": "Buffer", "capacity_words": 32, "read_energy_pj": 1, "write_energy_pj": 1}
        | {"multiple_buffering": buffering}
    )
    problem = tw.Workload.model_validate(products(4, (4, 4))).layers[0].problem
    found = left_of(home, problem, Case("", frozenset(), reserved * home.word_bits))
    assert (None if found is None else found.usable_words) == left
