"""Mapping files: a mapping with its problem, architecture, metrics and provenance."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, PrivateAttr

from tilewright.errors import InputError
from tilewright.markup import Printed
from tilewright.schema.alternative import Alternative
from tilewright.schema.architecture import Architecture
from tilewright.schema.document import Document, FileModel, commented, read_document, validate
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.mapping.full import FullMapping
from tilewright.schema.mapping.levels import Level, levels_of
from tilewright.schema.origin import Origin
from tilewright.schema.problem import Problem
from tilewright.values import Model


class PluginRecord(Model):
    """Identity of a plugin, with its options."""

    name: str
    """Name of the plugin."""
    distribution: str | None = None
    """Distribution that contains it; None: an object of the caller."""
    version: str | None = None
    """Version of the distribution."""
    options: FrozenDict[str, Any] = FrozenDict()
    """All options, to run it again."""

    @property
    def long_name(self) -> str:
        """The name that no other plugin has."""
        return f"{self.distribution}/{self.name}" if self.distribution else self.name

    def __str__(self) -> str:
        return f"'{self.name}' of {self.distribution} {self.version}" if self.distribution else f"'{self.name}'"


class Provenance(Model):
    """Record of the search that found a mapping."""

    tilewright: str
    """Version of Tilewright."""
    mapper: PluginRecord
    """The mapper."""
    model: PluginRecord
    """The cost model."""
    objective: str
    """Name of the objective."""
    constraints: str
    """Name of the constraints."""
    seed: int
    """Seed of random numbers."""
    evaluated: int
    """Mappings evaluated."""
    valid: int
    """Legal ones among them."""
    stop: str
    """Why the search ended."""


class Figures(Model):
    """Metrics by the cost model of the search; edp = energy_pj x cycles."""

    cycles: int
    """Cycles of the layer."""
    energy_pj: float
    """Energy in pJ."""
    edp: float
    """Product of energy in pJ and cycles."""
    utilization: float | None = None
    """Fraction of compute units in use, averaged over cycles."""


class BoundMapping(Mapping):
    """A mapping with its problem and architecture, which can be printed and evaluated alone.

    It equals the plain mapping.
    """

    _problem: Problem = PrivateAttr()
    _architecture: Architecture = PrivateAttr()

    @classmethod
    def of(cls, mapping: Mapping, problem: Problem, architecture: Architecture) -> Self:
        bound = cls.model_construct(entries=mapping.entries)
        bound._problem, bound._architecture = problem, architecture
        return bound

    @property
    def problem(self) -> Problem:
        return self._problem

    @property
    def architecture(self) -> Architecture:
        return self._architecture

    def levels(self) -> tuple[Level, ...]:
        """Return the loops next to the memories of the architecture, and the tiles that each keeps."""
        return levels_of(self, self.problem, self.architecture)

    def full(self) -> FullMapping:
        """Return all loops and tiles, for programs that make code from the mapping."""
        return FullMapping.of(self, self.problem, self.architecture)

    def titled(self) -> str:
        """Return the loop nest below a title line."""
        return f"loop nest, tiles in words:\n{self}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self.entries == other.entries

    __hash__ = Mapping.__hash__

    def __str__(self) -> str:
        return self.nest(self.problem, self.architecture)


class AlternativeRecord(Model):
    """An alternative that a mapped problem is a step of, and the algorithm that offers it."""

    algorithm: PluginRecord
    """The plugin that offers it."""
    problem: Problem
    """The problem that it computes."""
    alternative: Alternative
    """The steps."""


class MappedProblem(Printed, FileModel):
    """A mapping file as `map` writes it.

    Example:
        >>> import tilewright as tw
        >>> import tempfile
        >>> report = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = tw.load(f"{report.save(folder)}/001_einsum.yaml", "mapping")
        >>> written.kind, written.layers
        ('mapped', ('einsum',))
    """

    schema_version: Literal[1] = 1
    kind: Literal["mapped"] = "mapped"
    layers: tuple[str, ...] = Field(default=())
    """Names of the workload's layers that the mapping serves."""
    origins: FrozenDict[str, Origin] = FrozenDict()
    """Layer -> its place in the network's file."""
    figures: Figures | None = None
    """Costs by the cost model of the search."""
    provenance: Provenance | None = None
    """The search that made it."""
    alternatives: tuple[AlternativeRecord, ...] = ()
    """Problems that this one is a step of, if algorithms were used."""
    mapping: Mapping
    """The mapping."""
    problem: Problem
    """The problem."""
    architecture: Architecture
    """The machine."""

    @property
    def bound(self) -> BoundMapping:
        """The mapping with its problem and architecture."""
        return BoundMapping.of(self.mapping, self.problem, self.architecture)

    def to_data(self) -> dict[str, Any]:
        """Return plain data that `model_validate` reads back, without values that entries inherit."""
        entries = self.mapping.to_data()["entries"]
        return super().to_data() | {"mapping": {"entries": entries}}

    def to_yaml(self) -> str:
        """Return the YAML form, with the loop nest as a comment; `from_yaml` restores it."""
        nest = commented(self.mapping.nest(self.problem, self.architecture))
        return super().to_yaml().replace("\nmapping:\n", f"\n{nest}mapping:\n", 1)

    def __str__(self) -> str:
        nest = self.mapping.nest(self.problem, self.architecture)
        return f"{self.problem.name} on {self.architecture.name}\n{nest}"


def read_mapping(path: str | Path) -> Mapping | MappedProblem:
    """Read a mapping file, bare or with its problem and architecture. Raises InputError."""
    document = read_document(path)
    return validate(MappedProblem, document) if kind_of(document) == "mapped" else validate(Mapping, document)


def kind_of(document: Document) -> str | None:
    """Return the kind that a file states, or None.

    Raises:
        InputError: the file does not consist of keys and values.
    """
    if not isinstance(document.data, dict):
        raise InputError("expected keys and values", location=document.locate(()))
    kind = document.data.get("kind")
    return kind if isinstance(kind, str) else None
