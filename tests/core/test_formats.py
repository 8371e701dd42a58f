"""Numbers as text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.formats import Form, quantity


def test_numbers_in_lines() -> None:
    assert [quantity(value, "pJ x cycles") for value in (12, 12_000, 3.2e16)] == [
        "12 pJ x cycles", "12.00 nJ x cycles", "32.00 kJ x cycles",
    ]  # fmt: skip
    assert (quantity(0.25, ""), quantity(None, "pJ"), quantity(1234567, "cycles")) == ("0.250", "-", "1,234,567 cycles")


@given(st.floats(1e-3, 1e20), st.sampled_from(["", "pJ", "pJ x cycles"]))
def test_a_number_is_read_back(value: float, unit: str) -> None:
    text = quantity(value, unit)
    found = re.fullmatch(r"([\d,]+(?:\.\d+)?)(?: ([pnumkMGT]?)J.*)?", text)

    assert found is not None
    step = {"p": 1.0, "n": 1e3, "u": 1e6, "m": 1e9, "": 1e12, "k": 1e15, "M": 1e18, "G": 1e21, "T": 1e24}
    read = float(found[1].replace(",", "")) * (step[found[2]] if unit else 1.0)
    assert read == pytest.approx(value, rel=5e-4, abs=5e-4)


def test_numbers_of_a_column_share_unit_and_decimals() -> None:
    form = Form.of([4.2e6, 1e9], "pJ")
    assert (form.step, form.unit, form.text(4.2e6), form.text(1e9)) == (1e6, "uJ", "4.200", "1,000.000")
    assert [form.text(number) for number in (None, float("inf"), 1.0)] == ["-", "-", "<0.001"]
