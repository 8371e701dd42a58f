"""Layers in directives, each with its dataflow, and MAESTRO's hardware."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tilewright.schema.frozen import FrozenDict
from tilewright.values import Model

Positive = Annotated[int, Field(ge=1, le=2**40, strict=True)]
LayerType = Literal["CONV", "DSCONV", "NGCONV", "TRCONV", "GEMM"]

WINDOWS = {"Y": "R", "X": "S"}
"""Rows and columns -> the filter dimension that slides along them."""

INPUT, FILTER, OUTPUT = "input", "filter", "output"
"""Names of MAESTRO's tensors."""
_TENSORS: dict[LayerType, dict[str, str]] = {
    "CONV": {INPUT: "CYX", FILTER: "KCRS", OUTPUT: "KYX"},
    "TRCONV": {INPUT: "CYX", FILTER: "KCRS", OUTPUT: "KYX"},
    "DSCONV": {INPUT: "CYX", FILTER: "CRS", OUTPUT: "CYX"},
    "NGCONV": {INPUT: "GCYX", FILTER: "GKCRS", OUTPUT: "GKCYX"},
    "GEMM": {INPUT: "MK", FILTER: "KN", OUTPUT: "MN"},
}

NEEDED = {kind: "".join(dict.fromkeys(tensors[FILTER] + tensors[INPUT])) for kind, tensors in _TENSORS.items()}
"""Dimensions that a layer of each type must have."""


class Map(Model):
    """`SpatialMap(size, offset) dimension` or `TemporalMap(size, offset) dimension`.

    Each sub-cluster works on `size` consecutive indices. The next sub-cluster (spatial) or the next
    step (temporal) starts `offset` later. `Y'` and `X'` are output rows and columns.
    """

    spatial: bool
    size: Positive
    offset: Positive
    dimension: str

    def __str__(self) -> str:
        return f"{'Spatial' if self.spatial else 'Temporal'}Map({self.size},{self.offset}) {self.dimension}"


class DirectiveLayer(Model):
    """A layer and its dataflow.

    Attributes:
        dimensions: CONV: N K C R S Y X (input rows and columns, padding included); GEMM: M N K.
        strides: `Y` and `X` -> stride; 1 if absent.
        levels: the directives of each level, outermost first.
        cluster_sizes: `Cluster(c)` between the levels: number of sub-clusters of the next level.
    """

    name: str
    type: LayerType
    dimensions: FrozenDict[str, Positive]
    strides: FrozenDict[str, Positive] = FrozenDict()
    levels: tuple[tuple[Map, ...], ...] = Field(min_length=1)
    cluster_sizes: tuple[Positive, ...] = ()

    @model_validator(mode="after")
    def _complete(self) -> Self:
        for name in NEEDED[self.type]:
            if name not in self.dimensions:
                raise ValueError(f"{self.type} needs dimension {name}")
        return self

    @property
    def tensors(self) -> dict[str, str]:
        """Tensor -> letters of its dimensions; an output's Y and X are output rows and columns."""
        table = dict(_TENSORS[self.type])
        if self.type != "GEMM" and "N" in self.dimensions:
            for name in (INPUT, OUTPUT):
                table[name] = "N" + table[name]
        return table

    def stride(self, dimension: str) -> int:
        return self.strides.get(dimension, 1)

    def outputs(self, dimension: str) -> int:
        """Return the number of results along a dimension.

        For Y and X of a convolution these are the positions of the window, otherwise the size.
        """
        size = self.dimensions[dimension]
        if self.type == "GEMM" or dimension not in WINDOWS:
            return size
        return max(0, (size - self.dimensions[WINDOWS[dimension]]) // self.stride(dimension) + 1)

    @property
    def macs(self) -> int:
        """Number of MACs. A depthwise layer has one filter per channel, regardless of K."""
        names = set(self.dimensions) - ({"K"} if self.type == "DSCONV" else set())
        return math.prod(self.outputs(name) for name in names)


class DirectiveHardware(Model):
    """Hardware parameters of MAESTRO: one network for all levels, sizes in elements.

    A size of None is unlimited.
    """

    num_pes: Positive = 1
    l1_size: Positive | None = None
    l2_size: Positive | None = None
    noc_bandwidth: Positive = 2**31 - 1
    """Elements per cycle."""
    noc_latency: Annotated[int, Field(ge=0, strict=True)] = 1
    """Cycles."""
    offchip_bandwidth: Positive = 2**31 - 1
    """Elements per cycle."""
    simd_lanes: Positive = 1
    """MACs per PE and cycle."""
