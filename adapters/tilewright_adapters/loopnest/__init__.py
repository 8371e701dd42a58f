"""A mapping as a loop nest in plain text, with comments that show each tensor's memory.

The text includes problem and architecture, written out or by reference, so that it can be read back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tilewright.errors import InputError, NotConformableError, Reason, Verdict
from tilewright.plugin.adapter import HARDWARE_ATTRIBUTES, InputSet, NotationTable
from tilewright.schema.architecture import Architecture
from tilewright_adapters.loopnest.read import read_parts
from tilewright_adapters.loopnest.write import write_text
from tilewright_adapters.members import files_of
from tilewright_adapters.parts import gathered, unplaced, unwritten_bits

FILE = "loopnest.txt"
TABLE = NotationTable("a loop nest", written=HARDWARE_ATTRIBUTES - {"sparse"})
PARTS = ("problem", "architecture", "mapping")


class LoopNestAdapter:
    """An adapter for loop nests, which can express every mapping."""

    def parse(self, files: Sequence[Path]) -> InputSet:
        """Read one or several files as one input set.

        Raises:
            InputError: the files are invalid; with file and line.
        """
        parts = (
            (part, *content)
            for path in files_of(files, (".txt",), "loop nest")
            for part, content in read_parts(path).items()
        )
        inputs = gathered(parts)
        if inputs == InputSet():
            raise InputError("these files have no problem, architecture or nest")
        return inputs

    def expressible(self, inputs: InputSet) -> Verdict:
        """Return reasons against constraints, directives, model options and estimate records."""
        reasons = (*unplaced(TABLE, inputs, PARTS), *unwritten_bits(TABLE, inputs), *_estimated(inputs.architecture))
        return Verdict(reasons=reasons)

    def render(self, inputs: InputSet) -> dict[str, str]:
        """Return one file, `loopnest.txt`."""
        verdict = self.expressible(inputs)
        if not verdict:
            raise NotConformableError("adapter loopnest", verdict.reasons)
        return {FILE: write_text(inputs.problem, inputs.architecture, inputs.mapping)}


def _estimated(architecture: Architecture | None) -> Iterator[Reason]:
    """Yield a reason for each part with a component or estimates, which a line cannot express."""
    for part in () if architecture is None else architecture.parts:
        if part.component is not None or part.estimates:
            message = "a loop nest cannot express components and estimate records"
            yield Reason(code="estimates", where=part.name, message=message)
