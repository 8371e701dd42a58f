"""Energy tables: which row of an action counts, and which action."""

import pytest

from tilewright.schema.document import parse_document
from tilewright_adapters.timeloop.cursor import Cursor
from tilewright_adapters.timeloop.reading.energies import READ, UPDATE, WRITE, Energies, pick, read_energies


def table(text: str) -> Energies:
    return read_energies(Cursor(parse_document(text, source="ERT.yaml")))


LISTED = """
version: 0.4
tables:
- name: system.GLB
  actions:
  - {name: read, arguments: {data_delta: 1}, energy: 1.5}
  - {name: read, arguments: {data_delta: 0}, energy: 4.0}
  - {name: read, arguments: {data_delta: 2}, energy: 0.25}
  - {name: write, energy: 3.0}
  - {name: write, energy: 2.0}
"""
BY_NAME = """
version: 0.2
tables:
  system.GLB:
    read: [{energy: 1.5}, {energy: 4.0}, {energy: 0.25}]
    write: [{energy: 3.0}, {energy: 2.0}]
"""


@pytest.mark.parametrize("text", [LISTED, BY_NAME])
def test_the_dearest_row_of_an_action_counts_wherever_it_stands(text: str) -> None:
    assert table(text) == {"GLB": {"read": 4.0, "write": 3.0}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"read": 1.0, "write": 2.0}, (1.0, 2.0, 2.0)),
        ({"read": 1.0, "write": 2.0, "update": 3.0}, (1.0, 2.0, 3.0)),
        ({"read": 1.0, "write": 2.0, "update": 3.0, "random_write": 4.0}, (1.0, 4.0, 4.0)),
        ({"random_read": 5.0, "read": 1.0, "fill": 6.0, "write": 2.0}, (5.0, 6.0, 2.0)),
        ({"random_update": 7.0, "random_fill": 8.0, "write": 2.0}, (None, 8.0, 7.0)),
        ({"access": 1.0}, (None, None, None)),
    ],
)
def test_the_first_name_of_an_action_counts(
    given: dict[str, float], expected: tuple[float | None, float | None, float | None]
) -> None:
    assert tuple(pick(given, names) for names in (READ, WRITE, UPDATE)) == expected
