"""Interface of adapters, which read and write the notation of another tool through the core schemas."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from tilewright.errors import Reason, Verdict
from tilewright.plugin.edges import Edges
from tilewright.plugin.program import Program
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture, Compute, Memory, Network
from tilewright.schema.attribute import attributes_of, stated
from tilewright.schema.constraints import Constraints
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapping import Mapping
from tilewright.schema.origin import Origin
from tilewright.schema.problem import Problem

SIDECAR = "tilewright.yaml"
"""Name of the file that holds what the other tool's files cannot express."""
HARDWARE_ATTRIBUTES = frozenset((*attributes_of(Memory), *attributes_of(Compute), *attributes_of(Network)))
"""Fields of memories, compute units and networks that declare an attribute."""


@dataclass(frozen=True)
class InputSet:
    """Contents of a tool's input files; absent parts are None.

    `warnings` lists everything that was lost while reading. `directives` are a whole program in the
    tool's notation, for models that accept it unchanged. `group` is a group mapping with its layers
    and its architecture, instead of problem, architecture and mapping. `origin` is the place of the
    problem in the files. `objective` is the metric that the tool's own search would minimise.
    It is the name of an `Objective`, or the tool's word for another one. `uneven` is whether that search
    would keep tensors of one cluster at different loops. Equality ignores these three.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import InputSet
        >>> inputs = InputSet(tw.load("nk,km->nm; n=2 k=3 m=4", "problem"))
        >>> inputs.problem.macs, inputs.mapping
        (24, None)
    """

    problem: Problem | None = None
    architecture: Architecture | None = None
    mapping: Mapping | None = None
    constraints: Constraints | None = None
    directives: Program | None = None
    group: GroupMapping | None = None
    warnings: tuple[str, ...] = ()
    model_options: MappingOf[str, object] = field(default_factory=dict)
    origin: Origin | None = field(default=None, compare=False)
    objective: str | None = field(default=None, compare=False)
    uneven: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class NotationTable:
    """Attributes of memories, compute units and networks in a notation. What is in neither collection is refused.

    Attributes:
        title: Name of the tool or of its files.
        written: Attributes that the files express, perhaps with conditions that the adapter checks.
        beside: Attributes that have no effect in the tool, and that no file of it needs.
        instead: Code of another attribute -> what the tool does or has instead, for the reason.
        units: Whether the files express vector units.

    Example:
        >>> from tilewright.plugin import NotationTable
        >>> NotationTable("attributes of memories", written=("capacity_words",)).title
        'attributes of memories'
    """

    title: str
    written: Collection[str]
    beside: Collection[str] = ()
    instead: MappingOf[str, str] = field(default_factory=dict)
    units: bool = False

    def refused(self, architecture: Architecture, problem: Problem | None = None) -> Iterator[Reason]:
        """Yield a reason against each attribute that the architecture states and the notation lacks.

        Args:
            architecture: the hardware.
            problem: the problem that it is written for; None: any.
        """
        units = () if self.units else stated(architecture.name, architecture, problem)
        for item in (*architecture.stated(problem), *units):
            if item.field not in self.written and item.field not in self.beside:
                yield item.against(self.instead.get(item.attribute.code, f"{self.title} cannot express it"))


@dataclass(frozen=True)
class RecordedFigure:
    """A figure that a tool reported itself, with Tilewright's.

    `causes` lists known reasons for a difference. `level` is a memory, compute, a network or
    `total`. `equal` allows for the digits that the tool prints.

    >>> RecordedFigure("DRAM", "Weights", "reads", recorded=1024.0, ours=1024.0, equal=True).causes
    ()
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
    """An adapter that also reads its tool's reports.

    >>> class Totals:  # its tool writes one number: the cycles
    ...     def figures(self, recorded: Path, inputs: InputSet, ours: Report) -> tuple[RecordedFigure, ...]:
    ...         cycles, here = float(recorded.read_text()), float(ours.cycles or 0)
    ...         return (RecordedFigure("total", None, "cycles", cycles, here, cycles == here),)
    >>> isinstance(Totals(), ReportReader)
    True
    """

    def figures(self, recorded: Path, inputs: InputSet, ours: Report) -> tuple[RecordedFigure, ...]:
        """Return every figure of a recorded report with Tilewright's, both for the mapping of `inputs`.

        Raises:
            InputError: The file is not a report on these inputs.
        """
        ...


@runtime_checkable
class LayerReader(Protocol):
    """An adapter that can read one layer from a file of several: FILE/LAYER.

    >>> class Lines:  # each line of its files is a layer
    ...     def layers(self, file: Path) -> tuple[str, ...]:
    ...         return tuple(line.split()[0] for line in file.read_text().splitlines())
    >>> isinstance(Lines(), LayerReader)
    True
    """

    def layers(self, file: Path) -> tuple[str, ...]:
        """Return the names of the layers, in the order of the file; none for an architecture or a mapping.

        Raises:
            InputError: The file is invalid.
        """
        ...


@runtime_checkable
class EdgeReader(LayerReader, Protocol):
    """An adapter whose files of several layers state whose results each layer reads.

    Example:
        >>> from tilewright.plugin import EdgeReader, AdapterSpec, installed
        >>> isinstance(installed().make(AdapterSpec, "zigzag"), EdgeReader)
        True
    """

    def edges(self, file: Path, problems: MappingOf[str, Problem]) -> Edges:
        """Return the edges between layers of a file; `tilewright.plugin.edges` finds them by the names of values.

        Args:
            file: the file.
            problems: the layers that are mapped, by their names in the file. Words that pass through others are unknown.

        Raises:
            InputError: The file is invalid.
        """
        ...


@runtime_checkable
class Adapter(Protocol):
    """Product of an adapter's factory.

    If `expressible` accepts x, then `parse(render(x)) == x`.

    Example:
        >>> from tilewright.plugin import Adapter, AdapterSpec, installed
        >>> isinstance(installed().make(AdapterSpec, "timeloop"), Adapter)
        True
    """

    def expressible(self, inputs: InputSet) -> Verdict:
        """Return whether the notation can express the inputs, with every part that it cannot."""
        ...

    def render(self, inputs: InputSet) -> dict[str, str]:
        """Return file name -> text, as the tool expects them.

        Raises:
            NotConformableError: The notation cannot express the inputs; the reasons are those of `expressible`.
        """
        ...

    def parse(self, files: Sequence[Path]) -> InputSet:
        """Read a tool's own files, which together form one input set.

        Raises:
            InputError: A file is invalid; the message names file and line.
        """
        ...
