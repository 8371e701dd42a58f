"""How many random examples properties try, by the profile that tests/conftest.py chose, and which cases the default run tries."""

from collections.abc import Iterable

import pytest
from hypothesis import settings


def scaled(factor: float) -> settings:
    """`factor` times the examples of the profile, and at least one: less for what is dear, more for what is rare."""
    return settings(max_examples=max(1, round(factor * settings().max_examples)))


def first(count: int, *cases: object) -> list[object]:
    """Return the parameters of a test. The default run tries the first `count` of them; the others are `exhaustive`."""
    return [*cases[:count], *(pytest.param(*_values(case), marks=pytest.mark.exhaustive) for case in cases[count:])]


def _values(case: object) -> Iterable[object]:
    return case if isinstance(case, tuple) else (case,)
