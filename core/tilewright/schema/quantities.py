"""Types of the quantities in architectures, with their bounds."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field


def _not_tiny(value: float) -> float:
    if value < 1e-9:
        raise ValueError("must be at least 1e-09")
    return value


Energy = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]
"""Energy in pJ, bounded so that products stay finite."""
Area = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]
"""Area of one instance in square micrometres."""
Rate = Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False), AfterValidator(_not_tiny)]
Words = Annotated[int, Field(ge=1, le=2**53, strict=True)]
Count = Annotated[int, Field(ge=1, le=2**20, strict=True)]
Bits = Annotated[int, Field(ge=0, le=2**20, strict=True)]
