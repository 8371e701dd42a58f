"""Mapping: how a problem is tiled in time and space over an architecture (Union, section IV-D).

A mapping is a list of entries, outermost first. An entry splits its incoming tile by temporal loops
and keeps the temporal tile of some tensors. It then unrolls that tile over the target's
sub-clusters. Only tile sizes are stored. The loop nest and its factors are derived.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tilewright.markup import Printed
from tilewright.schema.architecture import Architecture
from tilewright.schema.document import FileModel, commented, suggestion
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping.entries import completed, shortened
from tilewright.schema.problem import DimensionName, Name, Problem, Tensor
from tilewright.values import MisplacedError, Model

TensorName = Annotated[str, Field(min_length=1)]
"""A tensor of the problem; in a shared part of a group also `layer.tensor`, where layers have any names."""
TileSizes = FrozenDict[DimensionName, Annotated[int, Field(ge=1, le=2**53, strict=True)]]


@dataclass(frozen=True)
class Loop:
    """One loop of the nest of a mapping.

    It has `trips` iterations of `dimension`, each covering `tile` iterations of the problem. The
    last one may be smaller.

    Example:
        >>> from tilewright.plugin import Loop
        >>> Loop(0, "M", 4, 2, spatial=False).trips
        4
    """

    entry: int
    dimension: str
    trips: int
    tile: int
    spatial: bool


class Entry(Model):
    """Temporal loops, kept tensors and unrolling of one cluster.

    Example:
        >>> from tilewright.plugin import Entry, FrozenDict
        >>> sizes = FrozenDict({"M": 4})
        >>> entry = Entry(target="DRAM", keep=("A",), temporal_order=("M",), temporal_tile_sizes=sizes, spatial_tile_sizes=sizes)
        >>> entry.temporal_tile_sizes["M"]
        4
    """

    _inherited: ClassVar = ("temporal_order", "temporal_tile_sizes", "spatial_tile_sizes")
    target: Name
    """Name of the cluster."""
    keep: tuple[TensorName, ...] | None = None
    """Tensors kept in its memories. [] is a memory that all bypass. None: temporal loops before an unrolling, no storage level."""
    temporal_order: tuple[DimensionName, ...]
    """Dimensions of the temporal loops, outermost first."""
    temporal_tile_sizes: TileSizes
    """Dimension -> size of the tile inside the temporal loops."""
    spatial_tile_sizes: TileSizes
    """Dimension -> size of the tile of one sub-cluster."""
    spatial_order: tuple[DimensionName, ...] | None = None
    """Dimensions, outermost first, that place sub-clusters if several share one fanout."""
    unicast: tuple[TensorName, ...] = ()
    """Tensors sent to, or collected from, each sub-cluster separately."""

    @model_validator(mode="after")
    def _same_dimensions(self) -> Self:
        dimensions = set(self.temporal_tile_sizes)
        for what, names in (
            ("temporal_order", self.temporal_order),
            ("spatial_tile_sizes", tuple(self.spatial_tile_sizes)),
            ("spatial_order", self.spatial_order or tuple(dimensions)),
        ):
            if set(names) != dimensions or len(names) != len(dimensions):
                odd = sorted(dimensions.symmetric_difference(names)) or sorted(n for n in names if names.count(n) > 1)
                raise ValueError(f"{what} must list every dimension once; check {', '.join(odd)}")
        return self


class Mapping(Printed, FileModel):
    """Entries of a mapping, outermost first.

    In a file, an entry may omit tile sizes that do not change. `temporal_tile_sizes` default to the previous entry's
    spatial tile, `spatial_tile_sizes` to the entry's own temporal tile. The first entry lists all dimensions.
    `temporal_order` lists the dimensions with loops; the others are outside them. It may be omitted if at most one
    dimension has a loop. The same holds for `spatial_order`.

    Example:
        >>> import tilewright as tw
        >>> entries = [{"target": "DRAM", "keep": ["A"], "temporal_tile_sizes": {"M": 8}}, {"target": "PE", "temporal_tile_sizes": {"M": 1}}]
        >>> mapping = tw.Mapping.model_validate({"entries": entries})
        >>> [(loop.dimension, loop.trips) for loop in mapping.loops()]
        [('M', 8)]
    """

    schema_version: Literal[1] = 1
    kind: Literal["mapping"] = "mapping"
    entries: tuple[Entry, ...] = Field(min_length=1)
    """Entries, outermost first."""

    @model_validator(mode="before")
    @classmethod
    def _inherit_tiles(cls, value: Any) -> Any:
        if not isinstance(value, dict) or not isinstance(value.get("entries"), list):
            return value
        for index, entry in enumerate(value["entries"]):
            for key in entry if isinstance(entry, dict) else ():
                if key not in Entry.model_fields:
                    text = f"unknown key '{key}'{suggestion(str(key), Entry.model_fields)}"
                    raise MisplacedError(text, "entries", index, key)
        entries = completed(value["entries"])
        return value if entries is None else value | {"entries": entries}

    @model_validator(mode="after")
    def _one_set_of_dimensions(self) -> Self:
        first = set(self.entries[0].temporal_tile_sizes)
        for index, entry in enumerate(self.entries):
            odd = first.symmetric_difference(entry.temporal_tile_sizes)
            if odd:
                raise ValueError(f"entry {index} on {entry.target} and entry 0 differ in dimensions {sorted(odd)}")
        return self

    def to_data(self) -> dict[str, Any]:
        """Return plain data that `model_validate` reads back, without values that entries inherit."""
        data = super().to_data()
        return data | {"entries": list(shortened(self.model_dump(mode="json")["entries"]))}

    def to_yaml(self) -> str:
        """Return the YAML form, with the loop nest as a comment; `from_yaml` reads it back."""
        return commented(str(self)) + super().to_yaml()

    @cached_property
    def dimension_names(self) -> tuple[str, ...]:
        return tuple(self.entries[0].temporal_tile_sizes)

    def factors(self) -> tuple[tuple[dict[str, int], dict[str, int]], ...]:
        """Return each entry's (temporal, spatial) trip counts by dimension.

        Trip counts of ragged tiles are rounded up.
        """
        result = []
        incoming = self.entries[0].temporal_tile_sizes
        for entry in self.entries:
            temporal, spatial = entry.temporal_tile_sizes, entry.spatial_tile_sizes
            result.append(
                (
                    {name: -(-incoming[name] // temporal[name]) for name in temporal},
                    {name: -(-temporal[name] // spatial[name]) for name in temporal},
                )
            )
            incoming = spatial
        return tuple(result)

    def loops(self) -> Iterator[Loop]:
        """Yield the loop nest, outermost first, without loops of one trip."""
        for index, (entry, (temporal, spatial)) in enumerate(zip(self.entries, self.factors(), strict=True)):
            for name in entry.temporal_order:
                if temporal[name] > 1:
                    yield Loop(index, name, temporal[name], entry.temporal_tile_sizes[name], spatial=False)
            for name in entry.spatial_order or self.dimension_names:
                if spatial[name] > 1:
                    yield Loop(index, name, spatial[name], entry.spatial_tile_sizes[name], spatial=True)

    def nest(self, problem: Problem | None = None, architecture: Architecture | None = None) -> str:
        """Return the loop nest as text: loops of more than one trip, and each memory's tensors.

        With the problem, it shows the words of every tile. With the architecture, it names the
        memories of a cluster. An entry without tensors and loops has no line.
        """
        loops, lines, depth = list(self.loops()), [], 0
        for index, entry in enumerate(self.entries):
            for spatial in (False, True):
                if spatial:
                    held = list(_holds(entry, problem, architecture))
                    if entry.keep == () and any(loop.entry == index for loop in loops):
                        held = [f"{entry.target} holds nothing"]
                    lines += ["  " * depth + text for text in held]
                for loop in loops:
                    if (loop.entry, loop.spatial) == (index, spatial):
                        text = f"for {loop.dimension} in {loop.trips}"
                        lines.append("  " * depth + (f"parallel {text} over {entry.target}" if spatial else text))
                        depth += 1
        if problem is not None:
            lines.append(f"{'  ' * depth}{problem.unit_operation}: {str(problem).partition(';')[0]}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.nest()

    @property
    def is_perfect(self) -> bool:
        """Whether every tile divides the tile it is cut from."""
        incoming = self.entries[0].temporal_tile_sizes
        for entry in self.entries:
            for name, temporal in entry.temporal_tile_sizes.items():
                if incoming[name] % temporal or temporal % entry.spatial_tile_sizes[name]:
                    return False
            incoming = entry.spatial_tile_sizes
        return True


def _holds(entry: Entry, problem: Problem | None, architecture: Architecture | None) -> Iterator[str]:
    """Yield a line for each memory that keeps a tensor at this entry."""
    if entry.keep is None:
        return
    held: dict[str, list[str]] = {}
    for name in entry.keep:
        tensor = next((candidate for candidate in problem.tensors if candidate.name == name), None) if problem else None
        words = ""
        if problem and tensor and tensor.dimensions <= entry.temporal_tile_sizes.keys():
            words = f" {problem.tile_words(tensor, entry.temporal_tile_sizes):,}"
        held.setdefault(_memory(entry, tensor, architecture), []).append(f"{name}{words}")
    for memory, tensors in held.items():
        yield f"{memory} holds {', '.join(tensors)}"


def _memory(entry: Entry, tensor: Tensor | None, architecture: Architecture | None) -> str:
    """Return the name of the tensor's memory, or of the cluster if the memory is unknown."""
    index = None if architecture is None else architecture.cluster_index.get(entry.target)
    if tensor is None or architecture is None or index is None:
        return entry.target
    able = [memory.name for memory in architecture.clusters[index].memories if memory.may_hold(tensor)]
    return able[0] if len(able) == 1 else entry.target
