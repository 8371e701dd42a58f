"""A mapping that travels: with the problem and the architecture it is for, its price and where it came from."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from tilewright.errors import InputError
from tilewright.schema.architecture import Architecture
from tilewright.schema.document import Document, FileModel, read_document, validate
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.values import Model


class PluginRecord(Model):
    """Which plugin did it: enough to run it again."""

    name: str
    distribution: str | None = None
    version: str | None = None
    options: FrozenDict[str, Any] = FrozenDict()


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
    """The price by the model that guided the search; edp = energy_pj x cycles."""

    cycles: int
    energy_pj: float
    edp: float
    utilization: float | None = None


class MappedProblem(FileModel):
    """A mapping file as `map` writes it. `layers` are the workload's layers it serves."""

    schema_version: Literal[1] = 1
    kind: Literal["mapped"] = "mapped"
    layers: tuple[str, ...] = Field(default=())
    figures: Figures | None = None
    provenance: Provenance | None = None
    mapping: Mapping
    problem: Problem
    architecture: Architecture


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
