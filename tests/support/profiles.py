"""How many random examples properties try: more or fewer than others, by the profile that tests/conftest.py chose."""

from hypothesis import settings


def scaled(factor: float) -> settings:
    """`factor` times the examples of the profile, and at least one: less for what is dear, more for what is rare."""
    return settings(max_examples=max(1, round(factor * settings().max_examples)))
