"""Guards of frontends and adapters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingOf
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TypeVar

from tilewright.errors import InputError, Reason, Verdict
from tilewright.plugin.adapter import Adapter, EdgeReader, InputSet, LayerReader, RecordedFigure, ReportReader
from tilewright.plugin.edges import Edges
from tilewright.plugin.frontend import Frontend
from tilewright.plugin.guard.calls import Owner, described
from tilewright.plugin.guard.time_limits import checked_answer
from tilewright.plugin.program import Program
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Layer, Workload

Part = TypeVar("Part")
PARTS: dict[str, type] = {
    "problem": Problem,
    "architecture": Architecture,
    "mapping": Mapping,
    "constraints": Constraints,
    "directives": Program,
    "group": GroupMapping,
}
"""Field of an input set -> type of its value, unless None."""


class GuardedFrontend:
    """A frontend whose answers are checked."""

    def __init__(self, plugin: Frontend, owner: Owner) -> None:
        self.plugin, self.owner = plugin, owner

    def recognises(self, source: str) -> bool:
        return checked_answer(self.owner, "recognises", lambda: self.plugin.recognises(source), fault_of_flag)

    def load(self, source: str) -> Workload:
        return checked_answer(self.owner, "load", lambda: self.plugin.load(source), fault_of_workload)


class GuardedAdapter:
    """An adapter whose answers are checked."""

    def __init__(self, plugin: Adapter, owner: Owner) -> None:
        self.plugin, self.owner = plugin, owner

    def expressible(self, inputs: InputSet) -> Verdict:
        return checked_answer(self.owner, "expressible", lambda: self.plugin.expressible(inputs), fault_of_verdict)

    def render(self, inputs: InputSet) -> dict[str, str]:
        return dict(checked_answer(self.owner, "render", lambda: self.plugin.render(inputs), fault_of_files))

    def parse(self, files: Sequence[Path]) -> InputSet:
        return checked_answer(self.owner, "parse", lambda: self.plugin.parse(files), fault_of_inputs)

    def layers(self, file: Path) -> tuple[str, ...]:
        """Return the layers of a file; empty if the adapter always reads a whole file.

        Raises:
            InputError: The file is invalid.
        """
        plugin = self.plugin
        if not isinstance(plugin, LayerReader):
            return ()
        return checked_answer(self.owner, "layers", lambda: plugin.layers(file), partial(fault_of_items, str, "names"))

    def edges(self, file: Path, problems: MappingOf[str, Problem]) -> Edges:
        """Return the edges between layers of a file; empty, which means unknown, if the adapter does not read them.

        Raises:
            InputError: The file is invalid.
        """
        plugin = self.plugin
        if not isinstance(plugin, EdgeReader):
            return {}
        return checked_answer(
            self.owner, "edges", lambda: plugin.edges(file, problems), partial(fault_of_edges, problems)
        )

    def figures(self, recorded: Path, inputs: InputSet, ours: Report) -> tuple[RecordedFigure, ...]:
        """Return the figures of a recorded report.

        Raises:
            InputError: The adapter reads no reports.
        """
        plugin = self.plugin
        if not isinstance(plugin, ReportReader):
            raise InputError(f"{self.owner} reads no reports of its tool")
        fault_of = partial(fault_of_items, RecordedFigure, "RecordedFigure")
        return checked_answer(self.owner, "figures", lambda: plugin.figures(recorded, inputs, ours), fault_of)


def converted(program: Program, kind: type[Part], convert: Callable[[], Part]) -> Part:
    """Return the part of a program that one of its methods converts to a schema, checked."""
    owner = Owner("program", program.name)

    def fault_of(part: Part) -> str | None:
        return None if isinstance(part, kind) else f"is {described(part)}"

    return checked_answer(owner, f"its {kind.__name__}", convert, fault_of)


def fault_of_edges(problems: MappingOf[str, Problem], answer: object) -> str | None:
    """Return why the answer is no edges between these layers, or None."""
    if not isinstance(answer, MappingOf):
        return f"it returned {described(answer)}; expected a mapping from layers to reads"
    try:
        layers_with(problems, answer)
    except (ValueError, AttributeError, TypeError) as error:
        return f"its edges are invalid: {error}"
    return None


def layers_with(problems: MappingOf[str, Problem], edges: Edges) -> tuple[Layer, ...]:
    """Return the layers of a file with their edges.

    Raises:
        ValueError: The edges do not match the problems.
    """
    layers = []
    for name, problem in problems.items():
        known = edges.get(name)
        reads = FrozenDict({tensor: tuple(each) for tensor, each in (known or {}).items()})
        after = tuple(dict.fromkeys(read.maker for each in reads.values() for read in each))
        named = problem.model_copy(update={"name": name})
        layers.append(Layer(problem=named, after=None if known is None else after, reads=reads))
    return Workload(name="layers", layers=tuple(layers)).layers


def fault_of_flag(answer: object) -> str | None:
    """Return the contract violation in an answer of yes or no in a few words, or None."""
    return None if isinstance(answer, bool) else f"returned {described(answer)}, True or False is expected"


def fault_of_verdict(verdict: object) -> str | None:
    """Return the contract violation in a verdict in a few words, or None."""
    reasons: object = verdict.reasons if isinstance(verdict, Verdict) else None
    if isinstance(reasons, tuple) and all(isinstance(reason, Reason) for reason in reasons):
        return None
    return f"returned {described(verdict)}, a Verdict with Reasons is expected"


def fault_of_items(kind: type, expected: str, items: object) -> str | None:
    """Return the contract violation in a tuple of one type in a few words, or None."""
    if isinstance(items, tuple) and all(isinstance(item, kind) for item in items):
        return None
    return f"returned {described(items)}, a tuple of {expected} is expected"


def fault_of_workload(workload: object) -> str | None:
    """Return the contract violation in a loaded workload in a few words, or None."""
    if not isinstance(workload, Workload):
        return f"returned {described(workload)}, a Workload is expected"
    layers: object = workload.layers
    whole = isinstance(layers, tuple) and all(
        isinstance(layer, Layer) and isinstance(layer.problem, Problem) for layer in layers
    )
    if not whole:
        return "returned a Workload whose layers are none"
    try:
        Workload.model_validate({name: getattr(workload, name) for name in Workload.model_fields})
    except (ValueError, AttributeError) as error:
        return f"returned a Workload that is none: {' '.join(str(error).split())[:200]}"
    return None


def fault_of_files(files: object) -> str | None:
    """Return the contract violation in rendered files in a few words, or None.

    Names must stay below the output folder.
    """
    if not isinstance(files, MappingOf) or not files:
        return f"returned {described(files)}{' without files' if files == {} else ''}, names with texts are expected"
    for name, text in files.items():
        if not isinstance(name, str) or not isinstance(text, str):
            return f"returned {described(name)} with {described(text)}, names with texts are expected"
        for path in (PurePosixPath(name), PureWindowsPath(name)):
            if not path.parts or path.anchor or ".." in path.parts or "\0" in name:
                return f"wants to write {name[:80]!r}, which is no name below the folder that it is given"
    return None


def fault_of_inputs(inputs: object) -> str | None:
    """Return the contract violation in parsed inputs in a few words, or None."""
    if not isinstance(inputs, InputSet):
        return f"returned {described(inputs)}, an InputSet is expected"
    for name, kind in PARTS.items():
        value = getattr(inputs, name)
        if value is not None and not isinstance(value, kind):
            return f"returned {described(value)} as {name}, {kind.__name__} or None is expected"
    warnings: object = inputs.warnings
    if not isinstance(warnings, tuple) or not all(isinstance(warning, str) for warning in warnings):
        return f"returned {described(warnings)} as warnings, a tuple of texts is expected"
    options: object = inputs.model_options
    if not isinstance(options, MappingOf) or not all(isinstance(key, str) for key in options):
        return f"returned {described(options)} as model_options, names with values are expected"
    return None
