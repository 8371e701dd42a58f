"""Guards of frontends and adapters."""

from __future__ import annotations

from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath

from tilewright.errors import InputError, Reason, Verdict
from tilewright.notations.directives import DirectiveProgram
from tilewright.plugin.adapter import Adapter, InputSet, LayerReader, RecordedFigure, ReportReader
from tilewright.plugin.frontend import Frontend
from tilewright.plugin.guard.calls import Owner, described, fault
from tilewright.plugin.guard.time_limits import limited
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.report import Report
from tilewright.schema.workload import Layer, Workload

PARTS: dict[str, type] = {
    "problem": Problem,
    "architecture": Architecture,
    "mapping": Mapping,
    "constraints": Constraints,
    "directives": DirectiveProgram,
}
"""Field of an input set -> type of its value, unless None."""


class GuardedFrontend:
    """A frontend whose answers are checked."""

    def __init__(self, plugin: Frontend, owner: Owner) -> None:
        self.plugin, self.owner = plugin, owner

    def recognises(self, source: str) -> bool:
        answer: object = limited(self.owner, "recognises", lambda: self.plugin.recognises(source))
        if not isinstance(answer, bool):
            raise fault(self.owner, f"recognises returned {described(answer)}, True or False is expected")
        return answer

    def load(self, source: str) -> Workload:
        workload = limited(self.owner, "load", lambda: self.plugin.load(source))
        wrong = fault_of_workload(workload)
        if wrong:
            raise fault(self.owner, f"load {wrong}")
        return workload


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


class GuardedAdapter:
    """An adapter whose answers are checked."""

    def __init__(self, plugin: Adapter, owner: Owner) -> None:
        self.plugin, self.owner = plugin, owner

    def expressible(self, inputs: InputSet) -> Verdict:
        verdict: object = limited(self.owner, "expressible", lambda: self.plugin.expressible(inputs))
        reasons: object = verdict.reasons if isinstance(verdict, Verdict) else None
        if not isinstance(reasons, tuple) or not all(isinstance(each, Reason) for each in reasons):
            raise fault(self.owner, f"expressible returned {described(verdict)}, a Verdict with Reasons is expected")
        assert isinstance(verdict, Verdict)
        return verdict

    def render(self, inputs: InputSet) -> dict[str, str]:
        def ask() -> tuple[object, str | None]:
            files: object = self.plugin.render(inputs)
            return files, fault_of_files(files)

        files, wrong = limited(self.owner, "render", ask)
        if wrong:
            raise fault(self.owner, f"render {wrong}")
        assert isinstance(files, MappingOf)
        return dict(files)

    def parse(self, files: Sequence[Path]) -> InputSet:
        inputs: object = limited(self.owner, "parse", lambda: self.plugin.parse(files))
        wrong = fault_of_inputs(inputs)
        if wrong:
            raise fault(self.owner, f"parse {wrong}")
        assert isinstance(inputs, InputSet)
        return inputs

    def layers(self, file: Path) -> tuple[str, ...]:
        """Return the layers of a file; empty if the adapter always reads a whole file.

        Raises:
            InputError: The file is invalid.
        """
        plugin = self.plugin
        if not isinstance(plugin, LayerReader):
            return ()
        found: object = limited(self.owner, "layers", lambda: plugin.layers(file))
        if not isinstance(found, tuple) or not all(isinstance(each, str) for each in found):
            raise fault(self.owner, f"layers returned {described(found)}, a tuple of names is expected")
        return found

    def figures(self, recorded: Path, inputs: InputSet, ours: Report) -> tuple[RecordedFigure, ...]:
        """Return the figures of a recorded report.

        Raises:
            InputError: The adapter reads no reports.
        """
        plugin = self.plugin
        if not isinstance(plugin, ReportReader):
            raise InputError(f"{self.owner} reads no reports of its tool")
        found: object = limited(self.owner, "figures", lambda: plugin.figures(recorded, inputs, ours))
        if not isinstance(found, tuple) or not all(isinstance(each, RecordedFigure) for each in found):
            raise fault(self.owner, f"figures returned {described(found)}, a tuple of RecordedFigure is expected")
        return found


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
    if not isinstance(warnings, tuple) or not all(isinstance(each, str) for each in warnings):
        return f"returned {described(warnings)} as warnings, a tuple of texts is expected"
    options: object = inputs.model_options
    if not isinstance(options, MappingOf) or not all(isinstance(key, str) for key in options):
        return f"returned {described(options)} as model_options, names with values are expected"
    return None
