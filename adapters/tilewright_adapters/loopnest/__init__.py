"""A mapping as people draw it: a loop nest in plain text, with the memory that holds each tensor beside every loop.

The text carries problem and architecture, written out or by reference, so that it is read back whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tilewright.errors import InputError, NotConformableError, Reason, Verdict
from tilewright.plugin.adapter import InputSet
from tilewright_adapters.loopnest.read import read_parts
from tilewright_adapters.loopnest.write import write_text

FILE = "loopnest.txt"
PARTS = ("problem", "architecture", "mapping")


class LoopNestAdapter:
    """Reads and writes loop nests. Any mapping of ours has one."""

    def parse(self, files: Sequence[Path]) -> InputSet:
        """One file or several, together one input set.

        Raises:
            InputError: with file and line.
        """
        found = InputSet()
        for path in files:
            for part, (value, location) in read_parts(path).items():
                if getattr(found, part) is not None:
                    raise InputError(f"a second {part}", location=location, hint="give each part once")
                found = replace(found, **{part: value})
        if all(getattr(found, part) is None for part in PARTS):
            raise InputError("there is no problem, architecture or nest in these files")
        return found

    def expressible(self, inputs: InputSet) -> Verdict:
        """All but constraints, programs of directives and options of models."""
        reasons = []
        if inputs.constraints is not None:
            message = "a nest is one mapping; it has no place for what a whole space may do"
            reasons.append(Reason(code="constraints", where=f"constraints {inputs.constraints.name}", message=message))
        if inputs.directives is not None:
            message = "tiles of directives may overlap; those of loops do not"
            reasons.append(Reason(code="directives", where=f"program {inputs.directives.name}", message=message))
        if inputs.model_options:
            message = f"no place for options of models: {', '.join(inputs.model_options)}"
            reasons.append(Reason(code="model_options", where="the input set", message=message))
        if all(getattr(inputs, part) is None for part in PARTS):
            message = "there is no problem, architecture or mapping"
            reasons.append(Reason(code="nothing", where="the input set", message=message))
        return Verdict(reasons=tuple(reasons))

    def render(self, inputs: InputSet) -> dict[str, str]:
        """One file, `loopnest.txt`."""
        verdict = self.expressible(inputs)
        if not verdict:
            raise NotConformableError("adapter loopnest", verdict.reasons)
        return {FILE: write_text(inputs.problem, inputs.architecture, inputs.mapping)}
