"""Layout of Union's problem, architecture and mapping in YAML (Union, Figures 5, 7 and 9).

The paper leaves some details open: energies, bandwidths, kept tensors. Tilewright adds optional keys for them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from tilewright.errors import InputError
from tilewright.schema.architecture import Compute, Fanout, Memory, Network
from tilewright.schema.constraints import Constraints
from tilewright.schema.document import Document
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import DimensionName, Name, Role, Size
from tilewright.schema.quantities import Count
from tilewright.values import Model

OPERATIONS = {
    **{name.upper(): name for name in ("conv1d", "conv2d", "conv3d", "gemm", "mttkrp")},
    "TC": "contraction",
    "DWCONV": "depthwise_conv2d",
}
"""Union's names of operations -> Tilewright's."""


def _words(value: Any) -> Any:
    """Split `E, C, A` into a list; a word without commas stays one until the dimensions are known."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def _letters(value: Any) -> Any:
    """Split `N, K, C` or `NKC` into a list."""
    return list(value) if isinstance(value, str) and "," not in value else _words(value)


def _numbers(value: Any) -> Any:
    """Split `16, 1, 16` into a list of numbers."""
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(",")]
        return [int(part) if part.isdecimal() else part for part in parts]
    return [value] if isinstance(value, int) else value


def _coordinate(value: Any) -> Any:
    """Return a coordinate as text: `P + R` unchanged, Timeloop's `[[P, 2], [R]]` as `2*P + R`."""
    if not isinstance(value, list):
        return value
    terms = []
    for term in value:
        parts = term if isinstance(term, list) else [term]
        if not 1 <= len(parts) <= 2:
            raise ValueError(f"a term is [DIMENSION] or [DIMENSION, COEFFICIENT], not {term}")
        terms.append(str(parts[0]) if len(parts) == 1 else f"{parts[1]}*{parts[0]}")
    return " + ".join(terms)


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
Letters = Annotated[tuple[str, ...], BeforeValidator(_letters)]
Numbers = Annotated[tuple[Annotated[int, Field(ge=1, strict=True)], ...], BeforeValidator(_numbers)]


class DataSpace(Model):
    """A tensor. Without `role`: the output if `read_write`, else the first is the input.

    All others are weights.
    """

    name: Name
    role: Role | None = None
    projection: tuple[Annotated[str, BeforeValidator(_coordinate)], ...]
    read_write: bool = False


class UnionProblem(Model):
    """Figure 5(a): dimensions (which order all tile sizes), data spaces with projections, instance."""

    name: str = Field(default="union", min_length=1)
    source: str | None = None
    operation: str | None = None
    label: str | None = None
    unit_operation: str = "mac"
    dimensions: Letters
    data_space: tuple[DataSpace, ...]
    instance: FrozenDict[DimensionName, Size]


class UnionCluster(Model):
    """Figure 5(b): a cluster, its memory (none: virtual), and its sub-clusters along one axis."""

    cluster: Name
    virtual: bool = False
    memory: Annotated[tuple[Memory, ...], BeforeValidator(_listed)] = ()
    sub_clusters: Count = 1
    dimension: str = "X"
    multicast: bool = True
    reduction: bool = True
    unlinked: tuple[str, ...] = ()
    network: Network = Network()

    @model_validator(mode="after")
    def _virtual_or_not(self) -> Self:
        if self.virtual and self.memory:
            raise ValueError(f"cluster {self.cluster} is virtual; it cannot have a memory")
        if not self.virtual and not self.memory:
            raise ValueError(f"cluster {self.cluster} has no memory; write 'virtual: true' if it is virtual")
        return self

    @property
    def fanout(self) -> Fanout:
        return Fanout(
            size=self.sub_clusters,
            axis=self.dimension,
            multicast=self.multicast,
            reduction=self.reduction,
            unlinked=self.unlinked,
            network=self.network,
        )


class UnionArchitecture(Model):
    """Clusters, outermost first, and the compute unit inside the last."""

    name: Name = "union"
    source: str | None = None
    clock_ghz: float | None = None
    technology_nm: float | None = None
    clusters: tuple[UnionCluster, ...] = Field(min_length=1)
    compute: Compute


class UnionEntry(Model):
    """Entry of Figures 5(d), 7 and 9. `keep`, `unicast` and `spatial_order` are Tilewright's."""

    target_cluster: Name
    temporal_order: Words
    temporal_tile_sizes: Numbers
    spatial_tile_sizes: Numbers
    keep: tuple[Name, ...] | None = None
    unicast: tuple[Name, ...] = ()
    spatial_order: Words | None = None


class UnionFile(Model):
    """Any of the parts; parts of several files are combined."""

    schema_version: Literal[1] = 1
    problem: UnionProblem | None = None
    architecture: UnionArchitecture | None = None
    mapping: Annotated[tuple[UnionEntry, ...] | None, Field(min_length=1)] = None
    constraints: Constraints | None = None


def one_spelling(document: Document) -> Document:
    """Return the document with underscores in keys such as `target cluster` and `data-space`.

    Constraints are Tilewright's and stay unchanged.

    Raises:
        InputError: a key is repeated in another spelling.
    """

    def plain(data: Any, path: tuple[str | int, ...]) -> Any:
        if isinstance(data, list):
            return [plain(item, (*path, index)) for index, item in enumerate(data)]
        if not isinstance(data, dict) or path[:1] == ("constraints",):
            return data
        spelled: dict[str, Any] = {}
        for key, value in data.items():
            if _key(key) in spelled:
                raise InputError(f"'{_key(key)}' is repeated", location=document.locate((*path, key)))
            spelled[_key(key)] = plain(value, (*path, key))
        return spelled

    def spelt(path: tuple[str | int, ...]) -> tuple[str | int, ...]:
        if path[:1] == ("constraints",):
            return path
        return tuple(_key(step) if isinstance(step, str) else step for step in path)

    marks = {spelt(path): place for path, place in document.marks.items()}
    return Document(plain(document.data, ()), document.source, marks)


def _key(word: str) -> str:
    return word.replace("-", "_").replace(" ", "_")
