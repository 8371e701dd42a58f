"""Figures that Timeloop itself printed, as typed objects.

`tests/data/timeloop/cases.json.gz` holds 370 mappings with perfect factors over eight architectures and fifteen
problems, and 26 mappings that were made to break a rule. Counts are per instance, energies over all instances in use;
energies were printed with nine decimals.
"""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass
from typing import Any, NamedTuple

from support import DATA
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem

FOLDER = DATA / "timeloop"
INPUTS = FOLDER / "inputs"
"""Timeloop's own input files of some of the cases, named `<id>.yaml`."""


class Counts(NamedTuple):
    """One tensor at one level."""

    reads: int
    fills: int
    updates: int
    instances: int
    tile_words: int
    partition_words: int
    energy_pj: float


class Wires(NamedTuple):
    """One tensor below one level; `deliveries`: (multicast, scatter, accesses) rows."""

    level: str
    tensor: str
    ingresses: int
    deliveries: tuple[tuple[int, int, int], ...]
    link_transfers: int
    spatial_reductions: int
    hops: float
    energy_pj: float
    """Without the energy of link transfers."""
    link_energy_pj: float


@dataclass(frozen=True)
class LevelFigures:
    """One storage level; `tensors` are those it keeps."""

    name: str
    cycles: int
    energy_pj: float
    tensors: MappingOf[str, Counts]


@dataclass(frozen=True)
class Figures:
    """One run; levels outermost first."""

    cycles: int
    compute_cycles: int
    macs: int
    utilization: float
    energy_pj: float
    compute_energy_pj: float
    network_energy_pj: float
    levels: tuple[LevelFigures, ...]
    networks: tuple[Wires, ...]

    @property
    def throttled(self) -> bool:
        """Whether some bandwidth sets the cycles: a ceiling of a floating quotient, which may be one off."""
        return self.cycles != self.compute_cycles


@dataclass(frozen=True)
class Case:
    """`without_links`: the run with link transfers switched off, where they changed anything (else as `figures`)."""

    id: str
    problem: Problem
    architecture: Architecture
    mapping: Mapping
    figures: Figures
    without_links: Figures

    def run(self, link_transfers: bool) -> Figures:
        return self.figures if link_transfers else self.without_links


@dataclass(frozen=True)
class Rejected:
    """A mapping made to break a rule of `kind` (capacity, fanout, product, bypass_all).

    `error` is Timeloop's message; None where Timeloop accepted it all the same, and then there are `figures`.
    `expected`: the level with need and limit, or with axis, use and limit.
    """

    id: str
    problem: Problem
    architecture: Architecture
    mapping: Mapping
    kind: str
    error: str | None
    expected: MappingOf[str, Any]
    figures: Figures | None


@functools.cache
def _document() -> dict[str, Any]:
    with gzip.open(FOLDER / "cases.json.gz", "rt", encoding="utf-8") as file:
        document: dict[str, Any] = json.load(file)
    document["architectures"] = {k: Architecture.model_validate(v) for k, v in document["architectures"].items()}
    document["problems"] = {k: Problem.model_validate(v) for k, v in document["problems"].items()}
    return document


def _figures(data: dict[str, Any]) -> Figures:
    levels = tuple(
        LevelFigures(
            row["name"], row["cycles"], row["energy_pj"], {t: Counts._make(c) for t, c in row["tensors"].items()}
        )
        for row in data["levels"]
    )
    networks = tuple(Wires._make([*row[:3], tuple(map(tuple, row[3])), *row[4:]]) for row in data["networks"])
    return Figures(**data | {"levels": levels, "networks": networks})


def _inputs(row: dict[str, Any]) -> dict[str, Any]:
    document = _document()
    return {
        "id": row["id"],
        "problem": document["problems"][row["problem"]],
        "architecture": document["architectures"][row["architecture"]],
        "mapping": Mapping.model_validate(row["mapping"]),
    }


@functools.cache
def cases() -> tuple[Case, ...]:
    """All accepted mappings."""
    result = []
    for row in _document()["cases"]:
        figures = _figures(row["figures"])
        without = _figures(row["without_link_transfers"]) if "without_link_transfers" in row else figures
        result.append(Case(**_inputs(row), figures=figures, without_links=without))
    return tuple(result)


@functools.cache
def rejected() -> tuple[Rejected, ...]:
    """The mappings made to break a rule."""
    return tuple(
        Rejected(
            **_inputs(row),
            kind=row["kind"],
            error=row["error"],
            expected=row["expected"] or {},
            figures=_figures(row["figures"]) if "figures" in row else None,
        )
        for row in _document()["rejected"]
    )


@functools.cache
def recorded_remainders() -> dict[str, dict[str, Any]]:
    """By name, runs with remainders: `version`, the three parts in our forms, what `timeloop` printed, what is `executed`."""
    cases: dict[str, dict[str, Any]] = json.loads(gzip.decompress((FOLDER / "remainders.json.gz").read_bytes()))
    return cases
