"""Adapter: a notation of another tool, read and written through the core schemas, never pairwise."""

from __future__ import annotations

from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from tilewright.errors import Reason, Verdict
from tilewright.notations.directives import DirectiveProgram
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.report import Report


@dataclass(frozen=True)
class InputSet:
    """What a tool's input files say together; absent parts are None. `warnings` lists what could not be kept.

    `directives` are whole programs in the data-centric notation, for models that take them as they are.
    """

    problem: Problem | None = None
    architecture: Architecture | None = None
    mapping: Mapping | None = None
    constraints: Constraints | None = None
    directives: DirectiveProgram | None = None
    warnings: tuple[str, ...] = ()
    model_options: MappingOf[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class RecordedFigure:
    """A figure that a tool reported itself, and ours. `causes`: what is known of why they differ.

    `level`: a memory, compute, a network or `total`; `equal`: but for the digits that the tool prints.
    """

    level: str
    tensor: str | None
    figure: str
    recorded: float
    ours: float
    equal: bool
    causes: tuple[Reason, ...] = ()


@runtime_checkable
class ReportReader(Protocol):
    """An adapter that reads what its tool reported, too."""

    def figures(self, recorded: Path, inputs: InputSet, ours: Report) -> tuple[RecordedFigure, ...]:
        """Every figure of a recorded report beside that of ours, both on the mapping of `inputs`. Raises InputError: it is
        no report on these inputs."""
        ...


@runtime_checkable
class LayerReader(Protocol):
    """An adapter whose files may hold several layers, of which `parse` reads one: FILE/LAYER."""

    def layers(self, file: Path) -> tuple[str, ...]:
        """Their names, in the order of the file; none where it is an architecture or a mapping. Raises InputError."""
        ...


@runtime_checkable
class Adapter(Protocol):
    """What a plugin's factory returns. Law: where `expressible` says yes, `parse(render(x)) == x`."""

    def expressible(self, inputs: InputSet) -> Verdict:
        """Can the notation hold this? If not, exactly what it cannot hold."""
        ...

    def render(self, inputs: InputSet) -> dict[str, str]:
        """File name -> text, as the tool expects them. Raises NotConformableError with the reasons of `expressible`."""
        ...

    def parse(self, files: Sequence[Path]) -> InputSet:
        """Read a tool's own files, together one input set. Raises InputError with file and line."""
        ...
