"""Objectives: the metrics that a search minimises, energy to one power times cycles to another."""

from __future__ import annotations

import functools
import math
import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from pydantic_core import core_schema

from tilewright.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ObjectiveName = Literal[
    "energy", "cycles", "edp", "ed2p", "ed3p", "ed4p", "ed5p", "ed6p", "ed7p", "ed8p", "ed9p", "e2dp", "e2d3p",
    "e2d5p", "e2d7p", "e2d9p", "e3dp", "e3d2p", "e3d4p", "e3d5p", "e3d7p", "e3d8p", "e4dp", "e4d3p", "e4d5p",
    "e4d7p", "e4d9p", "e5dp", "e5d2p", "e5d3p", "e5d4p", "e5d6p", "e5d7p", "e5d8p", "e5d9p", "e6dp", "e6d5p",
    "e6d7p", "e7dp", "e7d2p", "e7d3p", "e7d4p", "e7d5p", "e7d6p", "e7d8p", "e7d9p", "e8dp", "e8d3p", "e8d5p",
    "e8d7p", "e8d9p", "e9dp", "e9d2p", "e9d4p", "e9d5p", "e9d7p", "e9d8p",
]  # fmt: skip
"""Names of all objectives, for type checkers."""
Figure = TypeVar("Figure", float, "NDArray[np.float64]")


@dataclass(frozen=True)
class Objective:
    """Metric that a search minimises: energy in pJ to one power times cycles to another.

    The powers are 0 to 9 without a common divisor, since a power of a metric orders mappings as the metric does.
    Files and options have its name: `energy`, `cycles`, or `edp`, `ed2p`, `e2dp` and so on for products.

    >>> Objective(1, 2).name, Objective.named("ed2p").unit, Objective(1, 2).value(10.0, 3.0)
    ('ed2p', 'pJ x cycles^2', 90.0)

    Raises:
        InputError: The powers are others.
    """

    energy_power: int
    cycle_power: int

    def __post_init__(self) -> None:
        if not (all(0 <= power <= 9 for power in self.powers) and math.gcd(*self.powers) == 1):
            raise InputError(f"the powers of an objective are {self.powers}; expected 0 to 9 without a common divisor")

    @classmethod
    def named(cls, name: str | Objective) -> Objective:
        """Return the objective of that name; an objective is returned unchanged.

        Raises:
            InputError: There is none.
        """
        if isinstance(name, Objective):
            return name
        product = re.fullmatch("e([2-9]?)d([2-9]?)p", str(name))
        powers = [int(power or 1) for power in product.groups()] if product else []
        if powers and math.gcd(*powers) == 1:
            return cls(*powers)
        for known in KNOWN:
            if known.name == name:
                return known
        *others, last = (known.name for known in KNOWN)
        raise InputError(f"objective is {name!r}; expected {', '.join(others)} or {last}")

    @property
    def powers(self) -> tuple[int, int]:
        """Powers of energy and of cycles."""
        return self.energy_power, self.cycle_power

    @property
    def is_additive(self) -> bool:
        """Whether the value of several layers is the sum of their values."""
        return sum(self.powers) == 1

    @property
    def name(self) -> ObjectiveName:
        if self.is_additive:
            return "energy" if self.energy_power else "cycles"
        energy, cycles = ("" if power == 1 else power for power in self.powers)
        return cast("ObjectiveName", f"e{energy}d{cycles}p")

    @property
    def title(self) -> str:
        """The name as tables show it, such as `EDP`."""
        return self.name if self.is_additive else self.name.upper()

    @property
    def unit(self) -> str:
        parts = zip(("pJ", "cycles"), self.powers, strict=True)
        return " x ".join(unit if power == 1 else f"{unit}^{power}" for unit, power in parts if power)

    def needed(self, energy_pj: Figure, cycles: Figure) -> tuple[Figure, ...]:
        """Return those of energy and cycles on which the value depends."""
        return tuple(figure for figure, power in zip((energy_pj, cycles), self.powers, strict=True) if power)

    def value(self, energy_pj: Figure, cycles: Figure) -> Figure:
        """Return the value of energies in pJ and cycles, numbers or arrays of one shape."""
        factors = [energy_pj] * self.energy_power + [cycles] * self.cycle_power
        return functools.reduce(operator.mul, factors)

    def derivatives(self, energy_pj: float, cycles: float) -> tuple[float, float]:
        """Return the derivatives of the value by energy and by cycles. Neither is negative."""
        energy, time = self.powers
        return (
            energy * energy_pj ** (energy - 1) * cycles**time if energy else 0.0,
            time * energy_pj**energy * cycles ** (time - 1) if time else 0.0,
        )

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        """Raise TypeError for a text: a plugin that compares names would otherwise silently take another branch."""
        if isinstance(other, str):
            raise TypeError(f"an objective is no text; compare its name with {other!r}: objective.name")
        return isinstance(other, Objective) and self.powers == other.powers

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> core_schema.CoreSchema:
        """Return how models check and write an objective: by its name."""
        return core_schema.json_or_python_schema(
            json_schema=core_schema.no_info_after_validator_function(cls.named, core_schema.str_schema()),
            python_schema=core_schema.no_info_plain_validator_function(cls.named),
            serialization=core_schema.to_string_ser_schema(),
        )


ENERGY, CYCLES, EDP, ED2P = Objective(1, 0), Objective(0, 1), Objective(1, 1), Objective(1, 2)
KNOWN = (EDP, ED2P, ENERGY, CYCLES)
"""Objectives that messages name. Other products have names, too."""
