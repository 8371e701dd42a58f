"""Types of the quantities in architectures, with their bounds."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

MAX_FANOUT = 2**20
"""Maximum number of sub-clusters of a cluster."""


def _not_tiny(value: float) -> float:
    if value < 1e-9:
        raise ValueError("must be at least 1e-09")
    return value


def _one_axis(value: Any) -> Any:
    extents = value.lower().split("x") if isinstance(value, str) else value
    if isinstance(extents, list | tuple) and len(extents) > 1:
        told = f"a fanout has one axis (found {value!r})"
        raise ValueError(f"{told}; {len(extents)} axes are {len(extents)} nested clusters, a fanout each")
    return value


def _few(value: int) -> int:
    if value > MAX_FANOUT:
        raise ValueError(f"must be at most {MAX_FANOUT:,}")
    return value


Energy = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]
"""Energy in pJ, bounded so that products stay finite."""
Area = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]
"""Area of one instance in square micrometres."""
Rate = Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False), AfterValidator(_not_tiny)]
Words = Annotated[int, Field(ge=1, le=2**53, strict=True)]
Count = Annotated[int, Field(ge=1, le=2**20, strict=True)]
Bits = Annotated[int, Field(ge=0, le=2**20, strict=True)]
SubClusters = Annotated[Words, BeforeValidator(_one_axis), AfterValidator(_few)]
"""Number of sub-clusters along the axis of a fanout."""
