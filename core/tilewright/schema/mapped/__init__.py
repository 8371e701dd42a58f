"""A mapping that travels: with the problem and the architecture it is for, its figures and where it came from."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, PrivateAttr

from tilewright.errors import InputError
from tilewright.schema.alternative import Alternative
from tilewright.schema.architecture import Architecture
from tilewright.schema.document import Document, FileModel, commented, read_document, validate
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.tables import Printed
from tilewright.values import Model


class PluginRecord(Model):
    """Which plugin did it: enough to run it again."""

    name: str
    distribution: str | None = None
    version: str | None = None
    options: FrozenDict[str, Any] = FrozenDict()

    @property
    def long_name(self) -> str:
        """The name that no other plugin has."""
        return f"{self.distribution}/{self.name}" if self.distribution else self.name

    def __str__(self) -> str:
        return f"'{self.name}' of {self.distribution} {self.version}" if self.distribution else f"'{self.name}'"


class Provenance(Model):
    """How a mapping came to be."""

    tilewright: str
    mapper: PluginRecord
    model: PluginRecord
    objective: str
    constraints: str
    seed: int
    evaluated: int
    valid: int
    stop: str


class Figures(Model):
    """What it costs by the model that the search asked; edp = energy_pj x cycles."""

    cycles: int
    energy_pj: float
    edp: float
    utilization: float | None = None


class BoundMapping(Mapping):
    """A mapping that knows its problem and architecture: it prints with memories and words, and needs nothing else to be
    evaluated. Equal to the plain mapping."""

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

    def titled(self) -> str:
        """The loop nest, under a line that says so."""
        return f"loop nest, tiles in words:\n{self}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self.entries == other.entries

    __hash__ = Mapping.__hash__

    def __str__(self) -> str:
        return self.nest(self.problem, self.architecture)


class AlternativeRecord(Model):
    """What a mapped problem is a step of: the alternative that `algorithm` offers for another problem."""

    algorithm: PluginRecord
    problem: Problem
    alternative: Alternative


class MappedProblem(Printed, FileModel):
    """A mapping file as `map` writes it. `layers` are the workload's layers it serves; `alternatives` tell of what
    other problems it is a step, where algorithms were asked for."""

    schema_version: Literal[1] = 1
    kind: Literal["mapped"] = "mapped"
    layers: tuple[str, ...] = Field(default=())
    figures: Figures | None = None
    provenance: Provenance | None = None
    alternatives: tuple[AlternativeRecord, ...] = ()
    mapping: Mapping
    problem: Problem
    architecture: Architecture

    def to_data(self) -> dict[str, Any]:
        """Plain data that `model_validate` reads back to an equal object, without what entries inherit."""
        entries = self.mapping.to_data()["entries"]
        return super().to_data() | {"mapping": {"entries": entries}}

    def to_yaml(self) -> str:
        """The YAML form, with the loop nest as a comment; `from_yaml` reads it back to an equal object."""
        nest = commented(self.mapping.nest(self.problem, self.architecture))
        return super().to_yaml().replace("\nmapping:\n", f"\n{nest}mapping:\n", 1)

    def __str__(self) -> str:
        nest = self.mapping.nest(self.problem, self.architecture)
        return f"{self.problem.name} on {self.architecture.name}\n{nest}"


def read_mapping(path: str | Path) -> Mapping | MappedProblem:
    """A mapping file, bare or with its problem and architecture. Raises InputError."""
    document = read_document(path)
    return validate(MappedProblem, document) if kind_of(document) == "mapped" else validate(Mapping, document)


def kind_of(document: Document) -> str | None:
    """What a file says it is; None if it does not say. Raises InputError if it is no mapping of keys at all."""
    if not isinstance(document.data, dict):
        raise InputError("expected keys and values", location=document.locate(()))
    kind = document.data.get("kind")
    return kind if isinstance(kind, str) else None
