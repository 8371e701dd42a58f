"""Interface of programs: layers with dataflows, in a notation that expresses more than a `Mapping`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem


@dataclass(frozen=True)
class Tiles:
    """A layer of a program as schemas. `warnings` list the parts of the layer that are left out."""

    problem: Problem
    architecture: Architecture
    mapping: Mapping
    warnings: tuple[str, ...] = ()


class ProgramLayer(Protocol):
    """A layer of a program."""

    name: str

    @property
    def macs(self) -> int: ...


@runtime_checkable
class Program(Protocol):
    """A program, which cost models that know its notation accept unchanged; others get its tiles.

    The methods raise NotConformableError if the schemas cannot express the result.
    """

    name: str

    @property
    def layers(self) -> Sequence[ProgramLayer]: ...

    def architecture(self) -> Architecture:
        """Return the hardware, independent of the dataflows."""

    def problem(self, layer: int) -> Problem:
        """Return the problem of a layer, independent of its dataflow."""

    def tiles(self, layer: int) -> Tiles:
        """Return a layer, its dataflow and the hardware as schemas."""
