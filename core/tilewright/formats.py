"""Numbers as text: units with prefixes, decimals, exponents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

PREFIXES = ("p", "n", "u", "m", "", "k", "M", "G", "T")
SCALED = {"pJ": "J", "pJ x cycles": "J x cycles", "ps": "s"}
"""Units that may get a prefix, with the base unit behind the prefix."""


@dataclass(frozen=True)
class Form:
    """Number format: divide by `step`, and write with `unit` and `decimals`."""

    step: float
    unit: str
    decimals: int

    @classmethod
    def of(cls, numbers: Sequence[int | float], unit: str, decimals: int | None = None) -> Form:
        """Return the format of a column with these numbers; without `decimals`, four digits of the least one are shown."""
        sizes = [abs(number) for number in numbers if number]
        least, most = min(sizes, default=1), max(sizes, default=1)
        power = 0
        if unit in SCALED:
            while power < len(PREFIXES) - 1 and (least >= 1000 ** (power + 1) or most >= 1e9 * 1000**power):
                power += 1
            unit = PREFIXES[power] + SCALED[unit]
        step = 1000.0**power
        if decimals is None:
            whole = power == 0 and all(number == int(number) for number in numbers)
            decimals = 0 if whole else max(0, min(3, 3 - math.floor(math.log10(least) - 3 * power)))
        return cls(step, unit, decimals)

    def text(self, number: float | None) -> str:
        """Return a number; None and infinities are `-`."""
        if number is None or not math.isfinite(number):
            return "-"
        value = number if self.step == 1 else number / self.step
        text = f"{value:,.{self.decimals}f}"
        return f"<{10.0**-self.decimals:.{self.decimals}f}" if value > 0 and not text.strip("0.") else text


def common_unit(values: Sequence[int | float], unit: str) -> tuple[float, str]:
    """Return the factor and name of the unit in which a column shows the values.

    >>> common_unit([4.2e6, 1e9], "pJ")
    (1000000.0, 'uJ')
    """
    form = Form.of(values, unit)
    return form.step, form.unit


def quantity(value: float | None, unit: str) -> str:
    """Return a number with its unit, for a line of text.

    >>> quantity(210_300_000.0, "pJ"), quantity(221778, "cycles"), quantity(None, "pJ")
    ('210.3 uJ', '221,778 cycles', '-')
    """
    if value is None or not math.isfinite(value):
        return "-"
    form = Form.of([value], unit)
    return f"{form.text(value)} {form.unit}".rstrip()


def figure(value: float | None, digits: int = 4) -> str:
    """Return a number for a line of text: in full if it is short, otherwise with an exponent.

    >>> figure(12345), figure(0.25), figure(3.03128357e16), figure(None)
    ('12,345', '0.25', '3.031e+16', '-')
    """
    if value is None or math.isinf(value) or math.isnan(value):
        return "-"
    if value == int(value) and abs(value) < 1e8:
        return f"{int(value):,}"
    return f"{value:.{digits}g}"
