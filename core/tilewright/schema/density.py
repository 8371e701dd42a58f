"""Density of a tensor: how many of its values are nonzero, and where.

Source: Sparseloop (Wu et al., MICRO 2022), section 5.3.2.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from tilewright.values import Model

Distribution = Literal["structured", "uniform", "banded"]


class Density(Model):
    """Fraction of nonzero values of a tensor, and their distribution. A file may give the number alone: `density: 0.25`.

    `structured`: every tile has the mean number of nonzeros. `uniform`: a fixed number of nonzeros
    is placed at random, so that tiles follow the hypergeometric distribution. `banded`: a square
    matrix is nonzero where row and column differ by at most `band_width`.
    """

    distribution: Distribution = "structured"
    density: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    """Fraction of nonzero values; None for `banded`, where it follows from the width."""
    band_width: Annotated[int, Field(ge=0, le=2**40, strict=True)] | None = None
    """Number of diagonals on each side of the main one; None unless `banded`."""

    @model_validator(mode="before")
    @classmethod
    def _number_alone(cls, value: Any) -> Any:
        return {"density": value} if isinstance(value, int | float) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _one_measure(self) -> Self:
        needed, other = ("band_width", "density") if self.distribution == "banded" else ("density", "band_width")
        if getattr(self, needed) is None:
            raise ValueError(f"a {self.distribution} density needs '{needed}'")
        if getattr(self, other) is not None:
            raise ValueError(f"a {self.distribution} density has no '{other}', only '{needed}'")
        return self

    @model_serializer(mode="wrap")
    def _shortly(self, handler: SerializerFunctionWrapHandler) -> Any:
        if self.distribution == "structured":
            return self.density
        return {name: value for name, value in handler(self).items() if value is not None}

    def __str__(self) -> str:
        if self.distribution == "banded":
            return f"banded, {self.band_width} diagonals on each side"
        return f"{self.density:g} {self.distribution}"
